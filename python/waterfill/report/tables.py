"""Tables of a page: cells with the number to sort by, the text to read, and the row's name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

# A page lists up to this many rows; a note says how many there are.
MAX_ROWS = 2000


class Cell(NamedTuple):
    """One cell: its text, the number to sort by (None: sort by text), and a class of its own."""

    text: str
    number: float | None = None
    kind: str = ""


class Table(NamedTuple):
    """One table; the first column names the row. `total` counts the rows that there are."""

    key: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    total: int
    note: str = ""

    @property
    def numeric(self) -> list[bool]:
        """Whether each column holds numbers."""
        return [
            any(row[i].number is not None for row in self.rows) for i in range(len(self.columns))
        ]


def table(
    key: str, title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]], note: str = ""
) -> Table:
    """Return a table of the first `MAX_ROWS` rows."""
    listed = list(rows)
    return Table(key, title, columns, listed[:MAX_ROWS], len(listed), note)


def number(value: float | None, unit: float = 1.0, form: str = ".4g") -> Cell:
    """Return a number in a unit, a dash where there is none, "never" for infinity."""
    if value is None or math.isnan(value):
        return Cell("–", -math.inf)
    if math.isinf(value):
        return Cell("never", value)
    return Cell(format(value / unit, form), value)


def count(value: int | None) -> Cell:
    """Return a whole number with separators."""
    return Cell("–", -math.inf) if value is None else Cell(f"{value:,}", float(value))


def text(value: object, kind: str = "") -> Cell:
    """Return a text."""
    return Cell(str(value), None, kind)
