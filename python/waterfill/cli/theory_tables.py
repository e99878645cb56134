"""Results of the `theory` commands as rich tables that fit 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from waterfill.analysis.tables import Column, TableCell
from waterfill.cli.tables import note, printed
from waterfill.contract.record import Record
from waterfill.errors import one_line
from waterfill.theory.certificate import CheckEntry, Proof
from waterfill.theory.documents import (
    DocumentRow,
    Equilibrium,
    FlowInEquilibrium,
    LinkInEquilibrium,
)
from waterfill.theory.verdicts import digits

# Significant digits of computed values, and of numbers as a paper prints them.
_DIGITS, _MAX_DIGITS = 3, 4


class _Document(Record):
    """The keys that the documents of all `theory` commands except `equilibrium` share."""

    command: str
    protocol: str
    rows: list[DocumentRow]
    verdict: str = ""
    scenario: str | None = None
    notes: tuple[str, ...] = ()


def rows(document: dict[str, Any], *, certificate: bool = False) -> list[Table | Text]:
    """Return the verdict and a table of quantities with our values and the paper's.

    With `certificate` also the tables of certificates.
    """
    head = _Document.read(document)
    about = head.verdict or f"{head.command}: {head.scenario or head.protocol}"
    parts: list[Table | Text] = [Text(one_line(about), style="bold"), _rows(head.rows)]
    if not certificate:
        return [*parts, *map(note, head.notes)]
    for key, title in (("eq13", "eq. 13"), ("implemented", "as implemented")):
        found = document.get(key) or document.get("tune", {}).get(key, {}).get("certificate") or {}
        found = found.get("certificate", found)
        if "checks" in found:
            parts += _certificate(title, Proof.read(found))
    return [*parts, *map(note, head.notes)]


def _computed(entry: DocumentRow) -> TableCell:
    """Return a computed value with three digits, or four if the paper prints four."""
    return _number(entry.value, entry.unit, _count(entry.paper))


def _count(paper: Any) -> int:
    """Return the number of digits to print for a paper's number: its own, or three of a formula."""
    printed = len(str(paper).lstrip("0.").replace(".", "")) if isinstance(paper, float) else 0
    return _MAX_DIGITS if printed == _MAX_DIGITS else _DIGITS


def _rows(entries: list[DocumentRow]) -> Table:
    columns: list[Column[DocumentRow]] = [
        Column("", lambda entry: entry.what),
        Column("computed", _computed),
    ]
    if any(entry.paper is not None for entry in entries):
        columns += [
            Column("paper", lambda entry: _number(entry.paper, count=_count(entry.paper))),
            Column("source", lambda entry: entry.source),
        ]
    return printed(columns, entries)


_CHECKS: Sequence[Column[CheckEntry]] = (
    Column("condition", lambda check: check.what),
    Column("worst", lambda check: _number(check.value)),
    Column("bound", lambda check: TableCell(check.bound, 0.0)),
    Column("holds", lambda check: _value(check.holds, "")),
    Column("checked at", lambda check: check.points),
)


def _certificate(title: str, found: Proof) -> list[Table | Text]:
    head = (
        f"Certificate for {title}, α = {digits(found.alpha)}, αT = {digits(found.alpha_t_s)} s, "
        f"η = {found.eta:g}, up to {found.max_rtt_s:g} s: "
        f"{'holds' if found.certified else 'does not hold'}"
        f" (Algorithm 3: {_value(found.by_algorithm_3, '')}, "
        f"Lemma 1: {_value(found.by_lemma_1, '')})"
    )
    return [Text(head, style="bold"), printed(_CHECKS, [*found.checks, found.proposition_2])]


_FLOWS: Sequence[Column[FlowInEquilibrium]] = (
    Column("flow", lambda flow: flow.name),
    Column("count", lambda flow: flow.count),
    Column("rate", lambda flow: flow.rate_bps, "Mbit/s", 1e6, ".3f"),
    Column("max-min", lambda flow: flow.max_min_bps, "Mbit/s", 1e6, ".3f"),
    Column("rate of\nmax-min %", lambda flow: flow.ratio, size=0.01, form=".1f"),
    Column("bottleneck", lambda flow: flow.bottleneck),
)
_LINKS: Sequence[Column[LinkInEquilibrium]] = (
    Column("link", lambda link: link.name),
    Column("utilization", lambda link: link.utilization, "%", 0.01, ".1f"),
    Column("losses\nallocated", lambda link: link.losses_kept, form=".3f"),
)


def equilibrium(document: Equilibrium) -> list[Table | Text]:
    """Return a table of flow entries with their max-min shares, and a table of links."""
    parts: list[Table | Text] = [
        Text(document.verdict, style="bold"),
        Text(one_line(f"{document.scenario} ({document.model})")),
        printed(_FLOWS, document.flows),
    ]
    used = [link for link in document.links if link.utilization > 0]
    if used:
        parts.append(printed(_LINKS, used))
    return [*parts, *map(note, document.notes)]


def _number(value: Any, unit: str = "", count: int = _DIGITS) -> TableCell:
    return TableCell(_value(value, unit, count), 0.0)


def _value(value: Any, unit: str, count: int = _DIGITS) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = digits(value, count) if isinstance(value, float) else str(value)
    return f"{text} {unit}" if unit and unit != "°" else f"{text}{unit}"
