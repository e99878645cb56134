"""Tables as data: columns with units and formats, for terminals and pages.

`waterfill.cli.tables` prints them, `waterfill.report` and the studio put them on pages. A column
of the same quantity is stated once, here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from waterfill.analysis import hosts
from waterfill.contract.network import LinkSpec
from waterfill.contract.summary import (
    Decimation,
    FlowSummary,
    LimitedBy,
    LinkSummary,
    Summary,
    SwitchSummary,
    TrafficSummary,
)
from waterfill.errors import one_line
from waterfill.runs.result import last_end_s
from waterfill.scenario.units import TIME, VOLUME, percent

if TYPE_CHECKING:
    from waterfill.analysis.collectives import CollectiveResult
    from waterfill.analysis.documents import Estimate, Figures
    from waterfill.analysis.hosts import HostFigures
    from waterfill.analysis.transfers import IncastSummary, Overall, SizeBin
    from waterfill.contract.network import Network

Row = TypeVar("Row")
TablePlace: TypeAlias = Literal["terminal", "page"]


class TableCell(NamedTuple):
    """One table cell: its text, the number to sort by (None for its text), and its style class."""

    text: str
    number: float | None = None
    kind: str = ""


NONE = TableCell("–", -math.inf)


@dataclass(frozen=True)
class Column(Generic[Row]):
    """One table column: its name and unit, and the function that returns a row's value.

    Numbers are divided by `size`, the column's unit in units of the value. `form` is the format on
    a terminal, where decimals align, or a function that chooses it; `page` is the format on a page.
    Numbers without a form are counts. A value may be a finished `TableCell`. `short` is the
    terminal's heading if the name is too long, `where` the only place that has the column. An
    `optional` column without values is left out. `seconds` is that of a duration's value, whose
    unit then suits the rows (`fitted`).
    """

    name: str
    value: Callable[[Row], Any]
    unit: str = ""
    size: float = 1.0
    form: str | Callable[[float], str] = ""
    page: str = ".4g"
    short: str = ""
    where: TablePlace | None = None
    optional: bool = False
    seconds: float = 0.0

    def heading(self, place: TablePlace) -> str:
        """Return the column's name with its unit."""
        if place == "page":
            return f"{self.name} ({self.unit})" if self.unit else self.name
        return "\n".join(filter(None, (self.short or self.name, self.unit)))

    def cell(self, row: Row, place: TablePlace) -> TableCell:
        """Return the cell of a row in this column."""
        value = self.value(row)
        if isinstance(value, TableCell):
            return value
        if value is None:
            return NONE
        if isinstance(value, str):
            return TableCell(one_line(value) if place == "terminal" else value)
        if not self.form:
            return TableCell(f"{value:,}" if place == "page" else str(value), float(value))
        if math.isnan(value):
            return NONE
        if math.isinf(value):
            return TableCell("never" if place == "page" else "–", value)
        form = self.form if place == "terminal" else self.page
        chosen = form(value) if callable(form) else form
        return TableCell(format(value / self.size, chosen), float(value))


@dataclass(frozen=True)
class Table(Generic[Row]):
    """One table, whose first column names the rows."""

    key: str
    title: str
    columns: Sequence[Column[Row]]
    rows: Sequence[Row]
    note: str = ""

    def shown(self, place: TablePlace) -> list[Column[Row]]:
        """Return the columns that a terminal or a page shows."""
        there = [
            column for column in self.columns
            if column.where in (None, place)
            and not (column.optional and not any(map(column.value, self.rows)))
        ]  # fmt: skip
        return fitted(there, self.rows)

    def text(self) -> str:
        """Return the table as plain text: a line per row, numbers aligned at the right."""
        columns = self.shown("terminal")
        heads = [column.heading("terminal").split("\n") for column in columns]
        deep = max(map(len, heads), default=0)
        lines = [[head[i] if i < len(head) else "" for head in heads] for i in range(deep)]
        cells = [[column.cell(row, "terminal") for column in columns] for row in self.rows]
        lines += [[cell.text for cell in row] for row in cells]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        left = [all(row[i].number is None for row in cells) for i in range(len(columns))]
        texts = [
            "  ".join(
                cell.ljust(width) if at else cell.rjust(width)
                for cell, width, at in zip(line, widths, left, strict=True)
            ).rstrip()
            for line in lines
        ]
        return "\n".join(filter(None, [self.title, *texts]))


_SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
# Columns in seconds have two decimals, the others one.
_LEAST = {"s": 0.05}
_MOST = 1e4
_FAST_BPS = 1e10


def fitted(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> list[Column[Row]]:
    """Return the columns with a unit for durations in which the shortest one has digits, and with
    Gbit/s where no rate is below 10 Gbit/s.

    Columns in one unit get one unit.
    """
    columns = _fast(columns, rows)
    durations_s: dict[str, list[float]] = {}
    for column in columns:
        if column.seconds:
            found = [column.value(row) for row in rows]
            mine = durations_s.setdefault(column.unit, [])
            mine += [v * column.seconds for v in found if v is not None and 0 < v < math.inf]
    units = {unit: _time_unit(unit, found) for unit, found in durations_s.items()}
    return [
        replace(
            column, unit=units[column.unit], size=_SECONDS[units[column.unit]] / column.seconds,
            form=_duration_form(column, units[column.unit]),
        )
        if column.seconds else column
        for column in columns
    ]  # fmt: skip


def _fast(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> list[Column[Row]]:
    """Return the columns with rates in Gbit/s if all rates but 0 are at least `_FAST_BPS`."""
    rates = [column for column in columns if column.unit == "Mbit/s" and column.size == 1e6]
    found = [column.value(row) for column in rates for row in rows]
    known = [value for value in found if isinstance(value, float) and 0 < value < math.inf]
    if not known or min(known) < _FAST_BPS:
        return list(columns)
    return [
        replace(column, unit="Gbit/s", size=1e9) if column in rates else column
        for column in columns
    ]


def _time_unit(unit: str, found_s: Sequence[float]) -> str:
    """Return the unit in which to show these durations, instead of the usual one if need be."""
    if not found_s:
        return unit
    names, low_s, high_s = list(_SECONDS), min(found_s), max(found_s)
    if high_s >= _MOST * _SECONDS[unit] and low_s >= _LEAST["s"]:
        return "s"
    place = names.index(unit)
    if low_s < _LEAST.get(unit, 1.0) * _SECONDS[unit]:
        while place + 1 < len(names) and low_s < _SECONDS[names[place]]:
            place += 1
    while place and high_s >= 10 * _MOST * _SECONDS[names[place]]:
        place -= 1
    return names[place]


def _duration_form(column: Column[Row], unit: str) -> Callable[[float], str]:
    """Return the function that chooses a duration's format, with a digit for short ones."""
    size = _SECONDS[unit] / column.seconds
    usual = str(column.form)
    if usual.endswith("f"):
        usual = ".2f" if unit == "s" else ".1f"
    least = 0.05 if usual == ".1f" else 0.005

    def form(value: float) -> str:
        shown = value / size
        if usual.endswith("f"):
            return usual if shown >= least or not shown else ".2g"
        return ".0f" if usual == ".3g" and shown >= 999.5 else usual

    return form


# --- runs --------------------------------------------------------------------------------------


class LinkRow(NamedTuple):
    """A link of a run: its measurements, and its specification if known."""

    measured: LinkSummary
    spec: LinkSpec | None = None


def _ratio(flow: FlowSummary) -> float | None:
    rate, share = flow.rate_bps, flow.max_min_bps
    return rate / share if rate is not None and share else None


def _named(flow: FlowSummary) -> str:
    count = flow.count
    return f"{flow.name} ×{count}" if count > 1 else flow.name


def rate_form(rate_bps: float) -> str:
    """Return the format of a rate in Mbit/s: without decimals where they would be cut off."""
    return ".0f" if rate_bps >= 1e10 else ".2f"


Hosts: TypeAlias = "tuple[str, HostFigures]"
"""The name of a flow, group or run, and the figures of its flows' hosts."""


def _largest(limits: LimitedBy | None) -> TableCell | None:
    if limits is None:
        return None
    name, share = hosts.largest(limits)
    return TableCell(f"{name} {percent(share)}", share)


def _losses(
    value: Callable[[str], Callable[[Row], Any]], where: TablePlace | None = None
) -> tuple[Column[Row], ...]:
    """Return the columns of what loss recovery cost; those with zeros only are left out.

    `value` is given a key of `HostFigures`, and returns the function that reads a row's value.
    """
    there = partial(Column, where=where, optional=True)
    return (
        there("loss", value("loss_rate"), "%", 0.01, ".3g"),
        there("retransmissions", value("retransmissions"), short="retrans-\nmissions"),
        there("resent", value("resent_bytes"), "kB", 1e3, ".1f"),
        there("spurious", value("spurious_retransmissions")),
        there("time-outs", value("timeouts")),
        there("longest recovery", value("longest_recovery_rtts"), "RTTs", form=".1f",
              short="longest\nrecovery"),
    )  # fmt: skip


def _of_flow(key: str) -> Callable[[Any], Any]:
    if key == "longest_recovery_rtts":
        return lambda flow: flow.longest_recovery and flow.longest_recovery.rtts
    return lambda flow: flow.get(key)


_MESSAGES: Sequence[Column[Hosts]] = (
    Column("messages", lambda row: row[1].messages_completed, optional=True),
    Column("message p50", lambda row: row[1].message_p50_ms, "ms", form=".1f", optional=True,
           short="message\np50", seconds=1e-3),
    Column("message p99", lambda row: row[1].message_p99_ms, "ms", form=".1f", optional=True,
           short="p99", seconds=1e-3),
    Column("stalled", lambda row: row[1].stalled_s, "s", form=".2f", optional=True, seconds=1),
)  # fmt: skip
LOSSES: Sequence[Column[Hosts]] = _losses(lambda key: lambda row: row[1][key])
LIMITS: Sequence[Column[Hosts]] = (
    Column("RTT p99", lambda row: row[1].rtt_p99_ms, "ms", form=".1f", optional=True, seconds=1e-3),
    Column("limited by", lambda row: _largest(row[1].limited_by), optional=True),
    *LOSSES,
    *_MESSAGES,
)
"""Columns of the hosts of several flows together."""


FLOWS: Sequence[Column[FlowSummary]] = (
    Column("flow", _named),
    Column("protocol", lambda flow: flow.protocol),
    Column("rate", lambda flow: flow.rate_bps, "Mbit/s", 1e6, rate_form),
    Column("max-min", lambda flow: flow.max_min_bps, "Mbit/s", 1e6, rate_form),
    Column("rate / max-min", _ratio, form=".3f", page=".3f", where="page"),
    Column("goodput", lambda flow: flow.goodput_bps, "Mbit/s", 1e6, rate_form),
    Column("RTT mean", lambda flow: flow.rtt_ms.mean, "ms", form=".1f", seconds=1e-3),
    Column("RTT p99", lambda flow: flow.rtt_ms.p99, "ms", form=".1f", short="p99", seconds=1e-3),
    Column("limited by", lambda flow: _largest(flow.limited_by), optional=True),
    *_losses(_of_flow, where="page"),
    Column("completed", lambda flow: flow.completed_s, "s", form=".2f", where="page", seconds=1),
)


def _playback(key: str) -> Callable[[FlowSummary], Any]:
    return lambda flow: flow.playback and flow.playback[key]


APPLICATIONS: Sequence[Column[FlowSummary]] = (
    Column("application of", _named),
    Column("written", lambda flow: flow.messages and flow.messages.written),
    Column("completed", lambda flow: flow.messages and flow.messages.completed),
    Column("time mean", lambda flow: flow.messages and flow.messages.completion_ms.mean, "ms",
           form=".1f", seconds=1e-3),
    Column("time p50", lambda flow: flow.messages and flow.messages.completion_ms.p50, "ms",
           form=".1f", short="p50", seconds=1e-3),
    Column("time p99", lambda flow: flow.messages and flow.messages.completion_ms.p99, "ms",
           form=".1f", short="p99", seconds=1e-3),
    Column("start-up", _playback("startup_s"), "s", form=".2f", optional=True, seconds=1),
    Column("stalls", _playback("stalls"), optional=True),
    Column("stalled", _playback("stalled_s"), "s", form=".2f", optional=True, seconds=1),
)  # fmt: skip
"""Columns of the flows that have an application."""


def with_application(flows: Sequence[FlowSummary]) -> list[FlowSummary]:
    """Return the flows that have an application."""
    return [flow for flow in flows if flow.messages is not None]


MESSAGES = (
    "time: from the writing of a message to its last byte at the receiver, of messages written in "
    "the window; the other columns: whole run."
)


def without_shares(network: Network) -> str:
    """Return why the table of flows has no max-min shares, or an empty text if it has them."""
    if not network.has_switched or not network.flows:
        return ""
    return "No max-min shares: switches choose the links (ecmp), so no path is known before a run."


def idle(summary: Summary) -> str:
    """Return why the table of flows has no rates, or an empty text if each flow has one."""
    flows = summary.flows
    count = sum(flow.rate_bps is None for flow in flows)
    if not count:
        return ""
    waiting = sum(flow.start_s >= flow.stop_s for flow in flows)
    never = "" if not waiting else (
        f" {waiting} of {len(flows)} flows did not start: flows that they follow did not complete."
    )  # fmt: skip
    start_s, stop_s = summary.measure_s
    start, stop = (TIME.format(float(f"{time_s:.6g}")) for time_s in (start_s, stop_s))
    window = f"the window from {start} to {stop}"
    if count < len(flows):
        return f"–: not active in {window}.{never}"
    first_s = min(flow.start_s for flow in flows)
    last_s = last_end_s((flow.stop_s, flow.completed_s) for flow in flows)
    return (
        f"No flow was active in {window}: they ran from {TIME.format(first_s)} to "
        f'{TIME.format(last_s)}; set measure = ["{TIME.format(first_s)}", "{TIME.format(last_s)}"].'
    )


LINKS: Sequence[Column[LinkRow]] = (
    Column("link", lambda link: link.measured.name),
    Column("rate", lambda link: link.spec and link.spec.rate_bps, "Mbit/s", 1e6, "g",
           where="page"),
    Column("delay", lambda link: link.spec and link.spec.delay_s, "ms", 1e-3, "g", where="page",
           seconds=1),
    Column("utilization", lambda link: link.measured.utilization, "%", 0.01, ".2f", ".2f"),
    Column("queue mean", lambda link: link.measured.queue_bytes.mean, "kB", 1e3, ".1f"),
    Column("queue p99", lambda link: link.measured.queue_bytes.p99, "kB", 1e3, ".1f",
           short="p99"),
    Column("queue max", lambda link: link.measured.queue_bytes.max, "kB", 1e3, ".1f",
           short="max"),
    Column("drops", lambda link: link.measured.drops),
    Column("marks", lambda link: link.measured.marks, optional=True),
    Column("paused", lambda link: link.measured.paused_s, "ms", 1e-3, ".3f", optional=True,
           seconds=1),
    Column("lost", lambda link: link.measured.lost),
)  # fmt: skip

SWITCHES: Sequence[Column[SwitchSummary]] = (
    Column("switch", lambda switch: switch.name),
    Column("buffer", lambda switch: switch.buffer_bytes, "kB", 1e3, "g"),
    Column("used mean", lambda switch: switch.used_mean_bytes, "kB", 1e3, ".1f"),
    Column("used max", lambda switch: switch.used_max_bytes, "kB", 1e3, ".1f", short="max"),
)
"""Columns of the switches whose queues share a buffer."""

TRAFFIC: Sequence[Column[TrafficSummary]] = (
    Column("traffic", lambda source: source.name),
    Column("kind", lambda source: source.kind),
    Column("rate", lambda source: source.rate_bps, "Mbit/s", 1e6, ".2f"),
    Column("packets sent", lambda source: source.packets_sent, short="packets\nsent"),
    Column("packets received", lambda source: source.packets_received, short="\nreceived"),
    Column("flows started", lambda source: source.flows_started, where="page"),
    Column("flows completed", lambda source: source.flows_completed, where="page"),
    Column("limited by", lambda source: _largest(source.limited_by), optional=True),
    *_losses(_of_flow, where="page"),
)


def decimated(found: Decimation) -> str:
    """Return the note on a run whose series have a longer sampling interval than the scenario's."""
    wanted, each = TIME.format(found.asked_s), TIME.format(found.sample_s)
    limit = VOLUME.format(found.budget_bytes)
    return f"samples: every {each} instead of {wanted}, so that the series need at most {limit}"


def _size(bin: SizeBin) -> TableCell:
    above, to = bin.above_bytes, bin.to_bytes
    if to is not None:
        return TableCell(f"to {VOLUME.format(to)}", to)
    return TableCell(f"above {VOLUME.format(above)}" if above else "all", math.inf)


TRANSFERS: Sequence[Column[SizeBin]] = (
    Column("flows by size", _size),
    Column("flows", lambda size: size.flows),
    Column("unfinished", lambda size: size.unfinished, short="un-\nfinished"),
    Column("slowdown mean", lambda size: size.slowdown.mean, form=".2f", where="page"),
    Column("slowdown p50", lambda size: size.slowdown.p50, form=".2f", short="slowdown\np50"),
    Column("slowdown p90", lambda size: size.slowdown.p90, form=".2f", where="page"),
    Column("slowdown p95", lambda size: size.slowdown.p95, form=".2f", short="p95"),
    Column("slowdown p99", lambda size: size.slowdown.p99, form=".2f", short="p99"),
    Column("slowdown p99.9", lambda size: size.slowdown.p999, form=".2f", short="p99.9"),
    Column("completion p50", lambda size: size.completion_s.p50, "ms", 1e-3, ".3g",
           short="time p50", seconds=1),
    Column("completion p99", lambda size: size.completion_s.p99, "ms", 1e-3, ".3g",
           short="p99", seconds=1),
)  # fmt: skip

INCASTS: Sequence[Column[IncastSummary]] = (
    Column("incast", lambda of: of.source),
    Column("arrivals", lambda of: of.arrivals),
    Column("flows each", lambda of: of.flows),
    Column("unfinished", lambda of: of.unfinished),
    Column("last flow p50", lambda of: of.completion_s.p50, "ms", 1e-3, ".4g",
           short="last p50", seconds=1),
    Column("last flow p99", lambda of: of.completion_s.p99, "ms", 1e-3, ".4g", short="p99",
           seconds=1),
    Column("last flow max", lambda of: of.slowest_s, "ms", 1e-3, ".4g", short="max", seconds=1),
)  # fmt: skip

COLLECTIVES: Sequence[Column[CollectiveResult]] = (
    Column("collective", lambda of: of.name),
    Column("operation", lambda of: of.kind),
    Column("hosts", lambda of: of.hosts),
    Column("messages", lambda of: of.messages, where="page"),
    Column("unfinished", lambda of: of.unfinished),
    Column("completion", lambda of: of.completion_s, "ms", 1e-3, ".4g", seconds=1),
    Column("least", lambda of: of.ideal_s, "ms", 1e-3, ".4g", seconds=1),
    Column("bus bandwidth", lambda of: of.bus_bps, "Gbit/s", 1e9, ".4g", short="bus"),
    Column("at least time", lambda of: of.ideal_bus_bps, "Gbit/s", 1e9, ".4g", where="page"),
    Column("slowest ÷ median", lambda of: of.straggler, form=".2f", short="straggler"),
)  # fmt: skip
COLLECTIVES_NOTE = (
    "least: each message alone, in the algorithm's order; bus: data that a host has to send ÷ "
    "completion; straggler: slowest message ÷ median, largest of all steps."
)

# Of several runs, whose rows begin with the protocol: what the law decides.
COMPARED_COLLECTIVES: Sequence[Column[tuple[str, CollectiveResult]]] = [
    Column(**{**vars(column), "value": lambda row, of=column: of.value(row[1])})
    for column in COLLECTIVES
    if column.name not in ("operation", "hosts", "messages")
]

_CONTENTS: Mapping[str, str] = {
    "handshake": "",
    "mixed": "both with the handshake of flows that have one, ",
    "one-way": "both from the first data to the last byte at the receiver, ",
    "rtt": "both from the first data to the last acknowledgement, ",
}


def slowdown(contents: str) -> str:
    """Return the note under a table of slowdowns. `contents` is `Result.slowdown_contents`."""
    return (
        f"slowdown: completion time ÷ ideal time on the empty network, {_CONTENTS[contents]}with "
        "the rates and delays of the run's start, of completed flows."
    )


# --- comparisons -------------------------------------------------------------------------------

Compared: TypeAlias = "tuple[str, Figures]"
"""A run's name and its comparison figures."""


def _kilo(value: float) -> str:
    # Without decimals above 1 MB: the table must fit 80 columns.
    return ".1f" if value < 1e6 else ".0f"


_OF_LINKS: Sequence[Column[Compared]] = (
    Column("run", lambda run: run[0], short="protocol"),
    Column("utilization", lambda run: run[1].utilization, "%", 0.01, ".2f", ".2f", "util."),
    Column("queue mean", lambda run: run[1].queue_bytes.mean, "kB", 1e3, _kilo, short="queue"),
    Column("queue p99", lambda run: run[1].queue_bytes.p99, "kB", 1e3, _kilo, short="p99"),
    Column("queue max", lambda run: run[1].queue_bytes.max, "kB", 1e3, _kilo, short="max"),
    Column("drops", lambda run: run[1].drops),
)  # fmt: skip
_OF_FLOWS: Sequence[Column[Compared]] = (
    Column("Jain's index of rate / share", lambda run: run[1].jain_index_of_shares, form=".4f",
           page=".4f", short="Jain"),
    Column("smallest rate / share", lambda run: run[1].share_ratio.worst, form=".3f", page=".3f",
           short="min\nshare"),
    Column("largest rate / share", lambda run: run[1].share_ratio.most, form=".3f", page=".3f",
           where="page"),
    Column("settling, slowest", lambda run: run[1].settling_s.worst, "s", form=".2f",
           short="settle", seconds=1),
    Column("start-up, median", lambda run: run[1].start_up_s.median, "s", form=".2f",
           short="start", seconds=1),
    Column("start-up, slowest", lambda run: run[1].start_up_s.worst, "s", form=".2f",
           short="slowest", seconds=1),
)  # fmt: skip


def runs(summaries: Iterable[Summary]) -> Sequence[Column[Compared]]:
    """Return the columns of a table of runs; those of flows only where a run has a flow."""
    return [*_OF_LINKS, *(_OF_FLOWS if any(one.flows for one in summaries) else ())]


def of_run(column: Column[Hosts]) -> Column[Compared]:
    """Return a column of hosts for a page's table of runs."""

    def value(run: Compared) -> Any:
        return None if run[1].hosts is None else column.value((run[0], run[1].hosts))

    return Column(**{**vars(column), "value": value, "optional": True})


def _completed(run: Compared) -> TableCell:
    moved = run[1].transfers
    if moved is None:
        return NONE
    done = moved.flows - moved.unfinished
    return TableCell(f"{done:,} of {moved.flows:,}", float(done))


def _moved(value: Callable[[Overall], float | None]) -> Callable[[Compared], float | None]:
    return lambda run: None if run[1].transfers is None else value(run[1].transfers)


MOVED: Sequence[Column[Compared]] = (
    Column("completed", _completed, where="page"),
    Column("flows", _moved(lambda moved: moved.flows), where="terminal"),
    Column("unfinished", _moved(lambda moved: moved.unfinished), where="terminal"),
    Column("completion p50", _moved(lambda moved: moved.completion_s.p50), "ms", 1e-3, ".3g",
           short="time p50", seconds=1),
    Column("completion p99", _moved(lambda moved: moved.completion_s.p99), "ms", 1e-3, ".3g",
           short="p99", seconds=1),
    Column("slowdown p50", _moved(lambda moved: moved.slowdown.p50), form=".2f",
           short="slowdown\np50"),
    Column("slowdown p99", _moved(lambda moved: moved.slowdown.p99), form=".2f", short="p99"),
)  # fmt: skip


_NAMES = {
    "reno": "reno is Reno without selective acknowledgements; hosts of today have them: sack.",
    "bbr": "bbr is BBR version 1 of 2017 as in Linux; the draft alone: params.bbr.linux = false.",
}


def names(runs: Iterable[str]) -> list[str]:
    """Return notes on the protocols of these runs whose names may mean another one to readers."""
    protocols = {run.partition("@")[0] for run in runs}
    return [note for name, note in _NAMES.items() if name in protocols]


def chosen(runs: Mapping[str, Summary]) -> str:
    """Return why a comparison shows the link that it shows: see `waterfill.analysis.compare`."""
    flows = [flow for run in runs.values() for flow in run.flows]
    if all(flow.max_min_bps is None for flow in flows):
        return "the link with the highest utilization over all runs"
    return "the bottleneck of most flow-seconds over all runs"


@dataclass(frozen=True)
class Quantity:
    """A quantity compared over seeds: its key, name, heading, label and unit."""

    key: str
    name: str
    short: str
    label: str
    unit: str = ""
    size: float = 1.0
    form: str = ".2f"
    drawn: bool = False
    """True if the figure of the seeds has a panel for the quantity."""
    optional: bool = False
    """True if the quantity is left out where it is zero in all runs."""

    @property
    def axis(self) -> str:
        """Label of an axis for the quantity, with its unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


OVER_SEEDS = (
    Quantity("utilization", "utilization", "util.", "utilization of the bottleneck", "%", 0.01,
             drawn=True),
    Quantity("queue_bytes.mean", "queue", "queue", "mean queue", "kB", 1e3, ".1f", drawn=True),
    Quantity("queue_bytes.p99", "queue p99", "p99", "queue p99", "kB", 1e3, ".1f"),
    Quantity("drops", "drops", "drops", "drops", form=".1f"),
    Quantity("loss_rate", "loss", "loss", "lost packets", "%", 0.01, ".3g", optional=True),
    Quantity("resent_bytes", "resent", "resent", "resent data", "kB", 1e3, ".1f", optional=True),
    Quantity("timeouts", "time-outs", "time-\nouts", "time-outs", form=".1f", optional=True),
    Quantity("jain_index_of_shares", "Jain", "Jain", "Jain's index of rate / share", form=".4f",
             drawn=True),
    Quantity("share_ratio.worst", "min share", "min\nshare", "smallest rate / max-min share",
             form=".3f", drawn=True),
    Quantity("settling_s.worst", "settle", "settle", "settling time, slowest flow", "s",
             drawn=True),
    Quantity("start_up_s.median", "start", "start", "start-up, median", "s"),
    Quantity("slowdown.p50", "slowdown p50", "slow-\ndown", "slowdown, median"),
    Quantity("slowdown.p99", "slowdown p99", "p99", "slowdown, 99th percentile", drawn=True),
)  # fmt: skip


def over_seeds(runs: Mapping[str, Mapping[str, Estimate]], note: str = "") -> Table[Any]:
    """Return the table of means and intervals over the seeds, with one row per run."""
    there = set(next(iter(runs.values())))
    columns: list[Column[tuple[str, Mapping[str, Estimate]]]] = [
        Column("run", lambda run: run[0], short="protocol")
    ]
    for one in OVER_SEEDS:
        if one.key in there and (
            not one.optional or any(run[one.key].mean for run in runs.values())
        ):
            columns += [
                Column(one.label, _interval(one, "terminal"), one.unit, short=one.short,
                       where="terminal"),
                Column(one.label, _interval(one, "page"), one.unit, where="page"),
            ]  # fmt: skip
    return Table("over-seeds", "Over all seeds", columns, list(runs.items()), note)


def all_same(runs: Mapping[str, Mapping[str, Estimate]]) -> bool:
    """Return True if all seeds of each run gave the same values."""
    return all(len(set(found.values_)) == 1 for run in runs.values() for found in run.values())


def _interval(
    one: Quantity, place: TablePlace
) -> Callable[[tuple[str, Mapping[str, Estimate]]], TableCell]:
    """Return the function that formats a quantity's mean with its 95 % interval."""

    def cell(run: tuple[str, Mapping[str, Estimate]]) -> TableCell:
        found = run[1].get(one.key)
        if found is None or found.mean is None:
            return NONE
        mean, span = found.mean, found.interval
        if place == "page":
            text = f"{mean / one.size:.4g}"
            if span is not None:
                low, high = (end / one.size for end in span)
                text += f" ({low:.4g} to {high:.4g})"
            return TableCell(text, mean)
        text = format(mean / one.size, one.form)
        if span is not None:
            half = max(mean - span[0], span[1] - mean)
            text += f"\n±{format(half / one.size, one.form)}"
        return TableCell(text, mean)

    return cell
