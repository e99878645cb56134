"""Verdicts of `evaluate` as rich tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from waterfill.analysis.tables import Column, TableCell
from waterfill.cli.tables import printed
from waterfill.evaluation.suites import LimitEntry, Suite
from waterfill.evaluation.verdict import CriterionVerdict, EvaluationDocument, LimitVerdict, counts

_STYLES = {"meets": "green", "fails": "red", "mixed": "yellow", "not evaluated": ""}


def evaluation(document: EvaluationDocument) -> list[Table | Text]:
    """Return the table of verdicts, then what was not evaluated, then warnings."""
    against = ", ".join(document.against)
    quick = " (quick)" if document.options["quick"] else ""
    title = f"{document.law} against {against}: {document.suite}-suite {document.version}{quick}"
    judged = [one for one in document.criteria if one.verdict != "not evaluated"]
    parts: list[Table | Text] = [Text(title, style="bold")]
    parts.append(printed(_COLUMNS, judged, expand=True))
    parts += [
        Text(f"{one.section} {one.title}: not evaluated: {one.reason}")
        for one in document.criteria
        if one.verdict == "not evaluated"
    ]
    parts += [
        Text(f"warning: {one.section} {one.title}: {text}", style="yellow")
        for one in judged
        for text in one.warnings
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


def _measured(one: CriterionVerdict) -> TableCell:
    """Return the deciding number."""
    if one.deciding is None:
        return TableCell("–")
    limit = one.deciding[1]
    return TableCell(f"{limit.id.replace('-', ' ')} {_value(limit.value)}{_unit(limit)}")


def _limit(one: CriterionVerdict) -> TableCell:
    if one.deciding is None:
        return TableCell("–")
    limit = one.deciding[1]
    slack = f" ± {limit.tolerance:.3g}" if limit.tolerance else ""
    return TableCell(f"{limit.relation} {_value(limit.limit)}{slack}{_unit(limit)}")


def _value(value: float | None) -> str:
    return "never" if value is None else f"{value:.4g}"


def _unit(limit: LimitVerdict) -> str:
    return "" if limit.unit == "ratio" else f" {limit.unit}"


def _others(one: CriterionVerdict) -> TableCell:
    """Return the same number with other laws in the law's place."""
    if one.deciding is None:
        return TableCell("–")
    others = one.deciding[1].others.items()
    return TableCell(", ".join(f"{name} {_value(value)}" for name, value in others))


def _met(one: CriterionVerdict) -> TableCell:
    cells = [cell for cell in one.cells if not cell.added]
    return TableCell(f"{sum(cell.verdict == 'meets' for cell in cells)} of {len(cells)}")


def _verdict(one: CriterionVerdict) -> TableCell:
    return TableCell(one.verdict, kind=_STYLES[one.verdict])


def _cell(one: CriterionVerdict) -> TableCell:
    return TableCell(one.deciding[0].name if one.deciding else "–")


_COLUMNS: Sequence[Column[CriterionVerdict]] = (
    Column("§", lambda one: TableCell(one.section)),
    Column("criterion", lambda one: TableCell(one.title)),
    Column("verdict", _verdict),
    Column("cells", _met),
    Column("worst", _measured),
    Column("limit", _limit),
    Column("in cell", _cell),
    Column("others there", _others),
)
