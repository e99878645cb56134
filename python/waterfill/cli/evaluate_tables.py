"""Verdicts of `evaluate` as rich tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from waterfill.analysis.tables import Column, TableCell
from waterfill.cli.tables import printed
from waterfill.evaluation import text
from waterfill.evaluation.suites import LimitEntry, Suite
from waterfill.evaluation.verdict import (
    Calibration,
    Change,
    CriterionVerdict,
    EvaluationDocument,
    Sensitivity,
    counts,
)

# Further boundaries of a criterion are in the documents.
_MOST_LINES = 3
_STYLES = {"meets": "green", "fails": "red", "mixed": "yellow", "not evaluated": ""}


def evaluation(document: EvaluationDocument) -> list[Table | Text]:
    """Return the table of verdicts, then what was not evaluated, then warnings."""
    against = ", ".join(document.against)
    quick = " (quick)" if document.options["quick"] else ""
    title = f"{document.law} against {against}: {document.suite}-suite {document.version}{quick}"
    judged = [one for one in document.criteria if one.verdict != "not evaluated"]
    parts: list[Table | Text] = [Text(title, style="bold")]
    if judged:
        parts.append(printed(_COLUMNS, judged, expand=True))
    for one in judged:
        if one.verdict == "mixed":
            lines = text.boundaries(one) or [f"fails: {text.failing(one)}"]
            parts += [Text(f"{one.section} {one.title}: {line}") for line in lines[:_MOST_LINES]]
            if len(lines) > _MOST_LINES:
                parts.append(Text(f"{one.section} {one.title}: {len(lines) - _MOST_LINES} more"))
    parts += [
        Text(f"{one.section} {one.title}: not evaluated: {one.reason}")
        for one in document.criteria
        if one.verdict == "not evaluated"
    ]
    parts += [
        Text(f"warning: {one.section} {one.title}: {line}", style="yellow")
        for one in judged
        for line in one.warnings
    ]
    tally = ", ".join(f"{verdict}: {count}" for verdict, count in counts(document.criteria).items())
    return [*parts, Text(tally)]


def limits(suite: Suite, entries: Sequence[LimitEntry]) -> list[Table | Text]:
    """Return the table of a suite's limits and their sources."""
    title = f"{suite.label}: {suite.content.title}"
    columns: Sequence[Column[LimitEntry]] = (
        Column("§", lambda one: TableCell(one.section)),
        Column("criterion", lambda one: TableCell(one.title)),
        Column("cells", lambda one: TableCell(str(one.cells))),
        Column("measure", lambda one: TableCell(one.measure or "–")),
        Column("limit", lambda one: TableCell(one.statement or "not evaluated")),
        Column("source", lambda one: TableCell(one.source or one.not_evaluated or "–")),
    )
    return [Text(title, style="bold"), printed(columns, entries, expand=True)]


def changes(document: EvaluationDocument) -> list[Table | Text]:
    """Return what was not compared with the baseline, then the changes or a line without any."""
    found = document.changes or []
    left = Counter((one.law, one.reason) for one in document.uncompared or ())
    cells = sum(not cell.added for one in document.criteria for cell in one.cells)
    lines: list[Table | Text] = [
        Text(
            f"not compared with {document.baseline} in {count} of {cells} cells: {law} was not "
            f"evaluated: {reason}"
        )
        for (law, reason), count in left.items()
    ]
    if not found:
        if left.total() < cells:
            other = "other " if lines else ""
            lines.append(Text(f"no {other}cell differs from {document.baseline}"))
        return lines
    columns: Sequence[Column[Change]] = (
        Column("criterion", lambda one: TableCell(one.criterion)),
        Column("cell", lambda one: TableCell(one.cell)),
        Column("limit", lambda one: TableCell(f"{one.limit} ({one.unit})")),
        Column(str(document.baseline), lambda one: TableCell(text.value(one.before))),
        Column(document.law, lambda one: TableCell(text.value(one.after))),
        Column("verdict", _changed),
    )
    title = Text(f"changes from {document.baseline}:")
    return [*lines, title, printed(columns, found, expand=True)]


def sensitivity(found: Sequence[Sensitivity]) -> list[Table | Text]:
    """Return the table of parameters ± 20 % and the verdicts that change, on the quick cells."""
    if not found:
        return [Text("sensitivity: the law has no numeric parameter")]
    columns: Sequence[Column[Sensitivity]] = (
        Column("parameter", lambda one: TableCell(text.parameter(one))),
        Column("changes", lambda one: TableCell("; ".join(text.sensitive(one)))),
    )
    return [Text("sensitivity on the quick cells:"), printed(columns, found, expand=True)]


def calibration(found: Sequence[Calibration]) -> list[Table | Text]:
    """Return the table of comparisons with formulas."""
    columns: Sequence[Column[Calibration]] = (
        Column("calibration", lambda one: TableCell(one.name)),
        Column("formula", lambda one: TableCell(one.formula)),
        Column("expected", lambda one: one.expected, form=".4g"),
        Column("measured", lambda one: one.measured, form=".4g"),
        Column("unit", lambda one: TableCell(one.unit)),
        Column("agrees", lambda one: TableCell(text.agreement(one))),
    )
    return [printed(columns, found, expand=True)]


def _changed(one: Change) -> TableCell:
    if one.verdict_before == one.verdict_after:
        return TableCell(one.verdict_after)
    kind = {"met": "green", "not met": "red"}.get(one.verdict_after, "")
    return TableCell(f"{one.verdict_before} → {one.verdict_after}", kind=kind)


def _met(one: CriterionVerdict) -> TableCell:
    cells = [cell for cell in one.cells if not cell.added]
    return TableCell(f"{sum(cell.verdict == 'meets' for cell in cells)} of {len(cells)}")


def _verdict(one: CriterionVerdict) -> TableCell:
    return TableCell(one.verdict, kind=_STYLES[one.verdict])


_COLUMNS: Sequence[Column[CriterionVerdict]] = (
    Column("§", lambda one: TableCell(one.section)),
    Column("criterion", lambda one: TableCell(one.title)),
    Column("verdict", _verdict),
    Column("cells", _met),
    Column("deciding number", lambda one: TableCell(text.deciding(one))),
)
