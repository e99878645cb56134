"""JSON documents of `waterfill theory … --json`, except those of `theory stability`.

Each has `command` and `protocol`, the contract's keys at the top (null where a law has no such
quantity), and `rows`: the lines of the command's table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from waterfill.contract.record import Record
from waterfill.errors import InputError
from waterfill.network import protocols
from waterfill.theory import (
    accel_brake,
    aecp,
    allocation,
    encoding,
    equilibrium,
    jetmax,
    maxnet,
    params,
    sampled,
    subject,
    tuning,
    vcp,
    verdicts,
    xcp,
)
from waterfill.theory.loops import Margins
from waterfill.theory.params import number
from waterfill.theory.subject import Subject, computed

Document: TypeAlias = dict[str, Any]

MARGIN = ("maxnet", "aecp", "xcp", "rcp", "vcp", "abc")
CONVERGENCE = ("maxnet", "aecp", "jetmax", "vcp")
ENCODING = ("maxnet", "aecp")

# RTTs at which MaxNet's fast path is shown: those of the papers' readings and of the thesis.
_FAST_RTTS_S = [10e-6, 1e-3, 16e-3, 80e-3]
# Fractions of capacity (θ) and of the largest rate (ε) that AECP's times are given for.
_FRACTIONS = (0.5, 0.9, 0.99)


class DocumentRow(Record):
    """One line of a table: our value with its unit, and the paper's value with its place in the
    paper.
    """

    what: str
    value: Any
    unit: str
    paper: Any
    source: str


def row(what: str, value: Any, unit: str = "", paper: Any = None, source: str = "") -> DocumentRow:
    """Return one entry of a document's `rows`."""
    return DocumentRow(what=what, value=value, unit=unit, paper=paper, source=source)


def same(given: Sequence[float], printed: Sequence[float]) -> bool:
    """Return True if parameters equal the parameters of a case printed in the paper, within
    rounding.
    """
    return all(math.isclose(a, b, rel_tol=1e-6) for a, b in zip(given, printed, strict=True))


def margins_document(found: Margins) -> Document:
    """Return the keys of a document for a loop's margins and stability."""
    return {**found._asdict(), "stable": found.stable}


def sampled_rows(limits: Mapping[str, float]) -> list[DocumentRow]:
    """Return the rows for AECP's delay margins with its sampling times."""
    names = {
        "continuous": "continuous source, T₂ = t_2",
        "exact": "exact source, T₁ = τ",
        "printed": "printed form, T₁ = τ, unbounded weight ατ",
        "clamped": "printed form, T₁ = τ, weight up to 1 (as implemented)",
    }
    return [row(f"delay margin: {names[s]}", value, "s") for s, value in limits.items()]


# --- theory margin ------------------------------------------------------------------------------


@computed
def margin(about: Subject, rtt_s: float | None) -> Document:
    """Return the document of `theory margin`: crossover and stability margins at one RTT."""
    makers = {
        "aecp": _aecp_margin,
        "maxnet": _maxnet_margin,
        "vcp": _vcp_margin,
        "abc": _abc_margin,
        "xcp": _xcp_margin,
        "rcp": _rcp_margin,
    }
    rtt_s, found, extra, rows = makers[about.protocol](about.params, rtt_s)
    head = [
        row("RTT", rtt_s, "s"),
        row("crossover", found.crossover_rad_s, "rad/s"),
        row("phase margin", found.phase_margin_deg, "°"),
        row("delay margin: additional delay before instability", found.delay_margin_s, "s"),
        row("gain margin", found.gain_margin),
    ]
    full = {
        "command": "margin",
        "protocol": about.protocol,
        "rtt_s": rtt_s,
        **margins_document(found),
        **extra,
        "rows": [*head, *rows],
    }
    return {**full, "verdict": verdicts.margin(full)}


# What a protocol's margins consist of: the RTT used, the loop's margins, more keys, more rows.
_Margin: TypeAlias = tuple[float | None, Margins, Document, list[DocumentRow]]


def _aecp_margin(values: params.Values, rtt_s: float | None) -> _Margin:
    p = aecp.Params.of(values)
    g = p.gains
    found = aecp.loop_margins(g, rtt_s or 0.0)
    limits = {s: sampled.margin_s(g, p.t_2_s, s) for s in sampled.SOURCES}
    extra: Document = {"sampled_delay_margin_s": limits}
    rows = sampled_rows(limits)
    if rtt_s is not None:
        growth = {s: sampled.growth(g, p.t_2_s, rtt_s, s).per_s for s in sampled.SOURCES}
        extra |= {"sampled_growth_per_s": growth}
        rows += [row(f"growth per second at this RTT: {s}", v) for s, v in growth.items()]
    return rtt_s, found, extra, rows


def _maxnet_margin(values: params.Values, rtt_s: float | None) -> _Margin:
    p = maxnet.Params.of(values)
    rtt_s = rtt_s or 0.08
    found = maxnet.loop_margins(maxnet.eq13(p), p.alpha, rtt_s)
    real = maxnet.implemented(p)
    margins = maxnet.loop_margins(real, p.alpha, rtt_s)
    compensator = maxnet.compensator_gain(real, rtt_s)
    extra = {"implemented": margins_document(margins), "compensator": compensator}
    rows = [
        row("αT/τ: above 1 leads, below lags", compensator),
        row("as implemented: crossover", margins.crossover_rad_s, "rad/s"),
        row("as implemented: phase margin", margins.phase_margin_deg, "°"),
        row("as implemented: delay margin", margins.delay_margin_s, "s"),
        row("as implemented: gain margin", margins.gain_margin),
    ]
    return rtt_s, found, extra, rows


def _vcp_margin(values: params.Values, rtt_s: float | None) -> _Margin:
    rtt_s = rtt_s or 0.2
    return rtt_s, vcp.loop_margins(vcp.kappa(number(values, "xi")), rtt_s), {}, []


def _abc_margin(values: params.Values, rtt_s: float | None) -> _Margin:
    rtt_s = rtt_s or 0.1
    return rtt_s, accel_brake.loop_margins(number(values, "delta"), rtt_s), {}, []


def _xcp_margin(values: params.Values, rtt_s: float | None) -> _Margin:
    rtt_s = rtt_s or 0.1
    alpha, beta = xcp.Gains.of(values)
    return rtt_s, xcp.loop_margins(alpha, beta, rtt_s), {}, []


def _rcp_margin(values: params.Values, rtt_s: float | None) -> _Margin:
    rtt_s, found, _, _ = _xcp_margin(values, rtt_s)
    assert rtt_s is not None
    empty = xcp.loop_margins(xcp.Gains.of(values).alpha, 0.0, rtt_s)
    rows = [row("empty queue: phase margin", empty.phase_margin_deg, "°")]
    return rtt_s, found, {"empty_queue": margins_document(empty)}, rows


# --- theory equilibrium -------------------------------------------------------------------------


class FlowInEquilibrium(Record):
    """A flow entry in equilibrium. `ratio` is the flow's rate ÷ its max-min rate."""

    name: str
    count: int
    rate_bps: float
    bottleneck: str
    max_min_bps: float
    ratio: float | None


class LinkInEquilibrium(Record):
    """A link in XCP's equilibrium, with the fraction of its losses that is allocated again."""

    name: str
    utilization: float
    limit_bps: float | None
    losses_kept: float | None


class Equilibrium(Record):
    """The document of `theory equilibrium`."""

    command: str
    protocol: str
    scenario: str
    model: str
    flows: list[FlowInEquilibrium]
    links: list[LinkInEquilibrium]
    notes: list[str]
    verdict: str


@computed
def equilibrium_of(about: Subject) -> Equilibrium:
    """Return the document of `theory equilibrium`: the fixed point of XCP, iXCP or P-XCP, or
    max-min rates.
    """
    network, scenario = about.network, about.scenario
    assert network is not None
    assert scenario is not None
    targets = protocols.targets({about.protocol: params.given(about.params)})
    fair = allocation.max_min(network, targets)
    model = "max-min next to acknowledgements"
    groups = allocation.max_min(network, targets, acknowledgements=True)
    rates = [group.rate_bps for group in groups]
    bottlenecks = [group.bottleneck for group in groups]
    links: list[LinkInEquilibrium] = []
    if about.protocol in equilibrium.PROTOCOLS:
        model = "fixed point"
        gains = equilibrium.Gains.of(about.params)
        try:
            point = equilibrium.of_network(network, gains, about.protocol)
        except ValueError as error:
            raise scenario.error("flow", str(error)) from None
        rates, bottlenecks = point.rates_bps, point.bottleneck
        links = [
            LinkInEquilibrium(
                name=link.name,
                utilization=y / link.rate_bps,
                limit_bps=limit,
                losses_kept=kept,
            )
            for link, y, limit, kept in zip(
                network.links, point.inputs_bps, point.limits_bps, point.losses_kept, strict=True
            )
        ]
    names = allocation.link_names(network, bottlenecks)
    flows = [
        FlowInEquilibrium(
            name=entry.name,
            count=entry.count,
            rate_bps=rate,
            bottleneck=name,
            max_min_bps=share.rate_bps,
            ratio=rate / share.rate_bps if share.rate_bps > 0 else None,
        )
        for entry, rate, name, share in zip(network.flows, rates, names, fair, strict=True)
    ]
    return Equilibrium(
        command="equilibrium",
        protocol=about.protocol,
        scenario=scenario.name,
        model=model,
        flows=flows,
        links=links,
        notes=subject.notes(scenario),
        verdict=verdicts.equilibrium(about.protocol, flows),
    )


# --- theory convergence -------------------------------------------------------------------------


@computed
def convergence(about: Subject, rtt_s: float) -> Document:
    """Return the document of `theory convergence`: a law's times by formula and by integration."""
    makers = {
        "aecp": _aecp_times,
        "maxnet": _maxnet_times,
        "jetmax": _jetmax_times,
        "vcp": _vcp_times,
    }
    found = makers[about.protocol](about.params, rtt_s)
    full = {"command": "convergence", "protocol": about.protocol, "rtt_s": rtt_s, **found}
    return {**full, "verdict": verdicts.convergence(full)}


def _aecp_times(values: params.Values, rtt_s: float) -> Document:
    """Return AECP's times at 62,500 packets/s, for one flow that starts at the protocol's x_0 and
    r(0).
    """
    p = aecp.Params.of(values)
    g = p.gains
    capacity = 62500.0
    r_0 = capacity if p.r_0 == "capacity" else p.x_0
    link = aecp.Link(capacity, 1.0, p.x_0, r_0, p.q_0)
    ratio = capacity / p.x_0
    rows, efficiency, fairness = [], [], []
    for theta in _FRACTIONS:
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
        rows.append(row(f"eq. 6: time to {theta:g}-efficiency", time_s, "s", bounds, "Theorem 2"))
    for epsilon in _FRACTIONS:
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
        title = f"time to {epsilon:g}-fairness"
        rows.append(row(f"eq. 31 solved: {title}", solved, "s", printed, "Theorem 3"))
        rows.append(row(f"eq. 30 integrated: {title}", integrated, "s"))
    return {
        "capacity_packets_s": capacity,
        "x_0": p.x_0,
        "r_0": r_0,
        "efficiency": efficiency,
        "fairness": fairness,
        "rows": rows,
    }


def _maxnet_times(values: params.Values, rtt_s: float) -> Document:
    p = maxnet.Params.of(values)
    rows: list[DocumentRow] = []
    found: Document = {}
    for key, title, gains in (
        ("eq13", "eq. 13", maxnet.eq13(p)),
        ("implemented", "as implemented", maxnet.implemented(p)),
    ):
        span_s = 40 * max(rtt_s, gains.alpha_t_s, min(rtt_s / p.eta, 30 * rtt_s))
        if span_s > tuning.longest_s(gains, rtt_s):
            at = verdicts.time(rtt_s)
            why = f"αT = {verdicts.time(gains.alpha_t_s)} is too slow for an RTT of {at}"
            advice = f"see `waterfill theory stability maxnet --tune --max-rtt '{at}'`"
            raise InputError("theory", "params.maxnet", why, advice)
        step = tuning.step_response(gains, p.alpha, rtt_s, span_s)
        found[key] = {
            "two_thirds_s": step.two_thirds_s,
            "after_six_rtts": step.initial,
            "settled_s": step.settled_s,
        }
        rows += [
            row(f"{title}: time to two thirds of a step", step.two_thirds_s, "s"),
            row(f"{title}: fraction of a step after six RTTs", step.initial),
            row(f"{title}: settling time to 2 %", step.settled_s, "s"),
        ]
    zero_time_s = rtt_s / p.eta
    rows.append(row("time constant τ/η of the zero", zero_time_s, "s"))
    return {**found, "zero_time_s": zero_time_s, "rows": rows}


def _jetmax_times(values: params.Values, rtt_s: float) -> Document:
    steps = jetmax.steps_to(0.01, number(values, "tau"))
    seconds = steps * (rtt_s + number(values, "interval"))
    return {
        "steps": steps,
        "longest_s": seconds,
        "rows": [
            row("control intervals to 1 %", steps, "", 6, "jetmax-2006, abstract"),
            row("longest time, with a full interval per step", seconds, "s"),
        ],
    }


def _vcp_times(values: params.Values, rtt_s: float) -> Document:
    xi, interval_s = number(values, "xi"), number(values, "t_rho")
    times = {ratio: vcp.increase_time_s(ratio, xi, interval_s) for ratio in (10.0, 100.0, 1000.0)}
    return {
        "increase_s": {f"{ratio:g}": value for ratio, value in times.items()},
        "rows": [
            row(f"MI: a window {ratio:g} times as large", t, "s") for ratio, t in times.items()
        ],
    }


# --- theory encoding ----------------------------------------------------------------------------


@computed
def encoding_of(about: Subject) -> Document:
    """Return the document of `theory encoding`: range and precision of the header field.

    Raises InputError for a parameter that gives the price another field.
    """
    for name in ("carriage", "code_bits", "price_unit"):
        if name in about.chosen:
            why = "not computed, because the field is the paper's"
            raise InputError("command line", f"params.{about.protocol}.{name}", why, "remove it")
    head = {"command": "encoding", "protocol": about.protocol}
    if about.protocol == "aecp":
        factor = encoding.aecp()
        rows = [
            row("smallest factor", factor.factor_min, "packets/s"),
            row("largest factor", factor.factor_max, "packets/s"),
            row("step of the factor", factor.rate_step),
            row("largest rounding", factor.rounding),
        ]
        return _with_verdict({**head, **factor.document(), "rows": rows})
    p = maxnet.Params.of(about.params)
    field = encoding.maxnet(p, _FAST_RTTS_S)
    default = same((p.t_s, p.x_max_bps), (0.4, 1e15))
    rows = [
        row("integer bits for 32 bit/s to 10¹⁵ bit/s", field.needed.integer, "", 4, "§V"),
        row("fractional bits for a precision of 10⁻⁵", field.needed.fraction, "", 18, "§V"),
        row(
            "step of a rate in equilibrium, 2⁻¹⁸/T",
            field.rate_step,
            "",
            1e-5 if default else None,
            "§V, abstract: 0.001 %",
        ),
        row("smallest rate that a price expresses", field.rate_min_bps, "bit/s"),
        row("smallest start rate", field.start_rate_min_bps, "bit/s"),
    ]
    for fast in field.fast_path:
        at = f"at {fast.rtt_s:g} s"
        rows.append(row(f"step of ln x on the fast path {at}, (α/τ)·2⁻¹⁸", fast.log_rate_step))
        rows.append(row(f"ξ's time constant {at}", fast.xi_time_s, "s"))
    rows.append(row("RTT that equals ξ's time constant, αηT", field.shortest_rtt_s, "s"))
    return _with_verdict({**head, **field.document(), "rows": rows})


def _with_verdict(document: Document) -> Document:
    return {**document, "verdict": verdicts.encoding(document)}
