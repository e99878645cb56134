"""JetMax's stability and convergence: Zhang, Leonard and Loguinov 2006.

With the members of a link fixed, x(n) = x(n − D) − τ·(x(n − D) − g) and g does not depend on the
members' own rates: every D the distance from g is multiplied by 1 − τ, whatever the delays. So
the link is stable exactly for 0 < τ < 2, and does not overshoot for τ ≤ 1.
"""

from __future__ import annotations

import math


def mode(tau: float) -> float:
    """`[jetmax-2006:source]` 1 − τ: what is left of the distance to g after each round trip."""
    return 1 - tau


def stable(tau: float) -> bool:
    """0 < τ < 2."""
    return abs(mode(tau)) < 1


def steps_to(part: float, tau: float) -> float:
    """Round trips until the distance is at most `part` of the first; inf when it never is."""
    left = abs(mode(tau))
    if left == 0:
        return 1.0
    return math.ceil(math.log(part) / math.log(left) - 1e-9) if left < 1 else math.inf
