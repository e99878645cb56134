"""The core's two engines as backends: the packet simulator (`Sim`) and the fluid (`Fluid`)."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isinf
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from waterfill import _core
from waterfill.contract.network import Network
from waterfill.contract.summary import CoreFlow, CoreSummary, StepCheck
from waterfill.errors import InputError
from waterfill.network import maxmin, protocols, resolve
from waterfill.runs import interrupt, laws
from waterfill.runs.backend import Backend
from waterfill.runs.capture import Capture
from waterfill.runs.laws import PythonLaw
from waterfill.runs.progress import Report, Tick
from waterfill.runs.result import Result, summarise
from waterfill.scenario.document import Scenario

if TYPE_CHECKING:
    from waterfill.runs.steps import StepLog

Simulation: TypeAlias = "_core.Simulation | _core.Fluid"

# Ctrl-C and progress are handled between slices of this wall time.
_SLICE_WALL_S = 0.1
# A fluid run's step is halved until no rate changes by more, up to `_MAX_HALVINGS` times.
_MAX_CHANGE = 0.01
_MAX_HALVINGS = 5
# Simulated time of the first slice; slices then double, up to a number of events.
_FIRST_SLICE_S = 1e-3
_SLICE_EVENTS = 1 << 20


LONG_RUN_S = 86_400.0
"""Computing time beyond which a run is warned of before it starts: a day of one CPU."""


class LongRun(UserWarning):
    """A run is expected to take longer than `LONG_RUN_S`."""


class Sim(Backend):
    """The packet-level simulator."""

    name: ClassVar[str] = "sim"

    def known(self) -> dict[str, protocols.ProtocolInfo]:
        """Return the protocols of this build of the core."""
        return dict(protocols.load())

    def prepare(self, scenario: Scenario, own: Mapping[str, PythonLaw] | None = None) -> None:
        """Check a scenario; see `Backend.prepare`. `own` is a law in Python, by its name."""
        known = self.known()
        name = None
        if own:
            name, _ = laws.check(own, known, self.name)
            known |= laws.infos([name])
        resolved = resolve.to_core(scenario, known, self.name)
        if name is not None:
            resolved = laws.for_core(resolved, name)
        try:
            protocols.targets(resolved.params)
        except ValueError as error:
            raise scenario.core_error(error) from None

    def run(
        self,
        scenario: Scenario,
        progress: Report | None = None,
        capture: Capture | None = None,
        threads: int | None = 1,
        own: Mapping[str, PythonLaw] | None = None,
        steps: StepLog | None = None,
    ) -> Result:
        """Run a scenario; see `Backend.run`.

        The packet simulator can record its packets, and run on several threads: None takes what
        is predicted to be the fastest. `own` is a law in Python, by its name; it has one thread.
        `steps` logs the steps of its laws, on one thread as well.
        """
        known = self.known()
        if own:
            name, law = laws.check(own, known, self.name)
            return self._run_own(scenario, name, law, progress)
        resolved = resolve.to_core(scenario, known, self.name)
        try:
            targets = protocols.targets(resolved.params)
            pace = _Pace(scenario.duration, progress)
            simulation = self.start(resolved, scenario, pace)
        except ValueError as error:
            raise scenario.core_error(error) from None
        if capture is not None and isinstance(simulation, _core.Simulation):
            capture.start(simulation, resolved)
        elif threads != 1 and steps is None and isinstance(simulation, _core.Simulation):
            simulation.set_threads(threads)
        if steps is not None:
            steps.start(simulation, resolved)
        _warn(simulation, scenario)
        try:
            interrupted_at_s = _advance(simulation, scenario.duration, pace)
        except ValueError as error:  # it outgrows the memory
            raise scenario.core_error(error) from None
        if capture is not None and isinstance(simulation, _core.Simulation):
            capture.finish(simulation)
        used = [flow.protocol for flow in [*resolved.flows, *resolved.arriving]]
        params = protocols.with_defaults(used, resolved.params, known)
        if steps is not None:
            steps.finish(simulation, self.name, resolved, params)
        core: CoreSummary = simulation.summary()
        step_check: StepCheck | None = None
        if interrupted_at_s is None:
            simulation, core, step_check = self.refine(
                resolved, scenario, simulation, core, progress
            )
        summary = summarise(
            core,
            network=resolved,
            backend=self.name,
            params=params,
            max_min_bps=_max_min(resolved, targets, core["flows"]),
            interrupted_at_s=interrupted_at_s,
        )
        if step_check is not None:
            summary["check_step"] = step_check
        return Result(
            summary,
            network=resolved,
            scenario_toml=scenario.to_toml(),
            series=simulation.series,
            arrivals=simulation.arrivals if isinstance(simulation, _core.Simulation) else None,
        )

    def _run_own(
        self, scenario: Scenario, name: str, law: PythonLaw, progress: Report | None
    ) -> Result:
        """Run a scenario with a law in Python."""
        known = self.known() | laws.infos([name])
        resolved = resolve.to_core(scenario, known, self.name)
        core_network = laws.for_core(resolved, name)
        started = False
        try:
            targets = {**protocols.targets(core_network.params), name: law.target}
            pace = _Pace(scenario.duration, progress)
            simulation = _core.Simulation(core_network, law, pace)
            started = True
            interrupted_at_s = _advance(simulation, scenario.duration, pace)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if type(error).__module__ == "pyo3_runtime":  # a panic of the core is no law's error
                raise
            # SystemExit too: a law's would end the command, perhaps with 0 and without an answer.
            found = laws.raised(name, error)
            if found is None and not started and isinstance(error, ValueError):
                raise scenario.core_error(error) from None
            if found is None:
                found = InputError("run", f"{laws.KEY}.{name}", laws.text_of(error))
            raise found from error
        core: CoreSummary = simulation.summary()
        laws.from_core(core, name)
        used = [flow.protocol for flow in [*resolved.flows, *resolved.arriving]]
        summary = summarise(
            core,
            network=resolved,
            backend=self.name,
            params=protocols.with_defaults(used, resolved.params, known),
            max_min_bps=_max_min(resolved, targets, core["flows"]),
            interrupted_at_s=interrupted_at_s,
            laws=laws.summary(name, law),
        )
        return Result(
            summary,
            network=resolved,
            scenario_toml=scenario.to_toml(),
            series=simulation.series,
            arrivals=simulation.arrivals,
        )

    def start(
        self, resolved: Network, scenario: Scenario, check: Callable[[], object]
    ) -> Simulation:
        """Build the run in the core; raise ValueError when it cannot run, and what `check` does."""
        return _core.Simulation(resolved, check=check)

    def refine(
        self,
        resolved: Network,
        scenario: Scenario,
        simulation: Simulation,
        core: CoreSummary,
        progress: Report | None,
    ) -> tuple[Simulation, CoreSummary, StepCheck | None]:
        """Return the run to report, its summary, and the check of its step if there was one."""
        return simulation, core, None


class Fluid(Sim):
    """The fluid model: the same laws in steps of time."""

    name: ClassVar[str] = "fluid"

    def start(
        self, resolved: Network, scenario: Scenario, check: Callable[[], object]
    ) -> Simulation:
        """Build the run in the core; raise ValueError when it cannot run, and what `check` does."""
        return _core.Fluid(resolved, scenario.step, check)

    def refine(
        self,
        resolved: Network,
        scenario: Scenario,
        simulation: Simulation,
        core: CoreSummary,
        progress: Report | None,
    ) -> tuple[Simulation, CoreSummary, StepCheck | None]:
        """Halve the step until rates agree, where the scenario has `check_step`."""
        if not scenario.check_step:
            return simulation, core, None
        return _halve(resolved, simulation, core, progress)


def _warn(simulation: Simulation, scenario: Scenario) -> None:
    """Warn of a run that is expected to take longer than `LONG_RUN_S` of one CPU."""
    needs = simulation.estimate()
    if needs["cpu_s"] > LONG_RUN_S:
        warnings.warn(
            f"{scenario.source}: {needs['events_key']}: expected to take about "
            f"{needs['events']:.1e} events, {_long(needs['cpu_s'])} of one CPU; Ctrl-C ends the "
            "run with the results so far",
            LongRun,
            stacklevel=3,
        )


def _long(seconds: float) -> str:
    """Return a long time in words."""
    days = seconds / 86_400
    return f"{days:.0f} days" if days < 1000 else f"{days / 365.25:.2g} years"


class _Pace:
    """Reports a run's progress: after each slice, and from within one that takes long.

    What the report raises stops the run.
    """

    def __init__(self, duration_s: float, progress: Report | None) -> None:
        self._duration_s, self._progress = duration_s, progress
        self._started = self._reported = time.perf_counter()
        self._now_s, self._hops = 0.0, 0

    def __call__(self) -> None:
        """Report once more how far the last slice came, if that was some time ago."""
        interrupt.check()
        if time.perf_counter() - self._reported >= _SLICE_WALL_S:
            self._report()

    def sliced(self, now_s: float, packet_hops: int) -> None:
        """Report the end of a slice."""
        self._now_s, self._hops = now_s, packet_hops
        self._report()

    def _report(self) -> None:
        self._reported = time.perf_counter()
        if self._progress is not None:
            wall_s = self._reported - self._started
            self._progress(Tick(self._now_s, self._duration_s, self._hops, wall_s))


def _advance(simulation: Simulation, duration_s: float, pace: _Pace) -> float | None:
    """Run to the end in slices of about `_SLICE_WALL_S`; return the time reached if interrupted."""
    now_s, step_s, more = 0.0, _FIRST_SLICE_S, False
    try:
        with interrupt.listening():
            while more or now_s < duration_s:
                interrupt.check()
                started = time.perf_counter()
                until_s = min(duration_s, now_s + step_s)
                more = simulation.advance(until_s, _SLICE_EVENTS)
                took_s = max(time.perf_counter() - started, 1e-6)
                step_s *= min(2.0, max(0.5, _SLICE_WALL_S / took_s))
                done = simulation.progress()
                now_s = min(until_s, done["now_s"]) if more else until_s
                pace.sliced(now_s, done["packet_hops"])
    except KeyboardInterrupt:
        return simulation.progress()["now_s"]
    return None


def _halve(
    resolved: Network, coarse: Simulation, core: CoreSummary, progress: Report | None
) -> tuple[Simulation, CoreSummary, StepCheck]:
    """Repeat the run with half the step until rates change little; return the last complete one.

    Its check holds its step, the step of the run it was compared with, the largest relative change
    of a flow's rate between the two, and whether that is small enough.
    """
    duration_s = resolved.duration_s
    for attempt in range(1, _MAX_HALVINGS + 1):
        step_s = core["engine"]["step_s"]
        pace = _Pace(duration_s, progress)
        fine = _core.Fluid(resolved, step_s / 2, pace)
        if _advance(fine, duration_s, pace) is not None:
            return (
                coarse,
                core,
                StepCheck(step_s=step_s, half_step_s=None, largest_change=None, ok=False),
            )
        halved = fine.summary()
        change = largest_change(core, halved)
        check: StepCheck = {
            "step_s": step_s,
            "half_step_s": step_s / 2,
            "largest_change": change,
            "ok": change < _MAX_CHANGE,
        }
        if check["ok"] or attempt == _MAX_HALVINGS:
            break
        coarse, core = fine, halved
    return coarse, core, check


def largest_change(one: CoreSummary, other: CoreSummary) -> float:
    """Return the largest difference of a flow's rate between two runs ÷ the larger rate: 0 to 1."""
    rates = [
        (a["rate_bps"] or 0.0, b["rate_bps"] or 0.0)
        for a, b in zip(one["flows"], other["flows"], strict=True)
    ]
    return max((abs(a - b) / max(a, b) for a, b in rates if max(a, b) > 0), default=0.0)


def _max_min(
    resolved: Network, targets: Mapping[str, float], flows: Sequence[CoreFlow]
) -> list[float | None]:
    """Return each flow's mean max-min share in its own window; completed flows have left.

    An entry for `count` flows counts as one flow with `count` times the weight and demand.
    """
    active = maxmin.windows_in(flows)
    lives = maxmin.lives_in(flows)
    if not any("count" in flow for flow in flows):
        return maxmin.mean_rates(resolved, targets, active, lives)
    counts = [flow["count"] for flow in flows]
    shares = maxmin.mean_rates(_by_class(resolved), targets, active, lives)
    return [
        None if share is None else share / count
        for share, count in zip(shares, counts, strict=True)
    ]


def _by_class(resolved: Network) -> Network:
    """Return the network with one flow per entry whose flows are alike."""
    flows = [
        flow
        if flow.differ or flow.count == 1
        else flow._replace(
            count=1,
            weight=flow.weight * flow.count,
            demand_bps=None if isinf(flow.limit_bps) else flow.limit_bps * flow.count,
            access_bps=None,
        )
        for flow in resolved.flows
    ]
    return replace(resolved, flows=tuple(flows))
