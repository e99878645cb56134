"""Tables for notebooks: escaped HTML in the notebook's own colours, without scripts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TypeAlias

from waterfill.contract.summary import Summary

HtmlCell: TypeAlias = str | int | float | None

MAX_ROWS = 20

# Lines of one grey that shows on white and on black; text keeps the notebook's colour.
_LINE = "border-bottom:1px solid rgba(128,128,128,.45);padding:.15em .7em"
_TABLE = "border-collapse:collapse;background:transparent;color:inherit;font-size:90%;margin:.4em 0"


def result(summary: Summary) -> str:
    """Return a run's flows, traffic and links as tables of up to `MAX_ROWS` rows each.

    Columns with "(all)" count over the whole run, the others cover the summary's window. A table
    without rows is left out.
    """
    flows: list[Sequence[HtmlCell]] = [
        (
            flow.name, flow.protocol, _scaled(flow.rate_bps, 1e-6),
            _scaled(flow.max_min_bps, 1e-6), flow.rtt_ms.mean, flow.rtt_ms.base,
            flow.packets_sent, flow.retransmissions,
        )
        for flow in summary.flows[:MAX_ROWS]
    ]  # fmt: skip
    links: list[Sequence[HtmlCell]] = [
        (
            link.name, _scaled(link.utilization, 100), link.queue_bytes.mean,
            link.queue_bytes.max, link.drops,
        )
        for link in summary.links[:MAX_ROWS]
    ]  # fmt: skip
    sources: list[Sequence[HtmlCell]] = [
        (
            source.name, source.kind, _scaled(source.rate_bps, 1e-6),
            source.packets_sent, source.flows_started, source.flows_completed,
            None if source.flow_completion_ms is None else source.flow_completion_ms.mean,
        )
        for source in summary.traffic[:MAX_ROWS]
    ]  # fmt: skip
    start_s, end_s = summary.measure_s
    window = f"{start_s:g} s to {end_s:g} s; (all): whole run"
    tables = [
        (("flow", "protocol", "rate (Mbit/s)", "max-min (Mbit/s)", "RTT (ms)", "base RTT (ms)",
          "packets (all)", "retransmissions (all)"), flows, len(summary.flows)),
        (("traffic", "kind", "rate (Mbit/s)", "packets (all)", "flows started (all)",
          "flows completed (all)", "mean completion (ms)"), sources, len(summary.traffic)),
        (("link", "utilization (%)", "mean queue (B)", "largest queue (B)", "drops"),
         links, len(summary.links)),
    ]  # fmt: skip
    titles = [f"{summary.scenario} on {summary.backend}, {window}", "", ""]
    there = [entry for entry in tables if entry[1]]
    return "".join(table(title, *entry) for title, entry in zip(titles, there, strict=False))


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[HtmlCell]], total: int
) -> str:
    """Return one table; below it, how many of `total` rows are missing."""
    caption = f'<caption style="text-align:left">{escape(title)}</caption>' if title else ""
    head = "".join(_cell("th", name, left=i == 0) for i, name in enumerate(columns))
    body = "".join(
        f"<tr>{''.join(_cell('td', shown(c), left=isinstance(c, str)) for c in row)}</tr>"
        for row in rows
    )
    left = total - len(rows)
    more = f'<p style="font-size:90%">and {left} others</p>' if left > 0 else ""
    start = f'<table style="{_TABLE}">{caption}<thead><tr>{head}</tr></thead>'
    return f"{start}<tbody>{body}</tbody></table>{more}"


def shown(value: HtmlCell) -> str:
    """Return a number without exponent, a text as it is, and a dash for nothing."""
    if value is None:
        return "–"
    if not isinstance(value, float) or not math.isfinite(value):
        return str(value)
    if abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.4g}" if abs(value) >= 1e-4 or value == 0 else f"{value:.7f}".rstrip("0")


def _cell(kind: str, text: str, *, left: bool) -> str:
    side = "left" if left else "right"
    return (
        f'<{kind} style="{_LINE};text-align:{side};background:transparent">{escape(text)}</{kind}>'
    )


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
