"""Stability and convergence of JetMax: Zhang, Leonard and Loguinov 2006.

With the set of flows that a link controls fixed, x(n) = x(n − D) − τ·(x(n − D) − g), and g does
not depend on those flows' own rates. Every D the distance from g is multiplied by 1 − τ, whatever
the delays. So the link is stable exactly for 0 < τ < 2, and does not overshoot for τ ≤ 1.
"""

from __future__ import annotations

import math


def mode(tau: float) -> float:
    """`[jetmax-2006:source]` Return 1 − τ, the factor on a rate's distance to g per RTT."""
    return 1 - tau


def stable(tau: float) -> bool:
    """Return True if JetMax is stable, which requires 0 < τ < 2."""
    return abs(mode(tau)) < 1


def steps_to(fraction: float, tau: float) -> float:
    """Return the number of RTTs until the distance to g shrinks to `fraction`, or inf if never."""
    factor = abs(mode(tau))
    if factor == 0:
        return 1.0
    return math.ceil(math.log(fraction) / math.log(factor) - 1e-9) if factor < 1 else math.inf
