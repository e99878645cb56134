"""The exact weighted max-min fair allocation, by progressive filling (water-filling).

All rates rise together, each in proportion to its flow's weight, until a link is full or a flow
reaches its demand, or the rate of its access; those flows stop, the others rise on. Flows with the
same path, weight and demand have the same rate, so the computation handles classes of flows.

A link's capacity here is target × rate less the mean rate of packets without congestion control
offered to it, but not below zero. Its target is the scenario's, else the smallest target of the
protocols that use it, else 1. Active flows are greedy up to their demand; `size` is ignored. Flows
that a traffic source starts (web-like) get no share: their load depends on the other flows. Where a
link follows time, its rate is the one of the time, and zero while the link is down.
"""

from __future__ import annotations

import heapq
import itertools
import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from waterfill.contract.network import (
    DemandSpec,
    LinkSpec,
    Network,
    RouteChangeSpec,
    TrafficSpec,
)
from waterfill.contract.summary import CoreFlow


class FlowClass(NamedTuple):
    """A class of equal flows: path as link indexes, weight, and demand or access rate (bit/s, or
    inf). `limits` are its values over time, and `ways` the paths over time, if they change.
    """

    path: tuple[int, ...]
    weight: float
    demand_bps: float
    limits: tuple[DemandSpec, ...] = ()
    ways: tuple[RouteChangeSpec, ...] = ()

    def at(self, time_s: float) -> FlowClass:
        """Return the class with the path and the demand of a time (s)."""
        found = self
        if self.limits:
            limit = self.limits[bisect_right(self.limits, (time_s, math.inf)) - 1]
            found = found._replace(demand_bps=limit.rate_bps)
        if self.ways:
            now = max((way for way in self.ways if way.at_s <= time_s), key=lambda way: way.at_s)
            found = found._replace(path=now.forward)
        return found


class Share(NamedTuple):
    """Rate of one flow (bit/s) and its bottleneck link, or None if the demand limits the rate."""

    rate_bps: float
    bottleneck: int | None


class Interval(NamedTuple):
    """A time interval [from, to) (s) with constant shares, one per class (None if idle)."""

    from_s: float
    to_s: float
    shares: list[Share | None]


def solve(
    capacity_bps: Sequence[float], classes: Sequence[FlowClass], counts: Sequence[int]
) -> list[Share | None]:
    """Return the share of one flow of each class, with counts[c] active flows of class c.

    `capacity_bps` has one entry per link; negative ones count as zero. The result has one entry
    per class, None where the count is zero. Ties between bottlenecks go to the demand, then to
    the link with the smaller index.
    """
    shares: list[Share | None] = [None] * len(classes)
    rising: dict[int, list[int]] = {}  # link → classes on it that still rise
    # Entries (level, 0, class) are demands, (level, 1, link) links. The level is rate per weight.
    heap: list[tuple[float, int, int]] = []
    for c, (path, weight, demand_bps, *_) in enumerate(classes):
        if counts[c] == 0:
            continue
        if demand_bps < math.inf:
            heap.append((demand_bps / weight, 0, c))
        for link in path:
            rising.setdefault(link, []).append(c)
    room_bps = {link: capacity_bps[link] for link in rising}
    heap.extend((_level(room_bps[link], rising[link], classes, counts), 1, link) for link in rising)
    heapq.heapify(heap)
    reached = 0.0
    while heap:
        level, is_link, index = heapq.heappop(heap)
        if not is_link:
            if shares[index] is None:
                shares[index] = Share(classes[index].demand_bps, None)
                reached = max(reached, level)
            continue
        # Flows that stopped at lower levels leave more capacity to the others, so a level only
        # rises: update it here, and push it back if it rose.
        still: list[int] = []
        for c in rising[index]:
            share = shares[c]
            if share is None:
                still.append(c)
            else:
                room_bps[index] -= share.rate_bps * counts[c]
        if not still:
            continue
        if len(still) < len(rising[index]):
            rising[index] = still
            new = _level(room_bps[index], still, classes, counts)
            if new > level:
                heapq.heappush(heap, (new, 1, index))
                continue
        reached = max(reached, level)  # rounding must not lower the level
        for c in still:
            shares[c] = Share(min(reached * classes[c].weight, classes[c].demand_bps), index)
    return shares


def _level(
    room_bps: float, rising: Iterable[int], classes: Sequence[FlowClass], counts: Sequence[int]
) -> float:
    return max(0.0, room_bps) / math.fsum(classes[c].weight * counts[c] for c in rising)


def link_targets(network: Network, targets: Mapping[str, float]) -> list[float]:
    """Return the target utilization of each link.

    `targets` is {protocol: target}; the default is 1.
    """
    found: list[float] = [1.0] * len(network.links)
    ways = [(flow.protocol, way.forward) for flow in network.flows for way in flow.ways]
    if network.has_switched:
        from waterfill.network import switching

        ways += [(flow.protocol, tuple(links)) for flow, links in switching.crossed(network)]
    for source in network.traffic:
        if source.flows is not None:
            ways += [(source.flows.flow.protocol, way.forward) for way in source.flows.ways]
    for protocol, forward in ways:
        for index in forward:
            found[index] = min(found[index], targets.get(protocol, 1.0))
    return [
        least if link.target is None else link.target
        for link, least in zip(network.links, found, strict=True)
    ]


def offered_bps(source: TrafficSpec) -> float:
    """Return the mean rate of packets (bit/s) that a traffic source offers.

    For an on–off source, the rate while on times the fraction of time on. Zero for a source of
    flows.
    """
    rate_bps = source.rate_bps or 0.0
    if source.periods is None:
        return rate_bps
    on_s, off_s = source.periods.on_s.mean, source.periods.off_s.mean
    return rate_bps * (on_s / (on_s + off_s))


def acknowledgements_bps(network: Network, rates_bps: Sequence[float]) -> list[float]:
    """Return the load of acknowledgements on each link (bit/s), for a rate of each flow entry."""
    load = [0.0] * len(network.links)
    for flow, rate in zip(network.flows, rates_bps, strict=True):
        each = rate * network.ack_bytes / network.packet_bytes
        each /= flow.packets_per_ack
        for link in flow.reverse:
            load[link] += each * flow.count
    return load


def classes_of(network: Network) -> tuple[list[FlowClass], list[int]]:
    """Return all classes of flows, and the index of each single flow's class."""
    indexes: dict[FlowClass, int] = {}
    of_flow: list[int] = []
    for flow in network.flows:
        ways = tuple(flow.ways) if flow.routes else ()
        kind = FlowClass(flow.forward, flow.weight, flow.limit_bps, flow.limits, ways)
        of_flow.extend([indexes.setdefault(kind, len(indexes))] * flow.count)
    return list(indexes), of_flow


def lives_of(network: Network) -> list[tuple[float, float]]:
    """Return the scheduled life [start, stop) (s) of each individual flow, with the start rounded
    to picoseconds.
    """
    return [
        (round(flow.start_of_s(i), 12), flow.stop_s)
        for flow in network.flows
        for i in range(flow.count)
    ]


def lives_in(flows: Iterable[CoreFlow]) -> list[tuple[float, float]]:
    """Return the life [start, end) (s) of each flow in a run's summary, up to its completion."""
    lives = []
    for flow in flows:
        ends = (flow.stop_s, flow.completed_s)
        lives.append((flow.start_s, min(end for end in ends if end is not None)))
    return lives


def windows_in(flows: Iterable[CoreFlow]) -> list[tuple[float, float] | None]:
    """Return the averaging window [from, to) (s) of each flow's rate in a run's summary, or None
    for an idle flow.
    """
    windows = (flow.active_s for flow in flows)
    return [None if window is None else (window[0], window[1]) for window in windows]


def rate_steps(link: LinkSpec) -> list[tuple[float, float]]:
    """Return (time, rate) (s, bit/s) for each step of a link's rate. The rate is zero while the
    link is down.
    """
    rate_bps, up = link.rate_bps, True
    steps = [(0.0, rate_bps)]
    for change in link.changes:
        if change.rate_bps is None and change.up is None:
            continue
        rate_bps = rate_bps if change.rate_bps is None else change.rate_bps
        up = up if change.up is None else change.up
        steps.append((change.at_s, rate_bps if up else 0.0))
    return steps


def intervals(
    network: Network,
    targets: Mapping[str, float],
    lives: Sequence[tuple[float, float]],
    span_s: tuple[float, float],
) -> Iterator[Interval]:
    """Yield the allocation over `span_s`, split at each change of a flow, packet source or rate.

    `lives` has [start, end) (s) of every single flow. Shares are by class (`classes_of`).
    """
    classes, of_flow = classes_of(network)
    goals = link_targets(network, targets)
    rates = {index: rate_steps(link) for index, link in enumerate(network.links) if link.changes}
    aimed_bps = [goal * link.rate_bps for goal, link in zip(goals, network.links, strict=True)]
    changes: list[tuple[float, int, int]] = []  # time, +1 or −1, class
    for c, (start_s, end_s) in zip(of_flow, lives, strict=True):
        if start_s < end_s:
            changes += [(start_s, 1, c), (end_s, -1, c)]
    changes.sort()
    sources = [
        (t.start_s, t.stop_s, offered_bps(t), t.path) for t in network.traffic if offered_bps(t) > 0
    ]
    first_s, last_s = span_s
    steps_s = {time for source in sources for time in source[:2]}
    steps_s |= {time for steps in rates.values() for time, _ in steps}
    varying = [c for c, kind in enumerate(classes) if kind.limits or kind.ways]
    varied_s = {limit.at_s for c in varying for limit in classes[c].limits}
    varied_s |= {way.at_s for c in varying for way in classes[c].ways}
    inside = {time for time, _, _ in changes} | steps_s | varied_s
    times = [first_s, *sorted(time for time in inside if first_s < time < last_s), last_s]
    counts = [0] * len(classes)
    capacity_bps: list[float] = []
    done = 0
    for from_s, to_s in itertools.pairwise(times):
        while done < len(changes) and changes[done][0] <= from_s:
            _, step, c = changes[done]
            counts[c] += step
            done += 1
        if from_s == first_s or from_s in varied_s:
            for c in varying:
                classes[c] = classes[c].at(from_s)
        if from_s == first_s or from_s in steps_s:
            for index, steps in rates.items():
                rate_bps = steps[bisect_right(steps, (from_s, math.inf)) - 1][1]
                aimed_bps[index] = goals[index] * rate_bps
            capacity_bps = list(aimed_bps)
            for start_s, stop_s, rate_bps, path in sources:
                if start_s <= from_s < stop_s:
                    for link in path:
                        capacity_bps[link] -= rate_bps
        yield Interval(from_s, to_s, solve(capacity_bps, classes, counts))


def mean_rates(
    network: Network,
    targets: Mapping[str, float],
    active: Sequence[tuple[float, float] | None],
    lives: Sequence[tuple[float, float]],
) -> list[float | None]:
    """Return the time average of each flow's max-min share (bit/s) over its own window.

    `active` has each flow's window [from, to) (s), within its [start, end) in `lives`, or None.
    The result is None where the window is None or empty. The cost is one solution by classes per
    change, whatever the number of flows.
    """
    windows = [a if a is not None and a[0] < a[1] else None for a in active]
    some = [window for window in windows if window is not None]
    if not some:
        return [None] * len(windows)
    span_s = (min(a for a, _ in some), max(b for _, b in some))
    _, of_flow = classes_of(network)
    times: list[float] = [span_s[0]]
    volumes: dict[int, list[float]] = {
        c: [0.0] for c in set(of_flow)
    }  # bits since the start of the span
    rates: dict[int, list[float]] = {c: [] for c in volumes}
    for from_s, to_s, shares in intervals(network, targets, lives, span_s):
        times.append(to_s)
        for c in volumes:
            share = shares[c]
            rates[c].append(0.0 if share is None else share.rate_bps)
            volumes[c].append(volumes[c][-1] + rates[c][-1] * (to_s - from_s))

    def volume(c: int, time_s: float) -> float:
        i = min(bisect_right(times, time_s), len(times) - 1) - 1
        return volumes[c][i] + rates[c][i] * (time_s - times[i])

    return [
        None if w is None else (volume(c, w[1]) - volume(c, w[0])) / (w[1] - w[0])
        for c, w in zip(of_flow, windows, strict=True)
    ]
