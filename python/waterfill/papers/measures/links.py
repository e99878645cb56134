"""Measures of links: queues, utilization, drops, and changes of the bottleneck."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from waterfill.analysis.series import (
    EPSILON_S,
    Series,
    between,
    capacity_bps,
    mean,
    means,
    named,
    numbers,
    path_of,
    samples,
    step_s,
    trailing,
)
from waterfill.contract import versions
from waterfill.papers.measures.base import Window

if TYPE_CHECKING:
    from waterfill.runs.result import Result


def queue_mean(result: Result, *, link: str, windows_s: list[Window]) -> float | None:
    """Return the largest of a link's mean queues in several time windows (bytes)."""
    series = samples(result, "links", link, "queue_bytes")
    means = [mean(*series, *window) for window in windows_s]
    known = [mean for mean in means if mean is not None]
    return max(known) if known and len(known) == len(means) else None


def queue_share(
    result: Result, *, link: str, rtt_s: float, windows_s: list[Window]
) -> float | None:
    """Return a link's `queue_mean` ÷ (its rate × `rtt_s`)."""
    mean_bytes = queue_mean(result, link=link, windows_s=windows_s)
    return None if mean_bytes is None else mean_bytes * 8 / (capacity_bps(result, link) * rtt_s)


def queue_max(result: Result, *, link: str, start_s: float, stop_s: float) -> float | None:
    """Return the maximum queue of a link in a window (bytes), without the packet in service."""
    time_s, queue_bytes = samples(result, "links", link, "queue_max_bytes")
    _, queue_bytes = between(time_s, queue_bytes, start_s, stop_s)
    return float(queue_bytes.max()) if len(queue_bytes) else None


def arrival_excess(
    result: Result, *, link: str, rtt_s: float, at_s: float, stop_s: float
) -> float | None:
    """Return the largest mean arrival rate over one RTT after `at_s`, ÷ the link's rate, minus 1.

    What arrives is what is served and what the queue grows by, for links without drops. A sample
    has the mean queue, so the windows start anywhere in a sample: the mean over those starts. The
    window is the whole number of samples that is closest to `rtt_s`.
    """
    time_s, queue_bytes = samples(result, "links", link, "queue_bytes")
    served = samples(result, "links", link, "utilization")[1]
    width = round(rtt_s / step_s(time_s))
    kept = (time_s > at_s - EPSILON_S) & (time_s <= stop_s + EPSILON_S)
    queue_bytes, served = queue_bytes[kept], served[kept]
    if width < 1 or len(served) <= width:
        return None
    growth = (queue_bytes[width:] - queue_bytes[:-width]) * 8 / capacity_bps(result, link)
    sums = np.concatenate([[0.0], np.cumsum((served[1:] + served[:-1]) / 2)])
    used = (sums[width:] - sums[:-width]) / width
    return float(np.max(used + growth / (width * step_s(time_s)))) - 1


def peak_prominence(
    result: Result, *, start_s: float, stop_s: float, links: list[str]
) -> float | None:
    """Return the maximum queue of these links in a time window ÷ their maximum queue outside the
    window.
    """
    table = pa.concat_tables([result.samples("links", name) for name in links])
    time_s = numbers(table, "time_s")
    queue_bytes = numbers(table, "queue_max_bytes")
    inside = (time_s > start_s + EPSILON_S) & (time_s <= stop_s + EPSILON_S)
    if inside.all() or not inside.any():
        return None
    elsewhere = float(queue_bytes[~inside].max())
    return float(queue_bytes[inside].max()) / elsewhere if elsewhere > 0 else math.inf


def utilization_over(result: Result, *, link: str, start_s: float, stop_s: float) -> float | None:
    """Return the bits that a link transmits in a time window ÷ (its rate × the window)."""
    return mean(*samples(result, "links", link, "utilization"), start_s, stop_s)


def fill_time(
    result: Result, *, link: str, at_s: float, utilization: float, average_s: float = 0.0
) -> float | None:
    """Return the time (s) from `at_s` until a link's utilization first reaches `utilization`."""
    time_s, used = samples(result, "links", link, "utilization")
    time_s, used = between(time_s, trailing(time_s, used, average_s), at_s, math.inf)
    if not len(time_s):
        return None
    reached = used >= utilization
    return float(time_s[reached.argmax()]) - at_s if reached.any() else math.inf


def utilization_error(
    result: Result, *, link: str, target: float, windows_s: list[Window], average_s: float
) -> float | None:
    """Return a link's largest |utilization − target| / target, from means of `average_s`.

    Each mean lies wholly inside a window.
    """
    series = samples(result, "links", link, "utilization")
    worst = 0.0
    for start_s, stop_s in windows_s:
        _, inside = means(*series, average_s, start_s, stop_s)
        if not len(inside):
            return None
        worst = max(worst, float(np.abs(inside - target).max()) / target)
    return worst


def bottleneck_switches(
    result: Result,
    *,
    flow: str,
    start_s: float,
    stop_s: float,
    average_s: float,
    signal: str = "maxnet_price",
) -> float | None:
    """Count the changes of a flow's bottleneck, the link of its path with the highest price.

    `signal` is the links' column to compare, as a mean of the last `average_s`, so that prices that
    are equal for a few packets do not count. None without that column.
    """
    (signal,) = versions.current([signal])
    if signal not in result.links.column_names:
        return None
    prices = []
    time_s: Series = np.empty(0)
    for link in path_of(result, flow):
        time_s, price = samples(result, "links", link, signal)
        prices.append(trailing(time_s, np.nan_to_num(price), average_s))
    _, highest = between(time_s, np.argmax(np.array(prices), axis=0), start_s, stop_s)
    return float(np.count_nonzero(np.diff(highest))) if len(highest) else None


def utilization_of(result: Result, *, link: str) -> float | None:
    """Return the utilization of a link in the summary."""
    return named(result.summary.links, link).utilization


def last_sample(result: Result, *, link: str, column: str) -> float | None:
    """Return the last sample of a link's column (a counter's total), or None if there is none."""
    (column,) = versions.current([column])
    if column not in result.links.column_names:
        return None
    values = samples(result, "links", link, column)[1]
    return float(values[-1]) if len(values) else None


def drops_of(result: Result, *, link: str) -> float | None:
    """Return the number of packets that found a link's buffer full in the measured window."""
    return float(named(result.summary.links, link).drops)
