"""Completion times and slowdowns of transfers: percentiles by size, and distributions.

All take `Result.transfers`, or several of them concatenated. A percentile is the smallest value
that this share of the completed flows does not exceed, as in the summary. Unfinished flows have no
value; they are counted apart.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from waterfill.analysis.series import Series
from waterfill.contract.record import Record
from waterfill.runs.result import percentile

if TYPE_CHECKING:
    import pyarrow as pa

Quantity: TypeAlias = Literal["slowdown", "completion_s"]

EDGES_BYTES = (10e3, 100e3, 1e6, 10e6)
"""Limits between size bins (bytes): 10 kB, 100 kB, 1 MB and 10 MB."""


class Spread(Record):
    """Mean and percentiles of transfers, or None without a completed flow."""

    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None


class SizeBin(Record):
    """Transfers with a payload above `above_bytes` and, unless `to_bytes` is None, of at most
    `to_bytes`.
    """

    above_bytes: float
    to_bytes: float | None
    flows: int
    unfinished: int
    slowdown: Spread
    completion_s: Spread


def spread(values: Series) -> Spread:
    """Return the mean and the percentiles of all values that are not NaN."""
    found = np.sort(values[np.isfinite(values)]).tolist()
    mean = math.fsum(found) / len(found) if found else None
    p50, p90, p99 = (percentile(found, percent) for percent in (50, 90, 99))
    return Spread(mean=mean, p50=p50, p90=p90, p99=p99)


def completed_ms(table: pa.Table) -> list[float]:
    """Return the completion times (ms) of all completed transfers in a table, ascending."""
    took_s = values(table, "completion_s")
    return [1e3 * one for one in np.sort(took_s[np.isfinite(took_s)]).tolist()]


class Overall(Record):
    """Summary of all transfers of a run."""

    flows: int
    unfinished: int
    completion_s: Spread
    slowdown: Spread


def overall(table: pa.Table) -> Overall:
    """Return the number, completion times and slowdowns of all transfers in a table."""
    took_s = values(table, "completion_s")
    return Overall(
        flows=len(took_s),
        unfinished=int(np.isnan(took_s).sum()),
        completion_s=spread(took_s),
        slowdown=spread(values(table, "slowdown")),
    )


def by_size(table: pa.Table, edges_bytes: Sequence[float] = EDGES_BYTES) -> list[SizeBin]:
    """Return a row for each size bin that has flows, and one for all sizes if several bins have
    flows.

    `edges_bytes` rise; the first bin begins at 0, the last has no end.
    """
    size = values(table, "size_bytes")
    columns = (values(table, "slowdown"), values(table, "completion_s"))
    spans = list(itertools.pairwise([0.0, *edges_bytes, math.inf]))
    rows = []
    for above, to in spans if len(spans) == 1 else [*spans, (0.0, math.inf)]:
        there = (size > above) & (size <= to)
        if there.any():
            slowdown, took_s = (column[there] for column in columns)
            rows.append(
                SizeBin(
                    above_bytes=above,
                    to_bytes=None if math.isinf(to) else to,
                    flows=int(there.sum()),
                    unfinished=int(np.isnan(took_s).sum()),
                    slowdown=spread(slowdown),
                    completion_s=spread(took_s),
                )
            )
    return rows[:1] if len(rows) == 2 and rows[0].flows == rows[1].flows else rows


def cdf(table: pa.Table, of: Quantity = "slowdown") -> pa.Table:
    """Return the distribution of a column as two columns: `of`, ascending, and `share`.

    `share` is the fraction of all flows in the table, unfinished ones included, with at most this
    value: where flows are unfinished it ends below 1.
    """
    import pyarrow as pa

    found = values(table, of)
    there = np.sort(found[np.isfinite(found)])
    share = np.arange(1, len(there) + 1) / max(1, len(found))
    return pa.table({of: there, "share": share})


def values(table: pa.Table, column: str) -> Series:
    """Return a column of a table as real numbers. Null becomes NaN."""
    return np.asarray(table[column].to_numpy(), dtype=np.float64)
