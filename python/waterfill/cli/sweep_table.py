"""Results of `sweep` as tables and as a JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from waterfill.analysis.tables import NONE, Column, TableCell
from waterfill.cli.tables import printed
from waterfill.errors import one_line
from waterfill.network import chance
from waterfill.sweeps import table
from waterfill.sweeps.estimates import Estimate
from waterfill.sweeps.refine import Boundary
from waterfill.sweeps.table import Group, number

if TYPE_CHECKING:
    from waterfill.runs.result import Document
    from waterfill.sweeps.api import Sweep

# Tables show up to this many combinations; all are in the dataset.
MAX_ROWS = 40
# An interval this small relative to its mean is of rounding.
_SAME = 1e-9


def document(sweep: Sweep, columns: Sequence[str]) -> Document:
    """Return a sweep's results as plain data: combinations with means and intervals, and
    boundaries.
    """
    return {
        "directory": str(sweep.plan.folder),
        "points": sweep.expected,
        "recorded": len(sweep),
        "failed": sweep.failed,
        "interrupted": sweep.interrupted,
        "groups": [
            {
                "values": group.values,
                "points": group.count,
                "failed": group.failed,
                "columns": {
                    name: {"mean": e.mean, "half": e.half, "count": e.seeds}
                    for name, e in group.estimates.items()
                },
            }
            for group in table.groups(sweep, columns)
        ],
        "boundaries": [
            {
                "values": found.values,
                "low": found.low,
                "high": found.high,
                "state": found.state,
                "undecided": list(found.undecided),
                "points": found.runs,
            }
            for found in sweep.boundaries
        ],
    }


# Columns that only flows in the measure window fill.
_OF_FLOWS = (
    *("share_min", "share_max", "jain_index", "jain_index_of_shares", "rtt_mean_ms", "rtt_p99_ms"),
)


def tables(sweep: Sweep, columns: Sequence[str]) -> list[Table | Text]:
    """Return the table of a sweep and its notes."""
    failed = f", {sweep.failed} failed" if sweep.failed else ""
    head = f"{one_line(sweep.plan.base.name)} on {sweep.plan.base.on}: "
    head += f"{len(sweep)} of {sweep.expected} points{failed}"
    parts: list[Table | Text] = [Text(head, style="bold")]
    if sweep.boundaries:
        return [*parts, *_boundaries(sweep)]
    found = table.groups(sweep, columns)
    if not found:
        return parts
    used, paths = table.shown(found, columns), sweep.plan.extra
    units = {one.key: one.unit for one in sweep.plan.design.axes()}
    shown: list[Column[Group]] = [
        Column(_header(name, units[name]), partial(_place, name)) for name in table.axes(sweep)
    ]
    if any(group.count > 1 for group in found):
        shown.append(Column("seeds", _count))
    shown += [
        Column(_title(name, paths.get(name, "")), partial(_estimate, name, paths.get(name, "")))
        for name in used
    ]
    parts.append(printed(shown, found[:MAX_ROWS]))
    idle = [name for name in _OF_FLOWS if name in columns and name not in used]
    if idle and "[[flow]]" in sweep.plan.base.text:
        parts.append(Text(f"no values of {', '.join(idle)}: no flow was active in the window"))
    if len(found) > MAX_ROWS:
        parts.append(Text(f"and {len(found) - MAX_ROWS} more combinations, in the dataset"))
    several = [e for group in found for e in group.estimates.values() if e.half is not None]
    if any(_varies(e) for e in several):
        parts.append(Text("±: half of the 95 % interval of the mean over seeds (Student's t)."))
        parts.append(Text(chance.MADE_BY))
    elif several:
        parts.append(Text("All seeds of a combination give the same figures."))
    return parts


def _boundaries(sweep: Sweep) -> list[Table | Text]:
    span, verdict = sweep.plan.design.span, sweep.plan.verdict
    assert span is not None
    _, unit = span.measured(span.low)
    units = {one.key: one.unit for one in sweep.plan.design.held()}

    def ends(found: Boundary) -> tuple[float, float] | None:
        if found.low is None or found.high is None:
            return None
        (low, high), _ = span.measured(found.low, found.high)
        return low, high

    def place(found: Boundary) -> TableCell:
        there = ends(found)
        return TableCell(number(sum(there) / 2) if there else found.state, 0.0)

    def within(found: Boundary) -> TableCell:
        there = ends(found)
        return TableCell(f"{there[0]:.6g} to {there[1]:.6g}" if there else "", 0.0)

    def undecided(found: Boundary) -> str:
        values, _ = span.measured(*found.undecided) if found.undecided else ([], "")
        return ", ".join(map(number, values))

    undecided_ones = any(found.undecided for found in sweep.boundaries)
    shown: list[Column[Boundary]] = [
        *(Column(_header(name, units[name]), partial(_place, name)) for name in units),
        Column(_header(span.key, unit), place),
        Column("within", within),
        *([Column("undecided at", undecided)] if undecided_ones else []),
        Column("points", lambda found: found.runs),
    ]
    change = f"{span.key} where the verdict {verdict} changes, between the two values of within."
    parts: list[Table | Text] = [printed(shown, sweep.boundaries), Text(change)]
    if undecided_ones and verdict is not None:
        seeds = len(sweep.plan.design.seeds)
        parts.append(Text(
            f"Undecided: at these values the 95 % interval of {verdict.column} over {seeds} seeds "
            f"includes {verdict.limit:g}, so the answer may be chance; repeat with more --seeds.",
            style="yellow",
        ))  # fmt: skip
    return parts


def _header(name: str, unit: str) -> str:
    """Return a column heading with the parts of a key and its unit on separate lines."""
    return "\n".join([*name.replace(".", ".\n").split("\n"), *([unit] if unit else [])])


def _title(name: str, path: str) -> str:
    """Return a column heading with the words of its name and its unit on separate lines."""
    words, unit, _ = table.units(name, path)
    return "\n".join([*words.split("_"), *([unit] if unit else [])])


def _place(name: str, row: Group | Boundary) -> str:
    value = row.values[name]
    return number(value) if isinstance(value, float) else str(value)


def _count(group: Group) -> TableCell:
    done = group.count - group.failed
    return TableCell(f"{done} of {group.count}" if group.failed else str(done), done)


def _varies(found: Estimate) -> bool:
    return found.half is not None and found.half > _SAME * abs(found.mean)


def _estimate(name: str, path: str, group: Group) -> TableCell:
    found = group.estimates.get(name)
    if found is None:
        return NONE
    _, _, size = table.units(name, path)
    half = "" if not _varies(found) else f"\n±{number(float(f'{(found.half or 0) / size:.2g}'))}"
    return TableCell(f"{number(found.mean / size)}{half}", found.mean)
