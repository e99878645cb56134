"""Patterns of sender and receiver pairs among a network's hosts, and the hosts' capacity.

Importers and generators write the same patterns as flows; `[[traffic]]` has them as a key.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

Pair = tuple[str, str]


def permutation(hosts: Sequence[str], seed: int) -> list[Pair]:
    """Return a pair for each host as sender. Each host receives once, and never from itself."""
    if len(hosts) < 2:
        return []
    chance = random.Random(f"permutation/{seed}")
    order = list(hosts)
    chance.shuffle(order)
    # The next in a random cycle: never itself, and uniform over cycles.
    after = dict(zip(order, [*order[1:], order[0]], strict=True))
    return [(host, after[host]) for host in hosts]


def all_to_all(hosts: Sequence[str]) -> list[Pair]:
    """Return all ordered pairs of different hosts."""
    return [(a, b) for a in hosts for b in hosts if a != b]


def groups(pattern: str, hosts: Sequence[str], to: str | None, seed: int) -> list[list[Pair]]:
    """Return the pairs of a pattern in groups. Each arrival draws a group, and the pairs of its
    flows from that group.

    An incast has a group for each receiver: `to`, or every host.
    """
    if pattern == "permutation":
        return [permutation(hosts, seed)]
    if pattern == "all-to-all":
        return [all_to_all(hosts)]
    receivers = hosts if to is None else [to]
    return [[(host, sink) for host in hosts if host != sink] for sink in receivers]


class Hop(NamedTuple):
    """A link direction: its start node, its end node and its rate (bit/s)."""

    start: str
    end: str
    rate_bps: float


def capacity_bps(hops: Iterable[Hop], hosts: Sequence[str]) -> float:
    """Return the total rate (bit/s) at which all hosts can send beyond their first switch.

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
        rate_bps = math.fsum(hop.rate_bps for hop in leaving[host])
        switches = {hop.end for hop in leaving[host]}
        if len(switches) == 1 and not switches & members:
            below[switches.pop()] += rate_bps
        else:
            own_bps += rate_bps
    if len(below) == 1:
        return own_bps + math.fsum(below.values())
    return own_bps + math.fsum(
        min(rate_bps, _onwards_bps(leaving, switch, members)) for switch, rate_bps in below.items()
    )


def _onwards_bps(leaving: Mapping[str, list[Hop]], switch: str, members: set[str]) -> float:
    return math.fsum(hop.rate_bps for hop in leaving[switch] if hop.end not in members)
