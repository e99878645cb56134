"""What claims measure: small named functions from a run to one number in SI units.

`claims.toml` names a measure and its arguments; `MEASURES` is the list of them, each with the
dimension of its answer. Times are simulated seconds from the start of the run, windows are
(start, stop] at the resolution of the scenario's `sample`. A flow's rate is what its receiver
gets, headers included, and zero where it has no sample. Every measure answers

- None when the run has no sample of what it asks for: the claim cannot be checked,
- infinity when what it waits for never happens,

and raises KeyError for a flow or link that the run does not have.

The first argument is always the run; the others are keywords, `_s` seconds, `_bps` bit/s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

    from waterfill.runs.result import Result, Which

Series: TypeAlias = NDArray[np.float64]
Dimension: TypeAlias = Literal["s", "1/s", "bit/s", "bytes", "ratio", "count"]
Of: TypeAlias = Literal["run", "runs", "nothing"]
Window: TypeAlias = tuple[float, float]

# Sample times are sums of floats: a window's ends must not lose a sample to rounding.
_EPSILON_S = 1e-9


@dataclass(frozen=True)
class Measure:
    """One measure: the function, the dimension of what it returns, and what its first argument is.

    `of` is "run" for one run, "runs" for all runs of the experiment by name, and "nothing" for a
    computation, whose arguments are all keywords.
    """

    function: Callable[..., float | None]
    dimension: Dimension
    of: Of = "run"


MEASURES: dict[str, Measure] = {}


def register(
    dimension: Dimension, of: Of = "run"
) -> Callable[[Callable[..., float | None]], Callable[..., float | None]]:
    """Puts a function on the list under its own name."""

    def put(function: Callable[..., float | None]) -> Callable[..., float | None]:
        MEASURES[function.__name__] = Measure(function, dimension, of)
        return function

    return put


_measure = register


# --- rates -------------------------------------------------------------------------------------


@_measure("bit/s")
def rate_over(result: Result, *, flow: str, start_s: float, stop_s: float) -> float | None:
    """Mean rate of a flow in a window."""
    return _mean(*_rate(result, flow), start_s, stop_s)


@_measure("bit/s")
def group_rate_over(result: Result, *, group: str, start_s: float, stop_s: float) -> float | None:
    """Sum of the mean rates of a group's flows in a window."""
    names = [entry["name"] for entry in result.summary["flows"] if entry["group"] == group]
    if not names:
        raise KeyError(group)
    means = [_mean(*_rate(result, name), start_s, stop_s) for name in names]
    known = [mean for mean in means if mean is not None]
    return sum(known) if len(known) == len(means) else None


@_measure("bit/s")
def class_rate_over(
    result: Result, *, groups: list[str], start_s: float, stop_s: float
) -> float | None:
    """Sum of `group_rate_over` of these groups."""
    rates = [group_rate_over(result, group=g, start_s=start_s, stop_s=stop_s) for g in groups]
    known = [rate for rate in rates if rate is not None]
    return sum(known) if len(known) == len(rates) else None


@_measure("ratio")
def share_error(
    result: Result, *, shares_bps: Mapping[str, float], start_s: float, stop_s: float
) -> float | None:
    """Largest |mean rate − share| / share of the flows in a window."""
    errors = []
    for flow, share_bps in shares_bps.items():
        mean_bps = rate_over(result, flow=flow, start_s=start_s, stop_s=stop_s)
        if mean_bps is None:
            return None
        errors.append(abs(mean_bps - share_bps) / share_bps)
    return max(errors)


@_measure("s")
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
    """Time from `at_s` until the rate first has gone `fraction` of the way to its target.

    The way is from `before_bps` to `target_bps`, upwards or downwards. The rate is one sample,
    its time the sample's end; with `average_s` it is a mean over so long a time, centred, so that
    averaging does not delay it.
    """
    time_s, rate_bps = _rate(result, flow)
    rate_bps = _trailing(time_s, rate_bps, average_s)
    delay_s = max(0.0, average_s - _step_s(time_s)) / 2
    time_s, rate_bps = _between(time_s - delay_s, rate_bps, at_s, math.inf)
    if not len(time_s):
        return None
    goal_bps = before_bps + fraction * (target_bps - before_bps)
    reached = rate_bps >= goal_bps if target_bps >= before_bps else rate_bps <= goal_bps
    return float(time_s[reached.argmax()]) - at_s if reached.any() else math.inf


@_measure("s")
def step_time(
    result: Result,
    *,
    flow: str,
    at_s: float,
    before_s: Window,
    after_s: Window,
    fraction: float = 0.9,
) -> float | None:
    """`rise_time` between two levels that the run itself has: the flow's mean rates in two windows.

    So how fast a flow is does not depend on whether its levels are somebody else's.
    """
    levels = [rate_over(result, flow=flow, start_s=a, stop_s=b) for a, b in (before_s, after_s)]
    before_bps, after_bps = levels
    if before_bps is None or after_bps is None:
        return None
    step = {"before_bps": before_bps, "target_bps": after_bps, "fraction": fraction}
    return rise_time(result, flow=flow, at_s=at_s, **step)


@_measure("s")
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
    """Time from `at_s` after which `flow` always has `fraction` of what `giver` has freed by then.

    What is freed and taken counts from the mean rates in the `before_s` up to `at_s`; rates are
    centred means over `average_s`. Infinity if the flow has less at the last mean before `stop_s`.
    """
    time_s, rate_bps = _rate(result, flow)
    giver_bps = _rate(result, giver)[1]
    before_bps = _mean(time_s, rate_bps, at_s - before_s, at_s)
    giver_before_bps = _mean(time_s, giver_bps, at_s - before_s, at_s)
    if before_bps is None or giver_before_bps is None:
        return None
    taken_bps = _trailing(time_s, rate_bps, average_s) - before_bps
    freed_bps = giver_before_bps - _trailing(time_s, giver_bps, average_s)
    delay_s = max(0.0, average_s - _step_s(time_s)) / 2
    time_s, short_bps = _between(
        time_s - delay_s, fraction * freed_bps - taken_bps, at_s + average_s / 2, stop_s
    )
    if not len(time_s):
        return None
    short = short_bps > 0
    if short[-1]:
        return math.inf
    return float(time_s[short.nonzero()[0][-1] + 1]) - at_s if short.any() else 0.0


@_measure("ratio")
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
    """Share of freed capacity that a flow has taken `after_s` after it became free.

    (rate − before) / (target − before), where `before` is the mean rate in the `before_s` up to
    `at_s` and `rate` the mean over `average_s` centred on `at_s + after_s`.
    """
    series = _rate(result, flow)
    middle_s = at_s + after_s
    before_bps = _mean(*series, at_s - before_s, at_s)
    rate_bps = _mean(*series, middle_s - average_s / 2, middle_s + average_s / 2)
    if before_bps is None or rate_bps is None or target_bps == before_bps:
        return None
    return (rate_bps - before_bps) / (target_bps - before_bps)


@_measure("s")
def settle_time(
    result: Result,
    *,
    shares_bps: Mapping[str, float],
    start_s: float,
    stop_s: float,
    band: float,
    average_s: float,
) -> float | None:
    """Time from `start_s` after which every flow stays within `band` of its share.

    `band` is relative. Rates are means of `average_s` wholly inside the window, their time is
    their end: the answer is never below `average_s`. Infinity when a flow ends outside.
    """
    latest_s = 0.0
    for flow, share_bps in shares_bps.items():
        time_s, rate_bps = means(*_rate(result, flow), average_s, start_s, stop_s)
        if not len(time_s):
            return None
        inside = np.abs(rate_bps - share_bps) <= band * share_bps
        latest_s = max(latest_s, settled_at(time_s, inside) - start_s)
    return latest_s


@_measure("count")
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
    """How often a rate goes from above its share's band to below it, or back.

    The band is share × (1 ± `band`), the rate a mean of `average_s` inside the window. A rate that
    settles, from whichever side, has none; each full oscillation between bottlenecks has two.
    """
    _, rate_bps = means(*_rate(result, flow), average_s, start_s, stop_s)
    if not len(rate_bps):
        return None
    outside = rate_bps[np.abs(rate_bps - share_bps) > band * share_bps]
    return float(np.count_nonzero(np.diff(np.sign(outside - share_bps))))


# --- queues and links --------------------------------------------------------------------------


@_measure("bytes")
def queue_mean(result: Result, *, link: str, windows_s: list[Window]) -> float | None:
    """Mean queue of a link in each window; the largest of these means."""
    series = _samples(result, "links", link, "queue_bytes")
    means = [_mean(*series, *window) for window in windows_s]
    known = [mean for mean in means if mean is not None]
    return max(known) if known and len(known) == len(means) else None


@_measure("ratio")
def queue_share(
    result: Result, *, link: str, rtt_s: float, windows_s: list[Window]
) -> float | None:
    """`queue_mean` as a share of the link's rate × `rtt_s`."""
    mean_bytes = queue_mean(result, link=link, windows_s=windows_s)
    return None if mean_bytes is None else mean_bytes * 8 / (_capacity(result, link) * rtt_s)


@_measure("bytes")
def queue_max(result: Result, *, link: str, start_s: float, stop_s: float) -> float | None:
    """Largest queue of a link in a window, the packet in service excluded."""
    time_s, queue_bytes = _samples(result, "links", link, "queue_max_bytes")
    _, queue_bytes = _between(time_s, queue_bytes, start_s, stop_s)
    return float(queue_bytes.max()) if len(queue_bytes) else None


@_measure("ratio")
def peak_prominence(result: Result, *, start_s: float, stop_s: float) -> float | None:
    """Largest queue of any link in a window ÷ largest queue of any link outside it."""
    table = result.links
    time_s = numbers(table, "time_s")
    queue_bytes = numbers(table, "queue_max_bytes")
    inside = (time_s > start_s + _EPSILON_S) & (time_s <= stop_s + _EPSILON_S)
    if inside.all() or not inside.any():
        return None
    elsewhere = float(queue_bytes[~inside].max())
    return float(queue_bytes[inside].max()) / elsewhere if elsewhere > 0 else math.inf


@_measure("ratio")
def utilization_over(result: Result, *, link: str, start_s: float, stop_s: float) -> float | None:
    """Bits serialised in a window ÷ (rate × window): everything that the link carries."""
    return _mean(*_samples(result, "links", link, "utilization"), start_s, stop_s)


@_measure("s")
def fill_time(
    result: Result, *, link: str, at_s: float, utilization: float, average_s: float = 0.0
) -> float | None:
    """Time from `at_s` until a link's utilisation, a mean of `average_s`, first reaches this."""
    time_s, used = _samples(result, "links", link, "utilization")
    time_s, used = _between(time_s, _trailing(time_s, used, average_s), at_s, math.inf)
    if not len(time_s):
        return None
    reached = used >= utilization
    return float(time_s[reached.argmax()]) - at_s if reached.any() else math.inf


@_measure("ratio")
def utilization_error(
    result: Result, *, link: str, target: float, windows_s: list[Window], average_s: float
) -> float | None:
    """Largest |utilisation − target| / target of a link in the windows, means of `average_s`.

    Each mean lies wholly inside a window.
    """
    series = _samples(result, "links", link, "utilization")
    worst = 0.0
    for start_s, stop_s in windows_s:
        _, inside = means(*series, average_s, start_s, stop_s)
        if not len(inside):
            return None
        worst = max(worst, float(np.abs(inside - target).max()) / target)
    return worst


@_measure("count")
def bottleneck_switches(
    result: Result,
    *,
    flow: str,
    start_s: float,
    stop_s: float,
    average_s: float,
    signal: str = "maxnet.price",
) -> float | None:
    """How often the bottleneck of a flow changes: the link of its path with the highest price.

    `signal` is the links' column to compare, a mean of the last `average_s`, so that two links
    whose prices touch for a few packets do not count. None without that column.
    """
    if signal not in result.links.column_names:
        return None
    prices = []
    time_s: Series = np.empty(0)
    for link in _path(result, flow):
        time_s, price = _samples(result, "links", link, signal)
        prices.append(_trailing(time_s, np.nan_to_num(price), average_s))
    _, highest = _between(time_s, np.argmax(np.array(prices), axis=0), start_s, stop_s)
    return float(np.count_nonzero(np.diff(highest))) if len(highest) else None


# --- figures of the summary's window -----------------------------------------------------------


@_measure("bit/s")
def rate_of(result: Result, *, flow: str) -> float | None:
    """`rate_bps` of a flow in the summary: full packets received in the measure window."""
    rate: float | None = _summary(result, "flows", flow)["rate_bps"]
    return rate


@_measure("bit/s")
def group_rate(result: Result, *, flows: list[str], goodput: bool = False) -> float | None:
    """Sum of the rates (or goodputs) of these groups of flows in the summary."""
    key = "goodput_bps" if goodput else "rate_bps"
    known = {entry["group"] for entry in result.summary["flows"]}
    for group in flows:
        if group not in known:
            raise KeyError(group)
    return sum(f[key] or 0.0 for f in result.summary["flows"] if f["group"] in flows)


@_measure("ratio")
def utilization_of(result: Result, *, link: str) -> float | None:
    """`utilization` of a link in the summary."""
    used: float = _summary(result, "links", link)["utilization"]
    return used


@_measure("count")
def last_sample(result: Result, *, link: str, column: str) -> float | None:
    """The last sample of a link's column: of a counter, what it has come to. None without it."""
    if column not in result.links.column_names:
        return None
    values = _samples(result, "links", link, column)[1]
    return float(values[-1]) if len(values) else None


@_measure("count")
def drops_of(result: Result, *, link: str) -> float | None:
    """Packets that found a link's buffer full in the measure window."""
    return float(_summary(result, "links", link)["drops"])


@_measure("s")
def rtt_of(result: Result, *, flow: str, quantile: str = "mean") -> float | None:
    """`base`, `mean`, `p50` or `p99` of a flow's round trips in the measure window."""
    rtt: float | None = _summary(result, "flows", flow)["rtt_ms"][quantile]
    return None if rtt is None else rtt / 1e3


@_measure("count")
def mean_window_packets(
    result: Result, *, flow: str, packet_bytes: float, rtt_s: float
) -> float | None:
    """A flow's mean window in packets of `packet_bytes`, as rate × round trip."""
    rate_bps = rate_of(result, flow=flow)
    return None if rate_bps is None else rate_bps * rtt_s / (8 * packet_bytes)


@_measure("count")
def window_max_packets(
    result: Result, *, flow: str, packet_bytes: float, start_s: float, stop_s: float
) -> float | None:
    """Largest sample of a flow's window, in packets of `packet_bytes`, in a time window."""
    time_s, window_bytes = _samples(result, "flows", flow, "window_bytes")
    _, inside = _between(time_s, window_bytes, start_s, stop_s)
    return float(np.nanmax(inside)) / packet_bytes if len(inside) else None


@_measure("s")
def reduction_interval(result: Result, *, flow: str, start_s: float, stop_s: float) -> float | None:
    """Mean time between two reductions of a flow's window by a fifth or more, in a time window.

    None with fewer than two of them.
    """
    time_s, window_bytes = _samples(result, "flows", flow, "window_bytes")
    time_s, window_bytes = _between(time_s, window_bytes, start_s, stop_s)
    down = window_bytes[1:] < 0.8 * window_bytes[:-1]
    at_s = time_s[1:][down]
    # A reduction spread over two samples is one.
    at_s = at_s[np.diff(at_s, prepend=-math.inf) > 2 * _step_s(time_s)]
    return float(np.diff(at_s).mean()) if len(at_s) > 1 else None


# --- samples -----------------------------------------------------------------------------------


def _summary(result: Result, which: Which, name: str) -> Mapping[str, Any]:
    for entry in result.summary[which]:
        if entry["name"] == name:
            found: Mapping[str, Any] = entry
            return found
    raise KeyError(name)


def settled_at(time_s: Series, inside: NDArray[np.bool_]) -> float:
    """The first time from which every sample is inside; infinity when the last one is not.

    Both arguments have the shape (samples,), at least one sample.
    """
    if not inside[-1]:
        return math.inf
    first = 0 if inside.all() else len(inside) - int(np.argmin(inside[::-1]))
    return float(time_s[first])


def numbers(table: pa.Table, column: str) -> Series:
    """A column as floats, shape (rows,); NaN where it is null."""
    values: Series = table[column].to_numpy().astype(np.float64, copy=False)
    return values


def _samples(result: Result, which: Which, name: str, column: str) -> tuple[Series, Series]:
    """Sample times (s) and one column of one flow, link or source; both of shape (samples,).

    Raises KeyError when the run has none of that name.
    """
    rows = result.samples(which, name)
    return numbers(rows, "time_s"), numbers(rows, column)


def _rate(result: Result, flow: str) -> tuple[Series, Series]:
    """A flow's rate (bit/s) at every sample time of the run, zero where it has no sample."""
    return flow_series(result, flow, "rate_bps")


def flow_series(result: Result, flow: str, column: str) -> tuple[Series, Series]:
    """A column of a flow at every sample time of the run, zero where it has no sample.

    Raises KeyError when the run has no such flow or column.
    """
    time_s = np.unique(numbers(result.links, "time_s"))
    values = np.zeros(len(time_s))
    mine_s, mine = _samples(result, "flows", flow, column)
    # A flow has one more row, at its start, which need not be a sample time of the links.
    shared = np.isin(mine_s, time_s)
    values[np.searchsorted(time_s, mine_s[shared])] = np.nan_to_num(mine[shared])
    return time_s, values


def _between(
    time_s: Series, values: NDArray[Any], start_s: float, stop_s: float
) -> tuple[Series, NDArray[Any]]:
    inside = (time_s > start_s + _EPSILON_S) & (time_s <= stop_s + _EPSILON_S)
    return time_s[inside], values[inside]


def _mean(time_s: Series, values: Series, start_s: float, stop_s: float) -> float | None:
    _, inside = _between(time_s, values, start_s, stop_s)
    return float(np.nan_to_num(inside).mean()) if len(inside) else None


def means(
    time_s: Series, values: Series, average_s: float, start_s: float, stop_s: float
) -> tuple[Series, Series]:
    """The means of `average_s` (one sample if 0) that lie wholly in a window, and their ends."""
    before_s = max(0.0, average_s - _step_s(time_s))
    return _between(time_s, _trailing(time_s, values, average_s), start_s + before_s, stop_s)


def _step_s(time_s: Series) -> float:
    return float(time_s[1] - time_s[0]) if len(time_s) > 1 else 0.0


def _trailing(time_s: Series, values: Series, average_s: float) -> Series:
    """Mean of the last `average_s` up to each sample; over what there is before the first."""
    step_s = _step_s(time_s)
    count = max(1, round(average_s / step_s)) if step_s > 0 else 1
    if count == 1:
        return np.nan_to_num(values)
    sums = np.concatenate([[0.0], np.cumsum(np.nan_to_num(values))])
    stop = np.arange(1, len(values) + 1)
    start = np.maximum(0, stop - count)
    means: Series = (sums[stop] - sums[start]) / (stop - start)
    return means


def _entry(result: Result, flow: str) -> Mapping[str, Any]:
    group = flow.partition("[")[0]
    return next(entry for entry in result.network["flows"] if entry["name"] == group)


def _path(result: Result, flow: str) -> list[str]:
    """Names of the links that a flow's data cross."""
    links = result.network["links"]
    return [links[index]["name"] for index in _entry(result, flow)["forward"]]


def _capacity(result: Result, link: str) -> float:
    """A link's rate, in bit/s."""
    rates = {entry["name"]: entry["rate_bps"] for entry in result.network["links"]}
    return float(rates[link])
