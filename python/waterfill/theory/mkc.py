"""Stability, equilibrium and convergence of MKC: Zhang, Kang and Loguinov 2004 (secondary source).

The paper's text was not at hand, so the proof is our own. A source takes x(n) = m + α − β·p·m,
where m is the mean of its rates of the interval in which the router measured p = (y − C)/y. Near
the equilibrium of N flows, x = C/N + α/β and y = C + N·α/β, the matrix of the derivatives is

    J = (1 − βp)·I − (β/N)·(C/y)·E, E all ones: eigenvalues 1 − β, once, and 1 − βp, N − 1 times.

Delays only put each rate through a filter: x = J·H(z)·x, where H is diagonal and each entry is a
mean of past rates, so |H| ≤ 1 for |z| ≥ 1. J is symmetric: its norm is its largest eigenvalue, and
for 0 < β < 2 also ‖J·H(z)‖ < 1. Then no |z| ≥ 1 solves the equation, whatever the delays. With one
flow whose rate returns after exactly D, z^D = 1 − β, so the bound is sharp.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BETA_MAX = 2.0
"""Gain β at and above which MKC is not stable."""


class Link(NamedTuple):
    """A link of MKC flows of weight 1: target γC (bit/s), number of flows, α (bit/s) and β."""

    target_bps: float
    flows: float
    alpha_bps: float
    beta: float

    @property
    def rate_bps(self) -> float:
        """Return the rate of a flow, C/N + α/β (bit/s)."""
        return self.target_bps / self.flows + self.alpha_bps / self.beta

    @property
    def load_bps(self) -> float:
        """Return the load C + N·α/β (bit/s), which exceeds the target for ever."""
        return self.flows * self.rate_bps

    @property
    def price(self) -> float:
        """`[mkc-2004:price]` Return the stationary price, (y − C)/y."""
        return 1 - self.target_bps / self.load_bps


def stable(beta: float) -> bool:
    """Return True if MKC is stable, which requires 0 < β < 2."""
    return 0 < beta < BETA_MAX


def jacobian(link: Link) -> NDArray[np.float64]:
    """Return J, the derivatives of the N next rates by the N present ones: shape (N, N)."""
    n, price = round(link.flows), link.price
    ones = np.ones((n, n))
    return (1 - link.beta * price) * np.eye(n) - link.beta / n * (1 - price) * ones


def modes(link: Link) -> tuple[float, float]:
    """Return the eigenvalues of J: that of the total rate, and that of differences of rates."""
    return 1 - link.beta, 1 - link.beta * link.price


def steps_to(fraction: float, mode: float) -> float:
    """Return the number of steps until a deviation has shrunk to `fraction`, or inf if never."""
    factor = abs(mode)
    if factor >= 1:
        return math.inf
    return 1.0 if factor == 0 else math.ceil(math.log(fraction) / math.log(factor) - 1e-9)
