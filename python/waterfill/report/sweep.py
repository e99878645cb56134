"""What the page of a sweep says: each figure over the axes, and the points."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from waterfill.errors import InputError
from waterfill.report import checks, tables
from waterfill.report.charts import Chart, Heat, Line
from waterfill.report.tables import Cell, Table, number, text
from waterfill.sweeps import dataset
from waterfill.sweeps.table import DEFAULT, Estimate, estimate
from waterfill.sweeps.table import number as short

if TYPE_CHECKING:
    import pyarrow as pa

    from waterfill.runs.result import Document

_MAX_LINES = 12
_MAX_PANELS = 12
# Numbers that all charts of a page may take; beyond, only the default figures are drawn.
_MAX_NUMBERS = 200_000
# An axis whose positive values span more than this is logarithmic.
_WIDE = 20.0
_TYPES = {"string", "double", "int64", "bool"}
# Columns of a point that are no figures of it.
_NOT_FIGURES = {"key", "status", "error", "seed", "worker", "overrides"}
_COST = {"wall_s", "memory_bytes"}


@dataclass(frozen=True)
class _Group:
    """The points that differ in their seeds only: values of the axes, figures over the seeds."""

    values: Mapping[str, Any]
    figures: Mapping[str, Estimate]
    done: int
    count: int


@dataclass(frozen=True)
class _Axes:
    """The axes that vary: with numbers, with names; `drawn` is whether points are by chance."""

    numeric: Sequence[str]
    names: Sequence[str]
    units: Mapping[str, str]
    drawn: bool

    def label(self, key: str) -> str:
        return f"{key} ({self.units[key]})" if self.units.get(key) else key


def content(folder: Path) -> Document:
    """Return what the template `sweep.html.j2` shows of the sweep in `folder`."""
    about = checks.sweep(folder / dataset.DOCUMENT)
    points = _points(folder, about)
    rows: list[dict[str, Any]] = points.to_pylist()
    kinds = {name: kind for name, kind in about["columns"]}
    figures = [
        name for name, kind in kinds.items()
        if name not in _NOT_FIGURES and name not in about["axes"] and kind in ("double", "int64")
        and any(row[name] is not None for row in rows)
    ]  # fmt: skip
    order = {name: place for place, name in enumerate(DEFAULT)}
    figures.sort(key=lambda name: (name in _COST, order.get(name, len(order))))
    axes = _axes(about, kinds, rows)
    groups = _groups(rows, [*axes.names, *axes.numeric], figures)
    if len(groups) * len(figures) > _MAX_NUMBERS:
        figures = [name for name in figures if name in DEFAULT]
    panels = [
        {"name": name, "meaning": about["meanings"].get(name, ""),
         "charts": _charts(place, name, groups, axes)}
        for place, name in enumerate(figures)
    ]  # fmt: skip
    panels = [panel for panel in panels if panel["charts"]]
    scenario = folder / "scenario.toml"
    checks.regular(scenario)
    return {
        "title": about["scenario"],
        "subtitle": f"Sweep of {len(rows):,} points on {about['backend']}",
        "facts": _facts(about, rows, axes),
        "panels": panels,
        "charts": [chart for panel in panels for chart in panel["charts"]],
        "tables": [_estimates(groups, axes, figures), _listed(rows, axes, figures)],
        "meanings": _meanings(about, figures),
        "sets": shlex.join(about["sets"]),
        "scenario_toml": scenario.read_text(encoding="utf-8", errors="replace"),
    }


def _points(folder: Path, about: Document) -> pa.Table:
    """Return the points' table; raise InputError unless it has the document's columns."""
    import pyarrow as pa

    for part in sorted((folder / "points").glob("part-*.parquet")):
        checks.regular(part)
    try:
        table = dataset.read(folder)
    except (OSError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        message = f"expected whole Parquet files of one sweep, got: {reason}"
        raise InputError(str(folder / "points"), "", message) from None
    names = [name for name, _ in about["columns"]]
    missing = [name for name in names if name not in table.column_names]
    if not table.num_rows:
        raise InputError(str(folder / "points"), "", "expected the points of a sweep, got none")
    path = str(folder / dataset.DOCUMENT)
    if missing or any(kind not in _TYPES for _, kind in about["columns"]):
        raise InputError(path, "columns", "expected the columns of the points, got others")
    for name in {"status", "overrides", *about["axes"]} - set(names):
        raise InputError(path, "columns", f"expected a column {name}, got none")
    return table.select(names)


def _axes(about: Document, kinds: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> _Axes:
    varying = [key for key in about["axes"] if len({row[key] for row in rows}) > 1]
    numeric = [key for key in varying if kinds[key] in ("double", "int64")]
    draw = about.get("draw")
    drawn = isinstance(draw, dict) and bool(draw.get("samples"))
    names = [key for key in varying if key not in numeric]
    return _Axes(numeric, names, about["axes"], drawn)


def _groups(
    rows: Iterable[Mapping[str, Any]], keys: Sequence[str], figures: Sequence[str]
) -> list[_Group]:
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    groups = []
    for values in sorted(found, key=lambda values: [_order(value) for value in values]):
        mine = found[values]
        done = [row for row in mine if row["status"] == "done"]
        known = {}
        for name in figures:
            numbers = [float(row[name]) for row in done if row[name] is not None]
            if numbers and all(map(math.isfinite, numbers)):
                known[name] = estimate(numbers)
        groups.append(_Group(dict(zip(keys, values, strict=True)), known, len(done), len(mine)))
    return groups


def _order(value: Any) -> tuple[int, float, str]:
    if isinstance(value, (int, float)):
        return 0, float(value), ""
    return 1, 0.0, str(value)


# --- charts ------------------------------------------------------------------------------------


def _charts(place: int, figure: str, groups: Sequence[_Group], axes: _Axes) -> list[Chart]:
    """Return the charts of a figure: lines, points or heat maps, by what varies."""
    known = [group for group in groups if figure in group.figures]
    if not known:
        return []
    labelled: dict[str, list[_Group]] = {}
    for group in known:
        label = ", ".join(str(group.values[key]) for key in axes.names)
        labelled.setdefault(label, []).append(group)
    key = f"f{place}"
    if not axes.numeric:
        return [_dots(key, figure, labelled)]
    if len(axes.numeric) == 1 or axes.drawn:
        return [
            _lines(f"{key}-{i}", figure, labelled, axes, over)
            for i, over in enumerate(axes.numeric)
        ]
    return _maps(key, figure, labelled, axes)


def _note(groups: Iterable[_Group], figure: str, more: str = "") -> str:
    seeds = max(group.figures[figure].seeds for group in groups)
    spread = f" over {seeds} seeds; bands and bars: 95 % intervals" if seeds > 1 else ", one seed"
    return f"Means{spread}{more}."


def _dots(key: str, figure: str, labelled: Mapping[str, list[_Group]]) -> Chart:
    groups = [mine[0] for mine in labelled.values()]
    found = [group.figures[figure] for group in groups]
    half = np.array([one.half or 0.0 for one in found])
    values = np.array([one.mean for one in found])
    x = np.arange(len(found), dtype=np.float64)
    line = Line(figure, values, kind="points", x=x, half=half)
    ticks = [label or "all" for label in labelled]
    return Chart(key, figure, "", figure, x, [line], note=_note(groups, figure), ticks=ticks)


def _lines(
    key: str, figure: str, labelled: Mapping[str, list[_Group]], axes: _Axes, over: str
) -> Chart:
    lines: list[Line] = []
    for label, groups in list(labelled.items())[:_MAX_LINES]:
        groups = sorted(groups, key=lambda group: float(group.values[over]))
        found = [group.figures[figure] for group in groups]
        half = np.array([one.half or 0.0 for one in found])
        lines.append(
            Line(
                label or figure,
                np.array([one.mean for one in found]),
                len(lines),
                "points" if axes.drawn else "marked",
                x=np.array([float(group.values[over]) for group in groups]),
                half=half if half.any() else None,
            )
        )
    left = len(labelled) - len(lines)
    more = f"; {left} other lines are in the table" if left > 0 else ""
    every = [group for groups in labelled.values() for group in groups]
    return Chart(
        key, f"{figure} against {over}", axes.label(over), figure, np.zeros(0), lines,
        note=_note(every, figure, more), from_zero=False, log_x=_wide(every, over),
    )  # fmt: skip


def _wide(groups: Iterable[_Group], over: str) -> bool:
    values = [float(group.values[over]) for group in groups]
    return min(values) > 0 and max(values) / min(values) > _WIDE


def _maps(key: str, figure: str, labelled: Mapping[str, list[_Group]], axes: _Axes) -> list[Chart]:
    first, second, *others = axes.numeric
    panels: dict[str, list[_Group]] = {}
    for label, groups in labelled.items():
        for group in groups:
            fixed = [f"{one} = {group.values[one]:.4g} {axes.units[one]}".strip() for one in others]
            panels.setdefault(", ".join([label, *fixed]).strip(", "), []).append(group)
    means = [group.figures[figure].mean for mine in panels.values() for group in mine]
    found = []
    for place, (label, groups) in enumerate(list(panels.items())[:_MAX_PANELS]):
        x, y = (sorted({float(g.values[axis]) for g in groups}) for axis in (first, second))
        cells = np.full((len(y), len(x)), np.nan)
        for group in groups:
            row, column = y.index(group.values[second]), x.index(group.values[first])
            cells[row, column] = group.figures[figure].mean
        left = len(panels) - _MAX_PANELS
        more = f"; {left} other maps are in the table" if left > 0 else ""
        found.append(
            Chart(
                f"{key}-{place}", ": ".join(part for part in (figure, label) if part),
                axes.label(first), axes.label(second), np.zeros(0),
                heat=Heat(figure, [short(v) for v in x], [short(v) for v in y], cells, min(means),
                          max(means)),
                note=_note(groups, figure, more),
            )
        )  # fmt: skip
    return found


# --- tables ------------------------------------------------------------------------------------


def _facts(
    about: Document, rows: Sequence[Mapping[str, Any]], axes: _Axes
) -> list[tuple[str, str]]:
    found = [("Points", f"{len(rows):,}")]
    for status in dataset.STATUSES:
        count = sum(row["status"] == status for row in rows)
        if count or status == "done":
            found.append((status.capitalize(), f"{count:,}"))
    for key in [*axes.names, *axes.numeric]:
        values = sorted({row[key] for row in rows}, key=_order)
        if key in axes.numeric:
            unit = axes.units[key]
            span = f"{values[0]:.4g} to {values[-1]:.4g} {unit}".rstrip()
            found.append((key, f"{len(values)} values, {span}"))
        else:
            few = ", ".join(map(str, values[:8])) + (" …" if len(values) > 8 else "")
            found.append((key, few))
    if rows and "seed" in rows[0]:
        found.append(("Seeds", str(len({row["seed"] for row in rows}))))
    return [*found, ("Written by", f"Waterfill {about['version']}")]


def _estimates(groups: Sequence[_Group], axes: _Axes, figures: Sequence[str]) -> Table:
    keys = [*axes.names, *axes.numeric]
    shown = [name for name in DEFAULT if name in figures] or list(figures)[:5]
    rows = []
    for group in groups:
        row = [_value(group.values[key]) for key in keys] or [text("all")]
        row.append(Cell(f"{group.done} of {group.count}", float(group.done)))
        row += [_estimate(group.figures.get(name)) for name in shown]
        rows.append(row)
    columns = [*([axes.label(key) for key in keys] or ["points"]), "points done", *shown]
    note = "Means over the seeds, ± half of the 95 % interval."
    return tables.table("means", "Means by combination", columns, rows, note)


def _estimate(found: Estimate | None) -> Cell:
    if found is None:
        return number(None)
    spread = "" if found.half is None else f" ± {found.half:.2g}"
    return Cell(f"{found.mean:.4g}{spread}", found.mean)


def _listed(points: Sequence[Mapping[str, Any]], axes: _Axes, figures: Sequence[str]) -> Table:
    keys = [*axes.names, *axes.numeric]
    rows = []
    order = sorted(points, key=lambda row: [_order(row[key]) for key in keys])
    for row in order:
        rows.append([
            text(row["overrides"]), text(row["status"]),
            *(number(row[name]) for name in figures), text(row.get("error") or ""),
        ])  # fmt: skip
    columns = ["point", "status", *figures, "error"]
    note = "A point's name is what sets it: `waterfill run scenario.toml --set …` repeats it."
    return tables.table("points", "Points", columns, rows, note.replace("`", ""))


def _value(value: Any) -> Cell:
    return number(float(value)) if isinstance(value, (int, float)) else text(value)


def _meanings(about: Document, figures: Sequence[str]) -> Table:
    rows = [[text(name), text(about["meanings"].get(name, ""))] for name in figures]
    return tables.table("meanings", "What the figures mean", ("figure", "meaning"), rows)
