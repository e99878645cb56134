"""Tables and figures of the study of fabrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from validation.fabric.cases import INCASTS, LAWS, LOADS, FabricCase, FabricRow
from validation.fct.report import interval, short
from validation.tables import markdown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

Found = Mapping[FabricCase, FabricRow]

_COLUMNS = (("p50", "p50"), ("p95", "p95"), ("p99", "p99"), ("small_p99", "small: p99"))
_MARKERS = "osD^vP*X<>"


def tables(found: Found) -> str:
    """Return a Markdown table for each rate, work and load, with a row for each law."""
    parts = []
    for cell in sorted(dict.fromkeys(case.cell for case in found)):
        rate, work, load = cell
        mine = {case: row for case, row in found.items() if case.cell == cell}
        flows = sum(row.flows for row in mine.values()) // len({case.law for case in mine})
        seeds = len({case.seed for case in mine})
        background = " web-search load under an incast of" if work in INCASTS else " load of"
        title = f"{rate} Gbit/s, {load:.0%}{background} {work}: {flows} flows of {seeds} seeds"
        parts.append(f"### {title}\n\n{_table(mine, incast=work in INCASTS)}")
    return "\n\n".join(parts)


def _table(found: Found, *, incast: bool) -> str:
    lines = []
    for law in LAWS:
        rows = [row for case, row in found.items() if case.law == law]
        if not rows:
            continue
        flows, unfinished = (sum(getattr(row, n) for row in rows) for n in ("flows", "unfinished"))
        cells = [interval(_of(rows, name)) for name, _ in _COLUMNS]
        if incast:
            cells.insert(0, interval(_of(rows, "incast_us")))
        queue = interval([row.queue_bytes / 1e3 for row in rows])
        paused = short(fmean(row.paused_us for row in rows), 3)
        left = f"{unfinished / flows:.2%}" if unfinished else "0"
        drops = fmean(row.drops for row in rows)
        lines.append([f"`{law}`", *cells, queue, paused, short(drops, 3), left])
    head = [title + ":" for _, title in _COLUMNS]
    if incast:
        head.insert(0, "incast, us:")
    return markdown(
        "|".join(["law", *head, "max queue, kB:", "paused, us:", "drops:", "unfinished:"]), lines
    )


def _of(rows: Iterable[FabricRow], name: str) -> list[float]:
    return [value for row in rows if (value := getattr(row, name)) is not None]


def _mean_and_half(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean over seeds and half of its 95 % interval."""
    from scipy.special import stdtrit

    if len(values) < 2:
        return (values[0] if values else np.nan), 0.0
    t = float(stdtrit(len(values) - 1, 0.975))
    return fmean(values), t * float(np.std(values, ddof=1)) / len(values) ** 0.5


def slowdowns(found: Found) -> Figure:
    """Draw the 99th percentile of slowdowns against the load, for each rate and size of flows."""
    from matplotlib.figure import Figure

    cells = sorted({(c.work, c.rate_gbps) for c in found if c.work not in INCASTS}, reverse=True)
    drawn = Figure(figsize=(10, 3.6 * ((len(cells) + 1) // 2) + 0.5), layout="constrained")
    panels = np.ravel(drawn.subplots((len(cells) + 1) // 2, 2, squeeze=False))
    for panel, (work, rate) in zip(panels, cells, strict=False):
        for number, law in enumerate(LAWS):
            rows = [
                [row for case, row in found.items() if case[:4] == (rate, work, load, law)]
                for load in LOADS
            ]
            points = [_mean_and_half(_of(mine, "p99")) for mine in rows]
            _draw_law(panel, number, law, [100 * load for load in LOADS], points)
        panel.set_title(f"{work}, {rate} Gbit/s")
        panel.set_xticks([100 * load for load in LOADS])
        panel.set_yscale("log")
        _plain(panel.yaxis)
        panel.set_xlabel("load (%)")
        panel.set_ylabel("slowdown, 99th percentile")
        panel.grid(alpha=0.3, which="both")
    for panel in panels[len(cells) :]:
        panel.set_axis_off()
    drawn.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(LAWS)
    )
    return drawn


def _draw_law(
    panel: Axes, number: int, law: str, x: Sequence[float], points: Sequence[tuple[float, float]]
) -> None:
    means, halves = zip(*points, strict=True)
    panel.errorbar(
        x, means, yerr=halves, label=law, color=f"C{number}", marker=_MARKERS[number], capsize=2,
        markersize=4, linewidth=1.2,
    )  # fmt: skip


def _plain(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers at some values of each decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def incasts(found: Found) -> Figure:
    """Draw the time of an incast, relative to its bytes on the receiver's link, against the largest
    queue of a port.
    """
    from matplotlib.figure import Figure

    cells = sorted({(c.work, c.rate_gbps) for c in found if c.work in INCASTS}, reverse=True)
    drawn = Figure(figsize=(10, 3.6 * ((len(cells) + 1) // 2) + 0.5), layout="constrained")
    panels = np.ravel(drawn.subplots((len(cells) + 1) // 2, 2, squeeze=False))
    for panel, (work, rate) in zip(panels, cells, strict=False):
        for number, law in enumerate(LAWS):
            rows = [
                r for c, r in found.items() if (c.work, c.rate_gbps, c.law) == (work, rate, law)
            ]
            times = [row.incast_us / row.incast_ideal_us for row in rows
                     if row.incast_us and row.incast_ideal_us]  # fmt: skip
            if not rows or not times:
                continue
            (queue, queue_half), (time, half) = map(
                _mean_and_half, ([row.queue_bytes / 1e6 for row in rows], times)
            )
            panel.errorbar(
                [queue], [time], xerr=[queue_half], yerr=[half], label=law, color=f"C{number}",
                marker=_MARKERS[number], linestyle="none", capsize=2,
            )  # fmt: skip
        panel.set_title(f"incast of {work}, {rate} Gbit/s")
        panel.set_xscale("log")
        panel.set_yscale("log")
        _plain(panel.xaxis)
        _plain(panel.yaxis)
        panel.set_xlabel("largest queue of a port (MB)")
        panel.set_ylabel("time ÷ time of the bytes")
        panel.grid(alpha=0.3, which="both")
    drawn.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(LAWS)
    )
    return drawn


def write(drawn: Figure, path: Path) -> None:
    """Write a figure to a PNG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(drawn)
    drawn.savefig(path, dpi=110)


def draw(found: Found, stem: Path) -> None:
    """Write both figures to PNG files, as far as there are runs."""
    if any(case.work not in INCASTS for case in found):
        write(slowdowns(found), stem.with_name(f"{stem.name}-slowdowns.png"))
    if any(case.work in INCASTS for case in found):
        write(incasts(found), stem.with_name(f"{stem.name}-incasts.png"))
