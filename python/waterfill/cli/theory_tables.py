"""Results of the `theory` commands as rich tables that fit 80 columns."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from waterfill.errors import one_line


def rows(document: dict[str, Any]) -> list[Table | Text]:
    """Return the document's rows (quantity, our value, the paper's) and its certificates."""
    about = document.get("scenario") or document["protocol"]
    parts: list[Table | Text] = [
        Text(f"{document['command']}: {one_line(str(about))}", style="bold"),
        _rows(document["rows"]),
    ]
    for key, title in (("eq13", "eq. 13"), ("implemented", "as implemented")):
        found = document.get(key) or document.get("tune", {}).get(key, {}).get("certificate") or {}
        found = found.get("certificate", found)
        if "checks" in found:
            parts += _certificate(title, found)
    return parts


def _rows(entries: list[dict[str, Any]]) -> Table:
    paper = any(entry["paper"] is not None for entry in entries)
    table = _table("", "computed")
    if paper:
        table.add_column("paper", justify="right")
        table.add_column("source")
    for entry in entries:
        cells = [entry["what"], _value(entry["value"], entry["unit"])]
        if paper:
            cells += [_value(entry["paper"], ""), entry["source"]]
        table.add_row(*cells)
    return table


def _certificate(title: str, found: dict[str, Any]) -> list[Table | Text]:
    head = (
        f"Certificate for {title}, α = {found['alpha']:.6g}, αT = {found['alpha_t_s']:.6g} s, "
        f"η = {found['eta']:g}, up to {found['max_rtt_s']:g} s: "
        f"{'holds' if found['certified'] else 'does not hold'}"
        f" (Algorithm 3: {_value(found['by_algorithm_3'], '')}, "
        f"Lemma 1: {_value(found['by_lemma_1'], '')})"
    )
    table = _table("condition", "worst")
    table.add_column("bound", justify="right")
    table.add_column("holds")
    table.add_column("checked at", overflow="fold")
    for check in [*found["checks"], found["proposition_2"]]:
        table.add_row(
            check["what"], _value(check["value"], ""), check["bound"],
            _value(check["holds"], ""), check["points"],
        )  # fmt: skip
    return [Text(head, style="bold"), table]


def equilibrium(document: dict[str, Any]) -> list[Table | Text]:
    """Return the flows, one row per entry, with their max-min shares; then the links."""
    head = f"{document['scenario']}: equilibrium of {document['protocol']} ({document['model']})"
    table = _table("flow", "count")
    for header in ("rate\nMbit/s", "max-min\nMbit/s", "rate of\nmax-min %"):
        table.add_column(header, justify="right")
    table.add_column("bottleneck", overflow="fold")
    for flow in document["flows"]:
        table.add_row(
            one_line(flow["name"]), str(flow["count"]), f"{flow['rate_bps'] / 1e6:.3f}",
            f"{flow['max_min_bps'] / 1e6:.3f}",
            "–" if flow["ratio"] is None else f"{100 * flow['ratio']:.1f}",
            one_line(flow["bottleneck"]),
        )  # fmt: skip
    parts: list[Table | Text] = [Text(one_line(head), style="bold"), table]
    used = [link for link in document["links"] if link["utilization"] > 0]
    if used:
        links = _table("link", "utilization\n%")
        links.add_column("losses\nallocated", justify="right")
        for link in used:
            kept = "–" if link["losses_kept"] is None else f"{link['losses_kept']:.3f}"
            links.add_row(one_line(link["name"]), f"{100 * link['utilization']:.1f}", kept)
        parts.append(links)
    return parts


def _table(first: str, second: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column(first, overflow="fold")
    table.add_column(second, justify="right")
    return table


def _value(value: Any, unit: str) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:.5g}" if isinstance(value, float) else str(value)
    return f"{text} {unit}" if unit and unit != "°" else f"{text}{unit}"
