"""Page of a comparison: one table, the runs side by side, and each run in a tab."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from waterfill.analysis import compare, run_charts
from waterfill.analysis import tables as model
from waterfill.analysis.run_charts import PAGE, RunCharts
from waterfill.report import checks, run, tables, topology
from waterfill.report.tables import Table
from waterfill.scenario.loading import from_toml

if TYPE_CHECKING:
    from waterfill.analysis.charts import Chart
    from waterfill.analysis.compare import Comparison
    from waterfill.runs.result import Document


class Panel(NamedTuple):
    """One run of the comparison, in a separate tab."""

    name: str
    facts: list[tuple[str, str]]
    charts: list[Chart]
    tables: list[Table]
    picture: topology.Picture | None


def content(folder: Path) -> Document:
    """Return the data of the template `comparison.html.j2` for the comparison in `folder`."""
    document = checks.comparison(folder / compare.DOCUMENT)
    for name in document.runs:
        checks.run(folder / name)
    comparison = compare.load_comparison(folder)
    first = next(iter(comparison.results.values()))
    scenario = from_toml(first.scenario_toml, str(folder / next(iter(comparison.results))))
    link, panels = comparison.bottleneck, []
    details = {
        name: RunCharts(
            result,
            PAGE,
            f"d{place}-",
            max_picked_numbers=run.MAX_PICKED_NUMBERS // len(comparison.results),
        )
        for place, (name, result) in enumerate(comparison.results.items())
    }
    for name, detail in details.items():
        result = detail.result
        detail.allocation = comparison.allocations[name]
        tabled = run.result_tables(result, detail.prefix)
        picture = topology.picture(scenario, result.summary.links)
        panels.append(Panel(name, run.facts(result), detail.all(), tabled, picture))
    multiples = run_charts.side_by_side(details, link)
    sized = {n: r for n, r in comparison.results.items() if r.network.has_transfers}
    moved = {name: result.transfers for name, result in sized.items()}
    overall = run_charts.distributions(moved, "all-")
    names = ",".join(comparison.results)
    protocols = f" --protocols {shlex.quote(names)}" if "@" not in names else ""
    seeds = document.seeds or []
    more = f" --seeds {len(seeds)}" if len(seeds) > 1 else ""
    path = run.scenario_path(folder, f"{next(iter(comparison.results))}/")
    command = f"waterfill compare {shlex.quote(path)}{protocols}{more}"
    smalls = [chart for charts in multiples.values() for chart in charts]
    return {
        "title": first.summary.scenario,
        "subtitle": f"Comparison of {len(comparison.results)} runs",
        "bottleneck": link,
        "table": overview(comparison),
        "over_seeds": _over_seeds(document),
        "multiples": multiples.items(),
        "overall": overall,
        "panels": panels,
        "charts": [*smalls, *overall, *(chart for panel in panels for chart in panel.charts)],
        **run.configuration(scenario, first, command),
    }


def overview(comparison: Comparison) -> Table:
    """Return the table of all runs in a comparison, with one row per run."""
    sized = any(result.network.has_transfers for result in comparison.results.values())
    runs = comparison.document().runs
    rows = [(name, run.compare) for name, run in runs.items()]
    note = (
        f"Queues and utilization are those of {comparison.bottleneck}, {model.chosen(runs)}; drops "
        "are of all links. Rates are compared with exact max-min shares."
    )
    note = " ".join([note, *model.names(comparison.results)])
    costs = [model.of_run(column) for column in model.LIMITS]
    columns = [*model.runs(runs.values()), *costs, *(model.MOVED if sized else ())]
    return tables.of(model.Table("runs", "All runs", columns, rows, note))


def _over_seeds(document: checks.Comparison) -> Table | None:
    runs, count = document.over_seeds, len(document.seeds or ())
    if not runs:
        return None
    note = f"Means over {count} seeds, with 95 % intervals."
    if not document.differences_over_seeds and model.all_same(runs):
        note = f"All {count} seeds give the same result."
    return tables.of(model.over_seeds(runs, note))
