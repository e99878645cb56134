"""Figures of runs and comparisons: the charts of `run_charts`, drawn by `draw`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from waterfill.analysis import draw, run_charts
from waterfill.analysis.charts import Chart
from waterfill.analysis.documents import OverSeeds
from waterfill.analysis.run_charts import PRINT, RunCharts
from waterfill.errors import InputError, nearest, shown

if TYPE_CHECKING:
    import pyarrow as pa

    from waterfill.analysis.drawing import Drawing
    from waterfill.analysis.shares import Allocation
    from waterfill.runs.result import Result

# Protocols side by side; with more columns the time axes are too short.
_MAX_COLUMNS = 3
# The figures that `plot` draws.
KINDS = ("overview", "rates", "queues", "links")
# Link directions from which on a run has a figure of all links: the other figures show eight.
_MANY_LINKS = 17


def plot(result: Result, kind: str = "overview") -> Drawing:
    """Plot an `overview` of a run, its `rates`, its `queues` or all its `links`. The run may be new
    or loaded.

    Returns a matplotlib Figure, which notebooks show; `figure.savefig("rates.pdf")` writes it.
    Raises InputError for another kind.

    >>> import waterfill
    >>> one = waterfill.Scenario("one", duration="2 s", protocol="maxnet")
    >>> result = one.link("l", "a", "b", "10 Mbit/s", "5 ms").flow("f", "a", "b").run()
    >>> len(waterfill.plot(result, "rates").axes)
    1
    """
    if kind not in KINDS:
        raise InputError("plot", "kind", f"unknown figure {shown(kind)}{nearest(kind, KINDS)}")
    if kind == "overview":
        return overview(result)
    if kind == "links":
        return links({result.summary.scenario: result})
    return rates(result) if kind == "rates" else queues(result)


def rates(result: Result, *, average_s: float = 1.0, title: str = "") -> Drawing:
    """Plot the rates of flows and traffic, averaged over intervals of `average_s` (s)."""
    found = RunCharts(result, PRINT, average_s=average_s)
    return _column(result, [found.rates()], title)


def queues(
    result: Result, *, average_s: float = 0.0, links: Sequence[str] | None = None
) -> Drawing:
    """Plot the queue peaks per `average_s` of these links, or by default of the longest queues."""
    for link in links or ():
        result.check_sampled(link)
    found = RunCharts(result, PRINT, average_s=average_s)
    return _column(result, [found.queues(links=links or ())])


def has_many_links(result: Result) -> bool:
    """Return True for a run with more links than its other figures show."""
    return len(result.network.sampled_links) >= _MANY_LINKS


def links(results: Mapping[str, Result]) -> Drawing:
    """Plot the distribution of the queues of all links, and the utilization of each over time, by
    name of protocol or run.

    Up to three runs have a heat map; the distribution has all.
    """
    tails = replace(run_charts.queue_tails(results), title="")
    first = next(iter(results.values()))
    drawn, of_all = len(first.sampled_links), len(first.network.links)
    counted = f"{drawn} of {of_all}" if drawn < of_all else f"{of_all}"
    if len(results) == 1:
        tails = replace(tails, lines=[replace(line, name="") for line in tails.lines])
    heats = [
        RunCharts(result, PRINT).heat(name if len(results) > 1 else "")
        for name, result in list(results.items())[:_MAX_COLUMNS]
    ]
    combined = f"queues: {tails.method}; utilization: {heats[0].method or 'each sample'}"
    panels = [replace(chart, method="") for chart in (tails, *heats)]
    return draw.figure(
        panels, columns=len(panels), size=(1.6 + 3.6 * len(panels), 4.6), share="", legend="below",
        title=f"{first.summary.scenario}: queues and utilization of all links",
        caption=f"{counted} link directions; {combined}",
    )  # fmt: skip


def overview(result: Result) -> Drawing:
    """Plot rates, queues, utilization and each protocol's first signal, in up to 100 intervals.

    A signal is what routers announce, such as a price, a rate or a load, else what senders keep.
    """
    found = RunCharts(result, PRINT)
    panels = [found.rates(), found.queues(), found.utilization()]
    return _column(result, [*panels, *found.signals(first=True)])


def _column(result: Result, panels: Sequence[Chart], title: str = "") -> Drawing:
    """Draw charts over time, one above the other."""
    return draw.figure(
        [replace(chart, title="") for chart in panels], size=(8.0, 3.8 + 2.0 * len(panels[1:])),
        title=title or result.summary.scenario, heights=[1.5] + [1.0] * len(panels[1:]),
    )  # fmt: skip


def comparison(
    results: Mapping[str, Result], link: str, allocations: Mapping[str, Allocation]
) -> Drawing:
    """Plot the rates and max-min shares of several runs, and the queue of `link`, on one scale."""
    runs = {name: RunCharts(result, PRINT) for name, result in results.items()}
    for name, run in runs.items():
        run.allocation = allocations[name]
    columns = min(len(runs), _MAX_COLUMNS)
    pairs = [
        (
            replace(top, title=name),
            replace(below, title="", lines=[replace(below.lines[0], name="")]),
        )
        for name, (top, below) in run_charts.side_by_side(runs, link).items()
    ]
    rows = -(-len(pairs) // columns)
    scenario = next(iter(results.values())).summary.scenario
    return draw.figure(
        [chart for pair in pairs for chart in pair], columns=columns, stack=2,
        size=(2.2 + 2.7 * columns, 1.2 + 3.6 * rows), heights=[2.2, 1], share="both",
        legend="below", title=f"{scenario}: rates, and queue of {link}",
        caption=f"queue of {link}",
    )  # fmt: skip


def over_seeds(document: OverSeeds) -> Drawing:
    """Plot means with 95 % intervals and the value of each seed, with one panel per quantity.

    A quantity that a seed lacks has no mean.
    """
    panels = [replace(chart, title="") for chart in run_charts.over_seeds(document)]
    columns = min(len(panels), _MAX_COLUMNS)
    height = 0.9 + 0.28 * len(document.over_seeds)
    size = (3.4 * columns + 0.6, 0.5 + height * -(-len(panels) // columns))
    caption = f"{len(document.seeds)} seeds: mean, 95 % interval, and each seed (grey)"
    return draw.figure(panels, columns=columns, size=size, caption=caption, share="")


def slowdowns(tables: Mapping[str, pa.Table]) -> Drawing:
    """Plot the slowdowns of transfers (`Result.transfers`), by name of protocol or run.

    Left the distribution, then the median and the 99th percentile by size, in up to ten bins of
    equally many flows. Unfinished flows have no slowdown: a distribution ends below 1 by them.
    """
    panels = [*run_charts.distributions(tables)[-1:], *run_charts.slowdowns_by_size(tables)]
    counts = {name: f"{table.num_rows:,}" for name, table in tables.items()}
    numbers = " and ".join(f"{count} of {name}" for name, count in counts.items())
    if len(set(counts.values())) == 1 < len(counts):
        numbers = f"{next(iter(counts.values()))} of each"
    caption = f"slowdown: completion time ÷ ideal time; flows: {numbers}"
    return draw.figure(
        [_of_names(chart, tables) for chart in panels], columns=len(panels), size=(11.0, 4.4),
        share="", legend="below", caption=caption,
    )  # fmt: skip


def _of_names(chart: Chart, tables: Mapping[str, pa.Table]) -> Chart:
    """Return a chart of transfers with one legend entry per table and short labels."""
    counted = {f"{name} ({table.num_rows} flows)": name for name, table in tables.items()}
    lines = [replace(line, name=counted.get(line.name, line.name)) for line in chart.lines]
    x_label = "slowdown" if chart.x_label.startswith("slowdown") else chart.x_label
    return replace(chart, title="", lines=lines, x_label=x_label)
