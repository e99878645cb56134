"""Charts as data: lines and bands over time, distributions, points with intervals, heat maps.

A page's script draws them with plotly. Each chart has its method in `note`, and a table of its
series that stands for it where it cannot be seen.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from waterfill.analysis import plots
from waterfill.analysis.series import Series
from waterfill.report.binning import Matrix
from waterfill.runs.result import Document

# More flows than this are drawn as bands.
MAX_LINES = 24
# Bands overlap: more groups than this are drawn as one.
MAX_BANDS = 6
# Entries of a legend before "and N others".
MAX_LEGEND = 12

_DIGITS = 5


@dataclass(frozen=True)
class Line:
    """One series: its name, its values (NaN: none) and how it is drawn.

    `colour` counts the palette's colours; `kind` is line, share (grey, behind), step or points.
    """

    name: str
    values: Series
    colour: int = 0
    kind: str = "line"
    x: Series | None = None
    half: Series | None = None
    """Half of an interval around each value, drawn as a band."""


@dataclass(frozen=True)
class Band:
    """Many series as their median, the middle 80 % and all; shape of each: (intervals,).

    `least` and `most` name the series that are lowest and highest in each interval.
    """

    name: str
    low: Series
    tenth: Series
    median: Series
    ninetieth: Series
    high: Series
    least: Sequence[str]
    most: Sequence[str]
    colour: int = 0


@dataclass(frozen=True)
class Heat:
    """A value for each pair of two quantities; `values` has the shape (y, x), NaN: none.

    `low` and `high` are the ends of the scale of colours.
    """

    name: str
    x: Sequence[str]
    y: Sequence[str]
    values: Matrix
    low: float
    high: float


@dataclass(frozen=True)
class Chart:
    """One chart of a page; `key` is unique on it."""

    key: str
    title: str
    x_label: str
    y_label: str
    x: Series
    lines: Sequence[Line] = ()
    bands: Sequence[Band] = ()
    heat: Heat | None = None
    note: str = ""
    from_zero: bool = True
    log_x: bool = False
    small: bool = False
    ticks: Sequence[str] = ()
    """Words in place of the numbers 0, 1, 2 … of the x axis."""
    y_max: float | None = None
    picks: Mapping[str, Series] = field(default_factory=dict)
    """Single series behind bands, which a reader can add by name."""

    def payload(self) -> Document:
        """Return what the page's script draws, as plain data."""
        found: Document = {
            "title": self.title,
            "x_label": self.x_label,
            "y_label": self.y_label,
            "x": _regular(self.x),
            "lines": [_line(line) for line in self.lines],
        }
        if self.bands:
            found["bands"] = [_band(band) for band in self.bands]
        if self.heat is not None:
            heat = self.heat
            rows = [rounded(row) for row in heat.values]
            ends = {"low": heat.low, "high": heat.high}
            found["heat"] = {"name": heat.name, "x": heat.x, "y": heat.y, "z": rows, **ends}
        if self.picks:
            found["picks"] = {name: rounded(values) for name, values in self.picks.items()}
        flags = {"from_zero": self.from_zero, "log_x": self.log_x, "small": self.small}
        found |= {name: True for name, value in flags.items() if value}
        if self.ticks:
            found["ticks"] = list(self.ticks)
        if self.y_max is not None:
            found["y_max"] = self.y_max
        return found

    def rows(self) -> list[tuple[str, list[str]]]:
        """Return least, mean, greatest and last value of each series as text, by name."""
        series = [(line.name, line.values) for line in self.lines]
        series += [(f"{band.name}, median", band.median) for band in self.bands]
        if self.heat is not None:
            series += [
                (f"{self.y_label}: {y}", row)
                for y, row in zip(self.heat.y, self.heat.values, strict=True)
            ]
        return [(name, summary(values)) for name, values in series]


def summary(values: Series) -> list[str]:
    """Return least, mean, greatest and last of the values that are there, as text."""
    there = values[np.isfinite(values)]
    if not len(there):
        return ["–"] * 4
    found = (there.min(), there.mean(), there.max(), there[-1])
    return [f"{float(value):.4g}" for value in found]


def bands_of(
    groups: Mapping[str, Sequence[int]], values: Matrix, names: Sequence[str], label: str = ""
) -> list[Band]:
    """Return a band for each group of rows of `values`, shape (names, intervals)."""
    found = []
    for colour, (group, rows) in enumerate(groups.items()):
        mine = values[list(rows)]
        there = np.isfinite(mine).any(axis=0)
        quantiles = np.full((5, mine.shape[1]), np.nan)
        quantiles[:, there] = np.nanpercentile(mine[:, there], [0, 10, 50, 90, 100], axis=0)
        filled_low, filled_high = np.nan_to_num(mine, nan=math.inf), np.nan_to_num(mine, nan=-1e300)
        least = [names[rows[i]] for i in filled_low.argmin(axis=0)]
        most = [names[rows[i]] for i in filled_high.argmax(axis=0)]
        low, tenth, median, ninetieth, high = quantiles
        found.append(Band(group + label, low, tenth, median, ninetieth, high, least, most, colour))
    return found


def colours_of(names: Sequence[str]) -> list[int]:
    """Return the colours and styles of lines, as `analysis.plots.named_styles` chooses them.

    The page's script counts the palette's colours, and goes on with other styles after the last.
    """
    palette = list(dict.fromkeys(s["color"] for s in itertools.islice(plots.line_styles(), 28)))
    found: list[int] = []
    for style in plots.named_styles(names):
        count = palette.index(style["color"])
        while count in found:
            count += len(palette)
        found.append(count)
    return found


def scale(largest: float, units: Iterable[tuple[float, str]]) -> tuple[float, str]:
    """Return the unit, of rising ones, in which the largest value is at least 1."""
    chosen = None
    for size, name in units:
        if chosen is None or largest >= size:
            chosen = (size, name)
    assert chosen is not None
    return chosen


RATES = ((1e3, "kbit/s"), (1e6, "Mbit/s"), (1e9, "Gbit/s"))
VOLUMES = ((1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"))
TIMES = ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s"))


def largest(values: Matrix) -> float:
    """Return the largest finite value; zero without one."""
    there = values[np.isfinite(values)]
    return float(there.max()) if there.size else 0.0


def rounded(values: Iterable[float]) -> list[float | None]:
    """Return numbers with five digits; None for those that are not finite."""
    return [float(f"{v:.{_DIGITS}g}") if math.isfinite(v) else None for v in map(float, values)]


def _line(line: Line) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": line.name, "y": rounded(line.values), "colour": line.colour, "kind": line.kind,
    }  # fmt: skip
    if line.x is not None:
        found["x"] = rounded(line.x)
    if line.half is not None:
        found["half"] = rounded(line.half)
    return found


def _band(band: Band) -> dict[str, Any]:
    known = sorted({*band.least, *band.most})
    place = {name: i for i, name in enumerate(known)}
    parts = {key: rounded(getattr(band, key)) for key in _QUANTILES}
    return {
        "name": band.name, "colour": band.colour, **parts, "names": known,
        "least": [place[name] for name in band.least],
        "most": [place[name] for name in band.most],
    }  # fmt: skip


_QUANTILES = ("low", "tenth", "median", "ninetieth", "high")


def _regular(x: Series) -> Any:
    """Return evenly spaced numbers as first, step and count, others as they are."""
    if len(x) > 2 and np.allclose(np.diff(x), x[1] - x[0], rtol=1e-6, atol=0):
        step = float(x[-1] - x[0]) / (len(x) - 1)
        return {"first": float(f"{x[0]:.9g}"), "step": float(f"{step:.9g}"), "count": len(x)}
    return rounded(x)
