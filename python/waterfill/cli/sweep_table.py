"""The answer of `sweep` as tables and as a JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from waterfill.errors import one_line
from waterfill.sweeps import table
from waterfill.sweeps.table import Estimate, Group, number

if TYPE_CHECKING:
    from waterfill.runs.result import Document
    from waterfill.sweeps.api import Sweep

# Tables show up to this many combinations; all are in the dataset.
MAX_ROWS = 40
# An interval this small relative to its mean is of rounding.
_SAME = 1e-9


def document(sweep: Sweep, columns: Sequence[str]) -> Document:
    """Return the answer as plain data: combinations with means and intervals, and boundaries."""
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
                "points": found.runs,
            }
            for found in sweep.boundaries
        ],
    }


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
    names = table.axes(sweep)
    used = [name for name in columns if any(name in group.estimates for group in found)]
    grid = _grid()
    units = {one.key: one.unit for one in sweep.plan.design.axes()}
    for name in names:
        grid.add_column(_header(name, units[name]), justify="left")
    seeds = any(group.count > 1 for group in found)
    if seeds:
        grid.add_column("seeds", justify="right")
    for name in used:
        grid.add_column(name.replace("_", "\n"), justify="right", no_wrap=True)
    for group in found[:MAX_ROWS]:
        cells = [_value(group.values[name]) for name in names]
        cells += [_count(group)] if seeds else []
        grid.add_row(*cells, *(_estimate(group.estimates.get(name)) for name in used))
    parts.append(grid)
    if len(found) > MAX_ROWS:
        parts.append(Text(f"and {len(found) - MAX_ROWS} more combinations, in the dataset"))
    several = [e for group in found for e in group.estimates.values() if e.half is not None]
    if any(_varies(e) for e in several):
        parts.append(Text("±: half of the 95 % interval of the mean over seeds (Student's t)."))
    elif several:
        parts.append(Text("All seeds of a combination give the same figures: nothing is random."))
    return parts


def _boundaries(sweep: Sweep) -> list[Table | Text]:
    span, verdict = sweep.plan.span, sweep.plan.verdict
    assert span is not None
    unit = span.axis([span.low]).unit
    grid = _grid()
    units = {one.key: one.unit for one in sweep.plan.design.axes()}
    for name in units:
        grid.add_column(_header(name, units[name]))
    grid.add_column(_header(span.key, unit), justify="right")
    grid.add_column("within", justify="right")
    grid.add_column("points", justify="right")
    for found in sweep.boundaries:
        place, within = found.state, ""
        if found.low is not None and found.high is not None:
            # In the dataset's unit, in which the range may not be written.
            low, high = span.axis([found.low, found.high]).numbers
            assert isinstance(low, float)
            assert isinstance(high, float)
            place = number((low + high) / 2)
            within = f"{low:.6g} to {high:.6g}"
        cells = [_value(value) for value in found.values.values()]
        grid.add_row(*cells, place, within, str(found.runs))
    change = f"{span.key} where the verdict {verdict} changes, between the two values of within."
    return [grid, Text(change)]


def _grid() -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.padding = (0, 1, 0, 0)
    return table


def _header(name: str, unit: str) -> str:
    """Return a key with its parts, and its unit, on lines of their own."""
    return "\n".join([*name.replace(".", ".\n").split("\n"), *([unit] if unit else [])])


def _value(value: Any) -> str:
    return number(value) if isinstance(value, float) else one_line(str(value))


def _count(group: Group) -> str:
    done = group.count - group.failed
    return str(done) if not group.failed else f"{done} of {group.count}"


def _varies(found: Estimate) -> bool:
    return found.half is not None and found.half > _SAME * abs(found.mean)


def _estimate(found: Estimate | None) -> str:
    if found is None:
        return "–"
    if found.half is None or not _varies(found):
        return number(found.mean)
    return f"{number(found.mean)}\n±{number(float(f'{found.half:.2g}'))}"
