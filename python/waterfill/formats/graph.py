"""Topologies as graphs: GML and GraphML files, as of the Topology Zoo, and the package topohub.

A Topology Zoo node has Longitude and Latitude, an edge LinkSpeedRaw in bit/s; both may be missing.
Edges of other files may have a length in km and a rate as text with a unit. topohub has the lengths
of the links of 203 Topology Zoo and 26 SNDlib networks, and the demands that SNDlib gives.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import networkx as nx

from waterfill.errors import InputError, one_line, shown
from waterfill.formats.layout import Layout, LinkPlan, delay_s, names_of
from waterfill.formats.source import Source
from waterfill.scenario.units import RATE

_EARTH_KM = 6371.0
# Attributes of an edge, the first that has a value: lengths in km, rates as "1 Gbit/s".
_LENGTHS = ("dist", "length", "distance")
_RATES = ("capacity", "bandwidth", "rate")
_GREAT_CIRCLE = "the great circle between the ends"
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
        graph = nx.parse_gml(source.text, label=None)
    except (nx.NetworkXError, ValueError, RecursionError) as error:
        raise source.wrong(None, f"not valid GML: {error}") from None
    except Exception:  # networkx assumes that nodes and edges are lists of attributes
        message = "not valid GML; write a graph of nodes and edges, each in brackets"
        raise source.wrong(None, message) from None
    return _layout(graph, path.stem, "label", defaults)


def graphml(path: Path, defaults: Defaults) -> Layout:
    """Read the topology of a GraphML file; raise InputError if the file is invalid."""
    source = Source.read(path)
    if "<!ENTITY" in source.text:
        raise source.wrong(None, "GraphML must not have entities")
    try:
        graph = nx.parse_graphml(source.text, force_multigraph=True)
    except ValueError as error:  # of networkx, which quotes the value without its place
        message = "a value is not of its key's type (attr.type)"
        raise source.wrong(None, f"{message}: {error}") from None
    except Exception as error:  # errors of the XML parser and of networkx
        raise source.wrong(None, f"not valid GraphML: {error}") from None
    return _layout(graph, path.stem, "label", defaults)


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
    layout = _layout(graph, name.rpartition("/")[2], "name", defaults)
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


def _layout(graph: Any, name: str, label: str, defaults: Defaults) -> Layout:
    if not graph.nodes:
        raise InputError(name, "", "the graph has no nodes")
    labels = [str(data.get(label) or node) for node, data in graph.nodes(data=True)]
    names = dict(zip(graph.nodes, names_of(labels), strict=True))
    links: list[LinkPlan] = []
    wanted = []
    used: Counter[str] = Counter()
    unused: set[str] = set()
    for a, b, data in graph.edges(data=True):
        if a == b:
            continue
        rate_bps, rate_key = _rate_bps(data)
        length_km, length_key = _length_km(graph.nodes[a], graph.nodes[b], data)
        used.update((rate_key or "no rate", length_key or "no length"))
        unused.update({key for key in data if key not in _NAMES} - {rate_key, length_key})
        wanted.append(f"{names[a]}-{names[b]}")
        late_s = defaults.delay_s if length_km is None else round(delay_s(length_km), 7)
        links.append(LinkPlan("", names[a], names[b], rate_bps or defaults.rate_bps, late_s))
    links = [
        LinkPlan(found, link.start, link.end, link.rate_bps, link.delay_s)
        for found, link in zip(names_of(wanted), links, strict=True)
    ]
    return Layout(name, links, list(names.values()), notes=_notes(len(links), used, unused))


def _notes(links: int, used: Mapping[str, int], unused: Iterable[str]) -> list[str]:
    """Return notes on the sources of rates and delays; `used` counts the links by attribute."""
    rates = [key for key in ("LinkSpeedRaw", *_RATES) if key in used]
    lengths = [f"attribute {key} (km)" for key in _LENGTHS if key in used]
    lengths += [_GREAT_CIRCLE] if _GREAT_CIRCLE in used else []
    notes = []
    if rates:
        notes.append(f"Rates: attribute {' or '.join(rates)}.")
    if lengths:
        notes.append(f"Delays: light in fibre (200,000 km/s) over {', or '.join(lengths)}.")
    if used.get("no rate"):
        notes.append(f"{used['no rate']} of {links} links name no rate: they have the default.")
    if used.get("no length"):
        notes.append(f"{used['no length']} of {links} links have neither a length nor places of "
                     "both ends: they have the default delay.")  # fmt: skip
    if rest := sorted(one_line(str(key)) for key in unused):
        more = f" and {len(rest) - _MAX_NAMED} more" if len(rest) > _MAX_NAMED else ""
        notes.append(f"Not used of the links' attributes: {', '.join(rest[:_MAX_NAMED])}{more}.")
    return notes


def _number(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def _rate_bps(edge: Mapping[str, Any]) -> tuple[float | None, str | None]:
    """Return an edge's rate (bit/s) and the attribute that contains the rate, or None twice if no
    attribute does.
    """
    raw_bps = _number(edge.get("LinkSpeedRaw"))
    if raw_bps is not None:
        return raw_bps, "LinkSpeedRaw"
    for key in _RATES:
        # A number without a unit may be of any unit.
        if isinstance(text := edge.get(key), str):
            with suppress(ValueError):
                return RATE.parse(text), key
    return None, None


def _length_km(
    a: Mapping[str, Any], b: Mapping[str, Any], edge: Mapping[str, Any]
) -> tuple[float | None, str | None]:
    """Return an edge's length (km) and its origin, an attribute or the great circle; None twice if
    unknown.
    """
    for key in _LENGTHS:
        length_km = _number(edge.get(key))
        if length_km is not None:
            return length_km, key
    start, end = _place(a), _place(b)
    if start is None or end is None:
        return None, None
    return great_circle_km(start, end), _GREAT_CIRCLE


def _place(node: Mapping[str, Any]) -> tuple[float, float] | None:
    at = node.get("pos")
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
    square = math.sin((v - u) / 2) ** 2 + math.cos(u) * math.cos(v) * math.sin((y - x) / 2) ** 2
    return 2 * _EARTH_KM * math.asin(min(1.0, math.sqrt(square)))
