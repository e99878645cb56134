"""Page of an evaluation: abstract, verdicts, what limits the law, and each criterion."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from waterfill.analysis import tables as model
from waterfill.analysis.tables import NONE, Column, TableCell
from waterfill.evaluation import abstract, text
from waterfill.evaluation.output import DOCUMENT
from waterfill.evaluation.verdict import (
    Calibration,
    CellVerdict,
    CriterionVerdict,
    EvaluationDocument,
    Sensitivity,
    Use,
    Verdict,
    counts,
)
from waterfill.network import protocols
from waterfill.report import checks, evaluation_charts, tables
from waterfill.report.tables import Table

if TYPE_CHECKING:
    from waterfill.analysis.charts import Chart
    from waterfill.runs.result import Document

_KINDS: dict[Verdict, str] = {
    "meets": "reproduced", "fails": "differs", "mixed": "differs", "not evaluated": "unchecked",
}  # fmt: skip
_SIGNS: dict[Verdict, str] = {"meets": "✓ ", "fails": "✗ ", "mixed": "± ", "not evaluated": ""}
_LIMITS = ("window", "pacing", "application", "recovery", "handshake")


class Section(NamedTuple):
    """One criterion of the page."""

    anchor: str
    title: str
    question: str
    verdict: str
    kind: str
    reason: str
    lines: list[str]
    warnings: list[str]
    charts: list[Chart]
    cells: Table | None


def content(folder: Path) -> Document:
    """Return the data of the template `evaluation.html.j2` for the evaluation in `folder`."""
    document = checks.document(folder / DOCUMENT, EvaluationDocument)
    name = os.fsencode(folder.resolve().name).decode("utf-8", "replace")
    sections = [_section(document, name, *one) for one in enumerate(document.criteria)]
    judged = [one for one in document.criteria if one.verdict != "not evaluated"]
    left = [one for one in document.criteria if one.verdict == "not evaluated"]
    return {
        "title": f"{document.law}: {document.suite}-suite {document.version}",
        "subtitle": document.title,
        "facts": _facts(document),
        "abstract": abstract.paragraphs(document),
        "verdicts": tables.of(
            model.Table("verdicts", "Verdicts", _VERDICTS, judged, _VERDICT_NOTE)
        ) if judged else None,
        "left_out": tables.of(
            model.Table("left-out", "Not evaluated", _LEFT_OUT, left)
        ) if left else None,
        "limiting": tables.of(
            model.Table("limiting", f"What limits the {_sender(document)}", _limiting(document),
                        judged, _USE_NOTE)
        ) if judged else None,
        "limits": tables.of(
            model.Table("limits", "Limits", _SOURCES, _limits(judged))
        ) if judged else None,
        "changes": _changes(document),
        "calibration": None if document.calibration is None else tables.of(
            model.Table("calibration", "Calibration", _CALIBRATION, document.calibration,
                        _CALIBRATION_NOTE)
        ),
        "sensitivity": None if document.sensitivity is None else tables.of(
            model.Table("sensitivity", "Sensitivity", _SENSITIVITY, document.sensitivity,
                        _SENSITIVITY_NOTE)
        ),
        "sections": sections,
        "charts": [chart for section in sections for chart in section.charts],
    }  # fmt: skip


def _sender(document: EvaluationDocument) -> str:
    """Return the word for what the path limits: the law, or the flows through a queue."""
    return "law" if document.subject is None else "flows"


def _facts(document: EvaluationDocument) -> list[tuple[str, str]]:
    found = [(name.capitalize(), str(n)) for name, n in counts(document.criteria).items()]
    found.append(("Against", ", ".join(document.against)))
    found.append(("Reference", document.against[0] if document.against else "–"))
    if document.recoveries:
        shown = (f"{name} {method}" for name, method in document.recoveries.items())
        found.append(("Loss recovery", ", ".join(shown)))
    words = {"all": "", "seeds": "Seeds", "routers": "Routers"}
    for key, word in words.items():
        value = document.options.get(key)
        if word and value is not None and (key, value) != ("routers", "all"):
            found.append((word, str(value)))
    sets = document.options.get("set")
    if isinstance(sets, list) and sets:
        found.append(("Set for every cell", shlex.join(map(str, sets))))
    return found


# --- one criterion -----------------------------------------------------------------------------


def _section(
    document: EvaluationDocument, folder: str, place: int, one: CriterionVerdict
) -> Section:
    return Section(
        anchor=f"criterion{place}",
        title=f"{one.section} {one.title}",
        question=one.question,
        verdict=_SIGNS[one.verdict] + one.verdict,
        kind=_KINDS[one.verdict],
        reason=one.reason or "",
        lines=text.boundaries(one),
        warnings=one.warnings,
        charts=evaluation_charts.charts(one, document.law, f"c{place}"),
        cells=_cells(document, folder, place, one) if one.cells else None,
    )


def _cells(document: EvaluationDocument, folder: str, place: int, one: CriterionVerdict) -> Table:
    """Return the table of a criterion's cells, with the command that repeats each."""
    names = list(dict.fromkeys(limit.id for cell in one.cells for limit in cell.limits))
    columns: list[Column[CellVerdict]] = [
        Column(
            "cell", lambda cell: f"{text.titled(cell)} (added)" if cell.added else text.titled(cell)
        ),
        Column("verdict", lambda cell: _verdict(cell.verdict)),
        *(Column(name.replace("-", " "), partial(_limit, name)) for name in names),
        Column("seeds", lambda cell: len(cell.seeds)),
        Column("command", partial(_command, document, folder)),
    ]
    title = f"Cells of {one.section} {one.title}"
    return tables.of(model.Table(f"cells{place}", title, columns, one.cells))


def _limit(name: str, cell: CellVerdict) -> TableCell:
    """Return a limit's value in a cell, with the value allowed and the other laws' values."""
    limit = next((limit for limit in cell.limits if limit.id == name), None)
    if limit is None:
        return NONE
    found = text.measured(limit).removeprefix(f"{name.replace('-', ' ')} ")
    parts = [found, f"limit {text.bound(limit)}"]
    parts += [text.others(limit)] if text.others(limit) else []
    sign = {"met": "✓", "not met": "✗", "no value": "–"}[limit.verdict]
    return TableCell(f"{sign} {'; '.join(parts)}")


def _command(document: EvaluationDocument, folder: str, cell: CellVerdict) -> str:
    """Return the command that repeats the first run of a cell, typed next to the folder."""
    if not cell.file or not cell.seeds:
        return cell.reason or "–"
    laws = {*document.against} if cell.endpoints else {document.law, *document.against}
    file = shlex.quote(document.law_file or "FILE.py")
    own = f" --law {file}" if laws - set(protocols.load()) else ""
    for endpoint in cell.endpoints or ():
        own += f" --endpoint {shlex.quote(endpoint)}"
    return f"waterfill run {shlex.quote(f'{folder}/{cell.file}')}{own} --seed {cell.seeds[0]}"


# --- tables of all criteria --------------------------------------------------------------------


def _verdict(verdict: Verdict) -> TableCell:
    return TableCell(_SIGNS[verdict] + verdict, kind=_KINDS[verdict])


def _met(one: CriterionVerdict) -> TableCell:
    cells = [cell for cell in one.cells if not cell.added]
    met = sum(cell.verdict == "meets" for cell in cells)
    return TableCell(f"{met} of {len(cells)}")


def _deciding(part: str, one: CriterionVerdict) -> str:
    """Return one part of what decides a criterion: its cell, value, limit, source or others."""
    if one.deciding is None:
        return "–"
    cell, limit = one.deciding
    return {
        "cell": text.titled(cell) if len(one.cells) > 1 else "–",
        "value": text.measured(limit),
        "limit": text.bound(limit),
        "others": text.others(limit) or "–",
        "source": limit.source,
    }[part]


_VERDICTS: Sequence[Column[CriterionVerdict]] = (
    Column("criterion", lambda one: f"{one.section} {one.title}"),
    Column("verdict", lambda one: _verdict(one.verdict)),
    Column("cells met", _met),
    Column("deciding number", partial(_deciding, "value")),
    Column("limit", partial(_deciding, "limit")),
    Column("others", partial(_deciding, "others")),
    Column("in cell", partial(_deciding, "cell")),
    Column("source of the limit", partial(_deciding, "source")),
)
_VERDICT_NOTE = (
    "A criterion is met in all cells (meets), in some (mixed) or in none (fails). The deciding "
    "number is the one furthest beyond its limit, or closest to it. The others' numbers are from "
    "the same cell with these laws or queues in its place. A suite is no checklist: each limit is "
    "a line that can be disputed."
)
_LEFT_OUT: Sequence[Column[CriterionVerdict]] = (
    Column("criterion", lambda one: f"{one.section} {one.title}"),
    Column("reason", lambda one: one.reason or "–"),
)
_USE_NOTE = (
    "Means over the cells of a criterion: the law's rate ÷ its max-min share, and the share of "
    "time for which each limit held it back. In a suite for queues all flows count. Limits on "
    "delay and loss are easy to meet if the path is not used; compare the two columns of shares."
)


def _limiting(document: EvaluationDocument) -> Sequence[Column[CriterionVerdict]]:
    reference = document.against[0] if document.against else "reference"
    return (
        Column("criterion", lambda one: f"{one.section} {one.title}"),
        Column("share of the path", lambda one: _mean(one, "share"), form=".3g", page=".3g"),
        Column(f"share, {reference}", lambda one: _mean(one, "share", reference=True), form=".3g",
               page=".3g"),
        *(Column(name, partial(_time, name), "%", 0.01, form=".3g", page=".3g")
          for name in _LIMITS),
        Column("loss", lambda one: _mean(one, "loss_rate"), "%", 0.01, form=".3g", page=".3g"),
        Column("time-outs", lambda one: _mean(one, "timeouts"), form=".3g", page=".3g"),
    )  # fmt: skip


def _mean(one: CriterionVerdict, key: str, *, reference: bool = False) -> float | None:
    uses = [cell.reference if reference else cell.use for cell in one.cells if not cell.added]
    values = [float(use[key]) for use in uses if use is not None and use[key] is not None]
    return sum(values) / len(values) if values else None


def _time(name: str, one: CriterionVerdict) -> float | None:
    uses: list[Use] = [cell.use for cell in one.cells if cell.use is not None and not cell.added]
    values = [float(use.limited_by[name]) for use in uses if use.limited_by is not None]
    return sum(values) / len(values) if values else None


def _limits(judged: Sequence[CriterionVerdict]) -> list[tuple[str, str, str]]:
    """Return the limits of the criteria, each once, with their sources."""
    return list(dict.fromkeys(
        (f"{one.section} {one.title}", limit.statement, limit.source)
        for one in judged for cell in one.cells for limit in cell.limits
    ))  # fmt: skip


_SOURCES: Sequence[Column[tuple[str, str, str]]] = (
    Column("criterion", lambda row: row[0]),
    Column("limit", lambda row: row[1]),
    Column("source", lambda row: row[2]),
)


_CALIBRATION: Sequence[Column[Calibration]] = (
    Column("run", lambda one: one.name),
    Column("formula", lambda one: one.formula),
    Column("source", lambda one: one.source),
    Column("expected", lambda one: one.expected, form=".4g"),
    Column("measured", lambda one: one.measured, form=".4g"),
    Column("unit", lambda one: one.unit),
    Column("agrees", lambda one: TableCell(
        f"{'✓' if one.met else '✗'} {text.agreement(one)}",
        kind=_KINDS["meets" if one.met else "fails"],
    )),
)  # fmt: skip
_CALIBRATION_NOTE = (
    "Short runs of this very version, made with this evaluation, compared with closed formulas."
)
_SENSITIVITY: Sequence[Column[Sensitivity]] = (
    Column("parameter", text.parameter),
    Column("verdicts that change", lambda one: "; ".join(text.sensitive(one))),
)
_SENSITIVITY_NOTE = (
    "Each numeric parameter of the law is changed by 20 %, on the cells of --quick with one seed. "
    "A verdict that changes is close to its limit. Flows of the law that are rivals change too."
)


def _changes(document: EvaluationDocument) -> Table | None:
    """Return the table of changes from the baseline, if the evaluation has one."""
    if document.baseline is None:
        return None
    rows = [
        (one.criterion, one.cell, f"{one.limit} ({one.unit})", text.value(one.before),
         text.value(one.after), one.verdict_before, one.verdict_after)
        for one in document.changes or ()
    ] + [
        (one.criterion, one.cell, f"{one.law} was not evaluated: {one.reason}", "–", "–", "–", "–")
        for one in document.uncompared or ()
    ]  # fmt: skip
    heads = ("criterion", "cell", "limit", document.baseline, document.law, "was", "is")
    columns: list[Column[tuple[str, ...]]] = [
        Column(head, partial(_entry, place)) for place, head in enumerate(heads)
    ]
    title = f"Changes from {document.baseline}"
    return tables.of(model.Table("changes", title, columns, rows))


def _entry(place: int, row: tuple[str, ...]) -> str:
    return row[place]
