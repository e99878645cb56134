"""`waterfill.Scenario`: a scenario written in Python, with the keys and errors of a file."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, get_args

from waterfill.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from waterfill.analysis.compare import Comparison
    from waterfill.runs.laws import PythonLaw
    from waterfill.runs.result import Result
    from waterfill.scenario import document
    from waterfill.scenario.loading import Sets

SOURCE = "<scenario>"

Number: TypeAlias = "int | float"
Level: TypeAlias = "str | Mapping[str, Any]"


# Sections whose entries a file repeats, in its order.
_SECTIONS = ("link", "flow", "traffic", "collective")


class LinkKeys(TypedDict, total=False):
    """Keys of a link. A quantity is a number under a key with a unit suffix, or a text with its
    unit.
    """

    rate_bps: Number
    rate_reverse: str
    rate_reverse_bps: Number
    delay_s: Number
    delay_reverse: str
    delay_reverse_s: Number
    buffer: str
    buffer_bytes: Number
    buffer_packets: Number
    buffer_bdp: Number
    buffer_reverse: str
    buffer_reverse_bytes: Number
    buffer_reverse_packets: Number
    buffer_reverse_bdp: Number
    duplex: bool
    loss: Number
    loss_reverse: Number
    target: Number
    routers: Sequence[str]
    queue: str
    queue_params: Mapping[str, Any]
    mark_at: str
    mark_at_bytes: Number
    mark_at_packets: Number
    mark_to: str
    mark_to_bytes: Number
    mark_to_packets: Number
    mark_max: Number
    loss_model: Mapping[str, Any]
    reorder: Any
    duplicate: Number
    shaper: Mapping[str, Any]
    policer: Mapping[str, Any]
    ack_aggregation: str | Mapping[str, Any]
    ack_thinning: int
    event: Sequence[Mapping[str, Any]]
    fault: Sequence[Mapping[str, Any]]
    rate_trace: Any
    rate_trace_reverse: Any
    delay_trace: Any
    delay_trace_reverse: Any


class _RoutedKeys(TypedDict, total=False):
    start: str
    start_s: Number
    stop: str
    stop_s: Number
    return_path: Sequence[str]
    protocol: str
    rtt: str
    rtt_s: Number
    pacing: bool
    pacing_quantum: int | str
    ecn: bool
    ecn_feedback: str
    ecn_codepoint: str
    recovery: str
    ack_frequency: Mapping[str, Any]
    window_validation: str
    handshake: bool
    access_rate: str
    access_rate_bps: Number
    initial_window: int | str
    delayed_ack: bool


class FlowKeys(_RoutedKeys, total=False):
    """Keys of a flow. A quantity is a number under a key with a unit suffix, or a text with its
    unit.
    """

    count: int
    stagger: str
    stagger_s: Number
    start_jitter: str
    start_jitter_s: Number
    rtt_jitter: str
    rtt_jitter_s: Number
    size: str
    size_bytes: Number
    weight: Number
    demand: str
    demand_bps: Number
    demand_trace: Any
    application: Mapping[str, Any]
    after: Sequence[str]
    after_count: int
    continues: str
    route: Sequence[Mapping[str, Any]]
    claimed_rtt: str
    claimed_rtt_s: Number
    base_rtt_window: str
    base_rtt_window_s: Number
    fault: Sequence[Mapping[str, Any]]


class TrafficKeys(_RoutedKeys, total=False):
    """Keys of a traffic source. A quantity is a number under a key with a unit suffix, or a text
    with its unit.
    """

    count: int
    rate: str
    rate_bps: Number
    on: str
    on_s: Number
    off: str
    off_s: Number
    distribution: str
    shape: Number
    pattern: str
    hosts: Sequence[str]
    fan_in: int
    arrival_rate: Number | str
    at: Sequence[str]
    every: str
    every_s: Number
    load: Number | str
    sizes: Any
    base_rtt_window: str
    base_rtt_window_s: Number


class CollectiveKeys(TypedDict, total=False):
    """Keys of a collective operation. A quantity is a number under a key with a unit suffix, or a
    text with its unit.
    """

    algorithm: str
    hosts: Sequence[str]
    size: str
    size_bytes: Number
    chunks: int
    start: str
    start_s: Number
    protocol: str
    initial_window: int | str
    connections: str


class RootKeys(TypedDict, total=False):
    """Keys of the scenario itself. A quantity is a number under a key with a unit suffix, or a text
    with its unit.
    """

    duration: str
    duration_s: Number
    protocol: str
    packet_size: str
    packet_size_bytes: Number
    ack_size: str
    ack_size_bytes: Number
    seed: int
    measure: Sequence[str]
    profile: str
    handshake: bool
    ideal: str
    fabric: Mapping[str, Any]
    ecmp: str
    flowlet_gap: str
    flowlet_gap_s: Number
    switch: Mapping[str, Any]
    nic: str
    link_defaults: Mapping[str, Any]
    sample: str
    sample_s: Number
    series: str | Mapping[str, Any]
    series_bytes: Number
    rto_min: str
    rto_min_s: Number
    syn_rto: str
    syn_rto_s: Number
    rttvar_min: str
    rttvar_min_s: Number
    base_rtt_window: str
    base_rtt_window_s: Number
    ip_version: int
    step: str
    step_s: Number
    check_step: bool


class Scenario:
    """A scenario written in Python: links, flows, traffic and parameters, ready to run.

    Keys are those of a scenario file (docs/scenario.toml). A quantity is a text with its unit
    (`rate="10 Mbit/s"`) or a number in SI units under the key with its suffix (`rate_bps=1e7`,
    `delay_s=0.005`, `size_bytes=30_000`). Methods return the scenario, so that calls can be
    chained. `set` and `params` check at once, the scenario as a whole is checked by `check`, `run`,
    `compare` and `to_toml`. They raise InputError with the sentence that a file would get.

    >>> import waterfill
    >>> dumbbell = waterfill.Scenario("dumbbell", duration="3 s", protocol="maxnet")
    >>> dumbbell.link("l", "a", "b", rate="10 Mbit/s", delay_s=0.005)
    <Scenario 'dumbbell': 1 link, 0 flows>
    >>> dumbbell.flow("one", path=["l"]).flow("two", "a", "b", start="500 ms")
    <Scenario 'dumbbell': 1 link, 2 flows>
    >>> result = dumbbell.run()
    >>> [flow["name"] for flow in result.summary["flows"]]
    ['one', 'two']
    """

    def __init__(self, name: str = "scenario", /, **keys: Unpack[RootKeys]) -> None:
        self._document: dict[str, Any] = {"name": name}
        self._source = SOURCE
        self._places: dict[str, str] = {}  # keys that were set here, unlike those of a file
        self.set(**keys)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Scenario:
        """Read a scenario file in order to change the scenario; raise InputError if the file is
        invalid.

        Files that it names (traces, sizes) are still looked for in its directory.
        """
        from waterfill.scenario.loading import load, read_toml

        checked = load(path)
        with open(path, encoding="utf-8-sig") as file:
            read = read_toml(file.read())
        found = cls(checked.name)
        found._document = {"name": checked.name, **read}
        found._source = os.fspath(path)
        return found

    @classmethod
    def from_toml(cls, text: str) -> Scenario:
        """Read a scenario from the text of its file; raise InputError if the text is invalid."""
        from waterfill.scenario.loading import from_toml, read_toml

        checked = from_toml(text, SOURCE)
        found = cls(checked.name)
        found._document = {"name": checked.name, **read_toml(text)}
        return found

    def __repr__(self) -> str:
        links, flows = (len(self._document.get(section, ())) for section in ("link", "flow"))
        counts = f"{links} link{'s' * (links != 1)}, {flows} flow{'s' * (flows != 1)}"
        return f"<Scenario {self._document['name']!r}: {counts}>"

    def set(self, values: Mapping[str, Any] | None = None, /, **keys: Unpack[RootKeys]) -> Self:
        """Set keys of the scenario itself, such as `duration`, `protocol`, `seed` or `measure`.

        A dictionary also reaches inside: {"link.l.rate": "1 Gbit/s", "params.maxnet.mu": 0.95}.
        Raises InputError at once for an unknown key or a value that the key does not take.

        >>> import waterfill
        >>> waterfill.Scenario("s").set(duration_s=20, seed=3).to_dict()
        {'name': 's', 'duration': '20 s', 'seed': 3}
        """
        from waterfill.scenario.loading import check_keys, copied, override

        written = _written("scenario", "", keys)
        changed = {**(copied(self._document) if values else self._document), **written}
        places = dict.fromkeys((*written, *override(changed, values or {})), SOURCE)
        inside = {key.partition(".")[0] for key in places}
        check_keys({name: changed[name] for name in {"name", *inside}}, places, self._source)
        params = [key for key in places if key.startswith("params.")]
        _check_params(changed.get("params", {}), params)
        self._document = changed
        self._places |= places
        return self

    def link(
        self,
        name: str,
        from_: str,
        to: str,
        rate: str | None = None,
        delay: str | None = None,
        **keys: Unpack[LinkKeys],
    ) -> Self:
        """Add a link from one node to another, by default with its reverse direction.

        `rate` is needed, as a text or as `rate_bps`. Further keys as in [[link]].
        """
        given = {"name": name, "from": from_, "to": to, "rate": rate, "delay": delay, **keys}
        return self._add("link", name, given)

    def flow(
        self,
        name: str,
        from_: str | None = None,
        to: str | None = None,
        *,
        path: Sequence[str] | None = None,
        **keys: Unpack[FlowKeys],
    ) -> Self:
        """Add a flow, or a group of `count` flows, between two nodes or along a path of links.

        Further keys as in [[flow]].
        """
        return self._add(
            "flow", name, {"name": name, "from": from_, "to": to, "path": path, **keys}
        )

    def traffic(
        self,
        kind: str,
        from_: str | None = None,
        to: str | None = None,
        *,
        name: str | None = None,
        path: Sequence[str] | None = None,
        **keys: Unpack[TrafficKeys],
    ) -> Self:
        """Add a traffic source of the kind "cbr", "poisson", "onoff" or "web", with the keys of
        [[traffic]].
        """
        given = {"kind": kind, "name": name, "from": from_, "to": to, "path": path, **keys}
        return self._add("traffic", name or kind, given)

    def collective(self, name: str, kind: str, **keys: Unpack[CollectiveKeys]) -> Self:
        """Add a collective operation of the kind "all-reduce" or "all-to-all", with the keys of
        [[collective]].
        """
        return self._add("collective", name, {"name": name, "kind": kind, **keys})

    def params(self, protocol: str, **values: float | str | bool) -> Self:
        """Set parameters of a protocol, for example `params("maxnet", mu=0.95)`."""
        return self.set({f"params.{protocol}.{name}": value for name, value in values.items()})

    def to_dict(self) -> dict[str, Any]:
        """Return an unchecked copy of the scenario as a dictionary in the structure of the file."""
        return copy.deepcopy(self._document)

    def to_toml(self) -> str:
        """Return the scenario as TOML text, with only the keys that were set.

        Raises InputError where the scenario is wrong.
        """
        self.checked()
        root = {k: v for k, v in self._document.items() if k not in (*_SECTIONS, "params")}
        blocks = [("", root)]
        for section in _SECTIONS:
            blocks += [(f"[[{section}]]", entry) for entry in self._document.get(section, ())]
        for protocol, values in self._document.get("params", {}).items():
            blocks.append((f"[params.{_key(protocol)}]", values))
        texts = [
            "\n".join([head] * bool(head) + [f"{_key(k)} = {_value(v)}" for k, v in entry.items()])
            for head, entry in blocks
        ]
        return "\n\n".join(texts) + "\n"

    def checked(self, sets: Sets = ()) -> document.Scenario:
        """Return the checked scenario with all defaults, and with overrides such as {"seed": 3};
        raise InputError if the scenario is invalid.
        """
        from waterfill.scenario.loading import from_dict

        return from_dict(self._document, self._source, sets, self._places)

    def check(self, on: str = "sim", laws: Mapping[str, PythonLaw] | None = None) -> dict[str, Any]:
        """Check the scenario without running it; return its values in SI units.

        `laws` are laws in Python by name. Raises InputError for what is wrong, or what the backend
        cannot run.
        """
        from waterfill.runs import effective

        return effective.document(self.checked(), on, laws)

    def run(
        self,
        on: str = "sim",
        seed: int | None = None,
        threads: int | None = 1,
        laws: Mapping[str, PythonLaw] | None = None,
    ) -> Result:
        """Run the scenario on a backend ("sim", "fluid", "linux"); see `waterfill.run`."""
        from waterfill.runs import backends

        return backends.run(self.checked(), on, seed, threads=threads, laws=laws)

    @property
    def source(self) -> str:
        """File that the scenario was read from, or `<scenario>`. Error messages name this file."""
        return self._source

    def compare(
        self,
        protocols: str | Sequence[str] | None = None,
        on: str = "sim",
        laws: Mapping[str, PythonLaw] | None = None,
    ) -> Comparison:
        """Run the scenario under several protocols in turn, by default maxnet, xcp, rcp and abc.

        `protocols` is a list of names, or one text "maxnet,rcp"; "explicit" and "all" stand for
        all explicit protocols and all protocols. The flows that name no protocol use each in turn.
        `laws` are laws in Python by name, which are then protocols as well. Raises InputError
        before any run.

        >>> import waterfill
        >>> one = waterfill.Scenario("one", duration="2 s").link("l", "a", "b", "10 Mbit/s", "5 ms")
        >>> found = one.flow("f", "a", "b").compare(["maxnet", "rcp"])
        >>> list(found.results)
        ['maxnet', 'rcp']
        """
        from waterfill.analysis import compare

        return compare.compare(self, protocols, on, laws=laws)

    def _add(self, section: str, label: str, given: Mapping[str, Any]) -> Self:
        entry = _written(section, f"{section}.{label}.", given)
        self._places[f"{section}.{label}"] = SOURCE
        self._document.setdefault(section, []).append(entry)
        return self


def _check_params(params: Mapping[str, Any], keys: Collection[str]) -> None:
    """Raise InputError for an unknown or wrong parameter among the keys `params.LAW.NAME`.

    Laws in Python are known only when they run, so their parameters are not judged here.
    """
    from waterfill.network import protocols

    known = protocols.load()
    for law in dict.fromkeys(key.split(".")[1] for key in keys):
        if law not in known or not isinstance(params[law], Mapping):
            continue
        key, values = "", {}
        try:
            for name, value in params[law].items():
                key = f"params.{law}.{name}"
                values[name] = known[law].param(name).parse(value)
            protocols.targets({law: values})  # the core checks ranges
        except ValueError as error:
            place, _, problem = str(error).rpartition(": ")
            if (place or key) in keys:
                raise InputError(SOURCE, place or key, problem) from None


def _written(section: str, at: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return keys in the form of a scenario file. A number under a suffixed key becomes a text;
    None is omitted.
    """
    written: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        key, text = _forms(section).get(name, (name, None))
        if text is not None:
            from waterfill.scenario.units import number

            try:
                value = text(number(value, minimum=0))
            except ValueError as error:
                raise InputError(SOURCE, f"{at}{name}", str(error)) from None
        if not isinstance(value, bool) and isinstance(value, Integral):
            value = int(value)  # NumPy's integers: TOML has no word for them
        if key in written:
            raise InputError(SOURCE, f"{at}{key}", f"not allowed together with {name}")
        written[key] = list(value) if isinstance(value, tuple) else value
    return written


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value: Any) -> str:
    """Return a value as one line of TOML, unlike `tomli_w`, which uses several lines."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    import tomli_w

    return tomli_w.dumps({"x": value}).removeprefix("x = ").rstrip("\n")


@cache
def _forms(section: str) -> dict[str, tuple[str, Any]]:
    """Return the file's key and the function that writes the value, for each name with a suffix
    such as rate_bps.
    """
    from waterfill.scenario.document import SECTIONS
    from waterfill.scenario.document import Scenario as Model
    from waterfill.scenario.units import Buffer, Quantity

    def buffer(unit: Any) -> Any:
        return lambda amount: Buffer(amount, unit).format()

    forms: dict[str, tuple[str, Any]] = {}
    for name, field in SECTIONS.get(section, Model).model_fields.items():
        key = field.alias or name
        parts = [field.annotation, *get_args(field.annotation), *field.metadata]
        parts += [m for part in parts for m in getattr(part, "__metadata__", ())]
        if Buffer in parts or any(Buffer in get_args(part) for part in parts):
            units = ("bytes", "packets", *(["bdp"] if key.startswith("buffer") else []))
            forms |= {f"{key}_{unit}": (key, buffer(unit)) for unit in units}
        for part in parts:
            quantity = getattr(part, "quantity", part)
            if isinstance(quantity, Quantity):
                unit = next(u for u in ("bit/s", "s", "B", "packets") if u in quantity.units)
                suffix = {"bit/s": "bps", "s": "s", "B": "bytes", "packets": "packets"}[unit]
                forms[f"{key}_{suffix}"] = (key, quantity.format)
    return forms
