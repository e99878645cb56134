"""Tables of slowdowns, with a row for each law and intervals over the seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from scipy.special import stdtrit

from validation.tables import markdown

COLUMNS = (
    ("all", "mean", "mean"),
    ("all", "p50", "p50"),
    ("all", "p90", "p90"),
    ("all", "p99", "p99"),
    ("small", "p50", "small: p50"),
    ("small", "p99", "small: p99"),
    ("large", "p50", "large: p50"),
)


def tables(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a Markdown table for each fabric and load, with laws ordered by median slowdown."""
    parts = []
    for fabric, load in dict.fromkeys((row["fabric"], row["load"]) for row in rows):
        mine = [row for row in rows if (row["fabric"], row["load"]) == (fabric, load)]
        seeds = len({row["seed"] for row in mine})
        flows = sum(row["bins"]["all"]["flows"] for row in mine) // len({r["law"] for r in mine})
        title = f"{fabric}, {load:.0%} load: {flows} flows of {seeds} seeds for each law"
        parts.append(f"### {title}\n\n{_table(mine)}")
    return "\n\n".join(parts)


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    by_law: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_law.setdefault(row["law"], []).append(row)
    lines = []
    for law in sorted(by_law, key=lambda law: fmean(_of(by_law[law], "all", "p50"))):
        mine = by_law[law]
        flows = sum(row["bins"]["all"]["flows"] for row in mine)
        unfinished = sum(row["bins"]["all"]["unfinished"] for row in mine)
        cells = [interval(_of(mine, where, what)) for where, what, _ in COLUMNS]
        drops = fmean(row["drops"] for row in mine)
        left = f"{unfinished / flows:.2%}" if unfinished else "0"
        lines.append([f"`{law}`", *cells, left, f"{drops:.0f}"])
    return markdown("|".join(["law", *(t for *_, t in COLUMNS), "unfinished", "drops"]), lines)


def _of(rows: Iterable[Mapping[str, Any]], where: str, what: str) -> list[float]:
    found = [row["bins"][where]["slowdown"][what] for row in rows]
    return [value for value in found if value is not None]


def interval(values: Sequence[float]) -> str:
    """Return the mean over seeds and the half-width of its 95 % interval, such as `4.1 ± 0.2`."""
    if not values:
        return "–"
    mean = fmean(values)
    if len(values) == 1:
        return short(mean, 3)
    # Two-sided: the 97.5 % quantile of Student's distribution.
    t = float(stdtrit(len(values) - 1, 0.975))
    return f"{short(mean, 3)} ± {short(t * stdev(values) / len(values) ** 0.5, 2)}"


def short(value: float, digits: int) -> str:
    """Format a number with a given number of significant digits, but never shorten its integer
    part.
    """
    return f"{value:.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"
