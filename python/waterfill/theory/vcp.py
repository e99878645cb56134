"""Stability of VCP: the fluid model of Xia, Subramanian, Stoica and Kalyanaraman 2005.

Multiplicative increase depends on the load factor, ξ(ρ) = κ·(1 − ρ)/ρ, beside an additive increase
α: ẇ = (w·ξ(ρ(t − T)) + α)/T with ρ = Σw/(T·γC). On one link with one RTT T the equilibrium is
Σw/T = γC + Nα/(κT). Near it L = κ/(s·T)·e^(−sT) for small Nα: stable for κ < π/2, and by the
paper for any disturbance if κ ≤ 1/2. The protocol's three codes sample ξ: at 80 % load, κ = 1/4
gives the protocol's ξ = 0.0625. The paper's text was not at hand; that constant ties κ to it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from waterfill.theory import loops
from waterfill.theory.loops import Margins, Points, Reals

# Global stability with delay, by the paper.
KAPPA_GLOBAL = 0.5
# The load at which the code changes from "low" to "high".
LOW_LOAD = 0.8


def kappa(xi: float) -> float:
    """Return κ for a multiplicative increase ξ at 80 % load, from ξ = κ·(1 − ρ)/ρ."""
    return xi * LOW_LOAD / (1 - LOW_LOAD)


class Equilibrium(NamedTuple):
    """Equilibrium of VCP's fluid model: load ÷ γC, and the loop's gain there relative to κ."""

    load: float
    gain: float


def equilibrium(kappa: float, additive: float) -> Equilibrium:
    """Return the equilibrium for N·α/(T·γC) = `additive`: load 1 + additive/κ, gain 1/load."""
    load = 1 + additive / kappa
    return Equilibrium(load, 1 / load)


def response(kappa: float, rtt_s: float, omega: Reals) -> Points:
    """Return the frequency response L(jω) = κ/(sT)·e^(−sT)."""
    s = 1j * np.asarray(omega, dtype=np.float64) * rtt_s
    return np.asarray(kappa / s * np.exp(-s), dtype=np.complex128)


def loop_margins(kappa: float, rtt_s: float) -> Margins:
    """Return the margins of the loop κ/(sT)·e^(−sT)."""
    low_rad_s, high_rad_s = 1e-3 * kappa / rtt_s, 1e3 * kappa / rtt_s
    return loops.margins(lambda w: response(kappa, rtt_s, w), low_rad_s, high_rad_s)


def increase_time_s(ratio: float, xi: float, interval_s: float) -> float:
    """Return the time (s) for MI to grow a window by `ratio`: ln ratio/ln(1 + ξ) intervals t_ρ."""
    return interval_s * math.log(ratio) / math.log1p(xi)
