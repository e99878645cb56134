"""Stability of RCP, on one link and link by link in a network.

R changes at (T/d̂)·(α(C − y) − βq/d̂)/C. With an empty queue the loop is α/(s·d̂) ·
Σ(x_i/C)·e^(−sτ_i) over the flows bottlenecked here. The other flows do not respond, but they count
in d̂, the mean over all traffic. With a standing queue β/(s·d̂)² is added, and the loop of one RTT
is XCP's.

A link's queue is empty in equilibrium, so the system switches between the two; neither alone
decides what large disturbances do (Balakrishnan, Dukkipati, McKeown, Tomlin, IEEE Communications
Letters 2007). With one RTT and no queue term it is stable for α < π/2 (Kelly, Raina, Voice, CCR
2008). Neither paper was at hand; both conditions are computed here from the loop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from waterfill.theory import xcp
from waterfill.theory.loops import Margins
from waterfill.theory.xcp import Gains, Share

ALPHA_MAX_EMPTY = math.pi / 2


def mean_rtt_s(rates_bps: Sequence[float], rtts_s: Sequence[float]) -> float:
    """`[rcp-2006:d]` Return d̂, the mean RTT (s) weighted by traffic."""
    pairs = zip(rates_bps, rtts_s, strict=True)
    return math.fsum(x * tau for x, tau in pairs) / math.fsum(rates_bps)


def link_margins(gains: Gains, d_s: float, shares: Sequence[Share], *, queue: bool) -> Margins:
    """Return the margins of one link's loop, with a standing queue or an empty queue."""
    return xcp.loop_margins(gains.alpha, gains.beta if queue else 0.0, d_s, shares)


def distance_from_price_law(alpha: float, tau_s: float, dt_s: float) -> float:
    """`[maxnet-2007:eq16]` Return the largest relative distance between the rate of eq. 16 and
    that of eq. 3 with R = e^(−αp/τ), μ = 1, after the link's capacity has doubled.

    Both are integrated over 20 RTTs with their delay of one RTT τ, in steps of dt.
    """
    lag, gain = round(tau_s / dt_s), dt_s * alpha / tau_s
    # Rates relative to the new capacity; prices relative to p of the new share.
    rates, prices = np.full(20 * lag, 0.5), np.full(20 * lag, math.log(2) * tau_s / alpha)
    for k in range(lag, 20 * lag - 1):
        rates[k + 1] = rates[k] * (1 + gain * (1 - rates[k - lag]))
        sent = np.exp(-alpha * prices[k - lag] / tau_s)
        prices[k + 1] = prices[k] + dt_s * (sent - 1)
    return float(np.abs(np.exp(-alpha * prices / tau_s) / rates - 1).max())
