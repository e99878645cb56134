"""Tables for notebooks: escaped HTML in the notebook's own colours, without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from waterfill.analysis.tables import FLOWS, LINKS, TRAFFIC, LinkRow, Table, idle

if TYPE_CHECKING:
    from waterfill.runs.result import Result

MAX_ROWS = 20

# Lines of one grey that shows on white and on black; text keeps the notebook's colour.
_LINE = "border-bottom:1px solid rgba(128,128,128,.45);padding:.15em .7em"
_TABLE = "border-collapse:collapse;background:transparent;color:inherit;font-size:90%;margin:.4em 0"


def notebook_html(result: Result) -> str:
    """Return a run's flows, traffic and links as HTML tables of at most 20 rows. Empty tables are
    omitted.
    """
    summary = result.summary
    start_s, end_s = summary.measure_s
    window = f"{start_s:g} s to {end_s:g} s; packets, flows and retransmissions: whole run"
    spec = {link.name: link for link in result.network.links}
    links = [LinkRow(link, spec.get(link.name)) for link in summary.links[:MAX_ROWS]]
    parts = [
        table(Table("", "", columns, rows[:MAX_ROWS]), total=len(rows))
        for columns, rows in ((FLOWS, summary.flows), (TRAFFIC, summary.traffic))
        if rows
    ]
    parts.append(table(Table("", "", LINKS, links), total=len(summary.links)))
    lines = [f"{summary.scenario} on {summary.backend}, {window}", idle(summary)]
    title = "<br>".join(map(escape, filter(None, lines)))
    return f'<p style="font-size:90%">{title}</p>{"".join(parts)}'


def table(found: Table[Any], total: int) -> str:
    """Return one HTML table, followed by the number of omitted rows if `total` is larger."""
    columns = found.shown("page")
    rows = [[column.cell(row, "page") for column in columns] for row in found.rows]
    left = [all(row[i].number is None for row in rows) for i in range(len(columns))]
    head = _row("th", [column.heading("page") for column in columns], left)
    body = "".join(_row("td", [cell.text for cell in row], left) for row in rows)
    caption = f'<caption style="text-align:left">{escape(found.title)}</caption>'
    others = total - len(rows)
    more = f'<p style="font-size:90%">and {others} others</p>' if others > 0 else ""
    start = f'<table style="{_TABLE}">{caption if found.title else ""}<thead>{head}</thead>'
    return f"{start}<tbody>{body}</tbody></table>{more}"


def _row(kind: str, texts: Sequence[str], left: Sequence[bool]) -> str:
    cells = (
        f'<{kind} style="{_LINE};text-align:{"left" if at else "right"};background:transparent">'
        f"{escape(text)}</{kind}>"
        for text, at in zip(texts, left, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"
