"""Certificates of MaxNet's stability: what was checked, how, and by how much it holds.

Three things, each for eq. 13 and for the loop as implemented: Algorithm 3's line and limit; its
two premises point by point, since Lemma 2 proves them for eq. 13 only; and Lemma 1 itself, for
given round trips or for every mixture up to τ̄, which allows a larger α than any one line can
prove.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from waterfill.theory import loops, maxnet
from waterfill.theory.loops import Line, Reals
from waterfill.theory.maxnet import Gains

# Beyond this angle the gain of F is below 1/_FAR of its reach, at a phase that turns quickly:
# taken as a disc, at whatever phase is worst.
_FAR = 30.0
# A disc's polygon must hold the disc: corners stand a little outside.
_DISC = np.exp(2j * math.pi * np.arange(32) / 32) / math.cos(math.pi / 32)

# What a finer mixture could still take off α_max: from 400 to 1500 round trips it is 0.1 %.
GRID_SLACK = 0.01


class Limit(NamedTuple):
    """By Lemma 1: the largest stable α, and the frequency at which a larger one would fail."""

    alpha_max: float
    omega_rad_s: float


class Check(NamedTuple):
    """One line of a certificate: what, over which points, the worst value, its bound."""

    what: str
    points: str
    value: float
    bound: str
    holds: bool


def hull_limit(gains: Gains, taus_s: Iterable[float]) -> Limit:
    """`[maxnet-2007:lemma1]` The largest α with −1/α to the left of Co{F(jω, τ_i)} at all ω.

    Exact for the round trips given, over a grid of frequencies refined at its worst point.
    """
    taus = np.unique(np.fromiter(taus_s, dtype=np.float64))
    # A hull first meets the axis where one F crosses it: never between two frequencies of a grid.
    best, where = 0.0, math.nan
    for tau in (float(tau) for tau in taus):
        omega = maxnet.omega_0(gains, tau)
        size = abs(complex(maxnet.response(gains, omega, tau)))
        if size > best:
            best, where = size, omega
    low, high = 0.1 * maxnet.omega_0(gains, float(taus[-1])), 10.0 * math.pi / taus[0]
    grid = np.geomspace(low, high, max(400, int(100 * math.log(high / low))))
    # No hull reaches beyond its largest |F|: most frequencies are settled by that.
    reach = np.array([_reach(gains, float(omega), taus) for omega in grid])
    values = np.zeros(len(grid))
    for i in np.argsort(-reach):
        if reach[i] <= best:
            break
        values[i] = _crossing(gains, float(grid[i]), taus)
        if values[i] > best:
            best, where = float(values[i]), float(grid[i])
    for i in np.argsort(values)[-3:]:
        around = (float(grid[max(0, i - 1)]), float(grid[min(len(grid) - 1, i + 1)]))
        found = minimize_scalar(
            lambda omega: -_crossing(gains, omega, taus),
            bounds=around, method="bounded", options={"xatol": 1e-9 * around[0]},
        )  # fmt: skip
        if -found.fun > best:
            best, where = -float(found.fun), float(found.x)
    return Limit(1 / best, where)


def _reach(gains: Gains, omega: float, taus: Reals) -> float:
    return float(np.max(np.abs(maxnet.response(gains, omega, taus))))


def mixture(tau_max_s: float, count: int = 400, decades: float = 9.0) -> Reals:
    """Round trips that stand for every mixture up to τ̄: dense near it, where the worst ones are."""
    wide = tau_max_s * np.geomspace(10.0**-decades, 1.0, count // 2)
    near = tau_max_s * np.linspace(0.02, 1.0, count - count // 2)
    return np.unique(np.concatenate([wide, near]))


def _crossing(gains: Gains, omega: float, taus: Reals) -> float:
    near = taus[omega * taus <= _FAR]
    far = taus[omega * taus > _FAR]
    points = maxnet.response(gains, omega, near)
    if len(far):
        radius = float(np.max(np.abs(maxnet.response(gains, omega, far))))
        points = np.concatenate([points, radius * _DISC])
    return loops.hull_crossing(points)


def premises(gains: Gains, tau_max_s: float, threshold: float, line: Line) -> list[Check]:
    """The two premises of Proposition 1 on a grid of frequencies and round trips.

    Below the threshold every F is below the real axis; from it on every F is below the line. Then
    so is every convex hull, which is Lemma 1's condition for every α below 1/intercept.
    """
    taus = tau_max_s * np.geomspace(1e-9, 1.0, 900)[:, None]
    phis = np.geomspace(1e-6, 20.0, 800)[None, :]
    omegas = phis / taus
    points = maxnet.response(gains, omegas, taus)
    below = omegas < threshold
    # The sine of the angle above the real axis; a hair of rounding at τ̄ and the threshold.
    rise = float(np.max((points.imag / np.abs(points))[below]))
    height = (line.run * points.imag - points.real) / line.intercept - 1
    worst = float(np.max(height[~below]))
    cells = f"{points.size} points, τ from {taus[0, 0]:.3g} to {tau_max_s:.6g} s, ωτ up to 20"
    beyond = line.intercept / math.hypot(1.0, line.run)
    tail = float(np.max(np.abs(maxnet.response(gains, 20.0 / taus, taus))))
    return [
        Check("F below the real axis for ω < ω̲", cells, rise, "≤ 1e-9", rise <= 1e-9),
        Check("F below the line for ω ≥ ω̲", cells, worst, "≤ 1e-9", worst <= 1e-9),
        Check(
            "|F| beyond ωτ = 20 less than the line's distance from 0",
            f"{len(taus)} round trips", tail, f"< {beyond:.4f}", tail < beyond,
        ),
    ]  # fmt: skip


def falls(gains: Gains, tau_max_s: float) -> Check:
    """`[maxnet-2007:lemma2]` ω₀(τ) falls as τ grows: its largest step up, relative, over a grid."""
    taus = tau_max_s * np.geomspace(1e-6, 1.0, 200)
    values = np.array([maxnet.omega_0(gains, float(tau)) for tau in taus])
    rise = float(np.max(np.diff(values) / values[:-1]))
    return Check("ω₀(τ) falls as τ grows", "200 round trips", rise, "< 0", rise < 0)


_CUT = "Proposition 2: the tail below τ′ stays below y = γx"


def truncation(gains: Gains, built: maxnet.Construction) -> Check:
    """`[maxnet-2007:prop2]` Whether the tail stays below y = γx for every τ below τ′.

    The proposition leaves those τ out, by Lemma 2(5), which compares round trips at one φ; the
    tail is at one ω, and there the phase need not be monotone. No certificate rests on it: the
    premises are checked on the whole tail. The value is the sine of the largest angle above.
    """
    if built.tau_cut_s == 0:  # the whole tail is above y = γx: nothing is left out
        return Check(_CUT, "no τ′", -math.inf, "≤ 0", True)
    taus = built.tau_cut_s * np.geomspace(1e-9, 0.9999, 4000)
    tail = maxnet.response(gains, built.omega_rad_s, taus)
    heights = (
        (built.line.run * tail.imag - tail.real) / np.abs(tail) / math.hypot(1, built.line.run)
    )
    back = taus[heights > 0]
    where = f", back above from {back[0]:.4g} to {back[-1]:.4g} s" if len(back) else ""
    value = float(np.max(heights))
    points = f"{len(taus)} round trips below {built.tau_cut_s:.4g} s{where}"
    return Check(_CUT, points, value, "≤ 0", value <= 0)


def certify(gains: Gains, alpha: float, tau_max_s: float) -> dict[str, Any]:
    """Everything that is checked for one loop, as a document.

    `certified` is whether α is proven stable for every mixture of round trips up to τ̄: by
    Algorithm 3 with its premises checked, or else by Lemma 1 over the mixture itself.
    """
    built = maxnet.construct(gains, tau_max_s)
    checks = [falls(gains, tau_max_s), *premises(gains, tau_max_s, built.omega_rad_s, built.line)]
    limit = hull_limit(gains, mixture(tau_max_s))
    cut = truncation(gains, built)
    by_line = all(check.holds for check in checks) and alpha < built.alpha_max
    by_hull = alpha < (1 - GRID_SLACK) * limit.alpha_max
    return {
        "alpha": alpha,
        "alpha_t_s": gains.alpha_t_s,
        "eta": gains.eta,
        "average": gains.average,
        "dt_p_s": gains.dt_p_s,
        "max_rtt_s": tau_max_s,
        "omega_rad_s": built.omega_rad_s,
        "slope": built.line.slope,
        "alpha_max": built.alpha_max,
        "tau_cut_s": built.tau_cut_s,
        "proposition_2": cut._asdict(),
        "alpha_max_lemma1": limit.alpha_max,
        "omega_lemma1_rad_s": limit.omega_rad_s,
        "checks": [check._asdict() for check in checks],
        "by_algorithm_3": by_line,
        "by_lemma_1": by_hull,
        "certified": by_line or by_hull,
    }


def common_zero(gains: Gains, alpha: float, tau_max_s: float) -> dict[str, float]:
    """`[maxnet-2007:VIII.C]` The largest zero z common to all flows that Lemma 1 allows up to τ̄.

    With it, flows become fair in a time constant of 1/z whatever their round trip; with z = η/τ
    each in τ/η. `fair_s` and `fair_common_s` are the two at the round trip αT.
    """
    taus = mixture(tau_max_s, count=80)

    def excess(log_z: float) -> float:
        limit = hull_limit(gains._replace(zero_rad_s=math.exp(log_z)), taus)
        return alpha / limit.alpha_max - 1

    low, high = math.log(1e-6 / tau_max_s), math.log(10.0 / tau_max_s)
    z = math.exp(float(brentq(excess, low, high, xtol=1e-3)))
    return {
        "zero_rad_s": z,
        "zero_times_max_rtt": z * tau_max_s,
        "fair_common_s": 1 / z,
        "fair_s": gains.alpha_t_s / gains.eta,
    }
