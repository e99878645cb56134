"""MKC: its equilibrium, the eigenvalues of its step, and the step itself at any delays."""

import math

import numpy as np
import pytest

from waterfill.theory import mkc
from waterfill.theory.mkc import Link

LINK = Link(95e6, 10, 1e5, 0.5)


def test_the_equilibrium_by_hand():
    # 95/10 + 0.1/0.5 Mbit/s; ten of them are 97 Mbit/s, 2 Mbit/s above the target.
    assert LINK.rate_bps == pytest.approx(9.7e6)
    assert LINK.load_bps == pytest.approx(97e6)
    assert LINK.price == pytest.approx(2 / 97)


@pytest.mark.parametrize("beta", [0.1, 0.5, 1.0, 1.9, 2.2])
def test_the_eigenvalues_are_those_of_the_step(beta):
    link = LINK._replace(beta=beta)

    def step(rates):
        return rates + link.alpha_bps - beta * (1 - link.target_bps / rates.sum()) * rates

    rates, h = np.full(10, link.rate_bps), 1.0
    assert step(rates) == pytest.approx(rates)
    columns = [(step(rates + h * unit) - step(rates - h * unit)) / (2 * h) for unit in np.eye(10)]
    assert np.transpose(columns) == pytest.approx(mkc.jacobian(link), abs=1e-6)
    total, differences = mkc.modes(link)
    found = np.sort(np.linalg.eigvalsh(mkc.jacobian(link)))
    assert found == pytest.approx(sorted([total] + 9 * [differences]))


def swing(beta: float, delays: np.ndarray, alpha_bps: float = 2e6) -> float:
    """Return the largest change of a rate in the last fifth of a run of the nonlinear law.

    The load of step n has the rates of n − forward, and a rate of n comes from n − forward − back.
    """
    forward, back = delays
    longest = int((forward + back).max())
    n, flows = 60 * longest, len(forward)
    rates = np.full((n, flows), 1e7)
    rates[:longest] += np.linspace(-2e6, 2e6, flows)
    at = np.arange(flows)
    for k in range(longest, n):
        mine = rates[k - back - forward, at]
        loads = np.array([rates[k - b - forward, at].sum() for b in back])
        rates[k] = np.maximum(mine + alpha_bps - beta * (1 - 95e6 / loads) * mine, 1e4)
    return float((rates[-n // 5 :].max(axis=0) / rates[-n // 5 :].min(axis=0) - 1).max())


def test_no_delay_makes_a_beta_below_two_unstable():
    rng = np.random.default_rng(1)
    for beta in (0.5, 1.5, 1.9):
        for _ in range(5):
            assert swing(beta, rng.integers(1, 12, (2, 6))) < 0.01
    assert swing(2.2, np.full((2, 6), 3)) > 0.5


def test_steps():
    assert [mkc.stable(beta) for beta in (0.0, 0.5, 1.99, 2.0)] == [False, True, True, False]
    total, differences = mkc.modes(LINK)
    assert mkc.steps_to(0.01, total) == 7  # 2⁻⁷ is below 1 %
    assert mkc.steps_to(0.01, differences) == 445
    assert (mkc.steps_to(0.01, 0.0), mkc.steps_to(0.01, -1.2)) == (1.0, math.inf)
