"""Theory of the limit cycles that a quantised signal causes.

An integrator at the router (the price, ln R, ln r) rests only where sources take the whole target.
With few codes, no code does that in general. So the signal alternates between two neighbours: the
quantiser is a relay of height ±δ/2, δ the width of a band, at the boundary between two bands.

**MaxNet.** The describing function of a relay of height ±Δ/2 is N(A) = 2Δ/(πA), Δ = Tδ in seconds
of price. A limit cycle satisfies N(A)·αF(jω) = −1: it has the frequency ω₀ at which αF has the
phase −180°, and the price's amplitude is A = (2Δ/π)·|αF(jω₀)| = (2Δ/π)/GM. The price is the
integral of the load, so the load's amplitude is ω₀A. Below τ = αT the sources answer a step of the
price with αT/τ times the step that D(q) would take, so few bits cost more on short paths.

The relay is symmetric where sources take the target half of the time at each code. That is the
largest case; with other shares of the time, and where a step is so large that e^x is not a line,
the load deviates less.

**RCP and AECP.** Sources send at the written rate, or approach it. A signal of two neighbouring
values has a standard deviation of at most half their distance, and so has the load, unless the
delay makes the signal visit a third value.

**Margin.** The describing function of a uniform quantiser of any number of steps is at most 4/π
(for an amplitude of Δ/√2). A loop whose gain margin is larger has no other limit cycle than the
relay's. So codes of any width cost at most a factor of 4/π of the gain margin.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from waterfill.theory import maxnet

# 128 of SCONE's steps, 10^(1/20): the default range of `code_min` and `code_max`.
DECADES = 6.4
# The largest describing function of a uniform quantiser.
QUANTISER_GAIN_MAX = 4 / math.pi


class Cycle(NamedTuple):
    """A predicted limit cycle: its period (s), price amplitude (s) and relative load deviation."""

    period_s: float
    price_amplitude_s: float
    load_deviation: float


def band(bits: int, decades: float = DECADES) -> float:
    """Return the width δ of one code's band, in the natural logarithm of the rate."""
    return decades * math.log(10) / float(2**bits)


def maxnet_cycle(params: maxnet.Params, tau_s: float, width: float) -> Cycle:
    """Return MaxNet's limit cycle at one RTT, for code bands of `width` in ln(rate)."""
    gains = maxnet.implemented(params)
    omega = maxnet.omega_0(gains, tau_s)
    loop = params.alpha * abs(complex(maxnet.response(gains, omega, tau_s)))
    amplitude_s = 2 * params.t_s * width / math.pi * loop
    return Cycle(2 * math.pi / omega, amplitude_s, omega * amplitude_s / math.sqrt(2))


def rate_deviation_max(width: float) -> float:
    """Return the largest relative standard deviation of a rate that alternates between two codes.

    Relative to their mean: rates r and r·e^δ, half of the time each.
    """
    return math.tanh(width / 2)


def gain_margin_left(gain_margin: float) -> float:
    """Return the gain margin left for oscillations across bands, under a quantiser of any width."""
    return gain_margin / QUANTISER_GAIN_MAX
