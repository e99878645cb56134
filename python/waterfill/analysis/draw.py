"""Charts drawn with matplotlib and written as PNG, SVG or PDF. Equal input gives equal bytes.

Colours are Okabe and Ito's without yellow, which white paper hides: distinguishable with any colour
vision. Dashes differ too, for black-and-white prints. pyplot is not used: no windows, no global
state. matplotlib is imported when something is drawn.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from waterfill.analysis import charts
from waterfill.analysis.charts import Band, Chart, Guide, Heat, Line
from waterfill.errors import InputError, nearest, shown
from waterfill.runs.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Legend: TypeAlias = Literal["right", "below", "inside"]
"""Position of legends: next to each chart, once below all, or inside each chart."""

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES = ("-", "--", "-.", ":")
_MARKERS = "osD^vPX*"
_FREE = (None, None)
_GREY, _SHARE = "#8A8A8A", "#BBBBBB"
_MAP = "cividis"
# A legend with more entries would be longer than its chart.
_MAX_LEGEND = 14
# A heat map with more cells has no numbers in them; an axis of it has up to so many ticks.
_MAX_CELLS, _MAX_TICKS = 40, 6
# In a chart narrower than this (inches) long titles are cut, and more than six numbers overlap.
_NARROW = 6.0
# The formats that `save` writes, and the sizes (inches) that `resize` accepts.
FORMATS = ("png", "svg", "pdf")
_SIZES = (1.0, 40.0)


# --- styles ------------------------------------------------------------------------------------


def style(place: int) -> dict[str, Any]:
    """Return the colour and dashes of a palette index. Up to 28 indexes look different."""
    turn, colour = divmod(place, len(_COLOURS))
    return {"color": _COLOURS[colour], "linestyle": _DASHES[(colour + turn) % len(_DASHES)]}


def named_styles(names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the colour and dashes of each line. A line named after a colour has that colour."""
    return [style(place) for place in charts.colours_of(names)]


def printable(text: str) -> str:
    """Return a text for a figure, without characters that XML does not allow."""
    return "".join(
        "\ufffd"
        if c < " " or "\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff" or c in "\ufffe\uffff"
        else c
        for c in text
    )


def _plain(label: str) -> str:
    # matplotlib typesets $…$ and hides labels that start with an underscore.
    lines = [printable(line).replace("$", r"\$") for line in label.split("\n")]
    text = "\n".join(lines)
    return f" {text}" if text.startswith("_") else text


# --- figures -----------------------------------------------------------------------------------


def figure(
    found: Sequence[Chart | None],
    *,
    size: tuple[float, float],
    columns: int = 1,
    title: str = "",
    legend: Legend = "right",
    share: Literal["", "x", "both"] = "x",
    heights: Sequence[float] | None = None,
) -> Figure:
    """Draw charts in a grid, row by row. None leaves a position empty.

    `share` gives all charts one x axis, and with "both" those with the same `y_label` one y axis.
    A figure of one column has the charts' x label once. `heights` are the rows' shares.
    """
    from matplotlib.figure import Figure

    rows = -(-len(found) // columns)
    made = Figure(figsize=size, layout="constrained")
    grid = made.subplots(rows, columns, sharex=bool(share), squeeze=False, height_ratios=heights)
    same: dict[str, Any] = {}
    norm = _norm([chart.heat for chart in found if chart is not None and chart.heat is not None])
    for axis, chart in itertools.zip_longest(grid.flat, found):
        if chart is None:
            axis.remove()
            continue
        if share == "both":
            first = same.setdefault(chart.y_label, axis)
            if first is not axis:
                axis.sharey(first)
        _draw(axis, chart, norm)
        narrow = size[0] / columns < _NARROW
        axis.set_title(printable(chart.title), loc="left", parse_math=False,
                       fontsize="medium" if narrow else "large")  # fmt: skip
        if narrow and not (chart.log_x or chart.ticks or len(chart.x_ticks) or chart.heat):
            axis.locator_params(axis="x", nbins=6)
        if legend != "below":
            _legend(axis, legend, chart.legend)
    _labels(grid, found, columns, bool(share))
    if norm is not None:
        heat = next(chart.heat for chart in found if chart is not None and chart.heat is not None)
        _colour_bar(made, norm, heat.name)
    if legend == "below":
        handles, labels = made.axes[0].get_legend_handles_labels()
        longest = max(map(len, labels), default=0)
        made.legend(handles, labels, loc="outside lower center", frameon=False,
                    ncols=max(1, int(size[0] / (0.6 + 0.07 * longest))))  # fmt: skip
    if title:
        made.suptitle(_plain(title), x=0.01, ha="left", fontsize="large")
    return made


def _labels(grid: Any, found: Sequence[Chart | None], columns: int, shared: bool) -> None:
    """Label the axes. A shared x axis is labelled only below the lowest chart of each column."""
    for place, chart in enumerate(found):
        if chart is None:
            continue
        axis = grid.flat[place]
        below = place + columns < len(found) and found[place + columns] is not None
        if _lies(chart):
            axis.set_xlabel(_plain(chart.y_label))
        else:
            axis.set_ylabel(_plain("\n".join(filter(None, (chart.y_label, chart.method)))))
            if not (shared and below):
                axis.set_xlabel(_plain(chart.x_label))
        if shared:
            axis.tick_params(labelbottom=not below)
        if place % columns and found[place - 1] is not None and axis.get_shared_y_axes().joined(
            axis, grid.flat[place - 1]
        ):  # fmt: skip
            axis.set_ylabel("")
            axis.tick_params(labelleft=False)


def _legend(axis: Any, where: Legend, corner: str) -> None:
    handles, labels = axis.get_legend_handles_labels()
    if len(handles) > _MAX_LEGEND:
        from matplotlib.lines import Line2D

        left = len(handles) - _MAX_LEGEND + 1
        labels = [*labels[: _MAX_LEGEND - 1], f"and {left} others"]
        handles = [*handles[: _MAX_LEGEND - 1], Line2D([], [], linestyle="none")]
    if not handles:
        return
    if where == "right":
        axis.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    else:
        axis.legend(handles, labels, loc=corner or "best", frameon=False, fontsize="small")


# --- one chart ---------------------------------------------------------------------------------


def _draw(axis: Any, chart: Chart, norm: Any) -> None:
    """Draw the content of a chart, without its title, labels and legend."""
    _guides(axis, [guide for guide in chart.guides if not guide.name])
    for span in chart.spans:
        axis.axvspan(span.low, span.high, color=_COLOURS[span.colour], alpha=0.15, label=span.name)
    _shares(axis, [line for line in chart.lines if line.role == "share"], chart)
    bars = [line for line in chart.lines if line.role == "bar"]
    for place, line in enumerate(bars):
        _bars(axis, line, place, len(bars))
    for band in chart.bands:
        _band(axis, chart, band)
    drawn = [line for line in chart.lines if line.role not in ("share", "bar")]
    for place, line in enumerate(drawn):
        (_lying if _lies(chart) else _line)(axis, line, chart.x_of(line), place)
    if chart.heat is not None:
        _heat(axis, chart.heat, norm)
    for mark in chart.marks:
        label = {"label": _plain(mark.name)} if mark.name else {}
        if mark.dot:
            axis.plot([mark.x], [mark.y], "o", color="#000000", markersize=5, **label)
        if mark.text:
            axis.annotate(mark.text, (mark.x, mark.y), xytext=(4, -14),
                          textcoords="offset points", fontsize="small")  # fmt: skip
    _guides(axis, [guide for guide in chart.guides if guide.name])
    _axes(axis, chart)


def _guides(axis: Any, guides: Sequence[Guide]) -> None:
    for guide in guides:
        look: dict[str, Any] = {"color": _GREY}
        if guide.name:
            look = style(guide.colour) | {"label": _plain(guide.name)}
        if guide.x is not None:
            axis.axvline(guide.x, linewidth=0.8, **look)
        if guide.y is not None:
            axis.axhline(guide.y, linewidth=0.8, **look)


def _axes(axis: Any, chart: Chart) -> None:
    """Set the scales, limits and ticks of a chart's axes."""
    if _lies(chart):
        axis.set_ylim(len(chart.ticks) - 0.5, -0.5)
        axis.set_yticks(range(len(chart.ticks)), [_plain(text) for text in chart.ticks])
        axis.grid(alpha=0.3, axis="x")
        return
    if chart.ticks:
        turned = 45 if len(chart.ticks) > 6 and max(map(len, chart.ticks)) > 4 else 0
        axis.set_xticks(
            range(len(chart.ticks)), [_plain(text) for text in chart.ticks], rotation=turned
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
    if chart.same_scale:
        axis.set_aspect("equal", adjustable="datalim")
    if chart.heat is None:
        axis.grid(alpha=0.3)


def _lies(chart: Chart) -> bool:
    """Return True if a chart of named points is drawn sideways, so that the names fit."""
    return bool(chart.ticks) and all(line.role in ("points", "sample") for line in chart.lines)


def _line(axis: Any, line: Line, x: Any, place: int) -> None:
    look = style(line.colour) | {"label": _plain(line.name) or None, "linewidth": 1.4}
    # Time series have intervals without a sample; what has a marker at each point has a gap there.
    there = np.isfinite(line.y) | (line.role == "marked")
    x, y = x[there], line.y[there]
    if line.role == "step":
        axis.step(x, y, where="post", **look)
        return
    if line.role == "points":
        axis.scatter(x, y, s=14, color=look["color"], label=look["label"])
    elif line.role == "limit":
        axis.plot(x, y, color=look["color"], linewidth=4, alpha=0.6, label=look["label"])
    elif line.role == "thin":
        axis.plot(x, y, **(look | {"linewidth": 0.8, "linestyle": ":"}))
    elif line.role == "marked":
        axis.plot(x, y, marker=_MARKERS[place % len(_MARKERS)], markersize=4, **look)
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
                  color=_COLOURS[line.colour % len(_COLOURS)])  # fmt: skip


def _shares(axis: Any, lines: Sequence[Line], chart: Chart) -> None:
    for place, line in enumerate(lines):
        label = {} if place else {"label": "max-min share"}
        axis.plot(chart.x_of(line), line.y, color=_SHARE, linewidth=3.0, **label)


def _bars(axis: Any, line: Line, place: int, count: int) -> None:
    width = 0.8 / count
    x = np.arange(len(line.y)) + (place - (count - 1) / 2) * width
    colour = _SHARE if line.colour == charts.GREY else _COLOURS[line.colour]
    axis.bar(x, line.y, 0.95 * width, color=colour, label=_plain(line.name),
             hatch="//" if place else None, edgecolor="white")  # fmt: skip


def _band(axis: Any, chart: Chart, band: Band) -> None:
    """Draw a band: the median of its series, the middle 80 % and the range."""
    label = f"{band.name} (median; bands: 80 % and all of {band.count})"
    look = style(band.colour)
    axis.plot(chart.x, band.median, label=_plain(label), linewidth=1.4, **look)
    for low, high, alpha in ((band.low, band.high, 0.12), (band.tenth, band.ninetieth, 0.25)):
        axis.fill_between(chart.x, low, high, color=look["color"], alpha=alpha, linewidth=0)


def _norm(heats: Sequence[Heat]) -> Any:
    if not heats:
        return None
    from matplotlib.colors import Normalize

    return Normalize(min(heat.low for heat in heats), max(heat.high for heat in heats))


def _colour_bar(made: Figure, norm: Any, label: str) -> None:
    from matplotlib.cm import ScalarMappable

    made.colorbar(ScalarMappable(norm, _MAP), ax=made.axes, label=_plain(label))


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


# --- files -------------------------------------------------------------------------------------


def resize(figure: Figure, size: str) -> None:
    """Set the size of a figure from a text "WIDTHxHEIGHT" in inches, such as "7x3".

    Raises InputError for another text, and for a size out of range or too small for its panels.
    """
    try:
        width, height = (float(side) for side in size.lower().split("x"))
    except ValueError:
        width = height = float("nan")
    low, high = _SIZES
    if not (low <= width <= high and low <= height <= high):
        message = f'must be inches such as "7x4.5", {low:g} to {high:g}, got {shown(size)}'
        raise InputError("command line", "size", message)
    figure.set_size_inches(width, height)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        figure.draw_without_rendering()
    if any("collapsed" in str(warning.message) for warning in found):
        message = f"too small for the figure's panels, got {shown(size)}"
        raise InputError("command line", "size", message)


def save(figure: Figure, stem: Path, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Write a figure to `stem`.png, `stem`.svg and so on atomically; return their paths.

    Raises InputError for an unknown format and when one cannot be written.
    """
    import matplotlib

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
    written = []
    for kind in formats:
        extra = metadata[kind]

        def write(path: Path, kind: str = kind, extra: dict[str, Any] = extra) -> None:
            with matplotlib.rc_context(text):
                figure.savefig(path, format=kind, dpi=150, metadata=extra)

        written.append(write_atomically(stem.with_name(f"{stem.name}.{kind}"), write))
    return written
