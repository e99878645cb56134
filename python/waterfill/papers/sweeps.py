"""Plots and measures over several runs of one experiment.

A template names the runs of a line by the value on the x axis: `"xcp {x}"` with x = 64 is the
run "xcp 64". Measures of one run (`waterfill.analysis.metrics`) give the y values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from waterfill.analysis import metrics, plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from waterfill.runs.result import Result

X = float | int | str


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
    """A measure against what is varied, a line a template; computed lines are drawn thin.

    `computed` names measures that need no run: {label: {measure = …, args = …}}, called with
    `x` besides; `marks` such ones that answer with an x, drawn upright. Values are divided by
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
        function = metrics.MEASURES[line["measure"]].function
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
        place = metrics.MEASURES[mark["measure"]].function(**mark.get("args", {}))
        if place is not None:
            axis.axvline(place / x_unit, linewidth=0.8, label=label, **next(styles))
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)
    axis.grid(alpha=0.3)
    if title:
        axis.set_title(title, loc="left", parse_math=False)
    axis.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    return figure


def windows(runs: Mapping[str, Result], *, flow: str, packet_bytes: float) -> Figure:
    """A flow's window in packets over time, a line a run."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    axis = figure.subplots()
    for (name, result), style in zip(runs.items(), plots.line_styles(), strict=False):
        rows = result.samples("flows", flow)
        window = metrics.numbers(rows, "window_bytes") / packet_bytes
        axis.plot(metrics.numbers(rows, "time_s"), window, label=name, **style)
    # The overshoot of slow start would flatten what the figure is about.
    late = [
        metrics.numbers(r.samples("flows", flow), "window_bytes")[-1000:] for r in runs.values()
    ]
    axis.set_ylim(0, 1.6 * max(float(w.max(initial=0.0)) for w in late) / packet_bytes)
    axis.set_xlabel("time (s)")
    axis.set_ylabel(f"window (packets of {packet_bytes:g} B)")
    axis.grid(alpha=0.3)
    axis.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    return figure


plots.PLOTS["windows"] = plots.Plot(windows, "runs")


def _value(measure: str, result: Result | None, args: Mapping[str, Any]) -> float:
    if result is None:
        return math.nan
    value = metrics.MEASURES[measure].function(result, **args)
    return math.nan if value is None else value


plots.PLOTS["sweep"] = plots.Plot(sweep, "runs")


# --- measures over several runs ----------------------------------------------------------------


@metrics.register("ratio", "runs")
def ratio(
    runs: Mapping[str, Result],
    *,
    measure: str,
    of: str,
    to: str,
    args: dict[str, Any],
    to_args: dict[str, Any] | None = None,
) -> float | None:
    """A measure of the run `of` over the same measure of the run `to`."""
    function = metrics.MEASURES[measure].function
    above = function(runs[of], **args)
    below = function(runs[to], **(args if to_args is None else to_args))
    if above is None or below is None:
        return None
    return above / below if below else math.inf


@metrics.register("ratio", "runs")
def largest_of(
    runs: Mapping[str, Result], *, measure: str, of: list[str], args: dict[str, Any]
) -> float | None:
    """The largest value of a measure of a ratio over several runs."""
    values = _each(runs, measure, of, args)
    return max(values) if values else None


@metrics.register("ratio", "runs")
def smallest_of(
    runs: Mapping[str, Result], *, measure: str, of: list[str], args: dict[str, Any]
) -> float | None:
    """The smallest value of a measure of a ratio over several runs."""
    values = _each(runs, measure, of, args)
    return min(values) if values else None


def _each(
    runs: Mapping[str, Result], measure: str, of: list[str], args: dict[str, Any]
) -> list[float]:
    """A measure of each of these runs; nothing when one of them cannot be measured."""
    values = [metrics.MEASURES[measure].function(runs[name], **args) for name in of]
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else []
