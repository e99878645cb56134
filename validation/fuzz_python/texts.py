"""Fuzz targets that read text: scenarios, assignments, imports, tables, claims and studio links."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import tomli_w

from validation.fuzz_python import mutate
from validation.fuzz_python.choices import Choices
from validation.fuzz_python.outcome import Finding, read
from waterfill.errors import InputError, one_line
from waterfill.formats import build, table, writing
from waterfill.network import protocols, resolve
from waterfill.papers.claims import loading as claims_loading
from waterfill.runs import backends, effective
from waterfill.scenario import distributions, loading, traces, units
from waterfill.scenario.document import Scenario
from waterfill.studio import shipped, topology
from waterfill.studio.session import Session
from waterfill.studio.settings import from_query, to_query

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
SEEDS = Path(__file__).parent / "seeds"
# Left out until such input is refused with an estimate: it only takes long.
_MAX_FLOWS = 20_000
_MAX_CHANGES = 20_000
_MAX_IMPORTED = 4000


# --- scenarios ----------------------------------------------------------------------------------


@cache
def documents() -> list[dict[str, Any]]:
    """Return valid scenarios as dictionaries: one with every key, the examples, the templates and
    the seeds.
    """
    paths = [
        ROOT / "docs/scenario.toml",
        *sorted((ROOT / "examples").glob("*.toml")),
        *sorted((ROOT / "python/waterfill/scenario/templates").glob("*.toml")),
        *sorted(SEEDS.glob("scenario-*.toml")),
    ]
    return [tomllib.loads(path.read_text(encoding="utf-8")) for path in paths]


def changed_scenario(choices: Choices, most: int = 4, without: Sequence[str] = ()) -> str:
    """Return the text of a valid scenario with up to `most` changes."""
    given = {k: v for k, v in choices.pick(documents()).items() if k not in without}
    try:
        text = tomli_w.dumps(mutate.document(given, choices, most))
    except (TypeError, ValueError, RecursionError, AttributeError):
        # An integer or a text that TOML cannot have: change the text instead.
        text = tomli_w.dumps(given)
    return mutate.lines(text, choices) if choices.chance(8) else text


def too_large(scenario: Scenario) -> bool:
    """Return True if resolving a scenario takes long only because of its size, which
    is no defect.
    """
    flows = sum(flow.count for flow in scenario.flow) + sum(t.count or 1 for t in scenario.traffic)
    changes = 0.0
    for link in scenario.link:
        for trace in (link.rate_trace, link.rate_trace_reverse):
            if trace is not None and trace.repeat:
                changes += len(trace.points) * scenario.duration / trace.length_s
    return flows > _MAX_FLOWS or changes > _MAX_CHANGES


def check(scenario: Scenario, choices: Choices) -> None:
    """Check, resolve and rewrite a scenario."""
    if too_large(scenario):
        return
    on = choices.pick(("sim", "fluid"))
    text = ""
    if choices.chance(4):
        text = scenario.to_toml()
        again = read(lambda: loading.from_toml(text, scenario.source))
        if again is None or again.to_toml() != text:
            raise Finding("scenario written is not the one read", text[:200])
    read(lambda: backends.prepare(scenario, on), text)
    if choices.chance(8):
        read(lambda: effective.document(scenario, on), text)


def scenario(data: bytes, folder: Path) -> None:
    """Fuzz target: read a scenario from raw bytes or from a changed document."""
    choices = Choices(data)
    source = str(ROOT / "examples/fuzzed.toml")
    if choices.chance(8):
        path = folder / "s.toml"
        path.write_bytes(choices.rest())
        found = read(lambda: loading.load(path), data.decode("latin-1"))
    else:
        text = changed_scenario(choices)
        found = read(lambda: loading.from_toml(text, source), text)
    if found is not None:
        check(found, choices)


@cache
def _every_key() -> str:
    return (ROOT / "docs/scenario.toml").read_text(encoding="utf-8")


@cache
def _paths() -> list[str]:
    """Return the key paths of the scenario that has every key, as `--set` names them."""
    found = []
    for key, value in documents()[0].items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            found += [f"{key}.{one['name']}.{name}" for one in value for name in one]
        elif isinstance(value, dict):
            for law, mine in value.items():
                deeper = isinstance(mine, dict)
                found += [f"{key}.{law}.{name}" for name in mine] if deeper else [f"{key}.{law}"]
        else:
            found.append(key)
    for name, info in protocols.load().items():
        found += [f"params.{name}.{param.name}" for param in info.params]
    return found


def assignments(data: bytes, folder: Path) -> None:
    """Fuzz target: apply assignments to a scenario as `--set` does."""
    choices = Choices(data)
    sets = []
    for _ in range(1 + choices.below(3)):
        key = choices.pick(_paths())
        kind = choices.below(8)
        if kind == 0:
            key += "." + choices.pick(mutate.KEYS)
        elif kind == 1:
            key = key.rpartition(".")[0] + "." + choices.pick(mutate.KEYS)
        value = mutate.value(choices)
        text = value if isinstance(value, str) else repr(value)
        sets.append(f"{key}={text}" if kind != 2 else choices.rest().decode("utf-8", "replace"))
    found = read(lambda: loading.from_dict(documents()[0], "s.toml", sets), str(sets))
    if found is not None:
        check(found, choices)


_KINDS: tuple[units.Quantity, ...] = (
    units.RATE, units.TIME, units.SPAN, units.VOLUME, units.FREQUENCY, units.PACKETS,
)  # fmt: skip


def numbers(data: bytes, folder: Path) -> None:
    """Fuzz target: read a number with a unit and write it again."""
    choices = Choices(data)
    kind = choices.pick(_KINDS)
    pieces = ("", " ", "1", "0", "9" * 15, "9" * 16, ".", "e", "-", "+", "308", *kind.units)
    if choices.chance(3):
        text = choices.rest().decode("utf-8", "replace")
    else:
        text = "".join(choices.pick(pieces) for _ in range(1 + choices.below(6)))
    for parse in (kind.parse, units.Buffer.parse, cellular_rate):
        try:
            value: Any = parse(text)
        except ValueError as error:
            if not str(error).startswith("must") or len(str(error)) > 400:
                raise Finding("message of a quantity", str(error)) from None
            continue
        if isinstance(value, float):
            if not 0 <= value < math.inf:
                raise Finding("quantity out of range", f"{text!r} is {value!r}")
            written = kind.format(value)
            if parse == kind.parse and kind.or_zero()._any(written) != value:
                raise Finding("quantity changes when written", f"{text!r}: {written}")
        elif units.Buffer.parse(value.format()) != value:
            raise Finding("buffer changes when written", f"{text!r}: {value.format()}")


def cellular_rate(text: str) -> object:
    """Read a text as a distribution of sizes, possibly a constant, and return its mean."""
    return distributions.parse(text, units.VOLUME).mean


# --- importers ----------------------------------------------------------------------------------

_FILES = (
    ("gml", "net.gml"), ("graphml", "net.graphml"), ("sndlib", "sndlib.txt"),
    ("sndlib", "sndlib.xml"), ("hpcc", "hpcc.txt"), ("hpcc", "alibaba.txt"),
    ("htsim", "htsim.cm"), ("trace", "trace.txt"), ("trace", "rates.csv"),
)  # fmt: skip


@cache
def _seed(name: str) -> bytes:
    return (SEEDS / name).read_bytes()


def changed_file(name: str, choices: Choices, folder: Path) -> Path:
    """Write a seed file with changed words, lines or bytes, and return its path."""
    data = _seed(name)
    if choices.chance(4):
        data = mutate.raw(data, choices)
    else:
        data = mutate.lines(data.decode(), choices).encode("utf-8", "surrogatepass")
    path = folder / name
    path.write_bytes(data)
    return path


def imports(data: bytes, folder: Path) -> None:
    """Fuzz target: import a changed file and check that the output is a valid scenario."""
    choices = Choices(data)
    name, seed = choices.pick(_FILES)
    options = build.Options(
        pattern=choices.pick((None, "gravity", "permutation", "all-to-all", "incast", "none")),
        load=choices.pick((None, 0.5)),
        pairs=choices.pick((None, 1, 7)),
        sizes=choices.pick((None, None, None, "web-search")),
    )
    path = changed_file(seed, choices, folder)
    if _asks_for_many(path):
        return
    if name == "hpcc" and choices.chance(3):
        flows = changed_file("hpcc-flows.txt", choices, folder)
        options = build.Options(flows=flows)
        if _asks_for_many(flows):
            return
    quoted = path.read_text(encoding="utf-8", errors="replace")
    layout = read(lambda: build.imported(name, str(path), options), quoted)
    if layout is None or len(layout.links) > _MAX_IMPORTED:
        return
    text = read(lambda: writing.text(layout, "maxnet", 1), quoted)
    if text is None or options.pattern == "none":
        return
    # A rate of 1e30 in a file is a rate; the scenario's own limits may refuse it.
    found = read(lambda: loading.from_toml(text, str(folder / "written.toml")), text)
    if found is not None and not too_large(found):
        read(lambda: resolve.to_core(found, protocols.load()), text)


def _asks_for_many(path: Path) -> bool:
    """Return True if a file's counts ask for networks so large that they would only cost time."""
    words = path.read_bytes()[:4000].split()
    return any(len(word) > 3 and word.isdigit() and 400 < int(word[:9]) < 10**7 for word in words)


@cache
def _hosts() -> Any:
    return build.generated("fat-tree", [4], build.Options(pattern="none"))


def tables(data: bytes, folder: Path) -> None:
    """Fuzz target: read a changed table of flows, rates or sizes."""
    choices = Choices(data)
    name = choices.pick(("flows.csv", "rates.csv", "trace.txt", "sizes.csv"))
    path = changed_file(name, choices, folder)
    quoted = path.read_text(encoding="utf-8", errors="replace")
    if name == "flows.csv":
        read(lambda: table.read(path, _hosts()), quoted)
    elif name == "sizes.csv":
        sizes = {"distribution": "empirical", "file": name}
        _part(lambda: distributions.parse(sizes, units.VOLUME, folder), quoted)
    else:
        given: dict[str, Any] = {"file": name, "repeat": choices.chance(2)}
        if choices.chance(4):
            given["bin"] = choices.pick(("1 ms", "1 ps", "1e6 s"))
        found = _part(lambda: traces.parse(given, folder), quoted)
        if found is not None and found.length_s > 1e-3:
            list(zip(range(100), found.until(1.0), strict=False))


def _part(make: Any, quoted: str) -> Any:
    """Read one key of a scenario, turning a PartError into an InputError."""

    def one() -> Any:
        try:
            return make()
        except distributions.PartError as error:
            raise InputError("s.toml", error.part, str(error)) from None

    return read(one, quoted)


# --- claims -------------------------------------------------------------------------------------


@cache
def _claims() -> list[dict[str, Any]]:
    return [tomllib.loads(path.read_text()) for path in sorted(SEEDS.glob("claims*.toml"))]


def claims(data: bytes, folder: Path) -> None:
    """Fuzz target: read a changed claims.toml and the scenarios of its runs."""
    choices = Choices(data)
    mine = folder / "paper" / "experiment"
    mine.mkdir(parents=True, exist_ok=True)
    path = mine / "claims.toml"
    if choices.chance(8):
        path.write_bytes(choices.rest())
    else:
        given = choices.pick(_claims())
        try:
            text = tomli_w.dumps(mutate.document(given, choices))
        except (TypeError, ValueError, RecursionError, AttributeError):
            text = tomli_w.dumps(given)
        path.write_text(mutate.lines(text, choices) if choices.chance(6) else text,
                        encoding="utf-8", errors="replace")  # fmt: skip
    quoted = path.read_text(encoding="utf-8", errors="replace")
    found = read(lambda: claims_loading.load(path), quoted)
    if found is not None and choices.chance(4) and len(found.runs) < 100:
        (mine / "scenario.toml").write_text(_every_key())
        read(lambda: found.samples(choices.chance(2)), quoted)


# --- the studio ---------------------------------------------------------------------------------


def studio(data: bytes, folder: Path) -> None:
    """Fuzz target: open the studio with a link, and draw the networks that the link describes."""
    choices = Choices(data)
    if choices.chance(6):
        query: str = choices.rest().decode("latin-1")
    else:
        query = _query(choices)
    parsed = read(lambda: from_query(query), query)
    session, wrong = _begin(query)
    if bool(wrong) != (parsed is None) or one_line(wrong) != wrong:
        raise Finding("session and link disagree", f"{query[:200]}: {wrong}")
    if parsed is None:
        return
    settings, pinned = parsed
    if from_query(to_query(settings, pinned)) != (settings, pinned):
        raise Finding("link changes when written", query[:300])
    for one in filter(None, (settings, pinned)):
        found = read(one.load, query)
        if found is None or too_large(found):
            continue
        read(lambda found=found: resolve.to_core(found, protocols.load()), query)  # type: ignore[misc]
        if choices.chance(4):
            read(lambda found=found: topology.draw(found), query)  # type: ignore[misc]
    read(session.controls, query)
    for listed in session.selects():
        if listed.start not in listed.words:
            raise Finding("list without its value", f"{listed.key}: {listed.start[:80]}")
    read(session.fields, query)
    read(session.query, query)


def _begin(query: str) -> tuple[Session, str]:
    from urllib.parse import parse_qs

    begun = read(lambda: Session.begin(parse_qs(query)), query)
    assert begun is not None  # it words what is wrong itself
    return begun


def _query(choices: Choices, depth: int = 0) -> str:
    """Return a random query with the studio's keys and some odd values."""
    names = (*shipped.names(), "drawn", "drawn", "drawn", "nowhere")
    pairs: list[tuple[str, str]] = [("scenario", choices.pick(names))]
    for _ in range(choices.below(6)):
        kind = choices.below(8)
        odd = choices.pick(mutate.TEXTS)
        if kind == 0:
            pairs.append(("set", f"{choices.pick(_paths())}={odd}"))
        elif kind == 1:
            node = "abc"
            row = [choices.pick(node), choices.pick(node), "10 Mbit/s", "5 ms"]
            row[choices.below(4)] = odd if choices.chance(2) else row[0]
            pairs.append(("link", ",".join(row)))
        elif kind == 2:
            row = [choices.pick("abc"), choices.pick("abc"), "2", "0 s"]
            row[choices.below(4)] = odd if choices.chance(2) else row[0]
            pairs.append(("flow", ",".join(row)))
        elif kind == 3:
            pairs.append(("protocol", choices.pick((*protocols.load(), odd))))
        elif kind == 4:
            pairs.append(("on", choices.pick(("auto", "sim", "fluid", odd))))
        elif kind == 5 and depth < 3:
            pairs.append(("pin", _query(choices, depth + 1)))
        elif kind == 6:
            pairs.append(("show", choices.pick(("charts", "tours", "animation", odd))))
        else:
            pairs.append((choices.pick(("step", "tour", "show", odd)), odd))
    # Bytes that are no text come from other software than browsers.
    return urlencode(pairs, errors="replace")
