"""Flows from a CSV file with columns source, sink, and optional start, stop, size, demand, count.

Numbers without a unit are seconds, bytes and bit/s; values with one are read as in a scenario.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from waterfill.errors import nearest, shown
from waterfill.formats.layout import Layout
from waterfill.formats.source import Source
from waterfill.scenario.units import RATE, TIME, VOLUME, Quantity

_COLUMNS: Mapping[str, tuple[Quantity, str]] = {
    "start": (TIME, "s"), "stop": (TIME, "s"), "demand": (RATE, "bit/s"),
    "size": (replace(VOLUME, zero=False, whole=True), "B"),
}  # fmt: skip
_ALL = ("source", "sink", *_COLUMNS, "count")


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
    acknowledged: bool = False
    """True if one of them must also have its last acknowledgement."""


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
    for name in ("source", "sink"):
        if name not in columns:
            raise source.wrong(1, f"no column {name}, got {', '.join(columns)}")
    hosts = set(layout.hosts)
    found = []
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
                values["stop"])
        )  # fmt: skip
    return found


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
