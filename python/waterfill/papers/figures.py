"""The plots that claims.toml can name: papers' figures with their own labels and axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from waterfill.analysis import plots
from waterfill.analysis.series import Series, numbers
from waterfill.papers.measures.base import Of
from waterfill.papers.measures.signals import sampled_column
from waterfill.papers.measures.single import SINGLE
from waterfill.theory import plots as theory_plots
from waterfill.theory.maxnet import Gains

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from waterfill.runs.result import Result


X = float | int | str


@dataclass(frozen=True)
class Plot:
    """One plot that claims.toml can name: the function, and what its first argument is.

    As for `Measure`: one run, all runs by name, or nothing.
    """

    function: Callable[..., Figure]
    of: Of = "run"


def rates_of(
    result: Result,
    *,
    flows: list[str],
    title: str = "",
    labels: list[str] | None = None,
    average_s: float = 1.0,
    most_bps: float = 0.0,
) -> Figure:
    """Draw the rates of these flows as means of `average_s`; `most_bps` limits the axis."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 3.4), layout="constrained")
    axis = figure.subplots()
    styles = plots.named_styles(flows)
    for flow, label, style in zip(flows, labels or flows, styles, strict=False):
        rows = result.samples("flows", flow)
        plots.draw_line(axis, rows, "rate_bps", average_s, label, 1e6, style)
    axis.set_xlim(0, result.summary["duration_s"])
    axis.set_ylim(0, most_bps / 1e6 or None)
    axis.set_xlabel("time (s)")
    axis.set_ylabel("rate (Mbit/s)")
    axis.set_title(title or result.summary["scenario"], loc="left", parse_math=False)
    axis.grid(alpha=0.3)
    axis.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    return figure


def utilizations(
    result: Result, *, links: list[str], title: str = "", average_s: float = 1.0
) -> Figure:
    """Draw the utilisation of these links as means of `average_s`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 3.4), layout="constrained")
    axis = figure.subplots()
    for link, style in zip(links, plots.line_styles(), strict=False):
        rows = result.samples("links", link)
        plots.draw_line(axis, rows, "utilization", average_s, link, 0.01, style)
    axis.set_xlim(0, result.summary["duration_s"])
    axis.set_ylim(0, 105)
    axis.set_xlabel("time (s)")
    axis.set_ylabel("utilisation (%)")
    axis.set_title(title or result.summary["scenario"], loc="left", parse_math=False)
    axis.grid(alpha=0.3)
    axis.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    return figure


def signals(
    runs: Mapping[str, Result],
    *,
    panels: Sequence[Mapping[str, Any]],
    title: str = "",
    columns: int = 2,
    start_s: float = 0.0,
    stop_s: float | None = None,
) -> Figure:
    """Draw columns against time, one panel each, `columns` side by side.

    A panel has `y_label`, `unit` (the value of 1 on the axis, default 1), optionally `y_min` and
    `y_max`, and `lines`: each with `which`, `name`, `column`, `label`, and `run` if there are
    several; `average_s` draws means. `start_s` and `stop_s` (default: the run's end) bound it.
    """
    from matplotlib.figure import Figure

    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(5.4 * columns, 0.5 + 2.7 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    first = next(iter(runs.values()))
    end_s = first.summary["duration_s"] if stop_s is None else stop_s
    for axis, panel in zip(grid.flat, panels, strict=False):
        styles = plots.line_styles()
        for line in panel["lines"]:
            run = runs.get(line["run"]) if "run" in line else first
            style = next(styles)
            if run is None:
                continue
            time_s, values = sampled_column(run, line["which"], line["name"], line["column"])
            inside = (time_s >= start_s) & (time_s <= end_s)
            time_s, values = _drawn(time_s[inside], values[inside], line.get("average_s", 0.0))
            unit = panel.get("unit", 1.0)
            axis.plot(time_s, values / unit, label=line["label"], linewidth=1.1, **style)
        axis.set_ylabel(panel["y_label"])
        axis.set_xlim(start_s, end_s)
        axis.set_ylim(panel.get("y_min"), panel.get("y_max"))
        if "y_min" in panel and "y_max" not in panel and axis.lines:
            # The margin above a line is relative to the whole axis.
            low, high = axis.get_ylim()
            axis.set_ylim(low, high + 0.04 * (high - low))
        axis.grid(alpha=0.3)
        if "title" in panel:
            axis.set_title(panel["title"], loc="left", fontsize="medium")
        if axis.lines:
            axis.legend(frameon=False, fontsize="small", loc=panel.get("legend", "best"))
    for axis in grid[-1]:
        axis.set_xlabel("time (s)")
        axis.locator_params(axis="x", nbins=6)  # more labels would overlap past 100,000 s
    for axis in list(grid.flat)[len(panels) :]:
        axis.remove()
    if title:
        figure.suptitle(title, x=0.01, ha="left")
    return figure


def _drawn(time_s: Series, values: Series, average_s: float) -> tuple[Series, Series]:
    if average_s <= 0 or len(time_s) < 2:
        return time_s, values
    count = max(1, round(average_s / float(time_s[1] - time_s[0])))
    whole = len(values) // count * count
    return (
        time_s[:whole].reshape(-1, count).mean(axis=1),
        values[:whole].reshape(-1, count).mean(axis=1),
    )


def windows(runs: Mapping[str, Result], *, flow: str, packet_bytes: float) -> Figure:
    """Draw a flow's window in packets over time, one line per run."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    axis = figure.subplots()
    for (name, result), style in zip(runs.items(), plots.line_styles(), strict=False):
        rows = result.samples("flows", flow)
        window = numbers(rows, "window_bytes") / packet_bytes
        axis.plot(numbers(rows, "time_s"), window, label=name, **style)
    # The overshoot of slow start would flatten the part that matters.
    late = [numbers(r.samples("flows", flow), "window_bytes")[-1000:] for r in runs.values()]
    axis.set_ylim(0, 1.6 * max(float(w.max(initial=0.0)) for w in late) / packet_bytes)
    axis.set_xlabel("time (s)")
    axis.set_ylabel(f"window (packets of {packet_bytes:g} B)")
    axis.grid(alpha=0.3)
    axis.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    return figure


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
    """Draw a measure against what is varied, one line per template; computed lines are thin.

    `computed` names measures that need no run: {label: {measure = …, args = …}}, called with `x`
    too. `marks` names measures whose value is an x, drawn as vertical lines. Values are divided by
    `y_unit`, and `x`, which names the runs, by `x_unit`.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 4.2), layout="constrained")
    axis = figure.subplots()
    styles = plots.line_styles()
    markers = iter("osD^vPX*" * 4)
    places = [float(i) if isinstance(v, str) else v / x_unit for i, v in enumerate(x)]
    for label, template in lines.items():
        values = [
            _value(measure, runs.get(template.format(x=value)), args or {}) / y_unit for value in x
        ]
        axis.plot(places, values, marker=next(markers), markersize=4, label=label, **next(styles))
    for label, line in (computed or {}).items():
        function = SINGLE[line["measure"]].function
        found = [function(x=value, **line.get("args", {})) for value in x]
        values = [math.nan if v is None else v / y_unit for v in found]
        axis.plot(places, values, linewidth=0.8, label=label, **next(styles))
    if any(isinstance(value, str) for value in x):
        axis.set_xticks(places, [str(value) for value in x])
    elif all(isinstance(value, int) for value in x) and x_unit == 1.0:
        axis.locator_params(axis="x", integer=True)
    if log_x:
        axis.set_xscale("log", base=2)
        axis.set_xticks(places, [f"{value:g}" for value in places])
        axis.minorticks_off()
    if log_y:
        axis.set_yscale("log")
    else:
        drawn = [value for line in axis.lines for value in np.asarray(line.get_ydata())]
        axis.set_ylim(0, 1.0 if not any(drawn) else None)
    for label, mark in (marks or {}).items():
        place = SINGLE[mark["measure"]].function(**mark.get("args", {}))
        if place is not None:
            axis.axvline(place / x_unit, linewidth=0.8, label=label, **next(styles))
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)
    axis.grid(alpha=0.3)
    if title:
        axis.set_title(title, loc="left", parse_math=False)
    axis.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    return figure


def _value(measure: str, result: Result | None, args: Mapping[str, Any]) -> float:
    if result is None:
        return math.nan
    value = SINGLE[measure].function(result, **args)
    return math.nan if value is None else value


def bars(
    runs: Mapping[str, Result],
    *,
    names: Mapping[str, str],
    measure: str,
    y_label: str,
    args: Mapping[str, Any] | None = None,
    paper: Mapping[str, float] | None = None,
) -> Figure:
    """Draw a measure as one bar per entry of `names` (label: run), beside the paper's values."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axis = figure.subplots()
    function = SINGLE[measure].function
    known = {label: runs[run] for label, run in names.items() if run in runs}
    here = [function(result, **(args or {})) or 0.0 for result in known.values()]
    places = np.arange(len(known))
    axis.bar(places + 0.2, here, 0.38, color="#0072B2", label="as implemented")
    printed = [(paper or {}).get(label, math.nan) for label in known]
    axis.bar(places - 0.2, printed, 0.38, color="#E69F00", hatch="//", label="paper")
    axis.set_xticks(places, list(known))
    axis.set_ylabel(y_label)
    axis.grid(alpha=0.3, axis="y")
    axis.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    return figure


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
    """Draw a measure at several places, one line per run: {label: run}.

    `places` are the measure's arguments at each `x`.
    """
    from matplotlib.figure import Figure

    function = SINGLE[measure].function
    figure = Figure(figsize=(7.0, 3.4), layout="constrained")
    axis = figure.subplots()
    for (label, run), marker, style in zip(
        lines.items(), "osD^vPX*", plots.line_styles(), strict=False
    ):
        values = [function(runs[run], **place) for place in places] if run in runs else []
        shown = [math.nan if value is None else value / y_unit for value in values]
        axis.plot(x[: len(shown)], shown, marker=marker, markersize=5, label=label, **style)
    axis.set_xticks(x)
    axis.set_ylim(0, 1.05 * axis.get_ylim()[1])
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)
    axis.grid(alpha=0.3)
    axis.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    return figure


def maxnet_construction(*, alpha_t_s: float, eta: float, max_rtt_s: float, title: str) -> Figure:
    """`[maxnet-2007:fig10]` Draw spiral, tail and line."""
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
