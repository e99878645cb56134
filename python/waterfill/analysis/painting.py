"""Content of one chart, drawn into a matplotlib axis: lines, bands, heat maps, marks and ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import AutoLocator, LogLocator, NullFormatter

from waterfill.analysis import charts
from waterfill.analysis.charts import Band, Chart, Guide, Heat, Line
from waterfill.analysis.looks import COLOURS, GREY, SHARE, printable, style

SHARES = "max-min share"

_MARKERS = "osD^vPX*"
_FREE = (None, None)
_MAP = "cividis"
# A heat map with more cells has no numbers in them; an axis of it has up to so many ticks.
_MAX_CELLS, _MAX_TICKS = 40, 6
# An axis with room for more numbers than this has up to eight.
_LONG = 12
# A logarithmic axis from one value to less than so many times that value has few powers of ten.
_SHORT_LOG = 50.0


def plain(label: str) -> str:
    """Return a label that matplotlib draws as it is."""
    # matplotlib typesets $…$ and hides labels that start with an underscore.
    lines = [printable(line).replace("$", r"\$") for line in label.split("\n")]
    text = "\n".join(lines)
    return f" {text}" if text.startswith("_") else text


def draw(axis: Any, chart: Chart, norm: Any) -> None:
    """Draw the content of a chart, without its title, labels and legend."""
    _guides(axis, [guide for guide in chart.guides if not guide.name])
    for span in chart.spans:
        axis.axvspan(span.low, span.high, color=COLOURS[span.colour], alpha=0.15, label=span.name)
    _shares(axis, [line for line in chart.lines if line.role == "share"], chart)
    bars = [line for line in chart.lines if line.role == "bar"]
    for place, line in enumerate(bars):
        _bars(axis, line, place, len(bars))
    for band in chart.bands:
        _band(axis, chart, band)
    drawn = [line for line in chart.lines if line.role not in ("share", "bar")]
    for place, line in enumerate(drawn):
        (_lying if is_lying(chart) else _line)(axis, line, chart.x_of(line), place)
    if chart.heat is not None:
        _heat(axis, chart.heat, norm)
    for mark in chart.marks:
        label = {"label": plain(mark.name)} if mark.name else {}
        if mark.dot:
            axis.plot([mark.x], [mark.y], "o", color="#000000", markersize=5, **label)
        if mark.text:
            axis.annotate(mark.text, (mark.x, mark.y), xytext=(4, -14),
                          textcoords="offset points", fontsize="small")  # fmt: skip
    _arrivals(axis, chart)
    _guides(axis, [guide for guide in chart.guides if guide.name])
    _axes(axis, chart)


def _guides(axis: Any, guides: Sequence[Guide]) -> None:
    for guide in guides:
        look: dict[str, Any] = {"color": GREY}
        if guide.name:
            look = style(guide.colour) | {"label": plain(guide.name)}
        if guide.x is not None:
            axis.axvline(guide.x, linewidth=_wide(0.6), **look)
        if guide.y is not None:
            axis.axhline(guide.y, linewidth=_wide(0.6), **look)


def _axes(axis: Any, chart: Chart) -> None:
    """Set the scales, limits and ticks of a chart's axes."""
    if is_lying(chart):
        axis.set_ylim(len(chart.ticks) - 0.5, -0.5)
        axis.set_yticks(range(len(chart.ticks)), [plain(text) for text in chart.ticks])
        axis.grid(alpha=0.3, axis="x")
        axis.xaxis.set_major_locator(_Ticks())
        return
    if chart.ticks:
        turned = 45 if len(chart.ticks) > 6 and max(map(len, chart.ticks)) > 4 else 0
        axis.set_xticks(
            range(len(chart.ticks)), [plain(text) for text in chart.ticks], rotation=turned
        )
    if chart.log_x:
        axis.set_xscale("log")
    if len(chart.x_ticks):
        axis.set_xticks(chart.x_ticks, [f"{value:g}" for value in chart.x_ticks])
        axis.minorticks_off()
    if chart.log_y:
        axis.set_yscale("log")
    elif chart.from_zero:
        axis.set_ylim(bottom=0)
    if chart.x_range != _FREE:
        axis.set_xlim(*chart.x_range)
    if chart.y_range != _FREE:
        axis.set_ylim(*chart.y_range)
    if chart.y_range[0] is not None and chart.y_range[1] is None and not chart.log_y:
        # The margin above the lines is relative to the whole axis.
        low, high = axis.get_ylim()
        axis.set_ylim(low, high + 0.04 * (high - low))
    for one, is_numbered in (
        (axis.xaxis, not (chart.log_x or chart.ticks or len(chart.x_ticks) or chart.heat)),
        (axis.yaxis, not (chart.log_y or chart.heat)),
    ):
        if is_numbered:
            one.set_major_locator(_Ticks())
        elif one.get_scale() == "log":
            _log_numbers(one)
    if chart.same_scale:
        axis.set_aspect("equal", adjustable="datalim")
    if chart.heat is None:
        axis.grid(alpha=0.3)


def _log_numbers(axis: Any) -> None:
    """Number a short logarithmic axis at 1, 2 and 5 times powers of ten, a long one at these."""
    low, high = axis.get_view_interval()
    if high < _SHORT_LOG * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(lambda value, _: f"{value:.0f}" if value >= 1 else f"{value:g}")
    axis.set_minor_formatter(NullFormatter())


class _Ticks(AutoLocator):
    """Ticks at round numbers: up to six, or eight on a long axis."""

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Return the ticks for these limits."""
        assert self.axis is not None
        space = self.axis.get_tick_space()
        self.set_params(nbins=max(1, min(space, 7 if space > _LONG else 5)))
        return super().tick_values(vmin, vmax)


def is_lying(chart: Chart) -> bool:
    """Return True if a chart of named points is drawn sideways, so that the names fit."""
    return bool(chart.ticks) and all(line.role in ("points", "sample") for line in chart.lines)


def _line(axis: Any, line: Line, x: Any, place: int) -> None:
    look = style(line.colour) | {"label": plain(line.name) or None}
    # Time series have intervals without a sample; what has a marker at each point has a gap there.
    there = np.isfinite(line.y) | (line.role == "marked")
    x, y = x[there], line.y[there]
    if line.role == "step":
        axis.step(x, y, where="post", **look)
        return
    if line.role == "points":
        axis.scatter(x, y, s=14, color=look["color"], label=look["label"])
    elif line.role == "limit":
        axis.plot(x, y, color=look["color"], linewidth=_wide(3), alpha=0.6, label=look["label"])
    elif line.role == "thin":
        axis.plot(x, y, **(look | {"linewidth": _wide(0.6), "linestyle": ":"}))
    elif line.role == "marked":
        axis.plot(x, y, marker=_MARKERS[place % len(_MARKERS)], markersize=_wide(3), **look)
    else:
        axis.plot(x, y, **look)
    if line.low is not None and line.high is not None:
        low, high = line.low[there], line.high[there]
        axis.fill_between(x, low, high, color=look["color"], alpha=0.2, linewidth=0)


def _lying(axis: Any, line: Line, x: Any, place: int) -> None:
    if line.role == "sample":
        axis.plot(line.y, x, ".", color="#666666", markersize=4, zorder=3)
        return
    reach = None
    if line.low is not None and line.high is not None:
        reach = [line.y - line.low, line.high - line.y]
    axis.errorbar(line.y, x, xerr=reach, fmt="o", markersize=5, capsize=4,
                  color=COLOURS[line.colour % len(COLOURS)])  # fmt: skip


def _shares(axis: Any, lines: Sequence[Line], chart: Chart) -> None:
    for place, line in enumerate(lines):
        label = {} if place else {"label": SHARES}
        x = chart.x_of(line)
        if line.low is not None and line.high is not None:
            axis.fill_between(x, line.low, line.high, color=SHARE, alpha=0.35, linewidth=0)
        axis.plot(x, line.y, color=SHARE, linewidth=_wide(2.2), **label)


def _arrivals(axis: Any, chart: Chart) -> None:
    """Draw a tick at the lower edge for each time at which a flow of a band starts."""
    if len(chart.arrivals):
        axis.plot(chart.arrivals, np.zeros(len(chart.arrivals)), "|", color="#000000",
                  markersize=_wide(6), markeredgewidth=_wide(0.6), clip_on=False, zorder=5,
                  transform=axis.get_xaxis_transform())  # fmt: skip


def _wide(factor: float) -> float:
    """Return a width (pt) relative to that of lines in the current style."""
    return factor * float(rcParams["lines.linewidth"])


def _bars(axis: Any, line: Line, place: int, count: int) -> None:
    width = 0.8 / count
    x = np.arange(len(line.y)) + (place - (count - 1) / 2) * width
    colour = SHARE if line.colour == charts.GREY else COLOURS[line.colour]
    axis.bar(x, line.y, 0.95 * width, color=colour, label=plain(line.name),
             hatch="//" if place else None, edgecolor="white")  # fmt: skip


def _band(axis: Any, chart: Chart, band: Band) -> None:
    """Draw a band: the median of its series, the middle 80 % and the range."""
    label = f"{band.name} (median of {band.count})"
    look = style(band.colour)
    axis.plot(chart.x, band.median, label=plain(label), **look)
    for low, high, alpha in ((band.low, band.high, 0.12), (band.tenth, band.ninetieth, 0.25)):
        axis.fill_between(chart.x, low, high, color=look["color"], alpha=alpha, linewidth=0)


def norm_of(heats: Sequence[Heat]) -> Any:
    """Return the common scale of colours of heat maps, or None without any."""
    if not heats:
        return None
    return Normalize(min(heat.low for heat in heats), max(heat.high for heat in heats))


def colour_bar(made: Figure, norm: Any, label: str) -> None:
    """Draw the scale of colours next to a figure's panels."""
    made.colorbar(ScalarMappable(norm, _MAP), ax=made.axes, label=plain(label))


def _heat(axis: Any, heat: Heat, norm: Any) -> None:
    """Draw a heat map as rectangles of one size. Up to 40 rectangles are labelled with their
    values.
    """
    axis.imshow(heat.values, origin="lower", aspect="auto", cmap=_MAP, norm=norm)
    for set_ticks, texts in ((axis.set_xticks, heat.x), (axis.set_yticks, heat.y)):
        places = range(0, len(texts), -(-len(texts) // _MAX_TICKS))
        set_ticks(places, [texts[place] for place in places])
    if heat.values.size > _MAX_CELLS:
        return
    for (row, column), value in np.ndenumerate(heat.values):
        if math.isfinite(value):
            axis.text(column, row, f"{value:.3g}", ha="center", va="center", fontsize="small",
                      color="white" if norm(value) < 0.55 else "black")  # fmt: skip
