"""Verdicts of `reproduce` as rich tables that fit 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from waterfill.papers.claims.text import (
    SHORT_TITLE,
    is_short,
    measured_value,
    paper_value,
    remark,
)
from waterfill.papers.claims.verdict import Judged

_VERDICT_STYLES = {"reproduced": "green", "differs": "red", "cannot be checked": "yellow"}


def claims(title: str, judged: Sequence[Judged]) -> list[Table | Text]:
    """Return one experiment's claims: the paper's value, ours, the verdict; then remarks."""
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=(0, 1, 0, 0),
        collapse_padding=True,
        expand=True,
    )
    table.add_column("claim", overflow="fold", ratio=1)
    table.add_column("paper", justify="right")
    table.add_column("measured", justify="right")
    table.add_column("verdict", max_width=12)
    for claim in judged:
        verdict = Text(claim.verdict, style=_VERDICT_STYLES[claim.verdict])
        if claim.short is not None:
            verdict.append(" (short)")
        if claim.verdict != claim.expect:
            verdict.append(f" (expected: {claim.expect})")
        table.add_row(claim.statement, paper_value(claim), measured_value(claim), verdict)
    notes = [Text(f"{claim.id}: {text}") for claim in judged if (text := remark(claim))]
    head = [Text(title, style="bold")]
    if is_short(judged):
        head.append(Text(SHORT_TITLE, style="yellow"))
    return [*head, table, *notes]
