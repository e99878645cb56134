"""Results as rich tables that fit 80 columns and do not depend on colour."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from rich import box
from rich.table import Table
from rich.text import Text

from waterfill.analysis import hosts
from waterfill.analysis import tables as model
from waterfill.analysis.tables import NONE, Column, LinkRow, TableCell
from waterfill.contract.summary import FlowSummary, LinkSummary, StepCheck, Summary, Times
from waterfill.errors import one_line
from waterfill.runs.result import Document, fairness
from waterfill.scenario.units import TIME

if TYPE_CHECKING:
    from waterfill.analysis.collectives import CollectiveResult
    from waterfill.analysis.conformance import Finding
    from waterfill.analysis.documents import BackendDifference, ComparedRun, Figures, OverSeeds
    from waterfill.analysis.response import LossCase
    from waterfill.analysis.transfers import IncastSummary, SizeBin
    from waterfill.network.protocols import ParamInfo, ProtocolInfo

Row = TypeVar("Row")

# Tables list up to this many flows one by one, more by group.
MAX_LINES = 20
# A scenario may have 10^5 links or flows; a table of so many takes a minute to lay out.
_MAX_ROWS = 100
# Above this, links with equal values share a row of `check`.
_MAX_LINKS = 24
# Flows that a cell names.
_MAX_NAMED = 3

# How tables write a parameter's unit; the other units are written as they are.
UNITS = {"rate": "bit/s", "time": "s", "volume": "B", "ratio": "", "flag": ""}


def printed(
    columns: Sequence[Column[Row]], rows: Sequence[Row], *, tight: bool = False, **more: Any
) -> Table:
    """Return a table for a terminal, with numbers aligned right, and long texts folded.

    A `tight` table has separators only, and a first column that is never folded.
    """
    shown = model.Table("", "", columns, rows).shown("terminal")
    padding = (0, 0, 0, 0) if tight else (0, 1, 0, 0)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=padding, **more)
    cells = [[column.cell(row, "terminal") for column in shown] for row in rows]
    for place, column in enumerate(shown):
        heading = column.heading("terminal")
        if place and any(row[place].number is not None for row in cells):
            table.add_column(heading, justify="right")
        else:
            table.add_column(heading, overflow="fold", no_wrap=tight)
    for row in cells:
        table.add_row(*(Text(cell.text, style=cell.kind) for cell in row))
    return table


def _head(summary: Summary, end: str = "", seeds: int = 1) -> Text:
    start_s, stop_s = summary.measure_s
    seed = str(summary.seed) if seeds == 1 else f"{summary.seed} of {seeds}, with jitter"
    end = end or f"to {_time(stop_s)} of {_time(summary.duration_s)}"
    return Text(
        f"{one_line(summary.scenario)} on {summary.backend}, seed {seed}: {_time(start_s)} {end}",
        style="bold",
    )


def _time(seconds: float) -> str:
    """Return a time of a run as text, in s from 0.1 s on."""
    rounded = float(f"{seconds:.6g}")
    return TIME.format(rounded) if 0 < seconds < 0.1 else f"{rounded:g} s"


def run(summary: Summary, messages: Container[str] = (), note: str = "") -> list[Table | Text]:
    """Return the tables of a run: flows or groups, links, traffic, and completion times.

    Flows that are `messages` of collectives are left out: `collectives` sums them up. `note` is a
    further sentence under the flows.
    """
    parts: list[Table | Text] = [_head(summary)]
    if summary.interrupted_at_s is not None:
        parts.append(Text(f"interrupted at {_time(summary.interrupted_at_s)}", style="yellow"))
    flows = [flow for flow in summary.flows if flow.group not in messages]
    if len(flows) > MAX_LINES:
        parts += _groups(flows)
    elif flows:
        parts.append(printed(model.FLOWS, flows))
        lossy = [(f.name, hosts.figures([f])) for f in flows if f.retransmissions or f.timeouts]
        if lossy:
            parts.append(printed([_first("flow"), *model.LOSSES], lossy))
    if flows and note:
        parts.append(Text(note))
    if writing := model.with_application(flows):
        parts += [*_listed(model.APPLICATIONS, writing, "flows"), Text(model.MESSAGES)]
    parts += [Text(line, style="yellow") for line in hosts.warnings(summary)]
    if found := model.idle(summary):
        parts.append(Text(found, style="" if summary.jain_index else "yellow"))
    parts += _links(summary.links)
    if summary.switches:
        fullest = {"fullest buffers": lambda switch: -float(switch.used_max_bytes)}
        parts += _extremes(model.SWITCHES, summary.switches, "switches", fullest)
    if summary.traffic:
        parts += _listed(model.TRAFFIC, summary.traffic, "sources")
    sources = [
        (s.name, s.flows_started or 0, s.flows_completed or 0, s.flow_completion_ms)
        for s in summary.traffic
        if s.flow_completion_ms is not None
    ]
    waiting = Counter(flow.group for flow in flows if flow.start_s >= flow.stop_s)
    groups = [
        (g.name, g.flows - waiting[g.name], g.completed, g.flow_completion_ms)
        for g in summary.groups
        if g.name not in messages
    ]
    for title, entries in (("source", sources), ("group", groups)):
        if entries:
            parts += _completion(title, entries)
    if flows:
        parts.append(_fairness(summary))
    if any(flow.retransmissions for flow in flows):
        parts.append(Text("retransmissions: of the whole run; drops: of the window."))
    if summary.decimated is not None:
        parts.append(Text(model.decimated(summary.decimated), style="yellow"))
    if summary.check_step is not None:
        parts.append(_step_check(summary.check_step))
    return parts


def _fairness(summary: Summary) -> Text:
    """Return Jain's index of rate ÷ max-min share, and the flow with the smallest quotient.

    The index alone hides a starved flow among many: with 1 of 33 flows at half its share it is
    0.993.
    """
    index = fairness(summary)
    shown = "–" if index is None else format(index, ".4f")
    ratios = [
        (flow.rate_bps / flow.max_min_bps, flow.name)
        for flow in summary.flows
        if flow.rate_bps is not None and flow.max_min_bps
    ]
    smallest = f"; smallest: {min(ratios)[0]:.3f}, of {min(ratios)[1]}" if ratios[1:] else ""
    return Text(f"Jain's index of rate ÷ max-min share: {shown}{smallest}")


def _step_check(check: StepCheck) -> Text:
    step = f"step {check.step_s:.3g} s"
    if check.largest_change is None:
        return Text(f"{step}; not checked against half the step", style="yellow")
    percent = 100 * check.largest_change
    change = f"{step}; half the step changes rates by up to {percent:.2g} %"
    if check.ok:
        return Text(change)
    return Text(f"{change}: rates may be off by more than 1 %", style="yellow")


_Group = tuple[str, list[FlowSummary]]


def _links(links: Sequence[LinkSummary]) -> list[Table | Text]:
    def used(row: LinkRow) -> float:
        return -row.measured.utilization

    def queued(row: LinkRow) -> float:
        return -row.measured.queue_bytes.max

    rows = [LinkRow(link) for link in links]
    ends = {"highest utilizations": used, "longest queues": queued}
    return _extremes(model.LINKS, rows, "links", ends)


def _groups(flows: Sequence[FlowSummary]) -> list[Table | Text]:
    groups: dict[str, list[FlowSummary]] = {}
    for flow in flows:
        groups.setdefault(flow.group, []).append(flow)

    def rates(group: _Group) -> list[float]:
        return [rate for flow in group[1] if (rate := flow.rate_bps) is not None]

    def shares(group: _Group) -> list[float]:
        return [share for flow in group[1] if (share := flow.max_min_bps) is not None]

    def rtts(group: _Group) -> list[float]:
        return [rtt for flow in group[1] if (rtt := flow.rtt_ms.mean) is not None]

    columns: Sequence[Column[_Group]] = (
        Column("group", lambda group: group[0]),
        Column("protocol", lambda group: group[1][0].protocol),
        Column("flows", lambda group: len(group[1])),
        Column("rate mean", lambda group: _mean(rates(group)), "Mbit/s", 1e6, model.rate_form),
        Column(
            "min", lambda group: min(rates(group), default=None), size=1e6, form=model.rate_form
        ),
        Column(
            "max", lambda group: max(rates(group), default=None), size=1e6, form=model.rate_form
        ),
        Column("max-min\nmean", lambda group: _mean(shares(group)), size=1e6, form=model.rate_form),
        Column("RTT mean", lambda group: _mean(rtts(group)), "ms", form=".1f", seconds=1e-3),
    )
    # Groups without a rate come last in both orders.
    means = {name: _mean(rates((name, group))) for name, group in groups.items()}
    ends = {
        "lowest rates": lambda group: math.inf if (m := means[group[0]]) is None else m,
        "highest rates": lambda group: math.inf if (m := means[group[0]]) is None else -m,
    }  # fmt: skip
    found = _extremes(columns, list(groups.items()), "groups", ends)
    if len(groups) <= MAX_LINES:
        costs = [(name, hosts.figures(mine)) for name, mine in groups.items()]
        found.append(printed([_first("group"), *model.LIMITS], costs))
    return found


def _first(title: str) -> Column[tuple[Any, ...]]:
    """Return the first column of a table whose rows begin with a name."""
    return Column(title, lambda row: row[0])


def _completion(title: str, entries: Sequence[tuple[str, int, int, Times]]) -> list[Table | Text]:
    """Return the table of completion times, with one row per source or group."""

    def time(key: str, row: tuple[str, int, int, Times]) -> float | None:
        found: float | None = row[3][key]
        return found

    columns: list[Column[tuple[str, int, int, Times]]] = [
        Column(title, lambda row: row[0]),
        Column("flows\nstarted", lambda row: row[1]),
        Column("\ncompleted", lambda row: row[2]),
        Column("completion mean", partial(time, "mean"), "ms", form=".1f", seconds=1e-3),
        *(
            Column(key, partial(time, key), "ms", form=".1f", seconds=1e-3)
            for key in ("p50", "p90", "p99", "max")
        ),
    ]
    ends = {"longest mean completions": lambda row: -(row[3].mean or 0.0)}
    parts = _extremes(columns, entries, f"{title}s", ends)
    if title == "source":
        note = "started, completed: of the whole run; times: of flows that started in the window."
        parts.append(Text(note))
    return parts


def incasts(rows: Sequence[IncastSummary]) -> list[Table | Text]:
    """Return the table of a run's incasts, or an empty list without one."""
    return [printed(model.INCASTS, rows)] if rows else []


def collectives(rows: Sequence[CollectiveResult]) -> list[Table | Text]:
    """Return the table of a run's collectives and a note, or an empty list without one."""
    return [printed(model.COLLECTIVES, rows), Text(model.COLLECTIVES_NOTE)] if rows else []


def transfers(rows: Sequence[SizeBin], contents: str) -> list[Table | Text]:
    """Return the table of a run's slowdowns by size and a note, or an empty list without flows.
    `contents` is `Result.slowdown_contents`.
    """
    return [printed(model.TRANSFERS, rows), Text(model.slowdown(contents))] if rows else []


def response(found: Sequence[LossCase]) -> list[Table | Text]:
    """Return one table per protocol and kind of loss, with mean windows and their references."""
    from waterfill.analysis.response import MIN_WINDOW, TOLERANCE

    parts: list[Table | Text] = []
    groups: dict[tuple[str, str], list[LossCase]] = {}
    for case in found:
        groups.setdefault((case.protocol, case.loss), []).append(case)
    for (protocol, loss), cases in groups.items():
        parts.append(Text(f"{protocol} under {loss} loss: mean window in packets", style="bold"))
        names = list(cases[0].closed_forms)
        others = names if loss == "independent" else names[1:]
        reference = names[0] if loss == "periodic" else "Monte-Carlo"
        parts.append(printed(_response_columns(reference, others), cases))
    outside = sum(not case.within for case in found)
    parts.append(
        Text(
            f"{outside} of {len(found)} cases differ from their reference by more than "
            f"{TOLERANCE * 100:g} %. Not judged: mean windows below {MIN_WINDOW:g} packets under "
            "periodic loss."
        )
    )
    return parts


def _response_columns(reference: str, others: Sequence[str]) -> list[Column[LossCase]]:
    def off(name: str, case: LossCase) -> TableCell:
        ratio = case.window / case.closed_forms[name] - 1
        return TableCell(f"{ratio * 100:+.0f} %", ratio)

    def warning(case: LossCase) -> str:
        return "not judged" if not case.judged else "" if case.within else "OUTSIDE"

    return [
        Column("loss", lambda case: f"{case.p:g}"),
        Column("RTT ms", lambda case: f"{case.rtt_s * 1e3:g}"),
        Column("simulated", lambda case: case.window, form=".1f"),
        Column(reference, lambda case: case.reference, form=".1f"),
        Column("difference", lambda case: TableCell(f"{case.error * 100:+.1f} %", case.error)),
        *(Column(name, partial(off, name)) for name in others),
        Column("losses", lambda case: case.losses),
        Column("time-outs", lambda case: case.timeouts),
        Column("", warning),
    ]


def compare(runs: Mapping[str, ComparedRun], seeds: int = 1) -> list[Table | Text]:
    """Return a table with one row per run, and notes that define the columns.

    `runs` is {protocol: run}, at least one; `seeds` how many seeds the comparison has. The runs are
    those of the first one.
    """
    first = next(iter(runs.values()))
    parts: list[Table | Text] = [_head(first, seeds=seeds)]
    if any(run.measure_s != first.measure_s for run in runs.values()):
        parts = [_head(first, f"until each run's last flow, of {_time(first.duration_s)}", seeds)]
    for name, run in runs.items():
        if run.flows and run.jain_index is None and (found := model.idle(run)):
            parts.append(Text(f"{name}: {found}", style="yellow"))
    for name, run in runs.items():
        if (at_s := run.interrupted_at_s) is not None:
            parts.append(Text(f"{name} interrupted at {_time(at_s)}", style="yellow"))
        if run.decimated is not None:
            parts.append(Text(f"{name}: {model.decimated(run.decimated)}", style="yellow"))
    rows = [(name, run.compare) for name, run in runs.items()]
    columns = model.runs(runs.values())
    parts.append(printed(columns, rows, tight=True))
    costs = [(name, cost) for name, run in runs.items() if (cost := hosts.of_run(run))]
    if costs:
        head = "RTT and limit in the window; losses of the whole run, its start included"
        parts += [
            Text(),
            Text(head),
            printed([_first("protocol"), *model.LIMITS], costs, tight=True),
        ]
    warned = {name: hosts.warnings(run) for name, run in runs.items()}
    of_all = [line for line in warned[next(iter(runs))] if all(line in w for w in warned.values())]
    parts += [Text(line, style="yellow") for line in of_all]
    for name, lines in warned.items():
        own = [f"{name}: {line}" for line in lines if line not in of_all]
        parts += [Text(line, style="yellow") for line in own]
    moved = [(name, mine) for name, mine in rows if mine.transfers]
    if moved:
        parts += [Text(), printed([columns[0], *model.MOVED], moved)]
        contents = dict.fromkeys(f.transfers.ideal for _, f in moved if f.transfers)
        parts += [Text(model.slowdown(one)) for one in contents]
    held = [(name, one) for name, mine in rows for one in mine.collectives]
    if held:
        parts += [Text(), printed([_first("protocol"), *model.COMPARED_COLLECTIVES], held)]
        parts += [Text(model.COLLECTIVES_NOTE)]
    mine = first.compare
    notes = (
        f"util. (utilization) and queue (mean, p99, max): of {one_line(mine.bottleneck)}, "
        f"{model.chosen(runs)}; drops: on all links.",
        *(_notes_of_flows(mine) if any(run.flows for run in runs.values()) else ()),
        "RTT p99: slowest flow; limited by: mean over flows; of traffic both are of the whole run.",
        "–: never, or no samples.",
    )
    return [*parts, *map(Text, (*notes, *model.names(runs)))]


def _notes_of_flows(mine: Figures) -> tuple[str, ...]:
    """Return the definitions of a comparison's columns of flows."""
    return (
        "Jain, min share: Jain's index and smallest value of rate ÷ max-min share over the flows.",
        f"settle: settling time, from a flow's start or a change of its share until its rate (mean "
        f"over {_time(mine.average_s)}) stays within 5 % of the share; slowest flow.",
        "start: start-up time, SYN to half the fair share (median, slowest flow).",
    )


def over_seeds(document: OverSeeds) -> list[Table | Text]:
    """Return tables of means and intervals over the seeds and of differences between protocols."""
    from waterfill.network import chance

    runs, rows = document.over_seeds, document.differences_over_seeds
    count = len(document.seeds)
    if count > 1 and not rows and model.all_same(runs):
        same = f"All {count} seeds give the same result, so"
        return [Text(), Text(f"{same} there are no intervals and no tests.")]
    found = model.over_seeds(runs)
    lines = [
        f"All {count} seeds, from {document.seeds[0]}: mean ± half the 95 % interval "
        "(Student's t).",
        chance.MADE_BY,
    ]
    for one in model.OVER_SEEDS:
        pairs = [row for row in rows if row.quantity == one.key]
        if pairs:
            alike = [f"{r.first} and {r.second}" for r in pairs if not r.significant]
            shown = ", ".join(alike if len(alike) <= 3 else [*alike[:3], f"{len(alike) - 3} more"])
            but = f"; not {shown}" if alike and len(alike) < len(pairs) else ""
            apart = len(pairs) - len(alike)
            lines.append(f"  {one.name}: {apart} of {len(pairs)} pairs of protocols differ{but}")
    if len(lines) > 2:
        lines[2:2] = [
            "Differences at the 5 % level (paired t-tests over the seeds, corrected for the number "
            "of pairs by Benjamini and Yekutieli):"
        ]
    return [Text(), printed(found.columns, found.rows, tight=True), *map(Text, lines)]


def effective(document: Document) -> list[Table | Text]:
    """Return tables of a checked scenario: backends, links, flows, traffic and parameters."""
    start_s, stop_s = document["measure_s"]
    parts: list[Table | Text] = [
        Text(
            f"{one_line(document['file'])}: {one_line(document['scenario'])}, "
            f"{_time(document['duration_s'])}, measured from {_time(start_s)} to {_time(stop_s)}, "
            f"seed {document['seed']}",
            style="bold",
        )
    ]
    for backend, refusal in document["backends"].items():
        text = f"{backend}: can run it" if refusal is None else f"{backend}: {refusal}"
        parts.append(Text(text, style="" if refusal is None else "yellow"))
    parts += _listed(_EFFECTIVE_LINKS, _alike(document["links"]), "links")
    if document["flows"]:
        parts += _listed(_EFFECTIVE_FLOWS, document["flows"], "flows")
    if document["traffic"]:
        parts.append(printed(_EFFECTIVE_TRAFFIC, document["traffic"]))
    if document["profile"] != "wan":
        parts.append(printed(_CONSTANTS, document["constants"]))
    for protocol, values in document["params"].items():
        if values:
            listed = ", ".join(f"{name}={_plain(value)}" for name, value in values.items())
            parts.append(Text(f"{protocol}: {listed}"))
    return parts


def _alike(links: Sequence[Document]) -> list[Document]:
    """Return the links of a table. If there are many, those that differ only in their names are one
    entry, which counts them.
    """
    if len(links) <= _MAX_LINKS:
        return list(links)
    found: dict[tuple[str, ...], list[Document]] = {}
    for link in links:
        values = tuple(str(column.value(link)) for column in _EFFECTIVE_LINKS[1:])
        found.setdefault(values, []).append(link)
    return [
        same[0] | ({"name": f"{same[0]['name']} and {len(same) - 1} more"} if same[1:] else {})
        for same in found.values()
    ]


def _buffer(link: Document) -> TableCell:
    packets = link["buffer_packets"]
    size = f"{link['buffer_bytes'] / 1e3:g} kB" if packets is None else f"{packets} packets"
    return TableCell(size, 0.0)


def _after(flow: Document) -> str | None:
    """Return the flows after which a flow starts, with its delay, or None."""
    names = flow["after"]
    if not names:
        return None
    rest = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    delay = f" + {TIME.format(flow['start_s'])}" if flow["start_s"] else ""
    return ", ".join(names[:_MAX_NAMED]) + rest + delay


def _path(source: Document) -> str:
    flows = source["flows"] or {}
    if flows.get("pairs"):
        return f"{flows['pairs']} pairs, by switches"
    routes = sum(map(len, flows.get("routes", ())))
    return f"{routes} routes" if routes else ", ".join(source["path"])


_EFFECTIVE_LINKS: Sequence[Column[Document]] = (
    Column("link", lambda link: link["name"]),
    Column("rate", lambda link: link["rate_bps"], "Mbit/s", 1e6, "g"),
    Column("delay", lambda link: link["delay_s"], "ms", 1e-3, "g", seconds=1),
    Column("buffer", _buffer),
    Column("target", lambda link: link["target"], "%", 0.01, "g"),
    Column("queue", lambda link: link["queue"]["kind"]),
)
_EFFECTIVE_FLOWS: Sequence[Column[Document]] = (
    Column("flow", lambda flow: flow["name"]),
    Column("protocol", lambda flow: flow["protocol"]),
    Column("count", lambda flow: flow["count"]),
    Column("base RTT", lambda flow: flow["base_rtt_s"], "ms", 1e-3, "g", seconds=1),
    Column("from", lambda flow: None if flow["after"] else flow["start_s"], "s", form="g"),
    Column("to", lambda flow: flow["stop_s"], "s", form="g"),
    Column("after", lambda flow: _after(flow), optional=True),
    Column("path", lambda flow: ", ".join(flow["forward"])),
)
_CONSTANTS: Sequence[Column[Document]] = (
    Column("constant", lambda row: row["key"]),
    Column("value", lambda row: row["value"]),
    Column("from", lambda row: row["from"]),
    Column("rule", lambda row: row["rule"]),
)
_EFFECTIVE_TRAFFIC: Sequence[Column[Document]] = (
    Column("traffic", lambda source: source["name"]),
    Column("kind", lambda source: source["kind"]),
    Column("rate", lambda source: source["rate_bps"], "Mbit/s", 1e6, ".2f"),
    Column("from", lambda source: source["start_s"], "s", form="g"),
    Column("to", lambda source: source["stop_s"], "s", form="g"),
    Column("path", _path),
)


def _listed(columns: Sequence[Column[Row]], rows: Sequence[Row], what: str) -> list[Table | Text]:
    """Return a table of the first rows and, if others are left, a note with their number."""
    left = len(rows) - _MAX_ROWS
    others = [Text(f"… and {left} other {what}; --json lists all.")] if left > 0 else []
    return [printed(columns, rows[:_MAX_ROWS]), *others]


def _extremes(
    columns: Sequence[Column[Row]],
    rows: Sequence[Row],
    what: str,
    ends: Mapping[str, Callable[[Row], float]],
) -> list[Table | Text]:
    """Return a table of all rows, or of the extreme ones with a note if there are many.

    `ends` are the kinds of extremes: a noun, and the key by which they come first.
    """
    if len(rows) <= _MAX_ROWS:
        return [printed(columns, rows)]
    each = MAX_LINES // len(ends)
    kept: dict[int, Row] = {}
    for key in ends.values():
        kept |= {id(row): row for row in heapq.nsmallest(each, rows, key=key)}
    listed = " and ".join(f"the {each} {end}" for end in ends)
    note = f"… and {len(rows) - len(kept)} other {what}. Listed: {listed}; --json lists all."
    return [printed(columns, list(kept.values())), Text(note)]


def maxmin(document: Document) -> list[Table | Text]:
    """Return the table of intervals, flows, exact max-min rates and bottleneck links."""
    rows: list[tuple[str, str, Document]] = []
    for interval in document["intervals"]:
        times = (f"{interval['from_s']:g}", f"{interval['to_s']:g}")
        for flow in interval["flows"] or [{"name": "–", "rate_bps": None, "bottleneck": None}]:
            rows.append((*times, flow))
            times = ("", "")
    columns: Sequence[Column[tuple[str, str, Document]]] = (
        Column("from s", lambda row: row[0]),
        Column("to s", lambda row: row[1]),
        Column("flow", lambda row: row[2]["name"]),
        Column("rate", lambda row: row[2]["rate_bps"], "Mbit/s", 1e6, ".2f"),
        Column("bottleneck", lambda row: row[2]["bottleneck"] or "–"),
    )
    return [*_listed(columns, rows, "rates"), *map(note, document["notes"])]


def note(line: str) -> Text:
    """Return a note on what an analysis does not use."""
    return Text(line, style="yellow")


def protocol_list(known: Iterable[ProtocolInfo]) -> list[Table | Text]:
    """Return a table with one row per protocol, and a note on where to find parameters."""
    columns: Sequence[Column[ProtocolInfo]] = (
        Column("protocol", lambda protocol: protocol.name),
        Column("kind", lambda protocol: TableCell(
            f"{protocol.kind},\npaced" if protocol.paced else protocol.kind)),
        Column("header", lambda protocol: protocol.header_bytes, "B"),
        Column("backends", lambda protocol: ", ".join(protocol.backends)),
        Column("summary", lambda protocol: protocol.summary),
    )  # fmt: skip
    last = Text("waterfill protocols PROTOCOL shows parameters, defaults and sources.")
    return [printed(columns, list(known)), last]


def protocols(known: Iterable[ProtocolInfo]) -> list[Table | Text]:
    """Return a line of text and a table of parameters for each protocol."""
    parts: list[Table | Text] = []
    for protocol in known:
        head = Text(protocol.name, style="bold")
        head.append(f"  {protocol.kind}, on {', '.join(protocol.backends)}", style="not bold")
        paced = "paced" if protocol.paced else "not paced"
        head.append(f", header {protocol.header_bytes} B, {paced}", style="not bold")
        head.append(f", recovery {protocol.recovery}", style="not bold")
        head.append(f". {protocol.summary}", style="not bold")
        parts.append(head)
        if protocol.params:
            parts.append(printed(_PARAMETERS, protocol.params))
    return parts


_PARAMETERS: Sequence[Column[ParamInfo]] = (
    Column("parameter", lambda param: param.name),
    Column("default", lambda param: TableCell(_plain(param.default), 0.0)),
    Column("unit", lambda param: " | ".join(param.choices) or UNITS.get(param.unit, param.unit)),
    Column("meaning", lambda param: (
        f"{param.doc} ({param.source})" if param.source else param.doc)),
)  # fmt: skip


def protocols_document(known: Iterable[ProtocolInfo]) -> list[Document]:
    """Return the document of `protocols --json`."""
    return [
        {
            "name": protocol.name,
            "kind": protocol.kind,
            "summary": protocol.summary,
            "backends": list(protocol.backends),
            "paced": protocol.paced,
            "recovery": protocol.recovery,
            "window_validation": protocol.window_validation,
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


def findings(found: Mapping[str, Sequence[Finding]]) -> list[Table | Text]:
    """Return a table with the findings of the conformance battery for each law."""
    words = {None: "reported", True: "passes", False: "FAILS"}
    columns: Sequence[Column[Finding]] = (
        Column("check", lambda finding: finding.check),
        Column("found", lambda finding: finding.found),
        Column("wanted", lambda finding: finding.wanted),
        Column("verdict", lambda finding: words[finding.ok]),
    )
    parts: list[Table | Text] = []
    for name, lines in found.items():
        parts += [Text(name, style="bold"), printed(columns, lines)]
    return parts


def differences(rows: Sequence[BackendDifference]) -> list[Table | Text]:
    """Return a table of the results on two backends side by side, or no table without rows."""
    if not rows:
        return []
    columns: list[Column[BackendDifference]] = [
        Column("protocol", lambda row: row.protocol),
        Column("quantity", lambda row: row.what),
    ]
    for place, backend in enumerate(rows[0].backends):
        columns.append(Column(backend, partial(_value, place)))
    columns.append(Column("difference", _difference))
    return [printed(columns, rows[: 5 * MAX_LINES])]


def _value(place: int, row: BackendDifference) -> TableCell:
    scale, unit = _readable(row.unit)
    value = row.values_[place]
    number = format(value / scale, ".4g") if value is not None and math.isfinite(value) else "–"
    return TableCell(f"{number}{unit}", 0.0)


def _difference(row: BackendDifference) -> TableCell:
    scale, unit = _readable(row.unit)
    change = row.difference
    if change is None:
        return NONE
    return TableCell(f"{change:+.1%}" if row.relative else f"{change / scale:+.3g}{unit}", change)


def _readable(unit: str) -> tuple[float, str]:
    """Return the scale and the name of the unit that tables use instead of this one."""
    scale, name = {"bit/s": (1e6, "Mbit/s"), "B": (1e3, "kB")}.get(unit, (1.0, unit))
    return scale, f" {name}" if name else ""


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else "–" if value is None else str(value)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
