"""Stability of ABC: the fluid model of one link (abc-2020, Theorem 3.1).

A window grows by a packet per RTT besides what the marks do, so that of the packets that leave at a
rate μ, 2f·μ + N/R arrive a feedback delay τ later (N flows, R the RTT with the queue). With
2f = η − (x − d_t)⁺/δ the queueing delay x follows

    ẋ(t) = A − (x(t − τ) − d_t)⁺/δ,    A = η − 1 + N·s/(μR), s the size of a packet,

while there is a queue. It settles at x = d_t + A·δ; for A < 0 there is none, and the link carries
1 + A of its capacity. Near a queue at rest L = e^(−sτ)/(sδ): stable for small disturbances if
δ > 2τ/π. Any disturbance dies out if δ > ⅔·τ, which is 5 % more: Yorke's 3/2 condition.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from waterfill.theory import loops
from waterfill.theory.loops import Margins, Reals
from waterfill.theory.roots import brentq

# δ/τ above which the loop is stable: for any disturbance (Theorem 3.1), and for small ones.
DELTA_GLOBAL = 2 / 3
DELTA_LINEAR = 2 / math.pi


class Link(NamedTuple):
    """One link and its flows: capacity (bit/s), number of flows, RTT without queue (s), packet size
    (bytes).
    """

    rate_bps: float
    flows: float
    rtt_s: float
    packet_bytes: float = 1500.0


class Gains(NamedTuple):
    """ABC's parameters: η (no unit), δ (s) and d_t (s)."""

    eta: float
    delta_s: float
    delay_threshold_s: float


class Equilibrium(NamedTuple):
    """ABC's equilibrium: queueing delay (s), load ÷ capacity, and window of each flow (packets)."""

    delay_s: float
    load: float
    window_packets: float


def surplus(gains: Gains, link: Link, delay_s: float) -> float:
    """Return ẋ at a constant queueing delay x: the arrival rate ÷ capacity, minus 1."""
    increase = link.flows * 8 * link.packet_bytes / (link.rate_bps * (link.rtt_s + delay_s))
    drain = max(delay_s - gains.delay_threshold_s, 0.0) / gains.delta_s
    return gains.eta - 1 + increase - drain


def equilibrium(gains: Gains, link: Link) -> Equilibrium:
    """Return the equilibrium of the fluid model. It has no queue if the increase is below 1 − η."""
    load, delay_s = 1 + surplus(gains, link, 0.0), 0.0
    if load > 1:
        # The surplus falls with x, and at d_t + δ·A(0) or above it is at most zero.
        high = gains.delay_threshold_s + gains.delta_s * (load - 1)
        delay_s = float(brentq(lambda x: surplus(gains, link, x), 0.0, high))
        load = 1.0
    packets = link.rate_bps * load * (link.rtt_s + delay_s) / (8 * link.packet_bytes)
    return Equilibrium(delay_s, load, packets / link.flows)


def loop_margins(delta_s: float, rtt_s: float) -> Margins:
    """Return the margins of the loop e^(−sτ)/(sδ), for an equilibrium queueing delay above d_t."""

    def loop(omega: Reals) -> loops.Points:
        s = 1j * omega
        return np.asarray(np.exp(-s * rtt_s) / (s * delta_s), dtype=np.complex128)

    return loops.margins(loop, 1e-3 / delta_s, 1e3 / delta_s)
