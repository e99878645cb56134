"""Plots that claims.toml can name: figures of papers with their own labels and axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from waterfill.analysis import draw, plots, series
from waterfill.analysis.charts import BLUE, ORANGE, Chart, Guide, Line, colours_of
from waterfill.analysis.series import Series, numbers
from waterfill.contract.record import Record
from waterfill.papers.measures.base import Of
from waterfill.papers.measures.signals import Whose, sampled_column
from waterfill.papers.measures.single import SINGLE
from waterfill.theory import plots as theory_plots
from waterfill.theory.maxnet import Gains

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from waterfill.runs.result import Result, Which

X = float | int | str

_TIME = "time (s)"


@dataclass(frozen=True)
class Plot:
    """One plot that claims.toml can name: its function, and the kind of its first argument.

    As for `Measure`: one run, all runs by name, or nothing.
    """

    function: Callable[..., Figure]
    of: Of = "run"


def _panel(title: str, x_label: str, y_label: str, lines: Sequence[Line], **more: Any) -> Chart:
    return Chart(title, title, x_label, y_label, lines=lines, **more)


def _one(chart: Chart, width: float = 7.0, height: float = 3.4) -> Figure:
    return draw.figure([chart], size=(width, height))


def _means(
    result: Result, which: Which, columns: tuple[str, float], average_s: float,
    labels: Mapping[str, str],
) -> list[Line]:  # fmt: skip
    """Return a line of means for each flow or link in `labels` (name: label)."""
    column, unit = columns
    found = []
    colours = colours_of(list(labels)) if which == "flows" else list(range(len(labels)))
    for (name, label), colour in zip(labels.items(), colours, strict=True):
        rows = result.samples(which, name)
        x, y = series.intervals(numbers(rows, "time_s"), numbers(rows, column), average_s)
        found.append(Line(label, y / unit, colour, x=x))
    return found


def rates_of(
    result: Result,
    *,
    flows: list[str],
    title: str = "",
    labels: list[str] | None = None,
    most_bps: float = 0.0,
) -> Figure:
    """Draw the rates of these flows as means over 1 s. `most_bps` limits the axis."""
    named = dict(zip(flows, labels or flows, strict=False))
    lines = _means(result, "flows", ("rate_bps", 1e6), 1.0, named)
    ends = (0.0, result.summary.duration_s)
    return _one(_panel(title or result.summary.scenario, _TIME, "rate (Mbit/s)", lines,
                       x_range=ends, y_range=(0.0, most_bps / 1e6 or None)))  # fmt: skip


def utilizations(result: Result, *, links: list[str], title: str = "") -> Figure:
    """Draw the utilization of these links as means over 1 s."""
    named = dict(zip(links, links, strict=True))
    lines = _means(result, "links", ("utilization", 0.01), 1.0, named)
    ends = (0.0, result.summary.duration_s)
    return _one(_panel(title or result.summary.scenario, _TIME, "utilization (%)", lines,
                       x_range=ends, y_range=(0.0, 105.0)))  # fmt: skip


class SignalLine(Record):
    """One line of a signal panel: a column of a flow or link, and its run if there are several.

    `average_s` draws means.
    """

    which: Whose
    name: str
    column: str
    label: str
    run: str | None = None
    average_s: float = 0.0


class SignalPanel(Record):
    """One panel of signals over time. `unit` is the value of 1 on the axis."""

    lines: list[SignalLine]
    y_label: str
    title: str = ""
    unit: float = 1.0
    y_min: float | None = None
    y_max: float | None = None
    legend: str = ""


def signals(
    runs: Mapping[str, Result],
    *,
    panels: Sequence[Mapping[str, Any]],
    title: str = "",
    columns: int = 2,
    start_s: float = 0.0,
    stop_s: float | None = None,
) -> Figure:
    """Draw signals over time, with one panel for each entry and `columns` panels side by side.

    `panels` are as in `SignalPanel`; `start_s` and `stop_s` (default: the run's end) bound them.
    """
    first = next(iter(runs.values()))
    ends = (start_s, first.summary.duration_s if stop_s is None else stop_s)
    found = []
    for panel in map(SignalPanel.read, panels):
        lines = []
        for colour, line in enumerate(panel.lines):
            run = first if line.run is None else runs.get(line.run)
            if run is None:
                continue
            x, y = sampled_column(run, line.which, line.name, line.column)
            inside = (x >= ends[0]) & (x <= ends[1])
            x, y = _thinned(x[inside], y[inside], line.average_s)
            lines.append(Line(line.label, y / panel.unit, colour, x=x))
        bounds = (panel.y_min, panel.y_max)
        found.append(_panel(panel.title, _TIME, panel.y_label, lines, x_range=ends,
                            y_range=bounds, legend=panel.legend))  # fmt: skip
    columns = min(columns, len(panels))
    size = (5.4 * columns, 0.5 + 2.7 * -(-len(panels) // columns))
    return draw.figure(found, columns=columns, size=size, title=title, legend="inside")


def _thinned(time_s: Series, values: Series, average_s: float) -> tuple[Series, Series]:
    if average_s <= 0 or len(time_s) < 2:
        return time_s, values
    count = max(1, round(average_s / float(time_s[1] - time_s[0])))
    whole = len(values) // count * count
    return (
        time_s[:whole].reshape(-1, count).mean(axis=1),
        values[:whole].reshape(-1, count).mean(axis=1),
    )


def windows(runs: Mapping[str, Result], *, flow: str, packet_bytes: float) -> Figure:
    """Draw a flow's window (packets) over time, with one line per run."""
    lines = []
    for colour, (name, result) in enumerate(runs.items()):
        rows = result.samples("flows", flow)
        window = numbers(rows, "window_bytes") / packet_bytes
        lines.append(Line(name, window, colour, x=numbers(rows, "time_s")))
    # The overshoot of slow start would flatten the part that matters.
    top = 1.6 * max(float(line.y[-1000:].max(initial=0.0)) for line in lines)
    label = f"window (packets of {packet_bytes:g} B)"
    return _one(_panel("", _TIME, label, lines, y_range=(0.0, top)), width=8.0)


class MeasureCall(Record):
    """A measure that needs no run, with its arguments."""

    measure: str
    args: dict[str, Any] | None = None

    def value(self, **more: Any) -> float | None:
        """Return the value of the measure."""
        found: float | None = SINGLE[self.measure].function(**more, **(self.args or {}))
        return found


def sweep(
    runs: Mapping[str, Result],
    *,
    x: Sequence[X],
    lines: Mapping[str, str],
    measure: str,
    x_label: str,
    y_label: str,
    args: Mapping[str, Any] | None = None,
    computed: Mapping[str, Mapping[str, Any]] | None = None,
    marks: Mapping[str, Mapping[str, Any]] | None = None,
    x_unit: float = 1.0,
    y_unit: float = 1.0,
    log_x: bool = False,
    log_y: bool = False,
    title: str = "",
) -> Figure:
    """Draw a measure over a varied quantity, with one line per template of run names. Computed
    lines are thin.

    `computed` names measures that need no run: {label: {measure = …, args = …}}, called with `x`
    too. `marks` names measures whose value is an x, drawn as vertical lines. Values are divided by
    `y_unit`, and `x`, which names the runs, by `x_unit`.
    """
    words = any(isinstance(value, str) for value in x)
    places = np.array([i if isinstance(v, str) else v / x_unit for i, v in enumerate(x)], float)
    found: list[Line] = []
    for label, template in lines.items():
        values = [_value(measure, runs.get(template.format(x=v)), args or {}) / y_unit for v in x]
        found.append(Line(label, np.array(values), len(found), "marked", x=places))
    for label, line in (computed or {}).items():
        call = MeasureCall.read(line)
        values = [_known(call.value(x=v)) / y_unit for v in x]
        found.append(Line(label, np.array(values), len(found), x=places))
    guides: list[Guide] = []
    for label, mark in (marks or {}).items():
        place = MeasureCall.read(mark).value()
        if place is not None:
            guides.append(Guide(x=place / x_unit, name=label, colour=len(found) + len(guides)))
    empty = not any(np.nan_to_num(line.y).any() for line in found)
    chart = _panel(
        title, x_label, y_label, found, guides=guides, log_x=log_x, log_y=log_y,
        from_zero=not log_y, y_range=(None, 1.0 if empty and not log_y else None),
        ticks=[str(value) for value in x] if words else (),
        x_ticks=places if log_x else (),
    )  # fmt: skip
    return _one(chart, 8.0, 4.2)


def _known(value: float | None) -> float:
    return math.nan if value is None else value


def _value(measure: str, result: Result | None, args: Mapping[str, Any]) -> float:
    return math.nan if result is None else _known(SINGLE[measure].function(result, **args))


def bars(
    runs: Mapping[str, Result],
    *,
    names: Mapping[str, str],
    measure: str,
    y_label: str,
    args: Mapping[str, Any] | None = None,
    paper: Mapping[str, float] | None = None,
) -> Figure:
    """Draw a measure as one bar per entry of `names` (label: run), next to the paper's values."""
    known = {label: runs[run] for label, run in names.items() if run in runs}
    printed = np.array([(paper or {}).get(label, math.nan) for label in known])
    here = np.array([_value(measure, result, args or {}) for result in known.values()])
    lines = [
        Line("as implemented", np.nan_to_num(here), BLUE, "bar"),
        Line("paper", printed, ORANGE, "bar"),
    ]
    return _one(_panel("", "", y_label, lines, ticks=list(known)), width=6.4)


def by_place(
    runs: Mapping[str, Result],
    *,
    lines: dict[str, str],
    measure: str,
    x: list[float],
    places: list[dict[str, Any]],
    x_label: str,
    y_label: str,
    y_unit: float = 1.0,
) -> Figure:
    """Draw a measure at several places of the network, with one line per run.

    `places` are the measure's arguments at each `x`.
    """
    found = []
    for colour, (label, run) in enumerate(lines.items()):
        values = np.array([_value(measure, runs.get(run), place) / y_unit for place in places])
        found.append(Line(label, values, colour, "marked", x=np.array(x, float)))
    return _one(_panel("", x_label, y_label, found, from_zero=True, x_ticks=x))


def maxnet_construction(*, alpha_t_s: float, eta: float, max_rtt_s: float, title: str) -> Figure:
    """`[maxnet-2007:fig10]` Draw the spiral, tail and line of Algorithm 3 for one loop."""
    return theory_plots.construction({title: Gains(alpha_t_s, eta)}, max_rtt_s)


PLOTS: Mapping[str, Plot] = {
    "rates": Plot(plots.rates),
    "queues": Plot(plots.queues),
    "overview": Plot(plots.overview),
    "rates_of": Plot(rates_of),
    "utilizations": Plot(utilizations),
    "signals": Plot(signals, "runs"),
    "windows": Plot(windows, "runs"),
    "sweep": Plot(sweep, "runs"),
    "bars": Plot(bars, "runs"),
    "by_place": Plot(by_place, "runs"),
    "maxnet_construction": Plot(maxnet_construction, "nothing"),
}
