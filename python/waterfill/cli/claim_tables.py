"""Verdicts of `reproduce` as rich tables that fit 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

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


_COLUMNS: Sequence[Column[Judged]] = (
    Column("claim", lambda claim: claim.statement),
    Column("paper", lambda claim: TableCell(paper_value(claim), 0.0)),
    Column("measured", lambda claim: TableCell(measured_value(claim), 0.0)),
    Column("verdict", lambda claim: _verdict(claim)),
)


def _verdict(claim: Judged) -> TableCell:
    short = " (short)" if claim.short is not None else ""
    expected = f" (expected: {claim.expect})" if claim.verdict != claim.expect else ""
    text = textwrap.fill(f"{claim.verdict}{short}{expected}", 12)
    return TableCell(text, kind=_VERDICT_STYLES[claim.verdict])


def claims(title: str, judged: Sequence[Judged]) -> list[Table | Text]:
    """Return tables of one experiment's claims, with paper values, our values, verdicts and
    remarks.
    """
    notes = [Text(f"{claim.id}: {text}") for claim in judged if (text := remark(claim))]
    head = [Text(title, style="bold")]
    if is_short(judged):
        head.append(Text(SHORT_TITLE, style="yellow"))
    return [*head, printed(_COLUMNS, judged, expand=True), *notes]
