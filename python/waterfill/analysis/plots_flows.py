"""Papers' figures of some flows of a run, with their own labels and axes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from waterfill.analysis import metrics, plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from waterfill.runs.result import Result


def rates_of(
    result: Result,
    *,
    flows: list[str],
    title: str = "",
    labels: list[str] | None = None,
    average_s: float = 1.0,
    most_bps: float = 0.0,
) -> Figure:
    """Rates of these flows in means of `average_s`, up to `most_bps` on the axis if given."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 3.4), layout="constrained")
    axis = figure.subplots()
    for flow, label, style in zip(flows, labels or flows, plots.line_styles(), strict=False):
        rows = result.samples("flows", flow)
        plots._line(axis, rows, "rate_bps", average_s, label, 1e6, style)
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
    """Utilisation of these links in means of `average_s`."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 3.4), layout="constrained")
    axis = figure.subplots()
    for link, style in zip(links, plots.line_styles(), strict=False):
        rows = result.samples("links", link)
        plots._line(axis, rows, "utilization", average_s, link, 0.01, style)
    axis.set_xlim(0, result.summary["duration_s"])
    axis.set_ylim(0, 105)
    axis.set_xlabel("time (s)")
    axis.set_ylabel("utilisation (%)")
    axis.set_title(title or result.summary["scenario"], loc="left", parse_math=False)
    axis.grid(alpha=0.3)
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
    """A measure of one run at several places, a line a run: {label: run}.

    `places` are the measure's arguments at each `x`.
    """
    from matplotlib.figure import Figure

    function = metrics.MEASURES[measure].function
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


plots.PLOTS["by_place"] = plots.Plot(by_place, "runs")
plots.PLOTS["rates_of"] = plots.Plot(rates_of)
plots.PLOTS["utilizations"] = plots.Plot(utilizations)
