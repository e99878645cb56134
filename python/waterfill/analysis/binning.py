"""Time series cut into intervals of one length, for charts: means, peaks, sums and minima."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from waterfill.analysis.series import Series, numbers
from waterfill.runs.result import NAME_COLUMN, Which

if TYPE_CHECKING:
    import pyarrow as pa

    from waterfill.runs.result import Result

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Grid:
    """Consecutive time intervals ((i − 1)·width, i·width] of a run, in seconds."""

    width_s: float
    count: int

    @property
    def middles_s(self) -> Series:
        """Midpoints of the intervals (s)."""
        middles: Series = (np.arange(self.count, dtype=np.float64) + 0.5) * self.width_s
        return middles

    def place(self, time_s: Series) -> npt.NDArray[np.int64]:
        """Return the index of the interval that contains each sample, by the sample's end time."""
        found = np.ceil(time_s / self.width_s - 1e-6).astype(np.int64) - 1
        return np.clip(found, 0, self.count - 1)


def grid_of(result: Result, most: int, fewest: int) -> Grid:
    """Divide a run into `fewest` to `most` intervals, each as long as the run's largest base RTT if
    possible.

    They are multiples of the time between samples, where that is shorter than the run.
    """
    duration_s = float(result.summary.duration_s)
    rtts = (flow.rtt_ms.base / 1e3 for flow in result.summary.flows)
    width_s = min(max(max(rtts, default=0.0), duration_s / most), duration_s / fewest)
    return grid_with(result, width_s)


def grid_with(result: Result, width_s: float) -> Grid:
    """Return intervals of a run with about the given width, each at least one sample long."""
    duration_s = float(result.summary.duration_s)
    sample_s = result.network.sample_s
    if 0 < sample_s < duration_s:
        width_s = max(1, round(width_s / sample_s)) * sample_s
    return Grid(width_s, max(1, int(np.ceil(duration_s / width_s - 1e-9))))


class Binned:
    """One table of a run by name and interval. Its rows are sorted once for all columns."""

    def __init__(self, result: Result, which: Which, names: Sequence[str], grid: Grid) -> None:
        table: pa.Table = getattr(result, which)
        self._table, self.names, self.grid = table, list(names), grid
        known = {name: i for i, name in enumerate(self.names)}
        column = table[NAME_COLUMN[which]].combine_chunks()
        listed = column.dictionary.to_pylist()
        to_place = np.array([known.get(name, -1) for name in listed] or [-1], dtype=np.int64)
        indexes = column.indices.to_numpy() if len(column) else np.zeros(0, np.int64)
        name = to_place[indexes] if len(indexes) else np.zeros(0, np.int64)
        self._kept = np.flatnonzero(name >= 0)
        interval = grid.place(numbers(table, "time_s")[self._kept])
        self._cell = name[self._kept] * grid.count + interval
        self._shape = (len(self.names), grid.count)

    def _values(self, column: str) -> tuple[Series, npt.NDArray[np.int64]]:
        return numbers(self._table, column)[self._kept], self._cell

    def sums(self, column: str) -> Matrix:
        """Return a column's sums, of shape (names, intervals); zero without a sample."""
        values, cell = self._values(column)
        size = self._shape[0] * self._shape[1]
        found = np.bincount(cell, np.nan_to_num(values), size).astype(np.float64)
        return found.reshape(self._shape)

    def means(self, column: str, *, null_is_zero: bool = False) -> Matrix:
        """Return a column's means, of shape (names, intervals); NaN without a sample.

        A null is left out, or counts as zero.
        """
        values, cell = self._values(column)
        there = np.ones(len(values), bool) if null_is_zero else np.isfinite(values)
        size = self._shape[0] * self._shape[1]
        sums = np.bincount(cell[there], np.nan_to_num(values[there]), size)
        counts = np.bincount(cell[there], minlength=size)
        means = np.full(size, np.nan)
        np.divide(sums, counts, out=means, where=counts > 0)
        return means.reshape(self._shape)

    def peaks(self, column: str) -> Matrix:
        """Return a column's maxima, of shape (names, intervals); NaN without a sample."""
        return self._extreme(column, np.fmax)

    def lows(self, column: str) -> Matrix:
        """Return a column's minima, of shape (names, intervals); NaN without a sample."""
        return self._extreme(column, np.fmin)

    def _extreme(self, column: str, choose: np.ufunc) -> Matrix:
        values, cell = self._values(column)
        found = np.full(self._shape[0] * self._shape[1], np.nan)
        choose.at(found, cell, values)
        return found.reshape(self._shape)
