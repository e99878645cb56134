"""Charts drawn with matplotlib and written as PNG, SVG or PDF. Equal input gives equal bytes.

pyplot is not used: no windows, no global state. matplotlib is imported when something is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from waterfill.analysis.charts import Chart
from waterfill.analysis.looks import SCREEN, Look
from waterfill.errors import InputError, nearest, shown
from waterfill.runs.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from waterfill.analysis.drawing import Drawing, Legend, Sheet

# The formats that `save` writes, and the sizes (inches) that `sized` accepts.
FORMATS = ("png", "svg", "pdf")
_SIZES = (1.0, 40.0)
# Sizes in an error message are multiples of this (inches).
_STEP = 0.5
# Heights that are tried at one width.
_MAX_STEPS = 6
# A figure that cannot be read at its own height grows by this factor, up to so many times.
_GROWTH, _MAX_GROWTHS = 1.2, 5


def figure(
    charts: Sequence[Chart],
    *,
    size: tuple[float, float],
    columns: int = 1,
    stack: int = 1,
    title: str = "",
    caption: str = "",
    legend: Legend = "right",
    share: Literal["", "x", "both"] = "x",
    heights: Sequence[float] = (),
) -> Drawing:
    """Draw charts in a grid as `drawing.Sheet` describes, in the style for screens.

    The figure is higher than `size` (inches) if its text would overlap otherwise.
    """
    from waterfill.analysis.drawing import Sheet

    sheet = Sheet(charts, size, columns, stack, title, caption, legend, share, heights)
    return _readable(sheet, SCREEN)


def styled(figure: Drawing, look: Look, size: str | None = None) -> Drawing:
    """Return a figure in another style, and with a size "WIDTHxHEIGHT" in inches such as "7x3".

    Raises InputError for another text, for a size out of range, and for one at which the figure
    cannot be read; the message names the smallest size that works.
    """
    from waterfill.analysis import legible
    from waterfill.analysis.drawing import Drawing

    if size is None:
        same = look == getattr(figure, "look", SCREEN)
        return figure if same else _readable(figure.sheet, look)
    width, height = _size(size)
    made = Drawing(figure.sheet, look, (width, height))
    if found := legible.problems(made):
        enough = _smallest(made, width, height)
        advice = f"type at least --size {enough}" if enough else "leave it out"
        problem = f"too small to be read, got {shown(size)}: {found[0]}"
        raise InputError("command line", "size", problem, advice)
    return made


def _readable(sheet: Sheet, look: Look) -> Drawing:
    """Return a figure at its own size, or higher or with fewer columns if it cannot be read."""
    from waterfill.analysis import legible
    from waterfill.analysis.drawing import Drawing

    first = None
    for columns in range(sheet.across(look, sheet.natural(look)[0]), 0, -1):
        narrower = replace(sheet, columns=columns, may_spread=False)
        width, height = narrower.natural(look)
        for _ in range(_MAX_GROWTHS):
            made = Drawing(narrower, look, (width, height))
            if not legible.problems(made):
                return made
            first = first or made
            height *= _GROWTH
    assert first is not None
    return first


def _size(text: str) -> tuple[float, float]:
    try:
        width, height = (float(side) for side in text.lower().split("x"))
    except ValueError:
        width = height = float("nan")
    low, high = _SIZES
    if not (low <= width <= high and low <= height <= high):
        message = f'must be inches such as "7x4.5", {low:g} to {high:g}, got {shown(text)}'
        raise InputError("command line", "size", message)
    return width, height


def _smallest(made: Drawing, width: float, height: float) -> str:
    """Return the size with the least height at this width, or else at the next larger ones.

    Returns an empty text if there is none.
    """
    from waterfill.analysis import legible
    from waterfill.analysis.drawing import Drawing

    def readable(width: float, steps: int) -> bool:
        drawn = Drawing(made.sheet, made.look, (width, steps * _STEP))
        return not legible.problems(drawn)

    most = _SIZES[1]
    while width <= most:
        # At a comfortable height, the panels' heights tell how much lower the figure can be.
        roomy = Drawing(made.sheet, made.look, (width, min(most, 4 * height)))
        spare = 0.0 if roomy.is_collapsed else legible.spare(roomy)
        least = max(height, roomy.get_figheight() - spare)
        for steps in range(math.ceil(least / _STEP), math.ceil(least / _STEP) + _MAX_STEPS):
            if steps * _STEP <= most and readable(width, steps):
                return f"{width:g}x{steps * _STEP:g}"
        width = _STEP * (math.floor(width / _STEP) + 1)
    return ""


def save(figure: Figure, stem: Path, formats: Sequence[str] = ()) -> list[Path]:
    """Write a figure to `stem`.png, `stem`.svg and so on atomically; return their paths.

    By default the formats are those of the figure's style. Raises InputError for an unknown format
    and when one cannot be written.
    """
    import matplotlib

    from waterfill.analysis.drawing import Drawing

    look: Look = getattr(figure, "look", SCREEN)
    formats = formats or look.formats
    for kind in formats:
        if kind not in FORMATS:
            raise InputError(
                "command line", "format", f"unknown format {shown(kind)}{nearest(kind, FORMATS)}"
            )

    # By default an SVG's ids are random and the files hold the date and the version.
    metadata: dict[str, dict[str, Any]] = {
        "png": {"Software": None},
        "svg": {"Date": None, "Creator": None},
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    }
    # Text stays text, which readers can search and editors change.
    text: Any = {"svg.hashsalt": "waterfill", "svg.fonttype": "none", "pdf.fonttype": 42}
    if isinstance(figure, Drawing):
        # It is laid out, and was judged so. matplotlib would do it again for each format.
        figure.set_layout_engine("none")
    written = []
    for kind in formats:
        extra = metadata[kind]

        def write(path: Path, kind: str = kind, extra: dict[str, Any] = extra) -> None:
            with matplotlib.rc_context(look.rc() | text):
                figure.savefig(path, format=kind, dpi=look.dpi, metadata=extra)

        written.append(write_atomically(stem.with_name(f"{stem.name}.{kind}"), write))
    return written
