"""Pairs of senders and receivers: permutation, all-to-all, incast and gravity."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from waterfill import _core
from waterfill.formats.layout import FlowPlan, Layout
from waterfill.network.patterns import Pair, all_to_all, permutation

__all__ = [
    "all_to_all", "flows", "gravity", "incast", "node_weights", "permutation", "scaled",
]  # fmt: skip


def incast(hosts: Sequence[str], senders: int, seed: int) -> list[Pair]:
    """Return pairs of `senders` random senders, all with the same random receiver."""
    if not 1 <= senders < len(hosts):
        raise ValueError(f"must be 1 to {len(hosts) - 1} senders, got {senders}")
    chosen = random.Random(f"incast/{seed}").sample(list(hosts), senders + 1)
    return [(sender, chosen[0]) for sender in chosen[1:]]


def gravity(
    weights: Mapping[str, float], given: Iterable[Pair], count: int | None, seed: int
) -> list[tuple[Pair, float]]:
    """Return pairs of hosts with the product of their weights. `count` pairs are drawn in
    proportion; None takes all.
    """
    pairs = [((a, b), weights[a] * weights[b]) for a, b in given]
    pairs = [(pair, product) for pair, product in pairs if product > 0]
    if count is None or count >= len(pairs):
        return pairs
    # Without replacement: the largest log(u)/w (Efraimidis and Spirakis, 2006).
    chance = random.Random(f"gravity/{seed}")
    keys = [(_core.ln(1 - chance.random()) / product, index)
            for index, (_, product) in enumerate(pairs)]  # fmt: skip
    chosen = sorted(index for _, index in sorted(keys, reverse=True)[:count])
    return [pairs[index] for index in chosen]


def node_weights(layout: Layout) -> dict[str, float]:
    """Return each host's weight for gravity traffic: the capacity of its outgoing links (bit/s)."""
    total: defaultdict[str, float] = defaultdict(float)
    for link in layout.links:
        for way in link.ways():
            total[way.start] += way.rate_bps
    return {host: total[host] for host in layout.hosts}


def flows(
    layout: Layout, pairs: Iterable[Pair], seed: int, *, size_bytes: int | None = None,
    count: int = 1, demands_bps: Mapping[Pair, float] | None = None,
) -> list[FlowPlan]:  # fmt: skip
    """Return a flow, named `SOURCE>SINK`, for each pair that has a route in both directions."""
    found = []
    seen: Counter[Pair] = Counter()
    for index, (start, end) in enumerate(pairs):
        path = layout.route(start, end, random.Random(f"route/{seed}/{index}"))
        if not path:
            continue
        back = None
        if not layout.simplex.isdisjoint(path):
            back = layout.route(end, start, random.Random(f"route/{seed}/{index}/back"))
            if not back:
                continue
        seen[start, end] += 1
        again = f"#{seen[start, end]}" if seen[start, end] > 1 else ""
        demand_bps = None if demands_bps is None else demands_bps[start, end]
        found.append(FlowPlan(f"{start}>{end}{again}", start, end, path, back, count,
                              size_bytes=size_bytes, demand_bps=demand_bps))  # fmt: skip
    return found


def scaled(layout: Layout, plans: Sequence[FlowPlan], load: float) -> list[FlowPlan]:
    """Scale all demands by one factor that gives the busiest link direction this load."""
    ways = {(link.name, way.start): way for link in layout.links for way in link.ways()}
    offered: defaultdict[tuple[str, str], float] = defaultdict(float)
    for plan in plans:
        node = plan.start
        for name in plan.path:
            offered[name, node] += (plan.demand_bps or 0.0) * plan.count
            node = ways[name, node].end
    busiest = max((bps / ways[at].rate_bps for at, bps in offered.items()), default=0.0)
    if busiest == 0:
        return list(plans)
    return [
        plan if plan.demand_bps is None
        else replace(plan, demand_bps=float(f"{plan.demand_bps * load / busiest:.6g}"))
        for plan in plans
    ]  # fmt: skip
