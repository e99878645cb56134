"""The max-min allocation of a network in which all flows are active, by scenario entry."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from waterfill.contract.network import Network
from waterfill.network import maxmin

# Acknowledgements are a few per cent of the rates they depend on, so a few rounds converge.
_ROUNDS = 20


class Group(NamedTuple):
    """Identical flows in equilibrium: rate (bit/s), RTT (s), number of flows, path and bottleneck.

    `path` holds link indexes; `bottleneck` is None if the flows get their demand.
    """

    rate_bps: float
    rtt_s: float
    number: int
    path: tuple[int, ...]
    bottleneck: int | None


def max_min(
    network: Network, targets: Mapping[str, float], *, acknowledgements: bool = False
) -> list[Group]:
    """Return the max-min allocation, one group per entry of the scenario.

    `targets` maps protocols to their target utilization. Capacity is target × rate less the other
    traffic; with `acknowledgements` also less those, since a router counts them as load.
    """
    classes, of_flow = maxmin.classes_of(network)
    counts = [0] * len(classes)
    for c in of_flow:
        counts[c] += 1
    capacity = [
        target * link.rate_bps
        for target, link in zip(maxmin.link_targets(network, targets), network.links, strict=True)
    ]
    for source in network.traffic:
        for index in source.path:
            capacity[index] -= maxmin.offered_bps(source)
    firsts = list(itertools.accumulate((flow.count for flow in network.flows), initial=0))[:-1]
    kinds = [of_flow[first] for first in firsts]
    shares = maxmin.solve(capacity, classes, counts)
    for _ in range(_ROUNDS if acknowledgements else 0):
        load = maxmin.acknowledgements_bps(network, [_rate(shares[c]) for c in kinds])
        left = [c - a for c, a in zip(capacity, load, strict=True)]
        shares = maxmin.solve(left, classes, counts)
    found = []
    for flow, c in zip(network.flows, kinds, strict=True):
        share = shares[c]
        bottleneck = None if share is None else share.bottleneck
        found.append(Group(_rate(share), flow.base_rtt_s, flow.count, flow.forward, bottleneck))
    return found


def _rate(share: maxmin.Share | None) -> float:
    return 0.0 if share is None else share.rate_bps


def rtts_s(network: Network) -> list[float]:
    """Return the distinct base RTTs (s) of a network's flows, smallest first."""
    return sorted({flow.base_rtt_s for flow in network.flows})


def link_names(network: Network, links: Iterable[int | None]) -> list[str]:
    """Return the names of links given by index, and "demand" for None."""
    return ["demand" if i is None else network.links[i].name for i in links]
