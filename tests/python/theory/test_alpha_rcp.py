"""α-fair RCP: allocations of our solver, both sides of the stability condition, the queue term."""

import math

import numpy as np
import pytest

from waterfill.theory import alpha_rcp
from waterfill.theory.alpha_rcp import Network, QueueTerm
from waterfill.theory.xcp import Share

LOT = Network.of([1.0] * 4, [[0, 1, 2, 3], [0], [1], [2], [3]])


@pytest.mark.parametrize("fairness", [0.5, 1.0, 2.0, 8.0])
def test_a_parking_lot_by_hand(fairness):
    # A link's price λ gives its own flow λ^(−1/α), and the long flow (4λ)^(−1/α).
    ratio = 4 ** (-1 / fairness)
    rates = alpha_rcp.alpha_fair(LOT, fairness)
    assert rates == pytest.approx([ratio / (1 + ratio)] + 4 * [1 / (1 + ratio)])


def test_unequal_links_satisfy_the_conditions_of_an_optimum():
    network = Network.of([10.0, 4.0, 30.0], [[0, 1], [0], [1, 2], [2]], [1.0, 2.0, 1.0, 1.0])
    rates = alpha_rcp.alpha_fair(network, 2.0)
    assert network.crosses @ rates == pytest.approx(network.capacities)
    # Along every change of rates that keeps the links full, Σ w²·x^−2·δx is 0.
    prices = np.linalg.lstsq(network.crosses.T.astype(float), (network.weights / rates) ** 2)[0]
    assert network.crosses.T @ prices == pytest.approx((network.weights / rates) ** 2)
    assert (prices > 0).all()
    # A wide link limits nobody, and a large α is nearly max-min.
    wide = Network.of([10.0, 1000.0], [[0, 1], [0]])
    assert alpha_rcp.alpha_fair(wide, 1.0) == pytest.approx([5.0, 5.0], rel=1e-6)
    lot = alpha_rcp.alpha_fair(Network.of([10.0, 4.0], [[0, 1], [0], [1]]), 50.0)
    assert lot == pytest.approx([2.0, 8.0, 2.0], rel=0.02)


def swing(offers):
    """Return the largest relative change of R in the last fifth of a run."""
    late = offers[-len(offers) // 5 :]
    return float((late.max(axis=0) / late.min(axis=0) - 1).max())


def test_one_rtt_has_the_bound_itself():
    one = [Share(1.0, 0.1)]
    assert alpha_rcp.critical_gain(one) == pytest.approx(math.pi / 2)
    # A mixture of RTTs is more stable than the bound says.
    mixed = [Share(0.5, 0.02), Share(0.5, 0.2)]
    assert alpha_rcp.critical_gain(mixed) > 1.02 * math.pi / 2


def test_runs_on_both_sides_of_the_condition():
    single = Network.of([1.0], [[0], [0]])
    for gain, stable in ((0.92 * alpha_rcp.BOUND, True), (1.05 * alpha_rcp.BOUND, False)):
        offers = alpha_rcp.run(single, 1.0, gain, [40, 40], 6_000)
        assert (swing(offers) < 0.02) is stable, gain


@pytest.mark.parametrize("fairness", [1.0, 4.0])
def test_unequal_rtts_and_paths_are_stable_below_the_bound(fairness):
    rng = np.random.default_rng(2)
    for _ in range(2):
        rtts = [int(rtt) for rtt in rng.integers(5, 60, 5)]
        assert swing(alpha_rcp.run(LOT, fairness, 0.9 * alpha_rcp.BOUND, rtts, 4_000)) < 0.02


def test_a_queue_term_at_rest():
    term = QueueTerm(0.01)
    assert (1 - term.load) ** 2 == pytest.approx(0.01 * term.load)
    assert term.load == pytest.approx(0.905, abs=1e-3)
    # a·y/C·(1 + C/y) = a·(y/C + 1).
    assert alpha_rcp.row_sum(1.0, term.load, term.slope) == pytest.approx(1 + term.load)
    assert (QueueTerm(0.0, 0.95).load, QueueTerm(0.0, 0.95).slope) == (pytest.approx(0.95), 0.0)


@pytest.mark.parametrize("gamma", [1.0, 0.95])
def test_the_queue_term_lowers_the_largest_gain(gamma):
    term = QueueTerm(0.01, gamma)
    single = Network.of([1.0], [[0], [0]])
    limit = alpha_rcp.BOUND / alpha_rcp.row_sum(1.0, term.load, term.slope)
    for gain, stable in ((0.9 * limit, True), (1.1 * limit, False)):
        offers = alpha_rcp.run(single, 1.0, gain, [40, 40], 6_000, term)
        assert (swing(offers) < 0.02) is stable, gain
    # The same gain without the term: the load stays.
    assert swing(alpha_rcp.run(single, 1.0, 1.1 * limit, [40, 40], 6_000)) < 0.02
