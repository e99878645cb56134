"""Resolves a scenario to the network that the core runs: routes, RTTs, buffers, parameters.

A duplex link is two directions, `link1` and `link1:rev`; the core knows directions by their index.
Errors in routes and protocols are `InputError`s.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from waterfill.contract.network import (
    ArrivalSpec,
    BufferSpec,
    FlowSpec,
    LinkSpec,
    Network,
    ParamValue,
    PeriodSpec,
    RouteSpec,
    TrafficSpec,
)
from waterfill.errors import InputError, nearest, shown
from waterfill.network import links, patterns
from waterfill.network.protocols import ProtocolInfo, Protocols
from waterfill.network.shortest import Step, entries
from waterfill.scenario.bulk import uncollected
from waterfill.scenario.distributions import Distribution
from waterfill.scenario.document import Flow, Link, Scenario, Traffic, unsupported
from waterfill.scenario.links import NOMINAL_RTT_S
from waterfill.scenario.units import MAX_COUNT, RATE, TIME, VOLUME

if TYPE_CHECKING:
    from waterfill.contract.elements import (
        Constant,
        DistributionSpec,
        Exponential,
        Pareto,
        QueueSpec,
    )

TCP_IP_HEADER_BYTES = 40

# Default sizes of web-like flows: Katabi, Handley and Rohrs (SIGCOMM 2002) draw transfers from a
# Pareto distribution with this mean, in packets, and this shape.
WEB_PACKETS = 30
WEB_SHAPE = 1.35
# Default shape of on and off periods, from the documentation of ns-2's Pareto on/off source.
PERIOD_SHAPE = 1.5

# Route lengths are hops, then delay in picoseconds, in one integer: routes tie only if equal.
_HOP = 1 << 80


class Direction(NamedTuple):
    """One direction of a link; `back` is the index of the other, None on a simplex link."""

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
    """A flow's route: direction indexes of data and of acknowledgements, and times in seconds.

    `pad_s` is the delay added at the source's access in each direction; the base RTT includes it.
    """

    forward: tuple[int, ...]
    reverse: tuple[int, ...]
    pad_s: float
    base_rtt_s: float


# What flows must share to share their directions: from, to, path and return path.
_Ends: TypeAlias = tuple[str | None, str | None, tuple[str, ...] | None, tuple[str, ...] | None]


class Graph:
    """The graph of a scenario's links, and the routes over it.

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
                self.directions.append(Direction(link, name, link.to, link.from_, i))
                self._named[name] = (i + 1,)
        self._nodes = {node for link in scenario.link for node in (link.from_, link.to)}
        # By direction: what routes are made of, as lists, which are read in half the time.
        self._starts = [direction.start for direction in self.directions]
        self._ends = [direction.end for direction in self.directions]
        self._backs = [direction.back for direction in self.directions]
        self._delays_s = [direction.link.min_delay for direction in self.directions]
        self._entries: dict[str, dict[str, list[int]]] = {}
        self._flow_keys = scenario.keys("flow")
        self._ways: dict[_Ends, Route] = {}
        self._patterns: dict[int, list[list[Route]]] = {}

    def routes(self) -> list[Route]:
        """Return the routes of all [[flow]]s, in order; raise InputError where there is none."""
        return list(map(self._route, self.scenario.flow, self._flow_keys))

    def route(self, index: int) -> Route:
        """Return the route of the index-th [[flow]]; raise InputError if there is none."""
        return self._route(self.scenario.flow[index], self._flow_keys[index])

    def web_route(self, index: int) -> Route | None:
        """Return the route of the index-th [[traffic]]'s flows; None for a source of packets."""
        traffic = self.scenario.traffic[index]
        if not traffic.starts_flows:
            return None
        if traffic.pattern is not None:
            return self.pattern_routes(index)[0][0]
        return self._route(traffic, self.scenario.key("traffic", index))

    def pattern_routes(self, index: int) -> list[list[Route]]:
        """Return the routes of the index-th [[traffic]], which has a pattern, in its groups.

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
        return [[self._drawn(traffic, key, pair) for pair in group] for group in pairs]

    def hosts(self, index: int) -> list[str]:
        """Return the hosts of the index-th [[traffic]]'s pattern."""
        return self.scenario.traffic[index].hosts or patterns.ends(self._hops())

    def capacity_bps(self, index: int) -> float:
        """Return the rate (bit/s) of which the index-th [[traffic]]'s load is a share.

        On one path it is that of the slowest link. With a pattern it is what its hosts can send,
        or what the only receiver of an incast can receive.
        """
        traffic = self.scenario.traffic[index]
        if traffic.pattern is None:
            path = self.forward(traffic, self.scenario.key("traffic", index))
            rates = [self.directions[i].link.capacity for i in path]
            return min([*rates, traffic.access_rate or math.inf])
        if traffic.to is not None:
            return sum(hop.rate_bps for hop in self._hops() if hop.end == traffic.to)
        return patterns.capacity_bps(self._hops(), self.hosts(index))

    def _hops(self) -> list[patterns.Hop]:
        return [patterns.Hop(d.start, d.end, d.link.capacity) for d in self.directions]

    def _drawn(self, traffic: Traffic, key: str, pair: patterns.Pair) -> Route:
        """Return a route between two hosts of a pattern."""
        start, end = pair
        chance = random.Random(f"route/{self.scenario.seed}/{start}/{end}")
        forward = self._shortest(start, end, f"{key}.hosts", chance)
        if not forward:
            raise self.scenario.error(f"{key}.hosts", _no_route(start, end), "add a link")
        backwards = [self.directions[i].back for i in reversed(forward)]
        reverse = tuple(i for i in backwards if i is not None)
        if len(reverse) < len(backwards):
            found = self._shortest(end, start, f"{key}.hosts", chance)
            if not found:
                raise self.scenario.error(f"{key}.hosts", _no_route(end, start), "add a link")
            reverse = found
        return self._padded(traffic, key, self._unpadded(forward, reverse))

    def _unpadded(self, forward: tuple[int, ...], reverse: tuple[int, ...]) -> Route:
        own_s = math.fsum([self._delays_s[i] for i in forward + reverse])
        return Route(forward, reverse, 0.0, own_s)

    def _route(self, flow: Flow | Traffic, key: str) -> Route:
        """Return the route of a flow; without padding the same object for all alike."""
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
        return way if flow.rtt is None else self._padded(flow, key, way)

    def _padded(self, flow: Flow | Traffic, key: str, way: Route) -> Route:
        """Return a route with the padding that the flow's `rtt` asks for."""
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
        """Return the directions of the acknowledgements of data that cross these."""
        start, end = self._starts[forward[0]], self._ends[forward[-1]]
        if flow.return_path is not None:
            return self._walk(flow.return_path, end, start, f"{key}.return_path")
        backwards = tuple([back for i in reversed(forward) if (back := self._backs[i]) is not None])
        if len(backwards) == len(forward):
            return backwards
        found = self._shortest(end, start, f"{key}.return_path")
        if found is None:
            raise self.scenario.error(
                f"{key}.path",
                f"{_no_route(end, start)} for acknowledgements",
                "add a link or a `return_path`",
            )
        return found

    def forward(self, entry: Flow | Traffic, key: str) -> tuple[int, ...]:
        """Return the directions that an entry's data cross: its `path`, else the shortest route."""
        if entry.from_ is not None and entry.from_ == entry.to:
            message = f"must differ from `from`, got {shown(entry.to)}"
            raise self.scenario.error(f"{key}.to", message)
        if entry.path is not None:
            return self._walk(entry.path, entry.from_, entry.to, f"{key}.path")
        if entry.from_ is None or entry.to is None:
            raise self.scenario.error(f"{key}.path", "missing", "write a path, or from and to")
        for host in (entry.from_, entry.to):
            if host not in self._nodes:
                message = f"no link ends at {shown(host)}"
                raise self.scenario.error(f"{key}.path", message, "add a link or a `path`")
        found = self._shortest(entry.from_, entry.to, f"{key}.path")
        if found is None:
            raise self.scenario.error(
                f"{key}.path", _no_route(entry.from_, entry.to), "add a link or a `path`"
            )
        return found

    def _walk(
        self, names: list[str], start: str | None, end: str | None, key: str
    ) -> tuple[int, ...]:
        """Return the directions of a path that names its links.

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
        """Return the error of a path that names a link twice, or an unknown link."""
        for i, name in enumerate(names):
            if name not in self._named:
                known = nearest(name, (link.name for link in self.scenario.link))
                return self.scenario.error(key, f"unknown link {shown(name)}{known}")
            if name in names[:i]:
                break
        return self.scenario.error(key, f"must name each link once, got {shown(name)} twice")

    @cached_property
    def _leaving(self) -> dict[str, list[Step]]:
        """By node, the directions that leave it: for routes that no path names."""
        leaving: dict[str, list[Step]] = {node: [] for node in self._nodes}
        for i, d in enumerate(self.directions):
            leaving[d.start].append(Step(d.end, i, _HOP + round(d.link.delay * 1e12)))
        return leaving

    def _shortest(
        self, start: str, end: str, key: str, chance: random.Random | None = None
    ) -> tuple[int, ...] | None:
        """Find the route with fewest hops, then smallest delay.

        `chance` decides between equal ones; without it they raise InputError.
        """
        if start not in self._entries:
            self._entries[start] = entries(self._leaving, start)
        into = self._entries[start]
        if end not in into:
            return None
        route: list[int] = []
        node = end
        while node != start:
            equal = into[node]
            if len(equal) > 1 and chance is None:
                raise self.scenario.error(
                    key,
                    f"several shortest routes lead from {shown(start)} to {shown(end)}",
                    "list the links of one",
                )
            route.append(equal[0] if chance is None or len(equal) == 1 else chance.choice(equal))
            node = self.directions[route[-1]].start
        return tuple(reversed(route))


def _no_route(start: str, end: str) -> str:
    return f"no route from {shown(start)} to {shown(end)}"


def base_rtts(scenario: Scenario) -> dict[str, float]:
    """Return the base RTT (s) of every [[flow]] by name: propagation and padding, both ways."""
    graph = Graph(scenario)
    names = (flow.name for flow in scenario.flow)
    return {n: route.base_rtt_s for n, route in zip(names, graph.routes(), strict=True)}


@uncollected()
def to_core(scenario: Scenario, protocols: Protocols, backend: str = "sim") -> Network:
    """Resolve a scenario to the network that an engine takes.

    Raises InputError for a key that the backend does not support, an unknown protocol or
    parameter, and a flow or traffic without a route.
    """
    for key, message in unsupported(scenario, backend):
        raise scenario.error(key, message)
    # Most flows of a long list name the same protocol, or none.
    checked: dict[str | None, str] = {}
    for i, flow in enumerate(scenario.flow):
        if flow.protocol not in checked:
            key = scenario.key("flow", i)
            checked[flow.protocol] = _protocol(scenario, flow, key, protocols, backend)
    names = [checked[flow.protocol] for flow in scenario.flow]
    of_traffic = {
        i: _protocol(scenario, traffic, scenario.key("traffic", i), protocols, backend)
        for i, traffic in enumerate(scenario.traffic)
        if traffic.starts_flows
    }
    _check_packet_size(scenario, [*names, *of_traffic.values()], protocols)
    _check_routers(scenario, protocols)
    params = set_params(scenario, protocols)
    graph = Graph(scenario)
    routes = graph.routes()
    traffic = [
        source
        for i in range(len(scenario.traffic))
        for source in _traffic(graph, i, protocols.get(of_traffic.get(i, "")))
    ]
    web_routes = [
        route
        for i in of_traffic
        for route in (
            itertools.chain.from_iterable(graph.pattern_routes(i))
            if scenario.traffic[i].pattern is not None
            else (graph.web_route(i),)
        )
    ]
    return Network(
        name=scenario.name,
        seed=scenario.seed,
        duration_s=scenario.duration,
        measure_s=(scenario.measure_s[0], scenario.measure_s[1]),
        sample_s=scenario.sample,
        packet_bytes=int(scenario.packet_size),
        ack_bytes=int(scenario.ack_size),
        rto_min_s=scenario.rto_min,
        params=params,
        links=_links(graph, [*routes, *filter(None, web_routes)]),
        flows=tuple(list(map(_flow, scenario.flow, names, routes, itertools.repeat(scenario)))),
        traffic=tuple(traffic),
    )


def set_params(scenario: Scenario, protocols: Protocols) -> dict[str, dict[str, ParamValue]]:
    """Return the parameters that the scenario sets, in SI units, by protocol."""
    result: dict[str, dict[str, ParamValue]] = {}
    for protocol, values in scenario.params.items():
        key = f"params.{protocol}"
        if protocol not in protocols:
            known = nearest(protocol, protocols)
            raise scenario.error(key, f"unknown protocol {shown(protocol)}{known}")
        result[protocol] = {}
        for name, value in values.items():
            try:
                result[protocol][name] = protocols[protocol].param(name).parse(value)
            except ValueError as error:
                raise scenario.error(f"{key}.{name}", str(error)) from None
    return result


def _protocol(
    scenario: Scenario, entry: Flow | Traffic, at: str, protocols: Protocols, backend: str
) -> str:
    own = entry.protocol
    name = own if own is not None else scenario.protocol
    assert name is not None  # from_dict refuses a flow without a protocol

    def wrong(message: str) -> InputError:
        key = "protocol" if own is None else f"{at}.protocol"
        return scenario.error(key, message)

    if name not in protocols:
        raise wrong(f"unknown protocol {shown(name)}{nearest(name, protocols)}")
    if backend not in protocols[name].backends:
        able = ", ".join(p.name for p in protocols.values() if backend in p.backends)
        raise wrong(f"{shown(name)} does not run on {backend}; choose one of {able}")
    return name


def _check_routers(scenario: Scenario, protocols: Protocols) -> None:
    for index, link in enumerate(scenario.link):
        for name in link.routers or ():
            if name not in protocols:
                key = f"{scenario.key('link', index)}.routers"
                known = nearest(name, protocols)
                raise scenario.error(key, f"unknown protocol {shown(name)}{known}")


def _check_packet_size(scenario: Scenario, names: Iterable[str], protocols: Protocols) -> None:
    for name in dict.fromkeys(names):
        headers = TCP_IP_HEADER_BYTES + protocols[name].header_bytes
        if scenario.packet_size <= headers:
            raise scenario.error(
                "packet_size",
                f"must be above {headers} B, the headers of {name}, "
                f"got {VOLUME.format(scenario.packet_size)}",
            )


def _links(graph: Graph, routes: Iterable[Route]) -> tuple[LinkSpec, ...]:
    longest_s: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
    # Flows that are alike have the same route, also as an object.
    for forward, reverse, _, base_rtt_s in {id(route): route for route in routes}.values():
        if base_rtt_s > longest_s.get((forward, reverse), 0.0):
            longest_s[forward, reverse] = base_rtt_s
    largest_s = [0.0] * len(graph.directions)
    for (forward, reverse), base_rtt_s in longest_s.items():
        for i in forward + reverse:
            largest_s[i] = max(largest_s[i], base_rtt_s)
    packet_bytes = int(graph.scenario.packet_size)
    duration_s = graph.scenario.duration
    found: list[LinkSpec] = []
    for i, (link, name, _, _, back) in enumerate(graph.directions):
        if back == i - 1:
            found.append(_backwards(found[back], link, name, duration_s))
            continue
        # Both directions of a link share one largest RTT: the reverse is identical.
        rtt_s = largest_s[i] if back is None else max(largest_s[i], largest_s[back])
        rtt_s = rtt_s or NOMINAL_RTT_S
        buffer = _buffer(graph.scenario, link, packet_bytes, rtt_s)
        found.append(_link(link, buffer, packet_bytes, rtt_s, duration_s))
    return tuple(found)


def _buffer(scenario: Scenario, link: Link, packet_bytes: int, largest_rtt_s: float) -> BufferSpec:
    """Return a link's buffer, in packets where it is given in packets, else in bytes."""
    buffer = link.buffer
    amount = buffer.amount
    if buffer.unit == "bdp" and amount > 0:
        amount *= link.capacity / 8 * largest_rtt_s
        # Below one packet a buffer would be none at all, which nobody means by "1 bdp".
        amount = max(amount, packet_bytes)
    if amount > MAX_COUNT:
        limit, rate, rtt = VOLUME.format(MAX_COUNT), RATE.format(link.capacity), largest_rtt_s
        got = f"{shown(buffer.format())} of {rate} × {TIME.format(rtt)}"
        key = scenario.key("link", scenario.link.index(link))
        raise scenario.error(f"{key}.buffer", f"must be at most {limit}, got {got}")
    if buffer.unit == "packets":
        return BufferSpec("packets", int(amount))
    return BufferSpec("bytes", round(amount))


def _link(
    link: Link, buffer: BufferSpec, packet_bytes: int, largest_rtt_s: float, duration_s: float
) -> LinkSpec:
    """Return the forward direction of a link."""
    rate_bps, changes = links.changes(link, True, duration_s)
    return LinkSpec(
        name=link.name,
        rate_bps=rate_bps,
        shaper=links.shaper(link),
        delay_s=link.delay,
        buffer=buffer,
        queue=_queue(link, largest_rtt_s),
        loss=link.loss,
        loss_model=links.loss_model(link),
        reorder=links.reorder(link, packet_bytes),
        duplicate=link.duplicate,
        target=link.target,
        routers=None if link.routers is None else tuple(link.routers),
        changes=changes,
        faults=links.faults(link, True, duration_s),
    )


def _queue(link: Link, largest_rtt_s: float) -> QueueSpec:
    if link.queue == "droptail":
        return links.droptail(link)
    from waterfill.network import queues

    return queues.resolve(link, largest_rtt_s)


def _backwards(forward: LinkSpec, link: Link, name: str, duration_s: float) -> LinkSpec:
    """Return the reverse direction: queue and shaper act both ways, a bad wire forward only."""
    rate_bps, changes = links.changes(link, False, duration_s)
    return LinkSpec(
        name=name,
        rate_bps=rate_bps,
        shaper=forward.shaper,
        delay_s=forward.delay_s,
        buffer=forward.buffer,
        queue=forward.queue,
        loss=link.loss_reverse,
        loss_model=None,
        reorder=None,
        duplicate=0.0,
        target=forward.target,
        routers=forward.routers,
        changes=changes,
        faults=links.faults(link, False, duration_s),
    )


def _jitter(flow: Flow, key: str, largest_s: float, seed: int) -> tuple[float, ...]:
    """Return a random time in [0, largest_s] per flow, by seed, flow and key."""
    draw = random.Random(f"{seed} {flow.name} {key}")  # independent of the core's streams
    return tuple(draw.uniform(0.0, largest_s) for _ in range(flow.count))


def _flow(flow: Flow, protocol: str, route: Route, scenario: Scenario) -> FlowSpec:
    forward, reverse, pad_s, base_rtt_s = route
    stop, size, seed = flow.stop, flow.size, scenario.seed
    start_jitter, rtt_jitter = flow.start_jitter, flow.rtt_jitter
    # By place, in half the time of names; the fields' types differ enough for a checker to see.
    return FlowSpec(
        flow.name,
        flow.count,
        protocol,
        forward,
        reverse,
        flow.start,
        flow.stagger,
        _jitter(flow, "start", start_jitter, seed) if start_jitter else (),
        scenario.duration if stop is None else _stop_s(flow, scenario.duration),
        None if size is None else int(size),
        pad_s,
        _jitter(flow, "rtt", rtt_jitter / 2, seed) if rtt_jitter else (),
        flow.access_rate,
        base_rtt_s,
        flow.weight,
        flow.demand,
        flow.initial_window,
        flow.pacing,
        flow.delayed_ack,
        flow.ecn,
        flow.claimed_rtt,
        links.host_faults(flow, scenario.duration),
    )


def _traffic(graph: Graph, index: int, protocol: ProtocolInfo | None) -> Iterator[TrafficSpec]:
    """Yield the sources of one entry: `count` of them, named NAME[0], NAME[1] …"""
    scenario = graph.scenario
    traffic, key = scenario.traffic[index], scenario.key("traffic", index)
    name = scenario.traffic_name(index)
    periods = arrivals = None
    if traffic.on is not None and traffic.off is not None:
        periods = PeriodSpec(on_s=_period(traffic, traffic.on), off_s=_period(traffic, traffic.off))
    route = graph.web_route(index)
    if route is not None and protocol is not None:
        payload_bytes = scenario.packet_size - TCP_IP_HEADER_BYTES - protocol.header_bytes
        sizes = traffic.sizes or Distribution("pareto", WEB_PACKETS * payload_bytes, WEB_SHAPE)
        groups = [] if traffic.pattern is None else graph.pattern_routes(index)
        fan_in = 1
        if traffic.pattern == "incast":
            fan_in = traffic.fan_in or min(map(len, groups))
        arrivals_per_s = traffic.arrival_rate
        if arrivals_per_s is None:
            assert traffic.load is not None  # `validation` refuses neither
            offered_bps = traffic.load * graph.capacity_bps(index)
            arrivals_per_s = offered_bps / (8 * sizes.mean * fan_in)
        arrivals = ArrivalSpec(
            arrivals_per_s=arrivals_per_s,
            sizes_bytes=_distribution(sizes),
            flow=_web_flow(traffic, name, protocol.name, route, scenario),
            routes=tuple(tuple(RouteSpec(**r._asdict()) for r in group) for group in groups),
            fan_in=fan_in,
        )
    source = TrafficSpec(
        name=name,
        kind=traffic.kind,
        path=graph.forward(traffic, key) if route is None else route.forward,
        rate_bps=traffic.rate,
        access_bps=None if traffic.starts_flows else traffic.access_rate,
        start_s=traffic.start,
        stop_s=_stop_s(traffic, scenario.duration),
        packet_bytes=int(scenario.packet_size),
        periods=periods,
        flows=arrivals,
    )
    if traffic.count is None or traffic.count == 1:
        yield source
    else:
        yield from (replace(source, name=f"{name}[{i}]") for i in range(traffic.count))


def _period(traffic: Traffic, mean_s: float) -> Constant | Exponential | Pareto:
    from waterfill.contract.elements import Constant, Exponential, Pareto

    kind = traffic.distribution or "exponential"
    if kind == "pareto":
        return Pareto(mean=mean_s, shape=traffic.shape or PERIOD_SHAPE, max=None)
    return Constant(mean=mean_s) if kind == "constant" else Exponential(mean=mean_s)


def _distribution(given: Distribution) -> DistributionSpec:
    from waterfill.contract.elements import Constant, Empirical, Exponential, Pareto

    if given.kind == "empirical":
        return Empirical(points=given.points)
    if given.kind == "pareto":
        assert given.shape is not None  # `distributions.parse` refuses one without
        return Pareto(mean=given.mean, shape=given.shape, max=given.max)
    return Constant(mean=given.mean) if given.kind == "constant" else Exponential(mean=given.mean)


def _web_flow(
    traffic: Traffic, name: str, protocol: str, route: Route, scenario: Scenario
) -> FlowSpec:
    """Common properties of the flows of a source; each flow has its own start and size."""
    like = Flow.model_construct(
        name=name,
        initial_window=10 if traffic.initial_window is None else traffic.initial_window,
        delayed_ack=bool(traffic.delayed_ack),
        pacing=traffic.pacing,
        ecn=traffic.ecn,
        access_rate=traffic.access_rate,
    )
    return _flow(like, protocol, route, scenario)


def _stop_s(entry: Flow | Traffic, duration_s: float) -> float:
    return duration_s if entry.stop is None else min(entry.stop, duration_s)
