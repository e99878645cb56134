"""What the page of a comparison says: one table, the runs side by side, then each in a tab."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from waterfill.analysis import compare, run_charts
from waterfill.analysis.run_charts import PAGE, RunCharts
from waterfill.report import checks, run, tables, topology
from waterfill.report.tables import Cell, Table, count, number, text
from waterfill.runs import files
from waterfill.scenario.loading import from_toml

if TYPE_CHECKING:
    from waterfill.analysis.compare import Comparison
    from waterfill.runs.result import Document

# Quantities over seeds: key, title, unit.
_OVER_SEEDS = (
    ("utilization", "utilization (%)", 0.01),
    ("queue_bytes.mean", "mean queue (kB)", 1e3),
    ("jain_index", "Jain's index", 1.0),
    ("share_ratio.worst", "smallest rate / share", 1.0),
    ("settling_s.worst", "settling, slowest flow (s)", 1.0),
    ("slowdown.p99", "slowdown p99", 1.0),
)


def content(folder: Path) -> Document:
    """Return what the template `comparison.html.j2` shows of the comparison in `folder`."""
    document = checks.comparison(folder / compare.DOCUMENT)
    for name in document["runs"]:
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
        panels.append({
            "name": name, "facts": run.facts(result), "charts": detail.all(),
            "tables": run.result_tables(result, detail.prefix),
            "picture": topology.picture(scenario, result.summary["links"]),
        })  # fmt: skip
    multiples = run_charts.side_by_side(details, link)
    sized = {n: r for n, r in comparison.results.items() if r.network.has_transfers}
    moved = {name: result.transfers for name, result in sized.items()}
    overall = run_charts.distributions(moved, "all-")
    names = ",".join(comparison.results)
    protocols = f" --protocols {shlex.quote(names)}" if "@" not in names else ""
    seeds = document.get("seeds", [])
    more = f" --seeds {len(seeds)}" if len(seeds) > 1 else ""
    first_folder = (
        f"{files.readable(folder.resolve().name)}/{next(iter(comparison.results))}/scenario.toml"
    )
    command = f"waterfill compare {shlex.quote(first_folder)}{protocols}{more}"
    smalls = [chart for charts in multiples.values() for chart in charts]
    return {
        "title": first.summary["scenario"],
        "subtitle": f"Comparison of {len(comparison.results)} runs",
        "bottleneck": link,
        "table": overview(comparison),
        "over_seeds": _over_seeds(document),
        "multiples": multiples.items(),
        "overall": overall,
        "panels": panels,
        "charts": [*smalls, *overall, *(chart for panel in panels for chart in panel["charts"])],
        **run.configuration(scenario, first, command),
    }


def overview(comparison: Comparison) -> Table:
    """Return the table of all runs: a row each."""
    columns = ["run", "utilization (%)", "queue mean (kB)", "queue p99 (kB)", "queue max (kB)",
               "drops", "Jain's index", "smallest rate / share", "largest rate / share",
               "settling, slowest (s)", "start-up, median (s)"]  # fmt: skip
    sized = any(result.network.has_transfers for result in comparison.results.values())
    if sized:
        columns += ["completed", "slowdown p50", "slowdown p99"]
    rows = []
    for name, entry in comparison.document()["runs"].items():
        found, queue = entry["compare"], entry["compare"]["queue_bytes"]
        share = found["share_ratio"]
        row = [
            text(name), number(found["utilization"], 0.01, ".2f"),
            *(number(queue[kind], 1e3) for kind in ("mean", "p99", "max")), count(found["drops"]),
            number(found["jain_index"], form=".4f"), number(share["worst"], form=".3f"),
            number(share["most"], form=".3f"), number(found["settling_s"]["worst"]),
            number(found["start_up_s"]["median"]),
        ]  # fmt: skip
        if sized:
            moved = found["transfers"]
            row += _moved(moved)
        rows.append(row)
    note = (
        f"Queues and utilization are those of {comparison.bottleneck}, the bottleneck of most "
        "flow-seconds over all runs; drops are of all links. Rates are compared with exact max-min "
        "shares."
    )
    return tables.table("runs", "All runs", columns, rows, note)


def _moved(moved: Mapping[str, Any] | None) -> list[Cell]:
    if moved is None:
        return [number(None)] * 3
    done = moved["flows"] - moved["unfinished"]
    cell = Cell(f"{done:,} of {moved['flows']:,}", float(done))
    return [cell, number(moved["slowdown"]["p50"]), number(moved["slowdown"]["p99"])]


def _over_seeds(document: Document) -> Table | None:
    runs = document.get("over_seeds")
    if not runs:
        return None
    columns = ["run", *(title for _, title, _ in _OVER_SEEDS)]
    rows = []
    for name, found in runs.items():
        row = [text(name)]
        for key, _, unit in _OVER_SEEDS:
            row.append(_interval(found.get(key), unit))
        rows.append(row)
    note = f"Means over {len(document['seeds'])} seeds, with 95 % intervals."
    if not document.get("differences_over_seeds") and all(
        len(set(found["values"])) == 1 for mine in runs.values() for found in mine.values()
    ):
        note = f"All {len(document['seeds'])} seeds give the same result: nothing is random here."
    return tables.table("over-seeds", "Over all seeds", columns, rows, note)


def _interval(estimate: Mapping[str, Any] | None, unit: float) -> Cell:
    if estimate is None or estimate["mean"] is None:
        return number(None)
    mean = estimate["mean"]
    if estimate["interval"] is None:
        return number(mean, unit)
    low, high = estimate["interval"]
    return Cell(f"{mean / unit:.4g} ({low / unit:.4g} to {high / unit:.4g})", mean)
