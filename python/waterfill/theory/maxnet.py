"""MaxNet's stability: maxnet-2007 §VIII.

The loop of one round trip τ is αF(s, τ; 1) with F of eq. 13; Lemma 1 asks that the convex hull
of the F of all flows passes the real axis to the right of −1/α. Algorithm 3 finds an α_max that
does for every mixture of round trips up to τ̄. Two loops are at hand: eq. 13 as printed, and
what is implemented, where the receiver averages prices over one round trip, 1/(1 + sτ), and the
router holds each price for dt_p, (1 − e^(−s·dt_p))/(s·dt_p).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from waterfill.theory import loops
from waterfill.theory.loops import Line, Margins, Points, Reals


class Gains(NamedTuple):
    """What F depends on beside frequency and round trip; α itself only scales it.

    `alpha_t_s` is αT in seconds, `eta` the zero's η. `average`: the receiver averages prices over
    one round trip. `dt_p_s`: the router holds a price for so long; 0 for eq. 13. `zero_rad_s` is
    a zero z common to all flows, as in eq. 11 and the paper's [17], in place of η/τ.
    """

    alpha_t_s: float
    eta: float
    average: bool = False
    dt_p_s: float = 0.0
    zero_rad_s: float | None = None


def eq13(params: dict[str, Any]) -> Gains:
    """The loop of eq. 13 for parameters of the protocol, in SI units."""
    return Gains(params["alpha"] * params["t"], params["eta"])


def implemented(params: dict[str, Any]) -> Gains:
    """The loop as it is implemented, for parameters of the protocol, in SI units.

    With a gain of 1 where the link has μ, since a link's `target` may be 1.
    """
    printed = eq13(params)
    return printed._replace(average=params["average"], dt_p_s=params["dt_p"])


def response(gains: Gains, omega: Reals | float, tau_s: Reals | float) -> Points:
    """`[maxnet-2007:eq13]` F(jω, τ; 1), of any shapes that broadcast; eq. 11 with a common zero.

    F = e^(−sτ)/(sτ) · (sτ + zτ)/(sτ + zτ·αT/τ), zτ = η unless the zero is common.
    """
    omega, tau = np.asarray(omega, dtype=np.float64), np.asarray(tau_s, dtype=np.float64)
    phi = omega * tau
    zero = gains.eta if gains.zero_rad_s is None else gains.zero_rad_s * tau
    pole = zero * gains.alpha_t_s / tau
    value = np.exp(-1j * phi) / (1j * phi) * (1j * phi + zero) / (1j * phi + pole)
    if gains.average:
        value = value * averaging(phi)
    if gains.dt_p_s > 0:
        value = value * hold(omega, gains.dt_p_s)
    return np.asarray(value, dtype=np.complex128)


def averaging(phi: Reals) -> Points:
    """`[maxnet-2007:VI]` 1/(1 + sτ): an average that forgets with weight dt/τ."""
    return np.asarray(1 / (1 + 1j * phi), dtype=np.complex128)


def hold(omega: Reals, interval_s: float) -> Points:
    """`[maxnet-2007:fig3]` (1 − e^(−s·dt))/(s·dt): a price kept for dt after its update."""
    half = omega * interval_s / 2
    return np.asarray(np.sinc(half / math.pi) * np.exp(-1j * half), dtype=np.complex128)


def phase(gains: Gains, omega: Reals | float, tau_s: float) -> Reals:
    """`[maxnet-2007:eq15]` θ in radians, not folded: about −π/2 at low frequencies."""
    omega = np.asarray(omega, dtype=np.float64)
    phi = omega * tau_s
    zero = gains.eta if gains.zero_rad_s is None else gains.zero_rad_s * tau_s
    pole = zero * gains.alpha_t_s / tau_s
    angle = np.arctan2(phi, zero) - np.arctan2(phi, pole) - math.pi / 2 - phi
    if gains.average:
        angle = angle - np.arctan(phi)
    return np.asarray(angle - omega * gains.dt_p_s / 2, dtype=np.float64)


def omega_0(gains: Gains, tau_s: float) -> float:
    """`[maxnet-2007:eq14]` ω₀(τ): the lowest frequency at which F meets the real axis.

    There the phase is −π for the first time. A dense grid brackets it: the lag compensator can
    make the phase turn twice (only when η > 2).
    """
    # At φ = 5 the delay alone has brought the phase below −π.
    grid = np.concatenate([[1e-12], np.geomspace(1e-6, 5.0, 2000)]) / tau_s
    reached = int(np.argmax(phase(gains, grid, tau_s) <= -math.pi))
    return float(
        brentq(
            lambda w: -math.pi - float(phase(gains, w, tau_s)),
            grid[reached - 1],
            grid[reached],
            xtol=1e-16 * grid[reached],
            rtol=1e-14,
        )
    )


class Construction(NamedTuple):
    """Algorithm 3 for one αT, η and τ̄: its threshold frequency, line and limit.

    `spiral` and `tail` are points of S and T for a plot. `tau_cut_s` is Proposition 2's τ′: only
    round trips above it can touch the line.
    """

    omega_rad_s: float
    line: Line
    alpha_max: float
    tau_cut_s: float
    spiral: Points
    tail: Points


# Points of each curve, before the two that touch the line are found to rounding.
_CURVE = 4001


def construct(gains: Gains, tau_max_s: float, slope: float | None = None) -> Construction:
    """`[maxnet-2007:alg3]` The line above spiral and tail with the largest α_max, or of `slope`.

    The algorithm does not fix the line: any that lies above both curves proves stability up to
    its own α_max. Without `slope` it is the one that maximises α_max.
    """
    threshold = omega_0(gains, tau_max_s)
    # The spiral's gain falls by the time its phase has turned once more: two turns are enough.
    omegas = np.linspace(threshold, threshold + 4 * math.pi / tau_max_s, _CURVE)
    spiral = response(gains, omegas, tau_max_s)
    # To the left of the origin; shorter round trips bend to −j/(ω̲·αT) and on to the right.
    taus = tau_max_s * np.geomspace(1.0, 1e-9, 4 * _CURVE)
    tail = response(gains, threshold, taus)
    both = np.concatenate([spiral, tail])
    line = (
        loops.lowest_line(both)
        if slope is None
        else Line(1 / slope, loops.support(both, 1 / slope))
    )
    line = _refined(gains, threshold, tau_max_s, line, slope is None)
    cut = _cut(gains, threshold, tau_max_s, line)
    return Construction(threshold, line, 1 / line.intercept, cut, spiral, tail)


def _refined(gains: Gains, omega: float, tau_max_s: float, line: Line, free: bool) -> Line:
    """The line with its two touching points found to rounding rather than on a grid."""

    phi_0, top = omega * tau_max_s, math.log(tau_max_s)
    phis = np.linspace(phi_0, phi_0 + 2 * math.pi, 400)
    logs = np.linspace(top - 20, top, 2000)

    def reach(run: float) -> float:
        def on_spiral(phi: Reals | float) -> Reals:
            points = response(gains, phi / tau_max_s, tau_max_s)
            return np.asarray(run * points.imag - points.real)

        def on_tail(log_tau: Reals | float) -> Reals:
            points = response(gains, omega, np.exp(log_tau))
            return np.asarray(run * points.imag - points.real)

        return max(_most(on_spiral, phis), _most(on_tail, logs))

    if not free:
        return Line(line.run, reach(line.run))
    width = 0.01 * abs(line.run) + 1e-6
    found = minimize_scalar(
        reach,
        bounds=(line.run - width, line.run + width),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return Line(float(found.x), float(found.fun))


def _most(function: Callable[[Reals | float], Reals], grid: Reals) -> float:
    """The largest value of a function of one variable: on the grid, then beside its best point."""
    values = function(grid)
    i = int(np.argmax(values))
    around = (float(grid[max(0, i - 1)]), float(grid[min(len(grid) - 1, i + 1)]))
    found = minimize_scalar(
        lambda x: -float(function(x)), bounds=around, method="bounded", options={"xatol": 1e-12}
    )
    return max(float(values[i]), -float(found.fun))


def _cut(gains: Gains, omega: float, tau_max_s: float, line: Line) -> float:
    """`[maxnet-2007:prop2]` τ′: the largest τ of the tail at which F has the direction of the line.

    At τ̄ the tail is on the negative real axis, above y = γx; at τ′ it falls below that line.
    """

    def height(log_tau: Reals | float) -> Reals:
        points = response(gains, omega, np.exp(log_tau))
        return np.asarray((line.run * points.imag - points.real) / np.abs(points))

    # At τ̄ itself F is on the real axis, above y = γx.
    grid = np.linspace(math.log(tau_max_s), math.log(tau_max_s) - 25, 4000)
    first = int(np.argmax(height(grid) < 0))
    if first == 0:
        return 0.0
    low, high = float(grid[first]), float(grid[first - 1])
    return math.exp(float(brentq(lambda x: float(height(x)), low, high, xtol=1e-13)))


def loop_margins(gains: Gains, alpha: float, tau_s: float) -> Margins:
    """The margins of αF for flows that all have the round trip τ."""
    fast, slow = min(tau_s, gains.alpha_t_s), max(tau_s, gains.alpha_t_s)
    low = 1e-4 * min(1.0, gains.eta) * min(1 / slow, gains.alpha_t_s / tau_s**2)
    high = 100.0 / fast
    return loops.margins(lambda w: alpha * response(gains, w, tau_s), low, high)


def compensator_gain(gains: Gains, tau_s: float) -> float:
    """`[maxnet-2007:VIII.B]` κ/ν = αT/τ: above 1 the compensator leads, below it lags."""
    return gains.alpha_t_s / tau_s


def closed_loop_peak(gains: Gains, alpha: float, tau_s: float) -> float:
    """The largest |L/(1 + L)| over frequencies: 1 is no resonance, inf the edge of stability."""
    omega = np.geomspace(1e-5, 20.0, 20000) / tau_s
    loop = alpha * response(gains, omega, tau_s)
    return float(np.max(np.abs(loop / (1 + loop))))


def settling_s(gains: Gains, alpha: float, tau_s: float) -> float:
    """The time constant in which flows become fair: 1/z, the slow zero's (η/τ, or the common z)."""
    return 1 / (gains.eta / tau_s if gains.zero_rad_s is None else gains.zero_rad_s)
