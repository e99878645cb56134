"""Figures of several charts that can be laid out again at another size or in another style."""

from __future__ import annotations

import math
import textwrap
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from waterfill.analysis import legends, painting
from waterfill.analysis.charts import Chart
from waterfill.analysis.looks import Look, printable
from waterfill.analysis.painting import plain

Legend: TypeAlias = Literal["right", "below", "inside"]
"""Position of legends: next to each chart or above it, once below all, or inside each chart."""

# Widths in sizes of text: of the narrowest panel, and of the labels left of all panels.
_PANEL, _LEFT = 7.5, 6.0
# Heights in sizes of text: of a panel, as a share of its width and at least and at most.
_RATIO, _LOW, _HIGH = 0.62, 7.5, 15.0
# Least height of a panel in a stack, and of what is around a row of panels.
_LEAST, _AROUND = 6.0, 3.2


@dataclass(frozen=True)
class Sheet:
    """Charts of one figure and their arrangement.

    `stack` charts form a block, one above the other; blocks fill up to `columns` columns, row by
    row. `share` gives all charts one x axis, and with "both" those with the same `y_label` one y
    axis. `heights` are relative: of a block's charts, or of all charts in one column. `size`
    (inches) is that of the style for screens. `caption` follows how values were combined. If
    they `may_spread`, some styles have more columns.
    """

    charts: Sequence[Chart]
    size: tuple[float, float]
    columns: int = 1
    stack: int = 1
    title: str = ""
    caption: str = ""
    legend: Legend = "right"
    share: Literal["", "x", "both"] = "x"
    heights: Sequence[float] = ()
    may_spread: bool = True

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return math.ceil(len(self.charts) / self.stack)

    @property
    def note(self) -> str:
        """How the values of the charts were combined, in one sentence; empty if nothing was."""
        of_method: dict[str, list[str]] = {}
        for chart in self.charts:
            if chart.method:
                quantities = of_method.setdefault(chart.method, [])
                quantities += [] if (name := chart.quantity) in quantities else [name]
        parts = [f"{', '.join(names)}: {method}" for method, names in of_method.items()]
        if len(parts) == 1:
            parts = list(of_method)
        if any(chart.bands for chart in self.charts):
            parts.append("bands: the middle 80 % of the flows, and all")
        if any(len(chart.arrivals) for chart in self.charts):
            parts.append("ticks at the lower edge: starts of flows")
        if self.caption:
            parts.append(self.caption)
        text = "; ".join(parts)
        return f"{text[:1].upper()}{text[1:]}." if text else ""

    def across(self, look: Look, width: float) -> int:
        """Return the number of columns in a figure of this width (inches)."""
        blocks, wanted = self.blocks, self.columns
        if self.may_spread and look.spread and self.columns == 1 and blocks > 2:
            wanted = 2
        elif self.may_spread and look.height is not None and self.stack > 1:
            wanted = max(wanted, -(-blocks // 2))  # a slide has two rows
        most = int((width / look.em - _LEFT) / _PANEL)
        return max(1, min(wanted, blocks, most))

    def parts(self, columns: int) -> list[float]:
        """Return the relative height of each row of panels, the first of them 1."""
        rows = math.ceil(self.blocks / columns) * self.stack
        given = list(self.heights) or [1.0] * self.stack
        if len(given) > self.stack and columns > 1:
            given = [1.0] * self.stack
        return [given[row % len(given)] / given[0] for row in range(rows)]

    def _legends(self, width: float) -> float:
        """Return about the height of the legends, all in sizes of text."""
        of_chart = [
            dict.fromkeys([line.name for line in chart.lines if line.role != "share"]
                          + [band.name for band in chart.bands])
            for chart in self.charts
        ]  # fmt: skip
        if self.legend == "below":
            of_chart = [{name: None for names in of_chart for name in names}]
        rows = 0
        for names in map(list, of_chart):
            if len(names) > 1:
                entry = 0.6 * max(map(len, names)) + 3.7
                rows += math.ceil((len(names) + 1) / max(1, int((width - 1) / entry)))
        return legends.ENTRY * rows

    def natural(self, look: Look) -> tuple[float, float]:
        """Return the width and height (inches) of the figure in a style."""
        if look.width is None:
            return self.size
        if look.height is not None:
            return look.width, look.height
        columns = self.across(look, look.width)
        panel = (look.width / look.em - _LEFT) / columns
        high = min(_HIGH, max(_LOW, _RATIO * panel))
        rows = self.parts(columns)
        inches = look.em * sum(max(_LEAST, high * part) for part in rows)
        around = _AROUND * len(rows) / self.stack + 3.0 + self._legends(look.width / look.em)
        return look.width, inches + look.em * around


class Drawing(Figure):
    """A matplotlib Figure that remembers its charts and its style.

    `is_collapsed` is true if nothing is left for the panels.
    """

    def __init__(self, sheet: Sheet, look: Look, size: tuple[float, float]) -> None:
        super().__init__(figsize=size, layout="constrained")
        FigureCanvasAgg(self)
        self.sheet, self.look = sheet, look
        with rc_context(look.rc()):  # type: ignore[arg-type]
            self._panels()
            self._frame()
            self._lay_out(self.draw_without_rendering)

    def _lay_out(self, arrange: Callable[[], object]) -> None:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            arrange()
        self.is_collapsed = any("collapsed" in str(warning.message) for warning in found)

    def _panels(self) -> None:
        sheet, look = self.sheet, self.look
        across = sheet.across(look, self.get_figwidth())
        parts = sheet.parts(across)
        grid = self.subplots(
            len(parts), across, sharex=bool(sheet.share), squeeze=False, height_ratios=parts
        )
        same: dict[str, Any] = {}
        heats = [chart.heat for chart in sheet.charts if chart.heat is not None]
        norm = painting.norm_of(heats)
        self.place: dict[tuple[int, int], tuple[Any, Chart]] = {}
        for index, chart in enumerate(sheet.charts):
            block, part = divmod(index, sheet.stack)
            row, column = block // across * sheet.stack + part, block % across
            axis = grid[row, column]
            self.place[row, column] = axis, chart
            first = same.setdefault(chart.y_label, axis)
            if sheet.share == "both" and first is not axis:
                axis.sharey(first)
            painting.draw(axis, chart, norm)
            axis.tick_params(labelsize=look.font_pt)
        for row, column in {(r, c) for r in range(len(parts)) for c in range(across)}:
            if (row, column) not in self.place:
                grid[row, column].remove()
        self._labels()
        if norm is not None:
            painting.colour_bar(self, norm, heats[0].name)

    def _labels(self) -> None:
        """Label the axes. A shared x axis is labelled only below the lowest chart of a column."""
        shared = bool(self.sheet.share)
        for (row, column), (axis, chart) in self.place.items():
            below = (row + 1, column) in self.place
            axis.set_title(printable(chart.title), loc="left", parse_math=False)
            if painting.is_lying(chart):
                axis.set_xlabel(plain(chart.y_label))
            else:
                axis.set_ylabel(plain(chart.y_label))
                if not (shared and below):
                    axis.set_xlabel(plain(chart.x_label))
            if shared:
                axis.tick_params(labelbottom=not below)
            left = self.place.get((row, column - 1))
            if left is not None and axis.get_shared_y_axes().joined(axis, left[0]):
                axis.set_ylabel("")
                axis.tick_params(labelleft=False)

    def _frame(self) -> None:
        """Add title, legend and caption, with the panels between them."""
        pad = 0.4 * self.look.em
        high = self.get_figheight()
        top, bottom = pad, pad
        title = self.sheet.title if self.look.words else ""
        if title:
            above = self.text(
                pad / self.get_figwidth(), 1 - top / high, self._wrapped(title, 1.2), va="top",
                ha="left", fontsize=1.2 * self.look.font_pt, parse_math=False,
            )  # fmt: skip
            top += above.get_window_extent().height / self.dpi + pad
        note = self.sheet.note if self.look.words else ""
        if note:
            text = self.text(
                pad / self.get_figwidth(), bottom / high, self._wrapped(note, 0.85), va="bottom",
                ha="left", fontsize=0.85 * self.look.font_pt, color="#444444", parse_math=False,
            )  # fmt: skip
            bottom += text.get_window_extent().height / self.dpi + pad
        if self.sheet.legend == "below":
            bottom += legends.below(self, bottom)
        engine = self.get_layout_engine()
        assert engine is not None
        rect = (0.0, bottom / high, 1.0, max(0.01, 1.0 - (bottom + top) / high))
        engine.set(rect=rect)  # type: ignore[call-arg]
        self._lay_out(lambda: engine.execute(self))  # only the panels' places
        self._wrap_y_labels()
        if self.sheet.legend != "below":
            legends.of_panels(self, self.sheet.legend)

    def _wrapped(self, text: str, scale: float) -> str:
        """Return a text in lines that are as wide as the figure."""
        width = legends.width_of(self, "x" * 50, scale) / 50
        most = int((self.get_figwidth() - 0.8 * self.look.em) / width)
        return "\n".join(textwrap.wrap(printable(text), max(10, most)))

    def _wrap_y_labels(self) -> None:
        """Write the unit of a y label that is longer than its axis in a second line."""
        for axis, chart in self.place.values():
            label = axis.yaxis.label
            if label.get_window_extent().height > axis.bbox.height and " (" in chart.y_label:
                label.set_text(plain(chart.y_label.replace(" (", "\n(")))
