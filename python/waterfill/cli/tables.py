"""Results as rich tables that fit 80 columns and need no colour."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from rich import box
from rich.table import Table
from rich.text import Text

from waterfill.contract.summary import (
    FlowSummary,
    LinkSummary,
    StepCheck,
    Summary,
    Times,
    TrafficSummary,
)
from waterfill.errors import one_line
from waterfill.runs.result import Document
from waterfill.scenario.units import VOLUME

if TYPE_CHECKING:
    from waterfill.analysis.transfers import SizeBin
    from waterfill.network.protocols import ProtocolInfo

# Tables list up to this many flows one by one, more by group.
MAX_LINES = 20

# How tables write a parameter's unit; the other units are written as they are.
UNITS = {"rate": "bit/s", "time": "s", "volume": "B", "ratio": "", "flag": ""}


def run(summary: Summary) -> list[Table | Text]:
    """Return the tables of a run: flows (or groups), links, traffic, completion times."""
    start_s, stop_s = summary["measure_s"]
    head = (
        f"{one_line(summary['scenario'])} on {summary['backend']}, seed {summary['seed']}: "
        f"{start_s:g} s to {stop_s:g} s of {summary['duration_s']:g} s"
    )
    parts: list[Table | Text] = [Text(head, style="bold")]
    if "interrupted_at_s" in summary:
        parts.append(Text(f"interrupted at {summary['interrupted_at_s']:g} s", style="yellow"))
    flows = summary["flows"]
    if flows:
        parts.append(_flows(flows) if len(flows) <= MAX_LINES else _groups(flows))
    parts.append(_links(summary["links"]))
    if summary["traffic"]:
        parts.append(_traffic(summary["traffic"]))
    sources = [
        (s["name"], s["flows_started"], s["flows_completed"], s["flow_completion_ms"])
        for s in summary["traffic"]
        if "flow_completion_ms" in s
    ]
    groups = [
        (g["name"], g["flows"], g["completed"], g["flow_completion_ms"]) for g in summary["groups"]
    ]
    for title, entries in (("source", sources), ("group", groups)):
        if entries:
            parts.append(_completion(title, entries))
    parts.append(Text(f"Jain's index {_number(summary['jain_index'], '.4f')}"))
    if any(flow["retransmissions"] for flow in flows):
        parts.append(Text("retransmissions: of the whole run; drops: of the window."))
    if "check_step" in summary:
        parts.append(_step_check(summary["check_step"]))
    return parts


def _step_check(check: StepCheck) -> Text:
    step = f"step {check['step_s']:.3g} s"
    if check["largest_change"] is None:
        return Text(f"{step}; not checked against half the step", style="yellow")
    percent = 100 * check["largest_change"]
    change = f"{step}; half the step changes rates by up to {percent:.2g} %"
    if check["ok"]:
        return Text(change)
    return Text(f"{change}: rates may be off by more than 1 %", style="yellow")


def response(document: Document) -> list[Table | Text]:
    """Return one table per protocol and kind of loss: mean windows and their references."""
    parts: list[Table | Text] = []
    groups: dict[tuple[str, str], list[Document]] = {}
    for cell in document["cells"]:
        groups.setdefault((cell["protocol"], cell["loss"]), []).append(cell)
    for (protocol, loss), cells in groups.items():
        parts.append(Text(f"{protocol} under {loss} loss: mean window in packets", style="bold"))
        table = _table("loss", "RTT ms")
        names = list(cells[0]["closed_forms_packets"])
        reference = names[0] if loss == "periodic" else "Monte-Carlo"
        others = names if loss == "independent" else names[1:]
        for header in ("simulated", reference, "difference", *others, "losses", "time-outs", ""):
            table.add_column(header, justify="right")
        for cell in cells:
            table.add_row(
                f"{cell['p']:g}",
                f"{cell['rtt_s'] * 1e3:g}",
                _number(cell["window_packets"], ".1f"),
                _number(cell["reference_packets"], ".1f"),
                _number(cell["error"] * 100, "+.1f") + " %",
                *[
                    f"{(cell['window_packets'] / cell['closed_forms_packets'][n] - 1) * 100:+.0f} %"
                    for n in others
                ],
                str(cell["losses"]),
                str(cell["timeouts"]),
                "not judged" if not cell["judged"] else "" if cell["within"] else "OUTSIDE",
            )
        parts.append(table)
    parts.append(
        Text(
            f"{document['outside']} of {len(document['cells'])} cases differ from their reference "
            f"by more than {document['tolerance'] * 100:g} %. Not judged: mean windows below "
            f"{document['least_window_packets']:g} packets under periodic loss."
        )
    )
    return parts


def _flows(flows: Sequence[FlowSummary]) -> Table:
    table = _table("flow", "protocol")
    for header in ("rate\nMbit/s", "max-min\nMbit/s", "goodput\nMbit/s", "RTT mean\nms", "p99\nms"):
        table.add_column(header, justify="right")
    table.add_column("retrans-\nmissions", justify="right")
    for flow in flows:
        table.add_row(
            one_line(flow["name"]),
            flow["protocol"],
            _mega(flow["rate_bps"]),
            _mega(flow["max_min_bps"]),
            _mega(flow["goodput_bps"]),
            _number(flow["rtt_ms"]["mean"], ".1f"),
            _number(flow["rtt_ms"]["p99"], ".1f"),
            str(flow["retransmissions"]),
        )
    return table


def _groups(flows: Sequence[FlowSummary]) -> Table:
    table = _table("group", "protocol")
    headers = (
        "flows",
        "rate mean\nMbit/s",
        "min",
        "max",
        "max-min\nmean",
        "RTT mean\nms",
        "retrans-\nmissions",
    )
    for header in headers:
        table.add_column(header, justify="right")
    groups: dict[str, list[FlowSummary]] = {}
    for flow in flows:
        groups.setdefault(flow["group"], []).append(flow)
    for name, members in groups.items():
        rates = _known(flow["rate_bps"] for flow in members)
        table.add_row(
            one_line(name),
            members[0]["protocol"],
            str(len(members)),
            _mega(_mean(rates)),
            _mega(min(rates, default=None)),
            _mega(max(rates, default=None)),
            _mega(_mean(_known(flow["max_min_bps"] for flow in members))),
            _number(_mean(_known(flow["rtt_ms"]["mean"] for flow in members)), ".1f"),
            str(sum(flow["retransmissions"] for flow in members)),
        )
    return table


def _links(links: Sequence[LinkSummary]) -> Table:
    table = _table("link")
    counts: list[Literal["drops", "marks", "lost"]] = ["drops", "lost"]
    if any(link["marks"] for link in links):
        counts.insert(1, "marks")
    for header in ("utilization\n%", "queue mean\nkB", "p99\nkB", "max\nkB", *counts):
        table.add_column(header, justify="right")
    for link in links:
        queue = link["queue_bytes"]
        table.add_row(
            one_line(link["name"]),
            _number(_scaled(link["utilization"], 0.01), ".2f"),
            *(_number(_scaled(queue[kind], 1e3), ".1f") for kind in ("mean", "p99", "max")),
            *(str(link[count]) for count in counts),
        )
    return table


def _traffic(sources: Sequence[TrafficSummary]) -> Table:
    table = _table("traffic", "kind")
    for header in ("rate\nMbit/s", "packets\nsent", "\nreceived"):
        table.add_column(header, justify="right")
    for source in sources:
        table.add_row(
            one_line(source["name"]),
            source["kind"],
            _mega(source["rate_bps"]),
            str(source["packets_sent"]),
            str(source["packets_received"]),
        )
    return table


def _completion(title: str, entries: Sequence[tuple[str, int, int, Times]]) -> Table:
    """Return completion times, one row per source or group: name, started, completed, times."""
    table = _table(title)
    table.add_column("flows\nstarted", justify="right")
    table.add_column("\ncompleted", justify="right")
    for header in ("completion mean\nms", "p50\nms", "p90\nms", "p99\nms", "max\nms"):
        table.add_column(header, justify="right")
    for name, started, completed, times in entries:
        columns = (times["mean"], times["p50"], times["p90"], times["p99"], times["max"])
        table.add_row(
            one_line(name),
            str(started),
            str(completed),
            *(_number(value, ".1f") for value in columns),
        )
    return table


def transfers(rows: Sequence[SizeBin]) -> list[Table | Text]:
    """Return the slowdowns of a run's transfers by size, and a note; nothing without flows."""
    if not rows:
        return []
    table = _table("flows by size")
    headers = ("flows", "un-\nfinished", "slowdown\nmean", "p50", "p90", "p99", "time p50\nms")
    for header in (*headers, "p99\nms"):
        table.add_column(header, justify="right")
    for row in rows:
        slowdown, took_s = row["slowdown"], row["completion_s"]
        table.add_row(
            _sizes(row["above_bytes"], row["to_bytes"]),
            str(row["flows"]),
            str(row["unfinished"]),
            *(_number(slowdown[kind], ".2f") for kind in ("mean", "p50", "p90", "p99")),
            *(_number(_scaled(value, 1e-3), ".3g") for value in (took_s["p50"], took_s["p99"])),
        )
    return [table, Text(_SLOWDOWN)]


_SLOWDOWN = "slowdown: completion time ÷ ideal time on the empty network, of completed flows."


def _sizes(above_bytes: float, to_bytes: float | None) -> str:
    if to_bytes is None:
        return f"above {VOLUME.format(above_bytes)}" if above_bytes else "all"
    return f"to {VOLUME.format(to_bytes)}"


def compare(runs: Mapping[str, Document]) -> list[Table | Text]:
    """Return one table of all runs, one row per run, and notes that define its columns.

    `runs` is {protocol: run document}, at least one.
    """
    first = next(iter(runs.values()))
    start_s, stop_s = first["measure_s"]
    head = (
        f"{one_line(first['scenario'])} on {first['backend']}, seed {first['seed']}: "
        f"{start_s:g} s to {stop_s:g} s of {first['duration_s']:g} s"
    )
    parts: list[Table | Text] = [Text(head, style="bold")]
    for name, run in runs.items():
        if "interrupted_at_s" in run:
            at_s = run["interrupted_at_s"]
            parts.append(Text(f"{name} interrupted at {at_s:g} s", style="yellow"))
    table = _table()
    table.padding = 0  # eleven columns: the separators suffice
    table.add_column("protocol", no_wrap=True)
    headers = (
        *("util.\n%", "queue\nkB", "p99\nkB", "max\nkB", "drops", "Jain", "min\nshare"),
        *("settle\ns", "start\ns", "slowest\ns"),
    )
    for header in headers:
        table.add_column(header, justify="right")
    for name, run in runs.items():
        mine = run["compare"]
        queue = mine["queue_bytes"]
        table.add_row(
            name,
            _number(_scaled(mine["utilization"], 0.01), ".2f"),
            *(_kilo(queue[kind]) for kind in ("mean", "p99", "max")),
            str(mine["drops"]),
            _number(mine["jain_index"], ".4f"),
            _number(mine["share_ratio"]["worst"], ".3f"),
            _number(mine["settling_s"]["worst"], ".2f"),
            _number(mine["start_up_s"]["median"], ".2f"),
            _number(mine["start_up_s"]["worst"], ".2f"),
        )
    parts.append(table)
    parts += _compared_transfers(runs)
    mine = first["compare"]
    average_s = mine["average_s"]
    notes = (
        f"util. (utilization) and queue (mean, p99, max): of {one_line(mine['bottleneck'])}, the "
        "bottleneck of most flow-seconds over all runs; drops: on all links.",
        "min share: smallest rate ÷ max-min share of a flow.",
        f"settle: settling time, from a flow's start or a change of its share until its rate (mean "
        f"over {average_s:g} s) stays within 5 % of the share; slowest flow.",
        "start: start-up time, SYN to half the fair share (median, slowest flow).",
        "–: never, or no samples.",
    )
    return [*parts, *map(Text, notes)]


# Quantities over seeds: key, name, heading, unit's size, form.
_OVER_SEEDS = (
    ("utilization", "utilization", "util.\n%", 0.01, ".2f"),
    ("queue_bytes.mean", "queue", "queue\nkB", 1e3, ".1f"),
    ("queue_bytes.p99", "queue p99", "p99\nkB", 1e3, ".1f"),
    ("drops", "drops", "drops", 1.0, ".1f"),
    ("jain_index", "Jain", "Jain", 1.0, ".4f"),
    ("share_ratio.worst", "min share", "min\nshare", 1.0, ".3f"),
    ("settling_s.worst", "settle", "settle\ns", 1.0, ".2f"),
    ("start_up_s.median", "start", "start\ns", 1.0, ".2f"),
    ("slowdown.p50", "slowdown p50", "slow-\ndown", 1.0, ".2f"),
    ("slowdown.p99", "slowdown p99", "p99", 1.0, ".2f"),
)


def over_seeds(document: Document) -> list[Table | Text]:
    """Return means and intervals over the seeds, one row per protocol, and what differs."""
    runs, rows = document["over_seeds"], document["differences_over_seeds"]
    count = len(document["seeds"])
    values = [found["values"] for mine in runs.values() for found in mine.values()]
    if count > 1 and not rows and all(len(set(mine)) == 1 for mine in values):
        same = f"All {count} seeds give the same result: nothing in this scenario is random, so"
        return [Text(), Text(f"{same} there are no intervals and no tests.")]
    there = set(next(iter(runs.values())))
    columns = [column for column in _OVER_SEEDS if column[0] in there]
    table = _table()
    table.padding = (0, 0, 0, 0)
    table.add_column("protocol", no_wrap=True)
    for _, _, heading, _, _ in columns:
        table.add_column(heading, justify="right")
    for name, mine in runs.items():
        cells = []
        for key, _, _, unit, form in columns:
            found = mine[key]
            half = None if found["interval"] is None else found["interval"][1] - found["mean"]
            mean, half = _scaled(found["mean"], unit), _scaled(half, unit)
            cells.append(_number(mean, form) + ("" if half is None else f"\n±{half:{form}}"))
        table.add_row(name, *cells)
    lines = [
        f"{count} seeds, from {document['seeds'][0]}: mean ± half the 95 % interval (Student's t).",
    ]
    for key, what, _, _, _ in columns:
        pairs = [row for row in rows if row["quantity"] == key]
        if pairs:
            alike = [f"{r['first']} and {r['second']}" for r in pairs if not r["significant"]]
            shown = ", ".join(alike if len(alike) <= 3 else [*alike[:3], f"{len(alike) - 3} more"])
            but = f"; not {shown}" if alike and len(alike) < len(pairs) else ""
            apart = len(pairs) - len(alike)
            lines.append(f"  {what}: {apart} of {len(pairs)} pairs of protocols differ{but}")
    if len(lines) > 1:
        lines[1:1] = [
            "Differences at the 5 % level (paired t-tests over the seeds, corrected for the number "
            "of pairs by Benjamini and Yekutieli):"
        ]
    return [Text(), table, *map(Text, lines)]


def _compared_transfers(runs: Mapping[str, Document]) -> list[Table | Text]:
    """Return the completion times and slowdowns of runs that have transfers, as a table."""
    found = {name: run["compare"]["transfers"] for name, run in runs.items()}
    if not any(found.values()):
        return []
    table = _table("protocol")
    headers = ("flows", "unfinished", "time p50\nms", "p99\nms", "slowdown\np50", "p99")
    for header in headers:
        table.add_column(header, justify="right")
    for name, mine in found.items():
        if mine is not None:
            took_s, slowdown = mine["completion_s"], mine["slowdown"]
            table.add_row(
                name,
                str(mine["flows"]),
                str(mine["unfinished"]),
                *(_number(_scaled(took_s[kind], 1e-3), ".3g") for kind in ("p50", "p99")),
                *(_number(slowdown[kind], ".2f") for kind in ("p50", "p99")),
            )
    return [Text(), table, Text(_SLOWDOWN)]


def effective(document: Document) -> list[Table | Text]:
    """Return a checked scenario: backends, links, flows, traffic, parameters in force."""
    start_s, stop_s = document["measure_s"]
    parts: list[Table | Text] = [
        Text(
            f"{one_line(document['file'])}: {one_line(document['scenario'])}, "
            f"{document['duration_s']:g} s, measured from {start_s:g} s to {stop_s:g} s, "
            f"seed {document['seed']}",
            style="bold",
        )
    ]
    for backend, refusal in document["backends"].items():
        text = f"{backend}: can run it" if refusal is None else f"{backend}: {refusal}"
        parts.append(Text(text, style="" if refusal is None else "yellow"))
    links = _table("link")
    for header in ("rate\nMbit/s", "delay\nms", "buffer", "target\n%"):
        links.add_column(header, justify="right")
    links.add_column("queue")
    for link in document["links"][:_MAX_ROWS]:
        packets = link["buffer_packets"]
        size = f"{link['buffer_bytes'] / 1e3:g} kB" if packets is None else f"{packets} packets"
        links.add_row(
            one_line(link["name"]),
            f"{link['rate_bps'] / 1e6:g}",
            f"{link['delay_s'] * 1e3:g}",
            size,
            f"{link['target'] * 100:g}",
            link["queue"]["kind"],
        )
    parts.append(links)
    parts += _others(document["links"], "links")
    if document["flows"]:
        parts.append(_effective_flows(document["flows"][:_MAX_ROWS]))
        parts += _others(document["flows"], "flows")
    if document["traffic"]:
        traffic = _table("traffic", "kind")
        for header in ("rate\nMbit/s", "from\ns", "to\ns"):
            traffic.add_column(header, justify="right")
        traffic.add_column("path", overflow="fold")
        for source in document["traffic"]:
            times = (f"{source['start_s']:g}", f"{source['stop_s']:g}")
            routes = sum(map(len, (source["flows"] or {}).get("routes", ())))
            path = f"{routes} routes" if routes else one_line(", ".join(source["path"]))
            rate = _mega(source["rate_bps"])
            traffic.add_row(one_line(source["name"]), source["kind"], rate, *times, path)
        parts.append(traffic)
    for protocol, values in document["params"].items():
        if values:
            listed = ", ".join(f"{name}={_plain(value)}" for name, value in values.items())
            parts.append(Text(f"{protocol}: {listed}"))
    return parts


# A checked scenario may have 10^5 links or flows; a table of so many takes a minute to lay out.
_MAX_ROWS = 100


def _others(rows: Sequence[Document], what: str) -> list[Text]:
    left = len(rows) - _MAX_ROWS
    return [Text(f"… and {left} other {what}; --json lists all.")] if left > 0 else []


def _effective_flows(flows: Sequence[Document]) -> Table:
    table = _table("flow", "protocol")
    for header in ("count", "base RTT\nms", "from\ns", "to\ns"):
        table.add_column(header, justify="right")
    table.add_column("path", overflow="fold")
    for flow in flows:
        table.add_row(
            one_line(flow["name"]),
            flow["protocol"],
            str(flow["count"]),
            f"{flow['base_rtt_s'] * 1e3:g}",
            f"{flow['start_s']:g}",
            f"{flow['stop_s']:g}",
            one_line(", ".join(flow["forward"])),
        )
    return table


def maxmin(document: Document) -> list[Table | Text]:
    """Return one table: interval, flow, exact max-min rate, bottleneck link."""
    table = _table("from s", "to s", "flow")
    table.add_column("rate\nMbit/s", justify="right")
    table.add_column("bottleneck", overflow="fold")
    for interval in document["intervals"]:
        times = [f"{interval['from_s']:g}", f"{interval['to_s']:g}"]
        for flow in interval["flows"] or [{"name": "–", "rate_bps": None, "bottleneck": None}]:
            name, bottleneck = one_line(flow["name"]), flow["bottleneck"]
            table.add_row(*times, name, _mega(flow["rate_bps"]), one_line(bottleneck or "–"))
            times = ["", ""]
    return [table]


def protocol_list(known: Iterable[ProtocolInfo]) -> list[Table | Text]:
    """Return one line per protocol, and where to find its parameters."""
    table = _table("protocol", "kind")
    table.add_column("header\nB", justify="right")
    table.add_column("backends")
    table.add_column("summary", overflow="fold")
    for protocol in known:
        table.add_row(
            protocol.name,
            f"{protocol.kind},\npaced" if protocol.paced else protocol.kind,
            str(protocol.header_bytes),
            ", ".join(protocol.backends),
            protocol.summary,
        )
    return [table, Text("waterfill protocols PROTOCOL shows parameters, defaults and sources.")]


def protocols(known: Iterable[ProtocolInfo]) -> list[Table | Text]:
    """Return for each protocol a line of text and a table of its parameters."""
    parts: list[Table | Text] = []
    for protocol in known:
        head = Text(protocol.name, style="bold")
        head.append(f"  {protocol.kind}, on {', '.join(protocol.backends)}", style="not bold")
        paced = "paced" if protocol.paced else "not paced"
        head.append(f", header {protocol.header_bytes} B, {paced}", style="not bold")
        head.append(f". {protocol.summary}", style="not bold")
        parts.append(head)
        if protocol.params:
            table = _table("parameter")
            table.add_column("default", justify="right")
            table.add_column("unit")
            table.add_column("meaning", overflow="fold")
            for param in protocol.params:
                meaning = f"{param.doc} ({param.source})" if param.source else param.doc
                unit = " | ".join(param.choices) or UNITS.get(param.unit, param.unit)
                table.add_row(param.name, _plain(param.default), unit, meaning)
            parts.append(table)
    return parts


def protocols_document(known: Iterable[ProtocolInfo]) -> list[Document]:
    """Return the document of `protocols --json`."""
    return [
        {
            "name": protocol.name,
            "kind": protocol.kind,
            "summary": protocol.summary,
            "backends": list(protocol.backends),
            "paced": protocol.paced,
            "header_bytes": protocol.header_bytes,
            "echo_bytes": protocol.echo_bytes,
            "params": [
                {
                    "name": param.name,
                    "unit": param.unit,
                    "default": param.default,
                    "choices": list(param.choices) or None,
                    "doc": param.doc,
                    "source": param.source,
                }
                for param in protocol.params
            ],
        }
        for protocol in known
    ]


def _table(*columns: str) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=(0, 1, 0, 0),
        collapse_padding=True,
    )
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else "–" if value is None else str(value)


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _scaled(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def _kilo(value: float | None) -> str:
    # Without decimals above 1 MB: the table must fit 80 columns.
    return _number(_scaled(value, 1e3), ".1f" if value is None or value < 1e6 else ".0f")


def _mega(value: float | None) -> str:
    return _number(_scaled(value, 1e6), ".2f")


def _number(value: float | None, form: str) -> str:
    return "–" if value is None or not math.isfinite(value) else format(value, form)


def differences(rows: Sequence[Document]) -> list[Table | Text]:
    """Return the results of two backends side by side, for up to `MAX_LINES` flows."""
    if not rows:
        return []
    first, second = rows[0]["backends"]
    table = _table("protocol", "quantity")
    for header in (first, second, "difference"):
        table.add_column(header, justify="right")
    for row in rows[: 5 * MAX_LINES]:
        scale, unit = _readable(row["unit"])
        change = row["difference"]
        if change is None:
            shown = "–"
        elif row["relative"]:
            shown = f"{change:+.1%}"
        else:
            shown = f"{change / scale:+.3g}{unit}"
        values = (_number(_scaled(v, scale), ".4g") for v in row["values"])
        table.add_row(
            row["protocol"], one_line(row["what"]), *(f"{v}{unit}" for v in values), shown
        )
    return [table]


def _readable(unit: str) -> tuple[float, str]:
    """Return the scale of the unit that tables use for this one, and its name after a space."""
    scale, name = {"bit/s": (1e6, "Mbit/s"), "B": (1e3, "kB")}.get(unit, (1.0, unit))
    return scale, f" {name}" if name else ""
