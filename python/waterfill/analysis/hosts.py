"""What limits flows, and what their loss recovery costs: figures of several flows together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from waterfill.contract.record import Record
from waterfill.contract.summary import FlowSummary, FlowWarning, LimitedBy, Summary

# Flows that are named for each kind of warning.
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


def figures(flows: Sequence[FlowSummary]) -> HostFigures:
    """Return the figures of one or more flows.

    `limited_by` is the mean over the flows that have it, `loss_rate` that over all packets. Times
    and `longest_recovery_rtts` are those of the slowest flow, the others sums.
    """
    sent = sum(flow.packets_sent * flow.count for flow in flows)
    lost = sum(flow.packets_sent * (flow.loss_rate or 0.0) * flow.count for flow in flows)
    p99s = [p99 for flow in flows if (p99 := flow.rtt_ms.p99) is not None]
    longest = [flow.longest_recovery.rtts for flow in flows if flow.longest_recovery]
    messages = [flow.messages for flow in flows if flow.messages is not None]
    p50s = [p50 for one in messages if (p50 := one.completion_ms.p50) is not None]
    slowest = [p99 for one in messages if (p99 := one.completion_ms.p99) is not None]
    return HostFigures(
        limited_by=limited_by(flows),
        rtt_p99_ms=max(p99s, default=None),
        loss_rate=lost / sent if sent else None,
        retransmissions=sum(flow.retransmissions * flow.count for flow in flows),
        resent_bytes=sum((flow.resent_bytes or 0) * flow.count for flow in flows),
        spurious_retransmissions=sum(flow.spurious_retransmissions or 0 for flow in flows),
        timeouts=sum(flow.timeouts * flow.count for flow in flows),
        longest_recovery_rtts=max(longest, default=None),
        messages_completed=sum(one.completed for one in messages) if messages else None,
        message_p50_ms=max(p50s, default=None),
        message_p99_ms=max(slowest, default=None),
        stalled_s=max((one.playback.stalled_s for one in flows if one.playback), default=None),
    )


def limited_by(flows: Sequence[FlowSummary]) -> LimitedBy | None:
    """Return the mean share of each limit over the flows that have them, or None without one."""
    known = [flow.limited_by for flow in flows if flow.limited_by is not None]
    if not known:
        return None
    return LimitedBy.read({key: sum(one[key] for one in known) / len(known) for key in known[0]})


def largest(limits: Mapping[str, float]) -> tuple[str, float]:
    """Return the limit with the largest share, the first of equal ones, and its share."""
    return max(limits.items(), key=lambda entry: entry[1])


def warnings(summary: Summary) -> list[str]:
    """Return one line for each warning of a run; of many of one kind, some and a count."""
    kinds: dict[str, list[FlowWarning]] = {}
    for one in summary.warnings or ():
        kinds.setdefault(one.kind, []).append(one)
    lines = []
    for kind, found in kinds.items():
        lines += [f"{one.flow}: {one.text}" for one in found[:_MAX_NAMED]]
        if len(found) > _MAX_NAMED:
            lines.append(f"{kind}: {len(found) - _MAX_NAMED} more flows")
    return lines
