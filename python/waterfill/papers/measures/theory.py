"""Measures that need no run: theory and wire formats at a paper's parameters.

Every argument is a keyword. Rates are in bit/s, times in s; angular frequencies come out as a
phase ω·τ or as 1/ω where the claim is about one.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from waterfill.theory import certificate, encoding, maxnet, rcp, tuning
from waterfill.theory.maxnet import Average, Construction, Gains

Words: TypeAlias = NDArray[np.int64]

# --- maxnet-2007 §VIII: stability ---------------------------------------------------------------


@lru_cache(maxsize=16)
def _built(alpha_t_s: float, eta: float, max_rtt_s: float, slope: float | None) -> Construction:
    return maxnet.construct(Gains(alpha_t_s, eta), max_rtt_s, slope)


def maxnet_threshold(*, alpha_t_s: float, eta: float, max_rtt_s: float) -> float:
    """`[maxnet-2007:eq14]` Return the threshold frequency ω̲ = ω₀(τ̄) (rad/s) of MaxNet."""
    return maxnet.omega_0(Gains(alpha_t_s, eta), max_rtt_s)


def maxnet_threshold_phase(*, alpha_t_s: float, eta: float, max_rtt_s: float) -> float:
    """Return MaxNet's threshold phase ω̲·τ̄, which is 1 at the threshold 1/τ̄ of a common zero."""
    return max_rtt_s * maxnet.omega_0(Gains(alpha_t_s, eta), max_rtt_s)


def maxnet_slope(*, alpha_t_s: float, eta: float, max_rtt_s: float) -> float:
    """`[maxnet-2007:alg3]` Return the slope γ of the line that maximises α_max."""
    return _built(alpha_t_s, eta, max_rtt_s, None).line.slope


def maxnet_alpha_max(
    *, alpha_t_s: float, eta: float, max_rtt_s: float, slope: float | None = None
) -> float:
    """`[maxnet-2007:alg3]` Return α_max of the best line, or of a line with the given slope."""
    return _built(alpha_t_s, eta, max_rtt_s, slope).alpha_max


def maxnet_hull_limit(
    *,
    alpha_t_s: float,
    eta: float,
    max_rtt_s: float,
    average: Average = "off",
    dt_p_s: float = 0.0,
) -> float:
    """`[maxnet-2007:lemma1]` Return the largest α that Lemma 1 proves for RTTs up to τ̄.

    `average` and `dt_p_s` add the lags of the loop as implemented to eq. 13.
    """
    gains = Gains(alpha_t_s, eta, average, dt_p_s)
    return certificate.hull_limit(gains, certificate.mixture(max_rtt_s, count=80)).alpha_max


def maxnet_lemma_2(*, alpha_t_s: float, eta: float, max_rtt_s: float, part: int) -> float:
    """`[maxnet-2007:lemma2]` Return the share of frequencies and RTTs up to τ̄ at which a part of
    Lemma 2, 1 to 6, fails.
    """
    return _lemma_2(alpha_t_s, eta, max_rtt_s)[part - 1]


@lru_cache(maxsize=4)
def _lemma_2(alpha_t_s: float, eta: float, max_rtt_s: float) -> tuple[float, ...]:
    return certificate.lemma_2(Gains(alpha_t_s, eta), max_rtt_s)


def maxnet_truncation(*, alpha_t_s: float, eta: float, max_rtt_s: float) -> float:
    """`[maxnet-2007:prop2]` Return the sine of the largest angle of the tail below τ′ over y = γx,
    which Proposition 2 needs to be negative.
    """
    built = _built(alpha_t_s, eta, max_rtt_s, None)
    return certificate.truncation(Gains(alpha_t_s, eta), built).value


def maxnet_single_limit(
    *, alpha_t_s: float, eta: float, rtt_s: float, common_rtt_s: float
) -> float:
    """`[maxnet-2007:eq11]` Return the α above which flows of one RTT are unstable, by Nyquist.

    The zero is η/`common_rtt_s`, that of a flow with this other RTT.
    """
    gains = Gains(alpha_t_s, eta, zero_rad_s=eta / common_rtt_s)
    return 1 / abs(complex(maxnet.response(gains, maxnet.omega_0(gains, rtt_s), rtt_s)))


@lru_cache(maxsize=4)
def maxnet_common_zero(*, alpha: float, alpha_t_s: float, eta: float, max_rtt_s: float) -> float:
    """Return the largest zero z (rad/s) common to all flows that Lemma 1 allows up to τ̄."""
    return certificate.common_zero(Gains(alpha_t_s, eta), alpha, max_rtt_s).zero_rad_s


def maxnet_fairness(
    *, alpha: float, alpha_t_s: float, eta: float, rtts_s: list[float], zero_rad_s: float
) -> float:
    """Return the time constant (s) with which flows with a common zero z approach their rates."""
    gains = Gains(alpha_t_s, eta, zero_rad_s=zero_rad_s)
    return float(-1 / maxnet.modes(gains, alpha, rtts_s)[-1].real)


def maxnet_fairness_gain(
    *, alpha: float, alpha_t_s: float, eta: float, rtts_s: list[float], zero_rad_s: float
) -> float:
    """Return the speed-up of flows with their own z = η/τ over flows with a common z."""
    own = maxnet.modes(Gains(alpha_t_s, eta), alpha, rtts_s)[-1].real
    common = Gains(alpha_t_s, eta, zero_rad_s=zero_rad_s)
    return float(own / maxnet.modes(common, alpha, rtts_s)[-1].real)


def maxnet_margin_change(*, alpha: float, alpha_t_s: float, eta: float, rtt_s: float) -> float:
    """`[maxnet-2007:VIII.B]` Return the phase margin that the compensator adds to the loop
    αe^(−sτ)/(sτ), as a fraction of 180°.
    """
    margins = maxnet.loop_margins(Gains(alpha_t_s, eta), alpha, rtt_s)
    return margins.phase_margin_deg / 180 - (0.5 - alpha / math.pi)


def maxnet_printed_margin(*, rtt_s: float) -> float:
    """`[maxnet-2007:VIII.E]` Return the phase margin, as a fraction of 180°, at the largest α with
    Arg F > −3π/2 where |F| > 1, for αT = τ.
    """
    gains = Gains(rtt_s, 0.1)
    omega = math.pi / rtt_s  # Arg F = −π/2 − ωτ
    alpha = 1 / abs(complex(maxnet.response(gains, omega, rtt_s)))
    return maxnet.loop_margins(gains, alpha, rtt_s).phase_margin_deg / 180


def maxnet_eta_effect(
    *, eta: float, other_eta: float, tuned_rtt_s: float, rtt_s: float, what: str
) -> float:
    """`[maxnet-2007:VIII.E]` Return a step response's "rise" (to 2/3) or "settling" time with η ÷
    that with another η, after steps 1 and 2 of the tuning procedure.
    """
    alpha = tuning.tune(tuned_rtt_s, eta, "off", 0.0, 45.0).alpha
    steps = [
        tuning.step_response(Gains(tuned_rtt_s, one, "off"), alpha, rtt_s, 60 * tuned_rtt_s)
        for one in (eta, other_eta)
    ]
    times = [step.two_thirds_s if what == "rise" else step.settled_s for step in steps]
    return times[0] / times[1]


def maxnet_static_error(
    *, alpha: float, x_max_bps: float, rtts_s: list[float], total_bps: float
) -> float:
    """`[maxnet-2007:eq5]` Return the largest distance of a flow's rate from an equal share, as a
    fraction of it, on one link under eq. 5's static law.
    """
    rates = maxnet.static_rates_bps(alpha, x_max_bps, rtts_s, total_bps)
    return float(abs(rates / (total_bps / len(rtts_s)) - 1).max())


def maxnet_static_time(*, max_rtt_s: float) -> float:
    """`[maxnet-2007:I]` Return the smallest time constant (s) of one demand function for all flows
    that is stable up to an RTT.
    """
    return maxnet.static_time_s(max_rtt_s)


def rcp_price_distance(*, alpha: float, tau_s: float, dt_s: float) -> float:
    """`[maxnet-2007:eq17]` Return the largest relative distance between RCP's rate with β = 0 and
    that of MaxNet's price law.
    """
    return rcp.distance_from_price_law(alpha, tau_s, dt_s)


# --- maxnet-2007 §VII.A.3: MaxStart --------------------------------------------------------------


def maxstart_bound(*, x: float, mu: float) -> float:
    """Return the overload max(0, (1 + 1/N)μ − 1) when one flow joins N = `x` flows."""
    return max(0.0, (1 + 1 / x) * mu - 1)


# --- maxnet-2007 §V, tcp-maxnet-2006 §3.3: encoding -----------------------------------------------


def price_integer_bits(*, x_max_bps: float, x_min_bps: float, t_s: float = 1.0) -> float:
    """`[maxnet-2007:V]` Return the number of integer bits of a price for this range of rates."""
    return encoding.bits_needed(t_s, x_max_bps, x_min_bps, 1e-5).integer


def price_fraction_bits(*, epsilon: float, t_s: float = 1.0) -> float:
    """`[maxnet-2007:V]` Return the number of fraction bits of a price for rate steps of at most a
    factor 1 + ε.
    """
    return encoding.bits_needed(t_s, 1e15, 32.0, epsilon).fraction


def rate_bits(*, x_max_bps: float) -> float:
    """Return the number of bits of a rate field that counts whole bit/s up to x_max."""
    return math.ceil(math.log2(x_max_bps))


def price_field_rate(*, t_s: float, x_max_bps: float, end: str) -> float:
    """`[maxnet-2007:eq7]` Return the smallest or largest rate (bit/s) that a price field can
    express.

    Code 0 is what no router wrote.
    """
    codes = {"smallest": 2.0 ** (encoding.INTEGER_BITS + encoding.FRACTION_BITS) - 1, "largest": 1}
    return encoding.rate_of(codes[end] * encoding.PRICE_STEP_S, t_s, x_max_bps)


def price_rate_step(*, t_s: float) -> float:
    """`[maxnet-2007:eq7]` Return the relative step per price code of a rate ∝ e^(−q/T)."""
    return encoding.rate_step(1 / t_s)


def least_price_code(*, t_s: float, x_max_bps: float, rate_bps: float) -> float:
    """`[tcp-maxnet-2006:eq11]` Return p_min of a link as a rounded price code (2⁻¹⁸ s)."""
    return round(encoding.price_of(rate_bps, t_s, x_max_bps) / encoding.PRICE_STEP_S)


def exponential_table_error(
    *, entries: int, x_max_bps: float, x_min_bps: float, interpolated: bool = False
) -> float:
    """Return the largest relative error of e^(−u) from a table of evenly spaced u.

    The nearest entry is off by half a step; between two entries a chord is above the curve by
    at most step²/8 of its value.
    """
    step = math.log(x_max_bps / x_min_bps) / entries
    return step**2 / 8 if interpolated else math.expm1(step / 2)


def checksum_errors(*, packets: int) -> float:
    """`[tcp-maxnet-2006:4.2]` Return the share of random packets that a receiver rejects after a
    router has changed their price and updated the checksum by c' = ~(~c + ~p + p').

    A price is 24 bits: the second half of one 16-bit word and all of the next. Sums are of one's
    complement.
    """
    draw = np.random.default_rng(1)
    words = draw.integers(0, 2**16, (packets, 20), dtype=np.int64)
    old, new = (draw.integers(0, 2**24, packets, dtype=np.int64) for _ in range(2))
    words[:, 18] = words[:, 18] & 0xFF00 | old >> 16
    words[:, 19] = old & 0xFFFF
    checksum = 0xFFFF - _ones_sum(words.sum(axis=1))
    change = sum(0xFFFF - part(old) + part(new) for part in (_high, _low))
    updated = 0xFFFF - _ones_sum(0xFFFF - checksum + change)
    words[:, 18] = words[:, 18] & 0xFF00 | new >> 16
    words[:, 19] = new & 0xFFFF
    return float(np.mean(_ones_sum(words.sum(axis=1) + updated) != 0xFFFF))


def _high(price: Words) -> Words:
    return price >> 16


def _low(price: Words) -> Words:
    return price & 0xFFFF


def _ones_sum(total: Words) -> Words:
    """Fold carries of a sum of 16-bit words back in, as one's complement does."""
    for _ in range(2):
        total = (total & 0xFFFF) + (total >> 16)
    return total
