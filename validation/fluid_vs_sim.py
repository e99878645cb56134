"""Compare the fluid model with the packet simulator on random networks.

`draw` makes a scenario from a seed: one to three bottlenecks in a row, flows over all of them and
over each, random RTTs and parameters. Entries start two to three seconds apart: if several start
within one RTT they fill buffers, and what follows depends on single packets. `compare` runs the
scenario on both backends and says how far mean rates and settling times differ. A draw that settles
on both backends must be within `RATE` and `SETTLING`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from validation.study import Option, Options, Study, StudyRun
from waterfill.contract.summary import StepCheck
from waterfill.runs.result import Result
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict

Document: TypeAlias = dict[str, Any]

RATE = 0.03
"""Largest allowed difference between a flow's mean rates on the two backends, relative to the
larger rate.
"""
SETTLING = 0.20
"""Largest allowed difference between settling times, relative to the larger time."""
PROTOCOLS = ("maxnet", "aecp", "rcp", "xcp", "ixcp", "jetmax")
"""Laws whose rates settle, so that means and settling times are meaningful."""

# A rate has settled when it stays this close to its final mean. It is averaged over several RTTs,
# so that the bursts in which packets leave do not count.
_BAND = 0.05
_AVERAGE_RTTS = 4.0
# The sampling interval, and the shortest average: settling times are no finer than the average.
_SAMPLE_S = 0.02

# The range of each parameter that is drawn, in the parameter's own unit.
_RANGES: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "maxnet": {"alpha": (0.3, 0.66), "eta": (0.03, 0.14)},
    "aecp": {"alpha": (1.0, 3.0), "beta": (0.5, 1.0)},
    "rcp": {"alpha": (0.2, 0.4), "beta": (0.3, 1.0)},
    "xcp": {"alpha": (0.2, 0.4), "beta": (0.1, 0.226)},
    "ixcp": {"alpha": (0.2, 0.4), "beta": (0.1, 0.226)},
    "jetmax": {"tau": (0.3, 0.6), "gamma": (0.9, 0.97)},
}
# From the last start to the end of the run: long enough for the slowest flow to settle.
_SETTLING_TIME_S: Mapping[str, float] = {"maxnet": 16.0, "aecp": 24.0}
_OTHERS_SETTLING_TIME_S = 12.0
# The fluid's longest step is the routers' dt_p. Otherwise ξ starts from a price that has already
# seen half of the flow's own first burst.
_STEP_S: Mapping[str, float] = {"maxnet": 1e-3}


# --- the draws ----------------------------------------------------------------------------------


def draw(seed: int, protocols: Sequence[str] = PROTOCOLS) -> Scenario:
    """Draw a random scenario from a seed, small enough to simulate in about a second."""
    random = np.random.default_rng(seed)
    protocol = str(random.choice(list(protocols)))
    hops = int(random.integers(1, 4))
    links = [
        {
            "name": f"l{i}",
            "from": f"n{i}",
            "to": f"n{i + 1}",
            "rate": f"{_log_uniform(random, 100e6, 400e6):.6g} bit/s",
            "delay": f"{random.uniform(1e-3, 15e-3):.6g} s",
            "buffer": "2 bdp",
        }
        for i in range(hops)
    ]
    paths = {"long": [f"l{i}" for i in range(hops)]} | {f"short{i}": [f"l{i}"] for i in range(hops)}
    starts_s = np.cumsum(random.uniform(2.0, 3.0, len(paths))) - 2.0
    flows = [
        _flow(random, name, paths[name], float(start_s))
        for name, start_s in zip(random.permutation(list(paths)), starts_s, strict=True)
    ]
    settling_time_s = _SETTLING_TIME_S.get(protocol, _OTHERS_SETTLING_TIME_S)
    duration_s = round(settling_time_s + float(starts_s[-1]), 2)
    params = {
        name: round(float(random.uniform(*span)), 4) for name, span in _RANGES[protocol].items()
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


def _log_uniform(random: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(random.uniform(np.log(low), np.log(high))))


def _flow(random: np.random.Generator, name: str, path: list[str], start_s: float) -> Document:
    # The path's own RTT is up to 2 · 15 ms per hop.
    rtt_s = _log_uniform(random, 0.031 * len(path), 0.031 * len(path) + 0.12)
    return {
        "name": str(name),
        "path": path,
        "count": int(random.integers(1, 3)),
        "rtt": f"{rtt_s:.6g} s",
        "start": f"{start_s:.6g} s",
    }


# --- the comparison -----------------------------------------------------------------------------


@dataclass(frozen=True)
class FlowComparison:
    """Rates and settling times of one flow entry on both backends, by backend.

    `rate_apart` and `settling_apart` are differences over the larger value. The latter is None
    where the rate settles on neither backend, and infinite where it settles on only one.
    """

    name: str
    rate_bps: Mapping[str, float]
    settling_s: Mapping[str, float | None]
    rate_apart: float
    settling_apart: float | None


@dataclass(frozen=True)
class Comparison:
    """Comparison of a scenario's runs on both backends.

    `step` is the fluid's `check_step`. `swing` is, per backend, the largest peak-to-peak of an
    entry's rate in the summary's window over its mean.
    """

    scenario: str
    protocol: str | None
    flows: Sequence[FlowComparison]
    step: StepCheck
    swing: Mapping[str, float]

    @property
    def rate_apart(self) -> float:
        """Largest relative difference between the backends' rates."""
        return max(flow.rate_apart for flow in self.flows)

    @property
    def settling_apart(self) -> float | None:
        """Largest relative difference between settling times, or None if no rate settles."""
        known = [flow.settling_apart for flow in self.flows if flow.settling_apart is not None]
        return max(known, default=None)

    @property
    def rate_ok(self) -> bool:
        """True if the mean rates agree within `RATE`."""
        return self.rate_apart <= RATE

    @property
    def settling_ok(self) -> bool:
        """True if the settling times agree within `SETTLING`."""
        return (self.settling_apart or 0.0) <= SETTLING

    @property
    def rests(self) -> bool:
        """True if the rates settle, that is, stay within the settling band on both backends."""
        return max(self.swing.values()) <= 2 * _BAND


def runs(scenario: Scenario) -> dict[str, StudyRun]:
    """Return the runs of a scenario on both backends."""
    fluid = scenario.model_copy(update={"check_step": True})
    return {"sim": StudyRun(scenario), "fluid": StudyRun(fluid, "fluid")}


def compare(scenario: Scenario, results: Mapping[str, Result]) -> Comparison:
    """Compare the runs of a scenario on both backends, for each flow entry."""
    flows = []
    for flow in scenario.flow:
        rates = {on: _mean_bps(result, flow.name) for on, result in results.items()}
        times = {on: settling_s(result, flow.name) for on, result in results.items()}
        average_s = _average_s(results["sim"], flow.name)
        flows.append(
            FlowComparison(
                name=flow.name,
                rate_bps=rates,
                settling_s=times,
                rate_apart=_apart(rates["sim"], rates["fluid"]),
                settling_apart=_times_apart(times["sim"], times["fluid"], average_s),
            )
        )
    swing = {
        on: max(_swing(result, flow.name) for flow in scenario.flow)
        for on, result in results.items()
    }
    check_step = results["fluid"].summary["check_step"]
    return Comparison(scenario.name, scenario.protocol, flows, check_step, swing)


def settling_s(result: Result, group: str) -> float | None:
    """Return the time (s) from the last start until the rate of a flow entry stays within 5 % of
    its mean.

    The rate is that of the entry's flows together, averaged over four RTTs; the mean is that of the
    summary's window. None if it has not settled by the middle of that window.
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
    """Return sample times and the mean total rate of a flow entry over the interval before each
    time.
    """
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
    # A time read from averages is no finer than the average.
    return 0.0 if abs(one - other) <= average_s else _apart(one, other)


# --- the study ----------------------------------------------------------------------------------


class Draw(NamedTuple):
    """The seed of a random scenario, and the protocols from which it draws one."""

    seed: int
    protocols: Sequence[str] = PROTOCOLS


def draw_options(protocols: Sequence[str]) -> Sequence[Option]:
    """Return the command-line options of a study of random networks."""
    return (
        Option("--draws", 200, "number of random networks", low=1),
        Option("--seed", 1, "of the first network"),
        Option("--protocols", protocols, "protocols to draw from", protocols),
    )


def cases(options: Options) -> list[Draw]:
    """Return the chosen number of draws, with consecutive seeds."""
    return [Draw(options.seed + i, options.protocols) for i in range(options.draws)]


def _line(found: Comparison) -> str:
    settling = float("nan") if found.settling_apart is None else found.settling_apart
    swing = ", ".join(f"{on} {100 * value:5.1f} %" for on, value in found.swing.items())
    step = "ok" if found.step["ok"] else "too long"
    return (
        f"{found.scenario:10} {found.protocol:8} difference of rates {100 * found.rate_apart:6.2f} "
        f"%, of settling times {100 * settling:6.1f} %; peak-to-peak {swing}; step {step}"
    )


def failed(found: Mapping[Draw, Comparison]) -> list[str]:
    """Return the draws that settle but whose backends disagree."""
    settled = [one for one in found.values() if one.rests]
    return [_line(one) for one in settled if not (one.rate_ok and one.settling_ok)]


def table(found: Mapping[Draw, Comparison]) -> str:
    """Return the numbers of draws that settle and agree."""
    settled = [one for one in found.values() if one.rests]
    return (
        f"{len(settled)} of {len(found)} draws settle; of these, mean rates agree within "
        f"{RATE:.0%} in {sum(one.rate_ok for one in settled)}, settling times within "
        f"{SETTLING:.0%} in {sum(one.settling_ok for one in settled)}"
    )


STUDY = Study(
    shows="the fluid model's rates and settling times agree with the packet simulator's",
    minutes=5,
    options=draw_options(PROTOCOLS),
    quick={"draws": 3},
    cases=cases,
    runs=lambda case: runs(draw(*case)),
    measure=lambda case, results: compare(draw(*case), results),
    line=lambda _, found: _line(found),
    table=table,
    failed=failed,
)
