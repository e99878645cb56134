"""Topologies as graphs: GML and GraphML files (the Topology Zoo's), and the package topohub.

A Topology Zoo node has Longitude and Latitude, an edge LinkSpeedRaw in bit/s; both may be missing.
topohub has the lengths of the links of 203 Topology Zoo and 26 SNDlib networks, and the demands
that SNDlib gives.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import networkx as nx

from waterfill.errors import InputError, shown
from waterfill.formats.layout import Layout, LinkPlan, delay_s, names_of
from waterfill.formats.source import Source

_EARTH_KM = 6371.0


@dataclass(frozen=True)
class Defaults:
    """What a link gets that has no value of its own."""

    rate_bps: float
    delay_s: float


def gml(path: Path, defaults: Defaults) -> Layout:
    """Read a GML file. Raises InputError."""
    source = Source.read(path)
    try:
        # By label, two nodes of one name would be an error; the Zoo has them.
        graph = nx.parse_gml(source.text, label=None)
    except (nx.NetworkXError, ValueError, RecursionError) as error:
        raise source.wrong(None, f"expected GML: {error}") from None
    return _layout(graph, path.stem, "label", defaults)


def graphml(path: Path, defaults: Defaults) -> Layout:
    """Read a GraphML file. Raises InputError."""
    source = Source.read(path)
    if "<!ENTITY" in source.text:
        raise source.wrong(None, "expected GraphML without entities")
    try:
        graph = nx.parse_graphml(source.text, force_multigraph=True)
    except Exception as error:  # of the XML parser, and of whatever it hands on
        raise source.wrong(None, f"expected GraphML: {error}") from None
    return _layout(graph, path.stem, "label", defaults)


def topohub(name: str, defaults: Defaults) -> tuple[Layout, dict[tuple[str, str], float]]:
    """Return a network of the package topohub, as `topozoo/Abilene`, and its demands.

    Raises InputError if the package or the network is missing.
    """
    if find_spec("topohub") is None:
        raise InputError("import", "topohub", "expected the package: pip install topohub")
    import topohub as package

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # it leaves its file open
            found: Mapping[str, Any] = package.get(name)
    except (KeyError, OSError):
        message = f"expected GROUP/NAME such as sndlib/polska, got {shown(name)}"
        raise InputError("import", "topohub", message) from None
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
    labels = [str(data.get(label) or node) for node, data in graph.nodes(data=True)]
    names = dict(zip(graph.nodes, names_of(labels), strict=True))
    links: list[LinkPlan] = []
    without_rate = without_length = 0
    wanted = []
    for a, b, data in graph.edges(data=True):
        if a == b:
            continue
        rate_bps = _rate_bps(data)
        length_km = _length_km(graph.nodes[a], graph.nodes[b], data)
        without_rate += rate_bps is None
        without_length += length_km is None
        wanted.append(f"{names[a]}-{names[b]}")
        late_s = defaults.delay_s if length_km is None else round(delay_s(length_km), 7)
        links.append(LinkPlan("", names[a], names[b], rate_bps or defaults.rate_bps, late_s))
    links = [
        LinkPlan(found, link.start, link.end, link.rate_bps, link.delay_s)
        for found, link in zip(names_of(wanted), links, strict=True)
    ]
    notes = ["Delays: length of the link, or of the great circle between its ends, in fibre "
             "(200,000 km/s)."]  # fmt: skip
    if without_rate:
        notes.append(f"{without_rate} of {len(links)} links name no rate: they have the default.")
    if without_length:
        notes.append(f"{without_length} of {len(links)} links have ends without a place: "
                     "they have the default delay.")  # fmt: skip
    return Layout(name, links, list(names.values()), notes=notes)


def _number(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def _rate_bps(edge: Mapping[str, Any]) -> float | None:
    return _number(edge.get("LinkSpeedRaw"))


def _length_km(a: Mapping[str, Any], b: Mapping[str, Any], edge: Mapping[str, Any]) -> float | None:
    length_km = _number(edge.get("dist"))
    if length_km is not None:
        return length_km
    places = [_place(node) for node in (a, b)]
    return None if None in places else great_circle_km(*places)  # type: ignore[arg-type]


def _place(node: Mapping[str, Any]) -> tuple[float, float] | None:
    at = node.get("pos")
    pair = at if isinstance(at, list) else (node.get("Longitude"), node.get("Latitude"))
    try:
        longitude, latitude = (float(str(value)) for value in pair)
    except ValueError:
        return None
    return (longitude, latitude) if abs(longitude) <= 360 and abs(latitude) <= 90 else None


def great_circle_km(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Return the distance of two places, (longitude, latitude) in degrees, on a sphere."""
    (x, u), (y, v) = ((math.radians(p[0]), math.radians(p[1])) for p in (a, b))
    # Haversine: exact for near places too.
    square = math.sin((v - u) / 2) ** 2 + math.cos(u) * math.cos(v) * math.sin((y - x) / 2) ** 2
    return 2 * _EARTH_KM * math.asin(min(1.0, math.sqrt(square)))
