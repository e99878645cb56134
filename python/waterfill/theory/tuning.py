"""MaxNet's tuning procedure (maxnet-2007 §VIII.E) and responses in time that guide its third
step.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from waterfill.theory import certificate, maxnet
from waterfill.theory.loops import Margins, Reals
from waterfill.theory.maxnet import Gains

# Step 2: "η ≈ 0.1", "a phase margin of 45°".
ETA = 0.1
PHASE_MARGIN_DEG = 45.0


class Tuned(NamedTuple):
    """α and T (s) of step 2, with the margins at the round trip that was tuned for."""

    alpha: float
    t_s: float
    margins: Margins


def tune(tau_s: float, eta: float, average: bool, dt_p_s: float, phase_margin_deg: float) -> Tuned:
    """`[maxnet-2007:VIII.E]` Steps 1 and 2: αT = τ, and α for the phase margin at τ.

    The text asks for Arg F > −3π/2 where |F| > 1; 45° above −π is −3π/4, which is taken here.
    """
    gains = Gains(tau_s, eta, average, dt_p_s)

    def excess(alpha: float) -> float:
        return maxnet.loop_margins(gains, alpha, tau_s).phase_margin_deg - phase_margin_deg

    alpha = float(brentq(excess, 1e-3, math.pi / 2, xtol=1e-12))
    return Tuned(alpha, tau_s / alpha, maxnet.loop_margins(gains, alpha, tau_s))


class Step(NamedTuple):
    """A flow's ln x after capacity has grown by a factor e: times (s), ln x, and three readings.

    `two_thirds_s`: first at 2/3 of the way; `initial`: how far it is after six round trips;
    `settled_s`: from when it stays within 2 %. inf where that does not happen in time.
    """

    time_s: Reals
    log_rate: Reals
    two_thirds_s: float
    initial: float
    settled_s: float


def step_response(gains: Gains, alpha: float, tau_s: float, duration_s: float) -> Step:
    """`[maxnet-2007:eq6]` linear: one flow of round trip τ on a link whose ln capacity steps by 1.

    ṗ = r − 1 with r = ln x; r = ξ − αq/τ; ξ̇ = (αη/τ²)((αT/τ − 1)q − Tξ); q is p one round trip
    ago, averaged over one if the loop averages. ξ and the average are exact for a q that is its
    mean over each step of τ/200 (τ/20 where τ is short beside αT and nothing happens within it).
    """
    t_s = gains.alpha_t_s / alpha
    lag = 200 if tau_s > 0.05 * gains.alpha_t_s else 20
    dt = tau_s / lag
    steps = math.ceil(duration_s / dt)
    keep_xi = math.exp(-alpha * gains.eta / tau_s**2 * t_s * dt)
    keep_heard = math.exp(-dt / tau_s)
    rest = alpha / tau_s - 1 / t_s
    price = np.zeros(steps + 1)
    rate = np.zeros(steps + 1)
    xi = heard = 0.0
    for k in range(steps):
        late = price[k - lag] if k >= lag else 0.0
        next_late = price[k + 1 - lag] if k + 1 >= lag else 0.0
        mean = (late + next_late) / 2
        rate[k] = xi - alpha / tau_s * (heard if gains.average else late)
        before, heard = heard, mean + (heard - mean) * keep_heard
        q = (before + heard) / 2 if gains.average else mean
        xi = rest * q + (xi - rest * q) * keep_xi
        after = xi - alpha / tau_s * (heard if gains.average else next_late)
        price[k + 1] = price[k] + dt * ((rate[k] + after) / 2 - 1)
    rate[steps] = xi - alpha / tau_s * (heard if gains.average else price[steps - lag])
    times = np.asarray(dt * np.arange(steps + 1), dtype=np.float64)
    above = np.flatnonzero(rate >= 2 / 3)
    outside = np.flatnonzero(np.abs(rate - 1) > 0.02)
    last = int(outside[-1]) if len(outside) else 0
    early = min(steps, 6 * lag)
    return Step(
        times, rate,
        float(times[above[0]]) if len(above) else math.inf,
        float(rate[early]),
        float(times[last + 1]) if last < steps else math.inf,
    )  # fmt: skip


def eta_table(
    tuned: Tuned, tau_s: float, average: bool, dt_p_s: float, etas: tuple[float, ...]
) -> list[dict[str, Any]]:
    """Step 3: what η trades, at a quarter and at the whole of the round trip tuned for."""
    rows = []
    for eta in etas:
        gains = Gains(tau_s, eta, average, dt_p_s)
        for rtt in (tau_s / 4, tau_s):
            step = step_response(gains, tuned.alpha, rtt, 60 * tau_s)
            rows.append(
                {
                    "eta": eta, "rtt_s": rtt, "initial": step.initial,
                    "two_thirds_s": step.two_thirds_s, "settled_s": step.settled_s,
                }
            )  # fmt: skip
    return rows


def procedure(
    tau_s: float, verify_s: float, params: dict[str, Any], eta: float, phase_margin_deg: float
) -> dict[str, Any]:
    """All four steps as a document, for eq. 13 as in the paper and for the loop as implemented."""
    found: dict[str, Any] = {"rtt_s": tau_s, "verify_rtt_s": verify_s, "eta": eta}
    loops = {
        "eq13": (False, 0.0),
        "implemented": (bool(params["average"]), float(params["dt_p"])),
    }
    for name, (average, dt_p_s) in loops.items():
        tuned = tune(tau_s, eta, average, dt_p_s, phase_margin_deg)
        gains = Gains(tau_s, eta, average, dt_p_s)
        found[name] = {
            "params": {"alpha": tuned.alpha, "t": tuned.t_s, "eta": eta},
            "phase_margin_deg": tuned.margins.phase_margin_deg,
            "delay_margin_s": tuned.margins.delay_margin_s,
            "crossover_rad_s": tuned.margins.crossover_rad_s,
            "step": eta_table(tuned, tau_s, average, dt_p_s, (0.03, 0.06, 0.1, 0.2)),
            "certificate": certificate.certify(gains, tuned.alpha, verify_s),
        }
    return found
