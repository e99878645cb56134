"""Measures of the evaluation suites: delay, loss, shares, backoff and completion times.

A group is the flows of one `[[flow]]` entry. The default window is the run's measure window.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from waterfill.analysis.series import (
    EPSILON_S,
    between,
    capacity_bps,
    means,
    named,
    numbers,
    rate_series,
    samples,
    step_s,
)
from waterfill.papers.measures.base import Percentile

if TYPE_CHECKING:
    from waterfill.contract.summary import FlowSummary
    from waterfill.runs.result import Result


def _group(result: Result, group: str) -> list[FlowSummary]:
    flows = [flow for flow in result.summary.flows if flow.group == group]
    if not flows:
        raise KeyError(group)
    return flows


def queueing_delay(
    result: Result,
    *,
    link: str,
    percentile: Percentile,
    start_s: float | None = None,
    stop_s: float | None = None,
) -> float | None:
    """Return a percentile of a link's queueing delay (s) over the samples of a time window.

    The delay of a sample is its mean queue ÷ the link's capacity, which may change over time.
    """
    first_s, last_s = result.summary.measure_s
    window_s = (first_s if start_s is None else start_s, last_s if stop_s is None else stop_s)
    time_s, queue_bytes = samples(result, "links", link, "queue_bytes")
    rate_bps = np.full(len(time_s), capacity_bps(result, link))
    if "capacity_bps" in result.links.column_names:
        followed_bps = samples(result, "links", link, "capacity_bps")[1]
        rate_bps = np.where(np.isfinite(followed_bps), followed_bps, rate_bps)
    up = rate_bps > 0
    _, delay_s = between(time_s[up], queue_bytes[up] * 8 / rate_bps[up], *window_s)
    return float(np.percentile(delay_s, percentile)) if len(delay_s) else None


def packets_per_rtt(result: Result, *, group: str) -> float | None:
    """Return the packets that a group's flows send per base RTT, as the maximum of the flows.

    Retransmissions count. The time is from a flow's SYN to the end of the run.
    """
    found = []
    for flow in _group(result, group):
        rtts = (flow.stop_s - flow.start_s) / (flow.rtt_ms.base / 1e3)
        if rtts <= 0:
            return None
        found.append(flow.packets_sent / rtts)
    return max(found)


def lost_between(result: Result, *, link: str, start_s: float, stop_s: float) -> float | None:
    """Count the packets that a link's queue and wire lose in a time window."""
    total = 0.0
    for column in ("drops", "lost"):
        _, inside = between(*samples(result, "links", link, column), start_s, stop_s)
        if not len(inside):
            return None
        total += float(np.nansum(inside))
    return total


def restart_queue(result: Result, *, link: str, at_s: float, within_s: float) -> float | None:
    """Return the peak queue of a link (bytes) in the `within_s` after it is used again.

    It is used again in its first sample after `at_s` with a utilization above zero. None if it is
    not.
    """
    time_s, used = samples(result, "links", link, "utilization")
    queue_bytes = samples(result, "links", link, "queue_max_bytes")[1]
    again = (time_s > at_s + EPSILON_S) & (used > 0)
    if not again.any():
        return None
    start_s = float(time_s[again.argmax()]) - step_s(time_s)
    _, inside = between(time_s, queue_bytes, start_s, start_s + within_s)
    return float(inside.max())


def group_loss(result: Result, *, group: str) -> float | None:
    """Return the part of a group's packets that did not arrive, over the whole run."""
    flows = _group(result, group)
    sent = sum(flow.packets_sent for flow in flows)
    lost = sum(flow.retransmissions - (flow.spurious_retransmissions or 0) for flow in flows)
    return lost / sent if sent else None


def resent_share(result: Result, *, group: str) -> float | None:
    """Return a group's retransmissions ÷ its packets, over the whole run."""
    flows = _group(result, group)
    sent = sum(flow.packets_sent for flow in flows)
    return sum(flow.retransmissions for flow in flows) / sent if sent else None


def smallest_share(result: Result, *, group: str) -> float | None:
    """Return the smallest rate of a group's flows ÷ the flow's max-min share."""
    shares = []
    for flow in _group(result, group):
        if flow.rate_bps is None or not flow.max_min_bps:
            return None
        shares.append(flow.rate_bps / flow.max_min_bps)
    return min(shares)


def jain(result: Result, *, group: str) -> float | None:
    """Return Jain's index of a group's rates: (Σ x)² ÷ (n Σ x²)."""
    rates = [flow.rate_bps or 0.0 for flow in _group(result, group)]
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else None


def longest_starvation(
    result: Result, *, group: str, fraction: float = 0.1, average_s: float = 1.0
) -> float | None:
    """Return the longest time (s) for which a flow's rate stays below a fraction of its share.

    The rate is a mean over the last `average_s`, at each sample of the measure window. The share is
    the max-min share. The time covers all of these means. Of the group's flows the worst counts.
    """
    longest_s = 0.0
    for flow in _group(result, group):
        time_s, rate_bps = rate_series(result, flow.name)
        step = step_s(time_s)
        _, rate_bps = means(time_s, rate_bps, average_s, *result.summary.measure_s)
        if not len(rate_bps) or flow.max_min_bps is None:
            return None
        below = np.concatenate([[0], rate_bps < fraction * flow.max_min_bps, [0]])
        edges = np.flatnonzero(np.diff(below))
        if len(edges):
            lengths = edges[1::2] - edges[::2]
            longest_s = max(longest_s, int(lengths.max()) * step + average_s - step)
    return longest_s


def completion(result: Result, *, source: str, percentile: Percentile) -> float | None:
    """Return a percentile of the completion times (s) of a source's flows with a size.

    A flow that has not completed counts as infinite.
    """
    table = result.transfers
    kept = np.array(table["source"].to_pylist()) == source
    if not kept.any():
        raise KeyError(source)
    times_s = np.nan_to_num(numbers(table, "completion_s")[kept], nan=math.inf)
    return float(np.percentile(times_s, percentile, method="higher"))


def traffic_loss(result: Result, *, source: str) -> float | None:
    """Return the part of a source's packets that did not arrive, over the whole run."""
    entry = named(result.summary.traffic, source)
    if not entry.packets_sent:
        return None
    return 1 - entry.packets_received / entry.packets_sent
