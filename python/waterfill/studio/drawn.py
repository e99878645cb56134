"""A small network drawn with a form of rows, each a link or a flow written as one line of text.

A link is `from,to,rate,delay`, a flow `from,to,count,start`. Names follow from the nodes: link
`a-b`, flow `a-c`, or `a-c-2` where an earlier row has the same ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_lowercase
from typing import Any, NamedTuple

from waterfill.errors import InputError, shown
from waterfill.scenario.units import digits

MAX_ROWS = 12
"""Maximum number of links, and of flows, in a drawing. Larger networks need a scenario file."""


class LinkRow(NamedTuple):
    """One link: its end nodes, its rate and its one-way delay, with units."""

    source: str
    target: str
    rate: str
    delay: str


class FlowRow(NamedTuple):
    """One group of flows: its end nodes, its number of flows, and its start time."""

    source: str
    target: str
    number: str
    start: str


class Drawing(NamedTuple):
    """The rows of a drawn network."""

    links: tuple[LinkRow, ...]
    flows: tuple[FlowRow, ...]


START = Drawing(
    (LinkRow("a", "b", "100 Mbit/s", "10 ms"), LinkRow("b", "c", "50 Mbit/s", "20 ms")),
    (FlowRow("a", "b", "2", "0 s"), FlowRow("a", "c", "1", "0 s")),
)
"""Initial drawing: two links, two groups of flows."""


def from_rows(links: Iterable[str], flows: Iterable[str]) -> Drawing:
    """Read the rows of a URL as a drawing; raise InputError for a row without four fields or a
    wrong number of rows.
    """
    found = Drawing(
        tuple(LinkRow(*_fields("link", row)) for row in links),
        tuple(FlowRow(*_fields("flow", row)) for row in flows),
    )
    for key, rows in (("link", found.links), ("flow", found.flows)):
        if not 1 <= len(rows) <= MAX_ROWS:
            message = f"must have 1 to {MAX_ROWS} rows, got {len(rows)}"
            raise InputError("studio", key, message)
    return found


def _fields(key: str, row: str) -> list[str]:
    fields = [field.strip() for field in row.split(",")]
    if len(fields) != 4:
        raise InputError("studio", key, f"must have four fields, got {shown(row)}")
    return fields


def to_rows(drawing: Drawing) -> tuple[list[str], list[str]]:
    """Return the rows of links and of flows as text, in the format of `from_rows`."""
    return [",".join(row) for row in drawing.links], [",".join(row) for row in drawing.flows]


def document(drawing: Drawing) -> dict[str, Any]:
    """Return the drawing as the dictionary of a scenario; raise InputError for an invalid number of
    flows.
    """
    seen: Counter[str] = Counter()
    links = [
        {
            "name": _name(seen, row.source, row.target),
            "from": row.source,
            "to": row.target,
            "rate": row.rate,
            "delay": row.delay,
        }
        for row in drawing.links
    ]
    seen.clear()
    flows = []
    for row in drawing.flows:
        name = _name(seen, row.source, row.target)
        number = digits(row.number)
        if number is None:
            where = f"flow.{name}.count"
            message = f"must be a whole number, got {shown(row.number)}"
            raise InputError("studio", where, message)
        entry: dict[str, Any] = {"name": name, "from": row.source, "to": row.target}
        flows.append({**entry, "count": number, "start": row.start})
    return {"name": "drawn", "duration": "20 s", "protocol": "maxnet", "link": links, "flow": flows}


HEADS = {"link": ("from", "to", "rate", "delay"), "flow": ("from", "to", "flows", "start")}
"""The columns of the form, for links and for flows."""

CHANGES = {
    "link+": "Add a link",
    "link-": "Remove the last link",
    "flow+": "Add a flow",
    "flow-": "Remove the last flow",
}
"""Actions that change the number of rows, and the labels of their buttons."""


def fields(drawing: Drawing) -> dict[str, tuple[str, str]]:
    """Return the label and text of each field of the form, by keys such as `link.0.rate`."""
    found = {}
    rows: Mapping[str, Sequence[tuple[str, ...]]] = {"link": drawing.links, "flow": drawing.flows}
    for kind, of_kind in rows.items():
        for i, row in enumerate(of_kind):
            for head, text in zip(HEADS[kind], row, strict=True):
                found[f"{kind}.{i}.{head}"] = (head, text)
    return found


def with_fields(drawing: Drawing, texts: Mapping[str, str]) -> Drawing:
    """Return the drawing with the texts of the form's fields filled in."""

    def row(kind: str, i: int) -> list[str]:
        return [texts[f"{kind}.{i}.{head}"].strip() for head in HEADS[kind]]

    return Drawing(
        tuple(LinkRow(*row("link", i)) for i in range(len(drawing.links))),
        tuple(FlowRow(*row("flow", i)) for i in range(len(drawing.flows))),
    )


def resized(drawing: Drawing, change: str) -> Drawing:
    """Return the drawing with one row added or removed, for a key of `CHANGES`. Each list keeps 1
    to `MAX_ROWS` rows.

    A new link leads on from the last one to a new node, a new flow goes where the last one does.
    """
    links, flows = drawing
    if change == "link+" and len(links) < MAX_ROWS:
        used = {node for row in links for node in (row.source, row.target)}
        node = next(name for name in ascii_lowercase if name not in used)
        return Drawing((*links, links[-1]._replace(source=links[-1].target, target=node)), flows)
    if change == "link-" and len(links) > 1:
        return Drawing(links[:-1], flows)
    if change == "flow+" and len(flows) < MAX_ROWS:
        return Drawing(links, (*flows, flows[-1]))
    if change == "flow-" and len(flows) > 1:
        return Drawing(links, flows[:-1])
    return drawing


def _name(seen: Counter[str], source: str, target: str) -> str:
    name = f"{source}-{target}"
    seen[name] += 1
    return name if seen[name] == 1 else f"{name}-{seen[name]}"
