"""AECP's loop with its sampling times, as an exact discrete system with a delay.

The router updates its factor every T₂ from the volume that arrived in it (eq. 49), the source
its rate every T₁ = τ (eq. 48) or continuously (eq. 3). Near equilibrium, with u = ln x and v =
ln r from their rest and w the queue from q₀ in seconds of capacity, everything between two
updates is linear with a known solution, so the product of all steps over the common period of
both clocks has the growth of the loop as its spectral radius. No step size, no approximation but
the linear one; the queue's floor and the factor's ceiling are left out.

Sources: `continuous` (eq. 3 at every instant), `exact` (weight 1 − e^(−ατ)), `printed` (weight
ατ, also beyond 1, where it is none) and `clamped` (ατ, at most 1: what is implemented).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from waterfill.theory.aecp import Gains
from waterfill.theory.loops import Reals

WEIGHTS: dict[str, Callable[[float], float]] = {
    "exact": lambda x: -math.expm1(-x),
    "printed": lambda x: x,
    "clamped": lambda x: min(x, 1.0),
}
SOURCES = ("continuous", *WEIGHTS)

# Round trips are taken in these fractions of T₂: 1 ms of 100 ms.
_RESOLUTION = 100


class Growth(NamedTuple):
    """Growth of the slowest mode: its factor per second, below 1 where the loop is stable."""

    tau_s: float
    per_s: float


def growth(g: Gains, t_2_s: float, tau_s: float, source: str, offset: float = 0.5) -> Growth:
    """The loop's growth at a round trip, rounded to a hundredth of T₂ for the sampled sources.

    `offset` is how far into a hundredth of T₂ the source's updates fall: between 0 and 1, so
    that they never coincide with the router's.
    """
    if source == "continuous":
        return Growth(tau_s, _continuous(g, t_2_s, tau_s))
    ticks = max(1, round(Fraction(tau_s / t_2_s) * _RESOLUTION))
    tau_s = ticks * t_2_s / _RESOLUTION
    weight = WEIGHTS[source](g.alpha * tau_s)
    return Growth(tau_s, _sampled(g, t_2_s, ticks, weight, offset))


def margin_s(
    g: Gains, t_2_s: float, source: str, longest_s: float = 2.0, offset: float = 0.5
) -> float:
    """The largest τ up to which the loop is stable at every step of a scan; inf up to `longest_s`.

    A scan in steps of 10 ms finds where growth first passes 1; bisection finds the place, to a
    hundredth of T₂ for the sampled sources, whose clocks make growth a rugged function of τ.
    """
    step = 0.1 * t_2_s
    last = 0.0
    for i in range(1, int(longest_s / step) + 1):
        tau = i * step
        if growth(g, t_2_s, tau, source, offset).per_s >= 1:
            low, high = last, tau
            resolution = 1e-6 if source == "continuous" else t_2_s / _RESOLUTION
            while high - low > resolution * 1.001:
                middle = (low + high) / 2
                if growth(g, t_2_s, middle, source, offset).per_s >= 1:
                    high = middle
                else:
                    low = middle
            return low
        last = tau
    return math.inf


def _router(g: Gains, t_2_s: float, state: int, u: int, a: int, w: int, v: int) -> Reals:
    """`[aecp-2010:eq49]` linear: v falls by βT₂·(a/T₂ + w/T), a = ∫u since the last update."""
    step = np.eye(state)
    step[v, a] -= g.beta
    step[v, w] -= g.beta * t_2_s / g.t_s
    step[a, :] = 0.0
    return step


def _continuous(g: Gains, t_2_s: float, tau_s: float) -> float:
    """Source by eq. 3 at every instant, hearing the router's steps τ later: period T₂.

    The state is u, a, w and the factors v that are on their way, newest first.
    """
    whole, rest = divmod(tau_s / t_2_s, 1.0)
    rest_s = rest * t_2_s
    held = int(whole) + 2
    size = 3 + held
    u, a, w, v = 0, 1, 2, 3

    def flow(lasts_s: float, heard: int) -> Reals:
        step = np.eye(size)
        decay = math.exp(-g.alpha * lasts_s)
        filled = -math.expm1(-g.alpha * lasts_s) / g.alpha
        step[u, u], step[u, heard] = decay, 1 - decay
        for volume in (a, w):
            step[volume, u], step[volume, heard] = filled, lasts_s - filled
        return step

    # After an update the source still hears the factor before; `rest` later the next one arrives.
    shift = np.zeros((size, size))
    shift[u, u] = shift[a, a] = shift[w, w] = shift[v, v] = 1.0
    for i in range(1, held):
        shift[v + i, v + i - 1] = 1.0
    update = _router(g, t_2_s, size, u, a, w, v) @ shift
    oldest = v + held - 1
    period = flow(t_2_s - rest_s, oldest - 1) @ flow(rest_s, oldest) @ update
    return float(_radius(period) ** (1 / t_2_s))


def _sampled(g: Gains, t_2_s: float, ticks: int, weight: float, offset: float) -> float:
    """Source by eq. 48 every τ: the factor it uses is the router's of one round trip before.

    The state is u, a, w, v and the factor that the source will use next, read at its last update.
    """
    u, a, w, v, read = range(5)
    tick_s = t_2_s / _RESOLUTION
    update = _router(g, t_2_s, 5, u, a, w, v)
    hear = np.eye(5)
    hear[u, u], hear[u, read] = 1 - weight, weight
    hear[read, :] = 0.0
    hear[read, v] = 1.0
    period = math.lcm(ticks, _RESOLUTION)
    events = [(float(k), update) for k in range(0, period, _RESOLUTION)]
    events += [(k + offset, hear) for k in range(0, period, ticks)]
    events.sort(key=lambda event: event[0])
    product, scale, now = np.eye(5), 0.0, 0.0
    step = np.eye(5)
    for time, event in [*events, (float(period), None)]:
        step[a, u] = step[w, u] = (time - now) * tick_s
        product = step @ product
        now = time
        if event is not None:
            product = event @ product
        size = float(np.abs(product).max())
        if size > 1e100 or size < 1e-100:
            product, scale = product / size, scale + math.log(size)
    return math.exp((math.log(_radius(product)) + scale) / (period * tick_s))


def _radius(matrix: Reals) -> float:
    return float(np.max(np.abs(np.linalg.eigvals(matrix))))
