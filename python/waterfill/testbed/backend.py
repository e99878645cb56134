"""`run --on linux`: the scenario checked, run in the testbed, answered as every backend answers."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

from waterfill import maxmin, network, protocols
from waterfill.errors import shown
from waterfill.progress import Report
from waterfill.protocols import ProtocolInfo
from waterfill.results import Document, Result, summarise
from waterfill.scenario import Scenario
from waterfill.testbed import checks, front, kernel, plan
from waterfill.testbed.outcome import Outcome

# The kernel's are fractions of 1024.
_SAME_PARAM = 0.005


def known() -> dict[str, ProtocolInfo]:
    """The protocols as this backend has them on the running kernel."""
    return kernel.protocols(protocols.load(), kernel.available())


def resolve(scenario: Scenario) -> Document:
    """The network of a scenario as the testbed runs it.

    Raises InputError for what is wrong with it, and for what the kernel or the machine lacks.
    """
    infos = known()
    for index, flow in enumerate(scenario.flow):
        name = flow.protocol or scenario.protocol
        if name in kernel.PROTOCOLS and "linux" not in infos.get(str(name), _NONE).backends:
            key = "protocol" if flow.protocol is None else f"{scenario.key('flow', index)}.protocol"
            able = ", ".join(info.name for info in infos.values() if "linux" in info.backends)
            raise scenario.error(
                key, f"{shown(name)} is not in this kernel, expected one of {able or 'none'}"
            )
    resolved = network.to_core(scenario, infos, "linux")
    _same_params(scenario, resolved)
    for index, flow in enumerate(resolved["flows"]):
        _once(scenario, scenario.key("flow", index), flow["forward"], flow["reverse"])
    for index, source in enumerate(resolved["traffic"]):
        key = scenario.key("traffic", index)
        _once(scenario, key, source["path"], ())
        if any(not _duplex(scenario, resolved, i) for i in source["path"]):
            raise scenario.error(
                f"{key}.path", "expected duplex links on linux, where iperf3 talks both ways"
            )
    return resolved


def _same_params(scenario: Scenario, resolved: Document) -> None:
    """The kernel's laws are as they are: a parameter may be set to what it is there."""
    for protocol in dict.fromkeys(flow["protocol"] for flow in resolved["flows"]):
        there = kernel.params(protocol)
        for name, value in resolved["params"].get(protocol, {}).items():
            key = f"params.{protocol}.{name}"
            if name not in there:
                raise scenario.error(key, "expected none on linux, where the kernel decides")
            fixed = there[name]
            if isinstance(value, (bool, str)) or isinstance(fixed, (bool, str)):
                same = value == fixed
            else:
                same = math.isclose(value, fixed, rel_tol=_SAME_PARAM)
            if not same:
                raise scenario.error(
                    key, f"expected the kernel's {shown(fixed)} on linux, got {shown(value)}"
                )


_NONE = ProtocolInfo("", "", (), 0)


def _duplex(scenario: Scenario, resolved: Document, index: int) -> bool:
    """Whether a direction's link has another direction."""
    name = resolved["links"][index]["name"].removesuffix(":rev")
    return next(link.duplex for link in scenario.link if link.name == name)


def _once(scenario: Scenario, key: str, *ways: tuple[int, ...] | list[int]) -> None:
    """A router knows one way to an address: no path comes to a node twice."""
    directions = network.Network(scenario).directions
    for way in ways:
        nodes = [directions[i].start for i in way] + [directions[i].end for i in way[-1:]]
        for node in nodes:
            if nodes.count(node) > 1:
                raise scenario.error(
                    f"{key}.path",
                    f"expected a path that meets each node once, got {shown(node)} twice",
                )


def prepare(scenario: Scenario) -> tuple[Document, plan.Plan]:
    """The resolved network of a scenario and what to build for it; InputError as `run`."""
    resolved = resolve(scenario)
    planned = plan.of(scenario, resolved, kernel.congestion(kernel.available()))
    checks.refuse(planned, scenario)
    return resolved, planned


def run(scenario: Scenario, progress: Report | None = None) -> Result:
    """Runs a checked scenario; the result's summary has `checks` and `testbed` beside the usual.

    Raises InputError when the scenario, the kernel or the machine cannot do it, and
    RunError when the network could not be built or a part of it died.
    """
    resolved, _ = prepare(scenario)
    offered = kernel.available()
    job = {"scenario": scenario.to_toml(), "network": resolved, "available": offered}
    began = time.perf_counter()
    raw = front.run(job, resolved["duration_s"], progress)
    outcome = Outcome(raw, resolved, time.perf_counter() - began)
    core = outcome.core
    targets: Mapping[str, float] = protocols.targets(resolved["params"])
    active = [None if f["active_s"] is None else tuple(f["active_s"]) for f in core["flows"]]
    summary = summarise(
        core,
        network=resolved,
        backend="linux",
        params={f["protocol"]: kernel.params(f["protocol"]) for f in resolved["flows"]},
        max_min_bps=maxmin.mean_rates(resolved, targets, active, maxmin.lives_in(core["flows"])),
        interrupted_at_s=raw["interrupted_at_s"],
    )  # fmt: skip
    summary["checks"] = checks.after(raw, resolved, core["flows"], core["links"])
    summary["testbed"] = raw["facts"]
    return Result(
        summary, network=resolved, scenario_toml=scenario.to_toml(), series=outcome.series
    )
