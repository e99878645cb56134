"""Loop and convergence of AECP: aecp-2010 §3 and §4.

`open_loop` is eq. 38. The paper leaves the delay out (§4.3) and claims stability for every RTT
(Theorem 1); here the delay is part of the loop. Convergence times are those of Theorems 2 and 3,
in three ways: the closed form as printed, the closed form as it follows from the proof, and eq. 6
integrated without delay.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

from waterfill.contract.network import ParamValue
from waterfill.theory import loops, params
from waterfill.theory.loops import Margins, Points, Reals


class Gains(NamedTuple):
    """AECP's gains: α and β (1/s), and T (s), of eq. 2 and 3."""

    alpha: float
    beta: float
    t_s: float


class Params(NamedTuple):
    """AECP's parameters: gains, T₂ (s), and initial values of flows and links.

    `form` is how the source applies eq. 3: "printed" or exact. `x_0` and `q_0` are in packets/s
    and packets; `r_0` is a rate in packets/s or the word "capacity".
    """

    gains: Gains
    t_2_s: float
    form: ParamValue | None
    x_0: float
    r_0: ParamValue | None
    q_0: float

    @classmethod
    def of(cls, values: params.Values) -> Params:
        """Return the parameters read from the registry's values."""
        number = params.number
        gains = Gains(number(values, "alpha"), number(values, "beta"), number(values, "t"))
        return cls(
            gains,
            number(values, "t_2"),
            values["form"],
            number(values, "x_0"),
            values["r_0"],
            number(values, "q_0"),
        )


def tuned(alpha: float) -> Gains:
    """`[aecp-2010:eq43]` Return β = α/2, T = 4/α: eq. 42's PI controller for a source of 1/α."""
    return Gains(alpha, alpha / 2, 4 / alpha)


def pi_controller(t_0_s: float, k_0: float) -> tuple[float, float]:
    """`[aecp-2010:eq42]` Return τ = 4T₀ and T_i = 8K₀T₀², the PI controller for K₀/(s(1 + T₀s))."""
    return 4 * t_0_s, 8 * k_0 * t_0_s**2


def open_loop(g: Gains, omega: Reals, tau_s: float = 0.0) -> Points:
    """`[aecp-2010:eq38]` Return L(jω) = αβ(s + 1/T)/(s²(s + α)), times e^(−sτ)."""
    s = 1j * np.asarray(omega, dtype=np.float64)
    value = g.alpha * g.beta * (s + 1 / g.t_s) / (s**2 * (s + g.alpha)) * np.exp(-s * tau_s)
    return np.asarray(value, dtype=np.complex128)


def loop_margins(g: Gains, tau_s: float = 0.0) -> Margins:
    """Return the margins of eq. 38's loop with the RTT τ; τ = 0 is the paper's loop."""
    span = min(g.alpha, g.beta, 1 / g.t_s), max(g.alpha, g.beta, 1 / g.t_s)
    return loops.margins(lambda w: open_loop(g, w, tau_s), 1e-3 * span[0], 1e3 * span[1])


class Link(NamedTuple):
    """One bottleneck: capacity, number of flows, initial rates (packets/s) and target queue
    (packets).
    """

    capacity: float
    flows: float
    x_0: float
    r_0: float
    q_0: float = 0.0


def trajectory(
    g: Gains, link: Link, duration_s: float, stop_at: float | None = None
) -> tuple[Reals, Reals, Reals, Reals]:
    """`[aecp-2010:eq6]` Integrate the rates of identical flows without delay.

    Returns times (s), Σx/C, Nr/C and the queue (packets, never negative), of one shape (steps,).
    Ends after `duration_s`, or when Σx first reaches `stop_at` of C.
    """

    def slope(_: float, state: Reals) -> list[float]:
        u, v, q = state
        load = link.flows * math.exp(u)
        used = (load + (max(q, 0.0) - link.q_0) / g.t_s) / link.capacity
        filling = load - link.capacity
        return [g.alpha * (v - u), g.beta * (1 - used), filling if q > 0 or filling > 0 else 0.0]

    def reached(_: float, state: Reals) -> float:
        return float(link.flows * math.exp(state[0]) / link.capacity - (stop_at or math.inf))

    # scipy reads this attribute of the function.
    reached.terminal = stop_at is not None  # type: ignore[attr-defined]
    solution = solve_ivp(
        slope, (0.0, duration_s), [math.log(link.x_0), math.log(link.r_0), 0.0],
        events=reached, rtol=1e-9, atol=1e-9, max_step=max(duration_s / 400, 1e-3),
    )  # fmt: skip
    u, v, q = solution.y
    share = link.flows / link.capacity
    return solution.t, np.exp(u) * share, np.exp(v) * share, np.maximum(q, 0.0)


def efficiency_time_s(g: Gains, link: Link, theta: float) -> float:
    """`[aecp-2010:eq17]` Return the time (s) at which eq. 6's Σx reaches θ of C, or inf after
    1000/β.
    """
    limit_s = 1000.0 / g.beta
    times, filled, _, _ = trajectory(g, link, limit_s, theta)
    return float(times[-1]) if filled[-1] >= theta * (1 - 1e-6) else math.inf


def efficiency_bounds_s(g: Gains, ratio: float, theta: float) -> tuple[float, float]:
    """`[aecp-2010:eq18]` Return Theorem 2's bounds on the efficiency time (s); `ratio` = C/(N·x₀) >
    1.
    """
    link_alone = math.log(ratio * theta / (1 - theta)) / g.beta
    source_alone = math.log(math.log(1 / ratio) / math.log(theta)) / g.alpha
    return max(link_alone, source_alone), link_alone + source_alone


def fairness_time_printed_s(g: Gains, ratio: float, epsilon: float) -> float:
    """`[aecp-2010:eq29]` Return the fairness time ln ln(Cε/(N·x₀))/α (s), as printed in Theorem 3.
    `ratio` is C/(N·x₀).
    """
    return math.log(math.log(ratio * epsilon)) / g.alpha


def fairness_time_s(g: Gains, ratio: float, epsilon: float) -> float:
    """`[aecp-2010:eq31]` Return the fairness time ln(ln(C/(N·x₀))/ln(1/ε))/α (s). It follows from
    ln g ∝ e^(−αt).
    """
    return math.log(math.log(ratio) / math.log(1 / epsilon)) / g.alpha


def fairness_time_integrated_s(g: Gains, ratio: float, epsilon: float, flows: int = 4) -> float:
    """`[aecp-2010:eq30]` Return the time (s) until the smallest rate is ε of the largest, by
    integration.

    N flows start at C/N and one at x₀; r is C/N as in the proof. Does not use the closed forms.
    """

    def slope(_: float, u: Reals) -> Reals:
        return np.asarray(-g.alpha * u)

    def fair(_: float, u: Reals) -> float:
        return float(np.min(u) - np.max(u) - math.log(epsilon))

    fair.terminal = True  # type: ignore[attr-defined]
    start = np.append(np.zeros(flows), -math.log(ratio))  # ln(x/r)
    limit_s = 100.0 / g.alpha
    solution = solve_ivp(slope, (0.0, limit_s), start, events=fair, rtol=1e-10, atol=1e-12)
    return float(solution.t[-1])
