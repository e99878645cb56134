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

    from waterfill.contract.network import Network

Quantity: TypeAlias = Literal["slowdown", "completion_s"]

EDGES_BYTES = (10e3, 100e3, 1e6, 10e6)
"""Limits between size bins (bytes): 10 kB, 100 kB, 1 MB and 10 MB."""


class Spread(Record):
    """Mean and percentiles of transfers, or None without a completed flow."""

    mean: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    p999: float | None


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
    p50, p90, p95, p99 = (percentile(found, percent) for percent in (50, 90, 95, 99))
    p999 = percentile(found, 999, of=1000)
    return Spread(mean=mean, p50=p50, p90=p90, p95=p95, p99=p99, p999=p999)


class Overall(Record):
    """Summary of all transfers of a run."""

    flows: int
    unfinished: int
    completion_s: Spread
    slowdown: Spread
    ideal: str = "handshake"
    """What the slowdowns' times contain: see `Result.slowdown_contents`."""


def overall(table: pa.Table, ideal: str = "handshake") -> Overall:
    """Return the number, completion times and slowdowns of all transfers in a table."""
    took_s = values(table, "completion_s")
    found = Overall(
        flows=len(took_s),
        unfinished=int(np.isnan(took_s).sum()),
        completion_s=spread(took_s),
        slowdown=spread(values(table, "slowdown")),
    )
    if ideal != "handshake":
        found.ideal = ideal
    return found


def edges(table: pa.Table, bins: str | Sequence[float] = "decades") -> list[float]:
    """Return the limits between size bins (bytes), ascending.

    `bins` is "decades" (`EDGES_BYTES`), "deciles" (ten bins of as many flows each, as in HPCC's
    figures), "sizes" (a bin for each size), or the limits themselves.
    """
    if not isinstance(bins, str):
        return list(bins)
    if bins == "decades":
        return list(EDGES_BYTES)
    found = np.sort(values(table, "size_bytes"))
    if bins == "sizes":
        return list(np.unique(found)[:-1].tolist())
    tenths = {percentile(found.tolist(), percent) for percent in range(10, 100, 10)}
    return sorted(edge for edge in tenths if edge is not None and edge < found[-1])


class Incast(Record):
    """Flows that one arrival of an incast has started. The times are None until all are
    complete.
    """

    source: str
    start_s: float
    flows: int
    unfinished: int
    completion_s: float | None
    """Time from the arrival until the last flow's receiver had all its data."""


def incasts(table: pa.Table, network: Network) -> list[Incast]:
    """Return the arrivals of all incasts, by source and start."""
    import pyarrow.compute as pc

    found = []
    for source in network.traffic:
        if source.flows is None or source.flows.fan_in == 1:
            continue
        mine = table.filter(pc.equal(table["source"].cast("string"), source.name))
        start_s, took_s = values(mine, "start_s"), values(mine, "completion_s")
        arrival = values(mine, "index").astype(np.int64) // source.flows.fan_in
        for number in np.unique(arrival):
            there = arrival == number
            unfinished = int(np.isnan(took_s[there]).sum())
            last_s = None if unfinished else float(took_s[there].max())
            found.append(
                Incast(
                    source=source.name,
                    start_s=float(start_s[there][0]),
                    flows=int(there.sum()),
                    unfinished=unfinished,
                    completion_s=last_s,
                )
            )
    return found


class IncastSummary(Record):
    """Arrivals of one source of incasts, and the time (s) until the last flow of each is complete,
    of those that are.
    """

    source: str
    arrivals: int
    flows: int
    """Number of flows that each arrival starts."""
    unfinished: int
    completion_s: Spread
    slowest_s: float | None


def incast_summaries(table: pa.Table, network: Network) -> list[IncastSummary]:
    """Return a summary of each source of incasts that has started flows."""
    found = []
    for name, group in itertools.groupby(incasts(table, network), lambda one: one.source):
        mine = list(group)
        last_s = [one.completion_s for one in mine if one.completion_s is not None]
        found.append(
            IncastSummary(
                source=name,
                arrivals=len(mine),
                flows=mine[0].flows,
                unfinished=len(mine) - len(last_s),
                completion_s=spread(np.array(last_s, dtype=np.float64)),
                slowest_s=max(last_s, default=None),
            )
        )
    return found


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
