"""Tables of a page, whose cells hold the text to read and the number to sort by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from waterfill.analysis import tables as model
from waterfill.analysis.tables import TableCell

# A page lists up to this many rows; a note says how many there are.
MAX_ROWS = 2000


class Table(NamedTuple):
    """One table, whose first column names the rows. `total` counts all rows, shown or not."""

    key: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[TableCell]]
    total: int
    note: str = ""

    @property
    def numeric(self) -> list[bool]:
        """List with True for each column of numbers."""
        return [
            any(row[i].number is not None for row in self.rows) for i in range(len(self.columns))
        ]


def of(found: model.Table[Any], prefix: str = "") -> Table:
    """Convert a table of the analysis to a table of a page, with the columns for pages."""
    columns = found.shown("page")
    names = [column.heading("page") for column in columns]
    rows = [[column.cell(row, "page") for column in columns] for row in found.rows[:MAX_ROWS]]
    return Table(prefix + found.key, found.title, names, rows, len(found.rows), found.note)
