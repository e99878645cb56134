"""Charts as SVG text: lines over axes, named at their ends. Colours are classes of `studio.css`.

The page shows them inline, so they follow its light and dark colours and need no script. `file`
makes one that stands alone. Plotly through marimo would load MathJax from the network.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from importlib import resources

import numpy as np

from waterfill.analysis.charts import COLOURS, Band, Chart, Line
from waterfill.analysis.series import Series

WIDTH, HEIGHT = 520, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 122, 34, 44
_DASHES = ("", "7 4", "2 3", "9 3 2 3")
_MAX_NAME = 14
_LINE_HEIGHT = 15.0


def title(chart: Chart) -> str:
    """Return a chart's heading: the y axis's label with the chart's method, or the chart's title
    without a label.
    """
    name, _, unit = chart.y_label.partition(" (")
    if not name:
        return chart.title
    about = ", ".join(filter(None, (unit.removesuffix(")"), chart.method)))
    # The name of a column stays as it is.
    shown = name if "_" in name else name[:1].upper() + name[1:]
    return f"{shown} ({about})" if about else shown


def on_common_axes(one: Chart, other: Chart) -> tuple[Chart, Chart]:
    """Return two charts with a common x range if their x axes agree, and a common y range if they
    show one quantity.

    Charts that keep a scale between x and y stay as they are.
    """
    if one.x_label != other.x_label or one.same_scale or other.same_scale:
        return one, other
    first, second = _Axes(one), _Axes(other)
    x = _union(first.x, second.x)
    if (one.key, one.y_label) != (other.key, other.y_label):
        return replace(one, x_range=x), replace(other, x_range=x)
    y = _union(first.y, second.y)
    return replace(one, x_range=x, y_range=y), replace(other, x_range=x, y_range=y)


def _union(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return min(one[0], other[0]), max(one[1], other[1])


class _Axes:
    """The axes of a chart, which map values to pixels."""

    def __init__(self, chart: Chart) -> None:
        self.x = _within(chart.x_range, [chart.x_of(line) for line in chart.lines], False)
        ys = [line.y for line in chart.lines]
        ys += [edge for line in chart.lines for edge in (line.low, line.high) if edge is not None]
        ys += [edge for band in chart.bands for edge in (band.low, band.high)]
        self.y = _within(chart.y_range, ys, chart.from_zero)
        self.width = float(WIDTH - _LEFT - _RIGHT)
        self.height = float(HEIGHT - _TOP - _BOTTOM)
        if chart.same_scale:
            self._widen()

    def _widen(self) -> None:
        per_px = max((self.x[1] - self.x[0]) / self.width, (self.y[1] - self.y[0]) / self.height)
        for name, pixels in (("x", self.width), ("y", self.height)):
            low, high = getattr(self, name)
            middle, half = (low + high) / 2, per_px * pixels / 2
            setattr(self, name, (middle - half, middle + half))

    def at(self, x: Series | float, y: Series | float) -> tuple[Series, Series]:
        across = (np.asarray(x, dtype=np.float64) - self.x[0]) / (self.x[1] - self.x[0])
        up = (np.asarray(y, dtype=np.float64) - self.y[0]) / (self.y[1] - self.y[0])
        return _LEFT + across * self.width, _TOP + (1 - up) * self.height


def _within(
    ends: tuple[float | None, float | None], values: Sequence[Series], zero: bool
) -> tuple[float, float]:
    """Return the limits of an axis: the given ones, or limits around all values."""
    low, high = _range(values, zero)
    return (low if ends[0] is None else ends[0], high if ends[1] is None else ends[1])


def _range(values: Sequence[Series], zero: bool) -> tuple[float, float]:
    finite = [v[np.isfinite(v)] for v in values]
    kept = np.concatenate(finite) if finite else np.zeros(0)
    if not len(kept):
        return 0.0, 1.0
    low, high = float(kept.min()), float(kept.max())
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    gap = high - low or abs(high) or 1.0
    below = 0.0 if zero and low == 0 else 0.06 * gap
    return low - below, high + 0.06 * gap


def ticks(low: float, high: float, number: int = 5) -> list[float]:
    """Return about `number` round values from `low` to `high`, in steps of 1, 2 or 5 × 10^n."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low]
    raw = span / number
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(m for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def _label(value: float, step: float) -> str:
    digits = max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0 else 0
    text = f"{value:.{min(digits, 6)}f}" if abs(value) < 1e5 else f"{value:g}"
    return text.replace("-", "−")


def render(chart: Chart) -> str:
    """Return the chart as an SVG element for a page that uses `studio.css`."""
    axes = _Axes(chart)
    parts = _grid(chart, axes)
    for line in chart.lines:
        parts += _line(line, chart.x_of(line), axes)
    for band in chart.bands:
        parts += _band(chart.x, band, axes)
    for mark in chart.marks:
        (x,), (y,) = (np.atleast_1d(v) for v in axes.at(mark.x, mark.y))
        if _LEFT <= x <= WIDTH - _RIGHT and _TOP <= y <= HEIGHT - _BOTTOM:
            parts.append(f'<circle class="wf-mark" cx="{x:.1f}" cy="{y:.1f}" r="4"/>')
            parts.append(f'<text x="{x + 7:.1f}" y="{y - 7:.1f}">{escape(mark.text)}</text>')
    parts += _names(chart, axes)
    clip = (
        f'<defs><clipPath id="wf-clip"><rect x="{_LEFT}" y="{_TOP - 2}" width="{axes.width:g}" '
        f'height="{axes.height + 4:g}"/></clipPath></defs>'
    )
    head = f'<text class="wf-title" x="{_LEFT - 50}" y="18">{escape(title(chart))}</text>'
    return (
        f'<svg class="wf-chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(_spoken(chart))}">{clip}{head}{"".join(parts)}</svg>'
    )


def _series(chart: Chart) -> list[tuple[str, int, Series]]:
    """Return the name, palette index and values of each line and of each band's median."""
    found = [(line.name, line.colour, line.y) for line in chart.lines if line.role != "share"]
    return found + [
        (f"{band.name} (×{band.count})", band.colour, band.median) for band in chart.bands
    ]


def _spoken(chart: Chart) -> str:
    """Return the chart's text for screen readers: its title and the last value of each line."""
    ends = [
        f"{name} ends at {y[-1]:.3g}"
        for name, _, y in _series(chart)
        if name and len(y) and math.isfinite(y[-1])
    ]
    return f"{title(chart)} over {chart.x_label}. " + ", ".join(ends)


def _grid(chart: Chart, axes: _Axes) -> list[str]:
    right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    parts = []
    down = ticks(*axes.y)
    for value in down:
        _, y = axes.at(axes.x[0], value)
        step = down[1] - down[0] if len(down) > 1 else 1.0
        kind = "wf-axis" if value == 0 else "wf-grid"
        parts.append(f'<path class="{kind}" d="M{_LEFT} {y:.1f}H{right}"/>')
        parts.append(
            f'<text class="wf-tick" text-anchor="end" x="{_LEFT - 7}" y="{y + 4:.1f}">'
            f"{_label(value, step)}</text>"
        )
    across = ticks(*axes.x, 6)
    for value in across:
        x, _ = axes.at(value, axes.y[0])
        step = across[1] - across[0] if len(across) > 1 else 1.0
        parts.append(f'<path class="wf-grid" d="M{x:.1f} {_TOP}V{bottom}"/>')
        parts.append(
            f'<text class="wf-tick" text-anchor="middle" x="{x:.1f}" y="{bottom + 16}">'
            f"{_label(value, step)}</text>"
        )
    parts.append(
        f'<text class="wf-tick" text-anchor="middle" x="{(_LEFT + right) / 2:.0f}" '
        f'y="{HEIGHT - 8}">{escape(chart.x_label)}</text>'
    )
    return parts


def _line(line: Line, x: Series, axes: _Axes) -> list[str]:
    if line.role == "share":
        look = 'class="wf-guide"'
    else:
        look = f'class="wf-line wf-s{line.colour % COLOURS}"{_dash(line.colour)}'
    parts = []
    if line.low is not None and line.high is not None:
        parts += _shade(x, line.low, line.high, line.colour, axes)
    for run in _finite_runs(line.y):
        points = " ".join(_points(x[run], line.y[run], axes))
        parts.append(f'<polyline {look} clip-path="url(#wf-clip)" points="{points}"/>')
    return parts


def _band(x: Series, band: Band, axes: _Axes) -> list[str]:
    parts = _shade(x, band.low, band.high, band.colour, axes)
    parts += _shade(x, band.tenth, band.ninetieth, band.colour, axes)
    return parts + _line(Line(band.name, band.median, band.colour), x, axes)


def _shade(x: Series, low: Series, high: Series, colour: int, axes: _Axes) -> list[str]:
    there = np.isfinite(low)
    x, low, high = x[there], low[there], high[there]
    edge = " ".join(_points(x, high, axes) + _points(x[::-1], low[::-1], axes))
    look = f'class="wf-band wf-f{colour % COLOURS}"'
    return [f'<polygon {look} clip-path="url(#wf-clip)" points="{edge}"/>']


def _dash(style: int) -> str:
    turn, place = divmod(style, COLOURS)
    dash = _DASHES[(place + turn) % len(_DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _points(x: Series, y: Series, axes: _Axes) -> list[str]:
    across, down = axes.at(x, y)
    # Far outside the axes a renderer's arithmetic would overflow.
    down = np.clip(down, -1e4, 1e4)
    return [f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True)]


def _finite_runs(y: Series) -> list[slice]:
    """Return the slices of consecutive numbers in a series. A line has gaps where the series has
    NaN.
    """
    inside = np.isfinite(y).astype(np.int8)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], inside, [0]])))
    return [slice(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _names(chart: Chart, axes: _Axes) -> list[str]:
    """Return the labels at the ends of the lines, moved apart where they would overlap."""
    wanted: list[tuple[float, str, str]] = []
    for name, colour, y in _series(chart):
        finite = np.flatnonzero(np.isfinite(y))
        if name and len(finite):
            _, height = axes.at(0.0, float(y[finite[-1]]))
            swatch = f'class="wf-line wf-s{colour % COLOURS}"{_dash(colour)}'
            wanted.append((float(height), name, swatch))
    shares = [line.y[np.isfinite(line.y)] for line in chart.lines if line.role == "share"]
    if shares:
        _, height = axes.at(0.0, float(shares[0][-1]))
        wanted.append((float(height) - 1, "max-min", 'class="wf-guide"'))
    wanted.sort()
    places = _apart([y for y, _, _ in wanted])
    x = WIDTH - _RIGHT + 6
    parts = []
    for place, (_, name, swatch) in zip(places, wanted, strict=True):
        parts.append(f'<path {swatch} d="M{x} {place:.1f}h14"/>')
        parts.append(f'<text x="{x + 18}" y="{place + 4:.1f}">{escape(_short(name))}')
        parts.append(f"<title>{escape(name)}</title></text>")
    return parts


def _short(name: str) -> str:
    """Return a name, shortened if it is long. The end is kept because it distinguishes a group's
    flows.
    """
    return name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 6]}…{name[-5:]}"


def _apart(heights: Sequence[float]) -> list[float]:
    """Return sorted label heights spread at least `_LINE_HEIGHT` apart, within the chart if they
    fit.
    """
    places = [max(_TOP + 4.0, min(HEIGHT - _BOTTOM, y)) for y in heights]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + _LINE_HEIGHT)
    limit = HEIGHT - _BOTTOM + 2.0
    for i in range(len(places) - 1, -1, -1):
        places[i] = min(places[i], limit)
        limit = places[i] - _LINE_HEIGHT
    return places


def style() -> str:
    """Return the stylesheet of the charts and the page."""
    return (resources.files("waterfill.studio") / "studio.css").read_text(encoding="utf-8")


def file(charts: Sequence[Chart], heading: str) -> str:
    """Return charts, one below the other, as one standalone SVG file with a heading."""
    head = 30
    parts = [
        f'<svg x="0" y="{head + i * HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        + render(chart)[len("<svg") :]
        for i, chart in enumerate(charts)
    ]
    height = head + HEIGHT * len(charts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" class="wf-file"><style>{style()}</style>'
        f'<rect width="100%" height="100%" class="wf-paper"/>'
        f'<text class="wf-title" x="12" y="20">{escape(heading)}</text>{"".join(parts)}</svg>'
    )
