"""Measures and plots of the columns that a run samples: prices, ξ, windows, round trips.

`which` says whose column it is: "flows" or "links". Values are taken as sampled; what has no
sample (a flow before its start) is left out. As in `waterfill.analysis.metrics`, None is nothing
sampled, infinity never, and KeyError a name that the run does not have. A column that the run
does not have (another protocol's) is None too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from waterfill.analysis import metrics, plots
from waterfill.analysis.metrics import Series, means, numbers, settled_at

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from waterfill.runs.result import Result

Whose: TypeAlias = Literal["flows", "links"]

_EPSILON_S = 1e-9


# --- one column --------------------------------------------------------------------------------


@metrics.register("s")
def price_mean(
    result: Result, *, which: Whose, name: str, column: str, start_s: float, stop_s: float
) -> float | None:
    """Mean of a column of prices, which are times, in a window."""
    return _mean(result, which, name, column, start_s, stop_s)


@metrics.register("ratio")
def signal_mean(
    result: Result, *, which: Whose, name: str, column: str, start_s: float, stop_s: float
) -> float | None:
    """Mean of a column without a unit, such as ξ, in a window."""
    return _mean(result, which, name, column, start_s, stop_s)


@metrics.register("ratio")
def signal_spread(
    result: Result, *, which: Whose, name: str, column: str, start_s: float, stop_s: float
) -> float | None:
    """Standard deviation of a column over its mean, in a window."""
    _, values = _window(result, which, name, column, start_s, stop_s)
    return float(values.std() / abs(values.mean())) if len(values) and values.mean() else None


@metrics.register("ratio")
def signal_dip(
    result: Result,
    *,
    which: Whose,
    name: str,
    column: str,
    at_s: float,
    stop_s: float,
    before_s: float = 1.0,
) -> float | None:
    """The least sample after `at_s` over the mean of the `before_s` before it."""
    before = _mean(result, which, name, column, at_s - before_s, at_s)
    _, values = _window(result, which, name, column, at_s, stop_s)
    return float(values.min()) / before if before and len(values) else None


@metrics.register("s")
def signal_settle(
    result: Result,
    *,
    which: Whose,
    name: str,
    column: str,
    value: float,
    band: float,
    at_s: float,
    stop_s: float,
) -> float | None:
    """Time from `at_s` after which a column stays within `band` (a share) of a value until a time.

    Infinity when the last sample is outside.
    """
    time_s, values = _window(result, which, name, column, at_s, stop_s)
    if not len(values):
        return None
    return settled_at(time_s, np.abs(values - value) <= band * abs(value)) - at_s


@metrics.register("s")
def queue_clears(
    result: Result, *, link: str, at_s: float, stop_s: float, most_bytes: float
) -> float | None:
    """Time from `at_s` after which a link's queue stays at or below `most_bytes` until a time."""
    time_s, peak_bytes = _window(result, "links", link, "queue_max_bytes", at_s, stop_s)
    if not len(peak_bytes):
        return None
    return settled_at(time_s, peak_bytes <= most_bytes) - at_s


@metrics.register("s")
def rtt_max(result: Result, *, flow: str, start_s: float, stop_s: float) -> float | None:
    """Largest sample of a flow's round trip in a window."""
    _, rtt_s = _window(result, "flows", flow, "rtt_s", start_s, stop_s)
    return float(rtt_s.max()) if len(rtt_s) else None


# --- rates that swing --------------------------------------------------------------------------


@metrics.register("bit/s")
def rate_max(
    result: Result, *, flow: str, start_s: float, stop_s: float, average_s: float
) -> float | None:
    """Largest mean of `average_s` of a flow's rate that lies wholly in a window."""
    rates = _means(result, flow, average_s, start_s, stop_s)
    return float(rates.max()) if len(rates) else None


@metrics.register("bit/s")
def rate_min(
    result: Result, *, flow: str, start_s: float, stop_s: float, average_s: float
) -> float | None:
    """Least mean of `average_s` of a flow's rate that lies wholly in a window."""
    rates = _means(result, flow, average_s, start_s, stop_s)
    return float(rates.min()) if len(rates) else None


@metrics.register("ratio")
def rate_excess(
    result: Result,
    *,
    flow: str,
    share_bps: float,
    start_s: float,
    stop_s: float,
    average_s: float,
) -> float | None:
    """How far the largest mean of `average_s` of a rate is above a share, as a part of it."""
    most_bps = rate_max(result, flow=flow, start_s=start_s, stop_s=stop_s, average_s=average_s)
    return None if most_bps is None else most_bps / share_bps - 1


@metrics.register("ratio")
def rate_span(
    result: Result,
    *,
    flow: str,
    of_bps: float,
    start_s: float,
    stop_s: float,
    average_s: float,
) -> float | None:
    """Largest less least mean of `average_s` of a rate in a window, as a part of `of_bps`."""
    rates = _means(result, flow, average_s, start_s, stop_s)
    return float(rates.max() - rates.min()) / of_bps if len(rates) else None


@metrics.register("ratio")
def rate_error(
    result: Result,
    *,
    flow: str,
    share_bps: float,
    start_s: float,
    stop_s: float,
    average_s: float,
) -> float | None:
    """Largest |rate − share| / share of means of `average_s` that lie wholly in a window."""
    rates = _means(result, flow, average_s, start_s, stop_s)
    return float(np.abs(rates - share_bps).max()) / share_bps if len(rates) else None


@metrics.register("ratio")
def asked_span(result: Result, *, link: str, start_s: float, stop_s: float) -> float | None:
    """Largest less least sum of the pacing rates of all flows over a link, over the link's rate.

    What sources ask for, before queues round it off; a flow without a pacing rate asks for none.
    """
    capacity_bps = metrics._capacity(result, link)
    flows = [flow["name"] for flow in result.summary["flows"]]
    names = [flow for flow in flows if link in metrics._path(result, flow)]
    if not names or "pacing_bps" not in result.flows.column_names:
        return None
    columns = [metrics.flow_series(result, name, "pacing_bps") for name in names]
    time_s, asked_bps = columns[0][0], np.sum([values for _, values in columns], axis=0)
    late = asked_bps[(time_s > start_s + _EPSILON_S) & (time_s <= stop_s + _EPSILON_S)]
    return float(np.ptp(late)) / capacity_bps if len(late) else None


# --- overload ----------------------------------------------------------------------------------


@metrics.register("ratio")
def start_overload(
    result: Result, *, link: str, rtt_s: float, at_s: float, stop_s: float
) -> float | None:
    """Overload that would have left the largest queue of a window in one round trip.

    As a part of the link's rate: the growth of the queue's largest sample from its mean in the
    second before `at_s`, over rate × `rtt_s`.
    """
    _, before = _window(result, "links", link, "queue_bytes", at_s - 1.0, at_s)
    _, peak = _window(result, "links", link, "queue_max_bytes", at_s, stop_s)
    if not len(before) or not len(peak):
        return None
    links = result.network["links"]
    rate_bps = float(next(e["rate_bps"] for e in links if e["name"] == link))
    return float(peak.max() - before.mean()) * 8 / (rate_bps * rtt_s)


# --- header bytes ------------------------------------------------------------------------------


@metrics.register("bytes")
def header_bytes(result: Result, *, flow: str, packet_bytes: int = 1500) -> float | None:
    """Bytes of a full packet that are neither payload nor the 40 B of TCP/IP.

    From the flow's goodput over its rate, so in a window without losses.
    """
    entry = next((f for f in result.summary["flows"] if f["name"] == flow), None)
    if entry is None:
        raise KeyError(flow)
    if not entry["rate_bps"]:
        return None
    return packet_bytes * (1 - float(entry["goodput_bps"] / entry["rate_bps"])) - 40


# --- plot --------------------------------------------------------------------------------------


def signals(
    runs: Mapping[str, Result],
    *,
    panels: Sequence[Mapping[str, Any]],
    title: str = "",
    columns: int = 2,
    start_s: float = 0.0,
    stop_s: float | None = None,
) -> Figure:
    """Columns against time, a panel each, `columns` side by side, as a paper lays them out.

    A panel has `y_label`, `unit` (what one on the axis is, 1 by default), optionally `y_min` and
    `y_max`, and `lines`: each with `which`, `name`, `column`, `label`, and `run` where there are
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
            time_s, values = _samples(run, line["which"], line["name"], line["column"])
            inside = (time_s >= start_s) & (time_s <= end_s)
            time_s, values = _drawn(time_s[inside], values[inside], line.get("average_s", 0.0))
            unit = panel.get("unit", 1.0)
            axis.plot(time_s, values / unit, label=line["label"], linewidth=1.1, **style)
        axis.set_ylabel(panel["y_label"])
        axis.set_xlim(start_s, end_s)
        axis.set_ylim(panel.get("y_min"), panel.get("y_max"))
        if "y_min" in panel and "y_max" not in panel and axis.lines:
            # The margin above a line is of the whole axis, not of what the line covers.
            low, high = axis.get_ylim()
            axis.set_ylim(low, high + 0.04 * (high - low))
        axis.grid(alpha=0.3)
        if "title" in panel:
            axis.set_title(panel["title"], loc="left", fontsize="medium")
        if axis.lines:
            axis.legend(frameon=False, fontsize="small", loc=panel.get("legend", "best"))
    for axis in grid[-1]:
        axis.set_xlabel("time (s)")
        axis.locator_params(axis="x", nbins=6)  # more would run into each other past 100,000 s
    for axis in list(grid.flat)[len(panels) :]:
        axis.remove()
    if title:
        figure.suptitle(title, x=0.01, ha="left")
    return figure


plots.PLOTS["signals"] = plots.Plot(signals, "runs")


def bars(
    runs: Mapping[str, Result],
    *,
    names: Mapping[str, str],
    measure: str,
    y_label: str,
    args: Mapping[str, Any] | None = None,
    paper: Mapping[str, float] | None = None,
) -> Figure:
    """A measure of one run as a bar for each of `names` (label: run), the paper's values beside."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axis = figure.subplots()
    function = metrics.MEASURES[measure].function
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


plots.PLOTS["bars"] = plots.Plot(bars, "runs")


def _drawn(time_s: Series, values: Series, average_s: float) -> tuple[Series, Series]:
    if average_s <= 0 or len(time_s) < 2:
        return time_s, values
    count = max(1, round(average_s / float(time_s[1] - time_s[0])))
    whole = len(values) // count * count
    return (
        time_s[:whole].reshape(-1, count).mean(axis=1),
        values[:whole].reshape(-1, count).mean(axis=1),
    )


# --- samples -----------------------------------------------------------------------------------


def _samples(result: Result, which: Whose, name: str, column: str) -> tuple[Series, Series]:
    rows = result.samples(which, name)
    if column not in rows.column_names:
        return np.empty(0), np.empty(0)
    time_s, values = numbers(rows, "time_s"), numbers(rows, column)
    known = np.isfinite(values)
    return time_s[known], values[known]


def _window(
    result: Result, which: Whose, name: str, column: str, start_s: float, stop_s: float
) -> tuple[Series, Series]:
    time_s, values = _samples(result, which, name, column)
    inside = (time_s > start_s + _EPSILON_S) & (time_s <= stop_s + _EPSILON_S)
    return time_s[inside], values[inside]


def _mean(
    result: Result, which: Whose, name: str, column: str, start_s: float, stop_s: float
) -> float | None:
    _, values = _window(result, which, name, column, start_s, stop_s)
    return float(values.mean()) if len(values) else None


def _means(result: Result, flow: str, average_s: float, start_s: float, stop_s: float) -> Series:
    time_s, rate_bps = _samples(result, "flows", flow, "rate_bps")
    return means(time_s, rate_bps, average_s, start_s, min(stop_s, math.inf))[1]
