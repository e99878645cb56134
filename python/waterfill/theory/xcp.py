"""Stability of XCP: the analysis of Katabi, Handley and Rohrs 2002.

One link, flows of one RTT d: ẏ = −(α/d)·(y(t − d) − c) − (β/d²)·q(t − d), q̇ = y − c. In units of
d only α and β remain: L = (α·jφ + β)/(jφ)²·e^(−jφ), φ = ωd. RCP's loop with a standing queue is
the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from waterfill.theory import loops, params
from waterfill.theory.loops import Margins, Points, Reals
from waterfill.theory.roots import brentq

# katabi-2002, Theorem 1: sufficient with β = α²√2.
KATABI_ALPHA_MAX = math.pi / (4 * math.sqrt(2))


class Gains(NamedTuple):
    """The gains α and β, without a unit, of XCP or RCP."""

    alpha: float
    beta: float

    @classmethod
    def of(cls, values: params.Values) -> Gains:
        """Return the gains read from the registry's values."""
        return cls(params.number(values, "alpha"), params.number(values, "beta"))


class Share(NamedTuple):
    """Weight of one group of flows in a link's response, and its RTT (s), the delay of the
    response.
    """

    weight: float
    tau_s: float


def response(
    alpha: float, beta: float, d_s: float, omega: Reals, shares: Sequence[Share] = ()
) -> Points:
    """`[katabi-2002:L]` Return the response (α/(sd) + β/(sd)²) · Σ weight·e^(−sτ) over the shares.

    Without shares the whole response arrives after d.
    """
    s = 1j * np.asarray(omega, dtype=np.float64)
    delayed = sum(share.weight * np.exp(-s * share.tau_s) for share in shares or [Share(1.0, d_s)])
    return np.asarray((alpha / (s * d_s) + beta / (s * d_s) ** 2) * delayed, dtype=np.complex128)


def loop_margins(alpha: float, beta: float, d_s: float, shares: Sequence[Share] = ()) -> Margins:
    """Return the stability margins of a link's loop."""
    longest = max((share.tau_s for share in shares), default=d_s)
    low = 1e-4 * min(alpha, math.sqrt(beta) if beta > 0 else alpha) / max(d_s, longest)
    high = 1e2 * max(alpha, math.sqrt(beta)) / d_s
    return loops.margins(lambda w: response(alpha, beta, d_s, w, shares), low, high)


def boundary(phi: Reals) -> tuple[Reals, Reals]:
    """`[katabi-2002:L]` Solve L = −1 at φ: return α = φ·sin φ and β = φ²·cos φ.

    This is the boundary of the stable region.
    """
    return phi * np.sin(phi), phi**2 * np.cos(phi)


def alpha_range(beta: float) -> tuple[float, float]:
    """Return the range of α in which the loop is stable at this β, or (nan, nan) above 0.55."""
    top = brentq(lambda phi: 2 - phi * math.tan(phi), 0.5, 1.5)  # where φ²·cos φ is largest
    if beta > top**2 * math.cos(top):
        return math.nan, math.nan

    if beta == 0:
        return 0.0, math.pi / 2

    def excess(phi: float) -> float:
        return phi**2 * math.cos(phi) - beta

    low = float(brentq(excess, 0.0, top))
    high = float(brentq(excess, top, math.pi / 2))
    return low * math.sin(low), high * math.sin(high)


def katabi_beta(alpha: float) -> float:
    """`[katabi-2002:theorem1]` Return β = α²√2."""
    return alpha**2 * math.sqrt(2)
