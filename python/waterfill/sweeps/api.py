"""`waterfill.sweep`: run a sweep and return its dataset."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from waterfill.errors import InputError, shown
from waterfill.runs import html
from waterfill.runs.files import WriteError
from waterfill.runs.progress import SweepBar
from waterfill.sweeps import axes, engine, measure, points
from waterfill.sweeps.axes import Axis, Even, Range, Value
from waterfill.sweeps.cluster import Cluster, Place, need, place
from waterfill.sweeps.dataset import Dataset, Type
from waterfill.sweeps.points import Base, Design, Written
from waterfill.sweeps.refine import Boundary, Refinement, Verdict
from waterfill.sweeps.worker import Limits

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

MIN_MEMORY_BYTES = 64_000_000
# Columns before and after the measures.
_HEAD: tuple[tuple[str, Type], ...] = (("key", "string"), ("status", "string"), ("error", "string"))
_TAIL: tuple[tuple[str, Type], ...] = (
    ("wall_s", "double"), ("memory_bytes", "int64"), ("worker", "string"), ("overrides", "string"),
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """A checked sweep: what to run, how, and where to write.

    `span` and `verdict` are those of a search for the boundary of a verdict, else None.
    """

    base: Base
    design: Design
    folder: Path
    extra: Mapping[str, str]
    limits: Limits = field(default_factory=Limits)
    keep: bool = False
    place: Place = field(default_factory=Place)
    span: Range | None = None
    verdict: Verdict | None = None
    tolerance: float = 0.01
    lost_s: float = 60.0

    def columns(self) -> list[tuple[str, Type]]:
        """Return name and type of the dataset's columns, in order."""
        found = self.design.axes()
        if self.span is not None:
            found.append(self.span.axis([self.span.low, self.span.high]))
        mine: list[tuple[str, Type]] = [(one.key, one.kind) for one in found]
        if self.design.seeds:
            mine.append(("seed", "int64"))
        measures = [*measure.COLUMNS, *self.extra]
        return [*_HEAD, *mine, *((name, "double") for name in measures), *_TAIL]

    def numbers(self) -> list[str]:
        """Return the names of the columns that a verdict, a table or a figure can show."""
        return [*measure.COLUMNS, *self.extra, "wall_s", "memory_bytes"]

    def about(self) -> dict[str, Any]:
        """Return what the dataset says of itself."""
        from waterfill._core import version

        found = self.design.axes()
        if self.span is not None:
            found.append(self.span.axis([self.span.low]))
        return {
            "version": version(),
            "scenario": self.base.title or Path(self.base.source).name,
            "backend": self.base.on,
            "sets": list(self.base.sets),
            "axes": {one.key: one.unit for one in found},
            "draw": {
                "latin": self.design.latin, "samples": self.design.samples,
                "seed": self.design.draw_seed,
            },
            "meanings": {
                **{name: meaning for name, (meaning, _) in measure.COLUMNS.items()},
                **{name: path or measure.SERIES_COLUMNS[name] for name, path in self.extra.items()},
            },
        }  # fmt: skip


def plan(
    scenario: Written | str | os.PathLike[str],
    *,
    grid: Mapping[str, Sequence[Value] | str] | Sequence[str] = (),
    ranges: Mapping[str, tuple[float, float] | str] | Sequence[str] = (),
    random: int = 0,
    latin: int = 0,
    draw_seed: int = 1,
    protocols: str | Sequence[str] | None = None,
    seeds: int = 0,
    sets: Iterable[str] = (),
    on: str = "sim",
    columns: Iterable[str] = (),
    refine: str | None = None,
    verdict: str | None = None,
    tolerance: float = 0.01,
    output: str | os.PathLike[str] | None = None,
    keep: bool = False,
    max_time_s: float = 0.0,
    max_memory_bytes: int = 0,
    workers: int | None = None,
    cluster: str | None = None,
    lost_s: float = 60.0,
) -> Plan:
    """Check a sweep and return its plan; arguments as in `sweep`. Raises InputError."""
    _check_types(scenario, seeds, sets, random=random, latin=latin, draw_seed=draw_seed)
    for name, given in (("grid", grid), ("ranges", ranges)):
        if isinstance(given, str) or not isinstance(given, (Mapping, Sequence)):
            why = f'expected {{"KEY": VALUES}} or ["KEY=VALUES"], got {shown(given)}'
            raise InputError("sweep", name, why)
    need("distributed", "sweep")
    base = Base.read(scenario, sets, on)
    if random and latin:
        raise InputError("command line", "latin", "expected --random or --latin, got both")
    for name, count in (("random", random), ("latin", latin), ("seeds", seeds)):
        if not 0 <= count <= points.MAX_POINTS:
            why = f"expected a number from 1 to {points.MAX_POINTS}, got {count}"
            raise InputError("command line", name, why)
    if max_memory_bytes and max_memory_bytes < MIN_MEMORY_BYTES:
        why = f"expected at least {MIN_MEMORY_BYTES / 1e6:g} MB, got {max_memory_bytes / 1e6:g} MB"
        raise InputError("command line", "max-memory", why)
    if max_time_s < 0:
        raise InputError("command line", "max-time", f"expected a time, got {max_time_s:g} s")
    names = _protocols(protocols, on)
    settle = partial(_settled, base, names[:1])
    span = None if refine is None else settle(axes.span(refine))
    drawn = map(settle, _ranges(ranges))
    values = (
        replace(one, span=settle(one.span)).axis() if isinstance(one, Even) else one
        for one in _grid(grid)
    )
    design = Design(
        grid=tuple(values), ranges=tuple(drawn), samples=random or latin, latin=bool(latin),
        draw_seed=draw_seed, protocols=tuple(names),
    )  # fmt: skip
    if span is not None and span.key in {one.key for one in design.axes()}:
        raise InputError("command line", span.key, "expected one axis of this key, got two")
    if (span is None) != (verdict is None):
        lacks, has = ("verdict", "refine") if verdict is None else ("refine", "verdict")
        raise InputError("command line", lacks, f"expected --{lacks} with --{has}, got none")
    extra = measure.check(columns)
    judged = None
    if verdict is not None:
        name = next((n for n in measure.SERIES_COLUMNS if verdict.strip().startswith(n)), "")
        extra |= {n: "" for n in measure.SERIES_COLUMNS if name}
        judged = Verdict.parse(verdict, [*measure.COLUMNS, *extra, "wall_s", "memory_bytes"])
    ends = [] if span is None else [{span.key: span.value(x)} for x in (span.low, span.high)]
    first = points.check(base, design, ends)
    if seeds:
        numbers = tuple(first.seed + i for i in range(seeds))
        design = Design(
            design.grid, design.ranges, design.samples, design.latin, draw_seed, design.protocols,
            seeds=numbers,
        )  # fmt: skip
    folder = Path(f"{base.name}.sweep") if output is None else Path(output)
    found = Plan(
        base, design, folder, extra, Limits(max_time_s, max_memory_bytes), keep,
        place(cluster, workers), span, judged, tolerance, lost_s,
    )  # fmt: skip
    if span is not None:
        Refinement("", design, span, Verdict("", "<", 0.0), tolerance)  # checks the tolerance
    return found


def _check_types(scenario: object, seeds: object, sets: object, **numbers: object) -> None:
    """Raise InputError for what Python's callers give in another type than the command line."""
    if not isinstance(scenario, (str, os.PathLike, Written)):
        message = "expected the path of a scenario file or a waterfill.Scenario"
        raise InputError("sweep", "scenario", f"{message}, got a {type(scenario).__name__}")
    for name, value in {"seeds": seeds, **numbers}.items():
        if isinstance(value, bool) or not isinstance(value, Integral):
            message = f"expected a whole number, got {shown(value)}"
            raise InputError("sweep", name, message)
    if isinstance(sets, (str, Mapping)):
        message = f'expected a list of texts such as ["seed=3"], got {shown(sets)}'
        raise InputError("sweep", "sets", message)


def _protocols(given: str | Sequence[str] | None, on: str) -> list[str]:
    if not given:
        return []
    from waterfill.analysis import compare

    return compare.select(given if isinstance(given, str) else ",".join(given), on)


def _settled(base: Base, protocols: Sequence[str], span: Range) -> Range:
    """Return the range, of whole numbers where its key takes no others."""
    protocol = [f"protocol={name}" for name in protocols]
    for found in (span, replace(span, whole=True)):
        number = found.at(0.381966)
        try:
            base.scenario([*protocol, axes.assignment(span.key, found.value(number))])
        except InputError:
            continue
        return found
    return span  # wrong in both ways: the check of the design says why


def _grid(given: Mapping[str, Sequence[Value] | str] | Sequence[str]) -> list[Axis | Even]:
    if not isinstance(given, Mapping):
        return [axes.grid(text) for text in given]
    return [
        axes.grid(f"{key}={values}") if isinstance(values, str) else axes.axis(key, list(values))
        for key, values in given.items()
    ]


def _ranges(given: Mapping[str, tuple[float, float] | str] | Sequence[str]) -> list[Range]:
    if not isinstance(given, Mapping):
        return [axes.span(text) for text in given]
    texts = {
        key: ends if isinstance(ends, str) else f"{ends[0]}..{ends[1]}"
        for key, ends in given.items()
    }
    return [axes.span(f"{key}={text}") for key, text in texts.items()]


@dataclass(frozen=True)
class Sweep:
    """The points of a sweep that have ended.

    `table` is a pyarrow Table with one row per point, in the design's order; pandas, polars and
    DuckDB take it as it is (`polars.DataFrame(sweep)`, `sweep.to_pandas()`). `points` are the
    Parquet files' pattern, for readers of files. `boundaries` are the answers of a search.
    `unwritten` says why the sweep ended early if its rows could not be written any more.
    """

    plan: Plan
    table: pa.Table
    expected: int
    boundaries: tuple[Boundary, ...] = ()
    interrupted: bool = False
    unwritten: WriteError | None = None

    def __repr__(self) -> str:
        done = f"{self.table.num_rows} of {self.expected} points"
        return f"<Sweep of {self.plan.base.name!r}: {done} in {self.plan.folder}>"

    def _repr_html_(self) -> str:
        """Show the first points in a notebook, without the columns that only a reader needs."""
        hidden = {"key", "wall_s", "memory_bytes", "worker", "overrides"}
        columns = [name for name in self.table.column_names if name not in hidden]
        first = self.table.select(columns).slice(0, html.MAX_ROWS).to_pylist()
        rows = [[row[name] for name in columns] for row in first]
        done = f"{self.plan.base.name}: {self.table.num_rows} of {self.expected} points"
        return html.table(done, columns, rows, self.table.num_rows)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give the rows to readers of Arrow's C stream interface."""
        return self.table.__arrow_c_stream__(requested_schema)

    @property
    def points(self) -> str:
        """The pattern of the Parquet files, which may hold points of earlier sweeps too."""
        return str(self.plan.folder / "points" / "part-*.parquet")

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas DataFrame."""
        return self.table.to_pandas()

    @property
    def failed(self) -> int:
        """The number of points that failed or exceeded a limit."""
        return sum(status != "done" for status in self.table["status"].to_pylist())


def run(checked: Plan, *, retry: bool = False, quiet: bool = False) -> Sweep:
    """Run a plan's points that its directory lacks; see `sweep`."""
    identity = checked.base.identity()
    source: engine.Source
    search: Refinement | None = None
    if checked.span is not None and checked.verdict is not None:
        source = search = Refinement(
            identity, checked.design, checked.span, checked.verdict, checked.tolerance
        )
        expected = search.most()
    else:
        source = engine.Listed(list(points.points(identity, checked.design)))
        expected = checked.design.count
    options = engine.Options(
        columns=checked.extra,
        limits=checked.limits,
        keep=(checked.folder / "runs").absolute() if checked.keep else None,
        lost_s=checked.lost_s,
    )
    dataset = Dataset(
        checked.folder, checked.columns(), identity, checked.about(), checked.base.text
    )
    with dataset:
        if retry:
            dataset.forget(("failed", "timeout", "memory"))
        title = checked.base.name
        with SweepBar(title, expected, at_most=search is not None, quiet=quiet) as bar:
            outcome = engine.run(
                source, checked.base, dataset, lambda: Cluster(checked.place), options, bar
            )
        if outcome.unwritten is None:
            try:
                dataset.flush()
            except WriteError as error:  # the journal has the rows
                outcome.unwritten = error
        table = dataset.table([point.key for point in outcome.points])
    boundaries = () if search is None else tuple(search.boundaries())
    wanted = expected if search is None else len(outcome.points)
    return Sweep(checked, table, wanted, boundaries, outcome.interrupted, outcome.unwritten)


def sweep(
    scenario: Written | str | os.PathLike[str],
    *,
    retry: bool = False,
    quiet: bool = True,
    grid: Mapping[str, Sequence[Value] | str] | Sequence[str] = (),
    ranges: Mapping[str, tuple[float, float] | str] | Sequence[str] = (),
    random: int = 0,
    latin: int = 0,
    draw_seed: int = 1,
    protocols: str | Sequence[str] | None = None,
    seeds: int = 0,
    sets: Iterable[str] = (),
    on: str = "sim",
    columns: Iterable[str] = (),
    refine: str | None = None,
    verdict: str | None = None,
    tolerance: float = 0.01,
    output: str | os.PathLike[str] | None = None,
    keep: bool = False,
    max_time_s: float = 0.0,
    max_memory_bytes: int = 0,
    workers: int | None = None,
    cluster: str | None = None,
    lost_s: float = 60.0,
) -> Sweep:
    """Run a scenario at many points, in parallel; return the dataset of their figures.

    `scenario` is a file or a `waterfill.Scenario`. Files that it names are looked for beside the
    file it came from, else in the current directory, on the workers' hosts too.

    Arguments, all by name, as in `waterfill sweep`: `grid` {key: values}, `ranges` {key: (low,
    high) or "1..100 Mbit/s:log"} with `random` or `latin` (numbers of points), `protocols`,
    `seeds` (a number), `sets` ("KEY=VALUE" for all points), `on` ("sim" or "fluid"), `columns`
    (further ones), `refine` ("KEY=LOW..HIGH") with `verdict` ("stable<0.5") and `tolerance`,
    `output` (directory; default NAME.sweep), `keep` (whole results too), `max_time_s` and
    `max_memory_bytes` per point, `workers` or `cluster`, `lost_s` (to wait for a lost scheduler).

    Points that the directory holds are not run again; those that failed are with `retry`.
    `quiet=False` shows progress on standard error. Raises InputError for wrong input, before
    anything has run, and RunError when the scheduler is lost. A point that fails is a row with
    its `status` and `error`. Ctrl-C ends the sweep; `interrupted` says so.
    """
    checked = plan(
        scenario,
        grid=grid,
        ranges=ranges,
        random=random,
        latin=latin,
        draw_seed=draw_seed,
        protocols=protocols,
        seeds=seeds,
        sets=sets,
        on=on,
        columns=columns,
        refine=refine,
        verdict=verdict,
        tolerance=tolerance,
        output=output,
        keep=keep,
        max_time_s=max_time_s,
        max_memory_bytes=max_memory_bytes,
        workers=workers,
        cluster=cluster,
        lost_s=lost_s,
    )
    return run(checked, retry=retry, quiet=quiet)
