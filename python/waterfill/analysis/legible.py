"""Measure whether all text of a figure can be read: by the extents of its texts and panels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from matplotlib.transforms import Bbox

if TYPE_CHECKING:
    from waterfill.analysis.drawing import Drawing

# Texts may touch by so many inches, and reach so far out of the figure.
_TOUCH = 0.012
# Smallest panel, in sizes of text.
_MIN_WIDTH, _MIN_HEIGHT = 5.0, 2.8


class Piece(NamedTuple):
    """A text and its extent in inches. `panel` is its axis; `outside` is true next to a panel."""

    text: str
    box: Bbox
    panel: Any
    outside: bool


def problems(drawing: Drawing) -> list[str]:
    """Return why a figure cannot be read, one sentence each: text over text, cut text, panels."""
    if drawing.is_collapsed:
        return ["there is no room for the panels"]
    found = [
        f"a panel is {box.width:.2f} by {box.height:.2f} inches"
        for box in (_inches(drawing, axis.bbox) for axis, _ in drawing.place.values())
        if box.width < _MIN_WIDTH * drawing.look.em or box.height < _MIN_HEIGHT * drawing.look.em
    ]
    width, height = drawing.get_size_inches()
    pieces = list(_pieces(drawing))
    for piece in pieces:
        box = piece.box
        if min(box.x0, box.y0, width - box.x1, height - box.y1) < -_TOUCH:
            found.append(f'"{piece.text}" is cut')
    for one, other in itertools.combinations(pieces, 2):
        if _overlap(one.box, other.box):
            found.append(f'"{one.text}" and "{other.text}" overlap')
    panels = [(axis, _inches(drawing, axis.bbox)) for axis, _ in drawing.place.values()]
    for piece in pieces:
        if piece.outside and any(_overlap(piece.box, box) for _, box in panels):
            found.append(f'"{piece.text}" is over a panel')
    return found


def spare(drawing: Drawing) -> float:
    """Return by how much lower (inches) a figure could be with its panels as low as they may be."""
    heights: dict[int, float] = {
        row: float(axis.bbox.height / drawing.dpi) for (row, _), (axis, _) in drawing.place.items()
    }
    share = _MIN_HEIGHT * drawing.look.em / min(heights.values())
    return sum(heights.values()) * (1 - share)


def _overlap(one: Bbox, other: Bbox) -> bool:
    x = min(one.x1, other.x1) - max(one.x0, other.x0)
    y = min(one.y1, other.y1) - max(one.y0, other.y0)
    return bool(x > _TOUCH and y > _TOUCH)


def _inches(drawing: Drawing, box: Bbox) -> Bbox:
    return Bbox(box.get_points() / drawing.dpi)


def _pieces(drawing: Drawing) -> Iterator[Piece]:
    """Yield each visible text of a figure."""
    legends = list(drawing.legends)
    for text in drawing.texts:
        yield from _piece(drawing, text, None, outside=True)
    for axis in drawing.axes:
        titles = axis.title, axis._left_title, axis._right_title  # type: ignore[attr-defined]
        for text in (*titles, axis.xaxis.label, axis.yaxis.label):
            yield from _piece(drawing, text, axis, outside=True)
        for one in (axis.xaxis, axis.yaxis):
            yield from _tick_labels(drawing, axis, one)
        for text in axis.texts:
            inside = axis.bbox.contains(*text.get_window_extent().p0)
            yield from _piece(drawing, text, axis, outside=not inside)
        if (legend := axis.get_legend()) is not None:
            legends.append(legend)
    for legend in legends:
        for text in legend.get_texts():
            yield from _piece(drawing, text, None, outside=False)


def _tick_labels(drawing: Drawing, axis: Any, one: Any) -> Iterator[Piece]:
    low, high = sorted(one.get_view_interval())
    slack = 1e-6 * (high - low)
    for tick in (*one.get_major_ticks(), *one.get_minor_ticks()):
        label = tick.label1
        # Boxes of turned texts overlap where the texts do not.
        if low - slack <= tick.get_loc() <= high + slack and label.get_rotation() % 90 == 0:
            yield from _piece(drawing, label, axis, outside=True)


def _piece(drawing: Drawing, text: Any, panel: Any, *, outside: bool) -> Iterator[Piece]:
    if text.get_visible() and text.get_text().strip():
        box = _inches(drawing, text.get_window_extent())
        if box.width > 0:
            yield Piece(text.get_text().strip(), box, panel, outside)
