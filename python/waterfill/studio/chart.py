"""Charts as SVG text: lines over axes, named at their ends. Colours are classes of `studio.css`.

The page shows them inline, so they follow its light and dark colours and need no script. `file`
makes one that stands alone. Plotly through marimo would load MathJax from the network.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib import resources
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Series: TypeAlias = NDArray[np.float64]

WIDTH, HEIGHT = 520, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 122, 34, 44
COLOURS = 7
_DASHES = ("", "7 4", "2 3", "9 3 2 3")
_MAX_NAME = 14
_LINE_HEIGHT = 15.0


@dataclass(frozen=True)
class Line:
    """A line: its name (empty: not named), x and y of one shape, and its place in the palette.

    `low` and `high` are the edges of a band around it.
    """

    name: str
    x: Series
    y: Series
    style: int = 0
    low: Series | None = None
    high: Series | None = None


@dataclass(frozen=True)
class Guide:
    """A grey line behind the others, from (x, y) to (x, y): a share, a limit."""

    x: tuple[float, float]
    y: tuple[float, float]


@dataclass(frozen=True)
class Mark:
    """A point with a text beside it."""

    x: float
    y: float
    text: str


@dataclass(frozen=True)
class Chart:
    """A chart: title with unit, x axis with unit, lines, guides with their name, marks.

    Without `x_range` or `y_range` all lines fit; `zero` makes y begin at zero. `same_scale` draws
    a unit of x as long as one of y.
    """

    title: str
    x_label: str
    lines: Sequence[Line]
    guides: Sequence[Guide] = ()
    guide_name: str = ""
    marks: Sequence[Mark] = ()
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    zero: bool = True
    same_scale: bool = False

    @property
    def kind(self) -> str:
        """The title without its unit, which names the interval of means: what is drawn."""
        return self.title.partition(" (")[0]


def on_common_axes(one: Chart, other: Chart) -> tuple[Chart, Chart]:
    """Return two charts over the same quantity with one x range, of the same kind with one y range.

    Charts that keep a scale between x and y stay as they are.
    """
    if one.x_label != other.x_label or one.same_scale or other.same_scale:
        return one, other
    first, second = _Axes(one), _Axes(other)
    x = _union(first.x, second.x)
    if one.kind != other.kind:
        return replace(one, x_range=x), replace(other, x_range=x)
    y = _union(first.y, second.y)
    return replace(one, x_range=x, y_range=y), replace(other, x_range=x, y_range=y)


def _union(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return min(one[0], other[0]), max(one[1], other[1])


class _Axes:
    """Maps values to pixels."""

    def __init__(self, chart: Chart) -> None:
        self.x = chart.x_range or _range([line.x for line in chart.lines], False)
        ys = [line.y for line in chart.lines]
        ys += [np.array(guide.y) for guide in chart.guides]
        ys += [edge for line in chart.lines for edge in (line.low, line.high) if edge is not None]
        self.y = chart.y_range or _range(ys, chart.zero)
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
    """Return about `number` round values from `low` to `high`: steps of 1, 2 or 5 × 10^n."""
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
    """Return the chart as an SVG element, to be put into a page that has `studio.css`."""
    axes = _Axes(chart)
    parts = [*_grid(chart, axes), *_guides(chart, axes)]
    for line in chart.lines:
        parts += _line(line, axes)
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
    title = f'<text class="wf-title" x="{_LEFT - 50}" y="18">{escape(chart.title)}</text>'
    return (
        f'<svg class="wf-chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(_spoken(chart))}">{clip}{title}{"".join(parts)}</svg>'
    )


def _spoken(chart: Chart) -> str:
    """Return what a screen reader says: the title, and where each line ends."""
    ends = [
        f"{line.name} ends at {line.y[-1]:.3g}"
        for line in chart.lines
        if line.name and len(line.y) and math.isfinite(line.y[-1])
    ]
    return f"{chart.title} over {chart.x_label}. " + ", ".join(ends)


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


def _guides(chart: Chart, axes: _Axes) -> list[str]:
    parts = []
    for guide in chart.guides:
        x, y = axes.at(np.array(guide.x), np.array(guide.y))
        path = f"M{x[0]:.1f} {y[0]:.1f}L{x[1]:.1f} {y[1]:.1f}"
        parts.append(f'<path class="wf-guide" clip-path="url(#wf-clip)" d="{path}"/>')
    return parts


def _line(line: Line, axes: _Axes) -> list[str]:
    place = line.style % COLOURS
    parts = []
    if line.low is not None and line.high is not None:
        edge = _points(line.x, line.high, axes) + _points(line.x[::-1], line.low[::-1], axes)
        parts.append(
            f'<polygon class="wf-band wf-f{place}" clip-path="url(#wf-clip)" '
            f'points="{" ".join(edge)}"/>'
        )
    for run in _finite_runs(line.y):
        points = " ".join(_points(line.x[run], line.y[run], axes))
        parts.append(
            f'<polyline class="wf-line wf-s{place}"{_dash(line.style)} '
            f'clip-path="url(#wf-clip)" points="{points}"/>'
        )
    return parts


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
    """Return the stretches without NaN: a line has a gap where there is no value."""
    inside = np.isfinite(y).astype(np.int8)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], inside, [0]])))
    return [slice(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _names(chart: Chart, axes: _Axes) -> list[str]:
    """Return the names beside the ends of their lines, moved apart where they would overlap."""
    wanted: list[tuple[float, str, str]] = []
    for line in chart.lines:
        finite = np.flatnonzero(np.isfinite(line.y))
        if not line.name or not len(finite):
            continue
        _, y = axes.at(0.0, float(line.y[finite[-1]]))
        swatch = f'class="wf-line wf-s{line.style % COLOURS}"{_dash(line.style)}'
        wanted.append((float(y), line.name, swatch))
    if chart.guide_name and chart.guides:
        _, y = axes.at(0.0, chart.guides[-1].y[1])
        wanted.append((float(y) - 1, chart.guide_name, 'class="wf-guide"'))
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
    """Return a name that fits: its end tells flows of a group apart."""
    return name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 6]}…{name[-5:]}"


def _apart(heights: Sequence[float]) -> list[float]:
    """Move sorted heights apart to `_LINE_HEIGHT`, within the chart where they fit."""
    places = [max(_TOP + 4.0, min(HEIGHT - _BOTTOM, y)) for y in heights]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + _LINE_HEIGHT)
    limit = HEIGHT - _BOTTOM + 2.0
    for i in range(len(places) - 1, -1, -1):
        places[i] = min(places[i], limit)
        limit = places[i] - _LINE_HEIGHT
    return places


def style() -> str:
    """Return the stylesheet of charts and page."""
    return (resources.files("waterfill.studio") / "studio.css").read_text(encoding="utf-8")


def file(charts: Sequence[Chart], title: str) -> str:
    """Return charts one below the other as one SVG file that stands alone, with its title."""
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
        f'<text class="wf-title" x="12" y="20">{escape(title)}</text>{"".join(parts)}</svg>'
    )
