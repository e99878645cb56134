"""Commands that create scenarios from other descriptions: `import` and `generate`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from waterfill.cli import completion
from waterfill.cli.arguments import NewFile, place
from waterfill.cli.console import print_text
from waterfill.errors import InputError, shown

Rate = Annotated[
    str | None,
    Option(
        metavar="RATE",
        help="Rate of links whose rate the source does not give. Default: 1 Gbit/s.",
    ),
]
Delay = Annotated[
    str | None,
    Option(
        metavar="TIME",
        help="One-way delay of links whose delay the source does not give. Default: 1 ms.",
    ),
]
Oversubscription = Annotated[
    float | None,
    Option(
        metavar="NUMBER",
        help="Capacity of a fabric's switch to its hosts, divided by that to the switches above "
        "it. Default: 1.",
    ),
]
Unit = Annotated[
    str | None,
    Option(
        metavar="RATE",
        help="Unit of capacities and demands of SNDlib and topohub (default: 1 Mbit/s) and "
        "Repetita (1 kbit/s), or of a trace's rates without a unit.",
    ),
]
DelayUnit = Annotated[
    str | None,
    Option(metavar="TIME", help="Unit of delays in a file of Repetita. Default: 1 us."),
]
Bin = Annotated[
    str | None,
    Option(
        metavar="TIME",
        help="Time over which a trace's delivery opportunities are counted. Default: 100 ms.",
    ),
]
Shift = Annotated[
    bool | None,
    Option("--shift", help="Count a trace's times from its first, such as a clock's seconds."),
]
Traffic = Annotated[
    str | None,
    Option(
        metavar="KIND",
        help="demands, gravity, permutation, all-to-all, incast or none. Default: the source's.",
    ),
]
Flows = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="Read flows from a CSV file: source, sink, start, stop, size, demand, name, after.",
        parser=place,
    ),
]
Origin = Annotated[
    str | None,
    Option(
        metavar="TIME",
        help="Time in the file of --flows at which the run begins. HPCC's lists begin at 2 s.",
    ),
]
Pairs = Annotated[
    int | None,
    Option(min=1, metavar="N", help="Number of pairs of gravity (100), or of senders of incast."),
]
Load = Annotated[
    float | None,
    Option(
        metavar="X",
        help="Scale demands until the busiest link's load is X. With --sizes: offered load as a "
        "share of the hosts' rate.",
    ),
]
Count = Annotated[int | None, Option(min=1, metavar="N", help="Flows per pair. Default: 1.")]
Size = Annotated[
    str | None, Option(metavar="SIZE", help="Payload of each flow. Default: unlimited.")
]
Arriving = Annotated[
    str | None,
    Option(
        "--sizes",
        metavar="SIZES",
        help="Sizes of randomly arriving flows: web-search, data-mining, hadoop, rpc, 30 kB, or a "
        "file of a distribution.",
    ),
]
Duration = Annotated[str | None, Option(metavar="TIME", help="Duration of the run.")]
Protocol = Annotated[
    str | None, Option(metavar="NAME", help="Protocol of the flows. Default: maxnet.")
]
Seed = Annotated[int | None, Option(metavar="N", help="Seed of random choices. Default: 1.")]
Profile = Annotated[
    str | None,
    Option(
        metavar="NAME",
        help="wan, or datacenter: constants of laws, hosts and links that follow from the RTT.",
    ),
]
BufferSize = Annotated[
    str | None, Option("--buffer", metavar="SIZE", help="Buffer of each link, such as 4 MB.")
]
MarkAt = Annotated[
    str | None,
    Option("--mark-at", metavar="SIZE", help="Queue length above which each link marks packets."),
]


def import_(
    format: Annotated[
        str | None,
        Argument(
            metavar="FORMAT",
            help="Format. Without one, list the formats.",
            autocompletion=completion.network_format,
        ),
    ] = None,
    source: Annotated[
        str | None, Argument(metavar="SOURCE", help="File, or a name in topohub.")
    ] = None,
    output: NewFile = None,
    rate: Rate = None,
    delay: Delay = None,
    unit: Unit = None,
    delay_unit: DelayUnit = None,
    bin: Bin = None,
    shift: Shift = None,
    traffic: Traffic = None,
    flows: Flows = None,
    origin: Origin = None,
    pairs: Pairs = None,
    load: Load = None,
    count: Count = None,
    size: Size = None,
    arriving: Arriving = None,
    duration: Duration = None,
    protocol: Protocol = None,
    seed: Seed = None,
    profile: Profile = None,
    buffer: BufferSize = None,
    mark_at: MarkAt = None,
) -> None:
    """Convert a topology, demands or a list of flows into a scenario."""
    given = dict(locals())
    from waterfill.formats import build

    if format is None:
        _none_given("import", "FORMAT", given)
        _listed({name: one.title for name, one in build.FORMATS.items()})
        return
    if source is None:
        raise InputError("import", format, "no SOURCE given")
    _write(build.imported(format, source, _options(given)), given)


def generate(
    rule: Annotated[
        str | None,
        Argument(
            metavar="RULE",
            help="Rule. Without one, list the rules.",
            autocompletion=completion.rule,
        ),
    ] = None,
    sizes: Annotated[
        list[int] | None, Argument(metavar="NUMBER…", help="Sizes that the rule needs, in order.")
    ] = None,
    output: NewFile = None,
    rate: Rate = None,
    delay: Delay = None,
    oversubscription: Oversubscription = None,
    traffic: Traffic = None,
    flows: Flows = None,
    origin: Origin = None,
    pairs: Pairs = None,
    load: Load = None,
    count: Count = None,
    size: Size = None,
    arriving: Arriving = None,
    duration: Duration = None,
    protocol: Protocol = None,
    seed: Seed = None,
    profile: Profile = None,
    buffer: BufferSize = None,
    mark_at: MarkAt = None,
) -> None:
    """Generate a scenario by rule, such as a fat-tree or a WAN."""
    given = dict(locals())
    from waterfill.formats import build

    if rule is None:
        _none_given("generate", "RULE", given)
        _listed({" ".join((name, *one.sizes)): one.title for name, one in build.RULES.items()})
        return
    _write(build.generated(rule, sizes or [], _options(given)), given)


def _options(given: Mapping[str, Any]) -> Any:
    from waterfill.formats.build import Options
    from waterfill.scenario.units import RATE, SPAN, TIME, VOLUME, Quantity

    def value(name: str, quantity: Quantity) -> float | None:
        text = given.get(name)
        if text is None:
            return None
        try:
            return quantity.parse(text)
        except ValueError as error:
            raise InputError(f"--{name.replace('_', '-')}", "", str(error)) from None

    load = given["load"]
    if load is not None and not 0 < load <= _MAX_LOAD:
        why = f"must be a number above 0, up to {_MAX_LOAD}, got {load:g}"
        raise InputError("--load", "", why)
    over = given.get("oversubscription")
    if over is not None and not 0 < over < math.inf:
        raise InputError("--oversubscription", "", f"must be a number above 0, got {over:g}")
    size = value("size", replace(VOLUME, zero=False, whole=True))
    return Options(
        rate_bps=value("rate", RATE), delay_s=value("delay", TIME),
        oversubscription=over, unit_bps=value("unit", RATE), delay_unit_s=value("delay_unit", SPAN),
        bin_s=value("bin", SPAN), shift=given.get("shift"),
        pattern=given["traffic"], flows=given["flows"], origin_s=value("origin", SPAN),
        pairs=given["pairs"], load=load, sizes=given["arriving"], count=given["count"],
        size_bytes=None if size is None else int(size), duration_s=value("duration", TIME),
        seed=_SEED if given["seed"] is None else given["seed"],
        profile=_profile(given["profile"]), link_defaults=_link_defaults(given),
    )  # fmt: skip


def _profile(name: str | None) -> str | None:
    if name not in (None, "wan", "datacenter"):
        raise InputError("--profile", "", f"must be wan or datacenter, got {shown(name)}")
    return name


def _link_defaults(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of --buffer and --mark-at, as a scenario writes them."""
    from waterfill.scenario.links import level
    from waterfill.scenario.units import Buffer

    found: dict[str, str] = {}
    readers: dict[str, Callable[[object], Buffer]] = {"buffer": Buffer.parse, "mark_at": level}
    for key, read in readers.items():
        if given[key] is not None:
            try:
                found[key] = read(given[key]).format()
            except ValueError as error:
                raise InputError(f"--{key.replace('_', '-')}", "", str(error)) from None
    return found


def _none_given(command: str, missing: str, given: Mapping[str, Any]) -> None:
    """Raise InputError if an option is given without FORMAT or RULE."""
    for name, value in given.items():
        if value is not None:
            option = {"arriving": "sizes"}.get(name, name).replace("_", "-")
            why = f"no effect without {missing}, got {shown(str(value))}"
            raise InputError(f"--{option}", "", why, f"type waterfill {command} {missing} …")


def _listed(titles: Mapping[str, str]) -> None:
    width = max(map(len, titles))
    for name, title in titles.items():
        print_text(f"{name:<{width}}  {title}")


# Keys of the scenario that an option sets, by the key's last part. A wrong --rate or --delay is
# refused when it is read; a wrong one here is the source's.
_OPTIONS = ("protocol", "seed", "duration", "count", "size", "load", "profile", "buffer", "mark_at")
_MAX_LOAD = 1_000_000
_PROTOCOL, _SEED = "maxnet", 1


def _check(written: str, layout: Any, given: Mapping[str, object]) -> None:
    """Raise InputError with the responsible option if a run would refuse the scenario."""
    from waterfill.network import protocols
    from waterfill.runs import backends
    from waterfill.scenario.loading import from_toml

    checked = written
    if not layout.flows and not layout.sources:  # --traffic none
        path = json.dumps(layout.links[0].name, ensure_ascii=False)
        checked += f'[[traffic]]\nkind = "cbr"\nrate = "1 kbit/s"\npath = [{path}]\n'
    try:
        scenario = from_toml(checked, "<scenario>")
        known = protocols.load()
        if scenario.protocol is not None and scenario.protocol not in known:
            from waterfill.errors import nearest

            why = f"unknown protocol {scenario.protocol}{nearest(scenario.protocol, known)}"
            raise InputError("<scenario>", "protocol", why)
        backends.prepare(scenario, "sim")
    except InputError as error:
        last = error.key.rpartition(".")[2]
        where = f"--{last}" if given.get(last) is not None else layout.name
        key = "" if where == f"--{error.key}" else error.key
        raise InputError(where, key, error.message) from None


def _write(layout: Any, given: Mapping[str, Any]) -> None:
    """Check the scenario of a layout, and write or print it."""
    from waterfill.formats.writing import text
    from waterfill.runs.files import write_new

    protocol, seed = given["protocol"] or _PROTOCOL, given["seed"]
    seed = _SEED if seed is None else seed
    written = text(layout, protocol, seed)
    # All hosts of a source reach each other, and its pairs grow with the square of the hosts.
    few = [replace(source, hosts=source.hosts[:2], fan_in=None) for source in layout.sources]
    checked = text(replace(layout, sources=few), protocol, seed) if few else written
    _check(checked, layout, {name: given[name] for name in _OPTIONS})
    output = given["output"]
    if output is None:
        print_text(written.rstrip("\n"))
        return
    write_new(output, written)
    first = "run it" if layout.flows or layout.sources else "add a [[flow]], then run it"
    print_text(f"written to {output}; {first}: waterfill run {output}")
