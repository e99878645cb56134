"""Verdicts as Markdown, for the appendix of a draft."""

from __future__ import annotations

import html
from collections.abc import Iterable

from waterfill.errors import one_line
from waterfill.evaluation.text import bound, boundaries, measured, others, titled
from waterfill.evaluation.verdict import CriterionVerdict, EvaluationDocument


def text(document: EvaluationDocument) -> str:
    """Return the document as Markdown: verdicts, boundaries, what was not evaluated, warnings."""
    judged = [one for one in document.criteria if one.verdict != "not evaluated"]
    left = [one for one in document.criteria if one.verdict == "not evaluated"]
    lines = [
        f"# {document.law}: {document.suite}-suite {_plain(document.version)}",
        "",
        f"{_plain(document.title)}. Evaluated with Waterfill {document.waterfill} against "
        f"{', '.join(document.against)}; {document.against[0]} is the reference.",
        "",
    ]
    if judged:
        heads = ("§", "criterion", "verdict", "cells met", "worst", "limit", "others", "in cell")
        lines += _table(heads, map(_row, judged))
    changes = [f"{one.section} {one.title}: {line}" for one in judged for line in boundaries(one)]
    lines += _list("Boundaries", changes)
    lines += _list("Not evaluated", [f"{one.section} {one.title}: {one.reason}" for one in left])
    warnings = [f"{one.section} {one.title}: {line}" for one in judged for line in one.warnings]
    lines += _list("Warnings", warnings)
    rows = [
        (one.section, one.title, limit.statement, limit.source)
        for one in judged
        for limit in {limit.id: limit for cell in one.cells for limit in cell.limits}.values()
    ]
    if rows:
        lines += ["", "## Limits", "", *_table(("§", "criterion", "limit", "source"), rows)]
    return "\n".join(lines) + "\n"


def _row(one: CriterionVerdict) -> tuple[str, ...]:
    cells = [cell for cell in one.cells if not cell.added]
    met = f"{sum(cell.verdict == 'meets' for cell in cells)} of {len(cells)}"
    if one.deciding is None:
        return (one.section, one.title, one.verdict, met, "–", "–", "–", "–")
    cell, limit = one.deciding
    numbers = (measured(limit), bound(limit), others(limit), titled(cell))
    return (one.section, one.title, one.verdict, met, *numbers)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    every = [head, tuple("---" for _ in head), *rows]
    cells = [[_plain(cell).replace("|", "\\|") for cell in row] for row in every]
    return [f"| {' | '.join(row)} |" for row in cells]


def _list(title: str, lines: list[str]) -> list[str]:
    return ["", f"## {title}", "", *(f"- {_plain(line)}" for line in lines)] if lines else []


def _plain(text: str) -> str:
    """Return a text on one line and without HTML tags, which a suite's titles may contain."""
    return html.escape(one_line(text), quote=False)
