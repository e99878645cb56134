"""Where XCP, iXCP and P-XCP come to rest on any network: a fixed point over its links.

At rest each link l gives its own flows a change of zero: with R its rate (for a weight of 1), y
its input, φ = α(c − y) and h = max(0, γy − |φ|) per round trip, a flow gains (h + φ)/N and loses
h·R/y (ixcp-2007 eq. 1 and 2, empty queue). A flow runs at the smallest R of its path, or its
demand. Other links see two kinds of it:

- bottlenecked *downstream* (or by its demand), it is given what it cannot use: the gain is lost.
  That alone is x = (y/N)·γy/(γy − α(c − y)), the model behind ixcp-2007's Fig. 2.
- bottlenecked *upstream*, it arrives with a feedback that is already smaller. The draft's residue
  step counts the difference as a loss dealt out, so the losses are used up before the interval
  ends, and local flows, who then only gain, keep more: they lose a part s < 1 of h·R/y.

iXCP shuffles only among flows that are bottlenecked at the link, so that the rest is max-min.
P-XCP multiplies φ by N/N_b, N_b the flows not bottlenecked upstream.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from waterfill.contract.network import Network
from waterfill.network.maxmin import acknowledgements_bps, offered_bps
from waterfill.theory.loops import Reals

Flags: TypeAlias = NDArray[np.bool_]

PROTOCOLS = ("xcp", "ixcp", "pxcp")
_SWEEPS = 500
_CLOSE = 1e-10
# By what part a capacity is changed to see what its flows do.
_NUDGE = 1e-5


class FlowClass(NamedTuple):
    """`number` flows alike: link indexes in order, weight, demand in bit/s (inf: none)."""

    path: tuple[int, ...]
    weight: float
    demand_bps: float
    number: int


class Rest(NamedTuple):
    """Where the network rests.

    `rates_bps`: a flow of each class; `bottleneck`: the link that bounds it, None its demand;
    `inputs_bps`, `limits_bps` (for a weight of 1; inf where nobody is bottlenecked) and
    `losses_kept` (s above) of each link; `residual`: the last sweep's largest relative change.
    """

    rates_bps: list[float]
    bottleneck: list[int | None]
    inputs_bps: list[float]
    limits_bps: list[float]
    losses_kept: list[float]
    residual: float


class _Link(NamedTuple):
    """A link's classes: their numbers, weights, counts; what else arrives, in bit/s."""

    capacity: float
    other: float
    members: Reals
    weights: Reals
    counts: Reals


class _Balance(NamedTuple):
    """What a link deals out: input, net change of a flow at its limit, part of losses dealt out."""

    y: float
    change: float
    kept: float


def solve(
    capacity_bps: Sequence[float],
    classes: Sequence[FlowClass],
    params: Mapping[str, Any],
    protocol: str = "xcp",
    other_bps: Sequence[float] | None = None,
    residue: bool = True,
) -> Rest:
    """The fixed point; `other_bps` is load on each link that no router here controls.

    `params` has alpha and gamma. `residue` off leaves the draft's residue step out. Raises
    ValueError when the sweeps do not settle.
    """
    links = _links(capacity_bps, classes, other_bps or [0.0] * len(capacity_bps))
    limits = [math.inf] * len(links)
    kept = [1.0] * len(links)
    change = math.inf
    for _ in range(_SWEEPS):
        before = list(limits)
        for number, link in enumerate(links):
            if not len(link.members):
                continue
            caps, upstream = _elsewhere(number, link, classes, limits)
            limits[number], kept[number] = _limit(link, caps, upstream, params, protocol, residue)
        pairs = zip(before, limits, strict=True)
        change = max((_step(old, new) for old, new in pairs), default=0.0)
        if change < _CLOSE:
            break
    else:
        raise ValueError(f"expected the rates to settle, they still change by {change:.2g}")
    rates, bounds = [], []
    for flow in classes:
        at = min(flow.path, key=lambda number: limits[number])
        rate = flow.weight * limits[at]
        rates.append(min(rate, flow.demand_bps))
        bounds.append(None if flow.demand_bps <= rate else at)
    inputs = [
        link.other + math.fsum(
            rates[int(c)] * n for c, n in zip(link.members, link.counts, strict=True)
        )
        for link in links
    ]  # fmt: skip
    return Rest(rates, bounds, inputs, limits, kept, change)


def _step(old: float, new: float) -> float:
    if old == new:
        return 0.0
    return math.inf if math.isinf(old) or math.isinf(new) else abs(new - old) / new


def _links(
    capacity_bps: Sequence[float], classes: Sequence[FlowClass], other_bps: Sequence[float]
) -> list[_Link]:
    members: list[list[int]] = [[] for _ in capacity_bps]
    for number, flow in enumerate(classes):
        for link in flow.path:
            members[link].append(number)
    return [
        _Link(
            capacity, other, np.array(mine, dtype=np.float64),
            np.array([classes[c].weight for c in mine]),
            np.array([float(classes[c].number) for c in mine]),
        )
        for capacity, other, mine in zip(capacity_bps, other_bps, members, strict=True)
    ]  # fmt: skip


def _elsewhere(
    number: int, link: _Link, classes: Sequence[FlowClass], limits: Sequence[float]
) -> tuple[Reals, Flags]:
    """For each class here: what bounds it elsewhere (bit/s), and whether upstream of here."""
    caps, upstream = [], []
    for c in link.members:
        flow = classes[int(c)]
        here = flow.path.index(number)
        before = min((limits[i] for i in flow.path[:here]), default=math.inf) * flow.weight
        after = min((limits[i] for i in flow.path[here + 1 :]), default=math.inf) * flow.weight
        caps.append(min(before, after, flow.demand_bps))
        upstream.append(before <= min(after, flow.demand_bps))
    return np.array(caps), np.array(upstream, dtype=np.bool_)


def _limit(
    link: _Link,
    caps: Reals,
    upstream: Flags,
    params: Mapping[str, Any],
    protocol: str,
    residue: bool,
) -> tuple[float, float]:
    """R of the link, inf when nobody is bottlenecked here; and the part of losses dealt out."""

    def change(limit: float) -> float:
        return _balance(link, caps, upstream, limit, params, protocol, residue).change

    # Alone a flow may go to c; twice that is more than any link at rest gives.
    low = 1e-9 * link.capacity / float(np.sum(link.weights * link.counts))
    own = caps / link.weights
    high = min(2 * link.capacity / float(np.min(link.weights)), float(np.max(own)))
    if high <= low or change(high) > 0:
        return math.inf, _balance(link, caps, upstream, high, params, protocol, residue).kept
    # The change falls as R grows but for jumps where a flow stops being bottlenecked here: the
    # lowest zero is the one that a rising rate meets first.
    edges = np.unique(np.concatenate([[low], np.sort(own[(own > low) & (own < high)]), [high]]))
    for start, end in itertools.pairwise(edges):
        if change(float(end)) <= 0:
            if change(float(start)) <= 0:
                return float(start), _kept(link, caps, upstream, start, params, protocol, residue)
            # Just below `end` the flow bounded there is still local: no jump inside.
            root = float(brentq(change, float(start), float(end), xtol=1e-9 * low, rtol=1e-13))
            return root, _kept(link, caps, upstream, root, params, protocol, residue)
    return math.inf, 1.0


def _kept(
    link: _Link, caps: Reals, upstream: Flags, limit: float, params: Mapping[str, Any],
    protocol: str, residue: bool,
) -> float:  # fmt: skip
    return _balance(link, caps, upstream, float(limit), params, protocol, residue).kept


def _balance(
    link: _Link, caps: Reals, upstream: Flags, limit: float, params: Mapping[str, Any],
    protocol: str, residue: bool,
) -> _Balance:  # fmt: skip
    """What the link deals out when a weight of 1 gets `limit`: eq. 1 to 3 and the residue step."""
    asked = link.weights * limit
    local = caps >= asked
    rates = np.minimum(caps, asked)
    volume = rates * link.counts
    weight = link.weights * link.counts
    own_y = float(volume.sum())
    y = own_y + link.other
    shuffling = local if protocol == "ixcp" else np.ones(len(caps), dtype=bool)
    spare = params["alpha"] * (link.capacity - y)
    y_in, weight_in = float(volume[shuffling].sum()), float(weight[shuffling].sum())
    shuffled = max(0.0, params["gamma"] * y_in - abs(spare)) if weight_in > 0 else 0.0
    up = upstream & ~local
    gained = max(spare, 0.0)
    if protocol == "pxcp":
        here = float(weight[~up].sum())
        gained *= max(1.0, float(weight.sum()) / max(here, 1.0))
    # Gains for a weight of 1, and losses for each bit/s.
    gain = gained / float(weight.sum()) + (shuffled / weight_in if shuffled > 0 else 0.0)
    loss = max(-spare, 0.0) / y + (shuffled / y_in if shuffled > 0 else 0.0)
    kept = 1.0
    if residue and protocol != "ixcp" and loss > 0:
        # `[draft-falk:residue]` given = 0 on average: such a flow uses up as much loss as gain.
        used = loss * float(volume[~up].sum()) + gain * float(weight[up].sum())
        kept = min(1.0, loss * own_y / used) if used > 0 else 1.0
    return _Balance(y, gain - kept * loss * limit, kept)


def downstream_only(c: float, y: float, flows: float, alpha: float, gamma: float) -> float:
    """x = (y/N)·γy/(γy − α(c − y)): a flow bottlenecked here, the others downstream."""
    return y / flows * gamma * y / (gamma * y - alpha * (c - y))


def classes_of(network: Network) -> list[FlowClass]:
    """A class for each of a core network's entries."""
    return [
        FlowClass(
            flow.forward, flow.weight,
            math.inf if flow.demand_bps is None else flow.demand_bps, flow.count,
        )
        for flow in network.flows
    ]  # fmt: skip


def of_network(
    network: Network, params: Mapping[str, Any], protocol: str, residue: bool = True
) -> Rest:
    """The fixed point of a core network when all its flows are there and speak `protocol`.

    Capacity is a link's, or its own target's share of it. Other traffic (its rate at any time,
    summed) and acknowledgements are load that nobody controls here.
    """
    return _of_network(network, params, protocol, residue)[0]


def _of_network(
    network: Network, params: Mapping[str, Any], protocol: str, residue: bool
) -> tuple[Rest, list[_Link]]:
    classes = classes_of(network)
    capacity = [(link.target or 1.0) * link.rate_bps for link in network.links]
    traffic = [0.0] * len(capacity)
    for source in network.traffic:
        for link in source.path:
            traffic[link] += offered_bps(source)
    other = traffic
    rest = solve(capacity, classes, params, protocol, other, residue)
    for _ in range(20):
        acks = acknowledgements_bps(network, rest.rates_bps)
        other = [a + b for a, b in zip(acks, traffic, strict=True)]
        before, rest = rest, solve(capacity, classes, params, protocol, other, residue)
        pairs = zip(before.rates_bps, rest.rates_bps, strict=True)
        if max(abs(a - b) / b for a, b in pairs) < 1e-9:
            break
    return rest, _links(capacity, classes, other)


class Answer(NamedTuple):
    """How a link's own flows answer a change of its spare capacity at rest.

    `spare`: what of its capacity is idle; `parts`: for each class bounded here (its number among
    the network's entries), how much of a change of φ = α(c − y) one flow's change per round trip
    takes up.
    """

    spare: float
    parts: dict[int, float]


def answers(network: Network, params: Mapping[str, Any], protocol: str) -> list[Answer | None]:
    """Of each link of a core network at its fixed point; None where nobody is bounded.

    A link shared by flows alike gives each 1/N of φ. Where flows bounded downstream leave it
    partly idle, φ > 0 at rest, and more of it means less shuffling, h = γy − φ: gains stay as they
    are and losses shrink. These go by rates, so that a flow takes up x/y of φ.
    """
    rest, links = _of_network(network, params, protocol, True)
    classes = classes_of(network)
    found: list[Answer | None] = []
    for number, link in enumerate(links):
        limit = rest.limits_bps[number]
        if not math.isfinite(limit) or not len(link.members):
            found.append(None)
            continue
        caps, upstream = _elsewhere(number, link, classes, rest.limits_bps)
        # Capacity moves φ and nothing else.
        more = link._replace(capacity=link.capacity * (1 + _NUDGE))
        here, moved = (
            _balance(place, caps, upstream, limit, params, protocol, True) for place in (link, more)
        )
        part = (moved.change - here.change) / (params["alpha"] * link.capacity * _NUDGE)
        local = caps >= link.weights * limit
        mine = zip(link.members[local], link.weights[local], strict=True)
        spare = 1 - here.y / link.capacity
        found.append(Answer(spare, {int(c): part * float(w) for c, w in mine}))
    return found
