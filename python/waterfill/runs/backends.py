"""The backends by name, and `run`: a scenario on one of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from numbers import Integral
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from waterfill.errors import InputError, nearest, shown
from waterfill.network.protocols import ProtocolInfo
from waterfill.runs.backend import Backend
from waterfill.runs.capture import Capture
from waterfill.runs.engine import Fluid, Sim
from waterfill.runs.laws import PythonLaw
from waterfill.runs.progress import Report
from waterfill.runs.result import Result
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict, load
from waterfill.scenario.units import whole

if TYPE_CHECKING:
    from waterfill.runs.steps import StepLog

# Module and class of each backend, as text, imported on first use: a simulation does not load the
# testbed, and this package does not depend on it.
BACKENDS: Mapping[str, str] = {
    "sim": "waterfill.runs.engine:Sim",
    "fluid": "waterfill.runs.engine:Fluid",
    "linux": "waterfill.testbed.backend:Linux",
}

# Beyond any host's number of CPUs: more is a typing error.
MAX_THREADS = 1024


@cache
def backend(name: str) -> Backend:
    """Return the backend of this name; raise InputError when there is none."""
    check(name)
    module, _, kind = BACKENDS[name].partition(":")
    found: Backend = getattr(import_module(module), kind)()
    return found


def check(name: object) -> None:
    """Raise InputError when there is no backend of this name."""
    if not isinstance(name, str):
        raise InputError("run", "on", f"expected a backend's name, got {shown(name)}")
    if name not in BACKENDS:
        raise InputError("command line", "on", f"unknown backend{nearest(name, BACKENDS)}")


def known(on: str) -> dict[str, ProtocolInfo]:
    """Return every protocol by name, its `backends` as this host has them."""
    return backend(on).known()


def prepare(scenario: Scenario, on: str, laws: Mapping[str, PythonLaw] | None = None) -> None:
    """Raise InputError for what a backend cannot run of a scenario, before anything has run.

    `laws` is a law in Python by its name, as in `run`.
    """
    if laws and on == "sim":
        Sim().prepare(scenario, laws)
    else:
        backend(on).prepare(scenario)


@runtime_checkable
class Checkable(Protocol):
    """What becomes a checked scenario: `waterfill.Scenario`, which this package does not know."""

    def checked(self) -> Scenario:
        """Return the checked scenario; raise InputError."""
        ...


Source: TypeAlias = "Scenario | Checkable | Mapping[str, Any] | str | os.PathLike[str]"


def run(
    scenario: Source,
    on: str = "sim",
    seed: int | None = None,
    progress: Report | None = None,
    capture: Capture | None = None,
    threads: int | None = 1,
    laws: Mapping[str, PythonLaw] | None = None,
    steps: StepLog | None = None,
) -> Result:
    """Run a scenario (or its file, or a dictionary shaped as the file is) on a backend.

    >>> import waterfill
    >>> result = waterfill.run({
    ...     "duration": "2 s", "protocol": "maxnet",
    ...     "link": [{"name": "l", "from": "a", "to": "b", "rate": "10 Mbit/s", "delay": "5 ms"}],
    ...     "flow": [{"name": "f", "path": ["l"]}],
    ... })
    >>> result.summary["flows"][0]["protocol"]
    'maxnet'

    `seed` overrides the scenario's. `progress` is called with a `Tick` about ten times a second
    of wall time. Ctrl-C ends the run early: the result then holds what there is, and its summary
    the simulated time reached as `interrupted_at_s`.

    `capture` records the packets of a run on sim; no other backend has packets to record.

    `threads` is the largest number of threads of a run on sim, None what is predicted to be the
    fastest on this host. Results do not depend on it. Recorded runs have one thread.

    `laws` is a law of your own by its name, written in Python: {"name": waterfill.PythonLaw(…)}.

    `steps` logs the steps of laws, on sim and fluid, for `waterfill verify`; on one thread.

    Raises InputError when the scenario is wrong or the backend cannot run it, and for an argument
    of another type.
    """
    check(on)
    checked = _scenario(scenario, seed)
    if capture is not None and on != "sim":
        why = f"expected --on sim, whose packets it records; got {on}"
        raise InputError("command line", "pcap", why)
    if steps is not None and (on == "linux" or laws):
        why = f"expected --on sim or fluid without --law; got {'a law in Python' if laws else on}"
        raise InputError("command line", "log-steps", why)
    if laws:
        from waterfill.runs import laws as own

        own.check(laws, known(on), on)
        if capture is not None:
            raise InputError("run", "capture", "expected none with a law in Python")
        return Sim().run(checked, progress, own=laws)
    if threads is not None:
        _check_threads(threads, on, capture, steps)
    if on == "sim":
        return Sim().run(checked, progress, capture, threads, steps=steps)
    if steps is not None:
        return Fluid().run(checked, progress, steps=steps)
    return backend(on).run(checked, progress)


def _check_threads(threads: Any, on: str, capture: Capture | None, steps: StepLog | None) -> None:
    """Raise InputError unless a run can have this number of threads."""
    if type(threads) is bool or not isinstance(threads, Integral):
        kind = f"expected a whole number or None, got {shown(threads)}"
        raise InputError("command line", "threads", kind)
    count = int(threads)
    why = None
    if not 1 <= count <= MAX_THREADS:
        why = f"expected 1 to {MAX_THREADS}, got {count}"
    elif count > 1 and on != "sim":
        why = f"expected --on sim, which can use several; got {on}"
    elif count > 1 and capture is not None:
        why = f"expected 1 with --pcap, since packets are recorded on one thread; got {count}"
    elif count > 1 and steps is not None:
        why = f"expected 1 with --log-steps, since steps are logged on one thread; got {count}"
    if why is not None:
        raise InputError("command line", "threads", why)


def _scenario(scenario: Source | object, seed: int | None) -> Scenario:
    if isinstance(scenario, Mapping):
        scenario = from_dict(scenario)
    elif isinstance(scenario, (str, os.PathLike)):
        scenario = load(scenario)
    elif not isinstance(scenario, Scenario):
        if not isinstance(scenario, Checkable):
            why = "expected the path of a scenario file, a dictionary or a waterfill.Scenario"
            raise InputError("run", "scenario", f"{why}, got {shown(scenario)}")
        scenario = scenario.checked()
    if seed is None:
        return scenario
    try:
        return scenario.model_copy(update={"seed": whole(seed)})
    except ValueError as error:
        raise scenario.error("seed", str(error)) from None
