"""The charts of one run: rates, queues, feedback, RTTs, utilisation, drops, completion times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from waterfill.analysis import transfers
from waterfill.analysis.compare import Allocation, allocation
from waterfill.analysis.plots import most_used, signal_label
from waterfill.analysis.series import Series, numbers
from waterfill.report import charts
from waterfill.report.binning import Binned, Grid, Matrix, grid_of
from waterfill.report.charts import Band, Chart, Line

if TYPE_CHECKING:
    from waterfill.runs.result import Result

# Links that a chart shows: the busiest.
MAX_LINKS = 8
# Max-min shares of more classes of flows would hide the rates.
_MAX_SHARES = 8
# Flows that a reader can add to bands by name, and the numbers that this may take on a page.
_MAX_PICKS, MAX_PICKED_NUMBERS = 400, 80_000
_MAX_CDF_POINTS = 500
_TIME = "time (s)"


@dataclass
class RunCharts:
    """The charts of a run; `prefix` begins their keys."""

    result: Result
    prefix: str = ""
    max_picked_numbers: int = MAX_PICKED_NUMBERS

    @cached_property
    def grid(self) -> Grid:
        """The intervals of all charts over time."""
        return grid_of(self.result)

    @cached_property
    def allocation(self) -> Allocation:
        """The max-min shares over time."""
        return allocation(self.result)

    @cached_property
    def flows(self) -> Binned:
        """The flows' samples by interval."""
        names = [flow["name"] for flow in self.result.summary["flows"]]
        return Binned(self.result, "flows", names, self.grid)

    @cached_property
    def links(self) -> Binned:
        """The links' samples by interval."""
        names = [link["name"] for link in self.result.summary["links"]]
        return Binned(self.result, "links", names, self.grid)

    @property
    def span(self) -> str:
        """The length of an interval as text."""
        return f"{self.grid.width_s:.3g} s"

    def all(self) -> list[Chart]:
        """Return the charts that this run has something for, in the page's order."""
        found = [self.rates(), self.queues(), *self.feedback(), self.rtts(), self.utilization(),
                 self.drops(), *self.completion()]  # fmt: skip
        return [chart for chart in found if chart is not None and (chart.lines or chart.bands)]

    def rates(self, *, most_bps: float = 0.0) -> Chart:
        """Return the rates of flows and traffic, with the max-min shares behind.

        With `most_bps` it is a small chart whose axis reaches that rate.
        """
        rates = self.flows.means("rate_bps", null_is_zero=True)
        names = [source["name"] for source in self.result.summary["traffic"]]
        traffic = Binned(self.result, "traffic", names, self.grid).means("rate_bps")
        highest = most_bps or max(charts.largest(rates), charts.largest(traffic))
        unit, label = charts.scale(highest, charts.RATES)
        shares = self._shares(unit)
        lines, bands, picks = self._of_flows(rates / unit)
        first = len(lines) + len(bands)
        sources = [
            Line(name, values, colour=first + i)
            for i, (name, values) in enumerate(zip(names, traffic / unit, strict=True))
            if np.isfinite(values).any()
        ]
        behind = ", with their max-min shares" if shares else ""
        return self._over_time(
            "rates", f"Rates of the flows{behind}", f"rate ({label})",
            [*shares, *lines, *sources], bands, picks, most=most_bps / unit,
            note=f"Means over {self.span} at the receivers{self._how(bands)}.",
        )  # fmt: skip

    def queues(self, *, link: str = "", most_bytes: float = 0.0) -> Chart:
        """Return peaks and means of the longest queues, or of one link's on a given axis."""
        peaks = self.links.peaks("queue_max_bytes")
        means = self.links.means("queue_bytes")
        unit, label = charts.scale(most_bytes or charts.largest(peaks), charts.VOLUMES)
        rows = [self.links.names.index(link)] if link else self._busiest(peaks)
        lines = [
            line
            for colour, row in enumerate(rows)
            for line in (
                Line(f"{self.links.names[row]}, peak", peaks[row] / unit, colour),
                Line(f"{self.links.names[row]}, mean", means[row] / unit, colour, "thin"),
            )
        ]
        return self._over_time(
            "queues", f"Queue of {link}" if link else "Queues", f"queue ({label})", lines,
            most=most_bytes / unit,
            note=f"Peaks and means of each {self.span}{self._left_out(rows)}.",
        )  # fmt: skip

    def feedback(self) -> list[Chart]:
        """Return a chart for each column that routers announce or sources compute."""
        found = []
        for which, binned in (("links", self.links), ("flows", self.flows)):
            table = self.result.links if which == "links" else self.result.flows
            for column in [name for name in table.column_names if "." in name]:
                low, high = binned.lows(column), binned.peaks(column)
                if not np.isfinite(high).any():
                    continue
                found.append(self._signal(which, column, binned, low, high))
        return found

    def _signal(self, which: str, column: str, binned: Binned, low: Matrix, high: Matrix) -> Chart:
        title = f"{column}, {'announced by links' if which == 'links' else 'at the flows'}"
        key = f"{which}-{column.replace('.', '-')}"
        bands: list[Band] = []
        if which == "flows":
            lines, bands, picks = self._of_flows(binned.means(column))
            note = f"Means over {self.span}{self._how(bands)}."
            return self._over_time(
                key, title, column, lines, bands, picks, note=note, from_zero=False
            )
        there = [row for row in range(len(high)) if np.isfinite(high[row]).any()]
        rows = self._most_used(there)
        between = np.empty((len(rows), 2 * self.grid.count))
        between[:, 0::2], between[:, 1::2] = low[rows], high[rows]
        lines = [Line(binned.names[row], between[i], i) for i, row in enumerate(rows)]
        fewer = len(there) > len(rows)
        left_out = f", of the {len(rows)} busiest of {len(there)} link directions" if fewer else ""
        note = f"Smallest and largest value of each {self.span}{left_out}."
        x = np.repeat(self.grid.middles_s, 2)
        x[0::2] -= self.grid.width_s / 4
        x[1::2] += self.grid.width_s / 4
        label = signal_label(column)
        return Chart(self.prefix + key, title, _TIME, label, x, lines, note=note, from_zero=False)

    def rtts(self) -> Chart:
        """Return the flows' RTTs."""
        values = self.flows.means("rtt_s")
        unit, label = charts.scale(charts.largest(values), charts.TIMES)
        lines, bands, picks = self._of_flows(values / unit)
        return self._over_time(
            "rtts", "RTTs of the flows", f"RTT ({label})", lines, bands, picks,
            note=f"Means over {self.span}{self._how(bands)}.", from_zero=False,
        )  # fmt: skip

    def utilization(self) -> Chart:
        """Return the utilisation of the busiest links."""
        values = 100 * self.links.means("utilization")
        rows = self._busiest(values)
        lines = [Line(self.links.names[row], values[row], i) for i, row in enumerate(rows)]
        return self._over_time(
            "utilization", "Utilisation of the links", "utilisation (%)", lines,
            note=f"Means over {self.span}{self._left_out(rows)}.",
        )  # fmt: skip

    def drops(self) -> Chart | None:
        """Return the packets dropped or lost on links; None where there are none."""
        dropped = self.links.sums("drops") + self.links.sums("lost")
        rows = [row for row in range(len(dropped)) if dropped[row].any()]
        if not rows:
            return None
        most = sorted(rows, key=lambda row: -dropped[row].sum())[:MAX_LINKS]
        rows = [row for row in rows if row in most]
        lines = [Line(self.links.names[row], dropped[row], i) for i, row in enumerate(rows)]
        return self._over_time(
            "drops", "Drops and losses", "packets", lines,
            note=f"Packets in each {self.span}, dropped by queues or lost on the link"
            f"{self._left_out(rows)}.",
        )  # fmt: skip

    def completion(self) -> list[Chart]:
        """Return the distributions of completion times and slowdowns where flows have a size."""
        if not self.result.network.has_transfers:
            return []
        return distributions({"": self.result}, self.prefix)

    def highest_bps(self) -> float:
        """Return the largest rate that the chart of rates shows."""
        return charts.largest(self.flows.means("rate_bps", null_is_zero=True))

    def highest_bytes(self, link: str) -> float:
        """Return the largest queue of a link."""
        return charts.largest(self.links.peaks("queue_max_bytes")[self.links.names.index(link)])

    # --- parts -----------------------------------------------------------------------------

    def _over_time(
        self, key: str, title: str, y_label: str, lines: Sequence[Line],
        bands: Sequence[Band] = (), picks: dict[str, Series] | None = None, *, note: str,
        from_zero: bool = True, most: float = 0.0,
    ) -> Chart:  # fmt: skip
        return Chart(
            self.prefix + key, title, _TIME, y_label, self.grid.middles_s, lines, bands,
            note=note, from_zero=from_zero, small=most > 0, y_max=1.05 * most or None,
            picks=picks or {},
        )  # fmt: skip

    def _of_flows(self, values: Matrix) -> tuple[list[Line], list[Band], dict[str, Series]]:
        """Return lines of few flows, else bands by group with lines to add by name."""
        names = self.flows.names
        if len(names) <= charts.MAX_LINES:
            there = [row for row in range(len(names)) if np.isfinite(values[row]).any()]
            colours = charts.colours_of(names)
            return [Line(names[row], values[row], colours[row]) for row in there], [], {}
        groups: dict[str, list[int]] = {}
        for row, flow in enumerate(self.result.summary["flows"]):
            groups.setdefault(flow["group"], []).append(row)
        if len(groups) > charts.MAX_BANDS:
            groups = {"all flows": list(range(len(names)))}
        labelled = {f"{name} ({len(rows)} flows)": rows for name, rows in groups.items()}
        count = min(_MAX_PICKS, self.max_picked_numbers // values.shape[1])
        picks = dict(zip(names[:count], values[:count], strict=False))
        return [], charts.bands_of(labelled, values, names), picks

    def _how(self, bands: Sequence[Band]) -> str:
        if not bands:
            return ""
        return "; line: median of the flows' means, bands: the middle 80 % of them, and all"

    def _shares(self, unit: float) -> list[Line]:
        if any(flow.get("count", 1) > 1 for flow in self.result.summary["flows"]):
            return []  # entries of a large fluid run: the allocation is of single flows
        classes = self.allocation.classes
        if len(classes) > _MAX_SHARES:
            return []
        names: list[list[str]] = [[] for _ in classes]
        for flow, of in zip(self.result.summary["flows"], self.allocation.of_flow, strict=True):
            names[of].append(flow["name"])
        found = []
        for spans, members in zip(classes, names, strict=True):
            values = spans.at(self.grid.middles_s)
            if members and values.any():
                others = f" and {len(members) - 1} others" if len(members) > 1 else ""
                name = f"max-min share of {members[0]}{others}"
                drawn = np.where(values > 0, values / unit, np.nan)
                found.append(Line(name, drawn, kind="share"))
        return found

    def _busiest(self, values: Matrix) -> list[int]:
        """Return the rows with the largest values, in order; nearly idle ones are left out."""
        peaks = [charts.largest(row) for row in values]
        highest = max(peaks, default=0.0)
        worth = [row for row, peak in enumerate(peaks) if peak > 0.05 * highest]
        kept = sorted(worth, key=lambda row: -peaks[row])[:MAX_LINKS]
        return [row for row in worth if row in kept]

    def _most_used(self, rows: Sequence[int]) -> list[int]:
        """Return up to as many of these links as a chart has, the busiest if it has fewer."""
        names = [self.links.names[row] for row in rows]
        kept = most_used(self.result, names, MAX_LINKS)
        return [rows[names.index(name)] for name in kept]

    def _left_out(self, rows: Sequence[int]) -> str:
        total = len(self.links.names)
        if len(rows) == total:
            return ""
        many = f"{len(rows)} busiest" if len(rows) > 1 else "busiest"
        return f", of the {many} of {total} link directions"


def distributions(results: dict[str, Result], prefix: str = "") -> list[Chart]:
    """Return the distributions of completion times and slowdowns, a line per run and source.

    Runs without a name are one run, whose sources are lines of their own.
    """
    found = []
    for column, title, label in (
        ("completion_s", "Completion times", "completion time (s)"),
        ("slowdown", "Slowdowns", "slowdown (completion time / ideal time)"),
    ):
        lines: list[Line] = []
        for run, result in results.items():
            table = result.transfers
            sources = table["source"].to_pylist()
            parts = {run: table}
            if not run:
                names = list(dict.fromkeys(sources))
                keep = np.array(sources)
                parts = {n: table.filter(keep == n) for n in names[:MAX_LINKS]}
            for name, part in parts.items():
                cdf = transfers.cdf(part, column)  # type: ignore[arg-type]
                x, share = numbers(cdf, column), numbers(cdf, "share")
                if len(x):
                    thin = np.unique(np.linspace(0, len(x) - 1, _MAX_CDF_POINTS).astype(int))
                    many = f"{name} ({part.num_rows} flows)"
                    lines.append(Line(many, share[thin], len(lines), "step", x=x[thin]))
        if lines:
            spread = [float(line.x[-1] / max(line.x[0], 1e-12)) for line in lines
                      if line.x is not None]  # fmt: skip
            found.append(
                Chart(
                    f"{prefix}cdf-{column}",
                    title,
                    label,
                    "share of flows",
                    np.zeros(0),
                    lines,
                    note=f"Distributions of up to {_MAX_CDF_POINTS} points; unfinished flows have "
                    "no value, so that a line may end below 1.",
                    log_x=max(spread) > 20,
                    y_max=1.0,
                )
            )
    return found
