"""Legends of a figure: names on the lines where they fit, otherwise one legend for equal charts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D

from waterfill.analysis.painting import SHARES

if TYPE_CHECKING:
    from waterfill.analysis.drawing import Drawing, Legend

# Widths in sizes of text: a handle, the pad behind it, the space between columns.
_HANDLE, _PAD, _SPACE = 1.9, 0.5, 1.3
# Height of an entry and of a label on a line in sizes of text.
ENTRY = 1.4
# Legends and labels take up to so much of a figure's width.
_MAX_SIDE = 0.34
_MAX_LABELS = 8
# Rows of a legend above or below its charts.
_MAX_ROWS = 6
_GREY = "#6E6E6E"


class Entries(NamedTuple):
    """Entries of a legend: what is drawn, and the names."""

    handles: list[Any]
    names: list[str]


def width_of(drawing: Drawing, text: str, scale: float = 1.0) -> float:
    """Return the width of a text (inches), in the figure's size of text times `scale`."""
    font = FontProperties(size=scale * drawing.look.font_pt)
    renderer: Any = drawing.canvas.get_renderer()  # type: ignore[attr-defined]
    width, _, _ = renderer.get_text_width_height_descent(text.replace(r"\$", "$"), font, False)
    return float(width / drawing.dpi)


def below(drawing: Drawing, bottom: float) -> float:
    """Draw one legend of all panels above `bottom` (inches); return its height (inches)."""
    entries = _entries([axis for axis, _ in drawing.place.values()])
    if not entries.names:
        return 0.0
    em = drawing.look.em
    width, height = drawing.get_size_inches()
    columns, entries = _fitted(drawing, entries, width - em)
    made = drawing.legend(
        *entries, loc="lower left", ncols=columns,
        bbox_to_anchor=(0.4 * em / width, bottom / height), **_look(),
    )  # fmt: skip
    return float(made.get_window_extent().height / drawing.dpi + 0.4 * em)


def of_panels(drawing: Drawing, where: Legend) -> None:
    """Name the lines of each panel: on the lines, or in a legend next to, above or in the panel.

    A panel with the same entries as an earlier one has no legend.
    """
    seen: list[list[tuple[str, str]]] = []
    for axis, chart in drawing.place.values():
        entries = _entries([axis])
        if not entries.names:
            continue
        if where == "inside":
            # Its white ground hides the grid and the guides behind the text.
            ground = {"frameon": True, "edgecolor": "none", "borderaxespad": 0.5}
            axis.legend(*entries, loc=chart.legend or "best", **(_look() | ground))
            continue
        single = len(drawing.place) == 1 or len({column for _, column in drawing.place}) == 1
        if single and _on_lines(drawing, axis, entries):
            continue
        known = [(name, str(_colour(handle))) for handle, name in zip(*entries, strict=True)]
        if known in seen:
            continue
        seen.append(known)
        if not (single and _right(drawing, axis, entries)):
            _above(drawing, axis, entries)


def _look() -> dict[str, Any]:
    return {
        "frameon": False, "handlelength": _HANDLE, "handletextpad": _PAD, "columnspacing": _SPACE,
        "labelspacing": ENTRY - 1.15, "borderaxespad": 0.0, "borderpad": 0.0,
    }  # fmt: skip


def _entries(axes: Sequence[Any]) -> Entries:
    """Return the entries of several axes, each name once, with reference lines last."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, name in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    names = sorted(found, key=lambda name: name == SHARES)
    return Entries([found[name] for name in names], names)


def _fitted(drawing: Drawing, entries: Entries, width: float) -> tuple[int, Entries]:
    """Return the columns of a legend of this width (inches), and its entries, shortened to fit."""
    em = drawing.look.em
    room = width - (_HANDLE + _PAD) * em
    names = [_shortened(drawing, name, room) for name in entries.names]
    widths = [width_of(drawing, name) + (_HANDLE + _PAD + _SPACE) * em for name in names]
    columns = len(names)
    while columns > 1 and _total(widths, columns) > width + _SPACE * em:
        columns -= 1
    return columns, _fewer(Entries(entries.handles, names), _MAX_ROWS * columns)


def _total(widths: Sequence[float], columns: int) -> float:
    """Return the width of a legend with so many columns, which are filled one after the other."""
    rows, longer = divmod(len(widths), columns)
    counts = [rows + 1] * longer + [rows] * (columns - longer)
    ends = list(itertools.accumulate(counts))
    return sum(max(widths[end - count : end]) for end, count in zip(ends, counts, strict=True))


def _fewer(entries: Entries, most: int) -> Entries:
    """Return up to `most` entries, the last of which says how many are left out."""
    if len(entries.names) <= most:
        return entries
    left = len(entries.names) - most + 1
    blank = Line2D([], [], linestyle="none")
    return Entries(
        [*entries.handles[: most - 1], blank], [*entries.names[: most - 1], f"and {left} others"]
    )


def _shortened(drawing: Drawing, name: str, room: float) -> str:
    """Return a name without its middle if it is wider than `room` (inches)."""
    kept = len(name)
    text = name
    while kept > 8 and width_of(drawing, text) > room:
        kept = int(0.9 * kept)
        text = f"{name[: -(-kept // 2)]}…{name[len(name) - kept // 2 :]}"
    return text


def _right(drawing: Drawing, axis: Any, entries: Entries) -> bool:
    """Draw a legend right of a panel; return False if there is no room."""
    em = drawing.look.em
    longest = max(width_of(drawing, name) for name in entries.names)
    side = longest + (_HANDLE + _PAD + 1.0) * em
    rows = int(axis.bbox.height / drawing.dpi / (ENTRY * em))
    if side > _MAX_SIDE * drawing.get_figwidth() or rows < len(entries.names):
        return False
    axis.legend(*entries, loc="upper left", bbox_to_anchor=(1.01, 1.0), **_look())
    return True


def _above(drawing: Drawing, axis: Any, entries: Entries) -> None:
    em = drawing.look.em
    columns, entries = _fitted(drawing, entries, axis.bbox.width / drawing.dpi)
    rows = -(-len(entries.names) // columns)
    space = 0.35 * em
    axis.legend(
        *entries, loc="lower left", ncols=columns,
        bbox_to_anchor=(0.0, 1.0 + space / (axis.bbox.height / drawing.dpi)), **_look(),
    )  # fmt: skip
    if title := axis.get_title(loc="left"):
        pad = (rows * ENTRY + 0.7) * drawing.look.font_pt
        axis.set_title(title, loc="left", pad=pad, parse_math=False)


def _on_lines(drawing: Drawing, axis: Any, entries: Entries) -> bool:
    """Write the names right of the lines' ends; return False if they do not fit."""
    pairs = [pair for pair in zip(*entries, strict=True) if pair[1] != SHARES]
    if not pairs or len(pairs) > _MAX_LABELS:
        return False
    ends = [_end(axis, handle) for handle, _ in pairs]
    widest = max(width_of(drawing, name) for _, name in pairs)
    if None in ends or widest > _MAX_SIDE * drawing.get_figwidth():
        return False
    height = axis.bbox.height / drawing.dpi / drawing.look.em  # in sizes of text
    wanted = np.array([end for end in ends if end is not None]) * height
    order = np.argsort(wanted, kind="stable")
    placed = _spread(wanted[order], height)
    if placed is None or np.abs(placed - wanted[order]).max() > ENTRY:
        return False
    for place, y in zip(order, placed, strict=True):
        handle, name = pairs[place]
        colour = tuple(0.7 * part for part in to_rgb(_colour(handle)))
        axis.annotate(
            name, (1.0, y / height), xycoords="axes fraction", xytext=(4, 0), va="center",
            textcoords="offset points", color=colour, fontsize=drawing.look.font_pt,
        )  # fmt: skip
    if SHARES in entries.names:
        axis.set_title(f"grey: {SHARES}", loc="right", color=_GREY)
    return True


def _end(axis: Any, handle: Any) -> float | None:
    """Return the height at which a line ends at the right edge, from 0 to 1, or None."""
    if not isinstance(handle, Line2D) or handle.get_drawstyle() != "default":
        return None
    points = np.column_stack([handle.get_xdata(), handle.get_ydata()]).astype(np.float64)
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        return None
    x, y = axis.transAxes.inverted().transform(axis.transData.transform(points[-1]))
    return float(y) if x > 0.95 and -0.02 < y < 1.02 else None


def _spread(wanted: Any, height: float) -> Any:
    """Return places at least `ENTRY` apart, nearest to the ascending wanted ones, or None."""
    if len(wanted) * ENTRY > height + 1:
        return None
    groups: list[list[float]] = []  # of neighbours that touch; pooled while they would overlap
    for place in wanted - ENTRY * np.arange(len(wanted)):
        groups.append([float(place)])
        while len(groups) > 1 and np.mean(groups[-2]) > np.mean(groups[-1]):
            last = groups.pop()
            groups[-1] += last
    pooled = [float(np.mean(group)) for group in groups for _ in group]
    placed = np.array(pooled) + ENTRY * np.arange(len(wanted))
    # None is lower than the panel, next to the numbers of the x axis.
    least = 0.5 + ENTRY * np.arange(len(wanted))
    return np.maximum(placed, least)


def _colour(handle: Any) -> Any:
    one = handle[0] if isinstance(handle, tuple) else handle  # bars are a tuple of patches
    return one.get_color() if isinstance(one, Line2D) else one.get_facecolor()
