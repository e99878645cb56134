"""The documents that `waterfill theory … --json` prints, put together from the other files.

Each has `command` and `protocol`, the contract's keys at the top (null where a law has no such
thing), and `rows`: what a table shows, {what, value, unit, paper, source}.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from waterfill.network import protocols
from waterfill.theory import (
    aecp,
    encoding,
    equilibrium,
    jetmax,
    maxnet,
    sampled,
    subject,
    tuning,
    vcp,
    xcp,
)
from waterfill.theory.loops import Margins
from waterfill.theory.subject import Subject

Document: TypeAlias = dict[str, Any]

MARGIN = ("maxnet", "aecp", "xcp", "rcp", "vcp")
CONVERGENCE = ("maxnet", "aecp", "jetmax", "vcp")
ENCODING = ("maxnet", "aecp")

# Round trips at which MaxNet's fast path is shown: what the readings and the thesis name.
_FAST_RTTS_S = [10e-6, 1e-3, 16e-3, 80e-3]


def row(what: str, value: Any, unit: str = "", paper: Any = None, source: str = "") -> Document:
    """One line of a document's `rows`: our value, and the paper's with its place."""
    return {"what": what, "value": value, "unit": unit, "paper": paper, "source": source}


def same(given: Sequence[float], printed: Sequence[float]) -> bool:
    """Whether parameters are those of a printed case, to rounding."""
    return all(math.isclose(a, b, rel_tol=1e-6) for a, b in zip(given, printed, strict=True))


def margins_of(found: Margins) -> Document:
    """Margins as a document's keys, and whether the loop is stable."""
    return {**found._asdict(), "stable": found.stable}


def given(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that have a value, as the core takes them."""
    return {name: value for name, value in params.items() if value is not None}


def sampled_rows(limits: Mapping[str, float]) -> list[Document]:
    """Rows of AECP's delay margins with its sampling times."""
    names = {
        "continuous": "continuous source, T₂ = t_2",
        "exact": "exact source, T₁ = τ",
        "printed": "printed form, T₁ = τ, weight ατ unbounded",
        "clamped": "printed form, T₁ = τ, weight at most 1 (as implemented)",
    }
    return [row(f"delay margin: {names[s]}", value, "s") for s, value in limits.items()]


def margin(about: Subject, rtt_s: float | None) -> Document:
    """`theory margin`: crossover, phase margin and delay margin of the loop of one round trip."""
    params: dict[str, Any] = about.params
    extra: Document = {}
    rows: list[Document] = []
    if about.protocol == "aecp":
        g = aecp.gains(params)
        found = aecp.loop_margins(g, rtt_s or 0.0)
        limits = {s: sampled.margin_s(g, params["t_2"], s) for s in sampled.SOURCES}
        extra = {"sampled_delay_margin_s": limits}
        rows = sampled_rows(limits)
        if rtt_s is not None:
            grows = {s: sampled.growth(g, params["t_2"], rtt_s, s).per_s for s in sampled.SOURCES}
            extra["sampled_growth_per_s"] = grows
            rows += [row(f"growth a second at this round trip: {s}", v) for s, v in grows.items()]
    elif about.protocol == "maxnet":
        rtt_s = rtt_s or 0.08
        found = maxnet.loop_margins(maxnet.eq13(params), params["alpha"], rtt_s)
        real = maxnet.implemented(params)
        mine = maxnet.loop_margins(real, params["alpha"], rtt_s)
        extra = {
            "implemented": margins_of(mine),
            "compensator": maxnet.compensator_gain(real, rtt_s),
        }
        rows = [
            row("αT/τ: above 1 leads, below lags", extra["compensator"]),
            row("as implemented: crossover", mine.crossover_rad_s, "rad/s"),
            row("as implemented: phase margin", mine.phase_margin_deg, "°"),
            row("as implemented: delay margin", mine.delay_margin_s, "s"),
            row("as implemented: gain margin", mine.gain_margin),
        ]
    elif about.protocol == "vcp":
        rtt_s = rtt_s or 0.2
        found = vcp.loop_margins(vcp.kappa(params["xi"]), rtt_s)
    else:
        rtt_s = rtt_s or 0.1
        found = xcp.loop_margins(params["alpha"], params["beta"], rtt_s)
        if about.protocol == "rcp":
            empty = xcp.loop_margins(params["alpha"], 0.0, rtt_s)
            extra = {"empty_queue": margins_of(empty)}
            rows = [row("empty queue: phase margin", empty.phase_margin_deg, "°")]
    head = [
        row("round trip", rtt_s, "s"),
        row("crossover", found.crossover_rad_s, "rad/s"),
        row("phase margin", found.phase_margin_deg, "°"),
        row("delay margin: further delay it bears", found.delay_margin_s, "s"),
        row("gain margin", found.gain_margin),
    ]
    return {
        "command": "margin",
        "protocol": about.protocol,
        "rtt_s": rtt_s,
        **margins_of(found),
        **extra,
        "rows": [*head, *rows],
    }


def equilibrium_of(about: Subject) -> Document:
    """`theory equilibrium`: where a network rests; max-min but for XCP and P-XCP."""
    assert about.network is not None
    assert about.scenario is not None
    core = about.network
    targets = protocols.targets({about.protocol: given(about.params)})
    fair = subject.at_rest(core, targets)
    model = "max-min beside acknowledgements"
    rested = subject.at_rest(core, targets, acknowledgements=True)
    rates = [flow.rate_bps for flow in rested]
    bounds = [flow.bottleneck for flow in rested]
    links: list[Document] = []
    if about.protocol in equilibrium.PROTOCOLS:
        model = "fixed point"
        try:
            rest = equilibrium.of_network(core, about.params, about.protocol)
        except ValueError as error:
            raise about.scenario.error("flow", str(error)) from None
        rates, bounds = rest.rates_bps, rest.bottleneck
        links = [
            {
                "name": link["name"],
                "utilization": y / link["rate_bps"],
                "limit_bps": limit,
                "losses_kept": kept,
            }
            for link, y, limit, kept in zip(
                core["links"], rest.inputs_bps, rest.limits_bps, rest.losses_kept, strict=True
            )
        ]
    names = subject.link_names(core, bounds)
    flows = [
        {
            "name": entry["name"],
            "count": entry["count"],
            "rate_bps": rate,
            "bottleneck": name,
            "max_min_bps": share.rate_bps,
            "ratio": rate / share.rate_bps if share.rate_bps > 0 else None,
        }
        for entry, rate, name, share in zip(core["flows"], rates, names, fair, strict=True)
    ]
    return {
        "command": "equilibrium",
        "protocol": about.protocol,
        "scenario": about.scenario.name,
        "model": model,
        "flows": flows,
        "links": links,
    }


def convergence(about: Subject, rtt_s: float) -> Document:
    """`theory convergence`: how long a law takes, by its formulas and by its equations."""
    makers = {
        "aecp": _aecp_times,
        "maxnet": _maxnet_times,
        "jetmax": _jetmax_times,
        "vcp": _vcp_times,
    }
    found = makers[about.protocol](dict(about.params), rtt_s)
    return {"command": "convergence", "protocol": about.protocol, "rtt_s": rtt_s, **found}


def _aecp_times(params: dict[str, Any], rtt_s: float) -> Document:
    """Of the case of the readings: 62500 packets/s, one flow from the protocol's x_0 and r(0)."""
    g = aecp.gains(params)
    capacity, x_0 = 62500.0, params["x_0"]
    first = capacity if params["r_0"] == "capacity" else x_0
    link = aecp.Link(capacity, 1.0, x_0, first, params["q_0"])
    ratio = capacity / x_0
    rows, efficiency, fairness = [], [], []
    for theta in (0.5, 0.9, 0.99):
        time_s = aecp.efficiency_time_s(g, link, theta)
        low_s, high_s = aecp.efficiency_bounds_s(g, ratio, theta)
        efficiency.append(
            {
                "theta": theta,
                "time_s": time_s,
                "bounds_s": [low_s, high_s],
                "within": low_s < time_s < high_s,
            }
        )
        bounds = f"{low_s:.2f} to {high_s:.2f}"
        rows.append(row(f"eq. 6: {theta:g}-efficiency", time_s, "s", bounds, "Theorem 2"))
    for epsilon in (0.5, 0.9, 0.99):
        printed = aecp.fairness_time_printed_s(g, ratio, epsilon)
        solved = aecp.fairness_time_s(g, ratio, epsilon)
        integrated = aecp.fairness_time_integrated_s(g, ratio, epsilon)
        fairness.append(
            {
                "epsilon": epsilon,
                "printed_s": printed,
                "solved_s": solved,
                "integrated_s": integrated,
            }
        )
        rows.append(row(f"eq. 31 solved: {epsilon:g}-fairness", solved, "s", printed, "Theorem 3"))
        rows.append(row(f"eq. 30 integrated: {epsilon:g}-fairness", integrated, "s"))
    return {
        "capacity_packets_s": capacity,
        "x_0": x_0,
        "r_0": first,
        "efficiency": efficiency,
        "fairness": fairness,
        "rows": rows,
    }


def _maxnet_times(params: dict[str, Any], rtt_s: float) -> Document:
    alpha = params["alpha"]
    rows, found = [], {}
    for name, gains in (("eq13", maxnet.eq13(params)), ("implemented", maxnet.implemented(params))):
        span_s = 40 * max(rtt_s, gains.alpha_t_s, min(rtt_s / params["eta"], 30 * rtt_s))
        step = tuning.step_response(gains, alpha, rtt_s, span_s)
        found[name] = {
            "two_thirds_s": step.two_thirds_s,
            "after_six_rtts": step.initial,
            "settled_s": step.settled_s,
        }
        title = "eq. 13" if name == "eq13" else "as implemented"
        rows += [
            row(f"{title}: two thirds of the way", step.two_thirds_s, "s"),
            row(f"{title}: part of the way after six round trips", step.initial),
            row(f"{title}: within 2 % for good", step.settled_s, "s"),
        ]
    tau_eta = rtt_s / params["eta"]
    rows.append(row("time constant τ/η of the zero", tau_eta, "s"))
    return {**found, "zero_time_s": tau_eta, "rows": rows}


def _jetmax_times(params: dict[str, Any], rtt_s: float) -> Document:
    steps = jetmax.steps_to(0.01, params["tau"])
    seconds = steps * (rtt_s + params["interval"])
    return {
        "steps": steps,
        "rows": [
            row("control intervals to 1 %", steps, "", 6, "jetmax-2006, abstract"),
            row("at most, with a full interval in each", seconds, "s"),
        ],
    }


def _vcp_times(params: dict[str, Any], rtt_s: float) -> Document:
    times = {
        r: vcp.increase_time_s(r, params["xi"], params["t_rho"]) for r in (10.0, 100.0, 1000.0)
    }
    return {
        "increase_s": {f"{ratio:g}": value for ratio, value in times.items()},
        "rows": [
            row(f"MI: a window {ratio:g} times as large", t, "s") for ratio, t in times.items()
        ],
    }


def encoding_of(about: Subject) -> Document:
    """`theory encoding`: what the header's field can say."""
    head = {"command": "encoding", "protocol": about.protocol}
    if about.protocol == "aecp":
        found = encoding.aecp()
        rows = [
            row("smallest factor", found["factor_min"], "packets/s"),
            row("largest factor", found["factor_max"], "packets/s"),
            row("step of the factor", found["rate_step"]),
            row("largest rounding", found["rounding"]),
        ]
        return {**head, **found, "rows": rows}
    params: dict[str, Any] = about.params
    found = encoding.maxnet(params, _FAST_RTTS_S)
    default = same((params["t"], params["x_max"]), (0.4, 1e15))
    rows = [
        row(
            "integer bits for 32 bit/s to 10¹⁵ bit/s", found["bits_needed"]["integer"], "", 4, "§V"
        ),
        row(
            "fractional bits for a precision of 10⁻⁵",
            found["bits_needed"]["fraction"],
            "",
            18,
            "§V",
        ),
        row(
            "step of a rate in equilibrium, 2⁻¹⁸/T",
            found["rate_step"],
            "",
            1e-5 if default else None,
            "§V, abstract: 0.001 %",
        ),
        row("smallest rate of a price", found["rate_min_bps"], "bit/s"),
        row("smallest start rate", found["start_rate_min_bps"], "bit/s"),
    ]
    for fast in found["fast_path"]:
        rows.append(
            row(
                f"step of ln x on the fast path at {fast['rtt_s']:g} s, (α/τ)·2⁻¹⁸",
                fast["log_rate_step"],
            )
        )
        rows.append(row(f"ξ's time constant at {fast['rtt_s']:g} s", fast["xi_time_s"], "s"))
    rows.append(row("ξ as quick as a round trip at αηT", found["shortest_rtt_s"], "s"))
    return {**head, **found, "rows": rows}
