"""Figures of MaxNet's experiments, with curves from the kernel, the simulator and the fluid model.

A group of flows has one colour on all backends. The kernel's line is wide and pale, the
simulator's thin and dark on top of it, the fluid's dotted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from validation.testbed.maxnet_cells import Panel
from waterfill.analysis import looks, series
from waterfill.analysis.draw import save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from waterfill.runs.result import Result

__all__ = ["curves", "losses", "save"]

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
_LINK = "#000000"
_BACKENDS: Mapping[str, Mapping[str, Any]] = {
    "linux": {"linewidth": 2.6, "alpha": 0.45, "linestyle": "-"},
    "sim": {"linewidth": 1.0, "alpha": 1.0, "linestyle": "-"},
    "fluid": {"linewidth": 1.2, "alpha": 1.0, "linestyle": ":"},
}
NAMES = {"linux": "kernel", "sim": "simulator", "fluid": "fluid"}
_MARKERS = {"linux": "o", "sim": "x"}


def curves(title: str, panels: Sequence[Panel], runs: Mapping[str, Result]) -> Figure:
    """Draw panels below one another, each with the curves of every backend."""
    from matplotlib.figure import Figure

    rows = len(panels)
    figure = Figure(figsize=(8.6, 1.2 + 2.1 * rows), layout="constrained")
    grid = figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0]
    for axis, one in zip(grid, panels, strict=True):
        panel(axis, one, runs)
        axis.set_ylabel(one.y_label)
    grid[-1].set_xlabel("time (s)")
    figure.suptitle(title, x=0.01, ha="left")
    backends = [backend for backend in _BACKENDS if backend in runs]
    handles = legend(list(grid), backends)
    figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize="small")
    return figure


def panel(axis: Any, shown: Panel, runs: Mapping[str, Result]) -> None:
    """Draw the curves of every backend into one panel."""
    for backend in _BACKENDS:
        if backend in runs:
            _lines(axis, shown, backend, runs[backend])
    axis.set_xlim(0, runs["linux"].summary["duration_s"])
    if shown.from_zero:
        axis.set_ylim(bottom=0)
    axis.grid(alpha=0.3)


def legend(grid: Sequence[Any], backends: Sequence[str]) -> list[Any]:
    """Return legend entries for each group's colour and each backend's line style."""
    from matplotlib.lines import Line2D

    colours = {line.get_gid(): line.get_color() for axis in grid for line in axis.lines}
    found = [Line2D([], [], color=colour, label=name) for name, colour in colours.items()]
    return found + [
        Line2D([], [], color="#444444", label=NAMES[backend], **_BACKENDS[backend])
        for backend in backends
    ]


def _lines(axis: Any, panel: Panel, backend: str, run: Result) -> None:
    # One legend stands for all panels: links are black, and a flow named "red-…" is red.
    groups = [name.partition("[")[0] for name in panel.names]
    unique = list(dict.fromkeys(groups))
    colours = dict.fromkeys(unique, _LINK)
    if panel.which == "flows":
        styles = looks.named_styles(unique)
        colours = {group: s["color"] for group, s in zip(unique, styles, strict=True)}
    for name, group in zip(panel.names, groups, strict=True):
        try:
            rows = run.samples(panel.which, name)
        except KeyError:
            continue  # the fluid has no flows of other laws
        if panel.column not in rows.column_names:
            continue
        time_s = series.numbers(rows, "time_s")
        values = series.numbers(rows, panel.column)
        there = np.isfinite(values)
        time_s, values = time_s[there], values[there]
        if panel.average_s > 0:
            time_s, values = series.intervals(time_s, values, panel.average_s)
        label = f"{name}, {NAMES[backend]}"
        (line,) = axis.plot(
            time_s, values / panel.unit, color=colours[group], label=label, **_BACKENDS[backend]
        )
        line.set_gid(group)


def losses(points: Mapping[str, Sequence[tuple[float, str, float]]]) -> Figure:
    """Draw mean rates against the loss probability, in one colour per law.

    `points` maps a law to its (loss probability, backend, bit/s).
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 3.8), layout="constrained")
    axis = figure.subplots()
    for (law, found), colour in zip(points.items(), _COLOURS, strict=False):
        for backend, style in _BACKENDS.items():
            mine = sorted((x, y) for x, b, y in found if b == backend)
            if mine:
                x, y = np.array(mine).T
                axis.plot(100 * x, y / 1e6, color=colour, marker=_MARKERS[backend],
                          label=f"{law}, {NAMES[backend]}", **style)  # fmt: skip
    axis.set_xlabel("loss probability, each way (%)")
    axis.set_ylabel("mean rate of a transfer of 20 s (Mbit/s)")
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.3)
    axis.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize="small")
    return figure
