"""Links, flows and their routes, before they become a scenario."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import networkx as nx

Router = Callable[[str, str, random.Random], tuple[str, ...] | None]
"""Function from start, end and random generator to a route. The generator breaks ties."""
# Light in fibre: two thirds of its speed in vacuum.
SPEED_KM_PER_S = 200_000.0


@dataclass(frozen=True)
class LinkPlan:
    """A duplex link of a layout."""

    name: str
    start: str
    end: str
    rate_bps: float
    delay_s: float
    loss: float = 0.0
    rate_trace: str | None = None
    """File with the rates of the forward direction over time."""


@dataclass(frozen=True)
class FlowPlan:
    """A flow of a layout, or `count` equal flows."""

    name: str
    start: str
    end: str
    path: tuple[str, ...]
    count: int = 1
    start_s: float = 0.0
    size_bytes: int | None = None
    demand_bps: float | None = None


@dataclass(frozen=True)
class SourcePlan:
    """A source of flows of random sizes that arrive between all hosts in a pattern."""

    pattern: str
    load: float
    sizes: str
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

    own_route: Router | None = None
    """Route function of a rule's network, for rules whose networks take long to search."""

    @cached_property
    def route(self) -> Router:
        """Function that returns the links of a route between two nodes, or None if the nodes are
        not connected.
        """
        return self.own_route or Routes(self.links).between


class Routes:
    """Routes with the fewest links, then the smallest delay. A random generator decides between
    equal routes.
    """

    def __init__(self, links: Iterable[LinkPlan]) -> None:
        """Store the links. Routes are computed on request."""
        self._graph = nx.MultiGraph()
        for link in links:
            # One number orders routes by links first: no route has 10^6 s of delay.
            self._graph.add_edge(link.start, link.end, key=link.name, length=1e6 + link.delay_s)
        self._before: dict[str, Mapping[str, list[str]]] = {}

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
