"""Boundaries: neighbouring values of a numeric axis between which a criterion's verdict changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from waterfill.errors import InputError
from waterfill.evaluation.engine import Sampling, run_cells
from waterfill.evaluation.plan import Cell, Plan
from waterfill.evaluation.schema import Value
from waterfill.evaluation.suites import Criterion
from waterfill.evaluation.verdict import Boundary, CellVerdict, Verdict
from waterfill.sweeps import axes
from waterfill.sweeps.axes import Range

# A search ends when the two values differ by this share of the larger, or after so many steps.
_CLOSE = 0.1
_STEPS = 3
_NUMBER = re.compile(r"\s*([+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*(.*?)\s*")


@dataclass
class Bracket:
    """Two values of an axis with different verdicts, in the unit of `span`.

    `where` has the values of the other axes.
    """

    criterion: Criterion
    axis: str
    span: Range
    where: Mapping[str, Value]
    low: float
    high: float
    below: Verdict
    above: Verdict

    def is_close(self) -> bool:
        """Return True if no value lies between the two, or if they are near enough."""
        middle = self.middle
        near = self.high - self.low <= _CLOSE * max(abs(self.low), abs(self.high))
        return near or middle in (self.low, self.high)

    @property
    def middle(self) -> float:
        """The value to try next, geometric where both are positive."""
        return self.span.middle(self.low, self.high)

    def narrow(self, value: float, verdict: Verdict) -> None:
        """Move the end with the same verdict to a value between the ends."""
        if verdict == self.below:
            self.low = value
        else:
            self.high = value

    def boundary(self) -> Boundary:
        """Return the bracket as an entry of the document."""
        return Boundary(
            axis=self.axis,
            low=self.span.value(self.low),
            high=self.span.value(self.high),
            below=self.below,
            above=self.above,
            where=dict(self.where),
        )


def brackets(
    criterion: Criterion, grid: Mapping[str, Sequence[Value]], cells: Iterable[CellVerdict]
) -> list[Bracket]:
    """Return the changes of a criterion's verdict along the numeric axis that has the most of them,
    between neighbouring cells of the grid.
    """
    known = [cell for cell in cells if cell.verdict in ("meets", "fails")]
    found = [_along(criterion, axis, values, known) for axis, values in grid.items()]
    return max(found, key=len, default=[])


def _along(
    criterion: Criterion, axis: str, values: Sequence[Value], cells: Sequence[CellVerdict]
) -> list[Bracket]:
    found = scale(axis, values)
    if found is None:
        return []
    span, numbers = found
    rows: dict[tuple[tuple[str, Value], ...], list[tuple[float, Verdict]]] = {}
    for cell in cells:
        where = tuple((key, value) for key, value in cell.values_.items() if key != axis)
        rows.setdefault(where, []).append((numbers[cell.values_[axis]], cell.verdict))
    return [
        Bracket(criterion, axis, span, dict(where), low, high, below, above)
        for where, row in rows.items()
        for (low, below), (high, above) in zip(sorted(row), sorted(row)[1:], strict=False)
        if below != above
    ]


def scale(axis: str, values: Sequence[Value]) -> tuple[Range, dict[Value, float]] | None:
    """Return the range of an axis and the number of each of its values, or None if a value is no
    number.
    """
    if len(values) < 2:
        return None
    found = [_NUMBER.fullmatch(f"{value}") for value in values if not isinstance(value, bool)]
    parts = [(float(match[1]), match[2]) for match in found if match is not None]
    if len(parts) < len(values):
        return None
    numbers, unit = [number for number, _ in parts], parts[0][1]
    if any(other != unit for _, other in parts):
        measured = axes.axis(axis, values)
        if measured.kind != "double" or len(measured.values) < len(values):
            return None
        numbers, unit = [float(number) for number in measured.numbers], measured.unit  # type: ignore[arg-type]
    low, high = min(numbers), max(numbers)
    whole = all(isinstance(value, int) for value in values)
    span = Range(axis, low, high, unit, log=low > 0, whole=whole)
    return span, dict(zip(values, numbers, strict=True))


def refine(
    plan: Plan, found: Sequence[Bracket], sampling: Sampling
) -> list[tuple[Cell, CellVerdict]]:
    """Narrow brackets by bisection; return the cells that this added, with their verdicts."""
    added: list[tuple[Cell, CellVerdict]] = []
    searching = [bracket for bracket in found if _settle(plan, bracket)]
    for _ in range(_STEPS):
        searching = [bracket for bracket in searching if not bracket.is_close()]
        if not searching:
            break
        tried = [bracket.middle for bracket in searching]
        cells = [_cell(plan, *one) for one in zip(searching, tried, strict=True)]
        verdicts = run_cells(plan, cells, sampling)
        for bracket, value, cell, verdict in zip(searching, tried, cells, verdicts, strict=True):
            verdict["added"] = True
            added.append((cell, verdict))
            if verdict.verdict in ("meets", "fails"):
                bracket.narrow(value, verdict.verdict)
        searching = [
            bracket
            for bracket, verdict in zip(searching, verdicts, strict=True)
            if verdict.verdict in ("meets", "fails")
        ]
    return added


def _settle(plan: Plan, bracket: Bracket) -> bool:
    """Restrict a bracket to whole numbers if its key takes no others; return False if values
    between its ends are not possible.
    """
    for span in (bracket.span, replace(bracket.span, whole=True)):
        bracket.span = span
        try:
            # Two values, because the geometric middle of 5 and 20 is whole, but the next is not.
            for value in (bracket.middle, span.middle(bracket.low, bracket.middle)):
                _cell(plan, bracket, value)
        except InputError:
            continue
        return True
    return False


def _cell(plan: Plan, bracket: Bracket, number: float) -> Cell:
    """Return the cell at a value of a bracket's axis."""
    values = {**bracket.where, bracket.axis: bracket.span.value(number)}
    ordered = {axis: values[axis] for axis in plan.axes(bracket.criterion)}
    return plan.cell(bracket.criterion, ordered)  # type: ignore[arg-type]
