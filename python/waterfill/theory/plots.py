"""Figures of the theory, as `waterfill theory … -o DIR` writes them. Same input, same bytes.

Colours are Okabe and Ito's, and every line has its own style, as in `waterfill.analysis.plots`,
whose `save` writes the files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from waterfill.theory import accel_brake, aecp, encoding, jetmax, maxnet, sampled, tuning, vcp, xcp
from waterfill.theory.maxnet import Gains

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, RED, GREEN, PINK, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8A8A8A"


def _figure(columns: int, rows: int = 1, height: float = 4.0) -> tuple[Figure, list[Any]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(0.8 + 4.4 * columns, 0.4 + height * rows), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def _finish(axes: list[Any]) -> None:
    for axis in axes:
        axis.grid(alpha=0.3)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(frameon=False, fontsize="small")


def construction(loops: dict[str, Gains], tau_max_s: float) -> Figure:
    """`[maxnet-2007:fig10]` Draw spiral, tail and line of Algorithm 3, one panel per loop."""
    figure, axes = _figure(len(loops))
    for axis, (title, gains) in zip(axes, loops.items(), strict=True):
        built = maxnet.construct(gains, tau_max_s)
        axis.plot(built.spiral.real, built.spiral.imag, color=BLUE, label="spiral S (ω > ω̲, τ̄)")
        axis.plot(built.tail.real, built.tail.imag, "--", color=RED, label="tail T (ω̲, τ < τ̄)")
        left = -1.6 * built.line.intercept
        x = np.array([left, 0.4])
        line = (x + built.line.intercept) / built.line.run
        axis.plot(x, line, "-.", color=GREEN, label=f"line, γ = {built.line.slope:.4f}")
        label = f"−1/α_max, α_max = {built.alpha_max:.4f}"
        axis.plot([-built.line.intercept], [0], "o", color="#000000", markersize=5, label=label)
        axis.axhline(0, color=GREY, linewidth=0.8)
        axis.axvline(0, color=GREY, linewidth=0.8)
        axis.set_xlim(left, 0.4 * built.line.intercept)
        high = 1.2 * max(float(built.spiral.imag.max()), -0.4 * left * built.line.slope)
        axis.set_ylim(-1.5 * high, high)
        case = f"τ̄ = {tau_max_s:g} s, αT = {gains.alpha_t_s:g} s, η = {gains.eta:g}"
        axis.set_title(f"{title}: {case}", loc="left", fontsize="medium")
        axis.set_xlabel("Re F(jω, τ; 1)")
        axis.set_ylabel("Im F(jω, τ; 1)")
    _finish(axes)
    for axis in axes:
        axis.legend(frameon=False, fontsize="small", loc="lower right")
    return figure


def lead_or_lag(
    gains: Gains, alpha: float, ratios: tuple[float, ...] = (4.0, 1.0, 0.25, 0.05)
) -> Figure:
    """`[maxnet-2007:VIII.B]` Draw leading (αT/τ > 1) against lagging: phase, resonance, step.

    αT, α and η are fixed; the RTT is αT/ratio. Frequency and time are in units of the RTT.
    """
    figure, axes = _figure(3)
    styles = ("-", "--", "-.", ":")
    colours = (BLUE, GREEN, PINK, RED)
    phi = np.geomspace(1e-3, 3.0, 2000)
    for ratio, style, colour in zip(ratios, styles, colours, strict=True):
        tau = gains.alpha_t_s / ratio
        loop = alpha * maxnet.response(gains, phi / tau, tau)
        label = f"αT/τ = {ratio:g} ({'leads' if ratio > 1 else 'lags' if ratio < 1 else 'neither'})"
        kind = {"color": colour, "linestyle": style, "label": label}
        axes[0].plot(phi, np.degrees(np.unwrap(np.angle(loop))), **kind)
        axes[1].plot(phi, np.abs(loop / (1 + loop)), **kind)
        step = tuning.step_response(gains, alpha, tau, 40 * tau)
        axes[2].plot(step.time_s / tau, step.log_rate, **kind)
    axes[0].axhline(-180, color=GREY, linewidth=0.8)
    axes[0].set_ylabel("phase of αF (degrees)")
    axes[1].set_ylabel("closed loop |L/(1 + L)|")
    axes[2].set_ylabel("ln x after ln C steps by 1")
    for axis in axes[:2]:
        axis.set_xscale("log")
        axis.set_xlabel("ωτ (rad)")
    axes[2].set_xlabel("time (RTTs)")
    axes[0].set_title(f"α = {alpha:g}, αT = {gains.alpha_t_s:g} s, η = {gains.eta:g}", loc="left")
    _finish(axes)
    for axis in axes[1:]:
        axis.get_legend().remove()
    return figure


def aecp_margin(g: aecp.Gains, t_2_s: float) -> Figure:
    """Draw eq. 38's Nyquist curve at several RTTs, and the sampled loops' growth against τ."""
    figure, axes = _figure(2)
    bare = aecp.loop_margins(g)
    omega = np.geomspace(0.2 * bare.crossover_rad_s, 40 * bare.crossover_rad_s, 3000)
    rtts = (0.0, 0.5 * bare.delay_margin_s, bare.delay_margin_s, 1.5 * bare.delay_margin_s)
    for tau, style, colour in zip(
        rtts, ("-", "--", "-.", ":"), (BLUE, GREEN, "#000000", RED), strict=True
    ):
        curve = aecp.open_loop(g, omega, tau)
        axes[0].plot(curve.real, curve.imag, style, color=colour, label=f"τ = {tau:.4g} s")
    axes[0].plot([-1], [0], "o", color="#000000", markersize=5)
    axes[0].annotate("−1", (-1, 0), xytext=(4, -14), textcoords="offset points")
    axes[0].set_xlim(-3, 1)
    axes[0].set_ylim(-2, 2)
    axes[0].set_xlabel("Re L(jω)e^(−jωτ)")
    axes[0].set_ylabel("Im L(jω)e^(−jωτ)")
    axes[0].set_title("eq. 38 with its delay", loc="left")
    taus = np.arange(0.2, 1.2001, 0.01) * bare.delay_margin_s / 0.6435
    for source, style, colour in zip(
        sampled.SOURCES, ("-", "--", "-.", ":"), (BLUE, GREEN, PINK, RED), strict=True
    ):
        grows = [sampled.growth(g, t_2_s, float(tau), source) for tau in taus]
        axes[1].plot(
            [x.tau_s for x in grows], [x.per_s for x in grows], style, color=colour, label=source
        )
    axes[1].axhline(1.0, color=GREY, linewidth=0.8)
    axes[1].axvline(bare.delay_margin_s, color=GREY, linewidth=0.8)
    axes[1].annotate(
        f"eq. 38: {bare.delay_margin_s:.4f} s", (bare.delay_margin_s, 1.0),
        xytext=(4, -14), textcoords="offset points", fontsize="small",
    )  # fmt: skip
    axes[1].set_xlabel("RTT τ (s)")
    axes[1].set_ylabel("growth of the slowest mode (1/s)")
    axes[1].set_title(f"sampled: T₂ = {t_2_s:g} s", loc="left")
    _finish(axes)
    return figure


def aecp_efficiency(
    g: aecp.Gains, link: aecp.Link, thetas: tuple[float, ...] = (0.5, 0.9, 0.99)
) -> Figure:
    """Draw eq. 6 without delay, and Theorem 2's bounds."""
    figure, axes = _figure(1)
    axis = axes[0]
    ratio = link.capacity / (link.flows * link.x_0)
    last = max(aecp.efficiency_bounds_s(g, ratio, theta)[1] for theta in thetas)
    times, x, r, _ = aecp.trajectory(g, link, 1.1 * last)
    axis.plot(times, x, "-", color=BLUE, label="Σx/C")
    axis.plot(times, r, "--", color=RED, label="Nr/C")
    for theta in thetas:
        low, high = aecp.efficiency_bounds_s(g, ratio, theta)
        label = "Theorem 2's bounds of θ" if theta == thetas[0] else None
        axis.hlines(theta, low, high, color=GREEN, linewidth=4, alpha=0.6, label=label)
        axis.annotate(
            f"θ = {theta:g}",
            ((low + high) / 2, theta),
            xytext=(0, -13),
            textcoords="offset points",
            ha="center",
        )
    axis.set_ylim(0, 1.6)
    axis.set_xlim(0, 1.1 * last)
    axis.set_xlabel("time (s)")
    axis.set_ylabel("fraction of capacity")
    axis.set_title(f"eq. 6, C/(N·x₀) = {ratio:g}", loc="left")
    _finish(axes)
    axis.legend(frameon=False, loc="upper left")
    return figure


def region(alpha: float, beta: float, name: str) -> Figure:
    """Draw the stable α and β of XCP's loop (RCP's with a standing queue), and the given point."""
    figure, axes = _figure(1)
    axis = axes[0]
    phi = np.linspace(1e-3, math.pi / 2, 500)
    a, b = xcp.boundary(phi)
    axis.plot(a, b, "-", color=BLUE, label="boundary: α = φ sin φ, β = φ² cos φ")
    axis.fill_between(a, 0, b, color=BLUE, alpha=0.12)
    alphas = np.linspace(0, xcp.KATABI_ALPHA_MAX, 100)
    axis.plot(
        alphas,
        alphas**2 * math.sqrt(2),
        "--",
        color=RED,
        label="katabi-2002: β = α²√2, α < π/(4√2)",
    )
    axis.plot([alpha], [beta], "o", color="#000000", label=f"{name}: α = {alpha:g}, β = {beta:g}")
    axis.set_xlim(0, 1.7)
    axis.set_ylim(0, max(0.7, 1.15 * beta))
    axis.set_xlabel("α")
    axis.set_ylabel("β")
    axis.set_title("stable below the boundary (one link, one RTT)", loc="left")
    _finish(axes)
    axis.legend(frameon=False, fontsize="small", loc="upper right")
    return figure


def vcp_margin(xi: float) -> Figure:
    """Draw the phase margin of VCP's fluid model against κ."""
    figure, axes = _figure(1)
    axis = axes[0]
    kappas = np.linspace(0.02, 2.0, 100)
    margins = [vcp.loop_margins(float(k), 1.0).phase_margin_deg for k in kappas]
    axis.plot(kappas, margins, "-", color=BLUE, label="linear phase margin")
    axis.axvspan(0, vcp.KAPPA_GLOBAL, color=GREEN, alpha=0.15, label="κ ≤ 1/2: any disturbance")
    here = vcp.kappa(xi)
    axis.plot([here], [vcp.loop_margins(here, 1.0).phase_margin_deg], "o", color="#000000",
              label=f"ξ = {xi:g}: κ = {here:g}")  # fmt: skip
    axis.axhline(0, color=GREY, linewidth=0.8)
    axis.set_xlabel("κ")
    axis.set_ylabel("phase margin (degrees)")
    axis.set_title("VCP's fluid model, one link, one RTT", loc="left")
    _finish(axes)
    return figure


def abc_margin(delta_s: float) -> Figure:
    """Draw the phase margin of ABC's fluid model against the RTT."""
    figure, axes = _figure(1)
    axis = axes[0]
    limit_s = delta_s / accel_brake.DELTA_GLOBAL
    rtts = np.linspace(0.0, 1.2 * delta_s / accel_brake.DELTA_LINEAR, 100)
    margins = [accel_brake.loop_margins(delta_s, float(t)).phase_margin_deg for t in rtts]
    axis.plot(1e3 * rtts, margins, "-", color=BLUE, label="linear phase margin")
    label = "τ < 3δ/2: any disturbance (Theorem 3.1)"
    axis.axvspan(0, 1e3 * limit_s, color=GREEN, alpha=0.15, label=label)
    axis.axhline(0, color=GREY, linewidth=0.8)
    axis.set_xlabel("RTT without queues τ (ms)")
    axis.set_ylabel("phase margin (degrees)")
    axis.set_title(f"ABC's fluid model, one link, δ = {1e3 * delta_s:g} ms", loc="left")
    _finish(axes)
    return figure


def jetmax_steps(tau: float) -> Figure:
    """Draw a flow's remaining distance from its target per control interval."""
    figure, axes = _figure(1)
    axis = axes[0]
    steps = np.arange(0, 13)
    for value, style, colour in zip(
        (tau, 0.3, 1.5, 1.9), ("-", "--", "-.", ":"), (BLUE, GREEN, PINK, RED), strict=True
    ):
        axis.plot(steps, np.abs(jetmax.mode(value)) ** steps, style, marker=".", color=colour,
                  label=f"τ = {value:g}" + (" (overshoots)" if value > 1 else ""))  # fmt: skip
    axis.axhline(0.01, color=GREY, linewidth=0.8)
    axis.set_yscale("log")
    axis.set_xlabel("RTTs")
    axis.set_ylabel("|x − g| relative to the initial one")
    axis.set_title("JetMax with a fixed set of flows, any delays", loc="left")
    _finish(axes)
    return figure


def maxnet_steps(loops: dict[str, Gains], alpha: float, tau_s: float) -> Figure:
    """Draw a flow's rate after capacity has grown by a factor e, in the linear loops."""
    figure, axes = _figure(1)
    axis = axes[0]
    pairs = zip(loops.items(), ("-", "--"), (BLUE, RED), strict=True)
    for (title, gains), style, colour in pairs:
        step = tuning.step_response(gains, alpha, tau_s, 40 * max(tau_s, gains.alpha_t_s))
        axis.plot(step.time_s, step.log_rate, style, color=colour, label=title)
    axis.axhline(1.0, color=GREY, linewidth=0.8)
    axis.axhline(2 / 3, color=GREY, linewidth=0.8, linestyle=":")
    axis.set_xlabel("time (s)")
    axis.set_ylabel("ln x after ln C steps by 1")
    axis.set_title(f"MaxNet, one flow, τ = {tau_s:g} s", loc="left")
    _finish(axes)
    return figure


def encoding_steps(alpha: float, eta: float, t_s: float) -> Figure:
    """Draw MaxNet's rate step on the fast path, and ξ's time constant, against the RTT."""
    figure, axes = _figure(2)
    taus = np.geomspace(1e-6, 1.0, 300)
    steps = 100 * alpha / taus * encoding.PRICE_STEP_S
    axes[0].loglog(taus, steps, "-", color=BLUE, label="fast path, (α/τ)·2⁻¹⁸")
    axes[0].axhline(100 * encoding.PRICE_STEP_S / t_s, color=RED, linestyle="--",
                    label="in equilibrium, 2⁻¹⁸/T")  # fmt: skip
    axes[0].set_ylim(1e-5, 1e3)
    axes[0].set_ylabel("step of ln x (%)")
    axes[1].loglog(taus, [encoding.fairness_time_s(float(x), alpha, eta, t_s) for x in taus], "-",
                   color=BLUE, label="ξ's time constant τ²/(αηT)")  # fmt: skip
    axes[1].loglog(taus, taus, "--", color=RED, label="τ itself")
    axes[1].axvline(encoding.shortest_rtt_s(alpha, eta, t_s), color=GREY, linewidth=0.8)
    axes[1].set_ylabel("time (s)")
    for axis in axes:
        axis.set_xlabel("RTT τ (s)")
    axes[0].set_title(f"α = {alpha:g}, η = {eta:g}, T = {t_s:g} s", loc="left")
    _finish(axes)
    return figure


def equilibrium(document: Mapping[str, Any]) -> Figure:
    """Draw rates in equilibrium beside max-min, one pair of bars per entry of the scenario."""
    figure, axes = _figure(1)
    axis = axes[0]
    flows = document["flows"][:40]
    place = np.arange(len(flows))
    axis.bar(
        place - 0.2, [f["max_min_bps"] / 1e6 for f in flows], 0.4, color="#BBBBBB", label="max-min"
    )
    axis.bar(place + 0.2, [f["rate_bps"] / 1e6 for f in flows], 0.4, color=BLUE,
             hatch="//", edgecolor="white", label=document["protocol"])  # fmt: skip
    names = [f["name"].replace("$", r"\$") for f in flows]
    axis.set_xticks(place, names, rotation=45 if len(flows) > 6 else 0, fontsize="small")
    axis.set_ylabel("rate of a flow (Mbit/s)")
    axis.set_title(document["scenario"], loc="left", parse_math=False)
    _finish(axes)
    return figure
