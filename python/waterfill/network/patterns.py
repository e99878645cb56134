"""Pairs of senders and receivers among the hosts of a network, and their capacity.

Importers and generators write the same patterns as flows; `[[traffic]]` has them as a key.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

Pair = tuple[str, str]


def permutation(hosts: Sequence[str], seed: int) -> list[Pair]:
    """Return a pair for each host, such that each receives once and none from itself."""
    if len(hosts) < 2:
        return []
    chance = random.Random(f"permutation/{seed}")
    order = list(hosts)
    chance.shuffle(order)
    # The next in a random cycle: never itself, and uniform over cycles.
    after = dict(zip(order, [*order[1:], order[0]], strict=True))
    return [(host, after[host]) for host in hosts]


def all_to_all(hosts: Sequence[str]) -> list[Pair]:
    """Return every ordered pair of hosts."""
    return [(a, b) for a in hosts for b in hosts if a != b]


def groups(pattern: str, hosts: Sequence[str], to: str | None, seed: int) -> list[list[Pair]]:
    """Return a pattern's pairs in groups; an arrival draws one group, then its flows from that.

    An incast has a group for each receiver: `to`, or every host.
    """
    if pattern == "permutation":
        return [permutation(hosts, seed)]
    if pattern == "all-to-all":
        return [all_to_all(hosts)]
    receivers = hosts if to is None else [to]
    return [[(host, sink) for host in hosts if host != sink] for sink in receivers]


class Hop(NamedTuple):
    """A link direction: where it begins and ends, and its rate (bit/s)."""

    start: str
    end: str
    rate_bps: float


def ends(hops: Iterable[Hop]) -> list[str]:
    """Return the nodes with a link to one other node only, or all nodes if none is like that."""
    beside: defaultdict[str, set[str]] = defaultdict(set)
    for hop in hops:
        beside[hop.start].add(hop.end)
        beside[hop.end].add(hop.start)
    found = [node for node, others in beside.items() if len(others) == 1]
    return found or list(beside)


def capacity_bps(hops: Iterable[Hop], hosts: Sequence[str]) -> float:
    """Return the rate at which all hosts together can send beyond their first switch (bit/s).

    That is the sum over first switches of the rate of their hosts' links, or of the links from the
    switch onwards if that is less: across a bisection no host gets more. Hosts with several
    neighbours count with all their links, and so do hosts that share their only switch.
    """
    members = set(hosts)
    leaving: defaultdict[str, list[Hop]] = defaultdict(list)
    for hop in hops:
        leaving[hop.start].append(hop)
    below: defaultdict[str, float] = defaultdict(float)
    own_bps = 0.0
    for host in hosts:
        rate_bps = sum(hop.rate_bps for hop in leaving[host])
        switches = {hop.end for hop in leaving[host]}
        if len(switches) == 1 and not switches & members:
            below[switches.pop()] += rate_bps
        else:
            own_bps += rate_bps
    if len(below) == 1:
        return own_bps + sum(below.values())
    return own_bps + sum(
        min(rate_bps, _onwards_bps(leaving, switch, members)) for switch, rate_bps in below.items()
    )


def _onwards_bps(leaving: Mapping[str, list[Hop]], switch: str, members: set[str]) -> float:
    return sum(hop.rate_bps for hop in leaving[switch] if hop.end not in members)
