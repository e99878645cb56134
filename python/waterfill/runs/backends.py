"""Registry of backends by name, and `run`, which runs a scenario on one of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from waterfill.errors import InputError, nearest, shown
from waterfill.network import protocols
from waterfill.network.protocols import ProtocolInfo
from waterfill.runs.backend import Backend, RunOptions
from waterfill.runs.capture import Capture
from waterfill.runs.laws import PythonLaw
from waterfill.runs.laws import check as check_laws
from waterfill.runs.progress import Report
from waterfill.runs.result import Result
from waterfill.scenario.document import NO_DEFAULT_FLOW, Scenario
from waterfill.scenario.loading import Sets, from_dict, load
from waterfill.scenario.units import whole

if TYPE_CHECKING:
    from waterfill.runs.endpoints import Endpoints
    from waterfill.runs.qlog import Qlog
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


def check(name: object, place: str = "command line") -> None:
    """Raise InputError when there is no backend of this name. The message names `place`."""
    if not isinstance(name, str):
        raise InputError("run", "on", f"must be a backend's name, got {shown(name)}")
    if "," in name:
        why = f"must be one backend, got {shown(name)}"
        raise InputError("command line", "on", why, f"for several: waterfill compare … --on {name}")
    if name not in BACKENDS:
        why = f"unknown backend {shown(name)}{nearest(name, BACKENDS)}"
        raise InputError(place, "on", why)


def known(on: str) -> dict[str, ProtocolInfo]:
    """Return all protocols by name. The `backends` of each are those available on this host."""
    return backend(on).known()


def prepare(scenario: Scenario, on: str, laws: Mapping[str, PythonLaw] | None = None) -> None:
    """Check that a backend can run a scenario, without running it; raise InputError if it cannot.

    `laws` are laws in Python by name, as in `run`.
    """
    options = RunOptions(laws=_laws(laws, scenario))
    refuse(options, on)
    backend(on).prepare(scenario, options)


class _Option(NamedTuple):
    """An option of a run: the file and key that messages name, its effect, and the options that
    exclude it.
    """

    file: str
    key: str
    does: str
    excluded_by: tuple[str, ...] = ()


_OPTIONS: Mapping[str, _Option] = {
    "laws": _Option("run", "laws", "run a law in Python"),
    "capture": _Option("command line", "pcap", "record packets", ("laws",)),
    "steps": _Option("command line", "log-steps", "log the steps of laws", ("laws",)),
    "qlog": _Option("command line", "qlog", "log flows as qlog"),
    "endpoints": _Option("command line", "endpoint", "run endpoints", ("capture",)),
    "threads": _Option(
        "command line",
        "threads",
        "use several threads",
        ("capture", "steps", "qlog", "endpoints", "laws"),
    ),
}


def refuse(options: RunOptions, on: str) -> None:
    """Raise InputError for an option that the backend lacks or another option excludes."""
    used = options.used()
    for name in used:
        file, key, does, excluded_by = _OPTIONS[name]
        if name not in backend(on).supports:
            able = " or ".join(other for other in BACKENDS if name in backend(other).supports)
            raise InputError(file, key, f"{on} cannot {does}; use --on {able}")
        for other in excluded_by:
            if other in used:
                both = f"a run cannot {does} and {_OPTIONS[other].does}"
                raise InputError(file, key, f"{both}; leave one of them out")


# Keys that only one backend reads.
_ONLY_ON = {"step": "fluid", "check_step": "fluid", "ip_version": "linux"}


def refuse_idle(runs: Iterable[tuple[Scenario, str]], laws: Iterable[str] = ()) -> None:
    """Raise InputError for a key of the command line that none of these scenarios and backends
    reads. `laws` are the names of laws in Python.
    """
    every = list(runs)
    used = set[str]().union(*(scenario.protocols() for scenario, _ in every))
    on = {backend for _, backend in every}
    known = {*protocols.load(), *laws}
    for key in dict.fromkeys(key for scenario, _ in every for key in scenario.set_keys):
        section, _, rest = key.partition(".")
        name = rest.partition(".")[0]
        problem, advice = "", "remove it"
        if section == "params" and name in known and name not in used:
            problem = f"no effect: no flow runs {name}"
        elif key in _ONLY_ON and _ONLY_ON[key] not in on:
            problem = f"no effect on {' and '.join(sorted(on))}, only on {_ONLY_ON[key]}"
        elif key == "seed" and on == {"fluid"} and not any(map(_draws, every)):
            problem = "no effect on fluid without start_jitter or rtt_jitter"
        elif key == "protocol" and not any(scenario.uses_default for scenario, _ in every):
            problem, advice = NO_DEFAULT_FLOW.split("; ")
            problem = f"{shown(every[0][0].protocol)} has no effect, because {problem}"
        if problem:
            raise InputError("command line", key, problem, advice)


def _draws(run: tuple[Scenario, str]) -> bool:
    """Return True if a fluid run depends on the seed: it draws only the jitter of flows."""
    scenario, _ = run
    return any(flow.start_jitter or flow.rtt_jitter for flow in scenario.flow)


@runtime_checkable
class Checkable(Protocol):
    """An object that can be turned into a checked scenario: `waterfill.Scenario`, which this
    package cannot import.
    """

    def checked(self, sets: Sets = ()) -> Scenario:
        """Return the checked scenario with overrides; raise InputError if it is invalid."""
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
    qlog: Qlog | None = None,
    endpoints: Endpoints | None = None,
    *,
    protocol: str | None = None,
    set: Mapping[str, Any] | None = None,
) -> Result:
    """Run a scenario, given as an object, a file or a dictionary, on a backend.

    >>> import waterfill
    >>> result = waterfill.run({
    ...     "duration": "2 s", "protocol": "maxnet",
    ...     "link": [{"name": "l", "from": "a", "to": "b", "rate": "10 Mbit/s", "delay": "5 ms"}],
    ...     "flow": [{"name": "f", "path": ["l"]}],
    ... })
    >>> result.summary["flows"][0]["protocol"]
    'maxnet'

    `seed` overrides the scenario's, `protocol` that of all flows that name none, and `set` further
    keys, as `--set` does: {"params.maxnet.mu": 0.95, "link.l.rate": "1 Gbit/s"}.

    `progress` is called with a `Tick` about ten times a second of wall time. Ctrl-C ends the run
    early: the result then holds what there is, and its summary the simulated time reached as
    `interrupted_at_s`.

    `capture` records the packets of a run on sim; no other backend has packets to record.

    `threads` is the largest number of threads of a run on sim, None what is predicted to be the
    fastest on this host. Results do not depend on it. Recorded runs have one thread.

    `laws` are laws of your own by name, written in Python: {"name": waterfill.PythonLaw(…)}. A run
    has those that its flows name. Laws of installed packages need no mention.

    `steps` logs the steps of laws, on sim and fluid, on one thread, for `validation/certificates`.
    `qlog` logs flows on sim, on one thread, for qvis.

    `endpoints` puts programs in the place of flows' hosts, on sim, on one thread.

    Raises InputError when the scenario is wrong or the backend cannot run it, and for an argument
    of another type.
    """
    check(on, "run")
    checked = scenario_of(scenario, set, protocol, seed)
    options = RunOptions(capture, _threads(threads), _laws(laws, checked), steps, qlog, endpoints)
    refuse(options, on)
    return backend(on).run(checked, options, progress)


def _laws(given: Mapping[str, PythonLaw] | None, scenario: Scenario) -> Mapping[str, PythonLaw]:
    """Return the given laws and those of installed packages that the scenario names; raise
    InputError if it uses none of those given.
    """
    names = scenario.protocols()
    if given is not None and not isinstance(given, Mapping):
        raise InputError("run", "laws", f"must be a dictionary by name, got {shown(given)}")
    check_laws(given or {}, protocols.load())
    if given and not any(name in names for name in given):
        which = " or ".join(map(str, given))
        raise InputError("run", "laws", f"no flow uses the law {which}", "set its protocol")
    if all(name in protocols.load() for name in names):
        return given or {}
    from waterfill.runs import law_files

    return law_files.with_installed(given or {}, names)


def _threads(count: Any) -> int | None:
    """Return a valid number of threads, or None; raise InputError for any other value."""
    if count is None:
        return None
    if type(count) is bool or not isinstance(count, Integral):
        problem = f"must be a whole number or None, got {shown(count)}"
    elif 1 <= int(count) <= MAX_THREADS:
        return int(count)
    else:
        problem = f"must be from 1 to {MAX_THREADS}, got {count}"
    raise InputError("command line", "threads", problem)


def scenario_of(
    scenario: Source | object,
    sets: Mapping[str, Any] | None = None,
    protocol: str | None = None,
    seed: int | None = None,
) -> Scenario:
    """Return the checked scenario of a file, a dictionary or an object, with overrides.

    Raises InputError for what is wrong, and for a protocol that no flow would use.
    """
    if sets is not None and not isinstance(sets, Mapping):
        raise InputError("run", "set", f"must be a dictionary of keys, got {shown(sets)}")
    every = dict(sets or {}) | ({} if protocol is None else {"protocol": protocol})
    if isinstance(scenario, Mapping):
        found = from_dict(scenario, sets=every)
    elif isinstance(scenario, (str, os.PathLike)):
        found = load(scenario, every)
    elif isinstance(scenario, Scenario):
        found = scenario
        if every:
            written = scenario.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)
            found = from_dict(written, scenario.source, every)
    elif isinstance(scenario, Checkable):
        found = scenario.checked(every)
    else:
        why = "must be the path of a scenario file, a dictionary or a waterfill.Scenario"
        raise InputError("run", "scenario", f"{why}, got {shown(scenario)}")
    if protocol is not None and not found.uses_default:
        raise InputError("run", "protocol", f"no effect: {NO_DEFAULT_FLOW}")
    if seed is None:
        return found
    try:
        return found.model_copy(update={"seed": whole(seed)})
    except ValueError as error:
        raise found.error("seed", str(error)) from None
