"""Panels of a run: charts of rates, queues and router signals, and a table of rates."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from waterfill.analysis.charts import Chart
from waterfill.analysis.run_charts import SCREEN, RunCharts
from waterfill.analysis.tables import FLOWS
from waterfill.runs.result import Result


def all_charts(result: Result) -> list[Chart]:
    """Return a run's charts: rates, queues, and one signal for each protocol."""
    found = RunCharts(result, SCREEN)
    return [found.rates(), found.queues(), *found.signals(first=True)]


# --- tables -------------------------------------------------------------------------------------

# The columns of a run's flows that the studio shows.
_COLUMNS = ("flow", "protocol", "rate", "max-min", "RTT mean", "retransmissions")
MAX_ROWS = 12


def table(result: Result) -> str:
    """Return an HTML table of the flows' mean rates in the measured window."""
    window = result.summary.measure_s
    flows = result.summary.flows
    columns = [column for column in FLOWS if column.name in _COLUMNS]
    rows = [
        [escape(column.cell(flow, "page").text) for column in columns] for flow in flows[:MAX_ROWS]
    ]
    caption = f"Means from {window[0]:.3g} s to {window[1]:.3g} s"
    if len(flows) > MAX_ROWS:
        caption += f", the first {MAX_ROWS} of {len(flows)} flows"
    return html_table([column.heading("page") for column in columns], rows, caption)


def html_table(columns: Iterable[str], rows: Iterable[Iterable[str]], caption: str) -> str:
    """Return an HTML table whose cells are already HTML."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="wf-scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table class="wf-table"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
