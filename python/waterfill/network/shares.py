"""The max-min shares of a scenario over its duration, for `waterfill maxmin`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from waterfill.contract.network import Network
from waterfill.network.maxmin import classes_of, intervals, lives_of
from waterfill.network.protocols import Protocols, load
from waterfill.network.protocols import targets as core_targets
from waterfill.network.resolve import to_core
from waterfill.scenario import given
from waterfill.scenario.document import Scenario

MAX_ROWS = 10**7


def document(
    scenario: Scenario,
    protocols: Protocols | None = None,
    targets: Mapping[str, float] | None = None,
    own: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Return the document {intervals: [{from_s, to_s, flows: [{name, rate_bps, bottleneck}]}],
    notes: […]}.

    Each interval lists its active flows; a bottleneck is a link's name or "demand". A note names
    the keys of the scenario that the shares do not use. `targets` is
    {protocol: target}; `protocols` and `targets` default to the core's, to which `own` adds the
    targets of laws in Python.

    Raises InputError as `resolve.to_core` does, for a parameter out of range, and for more than
    `MAX_ROWS` rates.
    """
    network = to_core(scenario, load() if protocols is None else protocols)
    if network.has_switched:
        why = f'"{scenario.ecmp}" lets switches choose links in a run, and shares need fixed paths'
        raise scenario.error("ecmp", why, 'use ecmp = "pair"')
    if targets is None:
        try:
            targets = core_targets(network.params) | dict(own or {})
        except ValueError as error:
            raise scenario.core_error(error) from None
    _, of_flow = classes_of(network)
    for index, flow in enumerate(network.flows):
        if flow.after:
            why = "the start depends on the run, so shares over time do not exist before it"
            raise scenario.error(f"{scenario.key('flow', index)}.after", why, "remove it")
    lives = lives_of(network)
    names = _flow_names(network)
    _check_size(scenario, network, lives)
    result = []
    for from_s, to_s, shares in intervals(network, targets, lives, (0.0, scenario.duration)):
        flows = []
        for name, c, (start_s, end_s) in zip(names, of_flow, lives, strict=True):
            share = shares[c]
            if share is None or not start_s <= from_s < end_s:
                continue
            by = share.bottleneck
            bottleneck = "demand" if by is None else network.links[by].name
            flows.append({"name": name, "rate_bps": share.rate_bps, "bottleneck": bottleneck})
        result.append({"from_s": from_s, "to_s": to_s, "flows": flows})
    return {"intervals": result, "notes": _notes(scenario)}


def _notes(scenario: Scenario) -> list[str]:
    """Return a sentence for each kind of value of a scenario that the shares do not use."""
    found = []
    sizes = list(given.keys(scenario, "flow", ["size"]))
    if sizes:
        found.append(f"Flows have data up to their stop; not used: {given.listed(sizes)}.")
    sources = given.flow_sources(scenario)
    if sources:
        found.append(f"Flows that arrive at random are not used: {given.listed(sources)}.")
    return found


def _flow_names(network: Network) -> list[str]:
    """Return the name of each single flow: `long`, or `long[0]` and so on for a group."""
    return [
        flow.name if flow.count == 1 else f"{flow.name}[{i}]"
        for flow in network.flows
        for i in range(flow.count)
    ]


def _check_size(scenario: Scenario, network: Network, lives: Sequence[tuple[float, float]]) -> None:
    times = {time for life in lives for time in life}
    times |= {time for t in network.traffic for time in (t.start_s, t.stop_s)}
    times |= {change.at_s for link in network.links for change in link.changes}
    times |= {demand.at_s for flow in network.flows for demand in flow.demands}
    times |= {route.at_s for flow in network.flows for route in flow.routes}
    order = sorted(times)
    rows = sum(bisect_left(order, end) - bisect_left(order, start) for start, end in lives)
    if rows > MAX_ROWS:
        raise scenario.error(
            "flow",
            f"more than {MAX_ROWS} rates to list, one per flow and interval, got {rows}",
        )
