"""The figure of a sweep: one column over its axes.

One numeric axis gives lines with bands over seeds, two give a heat map, three one heat map for
each value of the third; axes of names (protocols) give lines, or panels. Drawn points give
scatters, a search the boundary over the first numeric axis. Heat maps use cividis, lines the
colours and styles of `analysis.plots`: both are readable with any colour vision.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from waterfill.analysis import plots
from waterfill.sweeps import table
from waterfill.sweeps.axes import Axis
from waterfill.sweeps.table import Group

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from waterfill.sweeps.api import Sweep

_MAX_PANELS = 12
_MAX_LABELS = 12
_COLUMNS = 4
# An axis whose positive values span more than this is logarithmic.
_WIDE = 20.0
_MAP = "cividis"


def draw(sweep: Sweep, column: str) -> Figure | None:
    """Return the figure of a column; None without a value to draw."""
    if sweep.boundaries:
        return _boundary(sweep)
    groups = [g for g in table.groups(sweep, [column]) if column in g.estimates]
    if not groups:
        return None
    axes = sweep.plan.design.axes()
    numeric = [one for one in axes if one.kind == "double" and len(set(_numbers(one))) > 1]
    names = [one for one in axes if one not in numeric and len(one.values) > 1]
    # What a figure cannot show stays at its first value.
    for one in numeric[3:]:
        groups = [g for g in groups if g.values[one.key] == one.numbers[0]]
    title = sweep.plan.base.name
    fixed = [f"{one.key} = {_text(one.numbers[0], one.unit)}" for one in numeric[3:]]
    title = ", ".join([title, *fixed])
    labelled: dict[str, list[Group]] = {}
    for group in groups:
        label = ", ".join(str(group.values[one.key]) for one in names)
        labelled.setdefault(label, []).append(group)
    labelled = dict(itertools.islice(labelled.items(), _MAX_LABELS))
    if not numeric:
        return _dots(title, labelled, column)
    if len(numeric) == 1:
        return _lines(
            title, labelled, numeric[0], column, drawn=numeric[0] in sweep.plan.design.drawn
        )
    drawn = any(one in sweep.plan.design.drawn for one in numeric[:2])
    return _maps(title, labelled, numeric[:3], column, drawn)


def _numbers(one: Axis) -> list[float]:
    return [float(number) for number in one.numbers]  # type: ignore[arg-type]


def _label(one: Axis) -> str:
    return f"{one.key} ({one.unit})" if one.unit else one.key


def _text(value: Any, unit: str) -> str:
    return f"{table.number(value)} {unit}".strip() if isinstance(value, float) else str(value)


def _wide(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) / min(values) > _WIDE


def _dots(title: str, labelled: dict[str, list[Group]], column: str) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 1.4 + 0.4 * len(labelled)), layout="constrained")
    axis = figure.subplots()
    for (place, groups), style in zip(
        enumerate(labelled.values()), plots.line_styles(), strict=False
    ):
        estimate = groups[0].estimates[column]
        half = estimate.half or 0.0
        axis.errorbar(
            [estimate.mean], [place], xerr=[half], fmt="o", capsize=4, color=style["color"]
        )
    axis.set_yticks(range(len(labelled)), [_plain(label) or "all" for label in labelled])
    axis.invert_yaxis()
    axis.set_xlabel(column)
    axis.grid(alpha=0.3)
    axis.set_title(title, loc="left", parse_math=False)
    return figure


def _plain(label: str) -> str:
    return label.replace("$", r"\$").lstrip("_")


def _lines(
    title: str, labelled: dict[str, list[Group]], over: Axis, column: str, drawn: bool
) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axis = figure.subplots()
    for (label, groups), style in zip(labelled.items(), plots.line_styles(), strict=False):
        groups = sorted(groups, key=lambda group: group.values[over.key])
        x = [group.values[over.key] for group in groups]
        means = [group.estimates[column].mean for group in groups]
        halves = [group.estimates[column].half or 0.0 for group in groups]
        if drawn:
            axis.scatter(x, means, s=14, color=style["color"], label=_plain(label))
            continue
        axis.plot(x, means, marker="o", markersize=3.5, label=_plain(label), **style)
        if any(halves):
            low = [mean - half for mean, half in zip(means, halves, strict=True)]
            high = [mean + half for mean, half in zip(means, halves, strict=True)]
            axis.fill_between(x, low, high, color=style["color"], alpha=0.2, linewidth=0)
    if _wide(_numbers(over)):
        axis.set_xscale("log")
    axis.set_xlabel(_label(over))
    axis.set_ylabel(column)
    axis.grid(alpha=0.3)
    axis.set_title(title, loc="left", parse_math=False)
    if len(labelled) > 1:
        axis.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    return figure


def _maps(
    title: str, labelled: dict[str, list[Group]], over: Sequence[Axis], column: str, drawn: bool
) -> Figure:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    panels: list[tuple[str, list[Group]]] = []
    for label, groups in labelled.items():
        if len(over) < 3 or drawn:
            panels.append((label, groups))
            continue
        for value in sorted(set(_numbers(over[2]))):
            mine = [group for group in groups if group.values[over[2].key] == value]
            named = f"{over[2].key} = {_text(value, over[2].unit)}"
            panels.append((f"{label}\n{named}" if label else named, mine))
    # As many columns as the third axis has values, so that each protocol has its row.
    third = len(set(_numbers(over[2]))) if len(over) == 3 and not drawn else len(panels)
    columns = max(1, min(third, _COLUMNS))
    panels = panels[:_MAX_PANELS]
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(1.6 + 3.0 * columns, 0.8 + 2.7 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    means = [g.estimates[column].mean for _, groups in panels for g in groups]
    norm = Normalize(min(means), max(means))
    for place, axis in enumerate(grid.flat):
        if place >= len(panels):
            axis.set_visible(False)
            continue
        label, groups = panels[place]
        if drawn:
            _scatter(axis, groups, over, column, norm)
        else:
            _heat(axis, groups, over, column, norm)
        axis.set_title(_plain(label), fontsize="medium")
    for axis in grid[-1]:
        axis.set_xlabel(_label(over[0]))
    for axis in grid[:, 0]:
        axis.set_ylabel(_label(over[1]))
    figure.colorbar(ScalarMappable(norm, _MAP), ax=grid, label=column)
    figure.suptitle(title.replace("$", r"\$"), x=0.02, ha="left", fontsize="large")
    return figure


def _scatter(
    axis: Any, groups: Sequence[Group], over: Sequence[Axis], column: str, norm: Any
) -> None:
    axis.scatter(
        [group.values[over[0].key] for group in groups],
        [group.values[over[1].key] for group in groups],
        c=[group.estimates[column].mean for group in groups],
        cmap=_MAP, norm=norm, s=22,
    )  # fmt: skip
    if _wide(_numbers(over[0])):
        axis.set_xscale("log")
    if _wide(_numbers(over[1])):
        axis.set_yscale("log")


def _heat(axis: Any, groups: Sequence[Group], over: Sequence[Axis], column: str, norm: Any) -> None:
    """Draw cells of one size, labelled with their values: grids need not be even."""
    x, y = (sorted(set(_numbers(one))) for one in over[:2])
    cells = [[math.nan] * len(x) for _ in y]
    for group in groups:
        row, place = y.index(group.values[over[1].key]), x.index(group.values[over[0].key])
        cells[row][place] = group.estimates[column].mean
    axis.imshow(cells, origin="lower", aspect="auto", cmap=_MAP, norm=norm)
    _ticks(axis.set_xticks, x)
    _ticks(axis.set_yticks, y)
    if len(x) * len(y) <= 40:
        for row, place in itertools.product(range(len(y)), range(len(x))):
            value = cells[row][place]
            if not math.isnan(value):
                dark = norm(value) < 0.55
                axis.text(place, row, table.number(float(f"{value:.3g}")), ha="center", va="center",
                          fontsize="small", color="white" if dark else "black")  # fmt: skip


def _ticks(set_ticks: Any, values: Sequence[float]) -> None:
    step = -(-len(values) // 6)
    places = range(0, len(values), step)
    set_ticks(places, [table.number(values[place]) for place in places])


def _boundary(sweep: Sweep) -> Figure | None:
    from matplotlib.figure import Figure

    span = sweep.plan.span
    assert span is not None
    found = [b for b in sweep.boundaries if b.low is not None and b.high is not None]
    if not found:
        return None
    axes = sweep.plan.design.axes()
    numeric = [one for one in axes if one.kind == "double" and len(set(_numbers(one))) > 1]
    over = numeric[0] if numeric else None
    along = span.axis([span.low, span.high])
    lines: dict[str, list[tuple[Any, float, float]]] = {}
    for one in found:
        label = ", ".join(
            _text(value, "") for key, value in one.values.items() if over is None or key != over.key
        )
        low, high = (float(x) for x in span.axis([one.low, one.high]).numbers)  # type: ignore[list-item,arg-type]
        place = one.values[over.key] if over is not None else len(lines)
        lines.setdefault(label, []).append((place, low, high))
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axis = figure.subplots()
    for (label, places), style in zip(lines.items(), plots.line_styles(), strict=False):
        places = sorted(places)
        middles = [(low + high) / 2 for _, low, high in places]
        errors = [(high - low) / 2 for _, low, high in places]
        x = [place for place, _, _ in places]
        axis.errorbar(x, middles, errors, marker="o", markersize=3.5, capsize=3,
                      label=_plain(label), **style)  # fmt: skip
    if over is None:
        axis.set_xticks(range(len(lines)), [_plain(label) or "all" for label in lines])
    else:
        axis.set_xlabel(_label(over))
        if _wide(_numbers(over)):
            axis.set_xscale("log")
        if len(lines) > 1:
            axis.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    if _wide([middle for places in lines.values() for _, *ends in places for middle in ends]):
        axis.set_yscale("log")
    axis.set_ylabel(_label(along))
    axis.grid(alpha=0.3)
    axis.set_title(f"{sweep.plan.base.name}: where {sweep.plan.verdict} changes", loc="left",
                   parse_math=False)  # fmt: skip
    return figure
