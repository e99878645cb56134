"""Equal shortest routes of a network whose switches choose among them (ECMP).

The engine chooses at each hop. Here they give base RTTs, and routes that together cross every link
which packets may cross.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from waterfill.contract.network import ArrivalSpec, FlowSpec, Network, RouteSpec
from waterfill.network.patterns import Pair
from waterfill.network.shortest import Step, entries, length

Longest: TypeAlias = tuple[float, Pair]
"""The largest base RTT (s) of some pairs of hosts, and its pair."""


class SwitchedRoute(NamedTuple):
    """A route that switches may choose: link directions for data and acknowledgements, and the base
    RTT (s).
    """

    forward: tuple[int, ...]
    reverse: tuple[int, ...]
    base_rtt_s: float


class _Crossed(NamedTuple):
    """The pair with the largest base RTT (s) among those whose data may cross a link, and the links
    from its first switch up to that link.
    """

    base_rtt_s: float
    pair: Pair
    links: tuple[int, ...]


class EqualRoutes:
    """All shortest routes between the nodes of a network.

    `leaving` has the steps from every node; `delays_s` and `backs` have the delay (s) and the
    reverse of each link direction, which is None on a simplex link.
    """

    def __init__(
        self,
        leaving: Mapping[str, Sequence[Step]],
        delays_s: Sequence[float],
        backs: Sequence[int | None],
    ) -> None:
        self._delays_s, self._backs = delays_s, backs
        self._ends: dict[int, str] = {}
        self._arriving: dict[str, list[Step]] = {node: [] for node in leaving}
        for start, steps in leaving.items():
            for end, direction, far in steps:
                self._ends[direction] = end
                self._arriving[end].append(Step(start, direction, far))
        # Hosts with one link share the routes of the switch behind it.
        self._up = {node: steps[0] for node, steps in leaving.items() if len(steps) == 1}
        self._down = {node: steps[0] for node, steps in self._arriving.items() if len(steps) == 1}
        self._toward: dict[str, dict[str, list[int]]] = {}
        self._between_s: dict[tuple[str, str], float] = {}

    def route(self, start: str, end: str) -> tuple[int, ...]:
        """Return a shortest route, at each node by the first of its equal links; () if there is
        none.
        """
        node, found = start, []
        if start in self._up:
            found, node = [self._up[start].direction], self._up[start].end
        if node != end:
            last = self._down[end].end if end in self._down else end
            while node != last:
                links = self._leading(last).get(node)
                if not links:
                    return ()
                found.append(links[0])
                node = self._ends[links[0]]
            if last != end:
                found.append(self._down[end].direction)
        return tuple(found)

    def _leading(self, end: str) -> dict[str, list[int]]:
        """Return the link directions by which shortest routes to `end` leave each node."""
        if end not in self._toward:
            found = entries(self._arriving, end)
            self._toward[end] = {node: sorted(links) for node, links in found.items()}
        return self._toward[end]

    def stages(self, path: Sequence[int]) -> list[list[int]]:
        """Return the links that packets with the ends of a shortest route may cross at each of its
        hops.
        """
        found = [[path[0]]]
        end = self._ends[path[-1]]
        last = self._down[end].end if end in self._down else end
        while len(found) < len(path) - (last != end):
            nodes = dict.fromkeys(self._ends[link] for link in found[-1])
            leading = self._leading(last)
            found.append(list(dict.fromkeys(link for node in nodes for link in leading[node])))
        return [*found, [path[-1]]] if len(found) < len(path) else found

    def _delay_s(self, start: str, end: str) -> float:
        """Return the delay (s) between two nodes, inf without a route."""
        if start == end:
            return 0.0
        if (start, end) not in self._between_s:
            route = self.route(start, end)
            delay_s = sum(self._delays_s[i] for i in route) if route else float("inf")
            self._between_s[start, end] = delay_s
        return self._between_s[start, end]

    def cover(self, pairs: Iterable[Pair]) -> Iterator[SwitchedRoute]:
        """Yield routes of the pairs that together cross each link which their data may cross, with
        the largest base RTT of all pairs that may cross the link.

        Raises LookupError with a pair that has no route.
        """
        of_switches, of_hosts = self._longest(pairs)
        for rtt_s, pair in of_switches.values():
            if rtt_s == float("inf"):
                raise LookupError(pair)
        between: dict[str, dict[str, Longest]] = {}
        for (first, last), longest in of_switches.items():
            between.setdefault(last, {})[first] = longest
        crossed: dict[int, _Crossed] = {}
        for last, sources in between.items():
            for link, found in self._crossed(last, sources):
                if link not in crossed or found.base_rtt_s > crossed[link].base_rtt_s:
                    crossed[link] = found
        done: dict[int, float] = {}
        for link, (rtt_s, pair, links) in crossed.items():
            if done.get(link, -1.0) < rtt_s:
                up = (self._up[pair[0]].direction,) if pair[0] in self._up else ()
                yield self._noted((*up, *links), pair, rtt_s, done)
        for link, (rtt_s, pair) in of_hosts.items():
            if done.get(link, -1.0) < rtt_s:
                yield self._noted((), pair, rtt_s, done)

    def _longest(
        self, pairs: Iterable[Pair]
    ) -> tuple[dict[tuple[str, str], Longest], dict[int, Longest]]:
        """Return the largest base RTTs, inf without a route both ways: by the first and the last
        switch of pairs, and by the only link of a host.
        """
        ups, downs = self._up, self._down
        own_s = {
            node: sum(self._delays_s[of[node].direction] for of in (ups, downs) if node in of)
            for node in self._arriving
        }
        first = {node: ups[node].end if node in ups else node for node in own_s}
        last = {node: downs[node].end if node in downs else node for node in own_s}
        both_s: dict[tuple[str, str], float] = {}
        none: Longest = (-1.0, ("", ""))
        sent, received = dict.fromkeys(own_s, none), dict.fromkeys(own_s, none)
        between: dict[tuple[str, str], Longest] = {}
        for pair in pairs:  # a fabric may have millions
            start, end = pair
            key = first[start], last[end]
            if key[0] == end or key[1] == start:  # one link, and no switch between them
                key = end, end
                rtt_s = self._delay_s(start, end) + self._delay_s(end, start)
            else:
                if key not in both_s:
                    both_s[key] = self._delay_s(*key) + self._delay_s(first[end], last[start])
                rtt_s = both_s[key] + own_s[start] + own_s[end]
            if rtt_s > between.get(key, none)[0]:
                between[key] = rtt_s, pair
            if rtt_s > sent[start][0]:
                sent[start] = rtt_s, pair
            if rtt_s > received[end][0]:
                received[end] = rtt_s, pair
        of_hosts = {ups[node].direction: sent[node] for node in ups if sent[node] is not none}
        of_hosts |= {d.direction: received[n] for n, d in downs.items() if received[n] is not none}
        return between, of_hosts

    def _crossed(self, last: str, sources: Mapping[str, Longest]) -> Iterator[tuple[int, _Crossed]]:
        """Yield the links on routes from some switches to the switch `last`, each once."""
        toward = self._leading(last)
        seen = {last}
        # The largest RTT first: whichever reaches a node first has the largest there.
        for first, (rtt_s, pair) in sorted(sources.items(), key=lambda item: -item[1][0]):
            waiting: list[tuple[str, tuple[int, ...]]] = [(first, ())]
            while waiting:
                node, links = waiting.pop()
                if node not in seen:
                    seen.add(node)
                    for link in toward[node]:
                        yield link, _Crossed(rtt_s, pair, (*links, link))
                        waiting.append((self._ends[link], (*links, link)))

    def _noted(
        self, begun: tuple[int, ...], pair: Pair, rtt_s: float, done: dict[int, float]
    ) -> SwitchedRoute:
        """Return the route of a pair that begins with these links, and note its links as done."""
        node = self._ends[begun[-1]] if begun else pair[0]
        rest = self.route(node, pair[1]) if node != pair[1] else ()
        forward = (*begun, *rest)
        for link in forward:
            done[link] = max(rtt_s, done.get(link, 0.0))
        backs = tuple([back for i in reversed(forward) if (back := self._backs[i]) is not None])
        reverse = backs if len(backs) == len(forward) else self.route(pair[1], pair[0])
        return SwitchedRoute(forward, reverse, rtt_s)


def of_network(network: Network) -> EqualRoutes:
    """Return the equal routes of a network with switches, whose nodes are numbers as text."""
    nodes = () if network.switching is None else network.switching.nodes
    leaving: dict[str, list[Step]] = {str(node): [] for node in itertools.chain(*nodes)}
    for i, ((start, end), link) in enumerate(zip(nodes, network.links, strict=True)):
        leaving[str(start)].append(Step(str(end), i, length(link.delay_s)))
    return EqualRoutes(leaving, [link.delay_s for link in network.links], [None] * len(nodes))


def crossed(network: Network) -> Iterator[tuple[FlowSpec, list[int]]]:
    """Yield each group of flows whose links switches choose, with the links that its data may
    cross.
    """
    routes = of_network(network)
    for flow in network.flows:
        if flow.switched:
            stages = routes.stages(flow.forward)
            yield flow, list(itertools.chain.from_iterable(stages))


def ways(
    network: Network, flows: ArrivalSpec, routes: EqualRoutes | None
) -> Callable[[int], RouteSpec]:
    """Return the function from the index of a route of a source's flows to that route. Where
    switches choose, it is one of the shortest of `routes`.
    """
    if routes is None or not flows.pairs:
        return flows.ways.__getitem__
    pairs = list(itertools.chain.from_iterable(flows.pairs))

    def way(index: int) -> RouteSpec:
        start, end = map(str, pairs[index])
        forward, reverse = routes.route(start, end), routes.route(end, start)
        base_rtt_s = sum(network.links[i].delay_s for i in (*forward, *reverse))
        return RouteSpec(forward=forward, reverse=reverse, pad_s=0.0, base_rtt_s=base_rtt_s)

    return way
