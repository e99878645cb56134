"""VCP's stability: the fluid model of Xia, Subramanian, Stoica and Kalyanaraman 2005.

Multiplicative increase guided by the load factor, ξ(ρ) = κ·(1 − ρ)/ρ, and additive increase α: ẇ
= (w·ξ(ρ(t − T)) + α)/T with ρ = Σw/(T·γC). On one link with one round trip T, Σw/T rests at γC +
Nα/(κT), and near it L = κ/(s·T)·e^(−sT) for small Nα: stable for κ < π/2, and by the paper for
any disturbance if κ ≤ 1/2. The three codes of the protocol sample ξ: at 80 % load, κ = 1/4 gives
the protocol's ξ = 0.0625. The paper's text was not at hand; that constant is what ties κ to it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from waterfill.theory import loops
from waterfill.theory.loops import Margins, Reals

# Global stability with delay, by the paper.
KAPPA_GLOBAL = 0.5
# Where the code "low" ends.
LOW_LOAD = 0.8


def kappa(xi: float) -> float:
    """κ of a multiplicative increase ξ at 80 % load: ξ = κ·(1 − ρ)/ρ."""
    return xi * LOW_LOAD / (1 - LOW_LOAD)


class Rest(NamedTuple):
    """Where the fluid model rests: load over γC, and the part of the gain that is left there."""

    load: float
    gain: float


def rest(kappa: float, additive: float) -> Rest:
    """The fluid's rest for N·α/(T·γC) = `additive`: load 1 + additive/κ, gain 1/load."""
    load = 1 + additive / kappa
    return Rest(load, 1 / load)


def loop_margins(kappa: float, rtt_s: float) -> Margins:
    """The margins of κ/(sT)·e^(−sT)."""

    def loop(omega: Reals) -> loops.Points:
        s = 1j * omega * rtt_s
        return np.asarray(kappa / s * np.exp(-s), dtype=np.complex128)

    return loops.margins(loop, 1e-3 * kappa / rtt_s, 1e3 * kappa / rtt_s)


def increase_time_s(ratio: float, xi: float, interval_s: float) -> float:
    """How long MI takes to grow a window by `ratio`: ln ratio/ln(1 + ξ) intervals t_ρ."""
    return interval_s * math.log(ratio) / math.log1p(xi)
