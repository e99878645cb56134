"""The AECP loop with its sampling times, as an exact discrete-time system with delay.

The router updates its factor every T₂ from the volume that arrived in that interval (eq. 49). The
source updates its rate every T₁ = τ (eq. 48) or continuously (eq. 3). Let u and v be the deviations
of ln x and ln r from equilibrium, and w that of the queue, in seconds of capacity. Between two
updates everything is linear with a known solution, so the spectral radius of the product of all
steps over the common period of both clocks is the growth of the loop. The linearisation is the only
approximation; the queue's lower limit and the factor's upper limit are left out.

Sources: `continuous` (eq. 3 at every instant), `exact` (weight 1 − e^(−ατ)), `printed` (weight
ατ, also above 1, where it is no weight) and `clamped` (ατ up to 1, as implemented).
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

# RTTs are rounded to this fraction of T₂: 1 ms of 100 ms.
_RESOLUTION = 100
# The state holds the factors in transit, one for each T₂ of an RTT.
_MAX_IN_TRANSIT = 400
# A margin takes a spectral radius for each tenth of T₂.
_MIN_T_2_S = 0.01


class Growth(NamedTuple):
    """Growth of a loop's slowest mode as a factor per second, below 1 if the loop is stable."""

    tau_s: float
    per_s: float


def growth(g: Gains, t_2_s: float, tau_s: float, source: str, offset: float = 0.5) -> Growth:
    """Return the loop's growth at an RTT, which is rounded to T₂/100 for sampled sources.

    `offset` is the phase of the source's updates in units of T₂/100. It is between 0 and 1, so
    that they never coincide with the router's.
    """
    if tau_s > _MAX_IN_TRANSIT * t_2_s:
        raise ValueError(f"an RTT of {tau_s:g} s is above {_MAX_IN_TRANSIT} t_2")
    if source == "continuous":
        return Growth(tau_s, _continuous(g, t_2_s, tau_s))
    ticks = max(1, round(Fraction(tau_s / t_2_s) * _RESOLUTION))
    tau_s = ticks * t_2_s / _RESOLUTION
    weight = WEIGHTS[source](g.alpha * tau_s)
    return Growth(tau_s, _sampled(g, t_2_s, ticks, weight, offset))


def margin_s(
    g: Gains, t_2_s: float, source: str, longest_s: float = 2.0, offset: float = 0.5
) -> float:
    """Return the largest RTT (s) up to which the loop is stable, or inf if stable to `longest_s`.

    A scan in steps of T₂/10 finds where growth first reaches 1. Bisection refines it, to T₂/100 for
    the sampled sources, whose clocks make growth a rugged function of τ.
    """
    if t_2_s < _MIN_T_2_S:
        raise ValueError(f"t_2 is {t_2_s:g} s, below {_MIN_T_2_S:g} s")
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
    """`[aecp-2010:eq49]` Return the router's linearised update: v decreases by βT₂·(a/T₂ + w/T)."""
    step = np.eye(state)
    step[v, a] -= g.beta
    step[v, w] -= g.beta * t_2_s / g.t_s
    step[a, :] = 0.0
    return step


def _continuous(g: Gains, t_2_s: float, tau_s: float) -> float:
    """Return the growth for a source that applies eq. 3 continuously, over the router's period T₂.

    The state is u, a, w and the factors v in transit, newest first.
    """
    whole, rest = divmod(tau_s / t_2_s, 1.0)
    rest_s = rest * t_2_s
    held = int(whole) + 2
    size = 3 + held
    u, a, w, v = 0, 1, 2, 3

    def flow(span_s: float, received: int) -> Reals:
        step = np.eye(size)
        decay = math.exp(-g.alpha * span_s)
        filled = -math.expm1(-g.alpha * span_s) / g.alpha
        step[u, u], step[u, received] = decay, 1 - decay
        for volume in (a, w):
            step[volume, u], step[volume, received] = filled, span_s - filled
        return step

    # After an update the source still receives the previous factor; the next arrives `rest` later.
    shift = np.zeros((size, size))
    shift[u, u] = shift[a, a] = shift[w, w] = shift[v, v] = 1.0
    for i in range(1, held):
        shift[v + i, v + i - 1] = 1.0
    update = _router(g, t_2_s, size, u, a, w, v) @ shift
    oldest = v + held - 1
    period = flow(t_2_s - rest_s, oldest - 1) @ flow(rest_s, oldest) @ update
    return float(_radius(period) ** (1 / t_2_s))


def _sampled(g: Gains, t_2_s: float, ticks: int, weight: float, offset: float) -> float:
    """Return the growth for a source that applies eq. 48 every τ, with a factor one RTT old.

    The state is u, a, w, v and the factor that the source will use next, read at its last update.
    """
    u, a, w, v, read = range(5)
    tick_s = t_2_s / _RESOLUTION
    update = _router(g, t_2_s, 5, u, a, w, v)
    receive = np.eye(5)
    receive[u, u], receive[u, read] = 1 - weight, weight
    receive[read, :] = 0.0
    receive[read, v] = 1.0
    period = math.lcm(ticks, _RESOLUTION)
    events = [(float(k), update) for k in range(0, period, _RESOLUTION)]
    events += [(k + offset, receive) for k in range(0, period, ticks)]
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
