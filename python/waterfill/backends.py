"""Running a scenario: `run`, and the one backend of this version, the packet-level simulator."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import Any

from waterfill import _core, maxmin, network, protocols
from waterfill.errors import InputError, nearest
from waterfill.progress import Report, Tick
from waterfill.quantities import whole
from waterfill.results import Document, Result, summarise
from waterfill.scenario import Scenario, from_dict, load

BACKENDS = ("sim",)
_LATER = ("fluid", "linux")

# Between two slices of a run Ctrl-C is heard and progress shown: often enough to feel immediate,
# seldom enough to cost nothing.
_SLICE_WALL_S = 0.1
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
    known = protocols.load()
    resolved = network.to_core(checked, known, on)
    try:
        targets = protocols.targets(resolved["params"])
        simulation = _core.Simulation(json.dumps(resolved, allow_nan=False))
    except ValueError as error:
        raise checked.core_error(error) from None
    interrupted_at_s = _advance(simulation, checked.duration, progress)
    core: Document = json.loads(simulation.summary_json())
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
    return Result(
        summary, network=resolved, scenario_toml=checked.to_toml(), series=simulation.series
    )


def check(on: str) -> None:
    """Raises InputError when there is no such backend."""
    if on in _LATER:
        raise InputError("command line", "on", f'"{on}" is not in this version, expected sim')
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


def _advance(
    simulation: _core.Simulation, duration_s: float, progress: Report | None
) -> float | None:
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


def _max_min(
    resolved: Document, targets: Mapping[str, float], flows: list[Document]
) -> list[float | None]:
    """Each flow's mean max-min share in its own window; a flow leaves when it has completed."""
    active = [None if flow["active_s"] is None else tuple(flow["active_s"]) for flow in flows]
    return maxmin.mean_rates(resolved, targets, active, maxmin.lives_in(flows))
