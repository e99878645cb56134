"""Links, flows and their routes, before they become a scenario."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import networkx as nx

from waterfill.errors import shown

Router = Callable[[str, str, random.Random], tuple[str, ...] | None]
"""Function from start, end and random generator to a route. The generator breaks ties."""
# Light in fibre: two thirds of its speed in vacuum.
SPEED_KM_PER_S = 200_000.0
# Names that a note lists.
_MAX_RENAMED = 6


@dataclass(frozen=True)
class LinkPlan:
    """A link. The reverse direction of a duplex link has the same values unless it has its own."""

    name: str
    start: str
    end: str
    rate_bps: float
    delay_s: float
    loss: float = 0.0
    duplex: bool = True
    rate_reverse_bps: float | None = None
    delay_reverse_s: float | None = None
    loss_reverse: float = 0.0
    rate_trace: Mapping[str, object] | None = None
    """The forward direction's rates over time: keys of the scenario's `rate_trace`."""

    def ways(self) -> list[Way]:
        """Return the directions of the link."""
        there = Way(self.start, self.end, self.rate_bps, self.delay_s)
        if not self.duplex:
            return [there]
        rate_bps = self.rate_bps if self.rate_reverse_bps is None else self.rate_reverse_bps
        delay_s = self.delay_s if self.delay_reverse_s is None else self.delay_reverse_s
        return [there, Way(self.end, self.start, rate_bps, delay_s)]


class Way(NamedTuple):
    """One direction of a link."""

    start: str
    end: str
    rate_bps: float
    delay_s: float


@dataclass(frozen=True)
class FlowPlan:
    """A flow of a layout, or `count` equal flows."""

    name: str
    start: str
    end: str
    path: tuple[str, ...]
    return_path: tuple[str, ...] | None = None
    """The links of the acknowledgements; None: those of the path."""
    count: int = 1
    start_s: float = 0.0
    size_bytes: int | None = None
    demand_bps: float | None = None
    stop_s: float | None = None
    after: tuple[str, ...] = ()
    after_count: int | None = None
    """Names of the flows that have completed before this one starts."""


@dataclass(frozen=True)
class SourcePlan:
    """A source of flows of random sizes that arrive between all hosts in a pattern."""

    pattern: str
    load: float
    sizes: str | Mapping[str, object]
    hosts: tuple[str, ...]
    fan_in: int | None = None


@dataclass
class Layout:
    """A network with its traffic, and notes on both for readers of the scenario."""

    name: str
    links: list[LinkPlan]
    hosts: list[str]
    """Nodes at which traffic may start and end, in order."""
    flows: list[FlowPlan] = field(default_factory=list)
    sources: list[SourcePlan] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Comment lines on the sources of values and on assumptions."""
    duration_s: float = 30.0
    packet_bytes: int = 1500
    rto_min_s: float | None = None
    """Minimum retransmission time-out; None: the scenario's default."""
    profile: str | None = None
    """The scenario's `profile`; None: its default."""
    link_defaults: Mapping[str, str] = field(default_factory=dict)
    """Values of keys of all links, as written."""

    own_route: Router | None = None
    """Route function of a rule's network, for rules whose networks take long to search."""

    @cached_property
    def route(self) -> Router:
        """Function that returns the links of a route between two nodes, or None if the nodes are
        not connected.
        """
        return self.own_route or self._routes.between

    @cached_property
    def _routes(self) -> Routes:
        return Routes(self.links)

    @cached_property
    def parts(self) -> list[list[str]]:
        """Groups of two or more hosts with routes to each other in both directions, in order."""
        if self.own_route is not None:
            return [self.hosts] if len(self.hosts) > 1 else []
        part_of = self._routes.parts()
        found: dict[int, list[str]] = {}
        for host in self.hosts:
            if host in part_of:
                found.setdefault(part_of[host], []).append(host)
        return [part for part in found.values() if len(part) > 1]

    @cached_property
    def part_of(self) -> dict[str, int]:
        """Index of each host's part in `parts`. Hosts without routes are missing."""
        return {host: i for i, part in enumerate(self.parts) for host in part}

    @cached_property
    def simplex(self) -> frozenset[str]:
        """Names of the links that have only one direction."""
        return frozenset(link.name for link in self.links if not link.duplex)


def paired(links: Sequence[LinkPlan]) -> list[LinkPlan]:
    """Return links of one direction each, with every pair of opposite ones as one duplex link.

    Links of equal rate and delay are paired first. A link without an opposite stays simplex.
    """
    partners: dict[int, int] = {}
    for equal in (True, False):
        free: dict[tuple[str, str], list[int]] = {}
        for i, link in enumerate(links):
            if i in partners:
                continue
            opposite = free.get((link.end, link.start), [])
            values = link.rate_bps, link.delay_s
            for j in opposite:
                if not equal or values == (links[j].rate_bps, links[j].delay_s):
                    opposite.remove(j)
                    partners[i] = partners[j] = min(i, j)
                    break
            else:
                free.setdefault((link.start, link.end), []).append(i)
    backs = {first: links[i] for i, first in partners.items() if i != first}
    found = []
    for i, link in enumerate(links):
        if i not in partners:
            found.append(replace(link, duplex=False))
        elif i in backs:
            back = backs[i]
            found.append(
                replace(
                    link,
                    rate_reverse_bps=back.rate_bps if back.rate_bps != link.rate_bps else None,
                    delay_reverse_s=back.delay_s if back.delay_s != link.delay_s else None,
                    loss_reverse=back.loss,
                )
            )
    return found


def oriented(
    links: Sequence[LinkPlan], *, one_way: bool = False
) -> tuple[list[LinkPlan], list[str]]:
    """Return the links of a source that lists each direction in its own line, and notes.

    Directions count where at least half of the links have an opposite, or with `one_way` where all
    nodes of each part reach each other. Editors call graphs directed that list each link once: such
    links hold in both directions. With `one_way` a link without an opposite stays simplex.
    """
    ends = {(link.start, link.end) for link in links}
    opposed = sum((link.end, link.start) in ends for link in links)
    if 2 * opposed >= len(links) > 0 or (one_way and _all_reached(links)):
        found = paired(links)
        alone = [link for link in found if not link.duplex]
        duplex = [link for link in found if link.duplex]
        differ = sum(len({way[2:] for way in link.ways()}) > 1 for link in duplex)
        text = f"Directions: {len(duplex)} pairs of opposite links are one duplex link each"
        text += f", {differ} of them with a reverse direction of its own" if differ else ""
        if alone:
            hold = "one direction" if one_way else "both directions, alike"
            text += f"; {len(alone)} without an opposite have {hold}"
        if not one_way:
            found = [link if link.duplex else _alike(link) for link in found]
        return found, [f"{text}."]
    note = (
        f"The source is directed, but {opposed} of {len(links)} links have an opposite and not all "
        "nodes reach each other: each link holds in both directions."
    )
    return [_alike(link) for link in links], [note] if one_way else []


def _alike(link: LinkPlan) -> LinkPlan:
    return replace(link, duplex=True, loss_reverse=link.loss)


def _all_reached(links: Iterable[LinkPlan]) -> bool:
    graph = nx.DiGraph((link.start, link.end) for link in links)
    apart: int = nx.number_weakly_connected_components(graph)
    return apart == int(nx.number_strongly_connected_components(graph))


class Routes:
    """Routes with the fewest links, then the smallest delay. A random generator decides between
    equal routes.
    """

    def __init__(self, links: Iterable[LinkPlan]) -> None:
        """Store the links. Routes are computed on request."""
        self._graph = nx.MultiDiGraph()
        for link in links:
            for way in link.ways():
                # One number orders routes by links first: no route has 10^6 s of delay.
                self._graph.add_edge(way.start, way.end, key=link.name, length=1e6 + way.delay_s)
        self._before: dict[str, Mapping[str, list[str]]] = {}

    def parts(self) -> dict[str, int]:
        """Return a number for each node, equal for nodes with routes in both directions."""
        found = nx.strongly_connected_components(self._graph)
        return {node: number for number, nodes in enumerate(found) for node in nodes}

    def between(self, start: str, end: str, chance: random.Random) -> tuple[str, ...] | None:
        """Return the links of a route between two nodes, or None if there is no route."""
        if start not in self._graph:
            return None  # a node without links
        if start not in self._before:
            before, _ = nx.dijkstra_predecessor_and_distance(
                self._graph, start, weight=lambda _u, _v, edges: _shortest(edges)
            )
            self._before[start] = before
        before = self._before[start]
        if end not in before:
            return None
        path: list[str] = []
        node = end
        while node != start:
            choices = sorted(before[node])
            previous = choices[0] if len(choices) == 1 else chance.choice(choices)
            edges = self._graph[previous][node]
            shortest = _shortest(edges)
            names = sorted(name for name, edge in edges.items() if edge["length"] == shortest)
            path.append(names[0] if len(names) == 1 else chance.choice(names))
            node = previous
        return tuple(reversed(path))


def _shortest(edges: Mapping[str, Mapping[str, float]]) -> float:
    return min(edge["length"] for edge in edges.values())


def delay_s(length_km: float) -> float:
    """Return the propagation delay (s) of a fibre of this length (km)."""
    return length_km / SPEED_KM_PER_S


def renamed(wanted: Sequence[str], found: Sequence[str]) -> list[str]:
    """Return a note on names that a scenario does not accept, or an empty list."""
    pairs = [(a, b) for a, b in zip(wanted, found, strict=True) if a != b]
    if not pairs:
        return []
    few = ", ".join(f"{shown(a)} is {b}" for a, b in pairs[:_MAX_RENAMED])
    more = f" and {len(pairs) - _MAX_RENAMED} more" if len(pairs) > _MAX_RENAMED else ""
    return [f"Names changed: {few}{more}."]


def names_of(wanted: Iterable[str]) -> list[str]:
    """Return unique names that a scenario accepts, with `-` in place of white space and of
    `.[]:="`.
    """
    seen: dict[str, int] = {}
    found = []
    for text in wanted:
        plain = "".join("-" if c in '.[]:="' or c.isspace() else c for c in text.strip()) or "node"
        seen[plain] = seen.get(plain, 0) + 1
        name = plain if seen[plain] == 1 else f"{plain}-{seen[plain]}"
        while name != plain and name in seen:
            seen[plain] += 1
            name = f"{plain}-{seen[plain]}"
        seen.setdefault(name, 1)
        found.append(name)
    return found
