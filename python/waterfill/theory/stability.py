"""JSON documents of `waterfill theory stability`: single laws, networks, and tuning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from waterfill.errors import InputError
from waterfill.network import protocols
from waterfill.theory import (
    accel_brake,
    aecp,
    allocation,
    alpha_rcp,
    certificate,
    encoding,
    jetmax,
    maxnet,
    mkc,
    params,
    rcp,
    sampled,
    subject,
    tuning,
    vcp,
    verdicts,
    xcp,
)
from waterfill.theory.documents import (
    Document,
    DocumentRow,
    margins_document,
    row,
    same,
    sampled_rows,
)
from waterfill.theory.loops import Margins
from waterfill.theory.subject import Subject, computed
from waterfill.theory.xcp import Share

PROTOCOLS = ("maxnet", "aecp", "xcp", "rcp", "alpha_rcp", "vcp", "abc", "jetmax", "mkc")


@computed
def document(about: Subject, max_rtt_s: float) -> Document:
    """Return the document of `theory stability`, for a law up to an RTT or for a scenario's
    network, whose largest RTT then counts instead.
    """
    makers = {
        "maxnet": _maxnet,
        "aecp": _aecp,
        "xcp": _xcp,
        "rcp": _rcp,
        "alpha_rcp": _alpha_rcp,
        "vcp": _vcp,
        "abc": _abc,
        "jetmax": _jetmax,
        "mkc": _mkc,
    }
    if about.network is not None:
        max_rtt_s = _rtts(about)[-1]
    found = makers[about.protocol](about, max_rtt_s)
    name = None if about.scenario is None else about.scenario.name
    head = {"command": "stability", "protocol": about.protocol, "scenario": name}
    notes = [] if about.scenario is None else subject.notes(about.scenario)
    full = {**head, "notes": notes, "omega_rad_s": None, "slope": None, "alpha_max": None, **found}
    return {**full, "verdict": verdicts.stability(full)}


# --- MaxNet -------------------------------------------------------------------------------------


def _maxnet(about: Subject, max_rtt_s: float) -> Document:
    if about.network is not None:
        return _maxnet_network(about)
    p = maxnet.Params.of(about.params)
    printed = certificate.certify(maxnet.eq13(p), p.alpha, max_rtt_s)
    real = certificate.certify(maxnet.implemented(p), p.alpha, max_rtt_s)
    gains = printed.gains
    section_d = same((gains.alpha_t_s, gains.eta, max_rtt_s), (0.264, 0.06, 1000.0))
    at = "§VIII.D" if section_d else ""
    omega, slope = (0.001525, 0.3504) if section_d else (None, None)  # as the paper prints them
    line = printed.built.line
    rows = [
        row("threshold ω̲", printed.built.omega_rad_s, "rad/s", omega, at),
        row("slope γ of the line that maximises α_max", line.slope, "", slope, at),
        row("α_max by Algorithm 3", printed.built.alpha_max),
    ]
    if slope is not None:
        with_slope = maxnet.construct(gains, max_rtt_s, slope)
        rows.append(row("α_max with the paper's slope", with_slope.alpha_max, "", None, at))
    rows += [
        row("α_max by Lemma 1, any mixture of RTTs", printed.limit.alpha_max),
        row("Proposition 2: only RTTs above τ′ matter", printed.built.tau_cut_s, "s"),
        row("as implemented: threshold ω̲", real.built.omega_rad_s, "rad/s"),
        row("as implemented: slope γ", real.built.line.slope),
        row("as implemented: α_max by Algorithm 3", real.built.alpha_max),
        row("as implemented: α_max by Lemma 1", real.limit.alpha_max),
        row("α", p.alpha),
        row("certified for eq. 13", printed.certified),
        row("certified as implemented", real.certified),
    ]
    return {
        "omega_rad_s": printed.built.omega_rad_s,
        "slope": line.slope,
        "alpha_max": printed.built.alpha_max,
        "stable": printed.certified and real.certified,
        "max_rtt_s": max_rtt_s,
        "alpha": p.alpha,
        "eq13": printed.document(),
        "implemented": real.document(),
        "rows": rows,
    }


def _maxnet_network(about: Subject) -> Document:
    p = maxnet.Params.of(about.params)
    assert about.network is not None
    rtts = _rtts(about)
    targets = protocols.targets({"maxnet": params.given(about.params)})
    prices = _bottleneck_prices(allocation.max_min(about.network, targets), p)
    printed = certificate.hull_limit(maxnet.eq13(p), rtts)
    real = certificate.hull_limit(maxnet.implemented(p), rtts)
    equal = len({round(price, 12) for price in prices.values()}) < len(prices)
    names = allocation.link_names(about.network, prices)
    return {
        "omega_rad_s": printed.omega_rad_s,
        "alpha_max": printed.alpha_max,
        "stable": p.alpha < min(printed.alpha_max, real.alpha_max),
        "alpha": p.alpha,
        "rtts_s": rtts,
        "implemented": real._asdict(),
        "bottlenecks": [
            {"name": name, "price_s": price}
            for name, price in zip(names, prices.values(), strict=True)
        ],
        "equal_prices": equal,
        "rows": [
            row("different RTTs", len(rtts)),
            row("α_max by Lemma 1", printed.alpha_max),
            row("at ω", printed.omega_rad_s, "rad/s"),
            row("as implemented: α_max by Lemma 1", real.alpha_max),
            row("as implemented: at ω", real.omega_rad_s, "rad/s"),
            row("α", p.alpha),
            row("two bottlenecks of equal price, which §VIII.A excludes", equal),
        ],
    }


def _rtts(about: Subject) -> list[float]:
    """Return the network's distinct RTTs (s); raise InputError if an RTT is zero."""
    assert about.network is not None
    assert about.scenario is not None
    rtts = allocation.rtts_s(about.network)
    if rtts[0] <= 0:
        raise about.scenario.error("flow", "every flow must have an RTT above 0 s")
    return rtts


def _bottleneck_prices(flows: Sequence[allocation.Group], p: maxnet.Params) -> dict[int, float]:
    """`[maxnet-2007:eq8]` Return the price (s) of each bottleneck, from the rate of its flows."""
    return {
        flow.bottleneck: encoding.price_of(flow.rate_bps, p.t_s, p.x_max_bps)
        for flow in flows
        if flow.bottleneck is not None and flow.rate_bps > 0
    }


# --- AECP, XCP, RCP -----------------------------------------------------------------------------


def _aecp(about: Subject, rtt_s: float) -> Document:
    p = aecp.Params.of(about.params)
    g = p.gains
    bare = aecp.loop_margins(g)
    limits = {s: sampled.margin_s(g, p.t_2_s, s) for s in sampled.SOURCES}
    form = "clamped" if p.form == "printed" else "exact"
    # Under eq. 43 every time of the loop scales as 1/α.
    alpha_max = g.alpha * bare.delay_margin_s / rtt_s if same(g, aecp.tuned(g.alpha)) else None
    stable = rtt_s < min(bare.delay_margin_s, limits[form])
    return {
        "omega_rad_s": bare.crossover_rad_s,
        "alpha_max": alpha_max,
        "stable": stable,
        "max_rtt_s": rtt_s,
        "delay_margin_s": bare.delay_margin_s,
        "sampled_delay_margin_s": limits,
        "rows": [
            row("RTT", rtt_s, "s"),
            row("stable, by Theorem 1", None, "", "always", "Theorem 1"),
            row("delay margin of eq. 38", bare.delay_margin_s, "s"),
            *sampled_rows(limits),
            row("stable with eq. 38 and as implemented", stable),
        ],
    }


class _Range(NamedTuple):
    """Range of α in which XCP's loop, or RCP's with a standing queue, is stable. Both ends are None
    if there is no range.
    """

    low: float | None
    high: float | None

    @classmethod
    def of(cls, beta: float) -> _Range:
        low, high = xcp.alpha_range(beta)
        return cls(None, None) if math.isnan(low) else cls(low, high)

    def contains(self, alpha: float) -> bool:
        return self.low is not None and self.high is not None and self.low < alpha < self.high


def _xcp(about: Subject, max_rtt_s: float) -> Document:
    alpha, beta = xcp.Gains.of(about.params)
    bounds = _Range.of(beta)
    stable = bounds.contains(alpha)
    theorem = ("π/(4√2)", "katabi-2002, Theorem 1")
    rows = [
        row("α must exceed, at this β", bounds.low),
        row("α must stay below, at this β", bounds.high),
        row("Theorem 1's α, with β = α²√2", xcp.KATABI_ALPHA_MAX, "", *theorem),
        row("β", beta, "", xcp.katabi_beta(alpha), "katabi-2002: α²√2"),
        row("α", alpha),
    ]
    per_link: Document = {}
    if about.network is not None:
        loops = _link_loops(about, queue=True)
        stable = all(loop.standing_queue.stable for loop in loops)
        per_link = {"links": [loop.document() for loop in loops]}
        rows += _link_rows(loops)
    margins = xcp.loop_margins(alpha, beta, 1.0)
    return {
        "alpha_max": bounds.high,
        "alpha_min": bounds.low,
        "beta": beta,
        "alpha": alpha,
        **per_link,
        "omega_rad_s": margins.crossover_rad_s / max_rtt_s,
        "stable": stable,
        "max_rtt_s": max_rtt_s,
        "rows": [*rows, row("stable", stable)],
    }


def _rcp(about: Subject, max_rtt_s: float) -> Document:
    alpha, beta = xcp.Gains.of(about.params)
    bounds = _Range.of(beta)
    empty, standing = alpha < rcp.ALPHA_MAX_EMPTY, bounds.contains(alpha)
    per_link: Document = {}
    if about.network is not None:
        loops = _link_loops(about, queue=False)
        empty = all(loop.empty_queue.stable for loop in loops)
        standing = all(loop.standing_queue.stable for loop in loops)
        per_link = {"links": [loop.document() for loop in loops]}
        rows = [*_link_rows(loops), row("stable at every link", empty and standing)]
    else:
        theorem = ("π/2", "Kelly, Raina, Voice 2008")
        rows = [
            row("empty queue: α must stay below", rcp.ALPHA_MAX_EMPTY, "", *theorem),
            row("standing queue: α must exceed, at this β", bounds.low),
            row("standing queue: α must stay below, at this β", bounds.high),
            row("α", alpha),
            row("β", beta),
            row("stable with an empty queue", empty),
            row("stable with a standing queue", standing),
        ]
    return {
        "alpha_max": rcp.ALPHA_MAX_EMPTY,
        "alpha": alpha,
        "beta": beta,
        "stable": empty and standing,
        "stable_empty_queue": empty,
        "stable_standing_queue": standing,
        "max_rtt_s": max_rtt_s,
        **per_link,
        "omega_rad_s": alpha / max_rtt_s,
        "rows": rows,
    }


def _alpha_rcp(about: Subject, max_rtt_s: float) -> Document:
    gain, queue_gain, gamma = (
        params.number(about.params, key) for key in ("gain", "queue_gain", "gamma")
    )
    term = alpha_rcp.QueueTerm(queue_gain, gamma)
    largest = alpha_rcp.BOUND / alpha_rcp.row_sum(1.0, term.load, term.slope)
    return {
        "alpha_max": largest,
        "stable": gain < largest,
        "max_rtt_s": max_rtt_s,
        "gain": gain,
        "queue_gain": queue_gain,
        "load": term.load,
        "rows": [
            row("load y/C at rest", term.load),
            row("slope queue_gain·C·p′ of the queue there, for random arrivals", term.slope),
            row("gain·(1 + queue_gain·C·p′)·y/C must stay below π/2", alpha_rcp.BOUND),
            row("gain must stay below, at any RTTs and paths", largest),
            row("gain", gain),
            row("stable", gain < largest),
        ],
    }


class LinkLoop(NamedTuple):
    """The loop of one bottleneck: d̂ (s), the responsive fraction of its load, its margins."""

    name: str
    mean_rtt_s: float
    share: float
    longest_rtt_s: float
    empty_queue: Margins
    standing_queue: Margins

    def document(self) -> Document:
        """Return the loop as an entry of the document's key `links`."""
        return {
            **self._asdict(),
            "empty_queue": margins_document(self.empty_queue),
            "standing_queue": margins_document(self.standing_queue),
        }


def _link_loops(about: Subject, *, queue: bool) -> list[LinkLoop]:
    """Return the loop of each bottleneck in max-min equilibrium, without coupling of links.

    XCP (`queue`) gives all flows of a link equal changes, RCP one rate, so weights are 1/N and x/C.
    d̂ is the mean over all of a link's traffic.
    """
    gains = xcp.Gains.of(about.params)
    assert about.network is not None
    targets = protocols.targets({about.protocol: params.given(about.params)})
    flows = allocation.max_min(about.network, targets)
    found = []
    for index, link in enumerate(about.network.links):
        crossing = [flow for flow in flows if index in flow.path]
        bound = [flow for flow in crossing if flow.bottleneck == index]
        if not bound:
            continue
        if queue:  # XCP: the mean over flows
            weights = [float(flow.number) for flow in crossing]
            part = {id(f): f.number / math.fsum(weights) for f in bound}
        else:
            weights = [flow.rate_bps * flow.number for flow in crossing]
            part = {id(f): f.rate_bps * f.number / link.rate_bps for f in bound}
        d_s = rcp.mean_rtt_s(weights, [flow.rtt_s for flow in crossing])
        shares = [Share(part[id(flow)], flow.rtt_s) for flow in bound]
        found.append(
            LinkLoop(
                name=link.name,
                mean_rtt_s=d_s,
                share=math.fsum(share.weight for share in shares),
                longest_rtt_s=max(share.tau_s for share in shares),
                empty_queue=rcp.link_margins(gains, d_s, shares, queue=False),
                standing_queue=rcp.link_margins(gains, d_s, shares, queue=True),
            )
        )
    return found


def _link_rows(loops: Sequence[LinkLoop]) -> list[DocumentRow]:
    rows = []
    for loop in loops:
        rows.append(row(f"{loop.name}: mean RTT d̂", loop.mean_rtt_s, "s"))
        rows.append(row(f"{loop.name}: fraction of the load that responds", loop.share))
        for text, margins in (("empty", loop.empty_queue), ("standing", loop.standing_queue)):
            title = f"{loop.name}: phase margin, {text} queue"
            rows.append(row(title, margins.phase_margin_deg, "°"))
            rows.append(row(f"{loop.name}: stable, {text} queue", margins.stable))
    return rows


# --- VCP, ABC, JetMax, MKC ------------------------------------------------------------------------


def _vcp(about: Subject, max_rtt_s: float) -> Document:
    kappa = vcp.kappa(params.number(about.params, "xi"))
    margins = vcp.loop_margins(kappa, max_rtt_s)
    paper = (0.5, "vcp-2005, one link, one RTT")
    return {
        "omega_rad_s": margins.crossover_rad_s,
        "alpha_max": math.pi / 2,
        "stable": kappa <= vcp.KAPPA_GLOBAL,
        "max_rtt_s": max_rtt_s,
        "kappa": kappa,
        "kappa_global": vcp.KAPPA_GLOBAL,
        "rows": [
            row("κ of the fluid model, from ξ at 80 % load", kappa),
            row("linear: κ must stay below", math.pi / 2),
            row("any disturbance: κ at most", vcp.KAPPA_GLOBAL, "", *paper),
            row("phase margin", margins.phase_margin_deg, "°"),
            row("stable", kappa <= vcp.KAPPA_GLOBAL),
        ],
    }


def _abc(about: Subject, rtt_s: float) -> Document:
    delta_s = params.number(about.params, "delta")
    limit_s = delta_s / accel_brake.DELTA_GLOBAL
    margins = accel_brake.loop_margins(delta_s, rtt_s)
    paper = ("2/3", "abc-2020, Theorem 3.1")
    return {
        "omega_rad_s": margins.crossover_rad_s,
        "stable": rtt_s < limit_s,
        "max_rtt_s": rtt_s,
        "delta_s": delta_s,
        "rtt_limit_s": limit_s,
        "delay_margin_s": margins.delay_margin_s,
        "rows": [
            row("RTT τ without queues", rtt_s, "s"),
            row("δ", delta_s, "s"),
            row("any disturbance: δ/τ must exceed", accel_brake.DELTA_GLOBAL, "", *paper),
            row("linear: δ/τ must exceed 2/π", accel_brake.DELTA_LINEAR),
            row("any disturbance: τ must stay below", limit_s, "s"),
            row("phase margin", margins.phase_margin_deg, "°"),
            row("delay margin", margins.delay_margin_s, "s"),
            row("stable", rtt_s < limit_s),
        ],
    }


def _jetmax(about: Subject, max_rtt_s: float) -> Document:
    tau = params.number(about.params, "tau")
    paper = (2, "jetmax-2006: any delay, fixed set of flows")
    return {
        "alpha_max": 2.0,
        "stable": jetmax.stable(tau),
        "max_rtt_s": max_rtt_s,
        "tau": tau,
        "mode": jetmax.mode(tau),
        "rows": [
            row("τ", tau),
            row("τ must stay below", 2.0, "", *paper),
            row("factor on the distance from the target per RTT", jetmax.mode(tau)),
            row("stable", jetmax.stable(tau)),
        ],
    }


# Flows and link for which MKC's slower eigenvalue is shown: that of its differences of rates.
_MKC_FLOWS, _MKC_LINK_BPS = 10, 1e8


def _mkc(about: Subject, max_rtt_s: float) -> Document:
    alpha, beta, gamma = (params.number(about.params, key) for key in ("alpha", "beta", "gamma"))
    link = mkc.Link(gamma * _MKC_LINK_BPS, _MKC_FLOWS, alpha, beta)
    total, differences = mkc.modes(link)
    on = f"{_MKC_FLOWS} flows on {_MKC_LINK_BPS / 1e6:g} Mbit/s"
    return {
        "alpha_max": mkc.BETA_MAX,
        "stable": mkc.stable(beta),
        "max_rtt_s": max_rtt_s,
        "beta": beta,
        "mode": total,
        "overload_per_flow_bps": alpha / beta,
        "rows": [
            row("β", beta),
            row("β must stay below, at any delay", mkc.BETA_MAX),
            row("factor on the distance of the load per step", total),
            row("overload for each flow of the link, α/β", alpha / beta, "bit/s"),
            row(f"load over the target, {on}", link.load_bps / link.target_bps),
            row(f"factor on differences of rates, {on}", differences),
            row("stable", mkc.stable(beta)),
        ],
    }


# --- tuning -------------------------------------------------------------------------------------


@computed
def tuning_document(
    about: Subject, tau_s: float, verify_s: float, eta: float, margin_deg: float
) -> Document:
    """Return the document of `theory stability maxnet --tune`: maxnet-2007 §VIII.E, with
    certificates.

    Raises InputError for a dt_p that was chosen too long for τ, and where neither proof shows the
    loop as implemented stable.
    """
    p = maxnet.Params.of(about.params)
    p = p._replace(dt_p_s=_price_interval_s(about, p.dt_p_s, tau_s))
    found = tuning.procedure(tau_s, verify_s, p, eta, margin_deg)
    real = found.implemented
    proof = real.certificate
    if not proof.certified:
        limit = verdicts.digits(max(proof.built.alpha_max, proof.limit.alpha_max))
        got = f"α = {verdicts.digits(proof.alpha)} where at most {limit} is"
        why = f"not shown to be stable up to {verdicts.time(verify_s)}: {got}"
        raise InputError("command line", "tune", why, "lower --eta or --verify-rtt")
    full = {
        "command": "stability",
        "protocol": "maxnet",
        "scenario": None,
        "omega_rad_s": proof.built.omega_rad_s,
        "slope": proof.built.line.slope,
        "alpha_max": proof.built.alpha_max,
        "stable": proof.certified,
        "params": real.params,
        "phase_margin_deg": real.tuned.margins.phase_margin_deg,
        "certificate": proof.document(),
        "tune": found.document(),
        "rows": [
            *_tuning_rows("eq. 13", found.eq13, tau_s, verify_s),
            *_tuning_rows("as implemented", real, tau_s, verify_s),
        ],
    }
    return {**full, "verdict": verdicts.tuning(full)}


def _price_interval_s(about: Subject, dt_p_s: float, tau_s: float) -> float:
    """Return how long a router holds a price (s): as chosen, or as suits the RTT."""
    if "dt_p" not in about.chosen:
        return tuning.price_interval_s(dt_p_s, tau_s)
    if dt_p_s > tau_s * tuning.LONGEST_HOLD:
        limit = verdicts.time(tau_s * tuning.LONGEST_HOLD)
        why = f"must be at most a quarter of --max-rtt, {limit}, got {verdicts.time(dt_p_s)}"
        raise InputError("command line", "params.maxnet.dt_p", why, "shorten it, or leave it out")
    return dt_p_s


def _tuning_rows(
    title: str, found: tuning.Tuning, tau_s: float, verify_s: float
) -> list[DocumentRow]:
    margins, proof = found.tuned.margins, found.certificate
    at, up_to = f"at {tau_s:g} s", f"up to {verify_s:g} s"
    return [
        row(f"{title}: α", found.tuned.alpha),
        row(f"{title}: T", found.tuned.t_s, "s"),
        row(f"{title}: η", found.eta),
        *([row(f"{title}: dt_p", proof.gains.dt_p_s, "s")] if proof.gains.dt_p_s else []),
        row(f"{title}: phase margin {at}", margins.phase_margin_deg, "°", 45, "§VIII.E"),
        row(f"{title}: delay margin {at}", margins.delay_margin_s, "s"),
        row(f"{title}: α_max by Algorithm 3 {up_to}", proof.built.alpha_max),
        row(f"{title}: α_max by Lemma 1 {up_to}", proof.limit.alpha_max),
        row(f"{title}: certified", proof.certified),
    ]
