"""Summary tables of a sweep: means over seeds with 95 % intervals, per combination of axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from waterfill.sweeps.api import Sweep
from waterfill.sweeps.estimates import Estimate, estimate

DEFAULT = ("utilization", "share_min", "queue_p99_bytes", "rtt_p99_ms", "drops")
IF_ANY = ("loss_rate", "spurious_retransmissions", "timeouts")
"""Columns of a table that are left out while they are zero."""


@dataclass(frozen=True)
class Group:
    """Points that differ only in their seeds.

    `values` are the axes' values; `estimates` {column: Estimate}, without columns that have no
    values; `failed` counts the points without figures.
    """

    values: Mapping[str, Any]
    estimates: Mapping[str, Estimate]
    count: int
    failed: int


def axes(sweep: Sweep) -> list[str]:
    """Return the names of all axes except the seed."""
    return [one.key for one in sweep.plan.design.axes()]


def groups(sweep: Sweep, columns: Sequence[str] = DEFAULT) -> list[Group]:
    """Return one group for each combination of the axes' values, in the table's order."""
    names = axes(sweep)
    rows = sweep.table.select([*names, "status", *dict.fromkeys(columns)]).to_pylist()
    return grouped(rows, names, columns)


def shown(found: Sequence[Group], columns: Sequence[str]) -> list[str]:
    """Return the columns with values, without those of `IF_ANY` that are all zero."""
    used = [name for name in columns if any(name in group.estimates for group in found)]
    return [
        name
        for name in used
        if name not in IF_ANY
        or any(group.estimates[name].mean for group in found if name in group.estimates)
    ]


def grouped(
    rows: Iterable[Mapping[str, Any]], names: Sequence[str], columns: Sequence[str]
) -> list[Group]:
    """Return one group for each combination of the values of `names`, in the rows' order."""
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    answer = []
    for values, mine in found.items():
        done = [row for row in mine if row["status"] == "done"]
        estimates = {}
        for column in columns:
            numbers = [float(row[column]) for row in done if row[column] is not None]
            if numbers and all(map(math.isfinite, numbers)):
                estimates[column] = estimate(numbers)
        known = dict(zip(names, values, strict=True))
        answer.append(Group(known, estimates, len(mine), len(mine) - len(done)))
    return answer


# Units of the tables of `run`; the dataset and JSON have SI units.
_UNITS = {
    "_bytes": ("kB", 1e3),
    "_bps": ("Mbit/s", 1e6),
    "_ms": ("ms", 1.0),
    "_s": ("s", 1.0),
}
_PERCENT = ("utilization", "loss_rate")


def units(name: str, path: str = "") -> tuple[str, str, float]:
    """Return a column's name without its unit, the unit in tables, and its size in the dataset's
    unit.

    `path` is where a column of the user's own comes from, such as `flows.long.rate_bps`, whose unit
    it has.
    """
    if name in _PERCENT:
        return name, "%", 0.01
    for suffix, (unit, size) in _UNITS.items():
        if name.endswith(suffix):
            return name.removesuffix(suffix), unit, size
        if path.endswith(suffix):
            return name, unit, size
    return name, "", 1.0


def number(value: float) -> str:
    """Return a number with four significant digits, and with a prefix if it is at least 10,000
    (16.5k).
    """
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= max(size, 1e4):
            return f"{value / size:.4g}{prefix}"
    return f"{value:.4g}"
