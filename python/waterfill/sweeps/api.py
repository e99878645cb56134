"""`waterfill.sweep`: run a sweep and return its dataset."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias

from waterfill.analysis import notebook
from waterfill.analysis.tables import Column, Table
from waterfill.runs.files import WriteError
from waterfill.runs.progress import SweepBar
from waterfill.sweeps import engine
from waterfill.sweeps.dataset import Dataset
from waterfill.sweeps.plan import Plan, SweepSpec, plan
from waterfill.sweeps.points import Written
from waterfill.sweeps.refine import Boundary, Refinement

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

P = ParamSpec("P")
Source: TypeAlias = "Written | str | os.PathLike[str]"


@dataclass(frozen=True)
class Sweep:
    """The finished points of a sweep.

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
        """Return the first points as an HTML table for a notebook, without auxiliary columns."""
        hidden = {"key", "wall_s", "memory_bytes", "worker", "overrides"}
        names = [name for name in self.table.column_names if name not in hidden]
        columns = [Column(name, itemgetter(name), form=".4g") for name in names]
        first = self.table.slice(0, notebook.MAX_ROWS).to_pylist()
        done = f"{self.plan.base.name}: {self.table.num_rows} of {self.expected} points"
        return notebook.table(Table("", done, columns, first), self.table.num_rows)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the rows through Arrow's C stream interface."""
        return self.table.__arrow_c_stream__(requested_schema)

    @property
    def points(self) -> str:
        """Pattern of the Parquet files, which may also hold points of earlier sweeps."""
        return str(self.plan.folder / "points" / "part-*.parquet")

    def to_pandas(self) -> pd.DataFrame:
        """Return the points as a pandas DataFrame, with one row per point."""
        return self.table.to_pandas()

    @property
    def failed(self) -> int:
        """Number of points that failed or exceeded a limit."""
        return sum(status != "done" for status in self.table["status"].to_pylist())


def run(plan: Plan) -> Sweep:
    """Run the points of a plan that are missing from its directory. See `sweep`."""
    spec, source, title = plan.spec, plan.source, plan.base.name
    identity = plan.design.identity
    dataset = Dataset(plan.folder, plan.columns(), identity, plan.about(), plan.base.text)
    with dataset:
        if spec.retry:
            dataset.forget(("failed", "timeout", "memory"))
        with SweepBar(title, source.count, at_most=source.follows, quiet=spec.quiet) as bar:
            outcome = engine.run(plan, dataset, bar)
        if outcome.unwritten is None:
            try:
                dataset.flush()
            except WriteError as error:  # the journal has the rows
                outcome.unwritten = error
        table = dataset.table([point.key for point in outcome.points])
    boundaries: tuple[Boundary, ...] = ()
    wanted = source.count
    if isinstance(source, Refinement):
        boundaries, wanted = tuple(source.boundaries()), len(outcome.points)
    return Sweep(plan, table, wanted, boundaries, outcome.interrupted, outcome.unwritten)


def _keywords_of(
    spec: Callable[P, object],
) -> Callable[[Callable[..., Sweep]], Callable[Concatenate[Source, P], Sweep]]:
    """Return a decorator that gives a function of a scenario the keywords of a class."""

    def give(function: Callable[..., Sweep]) -> Callable[Concatenate[Source, P], Sweep]:
        mine = inspect.signature(function)
        keywords = inspect.signature(spec).parameters.values()
        every = [mine.parameters["scenario"], *keywords]
        function.__signature__ = mine.replace(parameters=every)  # type: ignore[attr-defined]
        return function

    return give


@_keywords_of(SweepSpec)
def sweep(scenario: Source, **given: Any) -> Sweep:
    """Run a scenario at many points in parallel; return the dataset of their results.

    `scenario` is a file or a `waterfill.Scenario`. Files that it names are looked for next to the
    file it came from, else in the current directory, on the workers' hosts too.

    Arguments, all by name, as in `waterfill sweep`: `grid` {key: values}, `ranges` {key: (low,
    high) or "1..100 Mbit/s:log"} with `random` or `latin` (numbers of points), `protocols`,
    `seeds` (a number), `sets` ("KEY=VALUE" for all points), `on` ("sim" or "fluid"), `columns`
    (further ones), `refine` ("KEY=LOW..HIGH") with `verdict` ("stable<0.5") and `tolerance`,
    `output` (directory; default NAME.sweep), `keep` (whole results too), `max_time_s` and
    `max_memory_bytes` per point, `workers` or `cluster`, `lost_s` (to wait for a lost scheduler),
    `laws` (laws in Python by name, which are then protocols).

    Points that the directory holds are not run again; those that failed are with `retry`.
    `quiet=False` shows progress on standard error. Raises InputError for wrong input, before
    anything has run, and RunError when the scheduler is lost. A point that fails is a row with
    its `status` and `error`. Ctrl-C ends the sweep; `interrupted` says so.
    """
    for name in given:
        if name not in SweepSpec.__dataclass_fields__:
            raise TypeError(f"sweep() got an unexpected keyword argument {name!r}")
    return run(plan(scenario, SweepSpec(**given)))
