"""Warnings of results that show a fault of a flow's law or host, not a property of the network.

- `long recovery`: a loss recovery took more than ten RTTs, without waits for time-outs.
- `spurious time-outs`: there were time-outs, and most packets that were sent again had arrived.
- `constant rate`: for 90 % of the time the flow waited for its next packet's time, its pacing rate
  changed by less than 1 %, and it got less than 80 % of its share, while no link of its path was
  used to 80 %. Such a rate does not follow the path.
- `classic ECN`: a flow or a source of flows that treats marks as those of L4S (RFC 9330) shares a
  single queue that marks as RFC 3168 says. It lowers its window less than the other flows after the
  same marks, unless its fall-back is on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from waterfill.contract.summary import CoreFlow, CoreSummary, FlowWarning
from waterfill.scenario.units import RATE, TIME, percent

if TYPE_CHECKING:
    from waterfill.contract.network import Network
    from waterfill.runs.result import Columns

_RECOVERY_RTTS = 10
_SPURIOUS = 0.5
_PACED = 0.9
_PART = 0.8
_CONSTANT = 0.01
# Disciplines that mark all flows by the standards of RFC 3168. Those with a queue per flow protect
# the other flows, `dualpi2` has a queue for L4S, and `mark_at` is a step for laws like DCTCP.
_CLASSIC_MARKING = ("red", "choke", "codel", "pie")
L4S = frozenset({"prague"})
"""Built-in laws that lower their window by the share of marks and expect an L4S queue."""


def warnings_of(
    network: Network,
    core: CoreSummary,
    shares_bps: Sequence[float | None],
    series: Callable[[], Columns],
    l4s: Collection[str] = L4S,
) -> list[FlowWarning]:
    """Return the warnings of a run, in the order of its flows and then of its sources of flows.

    `shares_bps` are the flows' max-min shares; `series` returns the columns of the flows' series,
    and is called only if a rate may be constant. `l4s` are the protocols that expect L4S queues.
    """
    used = [link.utilization for link in core.links]
    unlike = {
        i: link.queue.kind
        for i, (link, measured) in enumerate(zip(network.links, core.links, strict=True))
        if link.queue.kind in _CLASSIC_MARKING and measured.marks
    }
    l4s = {name for name in l4s if network.params.get(name, {}).get("classic_fallback") != "on"}
    paths = {spec.name: spec.forward for spec in network.flows}

    def classic_marks(name: str, protocol: str, path: Collection[int]) -> Iterator[FlowWarning]:
        for link in path:
            if protocol in l4s and link in unlike:
                text = (
                    f"{protocol} expects L4S marks, but {unlike[link]} marks on "
                    f"{core.links[link].name} as RFC 3168 says, so other flows get too little; use "
                    "dualpi2"
                )
                if protocol in L4S:
                    text += f', or params.{protocol}.classic_fallback = "on"'
                yield FlowWarning(flow=name, kind="classic ECN", text=text)

    found: list[FlowWarning] = []
    columns: Columns | None = None
    for i, (flow, share_bps) in enumerate(zip(core.flows, shares_bps, strict=True)):
        found += [FlowWarning(flow=flow.name, kind=kind, text=text) for kind, text in _hosts(flow)]
        found += classic_marks(flow.name, flow.protocol, paths[flow.group])
        busiest = max((used[link] for link in paths[flow.group]), default=0.0)
        if share_bps and flow.rate_bps is not None and _is_idle(flow, share_bps, busiest):
            columns = columns or series()
            pacing_bps = _constant(columns, i, flow.active_s or [])
            if pacing_bps is not None:
                found.append(FlowWarning(
                    flow=flow.name, kind="constant rate",
                    text=f"sends at a constant {RATE.format(float(f'{pacing_bps:.3g}'))}, limited "
                    f"by pacing, {percent(flow.rate_bps / share_bps)} of its share, on a path used "
                    f"to {percent(busiest)}",
                ))  # fmt: skip
    for source in network.traffic:
        if source.flows is not None:
            links = dict.fromkeys(link for way in source.flows.ways for link in way.forward)
            found += classic_marks(source.name, source.flows.flow.protocol, links)
    return found


def _hosts(flow: CoreFlow) -> Iterator[tuple[str, str]]:
    longest = flow.longest_recovery
    if longest is not None and longest.rtts > _RECOVERY_RTTS:
        took = TIME.format(float(f"{longest.took_s:.3g}"))
        yield "long recovery", f"a loss recovery took {took}, {longest.rtts:.0f} RTTs"
    resent, spurious = flow.retransmissions, flow.spurious_retransmissions or 0
    if flow.timeouts and spurious > _SPURIOUS * resent:
        text = f"{flow.timeouts} time-outs; {spurious} of {resent} packets sent again had arrived"
        yield "spurious time-outs", text


def _is_idle(flow: CoreFlow, share_bps: float, busiest: float) -> bool:
    """Return True if pacing alone keeps a flow from the free capacity of its path."""
    limits = flow.limited_by
    return (
        limits is not None
        and limits.pacing >= _PACED
        and busiest < _PART
        and (flow.rate_bps or 0.0) < _PART * share_bps
    )


def _constant(columns: Columns, index: int, active_s: Sequence[float]) -> float | None:
    """Return the pacing rate (bit/s) of a flow if it is constant while the flow is active."""
    import numpy as np

    def column(name: str) -> np.ndarray:
        kind, buffer = columns[name]
        return np.frombuffer(buffer, dtype={"f64": "<f8", "u32": "<u4"}[kind])

    start_s, end_s = active_s
    time_s = column("time_s")
    mine = (column("flow") == index) & (time_s >= start_s) & (time_s <= end_s)
    rates = column("pacing_bps")[mine]
    if len(rates) < 2 or not np.isfinite(rates).all():
        return None
    low, high = float(rates.min()), float(rates.max())
    return low if low > 0 and high - low < _CONSTANT * low else None
