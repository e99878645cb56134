"""s-PERC (Jose, Ibanez, Alizadeh, McKeown, SIGMETRICS 2019) in rounds, and 2-Waterfilling.

A flow's control packet carries four values for each link of its path: the bottleneck rate b that
the link computed last, the allocation x, the state ("E": limited elsewhere, "B": here), and whether
other links ignore b. A link keeps three numbers: the sum of the allocations of its flows in state
E, the number of its flows in state B, and MaxE, the largest allocation of state E since the last
round. The paper's theorem: all allocations are max-min fair within 6·N rounds, where N is the
number of iterations of 2-Waterfilling. In a round each flow's packet is seen by each of its links.

The paper's text was not available. The steps are those of its authors' simulator
(lavanyaj/numerical-simulations, `sperc_ignore`), the theorem is that of the abstract.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

EQUAL = 1e-9
"""Relative difference up to which two rates are equal."""
BOUND = 6
"""Rounds of the theorem per iteration of 2-Waterfilling."""


@dataclass(slots=True)
class Slot:
    """What a control packet carries for one link."""

    bottleneck: float = math.inf
    allocation: float = 0.0
    elsewhere: bool = True
    """True in state E."""
    ignored: bool = True


@dataclass(slots=True)
class Link:
    """State of a link. `tracks_max` is false for the law without MaxE, in which no rate is
    ignored.
    """

    capacity: float
    tracks_max: bool = True
    sum_elsewhere: float = 0.0
    here: int = 0
    max_elsewhere: float = 0.0
    next_max: float = 0.0

    def update(self, slot: Slot, limit: float) -> bool:
        """Update a packet's slot, where `limit` is the least bottleneck rate of the flow's other
        links. Return True if the slot changes.
        """
        before = (slot.bottleneck, slot.allocation, slot.elsewhere, slot.ignored)
        if slot.elsewhere:
            self.sum_elsewhere -= slot.allocation
            self.here += 1
        rate = (self.capacity - self.sum_elsewhere) / self.here
        slot.ignored = self.tracks_max and rate < self.max_elsewhere * (1 - EQUAL)
        slot.elsewhere = limit < rate * (1 - EQUAL)
        slot.bottleneck, slot.allocation = rate, limit if slot.elsewhere else rate
        if slot.elsewhere:
            self.sum_elsewhere += limit
            self.here -= 1
            self.max_elsewhere = max(self.max_elsewhere, limit)
            self.next_max = max(self.next_max, limit)
        rates = zip(before[:2], (slot.bottleneck, slot.allocation), strict=True)
        same = all(a == b or math.isclose(a, b, rel_tol=EQUAL) for a, b in rates)
        return not same or before[2:] != (slot.elsewhere, slot.ignored)

    def end_round(self) -> bool:
        """Forget MaxE of the round before. Return True if MaxE changes."""
        changed = not math.isclose(self.max_elsewhere, self.next_max, rel_tol=EQUAL)
        self.max_elsewhere, self.next_max = self.next_max, 0.0
        return changed


@dataclass
class Rounds:
    """Result of a run: `exact_after` is the last round in which an allocation was not max-min fair,
    or None if one is not after `count` rounds. `count` is the number of rounds until nothing
    changed.
    """

    count: int
    exact_after: int | None
    allocations: list[list[float]] = field(repr=False)


def run(
    capacities: Sequence[float],
    paths: Sequence[Sequence[int]],
    shares: Sequence[float],
    random: Random,
    most: int,
    *,
    tracks_max: bool = True,
) -> Rounds:
    """Run rounds in which the packets of all flows visit their links in an order drawn by `random`,
    until nothing changes, at most `most` of them. `shares` are the max-min fair rates.
    """
    links = [Link(capacity, tracks_max) for capacity in capacities]
    slots = [[Slot() for _ in path] for path in paths]
    visits = [flow for flow, path in enumerate(paths) for _ in path]
    wrong = 0
    for count in range(1, most + 1):
        random.shuffle(visits)
        places = [0] * len(paths)
        changed = False
        for flow in visits:
            own, place = slots[flow], places[flow]
            places[flow] += 1
            limit = math.inf
            for i, slot in enumerate(own):
                if i != place and not slot.ignored and slot.bottleneck < limit:
                    limit = slot.bottleneck
            changed |= links[paths[flow][place]].update(own[place], limit)
        for link in links:
            changed |= link.end_round()
        if not all(_exact(own, share) for own, share in zip(slots, shares, strict=True)):
            wrong = count
        if not changed:
            break
    allocations = [[slot.allocation for slot in own] for own in slots]
    return Rounds(count, None if wrong == count else wrong, allocations)


def _exact(slots: Sequence[Slot], share: float) -> bool:
    return math.isclose(min(slot.allocation for slot in slots), share, rel_tol=1e-6)


def two_waterfilling(
    capacities: Sequence[float], paths: Sequence[Sequence[int]]
) -> tuple[int, list[float]]:
    """Return the number of iterations of 2-Waterfilling, and the rates.

    In each iteration all links stop whose level is not above that of any link up to two steps away,
    where a step leads to a link that shares a flow.
    """
    rates = [0.0] * len(paths)
    rising = [set[int]() for _ in capacities]
    for flow, path in enumerate(paths):
        for link in path:
            rising[link].add(flow)
    spare = list(capacities)
    count = 0
    while any(rising):
        count += 1
        near: dict[int, set[int]] = {}
        for link, flows in enumerate(rising):
            if flows:
                near[link] = {other for flow in flows for other in paths[flow]}
        levels = {link: spare[link] / len(rising[link]) for link in near}
        least = {link: min(levels[other] for other in near[link]) for link in near}
        within = {link: min(least[other] for other in near[link]) * (1 + EQUAL) for link in near}
        stop = [link for link in near if levels[link] <= within[link]]
        for link in stop:
            for flow in list(rising[link]):
                rates[flow] = levels[link]
                for other in paths[flow]:
                    rising[other].discard(flow)
                    spare[other] -= levels[link]
    return count, rates
