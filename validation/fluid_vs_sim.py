"""The fluid model against the packet simulator, on random networks.

`draw` makes a scenario from a seed: one to three bottlenecks in a row, flows over all of them and
flows over each, round trips and a protocol's parameters at random. Entries start two to three
seconds apart: where several start within a round trip of each other they fill buffers, and what
comes of that hangs on single packets (which are lost, what a first round trip is). `compare` runs
it on both backends and says how far mean rates and settling times are apart. From the command line:

    python -m validation.fluid_vs_sim --draws 200 --seed 1 [--protocols maxnet,aecp] [--json]

which exits 1 when a draw that comes to rest on both is outside `RATE` or `SETTLING`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from waterfill.runs import backends
from waterfill.runs.result import Result
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict

Document: TypeAlias = dict[str, Any]

RATE = 0.03
"""A flow's mean rate on one backend is this close to that on the other, of the larger."""
SETTLING = 0.20
"""So close are settling times, of the larger."""
PROTOCOLS = ("maxnet", "aecp", "rcp", "xcp", "ixcp", "jetmax")
"""Laws whose rates come to rest, so that means and settling times say something."""

# A rate has settled within this of its final mean; it is averaged over so many round trips, so that
# the bursts in which packets go do not count.
_BAND = 0.05
_AVERAGE_RTTS = 4.0
# What a settling time is at least judged to the nearest of: the average that it is read from.
_SAMPLE_S = 0.02

# The range of a protocol's parameters that is drawn from, in their own units.
_RANGES: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "maxnet": {"alpha": (0.3, 0.66), "eta": (0.03, 0.14)},
    "aecp": {"alpha": (1.0, 3.0), "beta": (0.5, 1.0)},
    "rcp": {"alpha": (0.2, 0.4), "beta": (0.3, 1.0)},
    "xcp": {"alpha": (0.2, 0.4), "beta": (0.1, 0.226)},
    "ixcp": {"alpha": (0.2, 0.4), "beta": (0.1, 0.226)},
    "jetmax": {"tau": (0.3, 0.6), "gamma": (0.9, 0.97)},
}
# From the last start to the end: long enough for the slowest to settle.
_SETTLES_S: Mapping[str, float] = {"maxnet": 16.0, "aecp": 24.0}
# A longest step, with which ξ starts from the price before the flow's own first burst, and not
# from one that has seen half of it: the routers' dt_p.
_STEP_S: Mapping[str, float] = {"maxnet": 1e-3}


def draw(seed: int, protocols: Sequence[str] = PROTOCOLS) -> Scenario:
    """The scenario of a seed. Small: a packet run takes a second or less."""
    dice = np.random.default_rng(seed)
    protocol = str(dice.choice(list(protocols)))
    hops = int(dice.integers(1, 4))
    links = [
        {
            "name": f"l{i}",
            "from": f"n{i}",
            "to": f"n{i + 1}",
            "rate": f"{_between(dice, 100e6, 400e6):.6g} bit/s",
            "delay": f"{dice.uniform(1e-3, 15e-3):.6g} s",
            "buffer": "2 bdp",
        }
        for i in range(hops)
    ]
    paths = {"long": [f"l{i}" for i in range(hops)]} | {f"short{i}": [f"l{i}"] for i in range(hops)}
    starts_s = np.cumsum(dice.uniform(2.0, 3.0, len(paths))) - 2.0
    flows = [
        _flow(dice, name, paths[name], float(start_s))
        for name, start_s in zip(dice.permutation(list(paths)), starts_s, strict=True)
    ]
    duration_s = round(_SETTLES_S.get(protocol, 12.0) + float(starts_s[-1]), 2)
    params = {
        name: round(float(dice.uniform(*span)), 4) for name, span in _RANGES[protocol].items()
    }
    step = {"step": f"{_STEP_S[protocol]} s"} if protocol in _STEP_S else {}
    return from_dict(
        step
        | {
            "name": f"draw {seed}",
            "seed": seed,
            "duration": f"{duration_s} s",
            "measure": [f"{duration_s - 5.0:.2f} s", f"{duration_s} s"],
            "sample": f"{_SAMPLE_S} s",
            "protocol": protocol,
            "link": links,
            "flow": flows,
            "params": {protocol: params},
        },
        source=f"<draw {seed}>",
    )


def _between(dice: np.random.Generator, least: float, most: float) -> float:
    return float(np.exp(dice.uniform(np.log(least), np.log(most))))


def _flow(dice: np.random.Generator, name: str, path: list[str], start_s: float) -> Document:
    # At least the path's own 2 · 15 ms a hop.
    rtt_s = _between(dice, 0.031 * len(path), 0.031 * len(path) + 0.12)
    return {
        "name": str(name),
        "path": path,
        "count": int(dice.integers(1, 3)),
        "rtt": f"{rtt_s:.6g} s",
        "start": f"{start_s:.6g} s",
    }


def compare(scenario: Scenario) -> Document:
    """Both runs of a scenario, entry by entry.

    {"scenario", "protocol", "flows": [{"name", "rate_bps": {"sim", "fluid"}, "settling_s": {…},
    "rate_apart", "settling_apart"}], "step", "rate_ok", "settling_ok", "swing", "rests"}.
    `rate_apart` and `settling_apart` are differences over the larger value; the latter is null
    where a rate settles on neither backend, and infinite where it does on one only. `swing` is, for
    each backend, the largest peak-to-peak of an entry's rate in the summary's window over its mean;
    a draw `rests` where that stays within the band of settling on both: elsewhere there is no rate
    to settle at. `step` is the fluid's `check_step`.
    """
    fluid = scenario.model_copy(update={"check_step": True})
    results = {"sim": backends.run(scenario), "fluid": backends.run(fluid, on="fluid")}
    flows: list[Document] = []
    for flow in scenario.flow:
        rates = {on: _mean_bps(result, flow.name) for on, result in results.items()}
        times = {on: settling_s(result, flow.name) for on, result in results.items()}
        average_s = _average_s(results["sim"], flow.name)
        flows.append(
            {
                "name": flow.name,
                "rate_bps": rates,
                "settling_s": times,
                "rate_apart": _apart(rates["sim"], rates["fluid"]),
                "settling_apart": _times_apart(times["sim"], times["fluid"], average_s),
            }
        )
    apart = [flow["settling_apart"] for flow in flows if flow["settling_apart"] is not None]
    swing = {
        on: max(_swing(result, flow.name) for flow in scenario.flow)
        for on, result in results.items()
    }
    return {
        "scenario": scenario.name,
        "protocol": scenario.protocol,
        "flows": flows,
        "step": results["fluid"].summary["check_step"],
        "rate_ok": max(flow["rate_apart"] for flow in flows) <= RATE,
        "settling_ok": max(apart, default=0.0) <= SETTLING,
        "swing": swing,
        "rests": max(swing.values()) <= 2 * _BAND,
    }


def settling_s(result: Result, group: str) -> float | None:
    """From the last start to when an entry's rate stays within 5 % of its mean in the window.

    The rate is that of the entry's flows together, averaged over four round trips. None when
    it has not settled by the middle of the summary's window.
    """
    times, rates = _rate(result, group)
    final = _mean_bps(result, group)
    outside = np.abs(rates - final) > _BAND * final
    start_s = max(f["start_s"] for f in result.summary["flows"])
    if not outside.any():
        return 0.0
    last = float(times[np.flatnonzero(outside)[-1]])
    middle_s = sum(result.summary["measure_s"]) / 2
    return None if last > middle_s else max(0.0, last - start_s)


def _rate(result: Result, group: str) -> tuple[np.ndarray, np.ndarray]:
    """Times, and the rate of an entry's flows together, averaged over `_average_s` before them."""
    names = [f["name"] for f in result.summary["flows"] if f["group"] == group]
    step_s = result.network.sample_s
    count = round(result.summary["duration_s"] / step_s)
    sums = np.zeros(count)
    for name in names:
        table = result.samples("flows", name)
        places = np.rint(table["time_s"].to_numpy() / step_s).astype(int) - 1
        sums[places] += table["rate_bps"].to_numpy()
    width = max(1, round(_average_s(result, group) / step_s))
    averages = np.convolve(sums, np.ones(width) / width, mode="valid")
    return (np.arange(width, count + 1)) * step_s, averages


def _average_s(result: Result, group: str) -> float:
    base_ms = max(f["rtt_ms"]["base"] for f in result.summary["flows"] if f["group"] == group)
    return max(_SAMPLE_S, _AVERAGE_RTTS * float(base_ms) / 1e3)


def _mean_bps(result: Result, group: str) -> float:
    return float(sum(f["rate_bps"] or 0.0 for f in result.summary["flows"] if f["group"] == group))


def _swing(result: Result, group: str) -> float:
    times, rates = _rate(result, group)
    start_s, end_s = result.summary["measure_s"]
    late = rates[(times > start_s) & (times <= end_s)]
    return float((late.max() - late.min()) / late.mean()) if late.mean() > 0 else 0.0


def _apart(one: float, other: float) -> float:
    largest = max(one, other)
    return abs(one - other) / largest if largest > 0 else 0.0


def _times_apart(one: float | None, other: float | None, average_s: float) -> float | None:
    if one is None or other is None:
        return None if one is other else float("inf")
    # A time read from averages is no finer than these.
    return 0.0 if abs(one - other) <= average_s else _apart(one, other)


def check(draws: int, seed: int = 1, protocols: Sequence[str] = PROTOCOLS) -> Iterable[Document]:
    """`compare` of the draws with seeds `seed`, `seed` + 1 …, one after another."""
    return (compare(draw(seed + i, protocols)) for i in range(draws))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit code."""
    parser = argparse.ArgumentParser(prog="python -m validation.fluid_vs_sim")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--protocols", default=",".join(PROTOCOLS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    results = []
    for result in check(options.draws, options.seed, options.protocols.split(",")):
        results.append(result)
        rate = max(flow["rate_apart"] for flow in result["flows"])
        times = [f["settling_apart"] for f in result["flows"] if f["settling_apart"] is not None]
        print(
            f"{result['scenario']:10} {result['protocol']:8} rates apart {100 * rate:6.2f} %  "
            f"settling times {100 * max(times, default=float('nan')):6.1f} %  "
            f"swing sim {100 * result['swing']['sim']:5.1f} % fluid "
            f"{100 * result['swing']['fluid']:5.1f} %  "
            f"step {'ok' if result['step']['ok'] else 'too long'}",
            file=sys.stderr,
            flush=True,
        )
    resting = [result for result in results if result["rests"]]
    ok = {kind: sum(result[kind] for result in resting) for kind in ("rate_ok", "settling_ok")}
    print(
        json.dumps({"draws": results, "resting": len(resting), **ok})
        if options.json
        else f"of {len(results)} draws {len(resting)} come to rest; of these, mean rates within "
        f"{RATE:.0%}: {ok['rate_ok']}, settling times within {SETTLING:.0%}: {ok['settling_ok']}"
    )
    return 0 if min(ok.values()) == len(resting) else 1


if __name__ == "__main__":
    sys.exit(main())
