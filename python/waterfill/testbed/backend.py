"""The backend of `run --on linux`, which checks a scenario and runs it in the testbed."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import ClassVar

from waterfill.contract.network import Network, ParamValue
from waterfill.errors import InputError, shown
from waterfill.network import maxmin, protocols
from waterfill.network.graph import Direction, Graph
from waterfill.network.protocols import ProtocolInfo
from waterfill.network.resolve import decimation, to_core
from waterfill.runs.backend import PLAIN, Backend, RunOptions
from waterfill.runs.progress import Report
from waterfill.runs.result import Result, summarise
from waterfill.scenario.document import Scenario
from waterfill.scenario.units import WINDOW
from waterfill.testbed import checks, cohabit, daemon, front, kernel, plan, variation
from waterfill.testbed.outcome import Outcome

# The kernel stores parameters as fractions of 1024.
_SAME_PARAM = 0.005


def known() -> dict[str, ProtocolInfo]:
    """Return all protocols, with linux in the `backends` of those that the kernel supports."""
    return kernel.protocols(protocols.load(), kernel.offered())


def _no_daemon(name: str) -> tuple[str, str]:
    """Return the problem and the advice where the daemon that runs a law is missing or too old."""
    if daemon.binary() is not None:
        return f"the daemon {kernel.LOADER} here does not have {shown(name)}", "type make build"
    problem = f"{shown(name)} needs the daemon {kernel.LOADER}, which was not built"
    return problem, "in a checkout, tools/daemon.sh names what is missing; then type make build"


def resolve(scenario: Scenario) -> Network:
    """Return the resolved network of a scenario as the testbed runs it.

    Raises InputError for what is wrong with it, and for what the kernel or the host lacks.
    """
    infos, registry = known(), protocols.load()
    for index, flow in enumerate(scenario.flow):
        name = flow.protocol or scenario.protocol
        loaded = str(name) in registry and kernel.is_loaded(registry[str(name)])
        possible = loaded or name in kernel.PROTOCOLS
        if possible and "linux" not in infos.get(str(name), _NONE).backends:
            key = "protocol" if flow.protocol is None else f"{scenario.key('flow', index)}.protocol"
            if loaded:
                raise scenario.error(key, *_no_daemon(str(name)))
            able = ", ".join(info.name for info in infos.values() if "linux" in info.backends)
            raise scenario.error(
                key, f"{shown(name)} is not in this kernel, which has {able or 'none'}"
            )
    resolved = to_core(scenario, infos, "linux")
    _same_params(scenario, resolved)
    _same_windows(scenario, resolved)
    directions = Graph(scenario).directions
    for index, group in enumerate(resolved.flows):
        key = scenario.key("flow", index)
        _once(scenario, directions, key, group.forward, group.reverse)
    for index, source in enumerate(resolved.traffic):
        key = scenario.key("traffic", index)
        _once(scenario, directions, key, source.path, ())
        if any(not directions[i].link.duplex for i in source.path):
            raise scenario.error(
                f"{key}.path", "must have only duplex links on linux, where iperf3 talks both ways"
            )
    return resolved


def _same_params(scenario: Scenario, resolved: Network) -> None:
    """Raise InputError for a parameter that differs from the kernel's fixed value.

    A loaded law takes its parameters, except for variants that its fixed-point version lacks.
    """
    registry = known()
    for protocol in dict.fromkeys(flow.protocol for flow in resolved.flows):
        there = kernel.params(protocol)
        if kernel.is_loaded(registry[protocol]):
            for name in _fixed(registry[protocol]):
                able = kernel.variant(registry[protocol], name)
                value = resolved.params.get(protocol, {}).get(name, able[0])
                if value not in able:
                    raise scenario.error(
                        f"params.{protocol}.{name}",
                        f"must be {shown(able[0])} on linux, got {shown(value)}",
                    )
            continue
        for name, value in resolved.params.get(protocol, {}).items():
            key = f"params.{protocol}.{name}"
            if name not in there:
                raise scenario.error(key, "not possible on linux, where the kernel decides")
            fixed = there[name]
            if isinstance(value, (bool, str)) or isinstance(fixed, (bool, str)):
                same = value == fixed
            else:
                same = math.isclose(value, fixed, rel_tol=_SAME_PARAM)
            if not same:
                raise scenario.error(
                    key, f"must be the kernel's {shown(fixed)} on linux, got {shown(value)}"
                )


# The shortest window that the daemon takes.
_MIN_WINDOW_S = 1e-3


def _same_windows(scenario: Scenario, resolved: Network) -> None:
    """Raise InputError for a window of the smallest RTT that the daemon cannot set.

    One daemon runs a law for all its hosts.
    """
    first: dict[str, float | None] = {}
    for index, flow in enumerate(resolved.flows):
        key = f"{scenario.key('flow', index)}.base_rtt_window"
        window_s = flow.base_rtt_window_s
        if window_s is not None and window_s < _MIN_WINDOW_S:
            got = f"got {WINDOW.format(window_s)}"
            raise scenario.error(key, f"must be at least 1 ms on linux, {got}")
        wanted_s = first.setdefault(flow.protocol, window_s)
        if wanted_s != window_s:
            text = [WINDOW.format(math.inf if s is None else s) for s in (wanted_s, window_s)]
            why = f"must be the same for all flows of {flow.protocol} on linux"
            raise scenario.error(key, f"{why}, {shown(text[0])}, got {shown(text[1])}")


_NONE = ProtocolInfo("", "", (), 0)


def _fixed(info: ProtocolInfo) -> list[str]:
    """Return the parameters of a loaded law that its daemon cannot set."""
    law = daemon.laws()[info.name]
    return [p.name for p in info.params if p.name not in (*law.parameters, daemon.TARGET)]


def _once(
    scenario: Scenario, directions: Sequence[Direction], key: str, *ways: tuple[int, ...]
) -> None:
    """Raise InputError if a path visits a node twice. A router has only one route per address."""
    for way in ways:
        nodes = [directions[i].start for i in way] + [directions[i].end for i in way[-1:]]
        for node in nodes:
            if nodes.count(node) > 1:
                raise scenario.error(
                    f"{key}.path", f"must visit each node once, but visits {shown(node)} twice"
                )


def prepare(scenario: Scenario) -> tuple[Network, plan.Plan]:
    """Return a scenario's resolved network and its plan; raise InputError if this host cannot run
    the scenario.
    """
    resolved = resolve(scenario)
    laws = kernel.congestion(kernel.offered(), protocols.load())
    planned = plan.of(scenario, resolved, laws, _targets(scenario, resolved))
    cohabit.refuse(scenario, resolved)
    variation.refuse(scenario, resolved)
    checks.refuse(planned, scenario, laws)
    return resolved, planned


def _targets(scenario: Scenario, resolved: Network) -> Mapping[str, float]:
    try:
        return protocols.targets(resolved.params)
    except ValueError as error:
        raise scenario.core_error(error) from None


def params_of(resolved: Network) -> dict[str, dict[str, ParamValue | None]]:
    """Return all parameters of the protocols in use: values of the kernel, and parameters of loaded
    laws.
    """
    used, infos = dict.fromkeys(flow.protocol for flow in resolved.flows), known()
    given = protocols.with_defaults(_loaded(resolved), resolved.params, infos)
    for name, values in given.items():
        values |= {k: kernel.variant(infos[name], k)[0] for k in _fixed(infos[name])}
    return {name: given.get(name) or dict(kernel.params(name)) for name in used}


def _loaded(resolved: Network) -> list[str]:
    """Return the protocols of a network whose laws a daemon loads into the kernel."""
    infos = known()
    return [
        p for p in dict.fromkeys(f.protocol for f in resolved.flows) if kernel.is_loaded(infos[p])
    ]


def _refused(scenario: Scenario, params: Mapping[str, daemon.Params], said: str) -> InputError:
    """Return the InputError for a daemon's refusal `said`, which begins with the law's name."""
    protocol, _, words = said.partition(": ")
    if protocol not in params:
        return scenario.error("", said)
    name, message = daemon.refused(words, params[protocol])
    return scenario.error("" if name is None else f"params.{protocol}.{name}", message)


def run(scenario: Scenario, progress: Report | None = None) -> Result:
    """Run a checked scenario. The result's summary also has `checks` and `testbed`.

    Raises InputError if the scenario, the kernel or the host does not allow it, and RunError if the
    network could not be built or a part of it failed.
    """
    resolved, _ = prepare(scenario)
    params, targets = params_of(resolved), _targets(scenario, resolved)
    infos, loadable = protocols.load(), daemon.laws()
    laws = kernel.congestion(kernel.offered(), infos, daemon.run_name())
    used = {flow.protocol for flow in resolved.flows}
    signals = {p: daemon.columns(loadable[p], infos[p]) for p in _loaded(resolved)}
    for key, message in protocols.misfits(resolved, params, infos):
        protocols.warn_of_misfit(scenario.source, key, message)
    job = {
        "scenario": scenario.to_toml(),
        "network": resolved.to_dict(),
        "congestion": {name: asdict(law) for name, law in laws.items() if name in used},
        "params": params,
        "targets": targets,
    }
    began = time.perf_counter()
    try:
        raw = front.run(job, resolved.duration_s, progress)
    except front.Refusal as refusal:
        raise _refused(scenario, params, str(refusal)) from None
    wall_s = time.perf_counter() - began
    outcome = Outcome(raw, resolved, wall_s, signals, measures_flows=scenario.measures_flows)
    core = outcome.core
    if scenario.measures_flows:
        resolved = replace(resolved, measure_s=outcome.window)
    active = maxmin.windows_in(core.flows)
    summary = summarise(
        core,
        network=resolved,
        backend="linux",
        params=params,
        max_min_bps=maxmin.mean_rates(resolved, targets, active, maxmin.lives_in(core.flows)),
        interrupted_at_s=raw.interrupted_at_s,
    )  # fmt: skip
    summary.checks = checks.after(raw, resolved, core.flows, core.links)
    summary.testbed = raw.facts
    if (decimated := decimation(scenario, resolved)) is not None:
        summary.decimated = decimated
    return Result(
        summary, network=resolved, scenario_toml=scenario.to_toml(), series=outcome.series
    )


class Linux(Backend):
    """The backend that runs scenarios on the host's Linux kernel."""

    measures_host: ClassVar[bool] = True

    def known(self) -> dict[str, ProtocolInfo]:
        """Return all protocols, with linux among the backends of those that this kernel
        supports.
        """
        return known()

    def prepare(self, scenario: Scenario, options: RunOptions = PLAIN) -> None:
        """Check a scenario against the kernel and the host; see `Backend.prepare`."""
        prepare(scenario)

    def run(
        self, scenario: Scenario, options: RunOptions = PLAIN, progress: Report | None = None
    ) -> Result:
        """Run a scenario; see `Backend.run`."""
        return run(scenario, progress)
