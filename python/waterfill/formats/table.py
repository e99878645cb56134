"""Flows from a CSV file with columns source, sink, and optional start, stop, size, demand, count,
name, after.

Numbers without a unit are seconds, bytes and bit/s; values with one are read as in a scenario.
`after` has the names of rows, separated by semicolons, that have completed before a row's `start`
counts.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from waterfill.errors import nearest, shown
from waterfill.formats.layout import Layout
from waterfill.formats.source import Source
from waterfill.scenario.table import flow_name
from waterfill.scenario.units import RATE, TIME, VOLUME, Quantity

_COLUMNS: Mapping[str, tuple[Quantity, str]] = {
    "start": (TIME, "s"), "stop": (TIME, "s"), "demand": (RATE, "bit/s"),
    "size": (replace(VOLUME, zero=False, whole=True), "B"),
}  # fmt: skip
_ALL = ("source", "sink", *_COLUMNS, "count", "name", "after")


@dataclass(frozen=True)
class TableRow:
    """One line of a file of flows."""

    line: int
    ends: tuple[str, str]
    start_s: float = 0.0
    size_bytes: int | None = None
    demand_bps: float | None = None
    count: int = 1
    stop_s: float | None = None
    after: tuple[int, ...] = ()
    """Indexes of the rows that have completed before this one starts."""
    after_count: int | None = None
    """Number of these rows that must have completed; None for all."""
    acknowledged: bool = False
    """True if one of them must also have its last acknowledgement."""
    name: str | None = None
    """Name of the flow; None for one that follows from its ends."""


def read(path: Path, layout: Layout) -> list[TableRow]:
    """Read the CSV file of flows between a network's hosts; raise InputError if the file is
    invalid.
    """
    source = Source.read(path)
    reader = csv.DictReader(io.StringIO(source.text), skipinitialspace=True)
    columns = [name.strip() for name in reader.fieldnames or []]
    reader.fieldnames = columns
    for name in columns:
        if name not in _ALL:
            raise source.wrong(1, f"unknown column {shown(name)}{nearest(name, _ALL)}")
        if columns.count(name) > 1:
            raise source.wrong(1, f"column {shown(name)} is given twice")
    for name in ("source", "sink"):
        if name not in columns:
            raise source.wrong(1, f"no column {name}, got {', '.join(columns)}")
    hosts = set(layout.hosts)
    found: list[TableRow] = []
    waits: list[str] = []
    known: dict[str, int] = {}
    for cells in reader:
        line = reader.line_num
        if None in cells or None in cells.values():
            raise source.wrong(line, f"must have {len(columns)} values")
        ends = cells["source"].strip(), cells["sink"].strip()
        for end in ends:
            if end not in hosts:
                raise source.wrong(line, f"unknown host {shown(end)}{nearest(end, hosts)}")
        if ends[0] == ends[1]:
            raise source.wrong(line, f"source and sink must differ, got {shown(ends[0])} twice")
        values = {name: _value(source, line, name, cells) for name in _COLUMNS}
        if values["stop"] is not None and values["stop"] <= (values["start"] or 0.0):
            got = shown(cells["stop"].strip())
            raise source.wrong(line, f"stop must be after the start, got {got}")
        count = (cells.get("count") or "").strip()
        size = values["size"]
        found.append(
            TableRow(line, ends, values["start"] or 0.0, None if size is None else int(size),
                values["demand"], source.whole(line, "a count", count, 1) if count else 1,
                values["stop"], name=_name(source, line, cells, known))
        )  # fmt: skip
        known.update({} if found[-1].name is None else {found[-1].name: len(found) - 1})
        waits.append(cells.get("after") or "")
    rows = [
        _waiting(source, row, after, known, found) for row, after in zip(found, waits, strict=True)
    ]
    try:
        TopologicalSorter({i: row.after for i, row in enumerate(rows) if row.after}).prepare()
    except CycleError as error:
        circle = [rows[i] for i in reversed(error.args[1])]
        why = f"flows wait for each other, got {' after '.join(str(row.name) for row in circle)}"
        raise source.wrong(circle[0].line, f"after: {why}") from None
    return rows


def _name(
    source: Source, line: int, cells: Mapping[str, str], known: Mapping[str, int]
) -> str | None:
    if "name" not in cells:
        return None
    try:
        name = flow_name(cells["name"].strip())
    except ValueError as error:
        raise source.wrong(line, f"name: {error}") from None
    if name in known:
        raise source.wrong(line, f"name: must be unique, got {shown(name)} twice")
    return name


def _waiting(
    source: Source, row: TableRow, after: str, known: Mapping[str, int], rows: Sequence[TableRow]
) -> TableRow:
    """Return a row with the indexes of the rows that its cell `after` names."""
    names = [name.strip() for name in after.split(";") if name.strip()]
    if not names:
        return row
    for name in names:
        if name not in known:
            advice = nearest(name, known) if known else "; add a column name"
            raise source.wrong(row.line, f"after: no row named {shown(name)}{advice}")
        if rows[known[name]].size_bytes is None:
            problem = f"after: must name flows with a size, which end, got {shown(name)}"
            raise source.wrong(row.line, problem)
    if row.stop_s is not None:
        raise source.wrong(row.line, "stop is not allowed with after")
    return replace(row, after=tuple(dict.fromkeys(known[name] for name in names)))


def _value(source: Source, line: int, name: str, cells: Mapping[str, str]) -> float | None:
    text = (cells.get(name) or "").strip()
    if not text:
        return None
    quantity, unit = _COLUMNS[name]
    try:
        # The last character of every unit is a letter.
        return quantity.parse(text if text[-1].isalpha() else f"{text} {unit}")
    except ValueError as error:
        raise source.wrong(line, f"{name}: {error}") from None
