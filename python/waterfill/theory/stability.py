"""The documents of `waterfill theory stability`: laws by themselves, networks, and tuning."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from waterfill.network import protocols
from waterfill.theory import (
    aecp,
    certificate,
    encoding,
    jetmax,
    maxnet,
    rcp,
    sampled,
    subject,
    tuning,
    vcp,
    xcp,
)
from waterfill.theory.documents import Document, given, margins_of, row, same, sampled_rows
from waterfill.theory.subject import Subject
from waterfill.theory.xcp import Share

ABLE = ("maxnet", "aecp", "xcp", "rcp", "vcp", "jetmax")


def of(about: Subject, max_rtt_s: float) -> Document:
    """`theory stability`: of a law up to a round trip, or of a scenario's network."""
    makers = {
        "maxnet": _maxnet,
        "aecp": _aecp,
        "xcp": _xcp,
        "rcp": _rcp,
        "vcp": _vcp,
        "jetmax": _jetmax,
    }
    found = makers[about.protocol](about, max_rtt_s)
    head = {"command": "stability", "protocol": about.protocol, "scenario": _name(about)}
    return {**head, "omega_rad_s": None, "slope": None, "alpha_max": None, **found}


def _name(about: Subject) -> str | None:
    return None if about.scenario is None else about.scenario.name


def _maxnet(about: Subject, max_rtt_s: float) -> Document:
    params: dict[str, Any] = about.params
    if about.network is not None:
        return _maxnet_network(about)
    alpha = params["alpha"]
    printed = certificate.certify(maxnet.eq13(params), alpha, max_rtt_s)
    real = certificate.certify(maxnet.implemented(params), alpha, max_rtt_s)
    case = (printed["alpha_t_s"], printed["eta"], max_rtt_s)
    section_d = same(case, (0.264, 0.06, 1000.0))
    at = "§VIII.D" if section_d else ""
    with_slope = maxnet.construct(maxnet.eq13(params), max_rtt_s, 0.3504) if section_d else None
    rows = [
        row("threshold ω̲", printed["omega_rad_s"], "rad/s", 0.001525 if section_d else None, at),
        row(
            "slope γ of the line that maximises α_max",
            printed["slope"],
            "",
            0.3504 if section_d else None,
            at,
        ),
        row("α_max by Algorithm 3", printed["alpha_max"]),
        *(
            [row("α_max with the paper's slope", with_slope.alpha_max, "", None, at)]
            if with_slope
            else []
        ),
        row("α_max by Lemma 1, any mixture of round trips", printed["alpha_max_lemma1"]),
        row("Proposition 2: only round trips above τ′ matter", printed["tau_cut_s"], "s"),
        row("as implemented: threshold ω̲", real["omega_rad_s"], "rad/s"),
        row("as implemented: slope γ", real["slope"]),
        row("as implemented: α_max by Algorithm 3", real["alpha_max"]),
        row("as implemented: α_max by Lemma 1", real["alpha_max_lemma1"]),
        row("α", alpha),
        row("certified for eq. 13", printed["certified"]),
        row("certified as implemented", real["certified"]),
    ]
    return {
        "omega_rad_s": printed["omega_rad_s"],
        "slope": printed["slope"],
        "alpha_max": printed["alpha_max"],
        "stable": printed["certified"] and real["certified"],
        "max_rtt_s": max_rtt_s,
        "alpha": alpha,
        "eq13": printed,
        "implemented": real,
        "rows": rows,
    }


def _maxnet_network(about: Subject) -> Document:
    params: dict[str, Any] = about.params
    assert about.network is not None
    assert about.scenario is not None
    rtts = _rtts(about)
    flows = subject.at_rest(about.network, protocols.targets({"maxnet": given(params)}))
    prices = _bottleneck_prices(flows, params)
    printed = certificate.hull_limit(maxnet.eq13(params), rtts)
    real = certificate.hull_limit(maxnet.implemented(params), rtts)
    alpha = params["alpha"]
    equal = len({round(p, 12) for p in prices.values()}) < len(prices)
    names = subject.link_names(about.network, prices)
    return {
        "omega_rad_s": printed.omega_rad_s,
        "alpha_max": printed.alpha_max,
        "stable": alpha < min(printed.alpha_max, real.alpha_max),
        "alpha": alpha,
        "rtts_s": rtts,
        "implemented": real._asdict(),
        "bottlenecks": [
            {"name": name, "price_s": price}
            for name, price in zip(names, prices.values(), strict=True)
        ],
        "equal_prices": equal,
        "rows": [
            row("round trips", len(rtts)),
            row("α_max by Lemma 1", printed.alpha_max),
            row("at ω", printed.omega_rad_s, "rad/s"),
            row("as implemented: α_max by Lemma 1", real.alpha_max),
            row("as implemented: at ω", real.omega_rad_s, "rad/s"),
            row("α", alpha),
            row("two bottlenecks of equal price, which §VIII.A excludes", equal),
        ],
    }


def _rtts(about: Subject) -> list[float]:
    assert about.network is not None
    assert about.scenario is not None
    rtts = subject.rtts_s(about.network)
    if rtts[0] <= 0:
        raise about.scenario.error("flow", "expected flows with an RTT above 0 s, got one of 0 s")
    return rtts


def _bottleneck_prices(
    flows: Sequence[subject.Bound], params: Mapping[str, Any]
) -> dict[int, float]:
    """`[maxnet-2007:eq8]` Each bottleneck's price at rest, from the rate of the flows it bounds."""
    return {
        flow.bottleneck: encoding.price_of(flow.rate_bps, params["t"], params["x_max"])
        for flow in flows
        if flow.bottleneck is not None and flow.rate_bps > 0
    }


def _aecp(about: Subject, max_rtt_s: float) -> Document:
    params: dict[str, Any] = about.params
    g = aecp.gains(params)
    rtt_s = max_rtt_s if about.network is None else _rtts(about)[-1]
    bare = aecp.loop_margins(g)
    limits = {s: sampled.margin_s(g, params["t_2"], s) for s in sampled.SOURCES}
    form = "clamped" if params["form"] == "printed" else "exact"
    # Under eq. 43 every time of the loop scales as 1/α.
    tuned = same(g, aecp.tuned(g.alpha))
    alpha_max = g.alpha * bare.delay_margin_s / rtt_s if tuned else None
    stable = rtt_s < min(bare.delay_margin_s, limits[form])
    return {
        "omega_rad_s": bare.crossover_rad_s,
        "alpha_max": alpha_max,
        "stable": stable,
        "max_rtt_s": rtt_s,
        "delay_margin_s": bare.delay_margin_s,
        "sampled_delay_margin_s": limits,
        "rows": [
            row("round trip", rtt_s, "s"),
            row("stable, by Theorem 1", None, "", "always", "Theorem 1"),
            row("delay margin of eq. 38", bare.delay_margin_s, "s"),
            *sampled_rows(limits),
            row("stable with eq. 38 and as implemented", stable),
        ],
    }


def _xcp(about: Subject, max_rtt_s: float) -> Document:
    params: dict[str, Any] = about.params
    alpha, beta = params["alpha"], params["beta"]
    low, high = _bounds(beta)
    found: Document = {"alpha_max": high, "alpha_min": low, "beta": beta, "alpha": alpha}
    stable = low is not None and high is not None and low < alpha < high
    rows = [
        row("α must exceed, at this β", low),
        row("α must stay below, at this β", high),
        row(
            "Theorem 1's α, with β = α²√2",
            xcp.KATABI_ALPHA_MAX,
            "",
            "π/(4√2)",
            "katabi-2002, Theorem 1",
        ),
        row("β", beta, "", xcp.katabi_beta(alpha), "katabi-2002: α²√2"),
        row("α", alpha),
    ]
    if about.network is not None:
        links = _links(about, queue=True)
        stable = all(link["standing_queue"]["stable"] for link in links)
        found["links"] = links
        rows += _link_rows(links)
    margins = xcp.loop_margins(alpha, beta, 1.0)
    return {
        **found,
        "omega_rad_s": margins.crossover_rad_s / max_rtt_s,
        "stable": stable,
        "max_rtt_s": max_rtt_s,
        "rows": [*rows, row("stable", stable)],
    }


def _bounds(beta: float) -> tuple[float | None, float | None]:
    """The α between which XCP's loop is stable at this β; None where no α is."""
    low, high = xcp.alpha_range(beta)
    return (None, None) if math.isnan(low) else (low, high)


def _rcp(about: Subject, max_rtt_s: float) -> Document:
    params: dict[str, Any] = about.params
    alpha, beta = params["alpha"], params["beta"]
    low, high = _bounds(beta)
    empty = alpha < rcp.ALPHA_MAX_EMPTY
    standing = low is not None and high is not None and low < alpha < high
    rows = [
        row(
            "empty queue: α must stay below",
            rcp.ALPHA_MAX_EMPTY,
            "",
            "π/2",
            "Kelly, Raina, Voice 2008",
        ),
        row("standing queue: α must exceed, at this β", low),
        row("standing queue: α must stay below, at this β", high),
        row("α", alpha),
        row("β", beta),
        row("stable with an empty queue", empty),
        row("stable with a standing queue", standing),
    ]
    found: Document = {
        "alpha_max": rcp.ALPHA_MAX_EMPTY,
        "stable": empty and standing,
        "stable_empty_queue": empty,
        "stable_standing_queue": standing,
        "max_rtt_s": max_rtt_s,
    }
    if about.network is not None:
        links = _links(about, queue=False)
        found["links"] = links
        found["stable_empty_queue"] = all(link["empty_queue"]["stable"] for link in links)
        found["stable_standing_queue"] = all(link["standing_queue"]["stable"] for link in links)
        found["stable"] = found["stable_empty_queue"] and found["stable_standing_queue"]
        rows = [*_link_rows(links), row("stable at every link", found["stable"])]
    found["omega_rad_s"] = alpha / max_rtt_s
    return {**found, "rows": rows}


def _links(about: Subject, *, queue: bool) -> list[Document]:
    """Each bottleneck's own loop at the max-min rest: the flows it bounds, d̂ over all its traffic.

    XCP (`queue`) deals equal changes to all flows of a link, RCP one rate, so that weights are
    1/N and x/C. Coupling between links is left out.
    """
    params: dict[str, Any] = about.params
    assert about.network is not None
    _rtts(about)
    flows = subject.at_rest(about.network, protocols.targets({about.protocol: given(params)}))
    found = []
    for number, link in enumerate(about.network["links"]):
        crossing = [flow for flow in flows if number in flow.path]
        bound = [flow for flow in crossing if flow.bottleneck == number]
        if not bound:
            continue
        if queue:  # XCP: the mean over flows
            weights = [float(flow.number) for flow in crossing]
            part = {id(f): f.number / math.fsum(weights) for f in bound}
        else:
            weights = [flow.rate_bps * flow.number for flow in crossing]
            part = {id(f): f.rate_bps * f.number / link["rate_bps"] for f in bound}
        d_s = rcp.mean_rtt_s(weights, [flow.rtt_s for flow in crossing])
        shares = [Share(part[id(flow)], flow.rtt_s) for flow in bound]
        found.append(
            {
                "name": link["name"],
                "mean_rtt_s": d_s,
                "share": math.fsum(share.weight for share in shares),
                "longest_rtt_s": max(share.tau_s for share in shares),
                "empty_queue": margins_of(rcp.link_margins(params, d_s, shares, queue=False)),
                "standing_queue": margins_of(rcp.link_margins(params, d_s, shares, queue=True)),
            }
        )
    return found


def _link_rows(links: Sequence[Mapping[str, Any]]) -> list[Document]:
    rows = []
    for link in links:
        name = link["name"]
        rows.append(row(f"{name}: mean round trip d̂", link["mean_rtt_s"], "s"))
        rows.append(row(f"{name}: part of the load that responds", link["share"]))
        for key, text in (("empty_queue", "empty"), ("standing_queue", "standing")):
            found = link[key]
            rows.append(row(f"{name}: phase margin, {text} queue", found["phase_margin_deg"], "°"))
            rows.append(row(f"{name}: stable, {text} queue", found["stable"]))
    return rows


def _vcp(about: Subject, max_rtt_s: float) -> Document:
    params: dict[str, Any] = about.params
    kappa = vcp.kappa(params["xi"])
    margins = vcp.loop_margins(kappa, max_rtt_s)
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
            row(
                "any disturbance: κ at most",
                vcp.KAPPA_GLOBAL,
                "",
                0.5,
                "vcp-2005, one link, one round trip",
            ),
            row("phase margin", margins.phase_margin_deg, "°"),
            row("stable", kappa <= vcp.KAPPA_GLOBAL),
        ],
    }


def _jetmax(about: Subject, max_rtt_s: float) -> Document:
    params: dict[str, Any] = about.params
    tau = params["tau"]
    return {
        "alpha_max": 2.0,
        "stable": jetmax.stable(tau),
        "max_rtt_s": max_rtt_s,
        "mode": jetmax.mode(tau),
        "rows": [
            row("τ", tau),
            row("τ must stay below", 2.0, "", 2, "jetmax-2006: any delay, members fixed"),
            row("left of the distance after a round trip", jetmax.mode(tau)),
            row("stable", jetmax.stable(tau)),
        ],
    }


def tune(about: Subject, tau_s: float, verify_s: float, eta: float, margin_deg: float) -> Document:
    """`theory stability maxnet --tune`: maxnet-2007 §VIII.E, with its certificates."""
    found = tuning.procedure(tau_s, verify_s, dict(about.params), eta, margin_deg)
    rows = []
    for name, title in (("eq13", "eq. 13"), ("implemented", "as implemented")):
        mine = found[name]
        proof = mine["certificate"]
        rows += [
            row(f"{title}: α", mine["params"]["alpha"]),
            row(f"{title}: T", mine["params"]["t"], "s"),
            row(f"{title}: η", mine["params"]["eta"]),
            row(
                f"{title}: phase margin at {tau_s:g} s",
                mine["phase_margin_deg"],
                "°",
                45,
                "§VIII.E",
            ),
            row(f"{title}: delay margin at {tau_s:g} s", mine["delay_margin_s"], "s"),
            row(f"{title}: α_max by Algorithm 3 up to {verify_s:g} s", proof["alpha_max"]),
            row(f"{title}: α_max by Lemma 1 up to {verify_s:g} s", proof["alpha_max_lemma1"]),
            row(f"{title}: certified", proof["certified"]),
        ]
    proofs = [found[name]["certificate"] for name in ("eq13", "implemented")]
    return {
        "command": "stability",
        "protocol": "maxnet",
        "scenario": None,
        "omega_rad_s": proofs[1]["omega_rad_s"],
        "slope": proofs[1]["slope"],
        "alpha_max": proofs[1]["alpha_max"],
        "stable": proofs[1]["certified"],
        "params": found["implemented"]["params"],
        "phase_margin_deg": found["implemented"]["phase_margin_deg"],
        "certificate": proofs[1],
        "tune": found,
        "rows": rows,
    }
