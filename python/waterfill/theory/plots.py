"""Figures of `waterfill theory … -o DIR`. The same input gives the same bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from waterfill.analysis import draw
from waterfill.analysis.charts import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    PINK,
    RED,
    Chart,
    Guide,
    Line,
    Mark,
    Span,
)
from waterfill.theory import (
    accel_brake,
    aecp,
    encoding,
    jetmax,
    maxnet,
    mkc,
    sampled,
    tuning,
    vcp,
    xcp,
)
from waterfill.theory.maxnet import Gains

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from waterfill.theory.documents import Equilibrium


def _figure(*charts: Chart) -> Figure:
    size = (0.8 + 4.4 * len(charts), 4.4)
    return draw.figure(charts, columns=len(charts), size=size, legend="inside", share="")


def _line(name: str, x: Any, y: Any, colour: int = BLUE, **more: Any) -> Line:
    return Line(name, np.asarray(y, dtype=np.float64), colour, x=np.asarray(x), **more)


def _chart(
    title: str, x_label: str, y_label: str, lines: Sequence[Line], *more: Guide | Mark | Span,
    **settings: Any,
) -> Chart:  # fmt: skip
    """Return a chart with its lines, guides, marks and spans."""
    return Chart(
        title, title, x_label, y_label, lines=lines,
        guides=[one for one in more if isinstance(one, Guide)],
        marks=[one for one in more if isinstance(one, Mark)],
        spans=[one for one in more if isinstance(one, Span)], **settings,
    )  # fmt: skip


def construction(loops: dict[str, Gains], tau_max_s: float) -> Figure:
    """`[maxnet-2007:fig10]` Draw Algorithm 3's spiral, tail and line, one panel per loop."""
    charts = []
    for title, gains in loops.items():
        built = maxnet.construct(gains, tau_max_s)
        cut = built.line.intercept
        left = -1.6 * cut
        x = np.array([left, 0.9 * cut])
        high = 1.2 * max(float(built.spiral.imag.max()), -0.4 * left * built.line.slope)
        charts.append(_chart(
            f"{title}: τ̄ = {tau_max_s:g} s, αT = {gains.alpha_t_s:g} s, η = {gains.eta:g}",
            "Re F(jω, τ; 1)", "Im F(jω, τ; 1)",
            [_line("spiral S (ω > ω̲, τ̄)", built.spiral.real, built.spiral.imag),
             _line("tail T (ω̲, τ < τ̄)", built.tail.real, built.tail.imag, RED),
             _line(f"line, γ = {built.line.slope:.4f}", x, (x + cut) / built.line.run, GREEN)],
            Mark(-cut, 0.0, f"−1/α_max, α_max = {built.alpha_max:.4f}"), Guide(x=0.0),
            Guide(y=0.0), x_range=(left, 0.9 * cut), y_range=(-1.5 * high, high),
            legend="lower right",
        ))  # fmt: skip
    return _figure(*charts)


def lead_or_lag(
    gains: Gains, alpha: float, ratios: tuple[float, ...] = (4.0, 1.0, 0.25, 0.05)
) -> Figure:
    """`[maxnet-2007:VIII.B]` Draw leading (αT/τ > 1) and lagging loops: phase, resonance, step.

    αT, α and η are fixed; the RTT is αT/ratio. Frequency and time are in units of the RTT.
    """
    phi = np.geomspace(1e-3, 3.0, 2000)
    phases, closed, steps = [], [], []
    for ratio, colour in zip(ratios, (BLUE, GREEN, PINK, RED), strict=True):
        tau = gains.alpha_t_s / ratio
        loop = alpha * maxnet.response(gains, phi / tau, tau)
        label = f"αT/τ = {ratio:g} ({'leads' if ratio > 1 else 'lags' if ratio < 1 else 'neither'})"
        phases.append(_line(label, phi, np.degrees(np.unwrap(np.angle(loop))), colour))
        closed.append(_line("", phi, np.abs(loop / (1 + loop)), colour))
        step = tuning.step_response(gains, alpha, tau, 40 * tau)
        steps.append(_line("", step.time_s / tau, step.log_rate, colour))
    title = f"α = {alpha:g}, αT = {gains.alpha_t_s:g} s, η = {gains.eta:g}"
    return _figure(
        _chart(title, "ωτ (rad)", "phase of αF (degrees)", phases, Guide(y=-180.0), log_x=True),
        _chart("", "ωτ (rad)", "closed loop |L/(1 + L)|", closed, log_x=True),
        _chart("", "time (RTTs)", "ln x after ln C steps by 1", steps),
    )


def aecp_margin(g: aecp.Gains, t_2_s: float) -> Figure:
    """Draw AECP's Nyquist curve at several RTTs, and the sampled loops' growth over τ."""
    bare = aecp.loop_margins(g)
    delay_s = bare.delay_margin_s
    omega = np.geomspace(0.2 * bare.crossover_rad_s, 40 * bare.crossover_rad_s, 3000)
    curves = []
    for share, colour in zip((0.0, 0.5, 1.0, 1.5), (BLUE, GREEN, BLACK, RED), strict=True):
        curve = aecp.open_loop(g, omega, share * delay_s)
        curves.append(_line(f"τ = {share * delay_s:.4g} s", curve.real, curve.imag, colour))
    taus = np.arange(0.2, 1.2001, 0.01) * delay_s / 0.6435
    growth = []
    for source, colour in zip(sampled.SOURCES, (BLUE, GREEN, PINK, RED), strict=True):
        grows = [sampled.growth(g, t_2_s, float(tau), source) for tau in taus]
        growth.append(_line(source, [x.tau_s for x in grows], [x.per_s for x in grows], colour))
    return _figure(
        _chart("eq. 38 with its delay", "Re L(jω)e^(−jωτ)", "Im L(jω)e^(−jωτ)", curves,
               Mark(-1.0, 0.0, text="−1"), x_range=(-3, 1), y_range=(-2, 2)),
        _chart(f"sampled: T₂ = {t_2_s:g} s", "RTT τ (s)", "growth of the slowest mode (1/s)",
               growth, Guide(y=1.0), Guide(x=delay_s),
               Mark(delay_s, min(growth[0].y), text=f"eq. 38: {delay_s:.4f} s", dot=False)),
    )  # fmt: skip


def aecp_efficiency(
    g: aecp.Gains, link: aecp.Link, thetas: tuple[float, ...] = (0.5, 0.9, 0.99)
) -> Figure:
    """Draw AECP's rates by eq. 6 without delay, and the bounds of Theorem 2."""
    ratio = link.capacity / (link.flows * link.x_0)
    bounds = {theta: aecp.efficiency_bounds_s(g, ratio, theta) for theta in thetas}
    last = 1.25 * max(high for _, high in bounds.values())
    times, x, r, _ = aecp.trajectory(g, link, last)
    lines = [_line("Σx/C", times, x), _line("Nr/C", times, r, RED)]
    marks = []
    for theta, (low, high) in bounds.items():
        name = "" if lines[-1].colour == GREEN else "Theorem 2's bounds of θ"
        lines.append(_line(name, [low, high], [theta, theta], GREEN, role="limit"))
        marks.append(Mark(high, theta, text=f"θ = {theta:g}", dot=False))
    title = f"eq. 6, C/(N·x₀) = {ratio:g}"
    return _figure(_chart(title, "time (s)", "fraction of capacity", lines, *marks,
                          x_range=(0, last), y_range=(0, 1.6), legend="upper left"))  # fmt: skip


def region(alpha: float, beta: float, name: str) -> Figure:
    """Draw the stable region of α and β of XCP, or RCP with a standing queue, and one point."""
    a, b = xcp.boundary(np.linspace(1e-3, math.pi / 2, 500))
    alphas = np.linspace(0, xcp.KATABI_ALPHA_MAX, 100)
    return _figure(_chart(
        "stable below the boundary (one link, one RTT)", "α", "β",
        [_line("boundary: α = φ sin φ, β = φ² cos φ", a, b, low=np.zeros_like(b), high=b),
         _line("katabi-2002: β = α²√2, α < π/(4√2)", alphas, alphas**2 * math.sqrt(2), RED)],
        Mark(alpha, beta, f"{name}: α = {alpha:g}, β = {beta:g}"),
        x_range=(0, 1.7), y_range=(0, max(0.7, 1.15 * beta)), legend="upper right",
    ))  # fmt: skip


def vcp_margin(xi: float) -> Figure:
    """Draw the phase margin of VCP's fluid model over κ."""
    kappas = np.linspace(0.02, 2.0, 100)
    margins = [vcp.loop_margins(float(k), 1.0).phase_margin_deg for k in kappas]
    here = vcp.kappa(xi)
    margin = vcp.loop_margins(here, 1.0).phase_margin_deg
    return _figure(_chart(
        "VCP's fluid model, one link, one RTT", "κ", "phase margin (degrees)",
        [_line("linear phase margin", kappas, margins)], Guide(y=0.0),
        Span("κ ≤ 1/2: any disturbance", 0.0, vcp.KAPPA_GLOBAL),
        Mark(here, margin, f"ξ = {xi:g}: κ = {here:g}"),
    ))  # fmt: skip


def abc_margin(delta_s: float) -> Figure:
    """Draw the phase margin of ABC's fluid model over the RTT."""
    limit_s = delta_s / accel_brake.DELTA_GLOBAL
    rtts = np.linspace(0.0, 1.2 * delta_s / accel_brake.DELTA_LINEAR, 100)
    margins = [accel_brake.loop_margins(delta_s, float(t)).phase_margin_deg for t in rtts]
    return _figure(_chart(
        f"ABC's fluid model, one link, δ = {1e3 * delta_s:g} ms", "RTT without queues τ (ms)",
        "phase margin (degrees)", [_line("linear phase margin", 1e3 * rtts, margins)],
        Guide(y=0.0), Span("τ < 3δ/2: any disturbance (Theorem 3.1)", 0.0, 1e3 * limit_s),
    ))  # fmt: skip


def jetmax_steps(tau: float) -> Figure:
    """Draw the remaining distance of a JetMax flow from its target after each control interval."""
    steps = np.arange(0, 13)
    lines = [
        _line(f"τ = {value:g}" + (" (overshoots)" if value > 1 else ""), steps,
              np.abs(jetmax.mode(value)) ** steps, colour, role="marked")
        for value, colour in zip((tau, 0.3, 1.5, 1.9), (BLUE, GREEN, PINK, RED), strict=True)
    ]  # fmt: skip
    return _figure(_chart("JetMax with a fixed set of flows, any delays", "RTTs",
                          "|x − g| relative to the initial one", lines, Guide(y=0.01),
                          log_y=True))  # fmt: skip


def mkc_steps(gamma: float, alpha_bps: float, beta: float) -> Figure:
    """Draw what remains of a distance of the load, and between rates, after each MKC step."""
    steps = np.arange(0, 60)
    total, _ = mkc.modes(mkc.Link(1e8, 1, alpha_bps, beta))
    lines = [_line(f"load, β = {beta:g}", steps, _shown(total, steps), BLUE)]
    for flows, colour in ((10, GREEN), (50, RED)):
        _, differences = mkc.modes(mkc.Link(gamma * 1e8, flows, alpha_bps, beta))
        text = f"differences of rates, {flows} flows"
        lines.append(_line(text, steps, _shown(differences, steps), colour))
    return _figure(_chart(f"MKC on 100 Mbit/s, any delays, α = {alpha_bps / 1e3:g} kbit/s", "steps",
                          "distance relative to the initial one", lines, Guide(y=0.01),
                          log_y=True))  # fmt: skip


def _shown(mode: float, steps: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what is left of a distance after each step, down to 1e-3."""
    left = np.abs(mode) ** steps
    return np.where(left < 1e-3, np.nan, left)


def maxnet_steps(loops: dict[str, Gains], alpha: float, tau_s: float) -> Figure:
    """Draw the rate of a MaxNet flow after capacity grows by a factor e, in the linear loops."""
    lines = []
    for (title, gains), colour in zip(loops.items(), (BLUE, RED), strict=True):
        step = tuning.step_response(gains, alpha, tau_s, 40 * max(tau_s, gains.alpha_t_s))
        lines.append(_line(title, step.time_s, step.log_rate, colour))
    return _figure(_chart(f"MaxNet, one flow, τ = {tau_s:g} s", "time (s)",
                          "ln x after ln C steps by 1", lines, Guide(y=1.0),
                          Guide(y=2 / 3)))  # fmt: skip


def encoding_steps(alpha: float, eta: float, t_s: float) -> Figure:
    """Draw MaxNet's rate step on the fast path and ξ's time constant over the RTT."""
    taus = np.geomspace(1e-6, 1.0, 300)
    steps = 100 * alpha / taus * encoding.PRICE_STEP_S
    fair = [encoding.fairness_time_s(float(x), alpha, eta, t_s) for x in taus]
    logarithmic = {"log_x": True, "log_y": True}
    return _figure(
        _chart(f"α = {alpha:g}, η = {eta:g}, T = {t_s:g} s", "RTT τ (s)", "step of ln x (%)",
               [_line("fast path, (α/τ)·2⁻¹⁸", taus, steps)],
               Guide(y=100 * encoding.PRICE_STEP_S / t_s, name="in equilibrium, 2⁻¹⁸/T",
                     colour=RED), y_range=(1e-5, 1e3), **logarithmic),
        _chart("", "RTT τ (s)", "time (s)",
               [_line("ξ's time constant τ²/(αηT)", taus, fair),
                _line("τ itself", taus, taus, RED)],
               Guide(x=encoding.shortest_rtt_s(alpha, eta, t_s)), **logarithmic),
    )  # fmt: skip


def equilibrium(document: Equilibrium) -> Figure:
    """Draw equilibrium rates next to max-min rates, one pair of bars for each of the first 40
    scenario entries.
    """
    flows = document.flows[:40]
    lines = [
        Line(name, np.array([flow[key] for flow in flows]) / 1e6, colour, "bar")
        for name, key, colour in (
            ("max-min", "max_min_bps", GREY), (document.protocol, "rate_bps", BLUE),
        )
    ]  # fmt: skip
    names = [flow.name for flow in flows]
    return _figure(_chart(document.scenario, "", "rate of a flow (Mbit/s)", lines, ticks=names))
