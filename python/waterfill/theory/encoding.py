"""What header fields can say: range and precision of MaxNet's price and of the other headers."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

# maxnet-2007 §V: bits of a price before and after the point, beside one flag.
INTEGER_BITS, FRACTION_BITS = 5, 18
PRICE_STEP_S = 2.0**-FRACTION_BITS


class Bits(NamedTuple):
    """Bits of a price that a range and a precision of rates ask for."""

    integer: int
    fraction: int


def bits_needed(t_s: float, x_max: float, x_min: float, epsilon: float) -> Bits:
    """`[maxnet-2007:V]` B_i ≥ ⌈log₂(T·ln(x_max/x_min))⌉, B_f ≥ ⌈−log₂(T·ln(1 + ε))⌉."""
    return Bits(
        math.ceil(math.log2(t_s * math.log(x_max / x_min))),
        math.ceil(-math.log2(t_s * math.log1p(epsilon))),
    )


def price_of(rate_bps: float, t_s: float, x_max: float) -> float:
    """`[maxnet-2007:eq8]` D⁻¹(x) = −T·ln(x/x_max), in seconds."""
    return -t_s * math.log(rate_bps / x_max)


def rate_of(price_s: float, t_s: float, x_max: float) -> float:
    """`[maxnet-2007:eq7]` D(q) = x_max·e^(−q/T), in bit/s."""
    return x_max * math.exp(-price_s / t_s)


def rate_step(slope_per_s: float) -> float:
    """How much one code changes a rate that goes as e^(−slope·q): e^(slope·2⁻¹⁸) − 1."""
    return math.expm1(slope_per_s * PRICE_STEP_S)


def fairness_time_s(tau_s: float, alpha: float, eta: float, t_s: float) -> float:
    """`[maxnet-2007:eq10]` ξ's time constant τ²/(αηT): below τ, ξ cancels the fast path."""
    return tau_s**2 / (alpha * eta * t_s)


def shortest_rtt_s(alpha: float, eta: float, t_s: float) -> float:
    """The round trip αηT at which ξ's time constant is one round trip."""
    return alpha * eta * t_s


def maxnet(params: dict[str, Any], rtts_s: list[float]) -> dict[str, Any]:
    """MaxNet's price field, parameters in SI units: its range, its steps at rest and on the way."""
    alpha, eta, t_s, x_max = (params[k] for k in ("alpha", "eta", "t", "x_max"))
    largest = 2.0**INTEGER_BITS - PRICE_STEP_S
    smallest_rate = rate_of(largest, t_s, x_max)
    needed = bits_needed(t_s, 1e15, 32.0, 1e-5)
    return {
        "bits": {"flag": 1, "integer": INTEGER_BITS, "fraction": FRACTION_BITS},
        "bits_needed": {
            "integer": needed.integer, "fraction": needed.fraction,
            "range_bps": [32.0, 1e15], "precision": 1e-5,
        },
        "price_step_s": PRICE_STEP_S,
        "price_max_s": largest,
        "rate_min_bps": smallest_rate,
        "rate_max_bps": x_max,
        "start_rate_min_bps": x_max * math.exp(-largest),
        "rate_step": rate_step(1 / t_s),
        "shortest_rtt_s": shortest_rtt_s(alpha, eta, t_s),
        "fast_path": [
            {
                "rtt_s": tau,
                "log_rate_step": alpha / tau * PRICE_STEP_S,
                "rate_step": rate_step(alpha / tau),
                "xi_time_s": fairness_time_s(tau, alpha, eta, t_s),
            }
            for tau in rtts_s
        ],
    }  # fmt: skip


def aecp() -> dict[str, Any]:
    """AECP's 16-bit factor as the protocol's file chooses it: 2^(code/1024 − 2) packets/s."""
    per_octave, lowest, codes = 1024, -2, 0xFFFF
    step = 2.0 ** (1 / per_octave) - 1
    return {
        "bits": {"factor": 16},
        "factor_min": 2.0**lowest,
        "factor_max": 2.0 ** ((codes - 1) / per_octave + lowest),
        "rate_step": step,
        "rounding": 2.0 ** (0.5 / per_octave) - 1,
    }
