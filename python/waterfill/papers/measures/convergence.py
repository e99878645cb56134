"""Measures of AECP's equations: its theorems, its choice of parameters, and its delay margin.

Arguments α and β are in 1/s, T in s, rates in packets/s; the equations are in
`waterfill.theory.aecp`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np


def efficiency_excess(
    *,
    capacity: float,
    flows: float,
    x_0: float,
    r_0: float,
    theta: float,
    side: Literal["lower", "upper"],
    q_0: float = 100.0,
) -> float:
    """Return the distance (s) of eq. 6's time to θ-efficiency from a bound of Theorem 2. It is
    negative outside the bounds.

    Without delay, with §4.3's parameters.
    """
    from waterfill.theory import aecp

    gains, link = aecp.tuned(2.0), aecp.Link(capacity, flows, x_0, r_0, q_0)
    lower_s, upper_s = aecp.efficiency_bounds_s(gains, capacity / (flows * x_0), theta)
    time_s = aecp.efficiency_time_s(gains, link, theta)
    return time_s - lower_s if side == "lower" else upper_s - time_s


def efficiency_growth(*, x_0: float, theta: float, ratio: float) -> float:
    """Return how eq. 6's time t(P) to θ-efficiency grows with P = C/(N·x₀): (t(P⁴) − t(P²)) ÷
    (t(P²) − t(P)), which is 2 if t grows with ln P and 1 if with ln ln P.
    """
    from waterfill.theory import aecp

    gains = aecp.tuned(2.0)
    times = [
        aecp.efficiency_time_s(gains, aecp.Link(x_0 * ratio**power, 1.0, x_0, x_0), theta)
        for power in (1, 2, 4)
    ]
    return (times[2] - times[1]) / (times[1] - times[0])


def fairness_growth(*, epsilon: float, ratio: float) -> float:
    """Return the same growth of eq. 30's time to ε-fairness."""
    from waterfill.theory import aecp

    gains = aecp.tuned(2.0)
    times = [aecp.fairness_time_integrated_s(gains, ratio**power, epsilon) for power in (1, 2, 4)]
    return (times[2] - times[1]) / (times[1] - times[0])


def sigmoid_turn(*, x_0: float, ratio: float) -> float:
    """`[aecp-2010:fig1]` Return the share of its limit at which a rate of eq. 6 grows fastest, from
    x₀ to C = `ratio`·x₀ without a queue.
    """
    from waterfill.theory import aecp

    link = aecp.Link(x_0 * ratio, 1.0, x_0, x_0)
    time_s, filled, _, _ = aecp.trajectory(aecp.tuned(2.0), link, 60.0, 0.999)
    return float(filled[np.gradient(filled, time_s).argmax()])


def fairness_excess(*, ratio: float, epsilon: float, form: Literal["printed", "follows"]) -> float:
    """Return a closed form of Theorem 3's time minus the time of the integrated eq. 30 (s)."""
    from waterfill.theory import aecp

    gains = aecp.tuned(2.0)
    closed = aecp.fairness_time_printed_s if form == "printed" else aecp.fairness_time_s
    return closed(gains, ratio, epsilon) - aecp.fairness_time_integrated_s(gains, ratio, epsilon)


def tuned_gain(*, alpha: float, gain: Literal["beta", "t"]) -> float:
    """`[aecp-2010:eq42]` Return β (1/s) or T (s) of eq. 38 with the PI controller for T₀ = 1/α.

    Eq. 38 is K₀/T_i · (1 + τs)/(s²(1 + T₀s)) with K₀ = 1, so T = τ and β = τ/T_i.
    """
    from waterfill.theory import aecp

    tau_s, t_i = aecp.pi_controller(1 / alpha, 1.0)
    return tau_s if gain == "t" else tau_s / t_i


def tuning_loss(*, alpha: float, t: float, beta: float) -> float:
    """Return the phase margin lost by `beta` compared with the best β, as a fraction of 180°."""
    from waterfill.theory import aecp

    margins = [
        aecp.loop_margins(aecp.Gains(alpha, float(b), t)).phase_margin_deg
        for b in np.geomspace(beta / 20, beta * 20, 401)
    ]
    mine = aecp.loop_margins(aecp.Gains(alpha, beta, t)).phase_margin_deg
    return (max(margins) - mine) / 180


def delay_margin(*, alpha: float, beta: float, t: float) -> float:
    """`[aecp-2010:eq38]` Return the RTT (s) at which the loop with its delay becomes unstable."""
    from waterfill.theory import aecp

    return aecp.loop_margins(aecp.Gains(alpha, beta, t)).delay_margin_s


def sampled_delay_margin(
    *,
    alpha: float,
    beta: float,
    t: float,
    t_2: float,
    source: Literal["continuous", "exact", "printed", "clamped"],
) -> float:
    """`[aecp-2010:eq49]` Return the RTT (s) up to which the loop with sampling times is stable.

    T₁ = τ; `source` is one of `waterfill.theory.sampled`.
    """
    from waterfill.theory import sampled
    from waterfill.theory.aecp import Gains

    return sampled.margin_s(Gains(alpha, beta, t), t_2, source)
