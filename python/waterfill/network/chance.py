"""Chance in a run: the jitter that runs over several seeds add, and runs that lack it.

Two TCP flows in one queue lose packets by the phase of their arrivals: a tenth of a millisecond in
an RTT can reverse their shares. One deterministic run is then one draw and not a result.
"""

from __future__ import annotations

from waterfill.network.graph import Graph
from waterfill.network.protocols import Protocols
from waterfill.scenario.document import Flow, Scenario

RTT_JITTER = 0.01
"""Largest addition to a flow's base RTT, as a share of it."""
MADE_BY = (
    "Jitter by seed, where a flow states none: starts up to one RTT later (flows without a size), "
    f"RTTs up to {100 * RTT_JITTER:g} % longer."
)

# Disciplines that decide without random numbers (docs/reference/queues.md).
_DETERMINISTIC = frozenset({"droptail", "codel", "fq_codel", "dualpi2"})


def jittered(scenario: Scenario) -> Scenario:
    """Return the scenario with random starts and RTTs for each flow that states neither.

    The start of a flow with a size stays: its completion time counts from it, and an incast is one
    because of it. A flow that states `start_jitter` or `rtt_jitter`, even as zero, stays as it is.
    """
    if all(_states_jitter(flow) for flow in scenario.flow):
        return scenario
    routes = Graph(scenario).routes()
    flows = [
        flow if _states_jitter(flow) else _jittered(flow, route.base_rtt_s, scenario.duration)
        for flow, route in zip(scenario.flow, routes, strict=True)
    ]
    return scenario.model_copy(update={"flow": flows})


def _states_jitter(flow: Flow) -> bool:
    return not flow.model_fields_set.isdisjoint({"start_jitter", "rtt_jitter"})


def _jittered(flow: Flow, base_rtt_s: float, duration_s: float) -> Flow:
    jitter = {"rtt_jitter": RTT_JITTER * base_rtt_s}
    if flow.size is None and flow.after is None:
        # A flow that begins late must still begin.
        end_s = duration_s if flow.stop is None else flow.stop
        left_s = end_s - flow.start - (flow.count - 1) * flow.stagger
        jitter["start_jitter"] = max(0.0, min(base_rtt_s, left_s / 2))
    return flow.model_copy(update=jitter)


def decided_by_phase(scenario: Scenario, protocols: Protocols) -> bool:
    """Return True if two or more TCP flows compete and nothing in the scenario is random."""
    kinds = [(flow, protocols[str(flow.protocol or scenario.protocol)]) for flow in scenario.flow]
    if sum(flow.count for flow, protocol in kinds if protocol.kind == "end-to-end") < 2:
        return False
    return not scenario.traffic and not any(
        [
            *(flow.start_jitter or flow.rtt_jitter for flow in scenario.flow),
            *(link.loss or link.loss_reverse or link.duplicate for link in scenario.link),
            *(link.loss_model or link.reorder or link.fault for link in scenario.link),
            *(link.queue not in _DETERMINISTIC for link in scenario.link),
        ]
    )
