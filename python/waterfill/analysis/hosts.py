"""What limits flows, and what their loss recovery costs: figures of several flows together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from waterfill.contract.record import Record
from waterfill.contract.summary import (
    FlowSummary,
    FlowWarning,
    LimitedBy,
    Summary,
    TrafficSummary,
)
from waterfill.runs import window
from waterfill.scenario.units import TIME

# Flows that are named for each kind of warning.
_MAX_LINKS = 6
_MAX_NAMED = 3


class HostFigures(Record):
    """What limits a run's flows, and what their loss recovery costs."""

    limited_by: LimitedBy | None
    rtt_p99_ms: float | None
    loss_rate: float | None
    retransmissions: int
    resent_bytes: int
    spurious_retransmissions: int
    timeouts: int
    longest_recovery_rtts: float | None
    messages_completed: int | None = None
    message_p50_ms: float | None = None
    message_p99_ms: float | None = None
    stalled_s: float | None = None


def of_run(summary: Summary) -> HostFigures | None:
    """Return the figures of a run's flows, those of traffic sources included, or None without any.

    A traffic source is one entry in the mean of `limited_by`. It has no RTTs and no messages.
    """
    sources = sources_of_flows(summary)
    return figures(summary.flows, sources) if summary.flows or sources else None


def sources_of_flows(summary: Summary) -> list[TrafficSummary]:
    """Return the traffic sources of a run that start flows."""
    return [source for source in summary.traffic if source.flows_started is not None]


def figures(flows: Sequence[FlowSummary], sources: Sequence[TrafficSummary] = ()) -> HostFigures:
    """Return the figures of flows and of sources of flows, at least one.

    `limited_by` is the mean over the entries that have it, `loss_rate` that over all packets. Times
    and `longest_recovery_rtts` are those of the slowest flow, the others sums.
    """
    entries: list[tuple[FlowSummary | TrafficSummary, int]] = [(one, one.count) for one in flows]
    entries += [(source, 1) for source in sources]
    sent = sum(one.packets_sent * count for one, count in entries)
    lost = sum(one.packets_sent * (one.loss_rate or 0.0) * count for one, count in entries)
    p99s = [p99 for flow in flows if (p99 := flow.rtt_ms.p99) is not None]
    longest = [one.longest_recovery.rtts for one, _ in entries if one.longest_recovery]
    messages = [flow.messages for flow in flows if flow.messages is not None]
    p50s = [p50 for one in messages if (p50 := one.completion_ms.p50) is not None]
    slowest = [p99 for one in messages if (p99 := one.completion_ms.p99) is not None]
    return HostFigures(
        limited_by=limited_by([one for one, _ in entries]),
        rtt_p99_ms=max(p99s, default=None),
        loss_rate=lost / sent if sent else None,
        retransmissions=sum(one.retransmissions * count for one, count in entries),
        resent_bytes=sum((one.resent_bytes or 0) * count for one, count in entries),
        spurious_retransmissions=sum(one.spurious_retransmissions or 0 for one, _ in entries),
        timeouts=sum(one.timeouts * count for one, count in entries),
        longest_recovery_rtts=max(longest, default=None),
        messages_completed=sum(one.completed for one in messages) if messages else None,
        message_p50_ms=max(p50s, default=None),
        message_p99_ms=max(slowest, default=None),
        stalled_s=max((one.playback.stalled_s for one in flows if one.playback), default=None),
    )


def limited_by(entries: Sequence[FlowSummary | TrafficSummary]) -> LimitedBy | None:
    """Return the mean share of each limit over the entries that have them, or None without one."""
    known = [one.limited_by for one in entries if one.limited_by is not None]
    if not known:
        return None
    return LimitedBy.read({key: sum(one[key] for one in known) / len(known) for key in known[0]})


def largest(limits: Mapping[str, float]) -> tuple[str, float]:
    """Return the limit with the largest share, the first of equal ones, and its share."""
    return max(limits.items(), key=lambda entry: entry[1])


def warnings(summary: Summary) -> list[str]:
    """Return one line for each warning of a run; of many of one kind, some and a count.

    Warnings of the window are one line for each kind, that of its first flow.
    """
    kinds: dict[str, list[FlowWarning]] = {}
    for one in summary.warnings or ():
        kinds.setdefault(one.kind, []).append(one)
    lines = []
    for kind, found in kinds.items():
        if kind in window.KINDS:
            names = ", ".join(one.flow for one in found[:_MAX_NAMED])
            left = len(found) - _MAX_NAMED
            more = f" and {left} more flow{'s' * (left > 1)}" if left > 0 else ""
            lines.append(f"{names}{more}: {found[0].text}")
            continue
        lines += [f"{one.flow}: {one.text}" for one in found[:_MAX_NAMED]]
        if len(found) > _MAX_NAMED:
            lines.append(f"{kind}: {len(found) - _MAX_NAMED} more flows")
    if summary.deadlock is not None:
        links, at = summary.deadlock.links, TIME.format(float(f"{summary.deadlock.at_s:.6g}"))
        more = f" and {len(links) - _MAX_LINKS} others" if len(links) > _MAX_LINKS else ""
        named = ", ".join(links[:_MAX_LINKS])
        lines.append(f"deadlock: {named}{more} are paused and wait for each other since {at}")
    return lines
