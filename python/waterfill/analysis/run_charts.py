"""Charts of runs: rates, queues, signals, RTTs, utilization, drops and completion times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from waterfill.analysis import charts, shares, transfers
from waterfill.analysis.binning import Binned, Grid, Matrix, grid_of, grid_with
from waterfill.analysis.charts import Band, Chart, Heat, Line, Units
from waterfill.analysis.documents import Estimate, OverSeeds
from waterfill.analysis.series import Series, numbers
from waterfill.analysis.shares import Allocation
from waterfill.analysis.tables import OVER_SEEDS
from waterfill.network import protocols

if TYPE_CHECKING:
    import pyarrow as pa

    from waterfill.runs.result import Result

# Links that a chart shows: the busiest.
_MAX_LINKS = 8
# Max-min shares of more classes of flows would hide the rates.
_MAX_SHARES = 8
# Flows that a reader can add to bands by name.
_MAX_PICKS = 400
_MAX_CDF_POINTS = 500
# Bins of sizes in a chart of slowdowns.
_SIZE_BINS = 10


@dataclass(frozen=True)
class Medium:
    """Capacity of a medium (print, page or screen): limits on intervals and lines, and units.

    A chart over time has up to `intervals` intervals, and at least `fewest` however long the RTTs
    are. Up to `lines` flows are lines, more are bands by group; more groups than `bands` are one
    band. Volumes are in packets where there are no units for them. A larger unit of rates is for
    values of at least `least_rate` of it.
    """

    intervals: int
    fewest: int
    lines: int
    bands: int
    rates: Units
    volumes: Units
    means: bool = False
    """True if a chart shows a queue's means next to its peaks."""
    least_rate: float = 1.0
    every_share: bool = False
    """True if many different max-min shares are one band; otherwise they are left out."""


PRINT = Medium(
    100, 20, 12, 8, charts.RATES[1:], charts.VOLUMES[1:3], least_rate=10.0, every_share=True
)
PAGE = Medium(400, 50, 24, 6, charts.RATES, charts.VOLUMES, means=True)
SCREEN = Medium(240, 240, charts.COLOURS, charts.COLOURS, charts.RATES[1:2], ())


@dataclass
class RunCharts:
    """The charts of one run. Their keys begin with `prefix`.

    `average_s` sets the length of intervals over time; 0 draws each sample. `max_picked_numbers`
    limits the series that a reader can add by name.
    """

    result: Result
    medium: Medium
    prefix: str = ""
    average_s: float | None = None
    max_picked_numbers: int = 0
    _colours: dict[int, int] = field(default_factory=dict, init=False)

    @cached_property
    def grid(self) -> Grid:
        """The intervals of all charts over time."""
        if self.average_s is None:
            return grid_of(self.result, self.medium.intervals, self.medium.fewest)
        return grid_with(self.result, self.average_s)

    @cached_property
    def allocation(self) -> Allocation:
        """The max-min allocation of the run over time."""
        return shares.allocation(self.result)

    @cached_property
    def flows(self) -> Binned:
        """Samples of the flows, by interval."""
        names = [flow.name for flow in self.result.summary.flows]
        return Binned(self.result, "flows", names, self.grid)

    @cached_property
    def links(self) -> Binned:
        """Samples of the links, by interval."""
        return Binned(self.result, "links", self.result.sampled_links, self.grid)

    def all(self) -> list[Chart]:
        """Return all charts for which this run has data, in the order of a page."""
        found = [self.rates(), self.queues(), *self.signals(), self.rtts(), self.utilization(),
                 self.drops(), *self.completion()]  # fmt: skip
        return [chart for chart in found if chart is not None and (chart.lines or chart.bands)]

    def rates(self, *, with_shares: bool = True, max_bps: float = 0.0) -> Chart:
        """Return the chart of rates of flows and traffic, with max-min shares in the background.

        With `max_bps` it is a small chart whose axis reaches that rate.
        """
        rates = self.flows.means("rate_bps", null_is_zero=True)
        names = [source.name for source in self.result.summary.traffic]
        traffic = Binned(self.result, "traffic", names, self.grid).means("rate_bps")
        highest = max_bps or max(charts.largest(rates), charts.largest(traffic))
        unit, label = charts.scale(highest, self.medium.rates, least=self.medium.least_rate)
        behind = self._shares(unit) if with_shares else []
        lines, bands, picks = self._of_flows(rates / unit, names)
        colours = charts.colours_of([*self.flows.names, *names])[len(self.flows.names) :]
        if bands:
            used = max([band.colour for band in bands] + [line.colour for line in lines]) + 1
            colours = list(range(used, used + len(names)))
        sources = [
            Line(name, values, colour)
            for name, values, colour in zip(names, traffic / unit, colours, strict=True)
            if np.isfinite(values).any()
        ]
        what = ", with their max-min shares" if behind else ""
        return self._over_time(
            "rates", f"Rates of the flows{what}", f"rate ({label})", [*behind, *lines, *sources],
            bands, picks, method=self._means, more=f" at the receivers{_how(bands)}",
            top=max_bps / unit, arrivals=self._arrivals() if bands else (),
        )  # fmt: skip

    def queues(self, *, links: Sequence[str] = (), max_bytes: float = 0.0) -> Chart:
        """Return the chart of queue peaks, of the longest queues or of the given `links`."""
        peaks = self.links.peaks("queue_max_bytes")
        packets = [(float(self.result.network.packet_bytes), "packets")]
        units = self.medium.volumes or packets
        unit, label = charts.scale(max_bytes or charts.largest(peaks), units)
        there = [self.links.names.index(link) for link in links if link in self.links.names]
        rows = there if links else self._busiest(peaks)
        means = self.links.means("queue_bytes") if self.medium.means else peaks
        lines: list[Line] = []
        for row, colour in zip(rows, self._colours_of(rows), strict=True):
            name = self.links.names[row]
            if not self.medium.means:
                lines.append(Line(name, peaks[row] / unit, colour))
                continue
            lines.append(Line(f"{name}, peak", peaks[row] / unit, colour))
            lines.append(Line(f"{name}, mean", means[row] / unit, colour, "thin"))
        what = "queue" if self.medium.means else "peak queue"
        found = "peaks and means" if self.medium.means else "peaks"
        return self._over_time(
            "queues", f"Queue of {links[0]}" if len(links) == 1 else "Queues", f"{what} ({label})",
            lines, method=f"{found} of each {self._span}" if self._span else "",
            more=self._left_out(rows), top=max_bytes / unit,
        )  # fmt: skip

    def signals(self, *, first: bool = False) -> list[Chart]:
        """Return a chart for each signal that routers announce or sources compute.

        With `first` one per protocol: the first that its routers have, else its sources.
        """
        found: list[Chart] = []
        seen: set[str] = set()
        for which, binned in (("links", self.links), ("flows", self.flows)):
            table = self.result.links if which == "links" else self.result.flows
            for column in table.column_names:
                signal = self._signal_of(column)
                if signal is None or (first and signal.law in seen):
                    continue
                means = binned.means(column)
                if np.isfinite(means).any():
                    seen.add(signal.law)
                    found.append(self._signal(which, column, signal, binned, means))
        return found

    def _signal_of(self, column: str) -> protocols.Signal | None:
        """Return the signal that a column records, or None for a column of no law.

        The cohabitation module counts as a law.
        """
        if column.startswith("cohabit_"):
            return protocols.Signal("cohabit", column.removeprefix("cohabit_"), "")
        return protocols.signals().get(column) or self._own_signals.get(column)

    @cached_property
    def _own_signals(self) -> Mapping[str, protocols.Signal]:
        """Signals of the run's laws in Python, by column."""
        laws = self.result.summary.laws or {}
        return {
            protocols.column(law, name): protocols.Signal(law, name, unit)
            for law, entry in laws.items()
            for name, unit in (entry.signals or {}).items()
        }

    def _signal(
        self, which: str, column: str, signal: protocols.Signal, binned: Binned, means: Matrix
    ) -> Chart:
        key = f"{which}-{signal.law}-{signal.name}"
        unit, text = 1.0, "" if signal.unit == "1" else signal.unit
        if text == "bit/s":
            unit, text = charts.scale(
                charts.largest(np.abs(means)), self.medium.rates, least=self.medium.least_rate
            )
        # A law keeps its own name, which may have an underscore.
        name = f"{signal.law} {signal.name.replace('_', ' ')}"
        label = f"{name} ({text})" if text else name
        title = f"{name}, {'announced by links' if which == 'links' else 'at the flows'}"
        if which == "flows":
            lines, bands, picks = self._of_flows(means / unit)
            return self._over_time(
                key, title, label, lines, bands, picks, method=self._means, more=_how(bands),
                from_zero=False,
            )  # fmt: skip
        there = [row for row in range(len(means)) if np.isfinite(means[row]).any()]
        rows = self._most_used(there)
        low, high = binned.lows(column) / unit, binned.peaks(column) / unit
        lines = [
            Line(binned.names[row], means[row] / unit, colour, low=low[row], high=high[row])
            for row, colour in zip(rows, self._colours_of(rows), strict=True)
        ]
        fewer = len(there) > len(rows)
        left_out = f", of the {len(rows)} busiest of {len(there)} link directions" if fewer else ""
        return self._over_time(
            key, title, label, lines, method=self._means, from_zero=False,
            more=f"; shaded: from the smallest to the largest value{left_out}",
        )  # fmt: skip

    def rtts(self) -> Chart:
        """Return the chart of the flows' RTTs."""
        values = self.flows.means("rtt_s")
        unit, label = charts.scale(charts.largest(values), charts.TIMES)
        lines, bands, picks = self._of_flows(values / unit)
        return self._over_time(
            "rtts", "RTTs of the flows", f"RTT ({label})", lines, bands, picks,
            method=self._means, more=_how(bands), from_zero=False,
        )  # fmt: skip

    def utilization(self) -> Chart:
        """Return the chart of the utilization of the busiest links."""
        values = 100 * self.links.means("utilization")
        rows = self._busiest(values)
        pairs = zip(rows, self._colours_of(rows), strict=True)
        lines = [Line(self.links.names[row], values[row], colour) for row, colour in pairs]
        return self._over_time(
            "utilization", "Utilization of the links", "utilization (%)", lines,
            method=self._means, more=self._left_out(rows),
        )  # fmt: skip

    def heat(self, name: str = "") -> Chart:
        """Return the heat map of the utilization of all links over time."""
        unit, label = self._time
        times = [f"{middle / unit:.3g}" for middle in self.grid.middles_s]
        values = 100 * self.links.means("utilization")
        return Chart(
            f"{self.prefix}heat", name, f"time ({label})", "link",
            heat=Heat("utilization (%)", times, self.links.names, values, 0.0, 100.0),
            method=self._means,
        )  # fmt: skip

    def drops(self) -> Chart | None:
        """Return the chart of packets dropped or lost on links, or None if there are none."""
        dropped = self.links.sums("drops") + self.links.sums("lost")
        rows = [row for row in range(len(dropped)) if dropped[row].any()]
        if not rows:
            return None
        kept = sorted(rows, key=lambda row: -dropped[row].sum())[: self._max_links]
        rows = [row for row in rows if row in kept]
        pairs = zip(rows, self._colours_of(rows), strict=True)
        lines = [Line(self.links.names[row], dropped[row], colour) for row, colour in pairs]
        return self._over_time(
            "drops", "Drops and losses", "packets", lines, method=f"packets in each {self._span}",
            more=f", dropped by queues or lost on the link{self._left_out(rows)}",
        )  # fmt: skip

    def completion(self) -> list[Chart]:
        """Return the distributions of completion times and slowdowns, if any flows have a size."""
        if not self.result.network.has_transfers:
            return []
        return distributions(by_source(self.result.transfers), self.prefix)

    def highest_bps(self) -> float:
        """Return the maximum rate (bit/s) in the chart of rates."""
        return charts.largest(self.flows.means("rate_bps", null_is_zero=True))

    def highest_bytes(self, link: str) -> float:
        """Return the maximum queue length of a link (bytes)."""
        if link not in self.links.names:
            return 0.0  # it has no time series
        return charts.largest(self.links.peaks("queue_max_bytes")[self.links.names.index(link)])

    # --- parts -----------------------------------------------------------------------------

    @property
    def _span(self) -> str:
        """Length of an interval as text, empty if each sample is drawn."""
        if self.average_s == 0:
            return ""
        unit, label = (1.0, "s") if self._time[0] == 1 else charts.time_unit(self.grid.width_s)
        return f"{self.grid.width_s / unit:.3g} {label}"

    @property
    def _time(self) -> tuple[float, str]:
        """Unit of the axes of time."""
        return charts.time_unit(float(self.result.summary.duration_s))

    @property
    def _means(self) -> str:
        return f"means of {self._span}" if self._span else ""

    @property
    def _max_links(self) -> int:
        return min(_MAX_LINKS, self.medium.lines)

    def _over_time(
        self, key: str, title: str, y_label: str, lines: Sequence[Line],
        bands: Sequence[Band] = (), picks: Mapping[str, Series] | None = None, *, method: str,
        more: str, from_zero: bool = True, top: float = 0.0, arrivals: Sequence[float] = (),
    ) -> Chart:  # fmt: skip
        unit, label = self._time
        scaled = [line if line.x is None else replace(line, x=line.x / unit) for line in lines]
        return Chart(
            self.prefix + key, title, f"time ({label})", y_label, self.grid.middles_s / unit,
            scaled, bands,
            method=method, more=more, from_zero=from_zero, small=top > 0, picks=picks or {},
            x_range=(0.0, float(self.result.summary.duration_s) / unit),
            y_range=(0.0, 1.05 * top) if top else (None, None),
            arrivals=np.array(arrivals) / unit,
        )  # fmt: skip

    def _of_flows(
        self, values: Matrix, others: Sequence[str] = ()
    ) -> tuple[list[Line], list[Band], dict[str, Series]]:
        """Return lines for few flows, or bands by group with lines that a reader can add by name.

        `others` are further lines of the chart: a flow named after a colour takes it from them.
        """
        names = self.flows.names
        there = [row for row in range(len(names)) if np.isfinite(values[row]).any()]
        if len(names) <= self.medium.lines:
            colours = charts.colours_of([*names, *others])
            return [Line(names[row], values[row], colours[row]) for row in there], [], {}
        groups: dict[str, list[int]] = {}
        for row, flow in enumerate(self.result.summary.flows):
            groups.setdefault(flow.group, []).append(row)
        if len(groups) > self.medium.bands:  # as imported networks have: a group per flow
            groups = {"all flows": list(range(len(names)))}
        count = min(_MAX_PICKS, self.max_picked_numbers // values.shape[1])
        picks = dict(zip(names[:count], values[:count], strict=False))
        lines, bands = [], []
        for band in charts.bands_of(groups, values, names):
            if band.count == 1:
                lines.append(Line(band.name, band.median, band.colour))
            else:
                bands.append(band)
        return lines, bands, picks

    def _arrivals(self) -> list[float]:
        """Return the times (s) after the start at which flows start, each once per interval."""
        end_s = float(self.result.summary.duration_s)
        starts = sorted(flow.start_s for flow in self.result.summary.flows)
        there = [start_s for start_s in starts if 0 < start_s < end_s]
        of_interval = {int(start_s / self.grid.width_s): start_s for start_s in reversed(there)}
        return sorted(of_interval.values())

    def _shares(self, unit: float) -> list[Line]:
        if any(flow.count > 1 for flow in self.result.summary.flows):
            return []  # entries of a large fluid run: the allocation is of single flows
        classes = self.allocation.classes
        names: list[list[str]] = [[] for _ in classes]
        for flow, of in zip(self.result.summary.flows, self.allocation.of_flow, strict=True):
            names[of].append(flow.name)
        there = [(one, mine) for one, mine in zip(classes, names, strict=True)
                 if mine and one.share_bps.any()]  # fmt: skip
        if len(there) > _MAX_SHARES:
            every = [spans for spans, _ in there]
            return [self._range_of_shares(every, unit)] if self.medium.every_share else []
        middles_s, half_s = self.grid.middles_s, self.grid.width_s / 2
        found = []
        for spans, members in there:
            from_s, to_s, share_bps = spans
            if len(from_s) > self.grid.count:
                from_s, to_s, share_bps = (
                    middles_s - half_s,
                    middles_s + half_s,
                    spans.at(middles_s),
                )
            others = f" and {len(members) - 1} others" if len(members) > 1 else ""
            drawn = np.repeat(np.where(share_bps > 0, share_bps / unit, np.nan), 2)
            x = np.column_stack([from_s, to_s]).ravel()
            name = f"max-min share of {members[0]}{others}"
            found.append(Line(name, drawn, role="share", x=x))
        return found

    def _range_of_shares(self, classes: Sequence[shares.Spans], unit: float) -> Line:
        """Return the median, smallest and largest max-min share over the classes of flows."""
        found = np.array([spans.at(self.grid.middles_s) for spans in classes]) / unit
        found[found <= 0] = np.nan
        low, median, high = np.full((3, self.grid.count), np.nan)
        there = np.isfinite(found).any(axis=0)
        low[there], high[there] = np.nanmin(found[:, there], 0), np.nanmax(found[:, there], 0)
        median[there] = np.nanmedian(found[:, there], 0)
        return Line("max-min shares", median, role="share", low=low, high=high)

    def _colours_of(self, links: Sequence[int]) -> list[int]:
        """Return the links' colours: different ones, and the same in all charts if possible."""
        found: list[int] = []
        for link in links:
            place = self._colours.setdefault(link, len(self._colours))
            while place % (2 * charts.COLOURS) in found:
                place += 1
            found.append(place % (2 * charts.COLOURS))
        return found

    def _busiest(self, values: Matrix) -> list[int]:
        """Return the indexes of the links with the largest values, in order, without nearly idle
        links.
        """
        peaks = [charts.largest(row) for row in values]
        highest = max(peaks, default=0.0)
        # Reverse links carry acknowledgements only.
        worth = [row for row, peak in enumerate(peaks) if peak > 0.05 * highest]
        kept = sorted(worth, key=lambda row: -peaks[row])[: self._max_links]
        return [row for row in worth if row in kept]

    def _most_used(self, rows: Sequence[int]) -> list[int]:
        """Return as many of these links as a chart can show, preferably the most utilized ones.

        The utilization is that of the summary's window, where bottlenecks are at their target.
        """
        if len(rows) <= self._max_links:
            return list(rows)
        of_all = self.result.summary.links
        used = [of_all[i].utilization or 0.0 for i in self.result.network.sampled_links]
        return sorted(rows, key=lambda row: -used[row])[: self._max_links]

    def _left_out(self, rows: Sequence[int]) -> str:
        total = len(self.links.names)
        if len(rows) == total:
            return ""
        many = f"{len(rows)} busiest" if len(rows) > 1 else "busiest"
        return f", of the {many} of {total} link directions"


def _how(bands: Sequence[Band]) -> str:
    if not bands:
        return ""
    return "; line: median of the flows' means, bands: the middle 80 % of them, and all"


# --- several runs ------------------------------------------------------------------------------


def side_by_side(runs: Mapping[str, RunCharts], link: str) -> dict[str, list[Chart]]:
    """Return small charts of rates and of one link's queue for each run, on a common scale."""
    max_bps = max(run.highest_bps() for run in runs.values()) or 1.0
    max_bytes = max(run.highest_bytes(link) for run in runs.values()) or 1.0
    return {
        name: [
            replace(chart, picks={}, key=f"small-{chart.key}")
            for chart in (run.rates(max_bps=max_bps), run.queues(links=[link], max_bytes=max_bytes))
        ]
        for name, run in runs.items()
    }


def queue_tails(results: Mapping[str, Result]) -> Chart:
    """Return the share of samples of all links in which the queue is longer than a length."""
    queues = {name: np.sort(numbers(run.links, "queue_bytes")) for name, run in results.items()}
    queues = {name: found[np.isfinite(found)] for name, found in queues.items()}
    largest = max((float(found[-1]) for found in queues.values() if len(found)), default=0.0)
    unit, label = charts.scale(largest, charts.VOLUMES)
    lines = []
    for colour, (name, found) in enumerate(queues.items()):
        if not len(found):
            continue
        lengths, first = np.unique(found, return_index=True)
        longer = 1 - np.append(first[1:], len(found)) / len(found)
        share = np.where(longer > 0, longer, np.nan)
        ranks = np.geomspace(1, len(lengths), _MAX_CDF_POINTS)  # most points in the tail
        thin = np.unique(len(lengths) - ranks.astype(int))
        lines.append(Line(name, share[thin], colour, "step", x=lengths[thin] / unit))
    sample_s = max((run.network.sample_of_links_s for run in results.values()), default=1.0)
    size, word = charts.time_unit(sample_s)
    return Chart(
        "queue-tails", "Queues of all links", f"queue ({label})", "share of samples above it",
        lines=lines, log_y=True,
        method=f"means of each sample of {sample_s / size:.3g} {word}, over the whole run",
    )  # fmt: skip


def by_source(table: pa.Table) -> dict[str, pa.Table]:
    """Return a run's transfers as one table per source, for the first eight sources."""
    sources = np.array(table["source"].to_pylist())
    names = list(dict.fromkeys(sources.tolist()))[:_MAX_LINKS]
    return {name: table.filter(sources == name) for name in names}


def distributions(tables: Mapping[str, pa.Table], prefix: str = "") -> list[Chart]:
    """Return the distributions of completion times and slowdowns, with one line per table.

    Unfinished flows have no value: a distribution ends below 1 by them.
    """
    found = []
    took_s = [charts.largest(numbers(table, "completion_s")) for table in tables.values()]
    unit, unit_name = charts.time_unit(max(took_s, default=0.0) or 1.0)
    for column, title, label, size in (
        ("completion_s", "Completion times", f"completion time ({unit_name})", unit),
        ("slowdown", "Slowdowns", "slowdown (completion time / ideal time)", 1.0),
    ):
        lines: list[Line] = []
        for name, table in tables.items():
            cdf = transfers.cdf(table, column)  # type: ignore[arg-type]
            x, share = numbers(cdf, column) / size, numbers(cdf, "share")
            if len(x):
                thin = np.unique(np.linspace(0, len(x) - 1, _MAX_CDF_POINTS).astype(int))
                many = f"{name} ({table.num_rows} flows)"
                lines.append(Line(many, share[thin], len(lines), "step", x=x[thin]))
        if lines:
            found.append(Chart(
                f"{prefix}cdf-{column}", title, label, "share of flows", lines=lines,
                more=f"distributions of up to {_MAX_CDF_POINTS} points; unfinished flows have no "
                "value, so that a line may end below 1",
                log_x=any(charts.wide([line.x[0], line.x[-1]]) for line in lines
                          if line.x is not None),
                y_range=(0.0, 1.0), from_zero=True,
            ))  # fmt: skip
    return found


def slowdowns_by_size(tables: Mapping[str, pa.Table]) -> list[Chart]:
    """Return charts of median and 99th-percentile slowdowns by size, in equally filled bins."""
    medians: list[Line] = []
    tails: list[Line] = []
    for colour, (name, table) in enumerate(tables.items()):
        sizes, slowdown = numbers(table, "size_bytes"), numbers(table, "slowdown")
        there = np.isfinite(slowdown)
        order = np.argsort(sizes[there], kind="stable")
        sizes, slowdown = sizes[there][order], slowdown[there][order]
        if not len(sizes):
            continue
        bins = np.array_split(np.arange(len(sizes)), max(1, min(_SIZE_BINS, len(sizes))))
        parts = [part for part in bins if len(part)]
        middles = np.array([np.median(sizes[part]) for part in parts])
        spreads = [transfers.spread(slowdown[part]) for part in parts]
        p50, p99 = (np.array([s[key] for s in spreads], dtype=np.float64) for key in ("p50", "p99"))
        medians.append(Line(name, p50, colour, "marked", x=middles))
        tails.append(Line(name, p99, colour, "marked", x=middles))
    return [
        Chart(
            f"by-size-{key}", f"{title} slowdowns by size", "size (bytes)", f"{title} slowdown",
            lines=lines,
            # An axis without values has no logarithm.
            log_x=bool(lines), log_y=bool(lines),
            more=f"up to {_SIZE_BINS} bins of equally many flows",
        )
        for key, title, lines in (("p50", "median", medians), ("p99", "99th percentile", tails))
    ]  # fmt: skip


_NOWHERE = Estimate(values_=[], mean=None, interval=None)


def over_seeds(document: OverSeeds) -> list[Chart]:
    """Return a chart per quantity with each run's mean, its 95 % interval and each seed's value.

    A quantity that a seed lacks has no mean.
    """
    runs = document.over_seeds
    found = []
    for one in OVER_SEEDS:
        key, label, unit = one.key, one.axis, one.size
        of_run = [run.get(key, _NOWHERE) for run in runs.values()]
        seeds = [(place, value / unit) for place, mine in enumerate(of_run)
                 for value in mine.values_ if value is not None]  # fmt: skip
        if not (one.drawn and seeds):
            continue
        x, y = np.array(seeds).T
        lines = [Line("each seed", y, role="sample", x=x)]
        for place, (name, mine) in enumerate(zip(runs, of_run, strict=True)):
            if mine.interval is not None:
                low, high = (np.array([end / unit]) for end in mine.interval)
                mean, at = np.array([(mine.mean or 0.0) / unit]), np.array([float(place)])
                lines.append(Line(name, mean, place, "points", at, low, high))
        found.append(Chart(f"seeds-{key}", label, "", label, lines=lines, ticks=list(runs)))
    return found
