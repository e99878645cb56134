"""The topology of a run as SVG: nodes, links, and the load of each direction.

Positions are those of `waterfill.analysis.topology`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from waterfill.analysis.topology import Points, layout, rate_text

if TYPE_CHECKING:
    from waterfill.contract.summary import LinkSummary
    from waterfill.scenario.document import Scenario

MAX_WIDTH, _MIN_WIDTH = 720.0, 240.0
_MIN_HEIGHT, _MAX_HEIGHT = 110.0, 460.0
_MARGIN = 46.0
_LONGEST = 260.0  # pixels between neighbours
# Larger networks show their busiest links: a layout takes time as the cube of the nodes.
MAX_LINKS = 240
_MAX_NAMED_NODES = 40
_MAX_NAMED_LINKS = 16
# Directions of a link lie side by side.
_APART = 4.5
REVERSE = ":rev"


class Node(NamedTuple):
    """A node in the picture, in pixels. Its label is empty if there are many nodes."""

    name: str
    x: float
    y: float
    label: str


class Arrow(NamedTuple):
    """One direction of a link, in pixels. `level` is the load's step on the scale of loads."""

    name: str
    x1: float
    y1: float
    x2: float
    y2: float
    width: float
    level: int
    text: str
    label: str
    label_x: float
    label_y: float


class Picture(NamedTuple):
    """A topology that is ready to be drawn."""

    width: float
    height: float
    nodes: list[Node]
    arrows: list[Arrow]
    left_out: int


LEVELS = (0.05, 0.3, 0.6, 0.8, 0.95)
"""Utilizations that separate the steps of the scale of loads."""


def picture(scenario: Scenario, links: Sequence[LinkSummary]) -> Picture:
    """Return the picture of a scenario's links, with the loads of a run."""
    load = {link.name: link.utilization for link in links}
    edges = scenario.link
    left_out = 0
    if len(edges) > MAX_LINKS:
        busiest = sorted(edges, key=lambda link: -_load(load, link.name))[:MAX_LINKS]
        left_out = len(edges) - len(busiest)
        kept = {link.name for link in busiest}
        edges = [link for link in edges if link.name in kept]
    places = layout([(link.from_, link.to) for link in edges])
    names = list(places)
    place = {name: i for i, name in enumerate(names)}
    where, width, height = _on_page(np.array(list(places.values())))
    nodes = [
        Node(name, _px(x), _px(y), name if len(names) <= _MAX_NAMED_NODES else "")
        for name, (x, y) in zip(names, where, strict=True)
    ]
    rates = [math.log10(max(1.0, link.rate)) for link in edges]
    low, span = min(rates, default=0.0), max(1.0, max(rates, default=0.0) - min(rates, default=0.0))
    arrows: list[Arrow] = []
    between: dict[frozenset[int], int] = {}
    for link, rate in zip(edges, rates, strict=True):
        a_to_b = place[link.from_], place[link.to]
        turn = between.get(frozenset(a_to_b), 0)
        between[frozenset(a_to_b)] = turn + 1
        named = len(edges) <= _MAX_NAMED_LINKS
        ways = [(link.name, a_to_b, link.rate)]
        if link.duplex:
            ways.append((link.name + REVERSE, a_to_b[::-1], link.backward.rate))
        thick = 2.5 + 3.5 * (rate - low) / span
        for name, (a, b), rate_bps in ways:
            if name in load:
                text = f"{name}: {rate_text(rate_bps)}, {100 * load[name]:.1f} % used"
                label = f"{link.name} {100 * load[name]:.0f} %"
                shown = label if named and name == link.name else ""
                arrows.append(
                    _arrow(name, where[a], where[b], turn, thick, load[name], text, shown)
                )
    return Picture(width, height, nodes, arrows, left_out)


def _load(load: Mapping[str, float], name: str) -> float:
    return max(load.get(name, 0.0), load.get(name + REVERSE, 0.0))


def _px(value: float) -> float:
    return round(float(value), 1)


def _arrow(
    name: str, a: Points, b: Points, turn: int, width: float, load: float, text: str, label: str
) -> Arrow:
    """Return the arrow of a link direction, on the left of the line between its nodes."""
    along = b - a
    length = float(np.hypot(*along)) or 1.0
    unit = along / length
    aside = np.array([unit[1], -unit[0]]) * (_APART + 3 * _APART * turn)
    start, end = a + unit * 9 + aside, b - unit * 11 + aside
    # Upright lines have their label beside, others above.
    upright = abs(unit[0]) < 0.35
    middle = (start + end) / 2 + (np.array([8.0, 4.0]) if upright else np.array([0.0, -9.0]))
    level = sum(load >= edge for edge in LEVELS)
    x1, y1, x2, y2 = map(_px, (*start, *end))
    label_x, label_y = map(_px, middle)
    return Arrow(name, x1, y1, x2, y2, round(width, 1), level, text, label, label_x, label_y)


def _on_page(points: Points) -> tuple[Points, float, float]:
    """Return node positions in pixels, and the width and height of the picture."""
    if not len(points):
        return points, _MIN_WIDTH, _MIN_HEIGHT
    extent = np.maximum(np.ptp(points, axis=0), 1e-9)
    across, down = MAX_WIDTH - 2 * _MARGIN, _MAX_HEIGHT - 2 * _MARGIN
    drawn = (points - points.min(axis=0)) * min(across / extent[0], down / extent[1], _LONGEST)
    used = np.ptp(drawn, axis=0)
    size = np.maximum(used + 2 * _MARGIN, [_MIN_WIDTH, _MIN_HEIGHT])
    return drawn + (size - used) / 2, _px(size[0]), _px(size[1])
