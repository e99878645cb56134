"""Topologies as graphs: GML and GraphML files, as of the Topology Zoo, and the package topohub.

A Topology Zoo node has Longitude and Latitude, an edge LinkSpeedRaw in bit/s; both may be missing.
Edges of other files may have a length in km and a rate as text with a unit. topohub has the lengths
of the links of 203 Topology Zoo and 26 SNDlib networks, and the demands that SNDlib gives.

An edge of an undirected graph is a link with the same rate and delay both ways. In a directed graph
(GML: `directed 1`; GraphML: `edgedefault="directed"`) an edge is one direction of a link, unless
hardly any has an opposite: editors such as yEd, with which the Zoo was drawn, call every graph
directed.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Any
from xml.etree import ElementTree

import networkx as nx

from waterfill._core import asin, cos, sin
from waterfill.errors import InputError, one_line, shown
from waterfill.formats.layout import Layout, LinkPlan, delay_s, names_of, oriented, renamed
from waterfill.formats.source import Source
from waterfill.scenario.units import RATE, TIME, number, rate_unit

_EARTH_KM = 6371.0
# Attributes of an edge, the first that has a value: lengths in km, rates as "1 Gbit/s".
_LENGTHS = ("dist", "length", "distance")
_RATES = ("capacity", "bandwidth", "rate")
# As Shadow has them: a time with a unit, and a share.
_DELAYS = ("latency", "delay")
_LOSS = "packet_loss"
# Rates of the hosts at a node, in Shadow's graphs and in those of its older versions.
_HOST_UP = ("host_bandwidth_up", "bandwidth_up")
_HOST_DOWN = ("host_bandwidth_down", "bandwidth_down")
_GREAT_CIRCLE = "the great circle between the ends"
_KM = {"": 1.0, "km": 1.0, "m": 1e-3, "mi": 1.609344}
_LENGTH = re.compile(r"\s*([0-9.eE+]+)\s*([a-zA-Z]*)\s*")
# The Zoo's LinkSpeedUnits.
_PREFIXES = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
# Attributes of a node and of the graph that are used, or only name it.
_NODE_NAMES = frozenset({"id", "label", "name", "Longitude", "Latitude"})
_GRAPH_NAMES = frozenset(
    {"multigraph", "name", "label", "Network", "demands", "node_default", "edge_default"}
)
# Unused attributes that a note names.
_MAX_NAMED = 12
# Names of an edge, which say nothing of its rate or delay.
_NAMES = frozenset({"id", "key", "label", "LinkLabel", "name"})


@dataclass(frozen=True)
class Defaults:
    """Default rate and delay for links that lack their own."""

    rate_bps: float
    delay_s: float


def gml(path: Path, defaults: Defaults) -> Layout:
    """Read the topology of a GML file; raise InputError if the file is invalid."""
    source = Source.read(path)
    try:
        # By label, two nodes of one name would be an error; the Zoo has them.
        graph = nx.parse_gml(_multigraph(source.text), label=None)
    except (nx.NetworkXError, ValueError, RecursionError) as error:
        raise source.wrong(None, f"not valid GML: {error}") from None
    except Exception:  # networkx assumes that nodes and edges are lists of attributes
        message = "not valid GML; write a graph of nodes and edges, each in brackets"
        raise source.wrong(None, message) from None
    return _layout(graph, str(path), "label", defaults)


def _multigraph(text: str) -> str:
    """Return a GML text in which two edges may join the same nodes, as the format allows."""
    if re.search(r"\bmultigraph\b", text):
        return text
    return re.sub(r"\bgraph\s*\[", r"\g<0> multigraph 1 ", text, count=1)


def graphml(path: Path, defaults: Defaults) -> Layout:
    """Read the topology of a GraphML file; raise InputError if the file is invalid."""
    source = Source.read(path)
    if "<!ENTITY" in source.text:
        raise source.wrong(None, "GraphML must not have entities")
    _check_nodes(source)
    try:
        graph = nx.parse_graphml(source.text, force_multigraph=True)
    except ValueError as error:  # of networkx, which quotes the value without its place
        message = "a value is not of its key's type (attr.type)"
        raise source.wrong(None, f"{message}: {error}") from None
    except Exception as error:  # errors of the XML parser and of networkx
        text = str(error)
        if "hyperedge" in text or "edge found in" in text:
            # networkx's words for what GraphML allows and `import` does not.
            what = "hyperedges" if "hyperedge" in text else "edges of both kinds, directed and not,"
            raise source.wrong(None, f"{what} are not supported; write edges of one kind") from None
        raise source.wrong(None, f"not valid GraphML: {text}") from None
    return _layout(graph, str(path), "label", defaults)


def _check_nodes(source: Source) -> None:
    """Raise InputError if a GraphML file defines a node twice, or has an edge of an undefined one,
    which networkx would merge or add.
    """
    try:
        root = ElementTree.fromstring(source.text)
    except ElementTree.ParseError:
        return  # networkx says what is wrong
    known: set[str | None] = set()
    for node in root.iterfind(".//{*}node"):
        if node.get("id") in known:
            raise source.wrong(None, f"node {shown(node.get('id'))} is already defined")
        known.add(node.get("id"))
    for edge in root.iterfind(".//{*}edge"):
        for end in (edge.get("source"), edge.get("target")):
            if end not in known:
                raise source.wrong(None, f"no node {shown(end)}, which an edge names")


def topohub(name: str, defaults: Defaults) -> tuple[Layout, dict[tuple[str, str], float]]:
    """Return a network of the package topohub, such as `topozoo/Abilene`, and its demands.

    Raises InputError if the package or the network is missing.
    """
    if find_spec("topohub") is None:
        raise InputError("import", "topohub", "not installed", "run `pip install topohub`")
    import topohub as package

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # it leaves its file open
            found: Mapping[str, Any] = package.get(name)
    except (KeyError, OSError):
        message = f"unknown network {shown(name)}"
        advice = "write GROUP/NAME such as sndlib/polska"
        raise InputError("import", "topohub", message, advice) from None
    graph = nx.node_link_graph(found, edges="edges")
    layout = _layout(graph, name, "name", defaults)
    named = dict(zip(graph.nodes, layout.hosts, strict=True))
    keys = {str(node): host for node, host in named.items()}
    demands = {
        (keys[str(start)], keys[str(end)]): float(value)
        for start, row in found["graph"].get("demands", {}).items()
        for end, value in row.items()
        if str(start) != str(end) and value > 0
    }
    if not any((end, start) in demands for start, end in demands):
        # Each pair is given once: its demand is that of both directions.
        demands |= {(end, start): value for (start, end), value in demands.items()}
    return layout, demands


def _layout(graph: Any, file: str, label: str, defaults: Defaults) -> Layout:
    if not graph.nodes:
        raise InputError(file, "", "the graph has no nodes")
    labels = [str(data.get(label) or node) for node, data in graph.nodes(data=True)]
    hosts = names_of(labels)
    names = dict(zip(graph.nodes, hosts, strict=True))
    edges: list[LinkPlan] = []
    used: Counter[str] = Counter()
    unused: dict[str, set[str]] = {"links": set()}
    loops = 0
    usual = graph.graph.get("edge_default") or {}
    access = _hosts(graph, names, file)
    places = {node: _place(data, at_pos=label == "name") for node, data in graph.nodes(data=True)}
    for a, b, own in graph.edges(data=True):
        if a == b:
            loops += 1
            continue
        data = {**usual, **own}
        try:
            rate_bps, rate_keys = _rate_bps(data)
            late_s, late_key = _delay_s(places[a], places[b], data, in_s=bool(access))
            loss = _loss(data)
        except ValueError as error:
            raise InputError(file, f"edge {names[a]}-{names[b]}", str(error)) from None
        used.update((rate_keys[0] if rate_keys else "no rate", late_key or "no length"))
        used["loss"] += loss is not None
        known = {*rate_keys, late_key, None if loss is None else _LOSS}
        unused["links"].update({*data} - _NAMES - known)
        edges.append(
            LinkPlan("", names[a], names[b], rate_bps or _unlimited(access) or defaults.rate_bps,
                     defaults.delay_s if late_s is None else late_s, loss or 0.0,
                     loss_reverse=0.0 if graph.is_directed() else loss or 0.0)
        )  # fmt: skip
    plans, directions = oriented(edges, one_way=True) if graph.is_directed() else (edges, [])
    found = names_of(f"{link.start}-{link.end}" for link in plans)
    links = [replace(link, name=text) for text, link in zip(found, plans, strict=True)]
    notes = [*directions, *_notes(len(edges), "edges" if graph.is_directed() else "links", used)]
    notes += renamed(labels, hosts)
    if loops:
        notes.append(f"Left out: {loops} edges from a node to itself.")
    if 0 < (lost := sum(place is None for place in places.values())) < len(places):
        notes.append(f"{lost} of {len(places)} nodes have no place.")
    nodes = {key for _, data in graph.nodes(data=True) for key in data}
    hosts_of = list(names.values())
    if access:
        nodes -= {*_HOST_UP, *_HOST_DOWN}
        used.pop("no rate", None)
        links += access
        hosts_of = [link.start for link in access]
        notes += _access_notes(access, len(names))
    if label == "name":
        nodes -= {"pos"}
    unused |= {"nodes": nodes - _NODE_NAMES, "graph": {*graph.graph} - _GRAPH_NAMES}
    return Layout(PurePath(file).stem, links, hosts_of, notes=[*notes, *_not_used(unused)])


def _hosts(graph: Any, names: Mapping[Any, str], file: str) -> list[LinkPlan]:
    """Return the access links of hosts in a graph of Shadow's, and no links for other graphs.

    A node's bandwidths are those of each host at it, so there is one host for each node.
    """
    found = []
    taken = set(names.values())
    for node, data in graph.nodes(data=True):
        given = [
            next((key for key in keys if key in data), None) for keys in (_HOST_UP, _HOST_DOWN)
        ]
        if given == [None, None]:
            continue
        rates = []
        for key, wanted in zip(given, (_HOST_UP, _HOST_DOWN), strict=True):
            try:
                if key is None:
                    raise ValueError(f"{wanted[0]}: missing next to the other direction's")
                rates.append(_with_unit(str(data[key])))
            except ValueError as error:
                problem = str(error) if key is None else f"{key}: {error}"
                raise InputError(file, f"node {names[node]}", problem) from None
        up_bps, down_bps = rates
        host = f"{names[node]}-host"
        if host in taken:
            raise InputError(file, f"node {names[node]}", f"a node is named {host} already")
        found.append(
            LinkPlan(f"{host}-access", host, names[node], up_bps, 0.0,
                     rate_reverse_bps=None if up_bps == down_bps else down_bps)
        )  # fmt: skip
    return found


def _unlimited(access: Iterable[LinkPlan]) -> float:
    """Return a rate (bit/s) that all hosts together cannot exceed, or 0 without hosts."""
    ways = [link.ways() for link in access]
    return max((sum(way[i].rate_bps for way in ways) for i in (0, 1)), default=0.0)


def _access_notes(access: list[LinkPlan], nodes: int) -> Iterator[str]:
    """Yield notes on the hosts of a graph of Shadow's."""
    yield "Hosts: one at each node, NODE-host, with the node's bandwidths as its link's rates."
    total = RATE.format(_unlimited(access))
    yield f"Edges without a rate limit nothing, as in Shadow: they have {total}, the hosts' sum."
    yield "Routes have the fewest links, where Shadow's have the least latency."
    if alone := nodes - len(access):
        yield f"{alone} of {nodes} nodes have no bandwidths and no host."


def _not_used(unused: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yield notes that name the unused attributes of links, nodes and the graph."""
    for of, keys in unused.items():
        if rest := sorted(one_line(str(key)) for key in keys):
            more = f" and {len(rest) - _MAX_NAMED} more" if len(rest) > _MAX_NAMED else ""
            whose = "graph's" if of == "graph" else f"{of}'"
            yield f"Not used of the {whose} attributes: {', '.join(rest[:_MAX_NAMED])}{more}."


def _notes(links: int, what: str, used: Mapping[str, int]) -> list[str]:
    """Return notes on the sources of rates and delays; `used` counts the links by attribute."""
    rates = [key for key in ("LinkSpeedRaw", "LinkSpeed", *_RATES) if key in used]
    lengths = [f"attribute {key} (km)" for key in _LENGTHS if key in used]
    lengths += [_GREAT_CIRCLE] if _GREAT_CIRCLE in used else []
    notes = []
    if rates:
        notes.append(f"Rates: attribute {' or '.join(rates)}.")
    if delays := [key for key in _DELAYS if key in used]:
        notes.append(f"Delays: attribute {' or '.join(delays)}.")
    if used.get("loss"):
        notes.append(f"Losses of packets: attribute {_LOSS}.")
    if lengths:
        notes.append(f"Delays: light in fibre (200,000 km/s) over {', or '.join(lengths)}.")
    if used.get("no rate"):
        notes.append(f"{used['no rate']} of {links} {what} name no rate: they have the default.")
    if used.get("no length"):
        notes.append(f"{used['no length']} of {links} {what} have neither a length nor places of "
                     "both ends: they have the default delay.")  # fmt: skip
    return notes


def _number(value: object, *, zero: bool = False) -> float | None:
    """Return a value as a finite number above zero (or zero, if allowed), or None."""
    try:
        found = float(str(value))
    except ValueError:
        return None
    return found if math.isfinite(found) and (found > 0 or (zero and found == 0)) else None


def _is_number(value: object) -> bool:
    try:
        float(str(value))
    except ValueError:
        return False
    return True


def _rate_bps(edge: Mapping[str, Any]) -> tuple[float | None, tuple[str, ...]]:
    """Return an edge's rate (bit/s) and the attributes that contain the rate, or None and no
    attributes.

    Raises ValueError for an unknown unit.
    """
    for key in ("LinkSpeedRaw", "LinkSpeed"):
        # The Zoo has no rate or a rate of zero where it is unknown.
        if key in edge and _number(edge[key], zero=True) is None and _is_number(edge[key]):
            raise ValueError(f"{key}: must be a rate of zero or more, got {shown(edge[key])}")
    raw_bps = _number(edge.get("LinkSpeedRaw"))
    if raw_bps is not None:
        # The Zoo's files give the same rate twice.
        return raw_bps, ("LinkSpeedRaw", "LinkSpeed", "LinkSpeedUnits")
    speed, unit = _number(edge.get("LinkSpeed")), str(edge.get("LinkSpeedUnits", "")).strip()
    if speed is not None and unit:
        if unit.upper() not in _PREFIXES:
            raise ValueError(f"LinkSpeedUnits: must be K, M, G or T, got {shown(unit)}")
        return speed * _PREFIXES[unit.upper()], ("LinkSpeed", "LinkSpeedUnits")
    for key in _RATES:
        # A number without a unit may be of any unit.
        text = edge.get(key)
        if not isinstance(text, str) or not re.match(r"\s*[0-9.+-].*[a-zA-Z]", text):
            continue
        try:
            return _with_unit(text), (key,)
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None
    return None, ()


def _with_unit(text: str) -> float:
    """Parse a rate with a unit of scenarios, or of other programs such as Mbps."""
    match = re.fullmatch(r"\s*([+-]?[0-9.]+)\s*([a-zA-Z/]+)\s*", text)
    unit_bps = rate_unit(match[2]) if match is not None else None
    size = None if match is None else _number(match[1].lstrip("+-"), zero=True)
    if match is not None and unit_bps is not None and (size == 0 or (size and "-" in match[1])):
        raise ValueError(f"must be above zero, got {shown(text)}")
    value = _number(match[1]) if match is not None else None
    if unit_bps is None or value is None or RATE.matches(text):
        return RATE.parse(text)
    return value * unit_bps


def _delay_s(
    a: tuple[float, float] | None,
    b: tuple[float, float] | None,
    edge: Mapping[str, Any],
    *,
    in_s: bool,
) -> tuple[float | None, str | None]:
    """Return an edge's delay (s) and its origin, an attribute or the great circle; None twice if
    unknown.

    Raises ValueError for an unknown unit.
    """
    for key in _DELAYS:
        # A number without a unit may be of any unit, except in Shadow's graphs.
        text = edge.get(key)
        if in_s and (seconds := _number(text)) is not None:
            return number(seconds, minimum=0), key
        if isinstance(text, str) and re.match(r"\s*[0-9.+-].*[a-zA-Z]", text):
            try:
                return TIME.parse(text), key
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from None
    length_km, key_of_length = _length_km(a, b, edge)
    return None if length_km is None else round(delay_s(length_km), 7), key_of_length


def _loss(edge: Mapping[str, Any]) -> float | None:
    """Return an edge's fraction of lost packets or None; raise ValueError for an invalid one."""
    if _LOSS not in edge:
        return None
    try:
        return number(float(str(edge[_LOSS])), minimum=0, maximum=1)
    except ValueError:
        raise ValueError(f"{_LOSS}: must be in [0, 1], got {shown(edge[_LOSS])}") from None


def _length_km(
    a: tuple[float, float] | None, b: tuple[float, float] | None, edge: Mapping[str, Any]
) -> tuple[float | None, str | None]:
    """Return an edge's length (km) and its origin, an attribute or the great circle; None twice if
    unknown.

    Raises ValueError for an unknown unit.
    """
    for key in _LENGTHS:
        text = str(edge.get(key, ""))
        if not any(c.isdigit() for c in text):
            continue
        match = _LENGTH.fullmatch(text)
        value = None if match is None else _number(match[1], zero=True)
        if match is None or value is None or match[2] not in _KM:
            raise ValueError(f'{key}: must be a length such as 100 or "100 km", got {shown(text)}')
        return value * _KM[match[2]], key
    if a is None or b is None:
        return None, None
    return great_circle_km(a, b), _GREAT_CIRCLE


def _place(node: Mapping[str, Any], *, at_pos: bool) -> tuple[float, float] | None:
    """Return a node's longitude and latitude; `pos` has them in topohub, elsewhere a drawing's."""
    at = node.get("pos") if at_pos else None
    pair = at if isinstance(at, list) else (node.get("Longitude"), node.get("Latitude"))
    try:
        longitude, latitude = (float(str(value)) for value in pair)
    except ValueError:
        return None
    return (longitude, latitude) if abs(longitude) <= 360 and abs(latitude) <= 90 else None


def great_circle_km(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Return the great-circle distance (km) of two places, (longitude, latitude) in degrees."""
    (x, u), (y, v) = ((math.radians(p[0]), math.radians(p[1])) for p in (a, b))
    # Haversine: exact for near places too.
    north, east = sin((v - u) / 2), sin((y - x) / 2)
    square = north * north + cos(u) * cos(v) * east * east
    return 2 * _EARTH_KM * asin(min(1.0, math.sqrt(square)))
