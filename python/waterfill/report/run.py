"""What the page of one run says: facts, topology, charts, tables, configuration."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from waterfill.analysis import transfers
from waterfill.analysis.run_charts import PAGE, RunCharts
from waterfill.report import checks, tables, topology
from waterfill.report.tables import Cell, Table, count, number, text
from waterfill.runs import effective, files
from waterfill.runs.result import to_json
from waterfill.scenario.loading import from_toml

if TYPE_CHECKING:
    from waterfill.runs.result import Document, Result
    from waterfill.scenario.document import Scenario

# Numbers of single flows behind bands that a page may have.
MAX_PICKED_NUMBERS = 80_000


def content(folder: Path) -> Document:
    """Return what the template `run.html.j2` shows of the run in `folder`."""
    result = checks.run(folder)
    scenario = from_toml(result.scenario_toml, str(folder / "scenario.toml"))
    summary = result.summary
    return {
        "title": summary["scenario"],
        "subtitle": f"One run on {summary['backend']}",
        "facts": facts(result),
        "picture": topology.picture(scenario, summary["links"]),
        "charts": RunCharts(result, PAGE, max_picked_numbers=MAX_PICKED_NUMBERS).all(),
        "tables": result_tables(result),
        **configuration(scenario, result, f"waterfill run {shlex.quote(scenario_path(folder))}"),
    }


def scenario_path(folder: Path) -> str:
    """Return the path of the scenario in a directory, as typed beside that directory."""
    return f"{files.readable(folder.resolve().name)}/scenario.toml"


def facts(result: Result) -> list[tuple[str, str]]:
    """Return what to know of a run at first sight, as (name, value)."""
    summary = result.summary
    start_s, stop_s = summary["measure_s"]
    found = [
        ("Measured", f"{start_s:.4g} s to {stop_s:.4g} s of {summary['duration_s']:.4g} s"),
        ("Seed", str(summary["seed"])),
        ("Flows", f"{sum(flow.get('count', 1) for flow in summary['flows']):,}"),
        ("Link directions", f"{len(summary['links']):,}"),
    ]
    jain = summary["jain_index"]
    if jain is not None:
        found.append(("Jain's index", f"{jain:.4f}"))
    drops = sum(link["drops"] for link in summary["links"])
    found.append(("Drops", f"{drops:,}"))
    if "interrupted_at_s" in summary:
        found.append(("Interrupted", f"at {summary['interrupted_at_s']:g} s"))
    failed = [check["name"] for check in summary.get("checks", ()) if not check["ok"]]
    if failed:
        found.append(("Failed checks", ", ".join(failed)))
    return found


def result_tables(result: Result, prefix: str = "") -> list[Table]:
    """Return the tables of a run: flows, links, traffic, completion times by size."""
    found = [_flows(result, prefix), _links(result, prefix)]
    if result.summary["traffic"]:
        found.append(_traffic(result, prefix))
    if result.network.has_transfers:
        found.append(_transfers(result, prefix))
    return [table for table in found if table.rows]


def _flows(result: Result, prefix: str) -> Table:
    columns = ("flow", "protocol", "rate (Mbit/s)", "max-min (Mbit/s)", "rate / max-min",
               "goodput (Mbit/s)", "RTT mean (ms)", "RTT p99 (ms)", "retransmissions",
               "completed (s)")  # fmt: skip
    rows = []
    for flow in result.summary["flows"]:
        rate, share, rtt = flow["rate_bps"], flow["max_min_bps"], flow["rtt_ms"]
        ratio = rate / share if rate is not None and share else None
        many = f" ×{flow['count']}" if flow.get("count", 1) > 1 else ""
        rows.append([
            text(flow["name"] + many), text(flow["protocol"]), number(rate, 1e6),
            number(share, 1e6), number(ratio, form=".3f"), number(flow["goodput_bps"], 1e6),
            number(rtt["mean"]), number(rtt["p99"]), count(flow["retransmissions"]),
            number(flow["completed_s"]),
        ])  # fmt: skip
    return tables.table(f"{prefix}flows", "Flows", columns, rows)


def _links(result: Result, prefix: str) -> Table:
    columns = ("link", "rate (Mbit/s)", "delay (ms)", "utilization (%)", "queue mean (kB)",
               "queue p99 (kB)", "queue max (kB)", "drops", "marks", "lost")  # fmt: skip
    spec = {link.name: link for link in result.network.links}
    rows = []
    for link in result.summary["links"]:
        known, queue = spec.get(link["name"]), link["queue_bytes"]
        rows.append([
            text(link["name"]),
            number(None if known is None else known.rate_bps, 1e6),
            number(None if known is None else known.delay_s, 1e-3),
            number(link["utilization"], 0.01, ".2f"),
            *(number(queue[kind], 1e3) for kind in ("mean", "p99", "max")),
            count(link["drops"]), count(link["marks"]), count(link["lost"]),
        ])  # fmt: skip
    return tables.table(f"{prefix}links", "Links", columns, rows)


def _traffic(result: Result, prefix: str) -> Table:
    columns = ("traffic", "kind", "rate (Mbit/s)", "packets sent", "packets received",
               "flows started", "flows completed")  # fmt: skip
    rows = [
        [
            text(source["name"]), text(source["kind"]), number(source["rate_bps"], 1e6),
            count(source["packets_sent"]), count(source["packets_received"]),
            count(source.get("flows_started")), count(source.get("flows_completed")),
        ]
        for source in result.summary["traffic"]
    ]  # fmt: skip
    return tables.table(f"{prefix}traffic", "Other traffic", columns, rows)


def _transfers(result: Result, prefix: str) -> Table:
    columns = ("size", "flows", "unfinished", "completion p50 (s)", "completion p99 (s)",
               "slowdown p50", "slowdown p99")  # fmt: skip
    rows: list[list[Cell]] = []
    for size in transfers.by_size(result.transfers):
        above, to = size["above_bytes"], size["to_bytes"]
        words = "all sizes" if to is None and not above else (
            f"above {above / 1e3:g} kB" if to is None else f"up to {to / 1e3:g} kB"
        )  # fmt: skip
        rows.append([
            Cell(words, float("inf") if to is None else to), count(size["flows"]),
            count(size["unfinished"]), number(size["completion_s"]["p50"]),
            number(size["completion_s"]["p99"]), number(size["slowdown"]["p50"]),
            number(size["slowdown"]["p99"]),
        ])  # fmt: skip
    return tables.table(f"{prefix}transfers", "Completion times by size", columns, rows)


# --- configuration -----------------------------------------------------------------------------


def configuration(scenario: Scenario, result: Result, command: str) -> Document:
    """Return the scenario as run, and every value that was in force, with the command."""
    summary = result.summary
    found = effective.in_force(scenario, laws=summary.get("laws"))
    rows = [
        [text(protocol), text(name), text(_plain(value))]
        for protocol, values in summary["params"].items()
        for name, value in values.items()
    ]
    found["params"] = summary["params"]
    found["file"] = "scenario.toml"
    backend = "" if summary["backend"] == "sim" else f" --on {summary['backend']}"
    if "laws" in summary:
        backend += " --law FILE.py"
    return {
        "command": command + backend,
        "scenario_toml": result.scenario_toml,
        "effective": to_json(found),
        "params": tables.table("params", "Parameters of the protocols",
                               ("protocol", "parameter", "value (SI units)"), rows),
    }  # fmt: skip


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
