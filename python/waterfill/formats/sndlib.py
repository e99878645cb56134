"""SNDlib networks with their demands, in the native format or in XML (sndlib.zib.de, 1.0).

NODES have places, in degrees or in units of a plane; LINKS a capacity that is installed, and
modules that may be added; DEMANDS a value each, in the unit of the capacities.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from waterfill.errors import shown
from waterfill.formats.graph import Defaults, great_circle_km
from waterfill.formats.layout import Layout, LinkPlan, delay_s, names_of
from waterfill.formats.source import Source

_NODE = re.compile(r"(\S+)\s*\(\s*(\S+)\s+(\S+)\s*\)")
# id ( source target ) installed-capacity cost routing-cost setup-cost ( {module-capacity cost}* )
_LINK = re.compile(r"(\S+)\s*\(\s*(\S+)\s+(\S+)\s*\)\s*(\S+)\s+\S+\s+\S+\s+\S+\s*\(([^)]*)\)")
# id ( source target ) routing-unit value max-path-length
_DEMAND = re.compile(r"\S+\s*\(\s*(\S+)\s+(\S+)\s*\)\s*(\S+)\s+(\S+)\s+\S+")
_SPACE = "{http://sndlib.zib.de/network}"


@dataclass
class _Network:
    """Content of an SNDlib network, common to both formats."""

    nodes: dict[str, tuple[float, float]]
    links: list[tuple[str, str, float, list[float]]]
    """Links as two end nodes, installed capacity, and capacities of the modules."""
    demands: list[tuple[str, str, float]]


def read(
    path: Path, defaults: Defaults, unit_bps: float
) -> tuple[Layout, dict[tuple[str, str], float]]:
    """Read an SNDlib network with capacities and demands in units of `unit_bps`; raise InputError
    if the file is invalid.

    A link has its installed capacity, else the largest module's, else the default.
    """
    source = Source.read(path)
    is_xml = source.text.lstrip().startswith("<")
    network = _xml(source) if is_xml else _native(source)
    names = dict(zip(network.nodes, names_of(network.nodes), strict=True))
    places = network.nodes.values()
    on_earth = all(abs(x) <= 180 and abs(y) <= 90 for x, y in places)
    links, without_rate = [], 0
    wanted = [f"{names[a]}-{names[b]}" for a, b, _, _ in network.links]
    for name, (a, b, installed, modules) in zip(names_of(wanted), network.links, strict=True):
        capacity = installed or max(modules, default=0.0)
        without_rate += capacity == 0
        rate_bps = capacity * unit_bps or defaults.rate_bps
        late_s = defaults.delay_s
        if on_earth:
            late_s = round(delay_s(great_circle_km(network.nodes[a], network.nodes[b])), 7)
        links.append(LinkPlan(name, names[a], names[b], rate_bps, late_s))
    notes = [
        "Rates: the installed capacity, else the largest module's.",
        "Delays: great circle between the ends, in fibre (200,000 km/s)." if on_earth
        else "Delays: the default, as the nodes' places are no degrees.",
    ]  # fmt: skip
    if without_rate:
        notes.append(f"{without_rate} of {len(links)} links have no capacity: the default rate.")
    demands: dict[tuple[str, str], float] = {}
    for a, b, value in network.demands:
        if a != b and value > 0:
            pair = names[a], names[b]
            demands[pair] = demands.get(pair, 0.0) + value * unit_bps
    return Layout(path.stem, links, list(names.values()), notes=notes), demands


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
    return _checked(source, network)


def _native_line(source: Source, number: int, section: str, text: str, network: _Network) -> None:
    patterns = {"NODES": _NODE, "LINKS": _LINK, "DEMANDS": _DEMAND}
    match = patterns[section].match(text)
    if match is None:
        raise source.wrong(number, f"not a line of {section} in SNDlib's format")
    if section == "NODES":
        place = [source.number(number, "a coordinate", t, -1e12) for t in match.groups()[1:3]]
        network.nodes[match[1]] = (place[0], place[1])
        return
    if section == "LINKS":
        installed = source.number(number, "a capacity", match[4])
        words = match[5].split()
        modules = [source.number(number, "a capacity", word) for word in words[::2]]
        network.links.append((match[2], match[3], installed, modules))
        return
    value = source.number(number, "a demand", match[4])
    network.demands.append((match[1], match[2], value))


def _xml(source: Source) -> _Network:
    if "<!ENTITY" in source.text:
        raise source.wrong(None, "XML must not have entities")
    try:
        root = ElementTree.fromstring(source.text)
    except ElementTree.ParseError as error:
        raise source.wrong(error.position[0], "not valid XML") from None
    if root.tag != f"{_SPACE}network":
        raise source.wrong(None, "not an SNDlib network, namespace sndlib.zib.de/network")

    def value(parent: ElementTree.Element, path: str, what: str) -> float:
        found = parent.findtext("/".join(_SPACE + step for step in path.split("/")))
        return source.number(1, what, (found or "0").strip(), -1e12)

    def ends(parent: ElementTree.Element) -> tuple[str, str]:
        found = [parent.findtext(_SPACE + name) or "" for name in ("source", "target")]
        return found[0].strip(), found[1].strip()

    network = _Network({}, [], [])
    for node in root.iter(f"{_SPACE}node"):
        place = [value(node, f"coordinates/{axis}", "a coordinate") for axis in "xy"]
        network.nodes[node.get("id", "")] = (place[0], place[1])
    for link in root.iter(f"{_SPACE}link"):
        installed = value(link, "preInstalledModule/capacity", "a capacity")
        added = link.iter(f"{_SPACE}addModule")
        modules = [value(module, "capacity", "a capacity") for module in added]
        network.links.append((*ends(link), installed, modules))
    for demand in root.iter(f"{_SPACE}demand"):
        network.demands.append((*ends(demand), value(demand, "demandValue", "a demand")))
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
