"""The charts of a sweep, which show one column over its axes.

One numeric axis gives lines with bands over seeds, two give a heat map, more one heat map for each
of their further values; axes of names (protocols) give lines, or further maps. Drawn points give
points over each numeric axis, a search the boundary over the first one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from waterfill.analysis import draw as drawing
from waterfill.analysis.charts import Chart, Heat, Line, Role, wide
from waterfill.sweeps import table
from waterfill.sweeps.estimates import Estimate
from waterfill.sweeps.table import Group

if TYPE_CHECKING:
    from waterfill.analysis.drawing import Drawing
    from waterfill.sweeps.api import Sweep

_MAX_LINES = 12
_MAX_PANELS = 12
_COLUMNS = 4


@dataclass(frozen=True)
class Varying:
    """The axes that vary: numeric axes, and axes of names. `drawn` is true for random draws."""

    numeric: Sequence[str]
    names: Sequence[str]
    units: Mapping[str, str]
    drawn: bool

    def label(self, key: str) -> str:
        """Return an axis's name with its unit."""
        return f"{key} ({self.units[key]})" if self.units.get(key) else key


def draw(sweep: Sweep, column: str) -> Drawing | None:
    """Return the figure of a column, or None if the column has no values."""
    varying = _varying(sweep)
    title = sweep.plan.base.name
    if sweep.boundaries:
        found = _boundary(sweep, varying)
        title = f"{title}: where {sweep.plan.verdict} changes"
    else:
        path = sweep.plan.extra.get(column, "")
        found = charts(table.groups(sweep, [column]), varying, column, path=path)
    if not found:
        return None
    if len(found) == 1 and found[0].heat is None:
        height = 1.4 + 0.4 * len(found[0].ticks) if found[0].ticks else 4.2
        return drawing.figure([replace(found[0], title=title)], size=(7.5, height))
    columns = min(_columns(found, varying), _COLUMNS)
    rows = -(-len(found) // columns)
    found = [replace(chart, title=chart.title.partition(": ")[2]) for chart in found]
    size = (1.6 + 3.0 * columns, 0.8 + 2.7 * rows)
    share, legend = ("both", "right") if found[0].heat is not None else ("", "below")
    return drawing.figure(
        found, columns=columns, size=size, title=title, share=share, legend=legend,  # type: ignore[arg-type]
    )  # fmt: skip


def _columns(found: Sequence[Chart], varying: Varying) -> int:
    """Return the number of columns of charts, which gives each protocol its own row."""
    if len(varying.numeric) < 3 or varying.drawn:
        return len(found)
    labels = [chart.title.rpartition(varying.numeric[2])[2] for chart in found]
    return len(dict.fromkeys(labels))


def _varying(sweep: Sweep) -> Varying:
    design = sweep.plan.design
    every = design.held() if sweep.boundaries else design.axes()
    axes = [one for one in every if len(set(one.values)) > 1]
    numeric = [one for one in axes if one.kind == "double"]
    return Varying(
        [one.key for one in numeric],
        [one.key for one in axes if one not in numeric],
        {one.key: one.unit for one in axes},
        any(one in sweep.plan.design.drawn for one in numeric),
    )


def charts(
    groups: Iterable[Group], varying: Varying, column: str, key: str = "sweep", path: str = ""
) -> list[Chart]:
    """Return the charts of a dataset column: lines, points or heat maps, depending on the axes.

    `path` is where a column of the user's own comes from; its unit is that of the path.
    """
    groups, varying = _numbered(list(groups), varying)
    column, groups = _scaled(groups, column, path)
    labelled: dict[str, list[Group]] = {}
    for group in groups:
        if column in group.estimates:
            label = ", ".join(str(group.values[name]) for name in varying.names)
            labelled.setdefault(label, []).append(group)
    if not labelled:
        return []
    if not varying.numeric:
        return [_dots(key, column, labelled)]
    if len(varying.numeric) == 1 or varying.drawn:
        return [
            _lines(f"{key}-{i}", column, labelled, varying, over)
            for i, over in enumerate(varying.numeric)
        ]
    return _maps(key, column, labelled, varying)


_COUNTED = re.compile(r"(?P<number>[0-9.]+(?:e[+-]?[0-9]+)?) (?P<unit>[^\W\d]\w*)")


def _numbered(groups: Sequence[Group], varying: Varying) -> tuple[Sequence[Group], Varying]:
    """Make numeric axes of those whose values are texts such as `0.5 bdp`, of one unit each."""
    units = {}
    for key in varying.names:
        found = [_COUNTED.fullmatch(str(group.values[key])) for group in groups]
        if found and all(found) and len({one["unit"] for one in found if one}) == 1:
            units[key] = next(one["unit"] for one in found if one)
    if not units:
        return groups, varying
    given = [
        replace(group, values={
            key: float(str(value).partition(" ")[0]) if key in units else value
            for key, value in group.values.items()
        })
        for group in groups
    ]  # fmt: skip
    numeric = [*varying.numeric, *units]
    names = [key for key in varying.names if key not in units]
    return given, replace(varying, numeric=numeric, names=names, units={**varying.units, **units})


def _scaled(groups: Sequence[Group], column: str, path: str) -> tuple[str, Sequence[Group]]:
    """Return a column's label, and the groups with the column under this name in its unit."""
    name, unit, size = table.units(column, path)
    label = f"{name} ({unit})" if unit else name
    given = []
    for group in groups:
        if (one := group.estimates.get(column)) is not None:
            half = None if one.half is None else one.half / size
            group = replace(group, estimates={label: Estimate(one.mean / size, half, one.seeds)})
            given.append(group)
    return label, given


def _bare(label: str) -> str:
    """Return a column's label without its unit, for titles."""
    return label.partition(" (")[0]


def _note(groups: Iterable[Group], column: str, more: str = "") -> str:
    seeds = max(group.estimates[column].seeds for group in groups)
    spread = f" over {seeds} seeds; bands and bars: 95 % intervals" if seeds > 1 else ", one seed"
    return f"means{spread}{more}"


def _estimates(
    name: str, groups: Sequence[Group], column: str, x: Sequence[float], colour: int, points: bool
) -> Line:
    """Return the line of the groups' means, with confidence intervals for several seeds."""
    found = [group.estimates[column] for group in groups]
    mean = np.array([one.mean for one in found])
    half = np.array([one.half or 0.0 for one in found])
    low, high = (mean - half, mean + half) if half.any() else (None, None)
    if low is not None and (mean >= 0).all():
        low = np.maximum(low, 0.0)  # no rate, queue or share is below zero
    role: Role = "points" if points else "marked"
    return Line(name, mean, colour, role, np.array(x, dtype=np.float64), low, high)


def _dots(key: str, column: str, labelled: Mapping[str, list[Group]]) -> Chart:
    groups = [mine[0] for mine in labelled.values()]
    line = _estimates(column, groups, column, range(len(groups)), 0, points=True)
    ticks = [label or "all" for label in labelled]
    return Chart(
        key, _bare(column), "", column, lines=[line], more=_note(groups, column), ticks=ticks
    )


def _lines(
    key: str, column: str, labelled: Mapping[str, list[Group]], varying: Varying, over: str
) -> Chart:
    lines: list[Line] = []
    for label, groups in list(labelled.items())[:_MAX_LINES]:
        ordered = sorted(groups, key=lambda group: float(group.values[over]))
        x = [float(group.values[over]) for group in ordered]
        name = label or column
        lines.append(_estimates(name, ordered, column, x, len(lines), varying.drawn))
    left = len(labelled) - len(lines)
    more = f"; {left} other lines are in the table" if left > 0 else ""
    every = [group for groups in labelled.values() for group in groups]
    return Chart(
        key, f"{_bare(column)} against {over}", varying.label(over), column, lines=lines,
        more=_note(every, column, more), log_x=wide(float(g.values[over]) for g in every),
    )  # fmt: skip


def _maps(
    key: str, column: str, labelled: Mapping[str, list[Group]], varying: Varying
) -> list[Chart]:
    first, second, *others = varying.numeric
    panels: dict[str, list[Group]] = {}
    for label, groups in labelled.items():
        for group in groups:
            fixed = [
                f"{one} = {group.values[one]:.4g} {varying.units[one]}".strip() for one in others
            ]
            panels.setdefault(", ".join([label, *fixed]).strip(", "), []).append(group)
    means = [group.estimates[column].mean for mine in panels.values() for group in mine]
    found = []
    for place, (label, groups) in enumerate(list(panels.items())[:_MAX_PANELS]):
        x, y = (sorted({float(g.values[axis]) for g in groups}) for axis in (first, second))
        cells = np.full((len(y), len(x)), np.nan)
        for group in groups:
            row, across = y.index(group.values[second]), x.index(group.values[first])
            cells[row, across] = group.estimates[column].mean
        left = len(panels) - _MAX_PANELS
        more = f"; {left} other maps are in the table" if left > 0 else ""
        words = ([table.number(value) for value in x], [table.number(value) for value in y])
        found.append(Chart(
            f"{key}-{place}", ": ".join(part for part in (_bare(column), label) if part),
            varying.label(first), varying.label(second), more=_note(groups, column, more),
            heat=Heat(column, *words, cells, min(means), max(means)),
        ))  # fmt: skip
    return found


def _boundary(sweep: Sweep, varying: Varying) -> list[Chart]:
    """Return the chart of the boundary at which a verdict changes, over the first numeric axis, or
    no chart if none is found.
    """
    span = sweep.plan.design.span
    assert span is not None
    found = [b for b in sweep.boundaries if b.low is not None and b.high is not None]
    if not found:
        return []
    over = varying.numeric[0] if varying.numeric else None
    _, unit = span.measured(span.low)
    places: dict[str, list[tuple[float, float, float]]] = {}
    for one in found:
        named = [value for key, value in one.values.items() if over is None or key != over]
        label = ", ".join(map(_text, named))
        assert one.low is not None
        assert one.high is not None
        (low, high), _ = span.measured(one.low, one.high)
        place = len(places) if over is None else float(one.values[over])
        places.setdefault(label, []).append((place, low, high))
    lines = []
    for colour, (label, spans) in enumerate(places.items()):
        x, lows, highs = np.array(sorted(spans)).T
        middle = (lows + highs) / 2
        lines.append(Line(label or "all", middle, colour, "marked", x, lows, highs))
    y_label = f"{span.key} ({unit})" if unit else span.key
    log_y = wide(end for spans in places.values() for _, *ends in spans for end in ends)
    title = f"{sweep.plan.verdict} changes"
    if over is None:
        return [Chart("boundary", title, "", y_label, lines=lines, log_y=log_y,
                      ticks=[label or "all" for label in places])]  # fmt: skip
    log_x = wide(place for spans in places.values() for place, *_ in spans)
    return [Chart("boundary", title, varying.label(over), y_label, lines=lines, log_x=log_x,
                  log_y=log_y)]  # fmt: skip


def _text(value: Any) -> str:
    return table.number(value) if isinstance(value, float) else str(value)
