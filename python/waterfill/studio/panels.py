"""What a run shows: charts of rates, queues and the routers' signals, and a table of rates."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any, NamedTuple

import numpy as np

from waterfill import _core
from waterfill.analysis import compare, series
from waterfill.analysis.plots import intervals
from waterfill.runs.result import Result
from waterfill.studio.chart import Chart, Guide, Line, Series

# More flows than this are drawn as one line per group with a band; more groups are left out.
MAX_LINES = 7
MAX_POINTS = 240
_MAX_STEPS = 200
_MAX_TITLE = 36
# A link whose queue or load stays below this share of the largest is not drawn.
_WORTH = 0.02


class Unit(NamedTuple):
    """A unit of charts: its text, and its size in the series' unit."""

    text: str
    size: float


_SIGNAL_UNITS = {"bit/s": Unit("Mbit/s", 1e6), "s": Unit("s", 1.0), "1": Unit("", 1.0)}


def unit_of(unit: str) -> Unit:
    """Return the unit in which charts show a signal."""
    return _SIGNAL_UNITS.get(unit, Unit(unit, 1.0))


def all_charts(result: Result) -> list[Chart]:
    """Return a run's charts: rates, queues, then a signal of each protocol's routers or senders."""
    return [rates(result), queues(result), *signals(result)]


def bin_s(result: Result) -> float:
    """Return the time (s) over which charts average, at least one sample."""
    end_s = result.summary["duration_s"]
    return max(float(end_s) / MAX_POINTS, result.network.sample_s)


def rates(result: Result) -> Chart:
    """Return the chart of the flows' rates (Mbit/s) beside their max-min shares."""
    average_s = bin_s(result)
    flows = result.summary["flows"]
    time_s = np.unique(series.numbers(result.links, "time_s"))
    groups: dict[str, list[str]] = {}
    for flow in flows:
        groups.setdefault(flow["group"], []).append(flow["name"])
    lines: list[Line] = []
    if len(flows) <= MAX_LINES:
        groups = {flow["name"]: [flow["name"]] for flow in flows}
    rows = _rates_by_flow(result, time_s)
    for style, (group, names) in enumerate(list(groups.items())[:MAX_LINES]):
        table = np.array([intervals(time_s, rows[name], average_s)[1] for name in names]) / 1e6
        middle_s, _ = intervals(time_s, rows[names[0]], average_s)
        if len(names) == 1:
            lines.append(Line(group, middle_s, table[0], style))
            continue
        alive = np.array([_alive(result, name, middle_s) for name in names])
        masked = np.where(alive, table, np.nan)
        there = alive.any(axis=0)
        mean, low, high = (np.full(len(middle_s), np.nan) for _ in range(3))
        mean[there] = np.nanmean(masked[:, there], axis=0)
        low[there] = np.nanmin(masked[:, there], axis=0)
        high[there] = np.nanmax(masked[:, there], axis=0)
        label = f"{group} (×{len(names)})"
        lines.append(Line(label, middle_s, mean, style, np.nan_to_num(low), np.nan_to_num(high)))
    return Chart(
        f"Rate of a flow (Mbit/s, means of {_time(average_s)})",
        "time (s)",
        lines,
        guides=shares(result),
        guide_name="max-min",
        x_range=(0.0, float(result.summary["duration_s"])),
    )


def _rates_by_flow(result: Result, time_s: Series) -> dict[str, Series]:
    """Return each flow's rate (bit/s) at every sample time, zero without a sample."""
    flow = result.flows["flow"].combine_chunks()
    names = flow.dictionary.to_pylist()
    index = flow.indices.to_numpy()
    when = series.numbers(result.flows, "time_s")
    value = np.nan_to_num(series.numbers(result.flows, "rate_bps"))
    place = np.searchsorted(time_s, when - series.EPSILON_S)
    # A flow has an extra row at its start, which may fall between sample times.
    there = (place < len(time_s)) & np.isclose(time_s[np.minimum(place, len(time_s) - 1)], when)
    table = np.zeros((len(names), len(time_s)))
    table[index[there], place[there]] = value[there]
    return {name: table[i] for i, name in enumerate(names)}


def _alive(result: Result, name: str, time_s: Series) -> np.ndarray[Any, np.dtype[np.bool_]]:
    entry = next(flow for flow in result.summary["flows"] if flow["name"] == name)
    stop_s = entry["completed_s"] if entry.get("completed_s") else entry["stop_s"]
    end_s = result.summary["duration_s"] if stop_s is None else stop_s
    return np.asarray((time_s > entry["start_s"]) & (time_s <= end_s))


def shares(result: Result) -> list[Guide]:
    """Return the max-min shares over time (s, Mbit/s), none if there are too many to draw."""
    found = compare.allocation(result)
    guides = {
        Guide((float(a), float(b)), (share / 1e6, share / 1e6))
        for spans in found.classes
        for a, b, share in zip(*spans, strict=True)
        if share > 0
    }
    return sorted(guides, key=lambda g: (g.x, g.y)) if len(guides) <= _MAX_STEPS else []


def queues(result: Result) -> Chart:
    """Return the chart of the links' peak queues (packets)."""
    average_s = bin_s(result)
    unit = float(result.network.packet_bytes)
    lines = _of_links(result, "queue_max_bytes", average_s, unit, np.maximum)
    return Chart(
        f"Queue (packets, peaks of {_time(average_s)})",
        "time (s)",
        lines,
        x_range=(0.0, float(result.summary["duration_s"])),
        y_range=None if any(line.y.max(initial=0.0) > 1 for line in lines) else (0.0, 10.0),
    )


def _of_links(
    result: Result, column: str, average_s: float, unit: float, combine: np.ufunc = np.add
) -> list[Line]:
    found = []
    for link in result.summary["links"]:
        rows = result.samples("links", link["name"])
        values = series.numbers(rows, column)
        if not np.isfinite(values).any():
            continue
        time_s, means = intervals(series.numbers(rows, "time_s"), values, average_s, combine)
        found.append((link["name"], time_s, means / unit))
    highest = max((float(np.abs(y).max()) for _, _, y in found), default=0.0)
    if column.startswith("queue"):
        # Reverse links carry acknowledgements only: leave out the nearly empty ones.
        kept = [row for row in found if float(row[2].max()) > _WORTH * highest] or found[:1]
    else:
        kept = found
    kept = kept[:MAX_LINES]
    return [Line(name, x, y, style) for style, (name, x, y) in enumerate(kept)]


def signals(result: Result) -> list[Chart]:
    """Return one chart per protocol: the first signal that its routers or its senders record."""
    used = dict.fromkeys(flow["protocol"] for flow in result.summary["flows"])
    entries = {entry["name"]: entry for entry in _core.protocols()}
    charts = []
    for protocol in used:
        found = _signal(result, entries[protocol])
        if found is not None:
            charts.append(found)
    return charts


def _signal(result: Result, entry: Any) -> Chart | None:
    average_s = bin_s(result)
    for signal in entry["signals"]:
        column = f"{entry['name']}.{signal['name']}"
        unit = unit_of(signal["unit"])
        if column in result.links.column_names:
            lines = _of_links(result, column, average_s, unit.size)
        else:
            lines = []
        if not lines and column in result.flows.column_names:
            lines = _of_flows(result, entry["name"], column, average_s, unit.size)
        if lines:
            doc = signal["doc"].partition(",")[0].partition(";")[0]
            name = doc if len(doc) <= _MAX_TITLE else signal["name"]
            title = f"{entry['name']}: {name}" + (f" ({unit.text})" if unit.text else "")
            return Chart(
                title,
                "time (s)",
                lines,
                zero=signal["unit"] != "s",
                x_range=(0.0, float(result.summary["duration_s"])),
            )
    return None


def _of_flows(
    result: Result, protocol: str, column: str, average_s: float, unit: float
) -> list[Line]:
    names = [f["name"] for f in result.summary["flows"] if f["protocol"] == protocol][:MAX_LINES]
    lines = []
    for style, name in enumerate(names):
        rows = result.samples("flows", name)
        values = series.numbers(rows, column)
        if np.isfinite(values).any():
            x, y = intervals(series.numbers(rows, "time_s"), values, average_s)
            lines.append(Line(name, x, y / unit, style))
    return lines


def _time(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


# --- tables -------------------------------------------------------------------------------------

_COLUMNS = ("flow", "protocol", "rate (Mbit/s)", "max-min (Mbit/s)", "RTT (ms)", "retransmissions")
MAX_ROWS = 12


def table(result: Result) -> str:
    """Return the table of the flows' mean rates in the measured window as HTML."""
    window = result.summary["measure_s"]
    flows = result.summary["flows"]
    rows = [
        (
            escape(flow["name"]),
            escape(flow["protocol"]),
            _number(flow["rate_bps"], 1e-6),
            _number(flow["max_min_bps"], 1e-6),
            _number(flow["rtt_ms"]["mean"]),
            _number(flow["retransmissions"]),
        )
        for flow in flows[:MAX_ROWS]
    ]
    caption = f"Means from {window[0]:.3g} s to {window[1]:.3g} s"
    if len(flows) > MAX_ROWS:
        caption += f", the first {MAX_ROWS} of {len(flows)} flows"
    return html_table(_COLUMNS, rows, caption)


def html_table(columns: Iterable[str], rows: Iterable[Iterable[str]], caption: str) -> str:
    """Return a table of cells that are HTML already."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="wf-scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f'<table class="wf-table"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _number(value: Any, scale: float = 1.0) -> str:
    return "–" if value is None else f"{value * scale:.4g}"
