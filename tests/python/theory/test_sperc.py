"""s-PERC in rounds: its steps, and its bound against 2-Waterfilling and our own solver."""

from __future__ import annotations

from random import Random

import pytest

from validation import sperc as study
from waterfill.theory import sperc
from waterfill.theory.sperc import Link, Slot


def test_a_link_divides_what_flows_limited_elsewhere_leave():
    link, limited, free = Link(10.0), Slot(), Slot()
    assert link.update(free, float("inf"))
    assert (free.bottleneck, free.allocation, free.elsewhere) == (10.0, 10.0, False)
    link.update(limited, 2.0)
    # As if the flow were limited here it would get 5.
    assert (limited.bottleneck, limited.allocation, limited.elsewhere) == (5.0, 2.0, True)
    link.update(free, float("inf"))
    assert (free.allocation, link.here, link.sum_elsewhere) == (8.0, 1, 2.0)
    assert not link.update(free, float("inf"))


def test_a_rate_below_the_largest_of_flows_limited_elsewhere_is_ignored():
    link, limited = Link(10.0), Slot()
    frees = [Slot(), Slot()]
    link.update(limited, 4.0)
    for free in frees:
        link.update(free, float("inf"))
    assert (limited.ignored, frees[1].bottleneck, frees[1].ignored) == (False, 3.0, True)
    link.end_round()
    link.update(frees[1], float("inf"))
    assert frees[1].ignored, "MaxE is that of this round and the last"
    link.end_round()
    link.update(frees[1], float("inf"))
    assert not frees[1].ignored


# Five links in a row, one flow over each and one over each two neighbours.
LADDER = ([1.0, 2.0, 4.0, 8.0, 16.0], [*[[i] for i in range(5)], *[[i, i + 1] for i in range(4)]])


def test_two_waterfilling_stops_links_that_are_two_steps_apart_together():
    # All links of a row depend on each other; five separate links do not.
    assert sperc.two_waterfilling(*LADDER)[0] == 5
    assert sperc.two_waterfilling(LADDER[0], [[i] for i in range(5)])[0] == 1
    # Link 0 waits for link 2, which is two steps away.
    assert sperc.two_waterfilling([3.0, 20.0, 2.0], [[0, 1], [1, 2]]) == (2, [3.0, 2.0])


def networks(count):
    """Yield networks of links and flows drawn by chance."""
    for seed in range(count):
        random = Random(seed)
        links = random.randint(2, 12)
        capacities = [random.choice((1.0, 2.5, 4.0, 10.0)) for _ in range(links)]
        most = min(5, links)
        paths = [random.sample(range(links), random.randint(1, most)) for _ in range(30)]
        yield random, capacities, paths


def test_rates_are_max_min_fair_within_six_rounds_per_iteration():
    for random, capacities, paths in [*networks(60), (Random(0), *LADDER)]:
        shares = study.exact(capacities, paths)
        iterations, rates = sperc.two_waterfilling(capacities, paths)
        assert rates == pytest.approx(shares)
        found = sperc.run(capacities, paths, shares, random, 6 * iterations + 20)
        assert found.exact_after is not None
        assert found.exact_after <= 6 * iterations
        least = [min(own) for own in found.allocations]
        assert least == pytest.approx(shares)


def test_a_flow_that_leaves_without_notice_keeps_its_share():
    link, leaves, stays = Link(10.0), Slot(), Slot()
    for _ in range(2):
        link.update(leaves, 4.0)
        link.update(stays, float("inf"))
        link.end_round()
    for _ in range(20):
        link.update(stays, float("inf"))
        link.end_round()
    assert stays.allocation == 6.0
