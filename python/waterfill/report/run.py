"""Page of one run: facts, topology, charts, tables and configuration."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from waterfill.analysis import hosts, transfers
from waterfill.analysis import tables as model
from waterfill.analysis.collectives import collectives, message_names
from waterfill.analysis.run_charts import PAGE, RunCharts
from waterfill.analysis.tables import Column, LinkRow
from waterfill.report import checks, tables, topology
from waterfill.report.tables import Table
from waterfill.runs import effective
from waterfill.runs.result import fairness, to_json
from waterfill.scenario.loading import from_toml

if TYPE_CHECKING:
    from waterfill.runs.result import Document, Result
    from waterfill.scenario.document import Scenario

# Numbers of single flows behind bands that a page may have.
MAX_PICKED_NUMBERS = 80_000


def content(folder: Path) -> Document:
    """Return the data of the template `run.html.j2` for the run in `folder`."""
    result = checks.run(folder)
    scenario = from_toml(result.scenario_toml, str(folder / "scenario.toml"))
    summary = result.summary
    return {
        "title": summary.scenario,
        "subtitle": f"One run on {summary.backend}",
        "facts": facts(result),
        "picture": topology.picture(scenario, summary.links),
        "charts": RunCharts(result, PAGE, max_picked_numbers=MAX_PICKED_NUMBERS).all(),
        "tables": result_tables(result),
        **configuration(scenario, result, f"waterfill run {shlex.quote(scenario_path(folder))}"),
    }


def scenario_path(folder: Path, inside: str = "") -> str:
    """Return the path of a directory's scenario, relative to the directory's parent.

    Bytes of the name that are not UTF-8 become �.
    """
    name = os.fsencode(folder.resolve().name).decode("utf-8", "replace")
    return f"{name}/{inside}scenario.toml"


def facts(result: Result) -> list[tuple[str, str]]:
    """Return the main facts of a run, as (name, value)."""
    summary = result.summary
    start_s, stop_s = summary.measure_s
    found = [
        ("Measured", f"{start_s:.4g} s to {stop_s:.4g} s of {summary.duration_s:.4g} s"),
        ("Seed", str(summary.seed)),
        ("Flows", f"{sum(flow.count for flow in summary.flows):,}"),
        ("Link directions", f"{len(summary.links):,}"),
    ]
    jain = fairness(summary)
    if jain is not None:
        found.append(("Jain's index of rate ÷ share", f"{jain:.4f}"))
    drops = sum(link.drops for link in summary.links)
    found.append(("Drops", f"{drops:,}"))
    found += [("Warning", line) for line in hosts.warnings(summary)]
    if summary.decimated is not None:
        found.append(("Samples", model.decimated(summary.decimated).removeprefix("samples: ")))
    if "interrupted_at_s" in summary:
        found.append(("Interrupted", f"at {summary.interrupted_at_s:g} s"))
    failed = [check.name for check in summary.checks or () if not check.ok]
    if failed:
        found.append(("Failed checks", ", ".join(failed)))
    return found


def result_tables(result: Result, prefix: str = "") -> list[Table]:
    """Return the tables of a run: flows, links, traffic, completion times by size, collectives.

    Flows that are messages of collectives are left out: the collectives sum them up.
    """
    summary = result.summary
    spec = {link.name: link for link in result.network.links}
    links = [LinkRow(link, spec.get(link.name)) for link in summary.links]
    messages = message_names(result)
    flows = [flow for flow in summary.flows if flow.group not in messages]
    notes = (model.idle(summary), model.without_shares(result.network))
    sizes = transfers.by_size(result.transfers) if result.network.has_transfers else []
    found: list[model.Table[Any]] = [
        model.Table("flows", "Flows", model.FLOWS, flows, " ".join(filter(None, notes))),
        model.Table(
            "applications",
            "Applications",
            model.APPLICATIONS,
            model.with_application(summary.flows),
            model.MESSAGES,
        ),
        model.Table("links", "Links", model.LINKS, links),
        model.Table("switches", "Switches", model.SWITCHES, summary.switches or []),
        model.Table("traffic", "Other traffic", model.TRAFFIC, summary.traffic),
        model.Table(
            "transfers",
            "Completion times by size",
            model.TRANSFERS,
            sizes,
            model.slowdown(result.slowdown_contents),
        ),
        model.Table(
            "collectives",
            "Collectives",
            model.COLLECTIVES,
            collectives(result),
            model.COLLECTIVES_NOTE,
        ),
    ]
    return [tables.of(table, prefix) for table in found if table.rows]


# --- configuration -----------------------------------------------------------------------------


def configuration(scenario: Scenario, result: Result, command: str) -> Document:
    """Return a run's scenario, all values in force, and the command that repeats the run."""
    summary = result.summary
    found = effective.in_force(scenario, laws=summary.laws)
    found |= {"params": summary.params, "file": "scenario.toml", "measure_s": summary.measure_s}
    rows = [
        (protocol, name, _plain(value))
        for protocol, values in summary.params.items()
        for name, value in values.items()
    ]
    backend = "" if summary.backend == "sim" else f" --on {summary.backend}"
    if "laws" in summary:
        backend += " --law FILE.py"
    return {
        "command": command + backend,
        "scenario_toml": result.scenario_toml,
        "effective": to_json(found),
        "params": tables.of(
            model.Table("params", "Parameters of the protocols", _PARAMETERS, rows)
        ),
    }


_PARAMETERS: Sequence[Column[tuple[str, str, str]]] = (
    Column("protocol", itemgetter(0)),
    Column("parameter", itemgetter(1)),
    Column("value (SI units)", itemgetter(2)),
)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
