"""The backends by name, and `run`: a scenario on one of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from waterfill.errors import InputError, nearest
from waterfill.network.protocols import ProtocolInfo
from waterfill.runs.backend import Backend
from waterfill.runs.capture import Capture
from waterfill.runs.engine import Sim
from waterfill.runs.progress import Report
from waterfill.runs.result import Result
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict, load
from waterfill.scenario.units import whole

# Module and class of each backend, as text, imported on first use: a simulation does not load the
# testbed, and this package does not depend on it.
BACKENDS: Mapping[str, str] = {
    "sim": "waterfill.runs.engine:Sim",
    "fluid": "waterfill.runs.engine:Fluid",
    "linux": "waterfill.testbed.backend:Linux",
}


@cache
def backend(name: str) -> Backend:
    """Return the backend of this name; raise InputError when there is none."""
    check(name)
    module, _, kind = BACKENDS[name].partition(":")
    found: Backend = getattr(import_module(module), kind)()
    return found


def check(name: str) -> None:
    """Raise InputError when there is no backend of this name."""
    if name not in BACKENDS:
        raise InputError("command line", "on", f"unknown backend{nearest(name, BACKENDS)}")


def known(on: str) -> dict[str, ProtocolInfo]:
    """Return every protocol by name, its `backends` as this host has them."""
    return backend(on).known()


def prepare(scenario: Scenario, on: str) -> None:
    """Raise InputError for what a backend cannot run of a scenario, before anything has run."""
    backend(on).prepare(scenario)


def run(
    scenario: Scenario | Mapping[str, Any] | str | os.PathLike[str],
    on: str = "sim",
    seed: int | None = None,
    progress: Report | None = None,
    capture: Capture | None = None,
) -> Result:
    """Run a scenario (or its file, or a dictionary shaped as the file is) on a backend.

    `seed` overrides the scenario's. `progress` is called with a `Tick` about ten times a second
    of wall time. Ctrl-C ends the run early: the result then holds what there is, and its summary
    the simulated time reached as `interrupted_at_s`.

    `capture` records the packets of a run on sim; no other backend has packets to record.

    Raises InputError when the scenario is wrong or the backend cannot run it.
    """
    checked = _scenario(scenario, seed)
    if capture is not None:
        if on != "sim":
            why = f"expected --on sim, whose packets it records; got {on}"
            raise InputError("command line", "pcap", why)
        return Sim().run(checked, progress, capture)
    return backend(on).run(checked, progress)


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
