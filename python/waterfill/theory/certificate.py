"""Stability certificates of MaxNet: the checks, their points and their margins.

Three things, each for eq. 13 and for the loop as implemented: Algorithm 3's line and α_max; its
two premises point by point, since Lemma 2 proves them for eq. 13 only; and Lemma 1 itself, for
given RTTs or for every mixture up to τ̄. Lemma 1 allows a larger α than any one line can prove.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from waterfill.contract.record import Record
from waterfill.theory import loops, maxnet
from waterfill.theory.loops import Line, Reals
from waterfill.theory.maxnet import Gains
from waterfill.theory.roots import brentq, minimize_scalar

# Above this ωτ F is small and its phase turns quickly: it is replaced by a disc, which covers
# every phase.
_FAR = 30.0
# A polygon that contains the unit disc, so its corners are slightly outside.
_DISC = np.exp(2j * math.pi * np.arange(32) / 32) / math.cos(math.pi / 32)

# How much a finer mixture could still lower α_max: going from 400 to 1500 RTTs lowers it by 0.1 %.
GRID_SLACK = 0.01


class CertificateLimit(NamedTuple):
    """The maximum stable α by Lemma 1, and the frequency at which any larger α fails."""

    alpha_max: float
    omega_rad_s: float


class Check(NamedTuple):
    """One line of a certificate: the check, its points, the worst value, and the bound."""

    what: str
    points: str
    value: float
    bound: str
    holds: bool


def hull_limit(gains: Gains, taus_s: Iterable[float]) -> CertificateLimit:
    """`[maxnet-2007:lemma1]` Return the maximum α with −1/α left of Co{F(jω, τ_i)} at all ω.

    Exact for the given RTTs, on a grid of frequencies refined around its worst points.
    """
    taus = np.unique(np.fromiter(taus_s, dtype=np.float64))
    # Each F crosses the axis at a known frequency, which need not be on the grid.
    best, where = 0.0, math.nan
    for tau in (float(tau) for tau in taus):
        omega = maxnet.omega_0(gains, tau)
        size = abs(complex(maxnet.response(gains, omega, tau)))
        if size > best:
            best, where = size, omega
    low, high = 0.1 * maxnet.omega_0(gains, float(taus[-1])), 10.0 * math.pi / taus[0]
    grid = np.geomspace(low, high, max(400, int(100 * math.log(high / low))))
    # No hull extends beyond its largest |F|, which settles most frequencies.
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
    return CertificateLimit(1 / best, where)


def _reach(gains: Gains, omega: float, taus: Reals) -> float:
    return float(np.max(np.abs(maxnet.response(gains, omega, taus))))


def mixture(tau_max_s: float, count: int = 400, decades: float = 9.0) -> Reals:
    """Return RTTs that represent all mixtures up to τ̄, dense near τ̄, where the worst ones are."""
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
    """Check the two premises of Proposition 1 on a grid of frequencies and RTTs.

    Below the threshold frequency every F is below the real axis; above it every F is below the
    line. Then so is every convex hull, which is Lemma 1's condition for every α < 1/intercept.
    """
    taus = tau_max_s * np.geomspace(1e-9, 1.0, 900)[:, None]
    phis = np.geomspace(1e-6, 20.0, 800)[None, :]
    omegas = phis / taus
    points = maxnet.response(gains, omegas, taus)
    below = omegas < threshold
    # The sine of the angle above the real axis; it is rounding error at τ̄ and the threshold.
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
            f"{len(taus)} RTTs", tail, f"< {beyond:.4f}", tail < beyond,
        ),
    ]  # fmt: skip


def falls(gains: Gains, tau_max_s: float) -> Check:
    """`[maxnet-2007:lemma2]` Check that ω₀(τ) decreases with τ, by the largest relative rise
    between two RTTs.
    """
    taus = tau_max_s * np.geomspace(1e-6, 1.0, 200)
    values = np.array([maxnet.omega_0(gains, float(tau)) for tau in taus])
    rise = float(np.max(np.diff(values) / values[:-1]))
    return Check("ω₀(τ) falls as τ grows", "200 RTTs", rise, "< 0", rise < 0)


def lemma_2(gains: Gains, tau_max_s: float) -> tuple[float, ...]:
    """`[maxnet-2007:lemma2]` Return the share of grid points at which each of the lemma's six
    statements fails, for eq. 13.

    Derivatives are exact, in u = ln φ and v = ln τ with p = ηαT/τ. At constant θ the gain L = ln|F|
    changes by L_v·dv + L_u·du with θ_u·du = −θ_v·dv. Where the phase rises with φ, which a lag
    compensator allows, that changes the sign of (3), and of (4) where it rises with τ at one ω.
    """
    taus = tau_max_s * np.geomspace(1e-9, 1.0, 600)[:, None]
    phi, p, eta = (
        np.geomspace(1e-4, 20.0, 601)[None, :],
        gains.eta * gains.alpha_t_s / taus,
        gains.eta,
    )
    theta = np.arctan(phi / eta) - np.arctan(phi / p) - math.pi / 2 - phi
    zero, pole = phi**2 + eta**2, phi**2 + p**2
    gain_u, gain_v = -1 + phi**2 / zero - phi**2 / pole, p**2 / pole
    theta_u, theta_v = phi * eta / zero - phi * p / pole - phi, -phi * p / pole
    turn = gain_u * theta_v - gain_v * theta_u
    left = theta < -math.pi / 2
    thresholds = [maxnet.omega_0(gains, float(tau)) for tau in taus[::3, 0]]
    return (
        float(np.mean(np.diff(thresholds) >= 0)),
        float(np.mean((turn / theta_v >= 0)[left])),
        float(np.mean((turn / theta_u >= 0)[left])),
        float(np.mean(turn / (theta_u + theta_v) >= 0)),
        float(np.mean(theta_v >= 0)),
        float(np.mean(gain_v <= 0)),
    )


_CUT = "Proposition 2: the tail below τ′ stays below y = γx"


def truncation(gains: Gains, built: maxnet.Construction) -> Check:
    """`[maxnet-2007:prop2]` Check that the tail stays below y = γx for every τ below τ′.

    The proposition leaves those τ out by Lemma 2(5), which compares RTTs at one φ. The tail is at
    one ω, where the phase need not be monotone. No certificate depends on it: the premises are
    checked on the whole tail. The value is the sine of the largest angle above the line.
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
    points = f"{len(taus)} RTTs below {built.tau_cut_s:.4g} s{where}"
    return Check(_CUT, points, value, "≤ 0", value <= 0)


class CheckEntry(Record):
    """JSON form of a `Check`."""

    what: str
    points: str
    value: float
    bound: str
    holds: bool


class Proof(Record):
    """JSON form of a `Certificate`."""

    alpha: float
    alpha_t_s: float
    eta: float
    average: str
    dt_p_s: float
    max_rtt_s: float
    omega_rad_s: float
    slope: float
    alpha_max: float
    tau_cut_s: float
    proposition_2: CheckEntry
    alpha_max_lemma1: float
    omega_lemma1_rad_s: float
    checks: list[CheckEntry]
    by_algorithm_3: bool
    by_lemma_1: bool
    certified: bool


class Certificate(NamedTuple):
    """Checks of one MaxNet loop for all RTTs up to τ̄, with their verdict. Times are in s,
    frequencies in rad/s.
    """

    gains: Gains
    alpha: float
    max_rtt_s: float
    built: maxnet.Construction
    limit: CertificateLimit
    checks: list[Check]
    proposition_2: Check

    @property
    def by_algorithm_3(self) -> bool:
        """True if Algorithm 3 proves α stable: its premises hold, and α is below its α_max."""
        return all(check.holds for check in self.checks) and self.alpha < self.built.alpha_max

    @property
    def by_lemma_1(self) -> bool:
        """True if Lemma 1 proves α stable, with a margin `GRID_SLACK` for the error of the
        frequency grid.
        """
        return self.alpha < (1 - GRID_SLACK) * self.limit.alpha_max

    @property
    def certified(self) -> bool:
        """True if either proof shows that α is stable for all mixtures of RTTs up to τ̄."""
        return self.by_algorithm_3 or self.by_lemma_1

    def document(self) -> Proof:
        """Return the certificate as the keys of `theory stability --json`."""
        return Proof(
            alpha=self.alpha,
            alpha_t_s=self.gains.alpha_t_s,
            eta=self.gains.eta,
            average=self.gains.average,
            dt_p_s=self.gains.dt_p_s,
            max_rtt_s=self.max_rtt_s,
            omega_rad_s=self.built.omega_rad_s,
            slope=self.built.line.slope,
            alpha_max=self.built.alpha_max,
            tau_cut_s=self.built.tau_cut_s,
            proposition_2=CheckEntry.read(self.proposition_2._asdict()),
            alpha_max_lemma1=self.limit.alpha_max,
            omega_lemma1_rad_s=self.limit.omega_rad_s,
            checks=[CheckEntry.read(check._asdict()) for check in self.checks],
            by_algorithm_3=self.by_algorithm_3,
            by_lemma_1=self.by_lemma_1,
            certified=self.certified,
        )


def certify(gains: Gains, alpha: float, tau_max_s: float) -> Certificate:
    """Check one loop for all mixtures of RTTs up to τ̄."""
    built = maxnet.construct(gains, tau_max_s)
    checks = [falls(gains, tau_max_s), *premises(gains, tau_max_s, built.omega_rad_s, built.line)]
    limit = hull_limit(gains, mixture(tau_max_s))
    return Certificate(gains, alpha, tau_max_s, built, limit, checks, truncation(gains, built))


class CommonZero(NamedTuple):
    """The largest stable zero z (rad/s) common to all flows, and the resulting times (s).

    Flows become fair with the time constant `fair_common_s` = 1/z whatever their RTT; with z = η/τ
    of each flow's own it is τ/η, which at τ = αT is `fair_s`.
    """

    zero_rad_s: float
    zero_times_max_rtt: float
    fair_common_s: float
    fair_s: float


def common_zero(gains: Gains, alpha: float, tau_max_s: float) -> CommonZero:
    """`[maxnet-2007:VIII.C]` Find the largest common zero z that Lemma 1 allows up to τ̄."""
    taus = mixture(tau_max_s, count=80)

    def excess(log_z: float) -> float:
        limit = hull_limit(gains._replace(zero_rad_s=math.exp(log_z)), taus)
        return alpha / limit.alpha_max - 1

    low, high = math.log(1e-6 / tau_max_s), math.log(10.0 / tau_max_s)
    z = math.exp(float(brentq(excess, low, high, xtol=1e-3)))
    return CommonZero(z, z * tau_max_s, 1 / z, gains.alpha_t_s / gains.eta)
