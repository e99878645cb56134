"""The linear verdict beside the fluid run, on random networks, on both sides of stability.

    python -m validation.stability_vs_fluid [--draws 200] [--seed 1] [--protocols A,B] [--json]

`draw` makes a scenario from a seed: one link or a row of up to three, flows over all of them and
over each, round trips and parameters at random over ranges that reach far into instability.
`linear` gives each bottleneck's loop a verdict at rest, `run` reads one from a fluid run, and
neither knows of the other. The third way, the packet simulator, is `validation.fluid_vs_sim`'s.

**The linear verdict.** Bottlenecks are taken link by link: MaxNet, RCP and AECP send at what the
one deciding link says, so that a network's linear system is triangular; for XCP it leaves out
coupling, and rest is XCP's own fixed point (`equilibrium.answers`), not max-min. Loops are as
implemented (averages, intervals, held values); MaxNet's flows are paced, so that its loop is one
of rates. XCP's window is filled at once when it grows, and leads by half a round trip; on a link
without a queue a burst also keeps its place from one round trip to the next, which has modes of
its own. A link at its capacity has two loops, one on each side of rest: with an empty and with a
standing queue. A link is *stable* when both are, *unstable* when both are not, otherwise *split*:
linear theory does not decide. A network is unstable if one link is, stable if all are.

**Thin.** A verdict is thin if it is another one with all gains times 0.8 or 1.25, or with all
delays times 0.8 or 1.25, the laws' own parameters left as they are.

**The fluid verdict.** The load that sources ask of a link, over its capacity, has a peak-to-peak
in each of the last two fifths of the run. It is unstable when the last of them is above 2 % and
above 0.7 of the one before, stable otherwise.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from waterfill.contract.network import Network
from waterfill.network import protocols, resolve
from waterfill.runs import backends
from waterfill.runs.result import Result
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict
from waterfill.theory import equilibrium, sampled, subject
from waterfill.theory.loops import Points, Reals
from waterfill.theory.params import given

Document: TypeAlias = dict[str, Any]

PROTOCOLS = ("maxnet", "rcp", "xcp", "aecp")
STABLE, UNSTABLE, SPLIT = "stable", "unstable", "split"

THIN = (0.8, 1.25)
"""Factors on gains, and on delays, that must not change a verdict that is not thin."""
SWING = 0.02
"""Peak-to-peak of a link's load over its capacity above which a run may be unstable …"""
LASTING = 0.7
"""… if it is above so much of that of the fifth before."""

# A mode that grows by less than this in a longest round trip, or in the law's own longest time, is
# none: at zero itself an integrator has its pole.
_GROWTH = 0.01
# Frequencies are followed up to this angle of the shortest round trip; loops are far below 1 there.
_TURN = 60.0
_POINTS = 6000
_WINDOW_TURN = 20.0
# With more than this part of it idle at rest a link has no queue.
_IDLE = 1e-4


# --------------------------------------------------------------------------- the linear verdict


class Local(NamedTuple):
    """Flows that a link bounds: their part in its response, and their round trip (s)."""

    weight: float
    tau_s: float


class Link(NamedTuple):
    """A bottleneck at rest: the flows it bounds, d̂ of its traffic (s), whether it may be full."""

    name: str
    flows: tuple[Local, ...]
    mean_rtt_s: float
    full: bool


Loop: TypeAlias = Callable[[Points, float], Points]
"""L(s) at points in the right half plane, with all delays times a factor."""


def hold(x: Points) -> Points:
    """(1 − e^(−x))/x: the mean over an interval, or a value kept for it; x = s·interval."""
    return np.asarray(-np.expm1(-x) / x, dtype=np.complex128)


def maxnet_flow(params: Mapping[str, Any], s: Points, tau_s: float, paper: bool) -> Points:
    """`[maxnet-2007:eq13]` αF without its delay; unless `paper` with averaging and dt_p's hold."""
    x, alpha_t = s * tau_s, params["alpha"] * params["t"]
    value = params["alpha"] / x * (x + params["eta"]) / (x + params["eta"] * alpha_t / tau_s)
    if not paper:
        value = value * hold(s * params["dt_p"])
        if params["average"]:
            value = value / (1 + x)
    return np.asarray(value, dtype=np.complex128)


def aecp_flow(params: Mapping[str, Any], s: Points, tau_s: float, paper: bool) -> Points:
    """`[aecp-2010:eq3]` α/(s + α) without its delay; unless `paper` eq. 48, every τ."""
    alpha = params["alpha"]
    if paper:
        return np.asarray(alpha / (s + alpha), dtype=np.complex128)
    form = "clamped" if params["form"] == "printed" else "exact"
    weight = sampled.WEIGHTS[form](alpha * tau_s)
    x = s * tau_s
    return np.asarray(hold(x) * weight / (1 - (1 - weight) * np.exp(-x)), dtype=np.complex128)


def loops_of(protocol: str, params: Mapping[str, Any], link: Link, *, paper: bool) -> list[Loop]:
    """A link's loops, one for each side of its rest: the paper's, or as they are implemented."""

    def respond(s: Points, late: float, window: bool) -> Points:
        """The flows' answer. A window is filled at once: W = τ·x only over a whole round trip.

        That leads by half a round trip. It also keeps a burst's place for the next one, but for
        a standing queue, which lets packets go evenly whatever came.
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
        if protocol == "xcp":  # it takes no longer round trip, and no interval is longer
            d_s = min(d_s, params["max_interval"])
        interval_s = d_s if protocol == "xcp" else min(d_s, params["max_interval"])
        beta = params["beta"] if standing else 0.0

        def loop(s: Points, late: float) -> Points:
            value = (params["alpha"] + beta / (s * d_s)) / (s * d_s)
            if not paper:  # load over an interval, its answer over the next
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
    """Whether 1 + gain·L has a zero to the right of `pace.growth`: Nyquist, along that line.

    No loop has a pole there, so that the argument of 1 + L comes back to where it began unless
    zeros are enclosed.
    """
    s = np.asarray(pace.growth + 1j * pace.omega, dtype=np.complex128)
    turn: Reals = np.unwrap(np.angle(np.asarray(1 + gain * loop(s, late), dtype=np.complex128)))
    return bool(abs(turn[-1] - turn[0]) > 1.5)


class Pace(NamedTuple):
    """What growth (1/s) counts, and at which frequencies (rad/s) to look for it."""

    growth: float
    omega: Reals


def pace(protocol: str, params: Mapping[str, Any], link: Link) -> Pace:
    """Of a link's loops."""
    slowest = max(flow.tau_s for flow in link.flows)
    quickest = min(flow.tau_s for flow in link.flows)
    own = [params["alpha"], params["beta"], 1 / params["t"]] if protocol == "aecp" else []
    growth = _GROWTH * min(1 / slowest, *own) if own else _GROWTH / slowest
    if protocol == "xcp" and not link.full:  # poles all along the axis: an even grid misses none
        return Pace(growth, np.arange(0.0, _WINDOW_TURN / quickest, growth / 3))
    top = max(_TURN / quickest, *(50 * rate for rate in own)) if own else _TURN / quickest
    return Pace(growth, np.concatenate([[0.0], np.geomspace(growth / 30, top, _POINTS)]))


def link_verdict(
    protocol: str, params: Mapping[str, Any], link: Link, gain: float, late: float, *, paper: bool
) -> str:
    """A link's verdict with gains and delays times a factor."""
    loops = loops_of(protocol, params, link, paper=paper)
    at = pace(protocol, params, link)
    found = {grows(loop, at, gain, late) for loop in loops}
    return SPLIT if len(found) == 2 else UNSTABLE if found.pop() else STABLE


def of_links(verdicts: Sequence[str]) -> str:
    """A network's verdict from those of its bottlenecks."""
    if UNSTABLE in verdicts:
        return UNSTABLE
    return SPLIT if SPLIT in verdicts else STABLE


def bottlenecks(scenario: Scenario) -> tuple[dict[str, Any], list[Link]]:
    """A scenario's parameters and its bottlenecks at rest: max-min, but for XCP."""
    known = protocols.load()
    protocol = str(scenario.protocol)
    core = resolve.to_core(scenario, known)
    params = protocols.with_defaults([protocol], resolve.set_params(scenario, known), known)[
        protocol
    ]
    flows = subject.at_rest(core, protocols.targets({protocol: given(params)}))
    full = [link.target is None or link.target >= 1.0 for link in core.links]
    # What stands at rest is part of a round trip: AECP's q₀ at each bottleneck.
    stands_s = [0.0 for _ in core.links]
    if protocol == "aecp":
        for flow in flows:
            if flow.bottleneck is not None and full[flow.bottleneck]:
                rate = core.links[flow.bottleneck].rate_bps
                stands_s[flow.bottleneck] = 8 * core.packet_bytes * float(params["q_0"] or 0) / rate
    flows = [
        flow._replace(rtt_s=flow.rtt_s + sum(stands_s[link] for link in flow.path))
        for flow in flows
    ]
    if protocol == "xcp":
        return dict(params), _xcp_bottlenecks(core, params, flows, full)
    found = []
    for number, link in enumerate(core.links):
        crossing = [flow for flow in flows if number in flow.path]
        bound = [flow for flow in crossing if flow.bottleneck == number]
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
                full[number],
            )
        )
    return dict(params), found


def _xcp_bottlenecks(
    core: Network,
    params: Mapping[str, Any],
    flows: Sequence[subject.Bound],
    full: Sequence[bool],
) -> list[Link]:
    """XCP's at its own fixed point: which links bound whom, what φ gives them, which are full."""
    found = []
    for number, answer in enumerate(equilibrium.answers(core, params, "xcp")):
        if answer is None:
            continue
        crossing = [flow for flow in flows if number in flow.path]
        times = [flow.rtt_s for flow in crossing]  # d, the mean over flows
        if params["max_interval"] is not None:  # it takes no longer round trip
            times = [min(time, float(params["max_interval"])) for time in times]
        found.append(
            Link(
                core.links[number].name,
                tuple(Local(p * flows[i].number, flows[i].rtt_s) for i, p in answer.parts.items()),
                float(np.average(times, weights=[flow.number for flow in crossing])),
                full[number] and answer.spare < _IDLE,
            )
        )
    return found


def linear(scenario: Scenario, *, paper: bool = False) -> Document:
    """{"verdict", "thin", "links": {name: verdict}} of a scenario."""
    protocol = str(scenario.protocol)
    params, links = bottlenecks(scenario)

    def at(gain: float, late: float) -> list[str]:
        return [link_verdict(protocol, params, link, gain, late, paper=paper) for link in links]

    here = at(1.0, 1.0)
    beside = {of_links(at(f, 1.0)) for f in THIN} | {of_links(at(1.0, f)) for f in THIN}
    verdict = of_links(here)
    names = [link.name for link in links]
    return {
        "verdict": verdict,
        "thin": beside != {verdict},
        "links": dict(zip(names, here, strict=True)),
    }


# --------------------------------------------------------------------------- the fluid verdict


def run(scenario: Scenario) -> Document:
    """{"verdict", "swing", "before", "links": {name: [before, last]}} of a fluid run."""
    result = backends.run(scenario, on="fluid")
    duration_s = float(result.summary["duration_s"])
    swings: dict[str, list[float]] = {}
    _, links = bottlenecks(scenario)
    for link in scenario.link:
        if link.name not in {bottleneck.name for bottleneck in links}:
            continue
        crossing = [flow.name for flow in scenario.flow if link.name in (flow.path or [])]
        times, load = _asked(result, crossing)
        last_s = _settles_s(scenario) / 5
        parts = [
            load[(times > duration_s - (i + 1) * last_s) & (times <= duration_s - i * last_s)]
            for i in (1, 0)
        ]
        swings[link.name] = [float(np.ptp(part)) / link.rate for part in parts]
    lasting = [name for name, (a, b) in swings.items() if b > SWING and b > LASTING * a]
    worst = max(swings, key=lambda name: (name in lasting, swings[name][1]))
    return {
        "verdict": UNSTABLE if lasting else STABLE,
        "before": swings[worst][0],
        "swing": swings[worst][1],
        "links": swings,
    }


def _asked(result: Result, groups: Sequence[str]) -> tuple[NDArray[np.float64], Reals]:
    """Times, and the sum of what these entries' sources ask for in bit/s: rate, or window/τ."""
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
    """From `least` to `most`, drawn evenly by their logarithms."""

    least: float
    most: float

    def at(self, dice: np.random.Generator) -> float:
        """One draw."""
        return float(np.exp(dice.uniform(np.log(self.least), np.log(self.most))))


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
    """The scenario of a seed: every third is one link, half of them aim below capacity."""
    dice = np.random.default_rng([seed, 2007])
    protocol = str(dice.choice(list(names)))
    hops = int(dice.choice([1, 2, 3]))
    longest_s = _RTT.get(protocol, _RTT_OTHERS).at(dice)
    # MaxNet always aims below capacity, by its μ.
    target = (
        float(dice.uniform(0.8, 0.95)) if protocol != "maxnet" and dice.random() < 0.5 else None
    )
    links: list[Document] = []
    for i in range(hops):
        rate = Range(100e6, 400e6).at(dice)
        links.append(
            {
                "name": f"l{i}", "from": f"n{i}", "to": f"n{i + 1}", "rate": f"{rate:.6g} bit/s",
                "delay": "1 ms", "buffer": f"{rate * longest_s / 4:.0f} B",
            }
        )  # fmt: skip
        if target is not None:
            links[-1]["target"] = round(target, 3)
    paths = {"long": [f"l{i}" for i in range(hops)]} | {f"short{i}": [f"l{i}"] for i in range(hops)}
    starts_s = np.cumsum(dice.uniform(0.5, 1.5, len(paths))) * max(1.0, 10 * longest_s)
    flows: list[Document] = []
    for name, start_s in zip(dice.permutation(list(paths)), starts_s, strict=True):
        rtt_s = max(0.01, longest_s * (1.0 if not flows else Range(0.25, 1.0).at(dice)))
        flow: Document = {
            "name": str(name), "path": paths[str(name)], "count": int(dice.integers(1, 4)),
            "rtt": f"{rtt_s:.6g} s", "start": f"{start_s:.6g} s",
        }  # fmt: skip
        flows.append(flow | {"pacing": True} if protocol == "maxnet" else flow)
    params: dict[str, Any] = {}
    for key, span in _PARAMS[protocol].items():
        value = span.at(dice)
        params[key] = f"{value:.6g} {_TIMES[key]}" if key in _TIMES else round(value, 5)
    if protocol == "xcp":
        params["first_interval"] = params["max_interval"]
    settles_s = _settling_time_s(protocol, longest_s)
    duration_s = round(float(starts_s[-1]) + settles_s, 2)
    return from_dict(
        {
            "name": f"draw {seed}", "seed": seed, "duration": f"{duration_s} s",
            "sample": f"{_SAMPLE_S} s", "protocol": protocol, "link": links, "flow": flows,
            "params": {protocol: params},
        },
        source=f"<draw {seed}>",
    )  # fmt: skip


def _settling_time_s(protocol: str, longest_s: float) -> float:
    """From the last start to the end: many of the slowest mode's time constants."""
    return max(80.0 if protocol == "aecp" else 30.0, 200 * longest_s)


def _settles_s(scenario: Scenario) -> float:
    longest_s = max(flow.rtt or 0.0 for flow in scenario.flow)
    return _settling_time_s(str(scenario.protocol), longest_s)


def compare(scenario: Scenario) -> Document:
    """Verdicts of a scenario: `linear` as implemented, `paper` the paper's, and `fluid`.

    `clear` is whether the linear verdict as implemented is neither thin nor split, `agree` whether
    the fluid's is the same.
    """
    mine, paper, fluid = linear(scenario), linear(scenario, paper=True), run(scenario)
    return {
        "scenario": scenario.name,
        "protocol": scenario.protocol,
        "links": len(scenario.link),
        "linear": mine,
        "paper": paper,
        "fluid": fluid,
        "clear": clear(mine),
        "agree": mine["verdict"] == fluid["verdict"],
    }


def clear(verdict: Mapping[str, Any]) -> bool:
    """Whether a linear verdict says something: neither thin nor split."""
    return not verdict["thin"] and verdict["verdict"] != SPLIT


def check(draws: int, seed: int = 1, names: Sequence[str] = PROTOCOLS) -> Iterator[Document]:
    """`compare` of the draws with seeds `seed`, `seed` + 1 …, one after another."""
    return (compare(draw(seed + i, names)) for i in range(draws))


def table(results: Sequence[Document]) -> list[Document]:
    """For each protocol: draws, clear ones on either side, and agreements, of both linear loops."""
    rows = []
    for name in dict.fromkeys(result["protocol"] for result in results):
        mine = [result for result in results if result["protocol"] == name]
        row: Document = {"protocol": name, "draws": len(mine)}
        for kind in ("linear", "paper"):
            said = [result for result in mine if clear(result[kind])]
            for verdict in (STABLE, UNSTABLE):
                those = [result for result in said if result[kind]["verdict"] == verdict]
                right = sum(result["fluid"]["verdict"] == verdict for result in those)
                row[f"{kind}_{verdict}"] = [right, len(those)]
            row[f"{kind}_split"] = sum(result[kind]["verdict"] == SPLIT for result in mine)
        rows.append(row)
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; exits 1 where a clear verdict and the fluid differ."""
    parser = argparse.ArgumentParser(prog="python -m validation.stability_vs_fluid")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--protocols", default=",".join(PROTOCOLS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    results = []
    for result in check(options.draws, options.seed, options.protocols.split(",")):
        results.append(result)
        said, fluid = result["linear"], result["fluid"]
        differs = result["clear"] and not result["agree"]
        note = "thin" if said["thin"] else "differs" if differs else ""
        print(
            f"{result['scenario']:10} {result['protocol']:7} {result['links']} links  linear "
            f"{said['verdict']:9} paper {result['paper']['verdict']:9} fluid {fluid['verdict']:9} "
            f"swing {100 * fluid['before']:6.2f} → {100 * fluid['swing']:6.2f} %  {note}",
            file=sys.stderr,
            flush=True,
        )
    said = [result for result in results if result["clear"]]
    right = sum(result["agree"] for result in said)
    rows = table(results)
    if options.json:
        print(json.dumps({"draws": results, "clear": len(said), "agree": right, "table": rows}))
    else:
        print(
            f"of {len(results)} draws {len(said)} have a clear verdict; the fluid agrees: {right}"
        )
        for row in rows:
            print(row)
    return 0 if right == len(said) else 1


if __name__ == "__main__":
    sys.exit(main())
