"""Tables of a page: cells with the number to sort by, the text to read, and the row's name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from waterfill.analysis import tables as model
from waterfill.analysis.tables import TableCell

# A page lists up to this many rows; a note says how many there are.
MAX_ROWS = 2000


class Table(NamedTuple):
    """One table; the first column names the row. `total` counts the rows that there are."""

    key: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[TableCell]]
    total: int
    note: str = ""

    @property
    def numeric(self) -> list[bool]:
        """True for each column of numbers."""
        return [
            any(row[i].number is not None for row in self.rows) for i in range(len(self.columns))
        ]


def of(found: model.Table[Any], prefix: str = "") -> Table:
    """Return a page's table of a model's, with the columns that pages have."""
    columns = found.shown("page")
    names = [column.heading("page") for column in columns]
    rows = [[column.cell(row, "page") for column in columns] for row in found.rows[:MAX_ROWS]]
    return Table(prefix + found.key, found.title, names, rows, len(found.rows), found.note)
