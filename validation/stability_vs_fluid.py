"""Compare linear stability analysis with fluid runs on random networks, both stable and unstable.

`draw` makes a scenario from a seed: one link or a row of up to three, flows over all of them and
over each, RTTs and parameters at random over ranges that reach far into instability. `linear`
analyses each bottleneck's loop in equilibrium, `run` reads a verdict from a fluid run, and neither
uses the other. `validation.fluid_vs_sim` compares the fluid with the packet simulator.

**The linear verdict.** Bottlenecks are analysed link by link. MaxNet, RCP and AECP sources follow
their bottleneck alone, so a network's linear system is triangular and this is exact; for XCP it
leaves out coupling, and the equilibrium is XCP's own fixed point, not max-min. Loops are as
implemented (averages, intervals, held values). MaxNet's flows are paced, so its loop is one of
rates. XCP fills a window at once when it grows, which leads by half an RTT. On a link without a
queue a burst also keeps its position from one RTT to the next, which adds modes.

A link at capacity has two loops, one on each side of the equilibrium: with an empty queue and with
a standing one. It is *stable* if both are, *unstable* if neither is, otherwise *split*: linear
theory does not decide. A network is unstable if one link is, stable if all are.

**Thin.** A verdict is thin if it changes with all gains times 0.8 or 1.25, or with all delays times
0.8 or 1.25, the laws' own parameters unchanged.

**The fluid verdict.** The load that sources ask of a link, over its capacity, has a peak-to-peak
in each of the last two fifths of the run. It is unstable if the last one is above 2 % and above
0.7 of the one before, and stable otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from validation.fluid_vs_sim import Draw, cases, draw_options
from validation.study import Study
from waterfill.contract.network import Network
from waterfill.network import protocols, resolve
from waterfill.runs import backends
from waterfill.runs.result import Result
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict
from waterfill.theory import allocation, equilibrium, sampled
from waterfill.theory.loops import Points, Reals
from waterfill.theory.params import given, number

Document: TypeAlias = dict[str, Any]

PROTOCOLS = ("maxnet", "rcp", "xcp", "aecp")
STABLE, UNSTABLE, SPLIT = "stable", "unstable", "split"

THIN = (0.8, 1.25)
"""Factors on gains and on delays. A verdict that changes under one of them is called thin."""
SWING = 0.02
"""Peak-to-peak load of a link, relative to its capacity, above which a run may be unstable."""
LASTING = 0.7
"""Ratio of the last two fifths' peak-to-peak loads above which an oscillation is lasting."""

# Modes that grow by less than this per longest RTT, or per the law's own longest time, are ignored:
# an integrator has a pole at zero itself.
_GROWTH = 0.01
# The largest ωτ of the shortest RTT that is looked at; loop gains are far below 1 there.
_MAX_ANGLE = 60.0
_POINTS = 6000
_MAX_WINDOW_ANGLE = 20.0
# A link has no queue if more than this fraction of it is idle in equilibrium.
_IDLE = 1e-4


# --------------------------------------------------------------------------- the linear verdict


class Local(NamedTuple):
    """A group of flows bottlenecked at a link: their weight in the link's response, and their RTT
    (s).
    """

    weight: float
    tau_s: float


class Link(NamedTuple):
    """A bottleneck link in equilibrium, with its flows and the mean RTT d̂ (s) of all traffic.
    `full` is true if the link may fill.
    """

    name: str
    flows: tuple[Local, ...]
    mean_rtt_s: float
    full: bool


Loop: TypeAlias = Callable[[Points, float], Points]
"""Function that returns the loop gain L(s) at points of the right half plane, with
scaled delays.
"""


def hold(x: Points) -> Points:
    """Return (1 − e^(−x))/x, the response of a mean over an interval or of a value held for it (x =
    s·interval).
    """
    return np.asarray(-np.expm1(-x) / x, dtype=np.complex128)


def maxnet_flow(params: Mapping[str, Any], s: Points, tau_s: float, paper: bool) -> Points:
    """`[maxnet-2007:eq13]` Return a flow's response αF without delay. Unless `paper`, averaging and
    hold are included.
    """
    x, alpha_t = s * tau_s, params["alpha"] * params["t"]
    value = params["alpha"] / x * (x + params["eta"]) / (x + params["eta"] * alpha_t / tau_s)
    if not paper:
        value = value * hold(s * params["dt_p"])
        if params["average"] == "sliding":
            value = value * hold(x)
        elif params["average"]:
            value = value / (1 + x)
    return np.asarray(value, dtype=np.complex128)


def aecp_flow(params: Mapping[str, Any], s: Points, tau_s: float, paper: bool) -> Points:
    """`[aecp-2010:eq3]` Return a flow's response α/(s + α) without delay. Unless `paper`, the rate
    steps by eq. 48 every τ.
    """
    alpha = params["alpha"]
    if paper:
        return np.asarray(alpha / (s + alpha), dtype=np.complex128)
    form = "clamped" if params["form"] == "printed" else "exact"
    weight = sampled.WEIGHTS[form](alpha * tau_s)
    x = s * tau_s
    return np.asarray(hold(x) * weight / (1 - (1 - weight) * np.exp(-x)), dtype=np.complex128)


def loops_of(protocol: str, params: Mapping[str, Any], link: Link, *, paper: bool) -> list[Loop]:
    """Return a link's loop gains, one per side of its equilibrium, as in the law's paper or as
    implemented.
    """

    def respond(s: Points, late: float, window: bool) -> Points:
        """Return the total response of the link's flows. With `window`, bursts that fill a window
        at once are included.

        That leads by half an RTT. It also keeps a burst's position for the next RTT, unless there
        is a standing queue, which sends packets evenly however they arrived.
        """
        total = np.zeros(s.shape, dtype=np.complex128)
        for flow in link.flows:
            own = np.asarray(flow.weight * np.exp(-s * flow.tau_s * late), dtype=np.complex128)
            if protocol == "maxnet":
                own = own * maxnet_flow(params, s, flow.tau_s, paper)
            elif protocol == "aecp":
                own = own * aecp_flow(params, s, flow.tau_s, paper)
            x = s * flow.tau_s * late
            if window:
                own = np.asarray(own * np.exp(x / 2) if link.full else own / hold(x))
            total += own
        return total

    def spare(standing: bool) -> Loop:
        d_s = link.mean_rtt_s
        if protocol == "xcp":  # XCP uses RTTs up to max_interval, and its interval is one RTT
            d_s = min(d_s, params["max_interval"])
        interval_s = d_s if protocol == "xcp" else min(d_s, params["max_interval"])
        beta = params["beta"] if standing else 0.0

        def loop(s: Points, late: float) -> Points:
            value = (params["alpha"] + beta / (s * d_s)) / (s * d_s)
            if not paper:  # the load of one interval sets the feedback of the next
                value = value * hold(s * interval_s) ** 2
            window = protocol == "xcp" and not paper
            return np.asarray(value * respond(s, late, window), dtype=np.complex128)

        return loop

    def aecp(standing: bool) -> Loop:
        def loop(s: Points, late: float) -> Points:
            value = params["beta"] / s * (1 + (1 / (s * params["t"]) if standing else 0.0))
            if not paper:
                value = value * hold(s * params["t_2"]) ** 2
            return np.asarray(value * respond(s, late, False), dtype=np.complex128)

        return loop

    if protocol == "maxnet":
        return [lambda s, late: respond(s, late, False)]
    make = aecp if protocol == "aecp" else spare
    return [make(False), make(True)] if link.full else [make(False)]


def grows(loop: Loop, pace: Pace, gain: float, late: float) -> bool:
    """Return True if 1 + gain·L has a zero to the right of `pace.growth`, by Nyquist's criterion.

    No loop has a pole there, so the argument of 1 + L returns to its start unless zeros are
    enclosed.
    """
    s = np.asarray(pace.growth + 1j * pace.omega, dtype=np.complex128)
    turn: Reals = np.unwrap(np.angle(np.asarray(1 + gain * loop(s, late), dtype=np.complex128)))
    return bool(abs(turn[-1] - turn[0]) > 1.5)


class Pace(NamedTuple):
    """Growth rate (1/s) from which a mode counts as unstable, and frequencies (rad/s)
    to evaluate.
    """

    growth: float
    omega: Reals


def pace(protocol: str, params: Mapping[str, Any], link: Link) -> Pace:
    """Return the growth rate and frequencies at which to evaluate a link's loops."""
    slowest = max(flow.tau_s for flow in link.flows)
    quickest = min(flow.tau_s for flow in link.flows)
    own = [params["alpha"], params["beta"], 1 / params["t"]] if protocol == "aecp" else []
    growth = _GROWTH * min(1 / slowest, *own) if own else _GROWTH / slowest
    if (
        protocol == "xcp" and not link.full
    ):  # poles all along the axis: an even grid misses none of them
        return Pace(growth, np.arange(0.0, _MAX_WINDOW_ANGLE / quickest, growth / 3))
    top = max(_MAX_ANGLE / quickest, *(50 * rate for rate in own)) if own else _MAX_ANGLE / quickest
    return Pace(growth, np.concatenate([[0.0], np.geomspace(growth / 30, top, _POINTS)]))


def link_verdict(
    protocol: str, params: Mapping[str, Any], link: Link, gain: float, late: float, *, paper: bool
) -> str:
    """Return a link's verdict, with its gains and delays multiplied by factors."""
    loops = loops_of(protocol, params, link, paper=paper)
    at = pace(protocol, params, link)
    found = {grows(loop, at, gain, late) for loop in loops}
    return SPLIT if len(found) == 2 else UNSTABLE if found.pop() else STABLE


def of_links(verdicts: Sequence[str]) -> str:
    """Return a network's verdict from the verdicts of its bottlenecks."""
    if UNSTABLE in verdicts:
        return UNSTABLE
    return SPLIT if SPLIT in verdicts else STABLE


def bottlenecks(scenario: Scenario) -> tuple[dict[str, Any], list[Link]]:
    """Return a scenario's parameters and its bottlenecks in max-min equilibrium, or
    in XCP's own.
    """
    known = protocols.load()
    protocol = str(scenario.protocol)
    core = resolve.to_core(scenario, known)
    params = protocols.with_defaults([protocol], resolve.set_params(scenario, known), known)[
        protocol
    ]
    flows = allocation.max_min(core, protocols.targets({protocol: given(params)}))
    full = [link.target is None or link.target >= 1.0 for link in core.links]
    # A standing queue is part of the RTT: AECP's target q₀ at each bottleneck.
    standing_s = [0.0 for _ in core.links]
    if protocol == "aecp":
        for flow in flows:
            if flow.bottleneck is not None and full[flow.bottleneck]:
                rate = core.links[flow.bottleneck].rate_bps
                standing_s[flow.bottleneck] = 8 * core.packet_bytes * number(params, "q_0") / rate
    flows = [
        flow._replace(rtt_s=flow.rtt_s + sum(standing_s[link] for link in flow.path))
        for flow in flows
    ]
    if protocol == "xcp":
        return dict(params), _xcp_bottlenecks(core, params, flows, full)
    found = []
    for index, link in enumerate(core.links):
        crossing = [flow for flow in flows if index in flow.path]
        bound = [flow for flow in crossing if flow.bottleneck == index]
        if not bound:
            continue
        aimed = (link.target or 1.0) * link.rate_bps
        over = link.rate_bps if protocol == "maxnet" else aimed
        parts = [flow.rate_bps * flow.number / over for flow in bound]
        traffic = [flow.rate_bps * flow.number for flow in crossing]
        found.append(
            Link(
                link.name,
                tuple(Local(p, f.rtt_s) for p, f in zip(parts, bound, strict=True)),
                float(np.average([flow.rtt_s for flow in crossing], weights=traffic)),
                full[index],
            )
        )
    return dict(params), found


def _xcp_bottlenecks(
    core: Network,
    params: Mapping[str, Any],
    flows: Sequence[allocation.Group],
    full: Sequence[bool],
) -> list[Link]:
    """Return XCP's bottlenecks at its fixed point, with the response of each flow to φ."""
    found = []
    gains = equilibrium.Gains.of(params)
    for index, response in enumerate(equilibrium.responses(core, gains, "xcp")):
        if response is None:
            continue
        crossing = [flow for flow in flows if index in flow.path]
        times = [flow.rtt_s for flow in crossing]  # d, the mean over flows
        if params["max_interval"] is not None:  # the largest RTT that XCP uses
            times = [min(time, float(params["max_interval"])) for time in times]
        found.append(
            Link(
                core.links[index].name,
                tuple(
                    Local(p * flows[i].number, flows[i].rtt_s) for i, p in response.parts.items()
                ),
                float(np.average(times, weights=[flow.number for flow in crossing])),
                full[index] and response.idle < _IDLE,
            )
        )
    return found


@dataclass(frozen=True)
class LinearVerdict:
    """A scenario's verdict by linear analysis. `links` holds the verdict of each bottleneck."""

    verdict: str
    thin: bool
    links: Mapping[str, str]

    @property
    def clear(self) -> bool:
        """True if the verdict is neither thin nor split."""
        return not self.thin and self.verdict != SPLIT


def linear(scenario: Scenario, *, paper: bool = False) -> LinearVerdict:
    """Analyse the loops of a scenario, as implemented or as in the law's paper."""
    protocol = str(scenario.protocol)
    params, links = bottlenecks(scenario)

    def at(gain: float, late: float) -> list[str]:
        return [link_verdict(protocol, params, link, gain, late, paper=paper) for link in links]

    verdicts = at(1.0, 1.0)
    nearby = {of_links(at(f, 1.0)) for f in THIN} | {of_links(at(1.0, f)) for f in THIN}
    verdict = of_links(verdicts)
    names = [link.name for link in links]
    return LinearVerdict(
        verdict=verdict, thin=nearby != {verdict}, links=dict(zip(names, verdicts, strict=True))
    )


# --------------------------------------------------------------------------- the fluid verdict


@dataclass(frozen=True)
class FluidVerdict:
    """Verdict of a fluid run, with the load oscillations that it is based on.

    `before` and `swing` are the worst link's peak-to-peak in the last but one and the last fifth of
    the run, over its capacity; `links` has both of each bottleneck.
    """

    verdict: str
    before: float
    swing: float
    links: Mapping[str, Sequence[float]]


def run(scenario: Scenario) -> FluidVerdict:
    """Run a scenario in the fluid model and return the verdict."""
    result = backends.run(scenario, on="fluid")
    duration_s = float(result.summary["duration_s"])
    swings: dict[str, list[float]] = {}
    _, links = bottlenecks(scenario)
    for link in scenario.link:
        if link.name not in {bottleneck.name for bottleneck in links}:
            continue
        crossing = [flow.name for flow in scenario.flow if link.name in (flow.path or [])]
        times, load = _requested(result, crossing)
        last_s = _settling_s(scenario) / 5
        parts = [
            load[(times > duration_s - (i + 1) * last_s) & (times <= duration_s - i * last_s)]
            for i in (1, 0)
        ]
        swings[link.name] = [float(np.ptp(part)) / link.rate for part in parts]
    lasting = [name for name, (a, b) in swings.items() if b > SWING and b > LASTING * a]
    worst = max(swings, key=lambda name: (name in lasting, swings[name][1]))
    verdict = UNSTABLE if lasting else STABLE
    return FluidVerdict(verdict, swings[worst][0], swings[worst][1], swings)


def _requested(result: Result, groups: Sequence[str]) -> tuple[NDArray[np.float64], Reals]:
    """Return sample times and the total load (bit/s) that the flow entries' sources request."""
    total: Reals = np.zeros(0)
    times: Reals = np.zeros(0)
    for flow in result.summary["flows"]:
        if flow["group"] not in groups:
            continue
        table = result.samples("flows", flow["name"])
        time, window, pacing = (
            table[key].to_numpy() for key in ("time_s", "window_bytes", "pacing_bps")
        )
        rate = np.where(np.isnan(window), pacing, 8e3 * window / float(flow["rtt_ms"]["base"]))
        if not len(times):
            times, total = time, np.zeros(len(time))
        total[np.searchsorted(times, time)] += np.nan_to_num(rate)
    return times, total


# --------------------------------------------------------------------------- the draws


class Range(NamedTuple):
    """A range from which values are drawn uniformly on a logarithmic scale."""

    low: float
    high: float

    def draw(self, random: np.random.Generator) -> float:
        """Draw one value at random."""
        return float(np.exp(random.uniform(np.log(self.low), np.log(self.high))))


_PARAMS: Mapping[str, Mapping[str, Range]] = {
    "maxnet": {
        "alpha": Range(0.4, 1.55), "eta": Range(0.03, 3.0), "t": Range(0.05, 0.6),
        "dt_p": Range(0.001, 0.12),
    },
    "rcp": {"alpha": Range(0.25, 4.0), "beta": Range(0.05, 2.0)},
    "xcp": {"alpha": Range(0.15, 0.98), "beta": Range(0.05, 0.98), "max_interval": Range(0.02, 1)},
    "aecp": {
        "alpha": Range(0.5, 4.0), "beta": Range(0.2, 4.0), "t": Range(0.5, 6.0),
        "t_2": Range(0.02, 0.2),
    },
}  # fmt: skip
_TIMES = {"t": "s", "dt_p": "s", "t_2": "s", "max_interval": "s"}
_RTT: Mapping[str, Range] = {"aecp": Range(0.05, 1.2)}
_RTT_OTHERS = Range(0.03, 0.25)
_SAMPLE_S = 0.01


def draw(seed: int, names: Sequence[str] = PROTOCOLS) -> Scenario:
    """Draw a random scenario from a seed. A third have one link, and more than half have a target
    below capacity.
    """
    random = np.random.default_rng([seed, 2007])
    protocol = str(random.choice(list(names)))
    hops = int(random.choice([1, 2, 3]))
    longest_s = _RTT.get(protocol, _RTT_OTHERS).draw(random)
    # MaxNet's target is below capacity in any case: its μ.
    target = (
        float(random.uniform(0.8, 0.95)) if protocol != "maxnet" and random.random() < 0.5 else None
    )
    links: list[Document] = []
    for i in range(hops):
        rate = Range(100e6, 400e6).draw(random)
        links.append(
            {
                "name": f"l{i}", "from": f"n{i}", "to": f"n{i + 1}", "rate": f"{rate:.6g} bit/s",
                "delay": "1 ms", "buffer": f"{rate * longest_s / 4:.0f} B",
            }
        )  # fmt: skip
        if target is not None:
            links[-1]["target"] = round(target, 3)
    paths = {"long": [f"l{i}" for i in range(hops)]} | {f"short{i}": [f"l{i}"] for i in range(hops)}
    starts_s = np.cumsum(random.uniform(0.5, 1.5, len(paths))) * max(1.0, 10 * longest_s)
    flows: list[Document] = []
    for name, start_s in zip(random.permutation(list(paths)), starts_s, strict=True):
        rtt_s = max(0.01, longest_s * (1.0 if not flows else Range(0.25, 1.0).draw(random)))
        flow: Document = {
            "name": str(name), "path": paths[str(name)], "count": int(random.integers(1, 4)),
            "rtt": f"{rtt_s:.6g} s", "start": f"{start_s:.6g} s",
        }  # fmt: skip
        flows.append(flow | {"pacing": True} if protocol == "maxnet" else flow)
    params: dict[str, Any] = {}
    for key, span in _PARAMS[protocol].items():
        value = span.draw(random)
        params[key] = f"{value:.6g} {_TIMES[key]}" if key in _TIMES else round(value, 5)
    if protocol == "xcp":
        params["first_interval"] = params["max_interval"]
    settling_s = _settling_time_s(protocol, longest_s)
    duration_s = round(float(starts_s[-1]) + settling_s, 2)
    return from_dict(
        {
            "name": f"draw {seed}", "seed": seed, "duration": f"{duration_s} s",
            "sample": f"{_SAMPLE_S} s", "protocol": protocol, "link": links, "flow": flows,
            "params": {protocol: params},
        },
        source=f"<draw {seed}>",
    )  # fmt: skip


def _settling_time_s(protocol: str, longest_s: float) -> float:
    """Return the time from the last start to the end of a run, many times the slowest time
    constant.
    """
    return max(80.0 if protocol == "aecp" else 30.0, 200 * longest_s)


def _settling_s(scenario: Scenario) -> float:
    longest_s = max(flow.rtt or 0.0 for flow in scenario.flow)
    return _settling_time_s(str(scenario.protocol), longest_s)


# --------------------------------------------------------------------------- the comparison


@dataclass(frozen=True)
class Comparison:
    """Verdicts on one scenario: linear as implemented, linear as in the law's paper, and fluid."""

    scenario: str
    protocol: str | None
    links: int
    linear: LinearVerdict
    paper: LinearVerdict
    fluid: FluidVerdict

    @property
    def clear(self) -> bool:
        """True if the linear verdict of the implementation is neither thin nor split."""
        return self.linear.clear

    @property
    def agree(self) -> bool:
        """True if the fluid verdict equals the linear verdict of the implementation."""
        return self.linear.verdict == self.fluid.verdict


def compare(scenario: Scenario) -> Comparison:
    """Analyse and run a scenario, and return the verdicts."""
    return Comparison(
        scenario=scenario.name,
        protocol=scenario.protocol,
        links=len(scenario.link),
        linear=linear(scenario),
        paper=linear(scenario, paper=True),
        fluid=run(scenario),
    )


def measure(case: Draw) -> Comparison:
    """Analyse and run a random scenario, and return the verdicts."""
    return compare(draw(*case))


def table(results: Sequence[Comparison]) -> list[Document]:
    """Count all clear linear verdicts and the confirmed ones, by protocol and kind of loop."""
    rows = []
    for name in dict.fromkeys(result.protocol for result in results):
        mine = [result for result in results if result.protocol == name]
        row: Document = {"protocol": name, "draws": len(mine)}
        for kind in ("linear", "paper"):
            pairs = [(result.linear if kind == "linear" else result.paper, result.fluid)
                     for result in mine]  # fmt: skip
            for verdict in (STABLE, UNSTABLE):
                those = [fluid for said, fluid in pairs if said.clear and said.verdict == verdict]
                right = sum(fluid.verdict == verdict for fluid in those)
                row[f"{kind}_{verdict}"] = [right, len(those)]
            row[f"{kind}_split"] = sum(said.verdict == SPLIT for said, _ in pairs)
        rows.append(row)
    return rows


def _line(found: Comparison) -> str:
    differs = found.clear and not found.agree
    note = "thin" if found.linear.thin else "differs" if differs else ""
    return (
        f"{found.scenario:10} {found.protocol:7} {found.links} links; linear "
        f"{found.linear.verdict:9} paper {found.paper.verdict:9} fluid {found.fluid.verdict:9} "
        f"peak-to-peak {100 * found.fluid.before:6.2f} → {100 * found.fluid.swing:6.2f} %  {note}"
    )


def text(found: Mapping[Draw, Comparison]) -> str:
    """Return the number of clear verdicts that the fluid model confirms, in total and
    by protocol.
    """
    clear = [one for one in found.values() if one.clear]
    agree = sum(one.agree for one in clear)
    head = (
        f"{len(clear)} of {len(found)} draws have a clear verdict; "
        f"the fluid agrees with {agree} of them"
    )
    return "\n".join([head, *map(str, table(list(found.values())))])


def failed(found: Mapping[Draw, Comparison]) -> list[str]:
    """Return the draws whose clear linear verdict differs from the fluid verdict."""
    return [_line(one) for one in found.values() if one.clear and not one.agree]


STUDY = Study(
    shows="linear stability analysis agrees with fluid runs, on random networks",
    minutes=10,
    options=draw_options(PROTOCOLS),
    quick={"draws": 4},
    cases=cases,
    measure=measure,
    row=Comparison,
    line=lambda _, found: _line(found),
    table=text,
    failed=failed,
)
