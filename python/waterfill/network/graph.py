"""The graph of a scenario's links, and the routes of its flows over it.

A duplex link is two directions, `link1` and `link1:rev`; the core knows directions by their index.
Errors in routes are `InputError`s.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from waterfill.errors import InputError, nearest, shown
from waterfill.network import patterns
from waterfill.network.shortest import Step, entries, length
from waterfill.scenario.document import Flow, Link, Scenario, Traffic
from waterfill.scenario.fabric import end_nodes
from waterfill.scenario.units import TIME

if TYPE_CHECKING:
    from waterfill.network.switching import EqualRoutes


class Direction(NamedTuple):
    """One direction of a link. `back` is the index of the reverse direction, None on a simplex
    link.

    `link` has the rate, delay, buffer and events of this direction.
    """

    link: Link
    name: str
    start: str
    end: str
    back: int | None

    @property
    def loss(self) -> float:
        """Probability of random loss in this direction."""
        return self.link.loss_reverse if self.name != self.link.name else self.link.loss


class Route(NamedTuple):
    """A flow's route: link-direction indexes for data and acknowledgements, and times (s).

    `pad_s` is the delay added at the source's access in each direction; the base RTT includes it.
    """

    forward: tuple[int, ...]
    reverse: tuple[int, ...]
    pad_s: float
    base_rtt_s: float


# What flows must share to share their directions: from, to, path and return path.
_Ends: TypeAlias = tuple[str | None, str | None, tuple[str, ...] | None, tuple[str, ...] | None]


class Graph:
    """The graph of a scenario's links, which finds the routes over them.

    Directions keep the file's order, each link followed by its reverse.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.directions: list[Direction] = []
        self._named: dict[str, tuple[int, ...]] = {}
        for link in scenario.link:
            i = len(self.directions)
            pair = (i, i + 1) if link.duplex else (i,)
            forward = Direction(
                link, link.name, link.from_, link.to, pair[-1] if pair[1:] else None
            )
            self.directions.append(forward)
            self._named[link.name] = pair
            if link.duplex:
                name = f"{link.name}:rev"
                self.directions.append(Direction(link.backward, name, link.to, link.from_, i))
                self._named[name] = (i + 1,)
        self._nodes = {node for link in scenario.link for node in (link.from_, link.to)}
        # By direction: what routes are made of, as lists, which are read in half the time.
        self._starts = [direction.start for direction in self.directions]
        self._ends = [direction.end for direction in self.directions]
        self._backs = [direction.back for direction in self.directions]
        self._delays_s = [direction.link.min_delay for direction in self.directions]
        self._entries: dict[str, dict[str, list[int]]] = {}
        self._chance = random.Random()  # seeded again for each pair, in half the time of a new one
        self._flow_keys = scenario.keys("flow")
        self._ways: dict[_Ends, Route] = {}
        self._patterns: dict[int, list[list[Route]]] = {}
        self._pairs: dict[int, list[list[patterns.Pair]]] = {}

    def take(self, scenario: Scenario) -> None:
        """Replace the scenario by one with the same links, but other buffers or marks."""
        self.scenario = scenario
        links = {link.name: link for link in scenario.link}
        for i, direction in enumerate(self.directions):
            forward, _, reverse = direction.name.partition(":")
            link = links[forward]
            self.directions[i] = direction._replace(link=link.backward if reverse else link)

    def routes(self) -> list[Route]:
        """Return the routes of all [[flow]]s, in order; raise InputError if a flow has no route."""
        return list(map(self._route, self.scenario.flow, self._flow_keys))

    def route(self, index: int) -> Route:
        """Return the route of the index-th [[flow]]; raise InputError if the flow has no route."""
        return self._route(self.scenario.flow[index], self._flow_keys[index])

    def web_route(self, index: int) -> Route | None:
        """Return the route of the index-th [[traffic]]'s flows (a pattern's first), or None for a
        source of packets.
        """
        traffic = self.scenario.traffic[index]
        if not traffic.starts_flows:
            return None
        if traffic.pattern is not None:
            return self.pattern_routes(index)[0][0]
        return self._route(traffic, self.scenario.key("traffic", index))

    def pattern_routes(self, index: int) -> list[list[Route]]:
        """Return the routes of the index-th [[traffic]], which has a pattern, by group of the
        pattern.

        A route between two hosts is one of the shortest, drawn from the seed. Raises InputError
        where there is none.
        """
        if index not in self._patterns:
            self._patterns[index] = self._pattern_routes(index)
        return self._patterns[index]

    def _pattern_routes(self, index: int) -> list[list[Route]]:
        scenario, traffic = self.scenario, self.scenario.traffic[index]
        key = scenario.key("traffic", index)
        assert traffic.pattern is not None
        hosts = self.hosts(index)
        for host in hosts if traffic.to is None else [*hosts, traffic.to]:
            if host not in self._nodes:
                at = "to" if host not in hosts else "hosts"
                raise scenario.error(f"{key}.{at}", f"no link ends at {shown(host)}")
        pairs = patterns.groups(traffic.pattern, hosts, traffic.to, scenario.seed)
        fewest = min(map(len, pairs))
        if traffic.fan_in is not None and traffic.fan_in > fewest:
            message = f"must be at most {fewest}, the number of other hosts, got {traffic.fan_in}"
            raise scenario.error(f"{key}.fan_in", message)
        if self.scenario.switches(traffic):
            self._pairs[index] = pairs
            return [self.cover(itertools.chain.from_iterable(pairs), f"{key}.hosts")]
        return [[self._drawn(traffic, key, pair) for pair in group] for group in pairs]

    def pairs(self, index: int) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Return the pairs of node numbers of the index-th [[traffic]], by group of its pattern, if
        switches choose their routes; otherwise nothing.
        """
        self.pattern_routes(index)
        number = self._numbers
        return tuple(
            tuple([(number[start], number[end]) for start, end in group])
            for group in self._pairs.get(index, ())
        )

    def cover(self, pairs: Iterable[tuple[str, str]], key: str) -> list[Route]:
        """Return routes of the pairs that together cross each link which their packets may cross.

        Raises InputError at `key` if a pair has no route.
        """
        try:
            found = list(self._equal.cover(pairs))
        except LookupError as error:
            start, end = error.args[0]
            raise self.scenario.error(key, _no_route(start, end), "add a link") from None
        return [Route(forward, reverse, 0.0, rtt_s) for forward, reverse, rtt_s in found]

    def flows_cover(self) -> list[Route]:
        """Return routes that together cross each link which packets of the [[flow]]s may cross, if
        switches choose their routes; otherwise nothing.
        """
        entries: list[Flow | Traffic] = [*self.scenario.flow, *self.scenario.traffic]
        found = dict.fromkeys(
            (entry.from_, entry.to)
            for entry in entries
            if entry.from_ is not None and entry.to is not None and self.scenario.switches(entry)
        )
        return self.cover(found, "ecmp") if found else []

    def nodes(self) -> tuple[tuple[int, int], ...]:
        """Return the numbers of the nodes at which each link direction begins and ends."""
        number = self._numbers
        return tuple(
            (number[start], number[end])
            for start, end in zip(self._starts, self._ends, strict=True)
        )

    @cached_property
    def _numbers(self) -> dict[str, int]:
        nodes = itertools.chain(*zip(self._starts, self._ends, strict=True))
        return {node: i for i, node in enumerate(dict.fromkeys(nodes))}

    @cached_property
    def _equal(self) -> EqualRoutes:
        from waterfill.network.switching import EqualRoutes

        return EqualRoutes(self._leaving, self._delays_s, self._backs)

    def hosts(self, index: int) -> list[str]:
        """Return the hosts of the index-th [[traffic]]'s pattern."""
        links = ((hop.start, hop.end) for hop in self._hops())
        return self.scenario.traffic[index].hosts or end_nodes(links)

    def capacity_bps(self, index: int) -> float:
        """Return the capacity (bit/s) to which the load of the index-th [[traffic]] is relative.

        On one path it is that of the slowest link. With a pattern it is what its hosts can send,
        or what the only receiver of an incast can receive.
        """
        traffic = self.scenario.traffic[index]
        if traffic.pattern is None:
            path = self.forward(traffic, self.scenario.key("traffic", index))
            rates = [self.directions[i].link.capacity for i in path]
            return min([*rates, traffic.access_rate or math.inf])
        if traffic.to is not None:
            return math.fsum(hop.rate_bps for hop in self._hops() if hop.end == traffic.to)
        return patterns.capacity_bps(self._hops(), self.hosts(index))

    def _hops(self) -> list[patterns.Hop]:
        return [patterns.Hop(d.start, d.end, d.link.capacity) for d in self.directions]

    def _drawn(self, traffic: Traffic, key: str, pair: patterns.Pair) -> Route:
        """Return a random shortest route between two hosts of a pattern."""
        start, end = pair
        chance = self._seeded(start, end)
        forward = self._shortest(start, end, f"{key}.hosts", chance)
        if not forward:
            raise self.scenario.error(f"{key}.hosts", _no_route(start, end), "add a link")
        backs = self._backs
        reverse = tuple([i for k in reversed(forward) if (i := backs[k]) is not None])
        if len(reverse) < len(forward):
            found = self._shortest(end, start, f"{key}.hosts", chance)
            if not found:
                raise self.scenario.error(f"{key}.hosts", _no_route(end, start), "add a link")
            reverse = found
        return self._padded(traffic, key, self._unpadded(forward, reverse))

    def _seeded(self, start: str, end: str) -> random.Random:
        """Return the generator that decides between the equal routes of a pair of hosts."""
        self._chance.seed(f"route/{self.scenario.seed}/{start}/{end}")
        return self._chance

    def _unpadded(self, forward: tuple[int, ...], reverse: tuple[int, ...]) -> Route:
        own_s = math.fsum([self._delays_s[i] for i in forward + reverse])
        return Route(forward, reverse, 0.0, own_s)

    def ways(self, index: int) -> list[Route]:
        """Return all routes that the index-th [[flow]] ever takes, in order of time.

        The padding is the same for all, because it belongs to the hosts; each base RTT is that of
        its own route. Raises InputError if a path is wrong.
        """
        flow, key = self.scenario.flow[index], self._flow_keys[index]
        pad_s = self._route(flow, key).pad_s
        return [
            Route(forward, reverse, pad_s, own_s + 2 * pad_s)
            for forward, reverse, _, own_s in self._all_ways(flow, key)
        ]

    def _all_ways(self, flow: Flow, key: str) -> list[Route]:
        """Return the flow's first route and its later ones, without padding."""
        first = self._way(flow, key)
        # Hosts keep their places, unless they are no link's ends.
        start = flow.from_ or self._starts[first.forward[0]]
        end = flow.to or self._ends[first.forward[-1]]
        later = [
            self._way(
                flow.model_copy(
                    update={
                        "from_": start, "to": end,
                        "path": change.path, "return_path": change.return_path,
                    }
                ),
                f"{key}.route[{i}]",
            )
            for i, change in enumerate(flow.route or ())
        ]  # fmt: skip
        return [first, *later]

    def _route(self, flow: Flow | Traffic, key: str) -> Route:
        """Return the route of a flow, the first one if it changes. Its base RTT is the smallest of
        all. Flows with the same ends and paths share one object unless they have an `rtt`.
        """
        way = self._way(flow, key)
        if isinstance(flow, Flow) and flow.route is not None:
            base_rtt_s = min(way.base_rtt_s for way in self._all_ways(flow, key))
            way = way._replace(base_rtt_s=base_rtt_s)
        return way if flow.rtt is None else self._padded(flow, key, way)

    def _way(self, flow: Flow | Traffic, key: str) -> Route:
        """Return the route of an entry's path, without padding."""
        path, back = flow.path, flow.return_path
        ends = (
            flow.from_,
            flow.to,
            None if path is None else tuple(path),
            None if back is None else tuple(back),
        )
        way = self._ways.get(ends)
        if way is None:
            forward = self.forward(flow, key)
            way = self._ways[ends] = self._unpadded(forward, self._reverse(flow, key, forward))
        return way

    def _padded(self, flow: Flow | Traffic, key: str, way: Route) -> Route:
        """Return a route with the padding that the flow's `rtt` requires."""
        forward, reverse, _, own_s = way
        if flow.rtt is None:
            return way
        if flow.rtt < own_s * (1 - 1e-12):
            raise self.scenario.error(
                f"{key}.rtt",
                f"must be at least the path's RTT of {TIME.format(round(own_s, 12))}, "
                f"got {TIME.format(flow.rtt)}",
            )
        return Route(forward, reverse, max(0.0, (flow.rtt - own_s) / 2), flow.rtt)

    def _reverse(self, flow: Flow | Traffic, key: str, forward: tuple[int, ...]) -> tuple[int, ...]:
        """Return the link directions of acknowledgements for data on a forward route."""
        start, end = self._starts[forward[0]], self._ends[forward[-1]]
        if flow.return_path is not None:
            return self._walk(flow.return_path, end, start, f"{key}.return_path")
        backwards = tuple([back for i in reversed(forward) if (back := self._backs[i]) is not None])
        if len(backwards) == len(forward):
            return backwards
        chance = self._seeded(end, start) if self.scenario.ecmp else None
        found = self._shortest(end, start, f"{key}.return_path", chance)
        if found is None:
            raise self.scenario.error(
                f"{key}.path",
                f"{_no_route(end, start)} for acknowledgements",
                "add a link or a `return_path`",
            )
        return found

    def forward(self, entry: Flow | Traffic, key: str) -> tuple[int, ...]:
        """Return the link directions for an entry's data: its `path`, or the shortest route."""
        if entry.from_ is not None and entry.from_ == entry.to:
            message = f"must differ from `from`, got {shown(entry.to)}"
            raise self.scenario.error(f"{key}.to", message)
        if entry.path is not None:
            return self._walk(entry.path, entry.from_, entry.to, f"{key}.path")
        if entry.from_ is None or entry.to is None:
            missing = "path"
            if (entry.from_ is None) != (entry.to is None):
                missing = "from" if entry.from_ is None else "to"
            raise self.scenario.error(f"{key}.{missing}", "missing", "write a path, or from and to")
        for name, host in (("from", entry.from_), ("to", entry.to)):
            if host not in self._nodes:
                message = f"no link ends at {shown(host)}"
                raise self.scenario.error(f"{key}.{name}", message, "add a link or a `path`")
        chance = self._seeded(entry.from_, entry.to) if self.scenario.ecmp else None
        found = self._shortest(entry.from_, entry.to, f"{key}.path", chance)
        if found is None:
            raise self.scenario.error(
                f"{key}.path", _no_route(entry.from_, entry.to), "add a link or a `path`"
            )
        return found

    def _walk(
        self, names: list[str], start: str | None, end: str | None, key: str
    ) -> tuple[int, ...]:
        """Return the link directions of a path that names its links.

        A host that is no link's end is joined to the path's end by its access link.
        """
        if not names:
            raise self.scenario.error(key, "must name at least one link, got []")
        if len(set(names)) < len(names) or not self._named.keys() >= set(names):
            raise self._wrong_names(names, key)
        routes: list[list[int]] = []
        reached = 0
        # The direction of the first link, forward tried first, determines all others.
        for first in self._named[names[0]]:
            route = [first]
            for name in names[1:]:
                here = self._ends[route[-1]]
                for i in self._named[name]:
                    if self._starts[i] == here:
                        route.append(i)
                        break
                else:
                    break
            reached = max(reached, len(route))
            if len(route) == len(names):
                routes.append(route)
        if not routes:
            raise self.scenario.error(
                key,
                f"{shown(names[reached - 1])} and {shown(names[reached])} share no node",
            )
        for route in routes:
            ends = (self._starts[route[0]], self._ends[route[-1]])
            if (start is None and end is None) or all(
                host is None or host not in self._nodes or host == node
                for host, node in zip((start, end), ends, strict=True)
            ):
                return tuple(route)
        ends = (self._starts[routes[0][0]], self._ends[routes[0][-1]])
        wanted = " ".join(
            f"{word} {shown(host)}" for word, host in (("from", start), ("to", end)) if host
        )
        raise self.scenario.error(
            key, f"leads from {shown(ends[0])} to {shown(ends[1])}, must lead {wanted}"
        )

    def _wrong_names(self, names: list[str], key: str) -> InputError:
        """Return the error for a path that names a link twice or names an unknown link."""
        for i, name in enumerate(names):
            if name not in self._named:
                known = nearest(name, (link.name for link in self.scenario.link))
                return self.scenario.error(key, f"unknown link {shown(name)}{known}")
            if name in names[:i]:
                break
        return self.scenario.error(key, f"must name each link once, got {shown(name)} twice")

    @cached_property
    def _leaving(self) -> dict[str, list[Step]]:
        """Link directions that leave each node, for flows without a path."""
        leaving: dict[str, list[Step]] = {node: [] for node in self._nodes}
        for i, d in enumerate(self.directions):
            leaving[d.start].append(Step(d.end, i, length(d.link.first_delay)))
        return leaving

    def _shortest(
        self, start: str, end: str, key: str, chance: random.Random | None = None
    ) -> tuple[int, ...] | None:
        """Find the route with the fewest hops and, among these, the smallest delay; return None if
        there is none.

        `chance` decides between equal ones; without it they raise InputError.
        """
        if end == start:
            return ()
        # Hosts with one link share the routes of the node behind it.
        leaving = self._leaving[start]
        root = leaving[0].end if len(leaving) == 1 else start
        into = self._entries.get(root)
        if into is None:
            into = self._entries[root] = entries(self._leaving, root)
        if end not in into:
            return None
        route: list[int] = []
        node, starts = end, self._starts
        while node != root:
            equal = into[node]
            if len(equal) > 1 and chance is None:
                raise self.scenario.error(
                    key,
                    f"several shortest routes lead from {shown(start)} to {shown(end)}",
                    'list the links of one, or write ecmp = "pair"',
                )
            route.append(equal[0] if chance is None or len(equal) == 1 else chance.choice(equal))
            node = starts[route[-1]]
        if root != start:
            route.append(leaving[0].direction)
        route.reverse()
        return tuple(route)


def _no_route(start: str, end: str) -> str:
    return f"no route from {shown(start)} to {shown(end)}"


def base_rtts(scenario: Scenario) -> dict[str, float]:
    """Return the base RTT (s) of every [[flow]] by name: two-way propagation delay and padding."""
    graph = Graph(scenario)
    names = (flow.name for flow in scenario.flow)
    return {n: route.base_rtt_s for n, route in zip(names, graph.routes(), strict=True)}
