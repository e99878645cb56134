"""The core's two engines as backends: the packet simulator `Sim` and the fluid model `Fluid`."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from math import isinf
from typing import ClassVar, Generic, TypeVar

from waterfill import _core
from waterfill.contract.network import Network, ParamValue
from waterfill.contract.summary import CoreFlow, CoreSummary, FlowWarning, StepCheck
from waterfill.errors import InputError
from waterfill.network import maxmin, protocols, resolve
from waterfill.runs import anomalies, interrupt, laws, window
from waterfill.runs.backend import PLAIN, Backend, RunOptions
from waterfill.runs.laws import BoundLaw, PythonLaw
from waterfill.runs.progress import Report, Tick
from waterfill.runs.result import Columns, Result, last_end_s, summarise
from waterfill.scenario.document import Scenario

Simulation = TypeVar("Simulation", _core.Simulation, _core.Fluid)

# Ctrl-C and progress are handled between slices of this wall time.
_SLICE_WALL_S = 0.1
# A fluid run's step is halved until no rate changes by more, up to `_MAX_HALVINGS` times.
_MAX_CHANGE = 0.01
_MAX_HALVINGS = 5
# Simulated time of the first slice; slices then double, up to a number of events.
_FIRST_SLICE_S = 1e-3
_SLICE_EVENTS = 1 << 20


LONG_RUN_S = 86_400.0
"""CPU time (s) above which a warning precedes the run: one day."""


class LongRun(UserWarning):
    """Warning that a run is expected to take longer than `LONG_RUN_S`."""


@dataclass(frozen=True)
class _Job:
    """A resolved run. `laws` are the laws in Python that it uses."""

    scenario: Scenario
    network: Network
    known: Mapping[str, protocols.ProtocolInfo]
    laws: Mapping[str, PythonLaw] = field(default_factory=dict)

    def errors(self, *, building: bool = False) -> AbstractContextManager[None]:
        """Return a context that converts exceptions of the core or of a law to InputError."""
        if self.laws:
            return laws.errors(self.laws, self.scenario, building=building)
        return _core_errors(self.scenario)

    def targets(self) -> dict[str, float]:
        """Return the protocols' target utilizations; raise ValueError for a wrong parameter."""
        own = {name: law.target for name, law in self.laws.items()}
        return protocols.targets(self.network.params) | own

    def bound_laws(self) -> dict[str, BoundLaw]:
        """Return the laws in Python with the values of their parameters."""
        values = self.params
        return {name: laws.bound(law, values[name]) for name, law in self.laws.items()}

    @property
    def params(self) -> dict[str, dict[str, ParamValue | None]]:
        """Return the parameters of all protocols in use."""
        network = self.network
        return protocols.with_defaults(network.protocols, network.params, self.known)

    def ending_with_flows(self, core: CoreSummary) -> _Job | None:
        """Return the run with a window that ends with its last flow, or None if it needs no other.

        The core fills its statistics while it runs, so the run has to be repeated.
        """
        end_s = self.scenario.duration
        if self.scenario.measures_flows:
            end_s = min(end_s, last_end_s((flow.stop_s, flow.completed_s) for flow in core.flows))
        if end_s == self.scenario.duration:
            return None
        window = (self.network.measure_s[0], end_s)
        return replace(self, network=replace(self.network, measure_s=window))


class Engine(Backend, Generic[Simulation]):
    """Base class of the backends that run in the core."""

    name: ClassVar[str]

    @abstractmethod
    def start(self, job: _Job, options: RunOptions, check: Callable[[], object]) -> Simulation:
        """Build the run in the core; raise ValueError or an exception of `check` on failure."""

    def refine(
        self, job: _Job, simulation: Simulation, core: CoreSummary, progress: Report | None
    ) -> tuple[Simulation, CoreSummary, StepCheck | None]:
        """Return the run to report, its summary, and the check of its time step, or None without a
        check.
        """
        return simulation, core, None

    def finish(self, simulation: Simulation, options: RunOptions) -> None:
        """Finish the work that `start` began for the run's options, such as a capture."""

    def arrivals(self, simulation: Simulation) -> Callable[[], Columns] | None:
        """Return the method that lists flows started by traffic sources, or None if the backend has
        none.
        """
        return None

    def messages(self, simulation: Simulation) -> Callable[[], Columns] | None:
        """Return the method that lists the messages of applications, or None if the backend has
        none.
        """
        return None

    def known(self) -> dict[str, protocols.ProtocolInfo]:
        """Return the protocols of this build of the core."""
        return dict(protocols.load())

    def prepare(self, scenario: Scenario, options: RunOptions = PLAIN) -> None:
        """Check a scenario; see `Backend.prepare`."""
        job = self._job(scenario, options)
        with _core_errors(scenario):
            job.targets()

    def run(
        self, scenario: Scenario, options: RunOptions = PLAIN, progress: Report | None = None
    ) -> Result:
        """Run a scenario; see `Backend.run`."""
        job = self._job(scenario, options)
        pace = _Pace(scenario.duration, progress)
        with job.errors(building=True):
            targets = job.targets()
            simulation = self.start(job, options, pace)
        if options.steps is not None:
            options.steps.start(simulation, job.network)
        _warn(simulation, scenario)
        for key, message in protocols.misfits(job.network, job.params, job.known):
            protocols.warn_of_misfit(scenario.source, key, message)
        _warn_of_idle_window(job)
        with job.errors():  # it outgrows the memory, or a law raises
            interrupted_at_s = _advance(simulation, scenario.duration, pace)
        self.finish(simulation, options)
        params = job.params
        if options.steps is not None:
            options.steps.finish(simulation, self.name, job.network, params)
        core, step_check = CoreSummary.read(simulation.summary()), None
        if interrupted_at_s is None and (again := job.ending_with_flows(core)) is not None:
            job = again
            del simulation  # its memory is free before the second run starts
            pace = _Pace(scenario.duration, progress)
            with job.errors():
                simulation = self.start(
                    job, replace(options, capture=None, steps=None, qlog=None), pace
                )
                interrupted_at_s = _advance(simulation, scenario.duration, pace)
            core = CoreSummary.read(simulation.summary())
        if interrupted_at_s is None:
            simulation, core, step_check = self.refine(job, simulation, core, progress)
        shares_bps = _max_min(job.network, targets, core["flows"])
        _warn_of_outgrown(job, core, shares_bps)
        summary = summarise(
            core,
            network=job.network,
            backend=self.name,
            params=params,
            max_min_bps=shares_bps,
            interrupted_at_s=interrupted_at_s,
            laws=laws.summaries(job.laws) if job.laws else None,
        )
        if found := self._warnings(job, simulation, core, shares_bps, interrupted_at_s is None):
            summary.warnings = found
        if step_check is not None:
            summary["check_step"] = step_check
        if (decimated := resolve.decimation(scenario, job.network)) is not None:
            summary.decimated = decimated
        return Result(
            summary,
            network=job.network,
            scenario_toml=scenario.to_toml(),
            series=simulation.series,
            arrivals=self.arrivals(simulation),
            messages=self.messages(simulation),
        )

    def _warnings(
        self,
        job: _Job,
        simulation: Simulation,
        core: CoreSummary,
        shares_bps: Sequence[float | None],
        complete: bool,
    ) -> list[FlowWarning]:
        """Return the warnings of a run's flows, those of the window only if the run is complete."""

        def series() -> Columns:
            return simulation.series("flows")

        l4s = anomalies.L4S | {name for name, law in job.laws.items() if law.ecn == "l4s"}
        found = anomalies.warnings_of(job.network, core, shares_bps, series, l4s)
        if complete:
            explicit = {name for name, info in job.known.items() if info.kind == "explicit"}
            found += window.warnings_of(job.network, core, explicit, series)
        return found

    def _job(self, scenario: Scenario, options: RunOptions) -> _Job:
        """Resolve a scenario; raise InputError when this engine cannot run the scenario."""
        known = self.known()
        own = options.laws
        if own:
            known |= laws.infos(laws.summaries(own))
        network = resolve.to_core(scenario, known, self.name)
        return _Job(scenario, network, known, laws.used(own, scenario))


class Sim(Engine[_core.Simulation]):
    """The packet-level simulator."""

    name: ClassVar[str] = "sim"
    supports: ClassVar[frozenset[str]] = frozenset(
        {"capture", "threads", "laws", "steps", "qlog", "endpoints"}
    )

    def start(
        self, job: _Job, options: RunOptions, check: Callable[[], object]
    ) -> _core.Simulation:
        """Build the run, with its records or several threads if `options` ask for them."""
        simulation = _core.Simulation(job.network, job.bound_laws() or None, check)
        if options.endpoints is not None:
            options.endpoints.attach(simulation, job.network)
        records = [record for record in (options.capture, options.qlog) if record is not None]
        for record in records:
            record.start(simulation, job.network)
        if options.threads != 1 and not records and options.steps is None and not job.laws:
            simulation.set_threads(options.threads)
        return simulation

    def finish(self, simulation: _core.Simulation, options: RunOptions) -> None:
        """End the records, if there are any, and release what several threads have freed."""
        records = [record for record in (options.capture, options.qlog) if record is not None]
        for record in records:
            record.finish(simulation)
        if (
            options.threads != 1 and not records and simulation.set_threads(1) > 1
        ):  # a begun run keeps its number
            release_memory()

    def arrivals(self, simulation: _core.Simulation) -> Callable[[], Columns]:
        """Return the method that lists flows started by traffic sources."""
        return simulation.arrivals

    def messages(self, simulation: _core.Simulation) -> Callable[[], Columns]:
        """Return the method that lists the messages of applications."""
        return simulation.messages


class Fluid(Engine[_core.Fluid]):
    """The fluid-model backend, which runs the laws in time steps."""

    name: ClassVar[str] = "fluid"
    supports: ClassVar[frozenset[str]] = frozenset({"steps"})

    def start(self, job: _Job, options: RunOptions, check: Callable[[], object]) -> _core.Fluid:
        """Build the run with the scenario's time step, or with one that suits the network."""
        return _core.Fluid(job.network, job.scenario.step, check)

    def refine(
        self, job: _Job, simulation: _core.Fluid, core: CoreSummary, progress: Report | None
    ) -> tuple[_core.Fluid, CoreSummary, StepCheck | None]:
        """Halve the time step until rates agree, if the scenario has `check_step`."""
        if not job.scenario.check_step:
            return simulation, core, None
        return _halve(job.network, simulation, core, progress)


@contextmanager
def _core_errors(scenario: Scenario) -> Iterator[None]:
    """Convert a ValueError of the core to an InputError with the scenario's key."""
    try:
        yield
    except InputError:
        raise
    except ValueError as error:
        raise scenario.core_error(error) from None


def _warn(simulation: _core.Simulation | _core.Fluid, scenario: Scenario) -> None:
    """Warn if a run is expected to take longer than `LONG_RUN_S` of CPU time."""
    needs = simulation.estimate()
    if needs["cpu_s"] > LONG_RUN_S:
        warnings.warn(
            f"{scenario.source}: {needs['events_key']}: expected to take about "
            f"{needs['events']:.1e} events, {_long(needs['cpu_s'])} of one CPU; Ctrl-C ends the "
            "run with the results so far",
            LongRun,
            stacklevel=3,
        )


def _warn_of_idle_window(job: _Job) -> None:
    for key, message in resolve.idle_window(job.scenario, job.network, job.known):
        protocols.warn_of_misfit(job.scenario.source, key, message)


def _warn_of_outgrown(job: _Job, core: CoreSummary, shares_bps: Sequence[float | None]) -> None:
    """Warn of flows that miss their share because their hosts keep the RTT of a shorter path."""
    network = job.network
    delays = any(change.delay_s is not None for link in network.links for change in link.changes)
    if not delays and not any(flow.routes for flow in network.flows):
        return
    from waterfill.network import outgrown

    for key, message in outgrown.warnings_of(job.network, job.known, core.flows, shares_bps):
        protocols.warn_of_misfit(job.scenario.source, key, message)


def _long(seconds: float) -> str:
    """Return a duration of a day or more as text, in days or years."""
    days = seconds / 86_400
    return f"{days:.0f} days" if days < 1000 else f"{days / 365.25:.2g} years"


class _Pace:
    """Reporter of a run's progress after each slice, and during slices that take long.

    What the report raises stops the run.
    """

    def __init__(self, duration_s: float, progress: Report | None) -> None:
        self._duration_s, self._progress = duration_s, progress
        self._started = self._reported = time.perf_counter()
        self._now_s, self._hops, self._steps = 0.0, 0, 0

    def __call__(self) -> None:
        """Check for an interrupt; repeat the progress report if the last one is old."""
        interrupt.check()
        if time.perf_counter() - self._reported >= _SLICE_WALL_S:
            self._report()

    def sliced(self, now_s: float, packet_hops: int, steps: int) -> None:
        """Report the progress at the end of a slice."""
        self._now_s, self._hops, self._steps = now_s, packet_hops, steps
        self._report()

    def _report(self) -> None:
        self._reported = time.perf_counter()
        if self._progress is not None:
            wall_s = self._reported - self._started
            tick = Tick(self._now_s, self._duration_s, self._hops, wall_s, self._steps)
            self._progress(tick)


def _advance(
    simulation: _core.Simulation | _core.Fluid, duration_s: float, pace: _Pace
) -> float | None:
    """Advance a run to its end in slices of about `_SLICE_WALL_S`; return the time (s) of an
    interrupt, or None.
    """
    now_s, slice_s, more = 0.0, _FIRST_SLICE_S, False
    fluid = isinstance(simulation, _core.Fluid)
    steps_per_s = 1 / simulation.summary()["engine"]["step_s"] if fluid else 0.0
    try:
        with interrupt.listening():
            while more or now_s < duration_s:
                interrupt.check()
                started = time.perf_counter()
                until_s = min(duration_s, now_s + slice_s)
                more = simulation.advance(until_s, _SLICE_EVENTS)
                took_s = max(time.perf_counter() - started, 1e-6)
                slice_s *= min(2.0, max(0.5, _SLICE_WALL_S / took_s))
                done = simulation.progress()
                now_s = min(until_s, done["now_s"]) if more else until_s
                pace.sliced(now_s, done["packet_hops"], round(now_s * steps_per_s))
    except KeyboardInterrupt:
        return simulation.progress()["now_s"]
    return None


def release_memory() -> None:
    """Return the free memory of all heaps to the system, where the C library can do so.

    glibc gives each thread a heap of its own. What the threads of a run have freed in theirs would
    stay, next to the results that this thread then builds in its own heap.
    """
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _halve(
    resolved: Network, coarse: _core.Fluid, core: CoreSummary, progress: Report | None
) -> tuple[_core.Fluid, CoreSummary, StepCheck]:
    """Repeat a run with half the time step until rates change little; return the last complete run.

    Its check holds its step, the step of the run it was compared with, the largest relative change
    of a flow's rate between the two, and whether that is small enough.
    """
    duration_s = resolved.duration_s
    for attempt in range(1, _MAX_HALVINGS + 1):
        step_s = core.engine["step_s"]
        pace = _Pace(duration_s, progress)
        fine = _core.Fluid(resolved, step_s / 2, pace)
        if _advance(fine, duration_s, pace) is not None:
            return (
                coarse,
                core,
                StepCheck(step_s=step_s, half_step_s=None, largest_change=None, ok=False),
            )
        halved = CoreSummary.read(fine.summary())
        change = largest_change(core, halved)
        check = StepCheck(
            step_s=step_s,
            half_step_s=step_s / 2,
            largest_change=change,
            ok=change < _MAX_CHANGE,
        )
        if check.ok or attempt == _MAX_HALVINGS:
            break
        coarse, core = fine, halved
    return coarse, core, check


def largest_change(one: CoreSummary, other: CoreSummary) -> float:
    """Return the largest relative difference (0 to 1) in a flow's rate between two runs."""
    rates = [
        (a["rate_bps"] or 0.0, b["rate_bps"] or 0.0)
        for a, b in zip(one.flows, other.flows, strict=True)
    ]
    return max((abs(a - b) / max(a, b) for a, b in rates if max(a, b) > 0), default=0.0)


def _max_min(
    resolved: Network, targets: Mapping[str, float], flows: Sequence[CoreFlow]
) -> list[float | None]:
    """Return each flow's mean max-min rate over its own window. Completed flows no longer count.

    An entry for `count` flows counts as one flow with `count` times the weight and demand. Where
    switches choose the links of flows, no share is known.
    """
    if resolved.has_switched:
        return [None] * len(flows)
    active = maxmin.windows_in(flows)
    lives = maxmin.lives_in(flows)
    if not any("count" in flow for flow in flows):
        return maxmin.mean_rates(resolved, targets, active, lives)
    counts = [flow.count for flow in flows]
    shares = maxmin.mean_rates(_by_class(resolved), targets, active, lives)
    return [
        None if share is None else share / count
        for share, count in zip(shares, counts, strict=True)
    ]


def _by_class(resolved: Network) -> Network:
    """Return the network with the identical flows of each entry merged into one flow."""
    flows = [
        flow
        if flow.differ or flow.count == 1
        else flow._replace(
            count=1,
            weight=flow.weight * flow.count,
            demand_bps=None if isinf(flow.limit_bps) else flow.limit_bps * flow.count,
            access_bps=None,
            demands=tuple(
                limit._replace(rate_bps=limit.rate_bps * flow.count) for limit in flow.limits
            ),
        )
        for flow in resolved.flows
    ]
    return replace(resolved, flows=tuple(flows))
