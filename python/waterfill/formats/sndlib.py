"""SNDlib networks with their demands, in the native format or in XML (sndlib.zib.de, 1.0).

NODES have places, in degrees or in units of a plane; LINKS a capacity that is installed, and
modules that may be added; DEMANDS a value each, in multiples of a routing unit, which is in the
unit of the capacities. META may name that unit, as dynamic traffic matrices do.

Whether links are directed is not in the file but in SNDlib's separate model file. Networks with
directed links list both directions, so two opposite links are the two directions of one where at
least half have an opposite. A link without one has its capacity in both directions (SNDlib's
bidirected model). Demands go from source to target.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.etree import ElementTree

from waterfill.errors import InputError, shown
from waterfill.formats.graph import Defaults, great_circle_km
from waterfill.formats.layout import Layout, LinkPlan, delay_s, names_of, oriented, renamed
from waterfill.formats.source import Source
from waterfill.scenario.units import RATE, rate_unit

_NODE = re.compile(r"(\S+)\s*\(\s*(\S+)\s+(\S+)\s*\)")
# id ( source target ) installed-capacity cost routing-cost setup-cost ( {module-capacity cost}* )
_LINK = re.compile(r"(\S+)\s*\(\s*(\S+)\s+(\S+)\s*\)\s*(\S+)\s+\S+\s+\S+\s+\S+\s*\(([^)]*)\)")
# id ( source target ) routing-unit value max-path-length
_DEMAND = re.compile(r"\S+\s*\(\s*(\S+)\s+(\S+)\s*\)\s*(\S+)\s+(\S+)\s+(\S+)")
_META = re.compile(r"(\w+)\s*=\s*(.*)")
_UNIT_BPS = 1e6
_SPACE = "{http://sndlib.zib.de/network}"


@dataclass
class _Network:
    """Content of an SNDlib network, common to both formats."""

    nodes: dict[str, tuple[float, float]]
    links: list[tuple[str, str, float, list[float]]]
    """Links as two end nodes, installed capacity, and capacities of the modules."""
    demands: list[tuple[str, str, float]]
    in_degrees: bool | None = None
    """True if places are in degrees; None: not stated."""
    unit: str | None = None
    """The unit that META names."""
    unused: set[str] = field(default_factory=set)
    """Parts of the file that the import ignores; a note lists them."""


def read(
    path: Path, defaults: Defaults, unit_bps: float | None
) -> tuple[Layout, dict[tuple[str, str], float]]:
    """Read an SNDlib network with capacities and demands in units of `unit_bps`; raise InputError
    if the file is invalid.

    Without `unit_bps` the unit is META's, else 1 Mbit/s. A link has its installed capacity, else
    the largest module's, else the default.
    """
    source = Source.read(path)
    is_xml = source.text.lstrip().startswith("<")
    network = _xml(source) if is_xml else _native(source)
    unit_bps = _unit_bps(source, network.unit, unit_bps)
    hosts = names_of(network.nodes)
    names = dict(zip(network.nodes, hosts, strict=True))
    on_earth = network.in_degrees
    if on_earth is None:
        on_earth = all(abs(x) <= 180 and abs(y) <= 90 for x, y in network.nodes.values())
    edges, without_rate, loops = [], 0, 0
    for a, b, installed, modules in network.links:
        if a == b:
            loops += 1
            continue
        capacity = installed or max(modules, default=0.0)
        without_rate += capacity == 0
        rate_bps = capacity * unit_bps or defaults.rate_bps
        late_s = defaults.delay_s
        if on_earth:
            late_s = round(delay_s(great_circle_km(network.nodes[a], network.nodes[b])), 7)
        edges.append(LinkPlan("", names[a], names[b], rate_bps, late_s))
    plans, directions = oriented(edges)
    found = names_of(f"{link.start}-{link.end}" for link in plans)
    links = [replace(link, name=text) for text, link in zip(found, plans, strict=True)]
    notes = [
        f"Capacities and demands are in units of {RATE.format(unit_bps)}"
        + (f" (META: {network.unit})." if network.unit else "."),
        "Rates: the installed capacity, else the largest module's.",
        "Delays: great circle between the ends, in fibre (200,000 km/s)." if on_earth
        else "Delays: the default, as the nodes' places are no degrees.",
    ]  # fmt: skip
    notes += directions or ["The capacity holds in each direction (SNDlib's bidirected model)."]
    if without_rate:
        notes.append(f"{without_rate} of {len(edges)} links have no capacity: the default rate.")
    notes += renamed([*network.nodes], hosts)
    if loops:
        notes.append(f"Left out: {loops} links from a node to itself.")
    if network.unused:
        notes.append(f"Not used: {', '.join(sorted(network.unused))}.")
    demands: dict[tuple[str, str], float] = {}
    if idle := sum(a == b or value == 0 for a, b, value in network.demands):
        notes.append(f"Left out: {idle} demands of zero, or from a node to itself.")
    listed = {(a, b) for a, b, _ in network.demands}
    if listed and all((b, a) not in listed for a, b in listed):
        notes.append("No pair has demands both ways: they go from source to target only.")
    for a, b, value in network.demands:
        if a != b and value > 0:
            pair = names[a], names[b]
            demands[pair] = demands.get(pair, 0.0) + value * unit_bps
    return Layout(path.stem, links, list(names.values()), notes=notes), demands


def _unit_bps(source: Source, named: str | None, given_bps: float | None) -> float:
    """Return the unit (bit/s) of the file. Raises InputError where both META and --unit name it."""
    if named is None:
        return given_bps or _UNIT_BPS
    found_bps = rate_unit(named)
    if given_bps is not None and found_bps is not None:
        raise InputError("--unit", "", f"the file has unit = {named} in META, "
                         f"got {shown(RATE.format(given_bps))}", "remove it")  # fmt: skip
    if given_bps is None and found_bps is None:
        why = f"META: unit must be one of rates such as MBITPERSEC, got {shown(named)}"
        raise InputError(str(source.path), "", why, "add --unit")
    return given_bps or found_bps or _UNIT_BPS


def _native(source: Source) -> _Network:
    if not source.text.lstrip("# \t\r\n").startswith("?SNDlib native format; type: network"):
        raise source.wrong(1, "must be `?SNDlib native format; type: network; version: 1.0`")
    network, section = _Network({}, [], []), ""
    for number, line in enumerate(source.text.splitlines(), 1):
        text = line.partition("#")[0].strip()
        if not text or text.startswith("?"):
            continue
        opened = re.fullmatch(r"([A-Z_]+)\s*\(\s*\)?", text)
        if opened:
            section = opened[1]
        elif text != ")" and section in ("NODES", "LINKS", "DEMANDS"):
            _native_line(source, number, section, text, network)
        elif text != ")" and section == "META":
            match = _META.fullmatch(text)
            if match is None:
                raise source.wrong(number, f"must be KEY = VALUE, got {shown(text)}")
            _meta(network, match[1], match[2])
        elif text != ")":
            network.unused.add(section or shown(text))
    return _checked(source, network)


def _native_line(source: Source, number: int, section: str, text: str, network: _Network) -> None:
    patterns = {"NODES": _NODE, "LINKS": _LINK, "DEMANDS": _DEMAND}
    match = patterns[section].fullmatch(text)
    if match is None:
        raise source.wrong(number, f"not a line of {section} in SNDlib's format")
    if section == "NODES":
        place = [source.number(number, "a coordinate", t, -1e12) for t in match.groups()[1:3]]
        _add_node(source, number, network, match[1], place)
        return
    if section == "LINKS":
        installed = source.number(number, "a capacity", match[4])
        words = match[5].split()
        if len(words) % 2:
            got = shown(match[5].strip())
            raise source.wrong(number, f"modules must be pairs of capacity and cost, got {got}")
        modules = [source.number(number, "a capacity", word) for word in words[::2]]
        network.links.append((match[2], match[3], installed, modules))
        network.unused.add("costs of links")
        return
    unit, value = (source.number(number, "a demand", word) for word in match.groups()[2:4])
    network.demands.append((match[1], match[2], unit * value))
    if match[5] != "UNLIMITED":
        network.unused.add("longest paths of demands")


def _add_node(
    source: Source, line: int | None, network: _Network, name: str, place: list[float]
) -> None:
    if name in network.nodes:
        raise source.wrong(line, f"node {shown(name)} is already defined")
    network.nodes[name] = (place[0], place[1])


def _meta(network: _Network, key: str, value: str) -> None:
    if key == "unit":
        network.unit = value.strip()
    else:
        network.unused.add(f"{key} of META")


def _xml(source: Source) -> _Network:
    if "<!ENTITY" in source.text:
        raise source.wrong(None, "XML must not have entities")
    try:
        root = ElementTree.fromstring(source.text)
    except ElementTree.ParseError as error:
        raise source.wrong(error.position[0], "not valid XML") from None
    if root.tag != f"{_SPACE}network":
        raise source.wrong(None, "not an SNDlib network, namespace sndlib.zib.de/network")

    def value(parent: ElementTree.Element, path: str, what: str, minimum: float = 0.0) -> float:
        found = parent.findtext("/".join(_SPACE + step for step in path.split("/")))
        return source.number(None, what, (found or "0").strip(), minimum)

    def ends(parent: ElementTree.Element) -> tuple[str, str]:
        found = [parent.findtext(_SPACE + name) or "" for name in ("source", "target")]
        return found[0].strip(), found[1].strip()

    network = _Network({}, [], [])
    for nodes in root.iter(f"{_SPACE}nodes"):
        if (kind := nodes.get("coordinatesType")) is not None:
            network.in_degrees = kind == "geographical"
    for node in root.iter(f"{_SPACE}node"):
        place = [value(node, f"coordinates/{axis}", "a coordinate", -1e12) for axis in "xy"]
        _add_node(source, None, network, node.get("id", ""), place)
    for link in root.iter(f"{_SPACE}link"):
        installed = value(link, "preInstalledModule/capacity", "a capacity")
        added = link.iter(f"{_SPACE}addModule")
        modules = [value(module, "capacity", "a capacity") for module in added]
        network.links.append((*ends(link), installed, modules))
        network.unused.add("costs of links")
    for demand in root.iter(f"{_SPACE}demand"):
        units = 1.0
        if demand.find(f"{_SPACE}routingUnit") is not None:
            units = value(demand, "routingUnit", "a routing unit")
        volume = units * value(demand, "demandValue", "a demand")
        network.demands.append((*ends(demand), volume))
        for tag, what in (("maxPathLength", "longest paths"), ("admissiblePaths", "paths")):
            if demand.find(_SPACE + tag) is not None:
                network.unused.add(f"{what} of demands")
    for meta in root.iterfind(f"{_SPACE}meta/*"):
        _meta(network, meta.tag.removeprefix(_SPACE), meta.text or "")
    return _checked(source, network)


def _checked(source: Source, network: _Network) -> _Network:
    if not network.nodes or not network.links:
        raise source.wrong(None, "no nodes or no links")
    ends = [end for a, b, *_ in network.links for end in (a, b)]
    ends += [end for a, b, _ in network.demands for end in (a, b)]
    for end in ends:
        if end not in network.nodes:
            raise source.wrong(None, f"no node {shown(end)}, which a link or demand names")
    return network
