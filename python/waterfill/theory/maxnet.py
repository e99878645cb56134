"""Stability of MaxNet: maxnet-2007 §VIII.

The loop of flows with one RTT τ is αF(s, τ; 1) with F of eq. 13. Lemma 1 requires that the convex
hull of all flows' F crosses the real axis to the right of −1/α. Algorithm 3 finds an α_max that
satisfies it for every mixture of RTTs up to τ̄. There are two loops: eq. 13 as printed, and the loop
as implemented, where the receiver averages prices over one RTT and the router holds each price for
dt_p, (1 − e^(−s·dt_p))/(s·dt_p). An exponential average is 1/(1 + sτ), the mean of the last RTT
(1 − e^(−sτ))/(sτ).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from waterfill.theory import loops, params
from waterfill.theory.loops import Line, Margins, Points, Reals
from waterfill.theory.roots import brentq, minimize_scalar

Average: TypeAlias = Literal["exponential", "sliding", "off"]
"""The receiver's method of averaging prices over one RTT."""


class Params(NamedTuple):
    """MaxNet's parameters for the analysis: α, η, T, x_max, and those of the implementation.

    `average`: how the receiver averages prices. `dt_p_s`: how long a router holds a price.
    """

    alpha: float
    eta: float
    t_s: float
    x_max_bps: float
    average: Average
    dt_p_s: float

    @classmethod
    def of(cls, values: params.Values) -> Params:
        """Return the parameters read from the registry's values."""
        average = values["average"]
        return cls(
            alpha=params.number(values, "alpha"),
            eta=params.number(values, "eta"),
            t_s=params.number(values, "t"),
            x_max_bps=params.number(values, "x_max"),
            average="sliding" if average == "sliding" else "exponential" if average else "off",
            dt_p_s=params.number(values, "dt_p"),
        )


class Gains(NamedTuple):
    """Parameters of F apart from frequency and RTT. α itself only scales F.

    `alpha_t_s` is αT in seconds, `eta` the zero's η. `average`: how the receiver averages
    prices over one RTT. `dt_p_s`: how long the router holds a price; 0 for eq. 13. `zero_rad_s` is
    a zero z common to all flows, as in eq. 11 and the paper's [17], in place of η/τ.
    """

    alpha_t_s: float
    eta: float
    average: Average = "off"
    dt_p_s: float = 0.0
    zero_rad_s: float | None = None


def eq13(p: Params) -> Gains:
    """Return the parameters of the loop of eq. 13."""
    return Gains(p.alpha * p.t_s, p.eta)


def implemented(p: Params) -> Gains:
    """Return the parameters of the loop as implemented, with μ = 1, the largest `target`."""
    return eq13(p)._replace(average=p.average, dt_p_s=p.dt_p_s)


def response(gains: Gains, omega: Reals | float, tau_s: Reals | float) -> Points:
    """`[maxnet-2007:eq13]` Return F(jω, τ; 1) for ω and τ of any shapes, or eq. 11 if the zero z is
    common.

    F = e^(−sτ)/(sτ) · (sτ + zτ)/(sτ + zτ·αT/τ), zτ = η unless the zero is common.
    """
    omega, tau = np.asarray(omega, dtype=np.float64), np.asarray(tau_s, dtype=np.float64)
    phi = omega * tau
    zero = gains.eta if gains.zero_rad_s is None else gains.zero_rad_s * tau
    pole = zero * gains.alpha_t_s / tau
    value = np.exp(-1j * phi) / (1j * phi) * (1j * phi + zero) / (1j * phi + pole)
    if gains.average != "off":
        value = value * averaging(phi, gains.average)
    if gains.dt_p_s > 0:
        value = value * hold(omega, gains.dt_p_s)
    return np.asarray(value, dtype=np.complex128)


def averaging(phi: Reals, average: Average) -> Points:
    """`[maxnet-2007:VI]` Return the frequency response of an average over one RTT at φ = ωτ.

    1/(1 + sτ) for an exponential average with weight dt/τ, (1 − e^(−sτ))/(sτ) for a sliding mean.
    """
    if average == "sliding":
        return hold(phi, 1.0)
    return np.asarray(1 / (1 + 1j * phi), dtype=np.complex128)


def hold(omega: Reals, interval_s: float) -> Points:
    """`[maxnet-2007:fig3]` Return (1 − e^(−s·dt))/(s·dt), the response of a hold or a mean."""
    half = omega * interval_s / 2
    return np.asarray(np.sinc(half / math.pi) * np.exp(-1j * half), dtype=np.complex128)


def phase(gains: Gains, omega: Reals | float, tau_s: float) -> Reals:
    """`[maxnet-2007:eq15]` Return the unwrapped phase θ (rad), about −π/2 at low frequencies."""
    omega = np.asarray(omega, dtype=np.float64)
    phi = omega * tau_s
    zero = gains.eta if gains.zero_rad_s is None else gains.zero_rad_s * tau_s
    pole = zero * gains.alpha_t_s / tau_s
    angle = np.arctan2(phi, zero) - np.arctan2(phi, pole) - math.pi / 2 - phi
    if gains.average == "exponential":
        angle = angle - np.arctan(phi)
    elif gains.average == "sliding":
        angle = angle - phi / 2
    return np.asarray(angle - omega * gains.dt_p_s / 2, dtype=np.float64)


def omega_0(gains: Gains, tau_s: float) -> float:
    """`[maxnet-2007:eq14]` Return ω₀(τ), the lowest frequency at which F meets the real axis.

    The phase is −π there for the first time. A dense grid brackets it, since the lag compensator
    can turn the phase twice (only for η > 2).
    """
    # At φ = 5 the delay alone brings the phase below −π.
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
    """Algorithm 3 for one αT, η and τ̄: its threshold frequency, its line and its α_max.

    `spiral` and `tail` are points of S and T for a plot. `tau_cut_s` is Proposition 2's τ′: only
    RTTs above it can touch the line.
    """

    omega_rad_s: float
    line: Line
    alpha_max: float
    tau_cut_s: float
    spiral: Points
    tail: Points


# Points of each curve. The two that touch the line are then found to rounding.
_CURVE = 4001


def construct(gains: Gains, tau_max_s: float, slope: float | None = None) -> Construction:
    """`[maxnet-2007:alg3]` Construct the line above spiral and tail, with a given `slope` if any.

    The algorithm does not fix the line: any line above both curves proves stability up to its own
    α_max. Without `slope` it is the line with the largest α_max.
    """
    threshold = omega_0(gains, tau_max_s)
    # The spiral's gain falls with each turn of its phase: two turns are enough.
    omegas = np.linspace(threshold, threshold + 4 * math.pi / tau_max_s, _CURVE)
    spiral = response(gains, omegas, tau_max_s)
    # It starts left of the origin; shorter RTTs bend to −j/(ω̲·αT) and on to the right.
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
    """Return a line whose points of contact are exact to rounding rather than on a grid."""
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

        return max(_maximum(on_spiral, phis), _maximum(on_tail, logs))

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


def _maximum(function: Callable[[Reals | float], Reals], grid: Reals) -> float:
    """Return the maximum of a function, searched on a grid and refined near its best point."""
    values = function(grid)
    i = int(np.argmax(values))
    around = (float(grid[max(0, i - 1)]), float(grid[min(len(grid) - 1, i + 1)]))
    found = minimize_scalar(
        lambda x: -float(function(x)), bounds=around, method="bounded", options={"xatol": 1e-12}
    )
    return max(float(values[i]), -float(found.fun))


def _cut(gains: Gains, omega: float, tau_max_s: float, line: Line) -> float:
    """`[maxnet-2007:prop2]` Return τ′, the largest τ at which the tail crosses y = γx, or 0 without
    a crossing.

    At τ̄ the tail is on the negative real axis, above y = γx; at τ′ it falls below that line.
    """

    def height(log_tau: Reals | float) -> Reals:
        points = response(gains, omega, np.exp(log_tau))
        return np.asarray((line.run * points.imag - points.real) / np.abs(points))

    grid = np.linspace(math.log(tau_max_s), math.log(tau_max_s) - 25, 4000)
    first = int(np.argmax(height(grid) < 0))
    if first == 0:
        return 0.0
    low, high = float(grid[first]), float(grid[first - 1])
    return math.exp(float(brentq(lambda x: float(height(x)), low, high, xtol=1e-13)))


def loop_margins(gains: Gains, alpha: float, tau_s: float) -> Margins:
    """Return the margins of the loop αF for flows that all have the RTT τ."""
    fast, slow = min(tau_s, gains.alpha_t_s), max(tau_s, gains.alpha_t_s)
    low = 1e-4 * min(1.0, gains.eta) * min(1 / slow, gains.alpha_t_s / tau_s**2)
    high = 100.0 / fast
    return loops.margins(lambda w: alpha * response(gains, w, tau_s), low, high)


def compensator_gain(gains: Gains, tau_s: float) -> float:
    """`[maxnet-2007:VIII.B]` Return κ/ν = αT/τ. The compensator leads above 1 and lags below 1."""
    return gains.alpha_t_s / tau_s


def modes(gains: Gains, alpha: float, taus_s: Sequence[float]) -> Points:
    """`[maxnet-2007:eq10]` Return the roots (1/s) of the loop of flows with equal shares of one
    link, fastest first.

    Without delay, average or hold, linearised at the equilibrium of a link whose target is all of
    it: q̇ = Σ(ξ_i − (α/τ_i)q)/n and ξ̇_i = (αz_i/τ_i)((Tα/τ_i − 1)q − Tξ_i), z_i = η/τ_i or the
    common zero. All shapes are (n + 1,).
    """
    count, t_s = len(taus_s), gains.alpha_t_s / alpha
    matrix = np.zeros((count + 1, count + 1))
    for i, tau_s in enumerate(taus_s, start=1):
        zero = gains.eta / tau_s if gains.zero_rad_s is None else gains.zero_rad_s
        matrix[0, i] = 1 / count
        matrix[0, 0] -= alpha / tau_s / count
        matrix[i, 0] = alpha * zero / tau_s * (gains.alpha_t_s / tau_s - 1)
        matrix[i, i] = -alpha * zero / tau_s * t_s
    roots = np.asarray(np.linalg.eigvals(matrix), dtype=np.complex128)
    return roots[np.argsort(roots.real)]


class Reclaimed(NamedTuple):
    """Response of a single flow to a small step of free capacity: fraction(t) = 1 − Σ
    share·e^(rate·t).

    `fast_per_s` and `slow_per_s` are negative; the shares add up to 1.
    """

    fast_per_s: float
    slow_per_s: float
    fast_share: float
    slow_share: float

    def after(self, time_s: float) -> float:
        """Return the fraction of the capacity step that the flow uses after a time."""
        return (
            1
            - self.fast_share * math.exp(self.fast_per_s * time_s)
            - self.slow_share * math.exp(self.slow_per_s * time_s)
        )


def reclaimed(p: Params, tau_s: float, target: float) -> Reclaimed:
    """`[maxnet-2007:eq10]` Return the two modes of a flow's rate on a link with the target μ.

    Linearised without delay: q̇ = μ(ξ − (α/τ)q), ξ̇ = (αη/τ²)((Tα/τ − 1)q − Tξ), from the
    equilibrium of a load that is gone. Their sum is −(μα/τ + αηT/τ²), their product μαη/τ².
    """
    gain, slow_gain = p.alpha / tau_s, p.alpha * p.eta / tau_s**2
    trace, product = target * gain + slow_gain * p.t_s, target * slow_gain
    root = math.sqrt(trace**2 / 4 - product)
    fast, slow = -trace / 2 - root, -trace / 2 + root
    # With u = ln x − ln x*, u(0) = −q(0)/T and u'(0) = ξ'(0) − (α/τ)·μ·u(0), where ξ'(0) = 0.
    share = (-target * gain - slow) / (fast - slow)
    return Reclaimed(fast, slow, share, 1 - share)


def static_rates_bps(
    alpha: float, x_max_bps: float, taus_s: Sequence[float], total_bps: float
) -> Reals:
    """`[maxnet-2007:eq5]` Return the equilibrium rates (bit/s) of eq. 5's static law for flows of
    RTTs τ_i on one link that carries `total_bps`. The shape is that of `taus_s`.
    """
    taus = np.asarray(taus_s, dtype=np.float64)

    def logs(q: float) -> Reals:
        return np.asarray(math.log(x_max_bps) - alpha * q / taus)

    highest = float(taus.max()) / alpha * math.log(x_max_bps * len(taus) / total_bps)
    q = brentq(lambda q: float(np.logaddexp.reduce(logs(q))) - math.log(total_bps), 0.0, highest)
    return np.exp(logs(float(q)))


def static_time_s(max_rtt_s: float) -> float:
    """`[maxnet-2007:I]` Return the smallest T (s) with which D(q) = x_max·e^(−q/T), common to all
    flows, is stable up to an RTT. T is also the time constant of a flow of any shorter RTT.

    Its loop e^(−sτ)/(sT) has a phase of −π at ωτ = π/2, so T must exceed 2τ/π.
    """
    return 2 * max_rtt_s / math.pi


def settling_s(gains: Gains, alpha: float, tau_s: float) -> float:
    """Return the time constant of fairness (s), which is 1/z of the slow zero z."""
    return 1 / (gains.eta / tau_s if gains.zero_rad_s is None else gains.zero_rad_s)
