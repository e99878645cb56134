"""Tuning procedure of MaxNet (maxnet-2007 §VIII.E), with the step responses for the procedure's
third step.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from waterfill.theory import certificate, maxnet
from waterfill.theory.certificate import Certificate
from waterfill.theory.loops import Margins, Reals
from waterfill.theory.maxnet import Average, Gains, Params
from waterfill.theory.roots import brentq

# The η that step 3 compares.
_ETAS = (0.03, 0.06, 0.1, 0.2)
# Longest time of a price, in RTTs. Beyond it the loop is one of samples, which no proof covers.
LONGEST_HOLD = 1 / 4
# The paper's smallest RTT of its own tuning is longer than this.
WIDE_AREA_S = 0.08
# Some seconds of computing; RTTs of 1 ms with the paper's parameters take a sixth of it.
_MAX_STEPS = 2_000_000


class Tuned(NamedTuple):
    """MaxNet's α and T (s) from step 2 of the procedure, with the margins at the tuned RTT."""

    alpha: float
    t_s: float
    margins: Margins


def tune(
    tau_s: float, eta: float, average: Average, dt_p_s: float, phase_margin_deg: float
) -> Tuned:
    """`[maxnet-2007:VIII.E]` Run steps 1 and 2: set αT = τ, and α for the phase margin at τ.

    The text requires Arg F > −3π/2 where |F| > 1; a margin of 45° above −π is −3π/4, used here.
    """
    gains = Gains(tau_s, eta, average, dt_p_s)

    def excess(alpha: float) -> float:
        return maxnet.loop_margins(gains, alpha, tau_s).phase_margin_deg - phase_margin_deg

    alpha = float(brentq(excess, 1e-3, math.pi / 2, xtol=1e-12))
    return Tuned(alpha, tau_s / alpha, maxnet.loop_margins(gains, alpha, tau_s))


class Step(NamedTuple):
    """Step response of a flow's ln x after capacity grows by a factor e, with three readings.

    `two_thirds_s`: when it first reaches 2/3 of the step; `initial`: the fraction reached after six
    RTTs; `settled_s`: when it stays within 2 % for good. inf where it does not happen in time.
    """

    time_s: Reals
    log_rate: Reals
    two_thirds_s: float
    initial: float
    settled_s: float


def step_response(gains: Gains, alpha: float, tau_s: float, duration_s: float) -> Step:
    """`[maxnet-2007:eq6]` Return the linearised response of one flow to a step of 1 in ln capacity.

    ṗ = r − 1 with r = ln x; r = ξ − αq/τ; ξ̇ = (αη/τ²)((αT/τ − 1)q − Tξ); q is p one RTT ago,
    averaged over one RTT if the loop averages. ξ and the average are exact for a q held at its mean
    over each step of τ/200 (τ/20 if τ is short compared with αT, where ξ changes little per RTT).
    """
    t_s = gains.alpha_t_s / alpha
    lag = _lag(gains, tau_s)
    dt = tau_s / lag
    steps = math.ceil(duration_s / dt)
    if steps > _MAX_STEPS:
        message = f"a step response of at most {_MAX_STEPS} steps of {dt:.3g} s"
        raise ValueError(f"{message}, got {steps:.3g} for {duration_s:.3g} s")
    keep_xi = math.exp(-alpha * gains.eta / tau_s**2 * t_s * dt)
    keep_received = math.exp(-dt / tau_s)
    averages, sliding = gains.average != "off", gains.average == "sliding"
    xi_gain = alpha / tau_s - 1 / t_s
    price = np.zeros(steps + 1)
    rate = np.zeros(steps + 1)
    xi = received = 0.0
    for k in range(steps):
        late = price[k - lag] if k >= lag else 0.0
        next_late = price[k + 1 - lag] if k + 1 >= lag else 0.0
        mean = (late + next_late) / 2
        rate[k] = xi - alpha / tau_s * (received if averages else late)
        before = received
        if sliding:
            older = price[k + 1 - 2 * lag] + price[k - 2 * lag] if k >= 2 * lag else 0.0
            received += (mean - older / 2) / lag
        else:
            received = mean + (received - mean) * keep_received
        q = (before + received) / 2 if averages else mean
        xi = xi_gain * q + (xi - xi_gain * q) * keep_xi
        after = xi - alpha / tau_s * (received if averages else next_late)
        price[k + 1] = price[k] + dt * ((rate[k] + after) / 2 - 1)
    rate[steps] = xi - alpha / tau_s * (received if averages else price[steps - lag])
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


def _lag(gains: Gains, tau_s: float) -> int:
    """Return the number of steps of a step response per RTT."""
    return 200 if tau_s > 0.05 * gains.alpha_t_s else 20


def longest_s(gains: Gains, tau_s: float) -> float:
    """Return the longest duration (s) of a `step_response` at the RTT τ."""
    return _MAX_STEPS * tau_s / _lag(gains, tau_s)


class Trade(NamedTuple):
    """Step-response readings for one η at one RTT (s)."""

    eta: float
    rtt_s: float
    initial: float
    two_thirds_s: float
    settled_s: float


def eta_table(
    tuned: Tuned, tau_s: float, average: Average, dt_p_s: float, etas: tuple[float, ...] = _ETAS
) -> list[Trade]:
    """Compare values of η (step 3), at the tuned RTT and at a quarter of it."""
    rows = []
    for eta in etas:
        gains = Gains(tau_s, eta, average, dt_p_s)
        for rtt_s in (tau_s / 4, tau_s):
            step = step_response(gains, tuned.alpha, rtt_s, 60 * tau_s)
            rows.append(Trade(eta, rtt_s, step.initial, step.two_thirds_s, step.settled_s))
    return rows


def price_interval_s(dt_p_s: float, tau_s: float) -> float:
    """Return the longest time of a price, at most `dt_p_s`, that leaves the loop as it is tuned.

    Our choice; the paper has RTTs that are long compared with it. At τ/10 its hold costs 3° of
    phase at the crossover, and a shorter one only costs updates.
    """
    return min(dt_p_s, tau_s / 10)


def verified_s(tau_s: float) -> float:
    """Return the RTT (s) up to which a tuning for the RTT τ is verified by default.

    1000 s is the paper's (§VIII.B); a loop that is tuned for a fabric never meets it.
    """
    return 1000.0 if tau_s >= WIDE_AREA_S else 100 * tau_s


class Tuning(NamedTuple):
    """Result of the tuning procedure for one loop: parameters, trade-off of η, and certificate."""

    eta: float
    tuned: Tuned
    trades: list[Trade]
    certificate: Certificate

    @property
    def params(self) -> dict[str, float]:
        """MaxNet's parameters as chosen by the procedure."""
        found = {"alpha": self.tuned.alpha, "t": self.tuned.t_s, "eta": self.eta}
        held_s = self.certificate.gains.dt_p_s
        return {**found, "dt_p": held_s} if held_s else found

    def document(self) -> dict[str, Any]:
        """Return the tuning as the keys of `theory stability --tune --json`."""
        margins = self.tuned.margins
        return {
            "params": self.params,
            "phase_margin_deg": margins.phase_margin_deg,
            "delay_margin_s": margins.delay_margin_s,
            "crossover_rad_s": margins.crossover_rad_s,
            "step": [trade._asdict() for trade in self.trades],
            "certificate": self.certificate.document(),
        }


class Procedure(NamedTuple):
    """Result of the tuning procedure for the paper's eq. 13 and for the loop as implemented."""

    rtt_s: float
    verify_rtt_s: float
    eta: float
    eq13: Tuning
    implemented: Tuning

    def document(self) -> dict[str, Any]:
        """Return the procedure's result as the key `tune` of `theory stability --tune --json`."""
        return {
            "rtt_s": self.rtt_s,
            "verify_rtt_s": self.verify_rtt_s,
            "eta": self.eta,
            "eq13": self.eq13.document(),
            "implemented": self.implemented.document(),
        }


def procedure(
    tau_s: float, verify_s: float, p: Params, eta: float, phase_margin_deg: float
) -> Procedure:
    """Tune MaxNet for the RTT τ; certify the result for all mixtures of RTTs to `verify_s`."""

    def one(average: Average, dt_p_s: float) -> Tuning:
        tuned = tune(tau_s, eta, average, dt_p_s, phase_margin_deg)
        gains = Gains(tau_s, eta, average, dt_p_s)
        return Tuning(
            eta,
            tuned,
            eta_table(tuned, tau_s, average, dt_p_s),
            certificate.certify(gains, tuned.alpha, verify_s),
        )

    return Procedure(tau_s, verify_s, eta, one("off", 0.0), one(p.average, p.dt_p_s))
