"""The equilibrium of XCP, iXCP and P-XCP on any network: a fixed point over its links.

In equilibrium each link l gives the flows bottlenecked at it a change of zero. Let R be their rate
(for a weight of 1), y the link's input, φ = α(c − y), and h = max(0, γy − |φ|) per RTT. Then a flow
gains (h + φ)/N and loses h·R/y (ixcp-2007 eq. 1 and 2, empty queue). A flow runs at the smallest R
on its path, or at its demand. A link sees two kinds of flows that are bottlenecked elsewhere:

- *Downstream* (or limited by their demand): the link assigns them increases that they cannot use,
  so the gain is lost. That alone is x = (y/N)·γy/(γy − α(c − y)), the model of ixcp-2007's Fig. 2.
- *Upstream*: they arrive with a feedback that is already smaller. The draft's residue step counts
  the difference as an assigned loss, so the losses are used up before the interval ends. Local
  flows, which only gain from then on, keep more: they lose a fraction s < 1 of h·R/y.

A flow that its demand limits may state a higher rate than it has (`stated`): up to R, where its
gains equal its losses, or up to a multiple of its rate, and then the rest of its gains is lost.

iXCP shuffles only among flows bottlenecked at the link, so its equilibrium is max-min. P-XCP
multiplies φ by N/N_b, where N_b is the number of flows not bottlenecked upstream.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from waterfill.contract.network import Network
from waterfill.network.maxmin import acknowledgements_bps, offered_bps
from waterfill.theory import params
from waterfill.theory.loops import Reals
from waterfill.theory.roots import brentq

Flags: TypeAlias = NDArray[np.bool_]

PROTOCOLS = ("xcp", "ixcp", "pxcp")
# A source uses no gain while less than half of its window is in use. So a flow that its demand
# limits states up to this times its rate, and more where its packets are few.
IDLE_STATES = 2.0
_MAX_SWEEPS = 500
_CONVERGED = 1e-10
# Relative change of a link's capacity, to see how its flows respond.
_NUDGE = 1e-5
# Rounds in which acknowledgements, which depend on rates, converge, and when they have.
_ACK_ROUNDS = 20
_ACK_CONVERGED = 1e-9


class Gains(NamedTuple):
    """XCP's gains α and γ, without a unit; whether routers have the draft's residues."""

    alpha: float
    gamma: float
    residues: bool = True

    @classmethod
    def of(cls, values: params.Values) -> Gains:
        """Return the gains read from the registry's values."""
        alpha, gamma = (params.number(values, name) for name in ("alpha", "gamma"))
        return cls(alpha, gamma, values["residues"] is True)


class FlowClass(NamedTuple):
    """A class of `number` identical flows: path as link indexes, weight, and demand (bit/s, or
    inf).
    """

    path: tuple[int, ...]
    weight: float
    demand_bps: float
    number: int


class FixedPoint(NamedTuple):
    """The equilibrium of a network of XCP flows.

    Per class: `rates_bps` of one flow, and `bottleneck`, the link that limits it (None: demand).
    Per link: `inputs_bps`, `limits_bps` (R; inf if no flow is bottlenecked there) and `losses_kept`
    (s above). `residual` is the last sweep's largest relative change.
    """

    rates_bps: list[float]
    bottleneck: list[int | None]
    inputs_bps: list[float]
    limits_bps: list[float]
    losses_kept: list[float]
    residual: float


class _Rules(NamedTuple):
    """Rule for the feedback of a link: gains, protocol, and use of the residue step."""

    gains: Gains
    protocol: str
    residue: bool


class _Link(NamedTuple):
    """A link's classes of flows (indexes, weights, counts, `stated`), and other load (bit/s)."""

    capacity: float
    other: float
    members: Reals
    weights: Reals
    counts: Reals
    stated: Reals


class _Members(NamedTuple):
    """Limits (bit/s) of a link's flow classes elsewhere, and flags for limits upstream.

    `before` and `others` are the limits of links upstream and of all other links, `demands` the
    classes' own, of which they state up to `stated`.
    """

    caps: Reals
    upstream: Flags
    before: Reals
    others: Reals
    demands: Reals
    stated: Reals


class _Balance(NamedTuple):
    """Balance of a link: its input y (bit/s), a flow's net change at limit R, and the fraction s of
    assigned losses that take effect.
    """

    y: float
    change: float
    kept: float


def solve(
    capacity_bps: Sequence[float],
    classes: Sequence[FlowClass],
    gains: Gains,
    protocol: str = "xcp",
    other_bps: Sequence[float] | None = None,
    residue: bool = True,
    stated: Sequence[float] | None = None,
) -> FixedPoint:
    """Find the fixed point of XCP, iXCP or P-XCP for classes of flows.

    `other_bps` is the load on each link that no router here controls. Without `residue` the draft's
    residue step is left out. `stated` has for each class up to how many times its demand it states
    where the demand limits it: 1 unless given, as if a link downstream limited it; the registry's
    source states at least `IDLE_STATES`. Raises ValueError if the sweeps do not converge.
    """
    rules = _Rules(gains, protocol, residue and gains.residues)
    links = _links(capacity_bps, classes, other_bps or [0.0] * len(capacity_bps), stated)
    limits = [math.inf] * len(links)
    kept = [1.0] * len(links)
    change = math.inf
    for _ in range(_MAX_SWEEPS):
        before = list(limits)
        for index, link in enumerate(links):
            if not len(link.members):
                continue
            limits[index], kept[index] = _limit(
                link, _elsewhere(index, link, classes, limits), rules
            )
        pairs = zip(before, limits, strict=True)
        change = max((_relative_change(old, new) for old, new in pairs), default=0.0)
        if change < _CONVERGED:
            break
    else:
        raise ValueError(f"the rates do not converge, they still change by {change:.2g}")
    rates, bottlenecks = [], []
    for flow in classes:
        at = min(flow.path, key=lambda index: limits[index])
        rate = flow.weight * limits[at]
        rates.append(min(rate, flow.demand_bps))
        bottlenecks.append(None if flow.demand_bps <= rate else at)
    inputs = [
        link.other + math.fsum(
            rates[int(c)] * n for c, n in zip(link.members, link.counts, strict=True)
        )
        for link in links
    ]  # fmt: skip
    return FixedPoint(rates, bottlenecks, inputs, limits, kept, change)


def _relative_change(old: float, new: float) -> float:
    if old == new:
        return 0.0
    return math.inf if math.isinf(old) or math.isinf(new) else abs(new - old) / new


def _links(
    capacity_bps: Sequence[float],
    classes: Sequence[FlowClass],
    other_bps: Sequence[float],
    stated: Sequence[float] | None,
) -> list[_Link]:
    members: list[list[int]] = [[] for _ in capacity_bps]
    for index, flow in enumerate(classes):
        for link in flow.path:
            members[link].append(index)
    return [
        _Link(
            capacity, other, np.array(mine, dtype=np.float64),
            np.array([classes[c].weight for c in mine]),
            np.array([float(classes[c].number) for c in mine]),
            np.array([1.0 if stated is None else stated[c] for c in mine]),
        )
        for capacity, other, mine in zip(capacity_bps, other_bps, members, strict=True)
    ]  # fmt: skip


def _elsewhere(
    index: int, link: _Link, classes: Sequence[FlowClass], limits: Sequence[float]
) -> _Members:
    """Return the limits of a link's flow classes at all other links."""
    caps, upstream, befores, others, demands = [], [], [], [], []
    for c in link.members:
        flow = classes[int(c)]
        here = flow.path.index(index)
        before = min((limits[i] for i in flow.path[:here]), default=math.inf) * flow.weight
        after = min((limits[i] for i in flow.path[here + 1 :]), default=math.inf) * flow.weight
        caps.append(min(before, after, flow.demand_bps))
        upstream.append(before <= min(after, flow.demand_bps))
        befores.append(before)
        others.append(min(before, after))
        demands.append(flow.demand_bps)
    return _Members(
        np.array(caps), np.array(upstream, dtype=np.bool_), np.array(befores), np.array(others),
        np.array(demands), link.stated,
    )  # fmt: skip


def _limit(link: _Link, members: _Members, rules: _Rules) -> tuple[float, float]:
    """Return a link's rate limit R and loss fraction s. R is inf if the link limits no flow."""

    def balance(limit: float) -> _Balance:
        return _balance(link, members, limit, rules)

    def change(limit: float) -> float:
        return balance(limit).change

    # A flow alone may reach c; twice that is more than any link gives in equilibrium.
    low = 1e-9 * link.capacity / float(np.sum(link.weights * link.counts))
    # Beyond its demand a flow's stated rate may still grow with R.
    stated = np.minimum(members.others, members.stated * members.demands)
    own = np.concatenate([members.caps, stated]) / np.concatenate([link.weights, link.weights])
    high = min(2 * link.capacity / float(np.min(link.weights)), float(np.max(own)))
    if high <= low or change(high) > 0:
        return math.inf, balance(high).kept
    # The change falls as R grows, except for jumps where a flow stops being bottlenecked here. The
    # lowest zero is the one that a rising rate reaches first.
    edges = np.unique(np.concatenate([[low], np.sort(own[(own > low) & (own < high)]), [high]]))
    for start, end in itertools.pairwise(edges):
        if change(float(end)) <= 0:
            if change(float(start)) <= 0:
                return float(start), balance(float(start)).kept
            # Just below `end` the flow limited there is still local: there is no jump inside.
            root = float(brentq(change, float(start), float(end), xtol=1e-9 * low, rtol=1e-13))
            return root, balance(root).kept
    return math.inf, 1.0


def _balance(link: _Link, members: _Members, limit: float, rules: _Rules) -> _Balance:
    """Apply eq. 1 to 3 and the residue step, with `limit` as the rate of a weight of 1."""
    gains, protocol = rules.gains, rules.protocol
    asked = link.weights * limit
    local = members.caps >= asked
    rates = np.minimum(members.caps, asked)
    volume = rates * link.counts
    limits = np.minimum(members.others, asked)
    idle = (members.demands < limits) & (members.stated > 1)
    # The rate that a flow states over the one that it has.
    stated = np.where(idle, np.minimum(limits / members.demands, members.stated), 1.0)
    weight = link.weights * link.counts / stated
    own_y = float(volume.sum())
    y = own_y + link.other
    shuffling = np.ones(len(members.caps), dtype=bool)
    if protocol == "ixcp":
        shuffling = local | (idle & (asked <= members.others))
    spare = gains.alpha * (link.capacity - y)
    y_in, weight_in = float(volume[shuffling].sum()), float(weight[shuffling].sum())
    shuffled = max(0.0, gains.gamma * y_in - abs(spare)) if weight_in > 0 else 0.0
    up = np.where(idle, members.before < asked, members.upstream & ~local)
    gained = max(spare, 0.0)
    if protocol == "pxcp":
        here = float(weight[~up].sum())
        gained *= max(1.0, float(weight.sum()) / max(here, 1.0))
    # Gains are per weight of 1, losses per bit/s.
    gain = gained / float(weight.sum()) + (shuffled / weight_in if shuffled > 0 else 0.0)
    loss = max(-spare, 0.0) / y + (shuffled / y_in if shuffled > 0 else 0.0)
    kept = 1.0
    if rules.residue and protocol != "ixcp" and loss > 0:
        # `[draft-falk:residue]` given = 0 on average: such a flow uses up as much loss as gain.
        used = loss * float(volume[~up].sum()) + gain * float(weight[up].sum())
        kept = min(1.0, loss * own_y / used) if used > 0 else 1.0
    return _Balance(y, gain - kept * loss * limit, kept)


def classes_of(network: Network) -> list[FlowClass]:
    """Return one class of flows per flow entry of a network."""
    return [
        FlowClass(
            flow.forward, flow.weight, flow.limit_bps, flow.count,
        )
        for flow in network.flows
    ]  # fmt: skip


def of_network(
    network: Network,
    gains: Gains,
    protocol: str,
    residue: bool = True,
    stated: Sequence[float] | None = None,
) -> FixedPoint:
    """Find the fixed point of a network in which all flows are active and use `protocol`.

    Capacity is a link's rate, or its own target's share of it. Other traffic (its mean rate) and
    acknowledgements are load that no router here controls. `residue` and `stated` as in `solve`.
    """
    return _of_network(network, gains, protocol, residue, stated)[0]


def _of_network(
    network: Network,
    gains: Gains,
    protocol: str,
    residue: bool,
    stated: Sequence[float] | None = None,
) -> tuple[FixedPoint, list[_Link]]:
    classes = classes_of(network)
    capacity = [(link.target or 1.0) * link.rate_bps for link in network.links]
    traffic = [0.0] * len(capacity)
    for source in network.traffic:
        for index in source.path:
            traffic[index] += offered_bps(source)
    other = traffic
    point = solve(capacity, classes, gains, protocol, other, residue, stated)
    for _ in range(_ACK_ROUNDS):
        acks = acknowledgements_bps(network, point.rates_bps)
        other = [a + b for a, b in zip(acks, traffic, strict=True)]
        before, point = point, solve(capacity, classes, gains, protocol, other, residue, stated)
        pairs = zip(before.rates_bps, point.rates_bps, strict=True)
        if max(abs(a - b) / b for a, b in pairs) < _ACK_CONVERGED:
            break
    return point, _links(capacity, classes, other, stated)


class Response(NamedTuple):
    """Response of a link's own flows to a change in spare capacity, in equilibrium.

    `idle` is the fraction of its capacity that is unused. `parts` maps each class bottlenecked here
    (its index among the network's entries) to the fraction of a change of φ = α(c − y) that one
    flow's change per RTT takes up.
    """

    idle: float
    parts: dict[int, float]


def responses(network: Network, gains: Gains, protocol: str) -> list[Response | None]:
    """Return each link's response at the fixed point, or None if no flow is bottlenecked there.

    A link shared by identical flows gives each 1/N of φ. If flows bottlenecked downstream leave it
    partly idle, then φ > 0, and more of it means less shuffling, h = γy − φ: gains do not change
    and losses shrink. Losses are proportional to rates, so a flow takes up x/y of φ.
    """
    point, links = _of_network(network, gains, protocol, True)
    rules = _Rules(gains, protocol, gains.residues)
    classes = classes_of(network)
    found: list[Response | None] = []
    for index, link in enumerate(links):
        limit = point.limits_bps[index]
        if not math.isfinite(limit) or not len(link.members):
            found.append(None)
            continue
        members = _elsewhere(index, link, classes, point.limits_bps)
        # Capacity changes φ and nothing else.
        more = link._replace(capacity=link.capacity * (1 + _NUDGE))
        here, moved = (_balance(each, members, limit, rules) for each in (link, more))
        part = (moved.change - here.change) / (gains.alpha * link.capacity * _NUDGE)
        local = members.caps >= link.weights * limit
        mine = zip(link.members[local], link.weights[local], strict=True)
        idle = 1 - here.y / link.capacity
        found.append(Response(idle, {int(c): part * float(w) for c, w in mine}))
    return found
