"""Verdicts of `reproduce` as rich tables that fit 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from waterfill.analysis.tables import Column, TableCell
from waterfill.cli.tables import printed
from waterfill.papers.claims.text import (
    SHORT_TITLE,
    is_short,
    measured_value,
    paper_value,
    remark,
)
from waterfill.papers.claims.verdict import Judged

_VERDICT_STYLES = {"reproduced": "green", "differs": "red", "cannot be checked": "yellow"}


# What a reader looks for first: a verdict that changed, then what differs.
_ORDER = ("differs", "cannot be checked", "reproduced")


def _columns(marks: Mapping[str, str]) -> Sequence[Column[Judged]]:
    """Return the columns of claims. `marks` are the marks of the notes by the claims' ids."""
    return (
        Column("claim", lambda claim: f"{claim.statement}{marks.get(claim.id, '')}"),
        Column("paper", lambda claim: TableCell(paper_value(claim), 0.0)),
        Column("measured", lambda claim: TableCell(measured_value(claim), 0.0)),
        Column("verdict", lambda claim: _verdict(claim)),
    )


def _place(claim: Judged) -> tuple[bool, int]:
    return claim.verdict == claim.expect, _ORDER.index(claim.verdict)


def _verdict(claim: Judged) -> TableCell:
    short = " (short)" if claim.short is not None else ""
    expected = f" (expected: {claim.expect})" if claim.verdict != claim.expect else ""
    text = textwrap.fill(f"{claim.verdict}{short}{expected}", 12)
    return TableCell(text, kind=_VERDICT_STYLES[claim.verdict])


def claims(title: str, judged: Sequence[Judged]) -> list[Table | Text]:
    """Return the table of one experiment's claims, with paper values, our values and verdicts, and
    the numbered remarks below it. Claims that differ come first.
    """
    rows = sorted(judged, key=_place)
    remarks = {claim.id: text for claim in rows if (text := remark(claim))}
    marks = {name: f" [{number}]" for number, name in enumerate(remarks, start=1)}
    notes = [Text(f"{marks[name].strip()} {name}: {text}") for name, text in remarks.items()]
    head = [Text(title, style="bold")]
    if is_short(judged):
        head.append(Text(SHORT_TITLE, style="yellow"))
    return [*head, printed(_columns(marks), rows, expand=True), *notes]
