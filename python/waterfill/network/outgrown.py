"""Warnings of shares that are out of reach because hosts keep the RTT of a shorter path.

A law whose window is its rate times the smallest RTT sends too little after its path became longer,
until its hosts forget the old RTT (`base_rtt_window`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from waterfill.contract.network import FlowSpec, LinkSpec, Network
from waterfill.contract.summary import CoreFlow
from waterfill.network.protocols import Protocols
from waterfill.scenario.units import TIME, WINDOW, percent

# Growth of the RTT from which a warning is due, and the part of its share that a flow then lacks.
_GROWTH = 1.05
_PART = 0.9


def warnings_of(
    network: Network,
    protocols: Protocols,
    flows: Iterable[CoreFlow],
    shares_bps: Sequence[float | None],
) -> Iterator[tuple[str, str]]:
    """Yield (key, message) for each group of which a flow misses its share for this reason.

    `flows` are those of the core's summary, with one share (bit/s) each.
    """
    specs, named = {spec.name: spec for spec in network.flows}, set[str]()
    for flow, share_bps in zip(flows, shares_bps, strict=True):
        spec = specs[flow.group]
        used = protocols[spec.protocol].base_rtt
        if flow.group in named or used is None or not used.limits_rate:
            continue
        if not share_bps or flow.rate_bps is None or flow.rate_bps >= _PART * share_bps:
            continue
        kept_s, now_s = _rtts_s(spec, flow.index, network.links, network.measure_s[1])
        if now_s > _GROWTH * kept_s:
            named.add(flow.group)
            yield (
                f"flow.{flow.group}.base_rtt_window",
                f"its rate is {percent(flow.rate_bps / share_bps)} of its share, because its hosts "
                f"use an RTT of {TIME.format(kept_s)} and the path has {TIME.format(now_s)}; "
                + _advice(spec.base_rtt_window_s),
            )


def _advice(window_s: float | None) -> str:
    if window_s is None:
        return 'write a time such as "10 s", after which they forget an RTT'
    return f"they forget it after {WINDOW.format(window_s)}"


def _rtts_s(
    spec: FlowSpec, index: int, links: Sequence[LinkSpec], end_s: float
) -> tuple[float, float]:
    """Return the smallest RTT (s) that a flow's host remembers at a time, and the path's then."""
    start_s = spec.start_of_s(index)
    since_s = start_s if spec.base_rtt_window_s is None else end_s - spec.base_rtt_window_s
    since_s = max(since_s, start_s)
    ways = [(way.at_s, (*way.forward, *way.reverse)) for way in spec.ways if way.at_s <= end_s]
    delays_s = {i: links[i].delay_s for _, path in ways for i in path}
    # Of one time, a route (-1) comes before the links' delays.
    changes: list[tuple[float, int, float]] = sorted(
        [(at_s, -1, 0.0) for at_s, _ in ways[1:]]
        + [
            (change.at_s, i, change.delay_s)
            for i in delays_s
            for change in links[i].changes
            if change.delay_s is not None and change.at_s <= end_s
        ]
    )
    routes = iter([path for _, path in ways])
    path = next(routes)
    pad_s = 2 * spec.pad_of_s(index)
    kept_s = now_s = pad_s + sum(delays_s[i] for i in path)
    for at_s, i, delay_s in changes:
        if i < 0:
            path = next(routes)
            now_s = pad_s + sum(delays_s[i] for i in path)
        else:
            now_s += path.count(i) * (delay_s - delays_s[i])
            delays_s[i] = delay_s
        kept_s = now_s if at_s <= since_s else min(kept_s, now_s)
    return kept_s, now_s
