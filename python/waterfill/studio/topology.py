"""The network as an SVG drawing: nodes, links with their loads, and the flows' routes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from waterfill.analysis import topology
from waterfill.analysis.charts import COLOURS
from waterfill.analysis.series import Series
from waterfill.contract.network import Network
from waterfill.network import resolve
from waterfill.scenario.document import Link, Scenario, Traffic
from waterfill.studio.settings import known

WIDTH, HEIGHT = 520, 280
MARGIN = np.array([60.0, 46.0])
_MAX_FLOWS = 12
_KEY_COLUMNS, _KEY_WIDTH = 3, 165
_LETTER = 6.6
_KINDS = {"cbr": "CBR", "poisson": "Poisson traffic", "onoff": "on-off traffic", "web": "web flows"}

Places = Mapping[str, tuple[float, float]]


def ends(scenario: Scenario) -> list[tuple[str, str]]:
    """Return the two nodes of each link of the scenario."""
    return [(link.from_, link.to) for link in scenario.link]


def layout(edges: Sequence[tuple[str, str]]) -> Places:
    """Return a position in pixels for each node, spread over the whole drawing."""
    found = topology.layout(edges)
    points = np.array(list(found.values()))
    low, span = points.min(axis=0), np.ptp(points, axis=0)
    # A chain lies flat, at half the height.
    shares = np.where(span > 1e-9, (points - low) / np.maximum(span, 1e-9), 0.5)
    pixels = MARGIN + shares * (np.array([WIDTH, HEIGHT]) - 2 * MARGIN)
    return {name: (float(x), float(y)) for name, (x, y) in zip(found, pixels, strict=True)}


def _rate_and_delay(link: Link) -> list[str]:
    """Return the label of a link's rate and delay, with another for a different reverse."""
    ways = [link, link.backward] if link.duplex else [link]
    texts = [f"{topology.rate_text(way.rate)} · {1e3 * way.first_delay:.3g} ms" for way in ways]
    if len(set(texts)) == 1:
        return texts[:1]
    return [f"{arrow} {text}" for arrow, text in zip("→←", texts, strict=True)]


def draw(scenario: Scenario, utilization: Mapping[str, float] | None = None) -> str:
    """Return the scenario's network as an SVG element.

    Links show name, rate and delay, and where `utilization` has them (by name, 0 to 1) their load
    as a percentage. Routes of up to 12 groups of flows are drawn beside the links.
    """
    places = layout(ends(scenario))
    network = resolve.to_core(scenario, known())
    parts = _routes(scenario, network, places)
    for link in scenario.link:
        ax, ay = places[link.from_]
        bx, by = places[link.to]
        load = (utilization or {}).get(link.name)
        words = [link.name, *_rate_and_delay(link)]
        if load is not None:
            words.append(f"{100 * load:.0f} %")
        middle, height = (ax + bx) / 2, (ay + by) / 2
        parts.insert(0, f'<path class="wf-link" d="M{ax:.1f} {ay:.1f}L{bx:.1f} {by:.1f}"/>')
        steep = abs(by - ay) > abs(bx - ax)
        one = " · ".join(words)
        lines = [one] if not steep and len(one) * _LETTER < abs(bx - ax) - 40 else words
        for i, text in enumerate(lines):
            y = height - 28 - 14 * (len(lines) - 1 - i)
            parts.append(
                f'<text class="wf-small" text-anchor="middle" x="{middle:.1f}" y="{y:.1f}">'
                f"{escape(text)}</text>"
            )
    for node, (x, y) in places.items():
        parts.append(f'<circle class="wf-node" cx="{x:.1f}" cy="{y:.1f}" r="9"/>')
        parts.append(
            f'<text class="wf-small" text-anchor="middle" x="{x:.1f}" y="{y - 14:.1f}">'
            f"{escape(node)}</text>"
        )
    top = min(y for _, y in places.values()) - float(MARGIN[1]) - 26
    listed = scenario.flow[:_MAX_FLOWS]
    bottom = max(y for _, y in places.values()) + 26 + 8 * len(listed)
    for i, flow in enumerate(listed):
        x, y = 20 + _KEY_WIDTH * (i % _KEY_COLUMNS), bottom + 18 * (i // _KEY_COLUMNS)
        many = f" ×{flow.count}" if flow.count > 1 else ""
        parts.append(f'<path class="wf-route wf-s{i % COLOURS}" d="M{x} {y - 4:.1f}h20"/>')
        name = f"{escape(flow.name)}{many}"
        parts.append(f'<text class="wf-small" x="{x + 26}" y="{y:.1f}">{name}</text>')
    bottom += 18 * (len(listed) // _KEY_COLUMNS)
    for text in map(_unresponsive, scenario.traffic[:_MAX_FLOWS]):
        bottom += 18
        parts.append(f'<text class="wf-small" x="20" y="{bottom:.1f}">{escape(text)}</text>')
    spoken = f"Network of {len(places)} nodes and {len(scenario.link)} links"
    return (
        f'<svg class="wf-chart" viewBox="0 {top:.0f} {WIDTH} {bottom - top + 8:.0f}" role="img" '
        f'aria-label="{spoken}">{"".join(parts)}</svg>'
    )


def _unresponsive(traffic: Traffic) -> str:
    """Return a text with the rate, path and times of a `[[traffic]]` source."""
    words = [] if traffic.rate is None else [topology.rate_text(traffic.rate)]
    words.append(_KINDS[traffic.kind])
    if traffic.count is not None and traffic.count > 1:
        words.append(f"×{traffic.count}")
    if traffic.path:
        words.append(f"on {', '.join(traffic.path)}")
    elif traffic.from_ is not None:
        words.append(f"from {traffic.from_} to {traffic.to}")
    words.append(f"from {traffic.start:g} s")
    if traffic.stop is not None:
        words.append(f"to {traffic.stop:g} s")
    return " ".join(words)


def _routes(scenario: Scenario, network: Network, places: Places) -> list[str]:
    """Return each flow group's route as an SVG line below its links."""
    where = directions(scenario, network)
    parts = []
    for i, spec in enumerate(network.flows[:_MAX_FLOWS]):
        away = 9.0 + 8.0 * i
        points: list[tuple[float, float]] = []
        for index in spec.forward:
            if index not in where:
                continue
            start, end = (np.array(places[node]) for node in where[index])
            shift = _beside(start, end, away)
            points += [tuple(start + shift), tuple(end + shift)]
        if not points:
            continue
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        parts.append(f'<path class="wf-route wf-s{i % COLOURS}" d="{path}"/>')
    return parts


def directions(scenario: Scenario, network: Network) -> dict[int, tuple[str, str]]:
    """Return the start and end nodes of each link direction of the network, by link index."""
    by_name = {link.name: (link.from_, link.to) for link in scenario.link}
    found = {}
    for index, link in enumerate(network.links):
        name, colon, _ = link.name.partition(":")
        if name in by_name:
            found[index] = by_name[name][::-1] if colon else by_name[name]
    return found


def _beside(start: Series, end: Series, away: float) -> Series:
    """Return the shift of a route from its link: perpendicular and downwards, or to the right if
    the link is vertical.
    """
    along = end - start
    length = float(np.hypot(*along)) or 1.0
    normal = np.array([-along[1], along[0]]) / length
    if normal[1] < -1e-9 or (abs(normal[1]) <= 1e-9 and normal[0] < 0):
        normal = -normal
    return np.asarray(normal * away)
