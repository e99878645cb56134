"""α-fair RCP: its allocation, its stability, and the effect of a queue term.

Kelly, Raina and Voice 2008 (secondary source): the paper's text was not at hand, so the condition
is derived here. Every link j has R_j' = a·R_j/(C_j·T_j)·(γC_j − y_j − b·C_j·p(y_j)), with T_j the
mean RTT of its traffic and p the mean queue at a load. A flow has x = w·(Σ_j R_j^−α)^(−1/α).

A relative change ρ_k of R_k changes x_r by the fraction φ_rk = (x_r/(w_r·R_k))^α, and Σ_k φ_rk = 1.
The loop is L_jk = a·(1 + b·C_j·p′)/(C_j·T_j)·Σ_r x_r·φ_rk·e^(−sT_r)/s. Multiplied on both sides by
diagonal matrices it is Q(−s)ᵀ·diag(e^(−sT_r)/(sT_r))·Q(s). So its eigenvalues lie in the spectral
radius of QᵀQ times the convex hull of 0 and e^(−jθ)/(jθ), which meets the real axis first at −2/π.
Row j of QᵀQ sums to a·(1 + b·C_j·p′)·y_j/C_j, which is thus enough below π/2 at every link.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from waterfill.theory import rcp
from waterfill.theory.xcp import Gains, Share

Reals = NDArray[np.float64]

BOUND = math.pi / 2
"""Bound of a·(1 + b·C·p′)·y/C at every link."""


def row_sum(gain: float, load: float, slope: float = 0.0) -> float:
    """Return a·(1 + b·C·p′)·y/C of a link, at the load y/C and the slope b·C·p′."""
    return gain * load * (1 + slope)


def critical_gain(shares: Sequence[Share]) -> float:
    """Return the gain a at which one link with these fractions of its load and RTTs oscillates.

    The weights of `shares` are the flows' rates as fractions of the link's capacity.
    """
    mean_s = rcp.mean_rtt_s([s.weight for s in shares], [s.tau_s for s in shares])
    return rcp.link_margins(Gains(1.0, 0.0), mean_s, shares, queue=False).gain_margin


class QueueTerm(NamedTuple):
    """A term b·C·p(y) with p = k/b·y/(C − y), the form of a queue that arrivals at random make.

    For arrivals of whole packets at random times and lengths (M/M/1), k is b.
    """

    k: float
    gamma: float = 1.0

    @property
    def load(self) -> float:
        """Return the load y/C at rest, u: the root below γ of (γ − u)·(1 − u) = k·u."""
        total = 1 + self.gamma + self.k
        return (total - math.sqrt(total**2 - 4 * self.gamma)) / 2

    @property
    def slope(self) -> float:
        """Return b·C·p′ there, k/(1 − u)²: for γ = 1 it is C/y, for k = 0 it is 0."""
        return self.k / (1 - self.load) ** 2 if self.k else 0.0


class Network(NamedTuple):
    """Links and flows: capacities (L,), which flow crosses which link (L, F), weights (F,)."""

    capacities: Reals
    crosses: NDArray[np.bool_]
    weights: Reals

    @classmethod
    def of(
        cls, capacities: ArrayLike, paths: Sequence[Sequence[int]], weights: ArrayLike = 1.0
    ) -> Network:
        """Return the network of these capacities and paths, each a list of link indexes."""
        crosses = np.zeros((len(np.atleast_1d(capacities)), len(paths)), dtype=bool)
        for flow, path in enumerate(paths):
            crosses[list(path), flow] = True
        given = np.broadcast_to(np.asarray(weights, dtype=float), len(paths))
        return cls(np.array(capacities, dtype=float), crosses, given)

    def rates(self, log_offers: Reals, fairness: float) -> Reals:
        """`[alpha-rcp-2008:path]` Return x = w·(Σ_j R_j^−α)^(−1/α) from ln R: shape (F,)."""
        terms = np.where(self.crosses, -fairness * log_offers[:, None], -np.inf)
        total: Reals = np.logaddexp.reduce(terms, axis=0)
        return self.weights * np.exp(-total / fairness)


def alpha_fair(network: Network, fairness: float, steps: int = 5_000) -> Reals:
    """Return the α-fair rates (F,): those with ln R at rest, and no link above its capacity.

    They maximize Σ w^α·x^(1−α)/(1 − α); R_j^−α is the price of link j. A link that is never full
    has an R without limit, and its price vanishes.
    """
    log_offers = np.log(network.capacities)
    for _ in range(steps):
        loads = network.crosses @ network.rates(log_offers, fairness)
        log_offers = log_offers - 0.3 * np.log(loads / network.capacities)
    return network.rates(log_offers, fairness)


def run(
    network: Network,
    fairness: float,
    gain: float,
    rtts: Sequence[int],
    steps: int,
    term: QueueTerm | None = None,
) -> Reals:
    """Integrate the law as a fluid, from 0.8 of the equilibrium's rates; return R/C: (steps, L).

    RTTs are in steps of the integration. All of a flow's delay is between its source and its links.
    """
    links = len(network.capacities)
    longest = max(rtts)
    log_offers = np.zeros((steps, links))
    start = np.log(network.capacities / network.crosses.sum(axis=1))
    log_offers[:longest] = start + math.log(0.8)
    at = [np.asarray(rtts) == rtt for rtt in sorted(set(rtts))]
    for k in range(longest, steps):
        sent = np.zeros(len(rtts))
        for flows, rtt in zip(at, sorted(set(rtts)), strict=True):
            sent[flows] = network.rates(log_offers[k - rtt], fairness)[flows]
        loads = network.crosses @ sent
        mean = (network.crosses @ (sent * np.asarray(rtts))) / loads
        used = np.minimum(loads / network.capacities, 0.999)
        queue = 0.0 if term is None else term.k * used / (1 - used)
        spare = (1 if term is None else term.gamma) - loads / network.capacities - queue
        log_offers[k] = log_offers[k - 1] + gain / mean * spare
    return np.exp(log_offers) / network.capacities
