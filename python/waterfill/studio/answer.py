"""Shortened runs, which finish fast enough to follow a slider.

The rule, in this order, so that a link gives the same picture on every host:

1. The fluid model, where it can run the scenario; else the packet simulator.
2. The whole duration, if its predicted work is within the backend's budget; else the first part of
   it that is, at least `MIN_S`. The page says so and offers the whole run.

Work is predicted, not measured. Packets: twice what the links on data paths can transmit, since
each packet is acknowledged. Fluid: steps × (links + flows that differ), a step being a twentieth of
the shortest RTT.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from waterfill import _core
from waterfill.contract.network import FlowSpec, Network
from waterfill.errors import InputError
from waterfill.network import resolve
from waterfill.runs import backends
from waterfill.runs.result import Result
from waterfill.scenario import loading
from waterfill.scenario.document import Scenario
from waterfill.studio.settings import Settings, document_of, known

# Each takes about 0.15 s of one core.
PACKET_BUDGET = 600_000.0
STEP_BUDGET = 400_000.0
# A shorter run shows nothing of any law.
MIN_S = 1.0
_STEPS_PER_RTT = 20
# Samples of a run that was cut, as many as a chart has points.
_SAMPLES = 240


@dataclass(frozen=True)
class Answer:
    """A shortened run: its settings, its result, its simulated and whole durations, and its wall
    time.

    `whole_s` is the scenario's own duration, `ran_s` what of it ran (both simulated seconds).
    """

    settings: Settings
    result: Result
    whole_s: float
    ran_s: float
    took_s: float

    @property
    def note(self) -> str:
        """One sentence that names the backend and the simulated part of the scenario."""
        model = "Fluid model" if self.result.summary.backend == "fluid" else "Packet simulator"
        took = f"in {1e3 * self.took_s:.0f} ms"
        if self.ran_s >= self.whole_s:
            return f"{model}, all {self.whole_s:g} s, {took}."
        return f"{model}, the first {self.ran_s:.3g} s of {self.whole_s:g} s, {took}."


def answer(settings: Settings, *, whole: bool = False) -> Answer:
    """Run the chosen settings, shortened by the module's rule unless `whole` is set.

    Raises InputError where the settings are wrong or no backend can run them.
    """
    started = time.perf_counter()
    scenario = settings.load()
    name = choose(scenario) if settings.on == "auto" else settings.on
    network = resolve.to_core(scenario, known(), name)
    length_s = scenario.duration if whole else quick_s(network, name)
    shown = scenario if length_s >= scenario.duration else cut(scenario, length_s)
    result = backends.run(shown, on=name)
    took_s = time.perf_counter() - started
    return Answer(settings, result, scenario.duration, shown.duration, took_s)


def choose(scenario: Scenario) -> str:
    """Return the backend to run: the fluid model if it supports the scenario, or the simulator."""
    try:
        backends.prepare(scenario, "fluid")
    except InputError:
        return "sim"
    return "fluid"


def quick_s(network: Network, on: str) -> float:
    """Return the simulated time (s) that fits the work budget: at least `MIN_S`, at most the whole
    run.
    """
    if on == "fluid":
        per_s, budget = steps_per_s(network), STEP_BUDGET
    else:
        per_s, budget = transmissions_per_s(network), PACKET_BUDGET
    if per_s * network.duration_s <= budget:
        return network.duration_s
    fits_s = budget / per_s
    # Two digits, so that the axis ends at a number that reads well.
    digit = _core.pow(10.0, math.floor(_core.log10(fits_s)) - 1)
    return float(min(network.duration_s, max(MIN_S, math.floor(fits_s / digit) * digit)))


def transmissions_per_s(network: Network) -> float:
    """Return an upper bound of the packet transmissions per simulated second."""
    used = {link for flow in network.flows for link in flow.forward}
    for source in network.traffic:
        used.update(source.path)
    rate_bps = math.fsum(network.links[link].rate_bps for link in used)
    return 2 * rate_bps / (8 * network.packet_bytes)


def steps_per_s(network: Network) -> float:
    """Return the fluid model's work per simulated second: steps × (links + distinct flows)."""
    shortest_s = min((flow.base_rtt_s for flow in network.flows), default=1.0)
    different = sum(flow.count if flow.differ else 1 for flow in network.flows)
    links = {link for flow in network.flows for link in flow.forward}
    return _STEPS_PER_RTT / max(shortest_s, 1e-6) * (len(links) + different)


def cut(scenario: Scenario, duration_s: float) -> Scenario:
    """Return a scenario cut to its first part. Flows that start later are left out.

    Raises InputError when no flow starts in it.
    """
    document = document_of(scenario)
    document.pop("measure", None)
    groups = resolve.to_core(scenario, known()).flows
    counts = [_started(group, duration_s) for group in groups]
    counts = _without_followers(scenario, counts)
    if not any(counts):
        message = f"none starts in the first {duration_s:g} s, which can be shown at once"
        raise scenario.error("flow", message)
    flows = [
        {**_ending(entry, flow.stop, duration_s), "count": count}
        for entry, flow, count in zip(document.get("flow", []), scenario.flow, counts, strict=True)
        if count
    ]
    traffic = [
        _ending(entry, source.stop, duration_s)
        for entry, source in zip(document.get("traffic", []), scenario.traffic, strict=True)
        if source.start < duration_s
    ]
    document |= {
        "duration": f"{duration_s:g} s", "sample": f"{duration_s / _SAMPLES:g} s",
        "flow": flows, "traffic": traffic,
    }  # fmt: skip
    return loading.from_dict(document, scenario.source)


def _without_followers(scenario: Scenario, counts: list[int]) -> list[int]:
    """Return the counts with zero for flows that wait for a flow that is left out."""
    while True:
        left_out = {flow.name for flow, n in zip(scenario.flow, counts, strict=True) if not n}
        kept = [
            0 if left_out.intersection(flow.after or ()) else n
            for flow, n in zip(scenario.flow, counts, strict=True)
        ]
        if kept == counts:
            return counts
        counts = kept


def _started(flow: FlowSpec, duration_s: float) -> int:
    return sum(flow.start_of_s(index) < duration_s for index in range(flow.count))


def _ending(entry: dict[str, Any], stop_s: float | None, duration_s: float) -> dict[str, Any]:
    if stop_s is None or stop_s < duration_s:
        return dict(entry)
    return {key: value for key, value in entry.items() if key != "stop"}
