"""Measures of flows: rates, rise and settling times, RTTs and windows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from waterfill.analysis.series import (
    between,
    mean,
    means,
    named,
    rate_series,
    samples,
    settled_at,
    step_s,
    trailing,
)
from waterfill.papers.measures.base import Window

if TYPE_CHECKING:
    from waterfill.runs.result import Result

Quantile: TypeAlias = Literal["base", "mean", "p50", "p99"]


def rate_over(result: Result, *, flow: str, start_s: float, stop_s: float) -> float | None:
    """Return the mean rate of a flow in a time window (bit/s)."""
    return mean(*rate_series(result, flow), start_s, stop_s)


def group_rate_over(result: Result, *, group: str, start_s: float, stop_s: float) -> float | None:
    """Return the sum of the mean rates of a group's flows in a time window (bit/s)."""
    names = [entry.name for entry in result.summary.flows if entry.group == group]
    if not names:
        raise KeyError(group)
    means = [mean(*rate_series(result, name), start_s, stop_s) for name in names]
    known = [mean for mean in means if mean is not None]
    return sum(known) if len(known) == len(means) else None


def start_inequality(
    result: Result, *, flow: str, group: str, start_s: float, stop_s: float
) -> float | None:
    """Return |mean rate of a flow ÷ mean rate of a group's flows − 1| in a time window."""
    names = [entry.name for entry in result.summary.flows if entry.group == group]
    rate_bps = mean(*rate_series(result, flow), start_s, stop_s)
    others_bps = group_rate_over(result, group=group, start_s=start_s, stop_s=stop_s)
    if rate_bps is None or not others_bps:
        return None
    return abs(rate_bps * len(names) / others_bps - 1)


def class_rate_over(
    result: Result, *, groups: list[str], start_s: float, stop_s: float
) -> float | None:
    """Return the sum of the mean rates of several groups' flows in a time window (bit/s)."""
    rates = [group_rate_over(result, group=g, start_s=start_s, stop_s=stop_s) for g in groups]
    known = [rate for rate in rates if rate is not None]
    return sum(known) if len(known) == len(rates) else None


def share_error(
    result: Result, *, shares_bps: Mapping[str, float], start_s: float, stop_s: float
) -> float | None:
    """Return the largest |mean rate − share| / share among the flows in a time window."""
    errors = []
    for flow, share_bps in shares_bps.items():
        mean_bps = rate_over(result, flow=flow, start_s=start_s, stop_s=stop_s)
        if mean_bps is None:
            return None
        errors.append(abs(mean_bps - share_bps) / share_bps)
    return max(errors)


def rise_time(
    result: Result,
    *,
    flow: str,
    at_s: float,
    target_bps: float,
    before_bps: float = 0.0,
    fraction: float = 0.9,
    average_s: float = 0.0,
) -> float | None:
    """Return the time (s) from `at_s` until the rate has first covered `fraction` of a step.

    The step is from `before_bps` to `target_bps`, up or down. The rate is one sample, at the
    sample's end. With `average_s` it is a centred mean over that time, which adds no delay.
    """
    time_s, rate_bps = rate_series(result, flow)
    rate_bps = trailing(time_s, rate_bps, average_s)
    delay_s = max(0.0, average_s - step_s(time_s)) / 2
    time_s, rate_bps = between(time_s - delay_s, rate_bps, at_s, math.inf)
    if not len(time_s):
        return None
    goal_bps = before_bps + fraction * (target_bps - before_bps)
    reached = rate_bps >= goal_bps if target_bps >= before_bps else rate_bps <= goal_bps
    return float(time_s[reached.argmax()]) - at_s if reached.any() else math.inf


def step_time(
    result: Result,
    *,
    flow: str,
    at_s: float,
    before_s: Window,
    after_s: Window,
    fraction: float = 0.9,
) -> float | None:
    """Return the rise time (s) between two levels measured in the run: the mean rates in two
    windows.

    So the time does not depend on whether the levels are those of the paper.
    """
    levels = [rate_over(result, flow=flow, start_s=a, stop_s=b) for a, b in (before_s, after_s)]
    before_bps, after_bps = levels
    if before_bps is None or after_bps is None:
        return None
    step = {"before_bps": before_bps, "target_bps": after_bps, "fraction": fraction}
    return rise_time(result, flow=flow, at_s=at_s, **step)


def take_up_time(
    result: Result,
    *,
    flow: str,
    giver: str,
    at_s: float,
    stop_s: float,
    fraction: float = 0.9,
    average_s: float,
    before_s: float = 2.0,
) -> float | None:
    """Return the time (s) from `at_s` until `flow` uses `fraction` of the rate freed by `giver`.

    Both are relative to the mean rates in the `before_s` up to `at_s`; rates are centred means over
    `average_s`. Infinity if the flow uses less in the last mean before `stop_s`.
    """
    time_s, rate_bps = rate_series(result, flow)
    giver_bps = rate_series(result, giver)[1]
    before_bps = mean(time_s, rate_bps, at_s - before_s, at_s)
    giver_before_bps = mean(time_s, giver_bps, at_s - before_s, at_s)
    if before_bps is None or giver_before_bps is None:
        return None
    taken_bps = trailing(time_s, rate_bps, average_s) - before_bps
    freed_bps = giver_before_bps - trailing(time_s, giver_bps, average_s)
    delay_s = max(0.0, average_s - step_s(time_s)) / 2
    time_s, short_bps = between(
        time_s - delay_s, fraction * freed_bps - taken_bps, at_s + average_s / 2, stop_s
    )
    if not len(time_s):
        return None
    short = short_bps > 0
    if short[-1]:
        return math.inf
    return float(time_s[short.nonzero()[0][-1] + 1]) - at_s if short.any() else 0.0


def reclaimed_fraction(
    result: Result,
    *,
    flow: str,
    at_s: float,
    after_s: float,
    target_bps: float,
    average_s: float,
    before_s: float = 1.0,
) -> float | None:
    """Return the fraction of freed capacity that a flow uses `after_s` after the capacity became
    free.

    (rate − before) / (target − before), where `before` is the mean rate in the `before_s` up to
    `at_s` and `rate` the mean over `average_s` centred on `at_s + after_s`.
    """
    series = rate_series(result, flow)
    middle_s = at_s + after_s
    before_bps = mean(*series, at_s - before_s, at_s)
    rate_bps = mean(*series, middle_s - average_s / 2, middle_s + average_s / 2)
    if before_bps is None or rate_bps is None or target_bps == before_bps:
        return None
    return (rate_bps - before_bps) / (target_bps - before_bps)


def settle_time(
    result: Result,
    *,
    shares_bps: Mapping[str, float],
    start_s: float,
    stop_s: float,
    band: float,
    average_s: float,
) -> float | None:
    """Return the time (s) from `start_s` after which every flow stays within `band` of its share.

    `band` is relative. Rates are means of `average_s` wholly inside the window, at their end, so
    the value is at least `average_s`. Infinity if a flow ends outside.
    """
    latest_s = 0.0
    for flow, share_bps in shares_bps.items():
        time_s, rate_bps = means(*rate_series(result, flow), average_s, start_s, stop_s)
        if not len(time_s):
            return None
        inside = np.abs(rate_bps - share_bps) <= band * share_bps
        latest_s = max(latest_s, settled_at(time_s, inside) - start_s)
    return latest_s


def rate_swings(
    result: Result,
    *,
    flow: str,
    share_bps: float,
    band: float,
    start_s: float,
    stop_s: float,
    average_s: float,
) -> float | None:
    """Count the moves of a rate from above its share's band to below the band, and back.

    The band is share × (1 ± `band`), the rate a mean of `average_s` inside the window. A rate that
    settles has none; each full oscillation between bottlenecks has two.
    """
    _, rate_bps = means(*rate_series(result, flow), average_s, start_s, stop_s)
    if not len(rate_bps):
        return None
    outside = rate_bps[np.abs(rate_bps - share_bps) > band * share_bps]
    return float(np.count_nonzero(np.diff(np.sign(outside - share_bps))))


def rate_of(result: Result, *, flow: str) -> float | None:
    """Return a flow's rate in the summary (bit/s): full packets received in the measured window."""
    return named(result.summary.flows, flow).rate_bps


def group_rate(result: Result, *, flows: list[str]) -> float | None:
    """Return the sum of the rates of several groups' flows in the summary (bit/s)."""
    known = {entry.group for entry in result.summary.flows}
    for group in flows:
        if group not in known:
            raise KeyError(group)
    return sum(f.rate_bps or 0.0 for f in result.summary.flows if f.group in flows)


def rtt_of(result: Result, *, flow: str, quantile: Quantile = "mean") -> float | None:
    """Return `base`, `mean`, `p50` or `p99` of a flow's RTT in the measured window (s)."""
    rtt: float | None = named(result.summary.flows, flow).rtt_ms[quantile]
    return None if rtt is None else rtt / 1e3


def mean_window_packets(
    result: Result, *, flow: str, packet_bytes: float, rtt_s: float
) -> float | None:
    """Return a flow's mean window, rate × RTT, in packets of `packet_bytes`."""
    rate_bps = rate_of(result, flow=flow)
    return None if rate_bps is None else rate_bps * rtt_s / (8 * packet_bytes)


def window_max_packets(
    result: Result, *, flow: str, packet_bytes: float, start_s: float, stop_s: float
) -> float | None:
    """Return the largest sample of a flow's window within a time window (packets)."""
    time_s, window_bytes = samples(result, "flows", flow, "window_bytes")
    _, inside = between(time_s, window_bytes, start_s, stop_s)
    return float(np.nanmax(inside)) / packet_bytes if len(inside) else None


def start_rate(result: Result, *, flow: str, rtt_s: float) -> float | None:
    """Return the rate (bit/s) that a flow's first sampled window gives over `rtt_s`.

    The scenario's `sample` has to be short enough for the window to be the one that the flow starts
    with.
    """
    _, window_bytes = samples(result, "flows", flow, "window_bytes")
    known = window_bytes[np.isfinite(window_bytes)]
    return 8 * float(known[0]) / rtt_s if len(known) else None


def reduction_interval(result: Result, *, flow: str, start_s: float, stop_s: float) -> float | None:
    """Return the mean time (s) between reductions of a flow's window by more than a fifth.

    None with fewer than two reductions in the time window.
    """
    time_s, window_bytes = samples(result, "flows", flow, "window_bytes")
    time_s, window_bytes = between(time_s, window_bytes, start_s, stop_s)
    down = window_bytes[1:] < 0.8 * window_bytes[:-1]
    at_s = time_s[1:][down]
    # A reduction spread over two samples is one.
    at_s = at_s[np.diff(at_s, prepend=-math.inf) > 2 * step_s(time_s)]
    return float(np.diff(at_s).mean()) if len(at_s) > 1 else None
