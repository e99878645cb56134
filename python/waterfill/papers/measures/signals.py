"""Measures of sampled columns of a run: prices, ξ, windows and RTTs.

`which` says whose column it is: "flows" or "links". Values are taken as sampled; what has no
sample (a flow before its start) is left out. A column that the run does not have (another
protocol's) is None.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from waterfill.analysis.series import (
    EPSILON_S,
    Series,
    capacity_bps,
    flow_series,
    means,
    numbers,
    path_of,
    settled_at,
)
from waterfill.contract import versions

if TYPE_CHECKING:
    from waterfill.runs.result import Result

Whose: TypeAlias = Literal["flows", "links"]


def price_mean(
    result: Result, *, which: Whose, name: str, column: str, start_s: float, stop_s: float
) -> float | None:
    """Return the mean (s) of a column of prices, which are times, in a time window."""
    return _mean(result, which, name, column, start_s, stop_s)


def signal_mean(
    result: Result, *, which: Whose, name: str, column: str, start_s: float, stop_s: float
) -> float | None:
    """Return the mean of a column without a unit, such as ξ, in a time window."""
    return _mean(result, which, name, column, start_s, stop_s)


def signal_spread(
    result: Result, *, which: Whose, name: str, column: str, start_s: float, stop_s: float
) -> float | None:
    """Return the standard deviation ÷ mean of a column in a time window."""
    _, values = sampled(result, which, name, column, start_s, stop_s)
    return float(values.std() / abs(values.mean())) if len(values) and values.mean() else None


def signal_error(
    result: Result,
    *,
    which: Whose,
    name: str,
    column: str,
    value: float,
    start_s: float,
    stop_s: float,
) -> float | None:
    """Return the relative distance from `value` of a column's mean in a time window."""
    mean = _mean(result, which, name, column, start_s, stop_s)
    return None if mean is None else abs(mean / value - 1)


def signal_presence(
    result: Result, *, which: Whose, name: str, column: str, start_s: float, stop_s: float
) -> float | None:
    """Return the fraction of a column's samples in a time window that are above zero."""
    _, values = sampled(result, which, name, column, start_s, stop_s)
    return float((values > 0).mean()) if len(values) else None


def count_rate(
    result: Result, *, which: Whose, name: str, column: str, start_s: float, stop_s: float
) -> float | None:
    """Return the mean growth per second of a counter column in a time window."""
    time_s, values = sampled(result, which, name, column, start_s, stop_s)
    if len(values) < 2:
        return None
    return float((values[-1] - values[0]) / (time_s[-1] - time_s[0]))


def signal_dip(
    result: Result,
    *,
    which: Whose,
    name: str,
    column: str,
    at_s: float,
    stop_s: float,
    before_s: float = 1.0,
) -> float | None:
    """Return a column's smallest sample after `at_s` ÷ its mean in the `before_s` up to `at_s`."""
    before = _mean(result, which, name, column, at_s - before_s, at_s)
    _, values = sampled(result, which, name, column, at_s, stop_s)
    return float(values.min()) / before if before and len(values) else None


def signal_settle(
    result: Result,
    *,
    which: Whose,
    name: str,
    column: str,
    value: float,
    band: float,
    at_s: float,
    stop_s: float,
) -> float | None:
    """Return the time (s) from `at_s` after which a column stays within a relative `band` of
    `value`.

    Infinity when the last sample is outside.
    """
    time_s, values = sampled(result, which, name, column, at_s, stop_s)
    if not len(values):
        return None
    return settled_at(time_s, np.abs(values - value) <= band * abs(value)) - at_s


def queue_clears(
    result: Result, *, link: str, at_s: float, stop_s: float, most_bytes: float
) -> float | None:
    """Return the time (s) from `at_s` after which a link's queue stays at or below `most_bytes`."""
    time_s, peak_bytes = sampled(result, "links", link, "queue_max_bytes", at_s, stop_s)
    if not len(peak_bytes):
        return None
    return settled_at(time_s, peak_bytes <= most_bytes) - at_s


def rtt_max(result: Result, *, flow: str, start_s: float, stop_s: float) -> float | None:
    """Return the largest sample of a flow's RTT in a time window (s)."""
    _, rtt_s = sampled(result, "flows", flow, "rtt_s", start_s, stop_s)
    return float(rtt_s.max()) if len(rtt_s) else None


def rate_max(
    result: Result,
    *,
    flow: str,
    start_s: float,
    stop_s: float,
    average_s: float,
    column: str = "rate_bps",
) -> float | None:
    """Return the largest mean over `average_s` of a flow's rate in a time window (bit/s).

    `column` is `rate_bps`, at the receiver, or `pacing_bps`, from the sender's feedback.
    """
    rates = _means(result, flow, average_s, start_s, stop_s, column)
    return float(rates.max()) if len(rates) else None


def rate_min(
    result: Result,
    *,
    flow: str,
    start_s: float,
    stop_s: float,
    average_s: float,
    column: str = "rate_bps",
) -> float | None:
    """Return the smallest mean over `average_s` of a flow's rate in a time window (bit/s)."""
    rates = _means(result, flow, average_s, start_s, stop_s, column)
    return float(rates.min()) if len(rates) else None


def rate_excess(
    result: Result,
    *,
    flow: str,
    share_bps: float,
    start_s: float,
    stop_s: float,
    average_s: float,
    column: str = "rate_bps",
) -> float | None:
    """Return the relative excess of a flow's largest mean rate over `average_s` above its share."""
    most_bps = rate_max(
        result,
        flow=flow,
        start_s=start_s,
        stop_s=stop_s,
        average_s=average_s,
        column=column,
    )
    return None if most_bps is None else most_bps / share_bps - 1


def rate_span(
    result: Result,
    *,
    flow: str,
    of_bps: float,
    start_s: float,
    stop_s: float,
    average_s: float,
    column: str = "rate_bps",
) -> float | None:
    """Return the range of a flow's mean rates over `average_s` in a time window ÷ `of_bps`."""
    rates = _means(result, flow, average_s, start_s, stop_s, column)
    return float(rates.max() - rates.min()) / of_bps if len(rates) else None


def rate_error(
    result: Result,
    *,
    flow: str,
    share_bps: float,
    start_s: float,
    stop_s: float,
    average_s: float,
) -> float | None:
    """Return the largest |rate − share| / share of a flow's mean rates in a time window."""
    rates = _means(result, flow, average_s, start_s, stop_s)
    return float(np.abs(rates - share_bps).max()) / share_bps if len(rates) else None


def asked_span(result: Result, *, link: str, start_s: float, stop_s: float) -> float | None:
    """Return the range of the summed pacing rates of a link's flows ÷ the link's rate.

    What sources ask for, before queues round it off; a flow without a pacing rate asks for none.
    """
    rate_bps = capacity_bps(result, link)
    flows = [flow.name for flow in result.summary.flows]
    names = [flow for flow in flows if link in path_of(result, flow)]
    if not names or "pacing_bps" not in result.flows.column_names:
        return None
    columns = [flow_series(result, name, "pacing_bps") for name in names]
    time_s, asked_bps = columns[0][0], np.sum([values for _, values in columns], axis=0)
    late = asked_bps[(time_s > start_s + EPSILON_S) & (time_s <= stop_s + EPSILON_S)]
    return float(np.ptp(late)) / rate_bps if len(late) else None


def header_bytes(
    result: Result, *, flow: str, packet_bytes: int = 1500, framing_bytes: int = 0
) -> float | None:
    """Return the bytes of a full packet that are neither payload nor TCP/IP's 40 B.

    From the flow's goodput over its rate, so in a window without losses. `framing_bytes` of the
    header are not counted, such as a TCP option's kind and length.
    """
    entry = next((f for f in result.summary.flows if f.name == flow), None)
    if entry is None:
        raise KeyError(flow)
    if not entry.rate_bps or entry.goodput_bps is None:
        return None
    return packet_bytes * (1 - entry.goodput_bps / entry.rate_bps) - 40 - framing_bytes


def sampled_column(result: Result, which: Whose, name: str, column: str) -> tuple[Series, Series]:
    """Return the times and values of a column's finite samples, or two empty arrays if the run
    lacks the column.
    """
    rows = result.samples(which, name)
    (column,) = versions.current([column])
    if column not in rows.column_names:
        return np.empty(0), np.empty(0)
    time_s, values = numbers(rows, "time_s"), numbers(rows, column)
    known = np.isfinite(values)
    return time_s[known], values[known]


def sampled(
    result: Result, which: Whose, name: str, column: str, start_s: float, stop_s: float
) -> tuple[Series, Series]:
    """Return the times and values of a column's samples in a time window."""
    time_s, values = sampled_column(result, which, name, column)
    inside = (time_s > start_s + EPSILON_S) & (time_s <= stop_s + EPSILON_S)
    return time_s[inside], values[inside]


def _mean(
    result: Result, which: Whose, name: str, column: str, start_s: float, stop_s: float
) -> float | None:
    _, values = sampled(result, which, name, column, start_s, stop_s)
    return float(values.mean()) if len(values) else None


def _means(
    result: Result,
    flow: str,
    average_s: float,
    start_s: float,
    stop_s: float,
    column: str = "rate_bps",
) -> Series:
    time_s, rate_bps = sampled_column(result, "flows", flow, column)
    return means(time_s, rate_bps, average_s, start_s, min(stop_s, math.inf))[1]
