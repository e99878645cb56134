"""Time series of a run: columns, windows, means and settling.

Times are simulated seconds from the start of the run, windows are (start, stop] at the resolution
of the scenario's `sample`. Arrays have the shape (samples,).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from waterfill.contract import versions

if TYPE_CHECKING:
    import pyarrow as pa

    from waterfill.contract.network import FlowSpec
    from waterfill.runs.result import Result, Which

Series: TypeAlias = NDArray[np.float64]

# Sample times are sums of floats: a window's ends must not lose a sample to rounding.
EPSILON_S = 1e-9


def numbers(table: pa.Table, column: str) -> Series:
    """Return a column of a table as floats, of shape (rows,). Null becomes NaN."""
    (column,) = versions.current([column])
    values: Series = table[column].to_numpy().astype(np.float64, copy=False)
    return values


def samples(result: Result, which: Which, name: str, column: str) -> tuple[Series, Series]:
    """Return the sample times (s) and one column of a flow, link or source, of shape (samples,).

    Raises KeyError when the run has none of that name.
    """
    rows = result.samples(which, name)
    return numbers(rows, "time_s"), numbers(rows, column)


def rate_series(result: Result, flow: str) -> tuple[Series, Series]:
    """Return a flow's rate (bit/s) at every sample time of the run, or zero without a sample."""
    return flow_series(result, flow, "rate_bps")


def flow_series(result: Result, flow: str, column: str) -> tuple[Series, Series]:
    """Return a column of a flow at every sample time of the run, or zero without a sample.

    Raises KeyError when the run has no such flow or column.
    """
    time_s = np.unique(numbers(result.links, "time_s"))
    each = result.network.series.per_sample if result.network.series is not None else 1
    if each > 1:  # links have samples in between; the run's last interval may be shorter
        last = time_s[-1:] if len(time_s) % each else time_s[:0]
        time_s = np.append(time_s[each - 1 :: each], last)
    values = np.zeros(len(time_s))
    mine_s, mine = samples(result, "flows", flow, column)
    # A flow has an extra row at its start, which may fall between sample times.
    shared = np.isin(mine_s, time_s)
    values[np.searchsorted(time_s, mine_s[shared])] = np.nan_to_num(mine[shared])
    return time_s, values


def between(
    time_s: Series, values: NDArray[Any], start_s: float, stop_s: float
) -> tuple[Series, NDArray[Any]]:
    """Return the times and values of the samples in a time window."""
    inside = (time_s > start_s + EPSILON_S) & (time_s <= stop_s + EPSILON_S)
    return time_s[inside], values[inside]


def mean(time_s: Series, values: Series, start_s: float, stop_s: float) -> float | None:
    """Return the mean of a column in a time window, with NaN as 0, or None without a sample."""
    _, inside = between(time_s, values, start_s, stop_s)
    return float(np.nan_to_num(inside).mean()) if len(inside) else None


def means(
    time_s: Series, values: Series, average_s: float, start_s: float, stop_s: float
) -> tuple[Series, Series]:
    """Return the ends and values of all means over `average_s` that fit in a time window.

    With `average_s` = 0 each mean is one sample.
    """
    before_s = max(0.0, average_s - step_s(time_s))
    return between(time_s, trailing(time_s, values, average_s), start_s + before_s, stop_s)


def trailing(time_s: Series, values: Series, average_s: float) -> Series:
    """Return the mean over the last `average_s` at each sample, or over less time at the start."""
    between_s = step_s(time_s)
    count = max(1, round(average_s / between_s)) if between_s > 0 else 1
    if count == 1:
        return np.nan_to_num(values)
    sums = np.concatenate([[0.0], np.cumsum(np.nan_to_num(values))])
    stop = np.arange(1, len(values) + 1)
    start = np.maximum(0, stop - count)
    means: Series = (sums[stop] - sums[start]) / (stop - start)
    return means


def intervals(
    time_s: Series, values: Series, average_s: float, combine: np.ufunc = np.add
) -> tuple[Series, Series]:
    """Return means or maxima over intervals of `average_s` at the midpoints, or the samples if
    `average_s` is 0.
    """
    values = np.nan_to_num(values)
    if average_s <= 0 or not len(values):
        return time_s, values
    # A sample at exactly 1.0 s ends the interval (0, 1].
    number = np.ceil(time_s / average_s - 1e-6).astype(np.int64)
    starts = np.flatnonzero(np.diff(number, prepend=number[0] - 1))
    combined = combine.reduceat(values, starts)
    if combine is np.add:
        combined = combined / np.diff(np.append(starts, len(values)))
    return np.asarray((number[starts] - 0.5) * average_s), combined


def step_s(time_s: Series) -> float:
    """Return the time between two samples (s), or 0 with fewer than two samples."""
    return float(time_s[1] - time_s[0]) if len(time_s) > 1 else 0.0


def settled_at(time_s: Series, inside: NDArray[np.bool_]) -> float:
    """Return the first time from which `inside` stays true, or infinity if the last is false.

    Both arguments have the shape (samples,), at least one sample.
    """
    if not inside[-1]:
        return math.inf
    first = 0 if inside.all() else len(inside) - int(np.argmin(inside[::-1]))
    return float(time_s[first])


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Entry = TypeVar("Entry", bound=_Named)


def named(entries: Iterable[Entry], name: str) -> Entry:
    """Return the flow, link or source with this name; raise KeyError if there is none."""
    for entry in entries:
        if entry.name == name:
            return entry
    raise KeyError(name)


def _entry(result: Result, flow: str) -> FlowSpec:
    group = flow.partition("[")[0]
    return next(entry for entry in result.network.flows if entry.name == group)


def path_of(result: Result, flow: str) -> list[str]:
    """Return the names of the links that a flow's data cross in the measurement window."""
    entry, (from_s, to_s) = _entry(result, flow), result.network.measure_s
    ends_s = [*(way.at_s for way in entry.routes), math.inf]
    crossed = dict.fromkeys(
        index
        for way, end_s in zip(entry.ways, ends_s, strict=True)
        for index in way.forward
        if way.at_s < to_s and from_s < end_s
    )
    return [result.network.links[index].name for index in crossed]


def capacity_bps(result: Result, link: str) -> float:
    """Return a link's rate (bit/s)."""
    rates = {entry.name: entry.rate_bps for entry in result.network.links}
    return rates[link]
