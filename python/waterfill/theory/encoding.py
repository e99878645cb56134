"""Range and precision of header fields: MaxNet's price and AECP's factor."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from waterfill.theory.maxnet import Params

# maxnet-2007 §V: bits of a price before and after the point, beside one flag.
INTEGER_BITS, FRACTION_BITS = 5, 18
PRICE_STEP_S = 2.0**-FRACTION_BITS
PRICE_MAX_S = 2.0**INTEGER_BITS - PRICE_STEP_S
# The range and the precision of rates that §V asks for.
_RANGE_BPS = (32.0, 1e15)
_PRECISION = 1e-5


class Bits(NamedTuple):
    """Numbers of bits of a price for a given range and precision of rates."""

    integer: int
    fraction: int


def bits_needed(t_s: float, x_max: float, x_min: float, epsilon: float) -> Bits:
    """`[maxnet-2007:V]` Return B_i = ⌈log₂(T·ln(x_max/x_min))⌉ and B_f = ⌈−log₂(T·ln(1 + ε))⌉."""
    return Bits(
        math.ceil(math.log2(t_s * math.log(x_max / x_min))),
        math.ceil(-math.log2(t_s * math.log1p(epsilon))),
    )


def price_of(rate_bps: float, t_s: float, x_max: float) -> float:
    """`[maxnet-2007:eq8]` Return the price D⁻¹(x) = −T·ln(x/x_max) in seconds."""
    return -t_s * math.log(rate_bps / x_max)


def rate_of(price_s: float, t_s: float, x_max: float) -> float:
    """`[maxnet-2007:eq7]` Return the rate D(q) = x_max·e^(−q/T) in bit/s."""
    return x_max * math.exp(-price_s / t_s)


def rate_step(slope_per_s: float) -> float:
    """Return the relative change of a rate ∝ e^(slope·q) per price code, e^(slope·2⁻¹⁸) − 1."""
    return math.expm1(slope_per_s * PRICE_STEP_S)


def fairness_time_s(tau_s: float, alpha: float, eta: float, t_s: float) -> float:
    """`[maxnet-2007:eq10]` Return the time constant τ²/(αηT) of ξ (s).

    Below τ, ξ cancels the fast path.
    """
    return tau_s**2 / (alpha * eta * t_s)


def shortest_rtt_s(alpha: float, eta: float, t_s: float) -> float:
    """Return the RTT αηT at which ξ's time constant equals the RTT."""
    return alpha * eta * t_s


class FastPath(NamedTuple):
    """Precision of the price field at one RTT: steps of ln x and x, and ξ's time constant (s)."""

    rtt_s: float
    log_rate_step: float
    rate_step: float
    xi_time_s: float


def fast_path(rtt_s: float, alpha: float, eta: float, t_s: float) -> FastPath:
    """Return the fast path's rate change per price code, where ln x has the slope α/τ."""
    return FastPath(
        rtt_s,
        alpha / rtt_s * PRICE_STEP_S,
        rate_step(alpha / rtt_s),
        fairness_time_s(rtt_s, alpha, eta, t_s),
    )


class PriceField(NamedTuple):
    """Range and steps of MaxNet's price field for one set of parameters.

    Prices in s, rates in bit/s. `rate_step` is relative, in equilibrium; `fast_path` holds the
    steps while a rate changes, one entry per RTT asked for.
    """

    needed: Bits
    rate_min_bps: float
    rate_max_bps: float
    start_rate_min_bps: float
    rate_step: float
    shortest_rtt_s: float
    fast_path: list[FastPath]

    def document(self) -> dict[str, Any]:
        """Return the price field as the keys of `theory encoding --json`."""
        needed = self.needed._asdict() | {"range_bps": list(_RANGE_BPS), "precision": _PRECISION}
        return {
            "bits": {"flag": 1, "integer": INTEGER_BITS, "fraction": FRACTION_BITS},
            "bits_needed": needed,
            "price_step_s": PRICE_STEP_S,
            "price_max_s": PRICE_MAX_S,
            "rate_min_bps": self.rate_min_bps,
            "rate_max_bps": self.rate_max_bps,
            "start_rate_min_bps": self.start_rate_min_bps,
            "rate_step": self.rate_step,
            "shortest_rtt_s": self.shortest_rtt_s,
            "fast_path": [fast._asdict() for fast in self.fast_path],
        }


def maxnet(p: Params, rtts_s: Iterable[float]) -> PriceField:
    """Return the range and precision of MaxNet's price field, with the fast path at each RTT."""
    return PriceField(
        needed=bits_needed(p.t_s, _RANGE_BPS[1], _RANGE_BPS[0], _PRECISION),
        rate_min_bps=rate_of(PRICE_MAX_S, p.t_s, p.x_max_bps),
        rate_max_bps=p.x_max_bps,
        start_rate_min_bps=p.x_max_bps * math.exp(-PRICE_MAX_S),
        rate_step=rate_step(1 / p.t_s),
        shortest_rtt_s=shortest_rtt_s(p.alpha, p.eta, p.t_s),
        fast_path=[fast_path(rtt_s, p.alpha, p.eta, p.t_s) for rtt_s in rtts_s],
    )


class FactorField(NamedTuple):
    """AECP's 16-bit factor: range (packets/s), relative step and maximum rounding error."""

    factor_min: float
    factor_max: float
    rate_step: float
    rounding: float

    def document(self) -> dict[str, Any]:
        """Return the factor field as the keys of `theory encoding --json`."""
        return {"bits": {"factor": 16}, **self._asdict()}


def aecp() -> FactorField:
    """Return the range and precision of AECP's factor, 2^(code/1024 − 2) packets/s."""
    per_octave, lowest, codes = 1024, -2, 0xFFFF
    return FactorField(
        factor_min=2.0**lowest,
        factor_max=2.0 ** ((codes - 1) / per_octave + lowest),
        rate_step=2.0 ** (1 / per_octave) - 1,
        rounding=2.0 ** (0.5 / per_octave) - 1,
    )
