"""Roots and minima of functions of one variable, by scipy.

scipy.optimize takes half a second to load, so it is loaded by the first call: the measures of
papers and suites name these analyses, but few runs need one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def brentq(function: Callable[[float], Any], low: float, high: float, **options: float) -> float:
    """Return the root of a function between `low` and `high`, at which its signs differ.

    `options` are those of `scipy.optimize.brentq`. Raises ValueError for equal signs.
    """
    from scipy import optimize

    return float(optimize.brentq(function, low, high, **options))


def minimize_scalar(
    function: Callable[[float], float], bounds: tuple[float, float], **options: Any
) -> Any:
    """Return `scipy.optimize.minimize_scalar`'s result for a function within `bounds`."""
    from scipy import optimize

    return optimize.minimize_scalar(function, bounds=bounds, **options)
