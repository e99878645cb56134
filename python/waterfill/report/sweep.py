"""Page of a sweep: charts of each figure over the axes, and a table of points."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from waterfill.analysis import tables as model
from waterfill.analysis.tables import NONE, Column, TableCell
from waterfill.errors import InputError
from waterfill.report import checks, tables
from waterfill.report.tables import Table
from waterfill.runs.files import open_regular, why
from waterfill.sweeps import dataset, figure
from waterfill.sweeps.figure import Varying
from waterfill.sweeps.measure import MEANINGS
from waterfill.sweeps.table import DEFAULT, IF_ANY, Group, grouped
from waterfill.sweeps.table import shown as columns_shown

if TYPE_CHECKING:
    import pyarrow as pa

    from waterfill.analysis.charts import Chart
    from waterfill.runs.result import Document

# Numbers that all charts of a page may take; beyond, only the default figures are drawn.
_MAX_NUMBERS = 200_000
_TYPES = {"string", "double", "int64", "bool"}
# Columns of a point that are no figures of it.
_NOT_FIGURES = {"key", "status", "error", "seed", "worker", "overrides"}
_COST = {"wall_s", "memory_bytes"}


class Panel(NamedTuple):
    """Charts of one numeric column of a sweep, with the column's meaning."""

    name: str
    meaning: str
    charts: list[Chart]


def content(folder: Path) -> Document:
    """Return the data of the template `sweep.html.j2` for the sweep in `folder`."""
    about = checks.sweep(folder / dataset.DOCUMENT)
    points = _points(folder, about)
    rows: list[dict[str, Any]] = points.to_pylist()
    kinds = {name: kind for name, kind in about.columns}
    figures = [
        name for name, kind in kinds.items()
        if name not in _NOT_FIGURES and name not in about.axes and kind in ("double", "int64")
        and any(row[name] is not None for row in rows)
    ]  # fmt: skip
    order = {name: place for place, name in enumerate(DEFAULT)}
    own = {name for name in about.meanings if name not in MEANINGS}
    # The user's own columns first: they were asked for.
    figures.sort(key=lambda name: (name in _COST, name not in own, order.get(name, len(order))))
    axes = _axes(about, kinds, rows)
    groups = grouped(rows, [*axes.names, *axes.numeric], figures)
    groups.sort(key=lambda group: [_order(value) for value in group.values.values()])
    if len(groups) * len(figures) > _MAX_NUMBERS:
        figures = [name for name in figures if name in DEFAULT]
    panels = [
        Panel(
            name,
            meaning := about.meanings.get(name, ""),
            figure.charts(groups, axes, name, f"f{place}", "" if name in MEANINGS else meaning),
        )
        for place, name in enumerate(figures)
    ]
    panels = [panel for panel in panels if panel.charts]
    return {
        "title": about.scenario,
        "subtitle": f"Sweep of {len(rows):,} points on {about.backend}",
        "facts": _facts(about, rows, axes),
        "panels": panels,
        "charts": [chart for panel in panels for chart in panel.charts],
        "tables": [_estimates(groups, axes, figures), _listed(rows, axes, figures)],
        "meanings": _meanings(about, figures),
        "sets": shlex.join(about.sets),
        "scenario_toml": _scenario(folder / "scenario.toml"),
    }


def _scenario(path: Path) -> str:
    try:
        with open_regular(path) as file:
            return file.read().decode("utf-8", "replace")
    except OSError as error:
        raise InputError(str(path), "", why(error)) from None


def _points(folder: Path, about: checks.Sweep) -> pa.Table:
    """Return the table of a sweep's points; raise InputError if files are damaged or a column is
    missing.
    """
    import pyarrow as pa

    try:
        table = dataset.read(folder)
    except (OSError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        message = f"not whole Parquet files of one sweep: {reason}"
        raise InputError(str(folder / "points"), "", message) from None
    names = [name for name, _ in about.columns]
    missing = [name for name in names if name not in table.column_names]
    if not table.num_rows:
        raise InputError(str(folder / "points"), "", "no points of a sweep here")
    path = str(folder / dataset.DOCUMENT)
    if missing or any(kind not in _TYPES for _, kind in about.columns):
        raise InputError(path, "columns", "differ from the columns of the points")
    for name in {"status", "overrides", *about.axes} - set(names):
        raise InputError(path, "columns", f"no column {name}")
    return table.select(names)


def _axes(
    about: checks.Sweep, kinds: Mapping[str, str], rows: Sequence[Mapping[str, Any]]
) -> Varying:
    varying = [key for key in about.axes if len({row[key] for row in rows}) > 1]
    numeric = [key for key in varying if kinds[key] in ("double", "int64")]
    drawn = about.draw is not None and bool(about.draw.samples)
    names = [key for key in varying if key not in numeric]
    return Varying(numeric, names, about.axes, drawn)


def _order(value: Any) -> tuple[int, float, str]:
    if isinstance(value, (int, float)):
        return 0, float(value), ""
    return 1, 0.0, str(value)


# --- tables ------------------------------------------------------------------------------------


def _facts(
    about: checks.Sweep, rows: Sequence[Mapping[str, Any]], axes: Varying
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
    return [*found, ("Written by", f"Waterfill {about.version}")]


def _estimates(groups: Sequence[Group], axes: Varying, figures: Sequence[str]) -> Table:
    keys = [*axes.names, *axes.numeric]
    wanted = [name for name in (*DEFAULT, *IF_ANY) if name in figures]
    shown = columns_shown(groups, wanted) or list(figures)[:5]
    columns: list[Column[Group]] = [
        Column(axes.label(key), partial(_place, key), form=".4g") for key in keys
    ]
    columns = columns or [Column("points", lambda _: "all")]
    columns += [Column("points done", _done), *(Column(n, partial(_estimate, n)) for n in shown)]
    note = "Means over the seeds, ± half of the 95 % interval."
    return tables.of(model.Table("means", "Means by combination", columns, groups, note))


def _place(key: str, group: Group) -> Any:
    return group.values[key]


def _done(group: Group) -> TableCell:
    done = group.count - group.failed
    return TableCell(f"{done} of {group.count}", float(done))


def _estimate(name: str, group: Group) -> TableCell:
    found = group.estimates.get(name)
    if found is None:
        return NONE
    spread = "" if found.half is None else f" ± {found.half:.2g}"
    return TableCell(f"{found.mean:.4g}{spread}", found.mean)


def _listed(points: Sequence[Mapping[str, Any]], axes: Varying, figures: Sequence[str]) -> Table:
    keys = [*axes.names, *axes.numeric]
    columns: list[Column[Mapping[str, Any]]] = [
        Column("point", itemgetter("overrides")),
        Column("status", itemgetter("status")),
        *(Column(name, partial(_of, name), form=".4g") for name in figures),
        Column("error", lambda row: row.get("error") or ""),
    ]
    rows = sorted(points, key=lambda row: [_order(row[key]) for key in keys])
    note = "A point's name is what sets it: waterfill run scenario.toml --set … repeats it."
    return tables.of(model.Table("points", "Points", columns, rows, note))


def _of(name: str, row: Mapping[str, Any]) -> Any:
    return row[name]


def _meanings(about: checks.Sweep, figures: Sequence[str]) -> Table:
    columns: list[Column[str]] = [
        Column("figure", str),
        Column("meaning", lambda name: about.meanings.get(name, "")),
    ]
    return tables.of(model.Table("meanings", "What the figures mean", columns, figures))
