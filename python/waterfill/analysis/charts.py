"""Charts as data: lines, bands and heat maps, with the text of axes, legends and notes.

What a chart shows is decided here and in the modules that make charts; how it looks is decided by
its renderer: `waterfill.analysis.draw` with matplotlib, `waterfill.report.charts` for the script of
a page, `waterfill.studio.chart` as SVG. Colours are counted: a renderer's palette says which colour
and which dashes the first line has, the second, and so on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from waterfill.analysis.binning import Matrix
from waterfill.analysis.series import Series

Role: TypeAlias = Literal[
    "line", "thin", "share", "step", "points", "marked", "limit", "sample", "bar", "failed"
]
"""Role of a line, which decides the line's style. A `thin` line accompanies another line. A `share`
is a max-min share, grey and in the background. A `step` line is a distribution. A `marked` line has
a marker at each point. A `limit` line is wide and shows a bound. A `sample` shows single values,
small and grey. `failed` has a cross at each point.
"""

Units: TypeAlias = Sequence[tuple[float, str]]
"""Units of one quantity as (size, name), in ascending order."""

COLOURS = 7
"""Number of colours in a palette: blue, red, green, pink, orange, light blue, black (white on
dark).
"""

BLUE, RED, GREEN, PINK, ORANGE, LIGHT_BLUE, BLACK = range(COLOURS)
GREY = -1
"""Colour of a reference, such as max-min shares. Only bars may have this colour."""

# A flow named after a colour has it: "red-blue" in blue would mislead.
_NAMED = {
    "blue": BLUE, "red": RED, "green": GREEN, "pink": PINK, "purple": PINK, "orange": ORANGE,
    "black": BLACK,
}  # fmt: skip

RATES: Units = ((1e3, "kbit/s"), (1e6, "Mbit/s"), (1e9, "Gbit/s"), (1e12, "Tbit/s"))
VOLUMES: Units = ((1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"))
TIMES: Units = ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s"))

# Times of less are not in seconds.
_SHORT_S = 0.1
# An axis whose positive values span more than this is logarithmic.
_WIDE = 20.0


@dataclass(frozen=True)
class Line:
    """One line of a chart: its name, its values (NaN for gaps), its colour index and its role.

    `x` is the chart's where it is None; `low` and `high` are the edges of a band around the values.
    """

    name: str
    y: Series
    colour: int = 0
    role: Role = "line"
    x: Series | None = None
    low: Series | None = None
    high: Series | None = None


@dataclass(frozen=True)
class Band:
    """Summary of many series in each interval: median, middle 80 % and range.

    `min_of` and `max_of` name the series that are lowest and highest in each interval, `count` is
    the number of series.
    """

    name: str
    count: int
    low: Series
    tenth: Series
    median: Series
    ninetieth: Series
    high: Series
    min_of: Sequence[str]
    max_of: Sequence[str]
    colour: int = 0


@dataclass(frozen=True)
class Heat:
    """Heat map: a value for each pair of two quantities, of shape (y, x). NaN means no value.

    `low` and `high` are the ends of the scale of colours.
    """

    name: str
    x: Sequence[str]
    y: Sequence[str]
    values: Matrix
    low: float
    high: float


@dataclass(frozen=True)
class Guide:
    """A straight line across a whole chart, vertical at `x` or horizontal at `y`.

    Grey without a name, else in the palette's `colour`.
    """

    x: float | None = None
    y: float | None = None
    name: str = ""
    colour: int = 0


@dataclass(frozen=True)
class Span:
    """A shaded range of the x axis, such as the range in which a theorem holds."""

    name: str
    low: float
    high: float
    colour: int = GREEN


@dataclass(frozen=True)
class Mark:
    """A point with a name in the legend or a text next to it. A mark without `dot` has only the
    text.
    """

    x: float
    y: float
    name: str = ""
    text: str = ""
    dot: bool = True


@dataclass(frozen=True)
class Chart:
    """One chart as data. `key` identifies it among the charts of its page.

    `method` says how values were combined, such as "means of 0.1 s", `more` what follows it in a
    note. `ticks` are words in place of the numbers 0, 1, 2 … of the x axis,
    `x_ticks` the only numbers on it. `picks` are single
    series behind bands, which a reader can add by name. The ends of a range are None where they
    follow the data; `same_scale` draws a unit of x as long as one of y. `legend` is
    the corner that is free for one inside the chart, such as "upper right". `arrivals` are the
    times at which flows start that are in bands.
    """

    key: str
    title: str
    x_label: str
    y_label: str
    x: Series = field(default_factory=lambda: np.zeros(0))
    lines: Sequence[Line] = ()
    bands: Sequence[Band] = ()
    heat: Heat | None = None
    guides: Sequence[Guide] = ()
    spans: Sequence[Span] = ()
    marks: Sequence[Mark] = ()
    method: str = ""
    more: str = ""
    from_zero: bool = False
    log_x: bool = False
    log_y: bool = False
    x_range: tuple[float | None, float | None] = (None, None)
    y_range: tuple[float | None, float | None] = (None, None)
    same_scale: bool = False
    legend: str = ""
    small: bool = False
    ticks: Sequence[str] = ()
    x_ticks: Sequence[float] | Series = ()
    picks: Mapping[str, Series] = field(default_factory=dict)
    arrivals: Series = field(default_factory=lambda: np.zeros(0))

    @property
    def note(self) -> str:
        """Sentence on the method by which the chart's values were computed; empty if there is
        none.
        """
        text = f"{self.method}{self.more}"
        return f"{text[:1].upper()}{text[1:]}." if text else ""

    @property
    def quantity(self) -> str:
        """What the y axis shows, without its unit."""
        return self.y_label.partition(" (")[0]

    def x_of(self, line: Line) -> Series:
        """Return the x values of one of the chart's lines."""
        return self.x if line.x is None else line.x


def bands_of(
    groups: Mapping[str, Sequence[int]], values: Matrix, names: Sequence[str]
) -> list[Band]:
    """Return a band for each group of rows that has values. `values` has the shape (names,
    intervals).
    """
    found = []
    for colour, (group, rows) in enumerate(groups.items()):
        mine = values[list(rows)]
        there = np.isfinite(mine).any(axis=0)
        if not there.any():
            continue
        quantiles = np.full((5, mine.shape[1]), np.nan)
        quantiles[:, there] = np.nanpercentile(mine[:, there], [0, 10, 50, 90, 100], axis=0)
        filled_low, filled_high = np.nan_to_num(mine, nan=math.inf), np.nan_to_num(mine, nan=-1e300)
        min_of = [names[rows[i]] for i in filled_low.argmin(axis=0)]
        max_of = [names[rows[i]] for i in filled_high.argmax(axis=0)]
        low, tenth, median, ninetieth, high = quantiles
        found.append(
            Band(group, len(rows), low, tenth, median, ninetieth, high, min_of, max_of, colour)
        )
    return found


def colours_of(names: Sequence[str]) -> list[int]:
    """Return the colour index of each line. A line named after a colour has that colour.

    A name counts by its first word, as in "red-blue". Lines of one colour differ in their dashes.
    """
    known = [_NAMED.get(re.split(r"[^a-z]", name.lower(), maxsplit=1)[0]) for name in names]
    if all(place is None for place in known):
        return list(range(len(names)))
    free = [place for place in range(COLOURS) if place not in known] or list(range(COLOURS))
    found: list[int] = []
    unnamed = 0
    for named in known:
        place = free[unnamed % len(free)] if named is None else named
        unnamed += named is None
        while place in found:
            place += COLOURS
        found.append(place)
    return found


def scale(largest: float, units: Units, *, least: float = 1.0) -> tuple[float, str]:
    """Return the largest unit in which the largest value is at least `least`, or the smallest
    unit.
    """
    return next((unit for unit in reversed(units) if largest >= least * unit[0]), units[0])


def time_unit(longest_s: float) -> tuple[float, str]:
    """Return the unit of an axis of time: seconds, or a smaller unit below 0.1 s."""
    return (1.0, "s") if longest_s >= _SHORT_S else scale(longest_s, TIMES)


def wide(values: Iterable[float]) -> bool:
    """Return True if an axis should be logarithmic: all values are positive, over a wide range."""
    there = list(values)
    return min(there) > 0 and max(there) / min(there) > _WIDE


def largest(values: Matrix) -> float:
    """Return the largest finite value, or zero if there is none."""
    there = values[np.isfinite(values)]
    return float(there.max()) if there.size else 0.0
