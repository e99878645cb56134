"""Warnings of flows whose rates in the measure window are not those of a settled network.

- `starts in the window`, `ends in the window`: the flow starts or is stopped inside the window, so
  the window covers several sets of flows. Flows with a size end when they have completed.
- `not settled`: all flows are there for the whole window, and the mean rates of an explicit law's
  flow in the two halves of the window differ by more than 5 % of the larger one. A window-based
  TCP never settles, so its flows are not checked.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from waterfill.contract.summary import CoreFlow, CoreSummary, FlowWarning
from waterfill.scenario.units import TIME, percent

if TYPE_CHECKING:
    from waterfill.contract.network import Network
    from waterfill.runs.result import Columns

KINDS = ("starts in the window", "ends in the window", "not settled")

_CHANGE = 0.05
# A half of the window with fewer packets has a mean that is one packet's to change.
_MIN_PACKETS = 100
# Series of more rows take longer to read than the warning is worth.
_MAX_ROWS = 500_000


def warnings_of(
    network: Network,
    core: CoreSummary,
    explicit: Collection[str],
    series: Callable[[], Columns],
) -> list[FlowWarning]:
    """Return the warnings of a complete run, those of `not settled` in the order of the change.

    `explicit` are the protocols whose rates settle; `series` returns the columns of the flows'
    series, and is called only if no flow starts or ends in the window.
    """
    groups = {spec.name: spec for spec in network.flows}
    steady = [
        (index, flow)
        for index, flow in enumerate(core.flows)
        if groups[flow.group].size_bytes is None and groups[flow.group].application is None
    ]
    found = [one for _, flow in steady for one in _changes(network, flow)]
    if found or _varies(network):
        return sorted(found, key=lambda one: KINDS.index(one.kind))
    start_s, end_s = network.measure_s
    there = {
        index: flow
        for index, flow in steady
        if flow.protocol in explicit and flow.start_s <= start_s and flow.stop_s >= end_s
    }
    rows = len(core.flows) * network.duration_s / network.sample_s
    if not there or rows > _MAX_ROWS:
        return []
    return _unsettled(network, there, series())


def _changes(network: Network, flow: CoreFlow) -> Iterator[FlowWarning]:
    start_s, end_s = network.measure_s
    window = _window(network)
    text = "inside the window from"
    if start_s < flow.start_s < end_s:
        why = f"started {text} {window}; the rate is not settled"
        yield FlowWarning(flow=flow.name, kind=KINDS[0], text=why)
    if start_s < flow.stop_s < end_s:
        why = f"ended {text} {window}; rates change at its end"
        yield FlowWarning(flow=flow.name, kind=KINDS[1], text=why)


def _window(network: Network) -> str:
    start_s, end_s = (TIME.format(float(f"{time_s:.3g}")) for time_s in network.measure_s)
    return f"{start_s} to {end_s}"


def _varies(network: Network) -> bool:
    """Return True if the shares change in the window by themselves."""
    start_s, end_s = network.measure_s
    times = [change.at_s for link in network.links for change in link.changes]
    times += [demand.at_s for flow in network.flows for demand in flow.demands]
    times += [route.at_s for flow in network.flows for route in flow.routes]
    faults = any(link.faults for link in network.links) or any(
        flow.faults for flow in network.flows
    )
    finite = any(flow.size_bytes or flow.application for flow in network.flows)
    finite = finite or bool(network.arriving)
    return faults or finite or any(start_s < at_s < end_s for at_s in times)


def _unsettled(network: Network, there: dict[int, CoreFlow], columns: Columns) -> list[FlowWarning]:
    start_s, end_s = network.measure_s
    middle_s = (start_s + end_s) / 2
    means = [
        _means_bps(columns, low_s + network.sample_s / 2, high_s)
        for low_s, high_s in ((start_s, middle_s), (middle_s, end_s))
    ]
    found = []
    for index, flow in there.items():
        first_bps, second_bps = (half.get(index, 0.0) for half in means)
        larger_bps, change_bps = max(first_bps, second_bps), abs(first_bps - second_bps)
        enough = larger_bps * (middle_s - start_s) >= _MIN_PACKETS * 8 * network.packet_bytes
        if enough and change_bps > _CHANGE * larger_bps:
            found.append((change_bps / larger_bps, flow))
    return [
        FlowWarning(
            flow=flow.name,
            kind=KINDS[2],
            text=f"the rate changed by up to {percent(share)} between the halves of the window "
            f"from {_window(network)}",
        )
        for share, flow in sorted(found, key=lambda one: -one[0])
    ]


def _means_bps(columns: Columns, low_s: float, high_s: float) -> dict[int, float]:
    """Return each flow's mean rate over the samples that end after `low_s` and up to `high_s`.

    A sample that a limit of the window cuts is left out. Loops over the core's buffers, because
    loading numpy would take longer than a small run.
    """
    time_s, rate_bps = (memoryview(columns[name][1]).cast("d") for name in ("time_s", "rate_bps"))
    index = memoryview(columns["flow"][1]).cast("I")
    sums: dict[int, float] = {}
    counts: dict[int, int] = {}
    for row in range(bisect_right(time_s, low_s), bisect_right(time_s, high_s)):
        flow = index[row]
        sums[flow] = sums.get(flow, 0.0) + rate_bps[row]
        counts[flow] = counts.get(flow, 0) + 1
    return {flow: total / counts[flow] for flow, total in sums.items()}
