"""Running a scenario: `run`, on the packet-level simulator, as a fluid, or on Linux."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any, TypeAlias

from waterfill import _core
from waterfill.errors import InputError, nearest
from waterfill.network import maxmin, protocols, resolve
from waterfill.runs.progress import Report, Tick
from waterfill.runs.result import Document, Result, summarise
from waterfill.scenario.document import Scenario, from_dict, load
from waterfill.scenario.units import whole

Simulation: TypeAlias = "_core.Simulation | _core.Fluid"

BACKENDS = ("sim", "fluid", "linux")

# Between two slices of a run Ctrl-C is heard and progress shown: often enough to feel immediate,
# seldom enough to cost nothing.
_SLICE_WALL_S = 0.1
# Halving the step of a fluid run shall change no rate by more; so often it is halved at most.
_LARGEST_CHANGE = 0.01
_MOST_HALVINGS = 5
# Simulated time of the first slice: little work whatever the network; slices double from here.
_FIRST_SLICE_S = 1e-3


def run(
    scenario: Scenario | Mapping[str, Any] | str | os.PathLike[str],
    on: str = "sim",
    seed: int | None = None,
    progress: Report | None = None,
) -> Result:
    """Runs a scenario (or its file, or a dictionary shaped as the file is) on a backend.

    `seed` overrides the scenario's. `progress` is called with a `Tick` about ten times a second
    of wall time. Ctrl-C ends the run early: the result then holds what there is, and its summary
    the simulated time reached as `interrupted_at_s`.

    Raises InputError when the scenario is wrong or the backend cannot run it.
    """
    checked = _scenario(scenario, seed)
    check(on)
    if on == "linux":
        from waterfill.testbed import backend

        return backend.run(checked, progress)
    known = protocols.load()
    resolved = resolve.to_core(checked, known, on)
    text = json.dumps(resolved, allow_nan=False)
    try:
        targets = protocols.targets(resolved["params"])
        simulation = _core.Fluid(text, checked.step) if on == "fluid" else _core.Simulation(text)
    except ValueError as error:
        raise checked.core_error(error) from None
    interrupted_at_s = _advance(simulation, checked.duration, progress)
    core: Document = json.loads(simulation.summary_json())
    step_check: Document | None = None
    if on == "fluid" and checked.check_step and interrupted_at_s is None:
        simulation, core, step_check = _halve(text, simulation, core, progress)
    arriving = [t["flows"]["flow"] for t in resolved["traffic"] if t.get("flows") is not None]
    used = [flow["protocol"] for flow in [*resolved["flows"], *arriving]]
    summary = summarise(
        core,
        network=resolved,
        backend=on,
        params=protocols.with_defaults(used, resolved["params"], known),
        max_min_bps=_max_min(resolved, targets, core["flows"]),
        interrupted_at_s=interrupted_at_s,
    )
    if step_check is not None:
        summary["check_step"] = step_check
    return Result(
        summary, network=resolved, scenario_toml=checked.to_toml(), series=simulation.series
    )


def known(on: str) -> dict[str, protocols.ProtocolInfo]:
    """Every protocol, with `backends` as this machine has them: on linux the kernel decides."""
    if on == "linux":
        from waterfill.testbed import backend

        return backend.known()
    return protocols.load()


def prepare(scenario: Scenario, on: str) -> None:
    """Raises InputError for what a backend cannot run of a scenario, before anything has run."""
    if on == "linux":
        from waterfill.testbed import backend

        backend.prepare(scenario)
        return
    resolved = resolve.to_core(scenario, known(on), on)
    try:
        protocols.targets(resolved["params"])
    except ValueError as error:
        raise scenario.core_error(error) from None


def check(on: str) -> None:
    """Raises InputError when there is no such backend."""
    if on not in BACKENDS:
        raise InputError("command line", "on", f"unknown backend{nearest(on, BACKENDS)}")


def _scenario(
    scenario: Scenario | Mapping[str, Any] | str | os.PathLike[str], seed: int | None
) -> Scenario:
    if isinstance(scenario, Mapping):
        scenario = from_dict(scenario)
    elif not isinstance(scenario, Scenario):
        scenario = load(scenario)
    if seed is None:
        return scenario
    try:
        return scenario.model_copy(update={"seed": whole(seed)})
    except ValueError as error:
        raise scenario.error("seed", str(error)) from None


def _advance(simulation: Simulation, duration_s: float, progress: Report | None) -> float | None:
    """Runs to the end in slices of about `_SLICE_WALL_S`; the time reached if interrupted."""
    began = time.perf_counter()
    now_s, step_s = 0.0, _FIRST_SLICE_S
    try:
        while now_s < duration_s:
            slice_began = time.perf_counter()
            now_s = min(duration_s, now_s + step_s)
            simulation.advance(now_s)
            ended = time.perf_counter()
            took_s = max(ended - slice_began, 1e-6)
            step_s *= min(2.0, max(0.5, _SLICE_WALL_S / took_s))
            if progress is not None:
                hops = simulation.progress()["packet_hops"]
                progress(Tick(now_s, duration_s, hops, ended - began))
    except KeyboardInterrupt:
        return simulation.progress()["now_s"]
    return None


def _halve(
    text: str, coarse: Simulation, core: Document, progress: Report | None
) -> tuple[Simulation, Document, Document]:
    """Runs again with half the step until that changes rates by little: the last run that is whole.

    Beside it the check: the step it had, the step of the run it was compared with, the largest
    change of a flow's rate between the two over its rate, and whether that is small enough.
    """
    duration_s = json.loads(text)["duration_s"]
    for attempt in range(1, _MOST_HALVINGS + 1):
        step_s = core["engine"]["step_s"]
        fine = _core.Fluid(text, step_s / 2)
        if _advance(fine, duration_s, progress) is not None:
            check = {"step_s": step_s, "half_step_s": None, "largest_change": None, "ok": False}
            return coarse, core, check
        halved: Document = json.loads(fine.summary_json())
        change = largest_change(core, halved)
        check = {
            "step_s": step_s,
            "half_step_s": step_s / 2,
            "largest_change": change,
            "ok": change < _LARGEST_CHANGE,
        }
        if check["ok"] or attempt == _MOST_HALVINGS:
            break
        coarse, core = fine, halved
    return coarse, core, check


def largest_change(one: Document, other: Document) -> float:
    """The largest difference of a flow's rate between two runs, over the larger rate; 0 to 1."""
    rates = [
        (a["rate_bps"] or 0.0, b["rate_bps"] or 0.0)
        for a, b in zip(one["flows"], other["flows"], strict=True)
    ]
    return max((abs(a - b) / max(a, b) for a, b in rates if max(a, b) > 0), default=0.0)


def _max_min(
    resolved: Document, targets: Mapping[str, float], flows: list[Document]
) -> list[float | None]:
    """Each flow's mean max-min share in its own window; a flow leaves when it has completed.

    An entry that stands for `count` flows counts as one of so many times the weight and demand.
    """
    active = [None if flow["active_s"] is None else tuple(flow["active_s"]) for flow in flows]
    lives = maxmin.lives_in(flows)
    if not any("count" in flow for flow in flows):
        return maxmin.mean_rates(resolved, targets, active, lives)
    counts = [flow["count"] for flow in flows]
    shares = maxmin.mean_rates(_by_class(resolved), targets, active, lives)
    return [
        None if share is None else share / count
        for share, count in zip(shares, counts, strict=True)
    ]


def _by_class(resolved: Document) -> Document:
    """The network with one flow for all of an entry that start together."""
    flows = [
        flow
        if flow["stagger_s"] > 0 or flow["count"] == 1
        else flow
        | {
            "count": 1,
            "weight": flow["weight"] * flow["count"],
            "demand_bps": None
            if flow["demand_bps"] is None
            else flow["demand_bps"] * flow["count"],
        }
        for flow in resolved["flows"]
    ]
    return resolved | {"flows": flows}
