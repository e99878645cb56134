"""Charts as plain data for a page's script, which draws them with plotly.

A table of its series stands for a chart where it cannot be seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from waterfill.analysis.charts import Band, Chart, Heat, Line
from waterfill.analysis.series import Series
from waterfill.runs.result import Document

# Entries of a legend before "and N others".
MAX_LEGEND = 12

_DIGITS = 5
_QUANTILES = ("low", "tenth", "median", "ninetieth", "high")


def payload(chart: Chart) -> Document:
    """Return the data that the page's script needs to draw a chart."""
    found: Document = {
        "title": chart.title,
        "x_label": chart.x_label,
        "y_label": chart.y_label,
        "x": _regular(chart.x),
        "lines": [_line(line) for line in chart.lines],
    }
    more = {
        "bands": [_band(band) for band in chart.bands],
        "heat": None if chart.heat is None else _heat(chart.heat),
        "picks": {name: rounded(values) for name, values in chart.picks.items()},
        **{flag: getattr(chart, flag) for flag in ("from_zero", "log_x", "log_y", "small")},
        "ticks": list(chart.ticks),
        "y_max": chart.y_range[1],
    }
    return found | {key: value for key, value in more.items() if value}


def _heat(heat: Heat) -> Document:
    rows = [rounded(row) for row in heat.values]
    ends = {"low": heat.low, "high": heat.high}
    return {"name": heat.name, "x": heat.x, "y": heat.y, "z": rows, **ends}


def numbers(chart: Chart) -> list[tuple[str, list[str]]]:
    """Return the min, mean, max and last value of each series in a chart as text, by name."""
    series = [(line.name, line.y) for line in chart.lines]
    series += [(f"{_name(band)}, median", band.median) for band in chart.bands]
    if chart.heat is not None:
        series += [
            (f"{chart.y_label}: {y}", row)
            for y, row in zip(chart.heat.y, chart.heat.values, strict=True)
        ]
    return [(name, _summary(values)) for name, values in series]


def rounded(values: Iterable[float]) -> list[float | None]:
    """Return numbers rounded to five digits. Numbers that are not finite become None."""
    return [float(f"{v:.{_DIGITS}g}") if math.isfinite(v) else None for v in map(float, values)]


def _summary(values: Series) -> list[str]:
    there = values[np.isfinite(values)]
    if not len(there):
        return ["–"] * 4
    found = (there.min(), there.mean(), there.max(), there[-1])
    return [f"{float(value):.4g}" for value in found]


def _line(line: Line) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": line.name, "y": rounded(line.y), "colour": line.colour, "kind": line.role,
    }  # fmt: skip
    if line.x is not None:
        found |= {"x": rounded(line.x)}
    if line.low is not None and line.high is not None:
        found |= {"low": rounded(line.low), "high": rounded(line.high)}
    return found


def _name(band: Band) -> str:
    return f"{band.name} ({band.count} flows)"


def _band(band: Band) -> dict[str, Any]:
    known = sorted({*band.min_of, *band.max_of})
    place = {name: i for i, name in enumerate(known)}
    parts = {key: rounded(getattr(band, key)) for key in _QUANTILES}
    return {
        "name": _name(band), "colour": band.colour, **parts, "names": known,
        "min_of": [place[name] for name in band.min_of],
        "max_of": [place[name] for name in band.max_of],
    }  # fmt: skip


def _regular(x: Series) -> Any:
    """Return evenly spaced numbers as first value, step and count, and any other numbers
    rounded.
    """
    if len(x) > 2 and np.allclose(np.diff(x), x[1] - x[0], rtol=1e-6, atol=0):
        step = float(x[-1] - x[0]) / (len(x) - 1)
        return {"first": float(f"{x[0]:.9g}"), "step": float(f"{step:.9g}"), "count": len(x)}
    return rounded(x)
