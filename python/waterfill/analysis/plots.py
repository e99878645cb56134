"""Figures of runs and papers, as PNG, SVG or PDF: the same run gives the same bytes.

Colours are Okabe and Ito's without yellow, which white paper hides: distinguishable with any colour
vision. Line styles differ too, for black-and-white prints. pyplot is not used: no windows, no
global state. matplotlib is imported when something is drawn.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from waterfill.analysis import transfers
from waterfill.analysis.series import Series
from waterfill.errors import InputError, nearest, shown
from waterfill.runs.files import write_atomically

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from waterfill.runs.result import Result

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_STYLES = ("-", "--", "-.", ":")
# A flow named after a colour has it: "red-blue" in blue would mislead. None is yellow.
_NAMED = {
    "blue": "#0072B2", "red": "#D55E00", "green": "#009E73", "pink": "#CC79A7",
    "purple": "#CC79A7", "orange": "#E69F00", "black": "#000000",
}  # fmt: skip
# More flows than this are drawn as a median and bands per group, more groups as one.
_MAX_LINES = 8
# A legend with more entries would be longer than its panel.
_MAX_LEGEND = 14
# Protocols side by side; with more columns the time axes are too short.
_MAX_COLUMNS = 3
# The figures that `plot` draws.
KINDS = ("overview", "rates", "queues")
# The formats that `save` writes, and the sizes (inches) that it accepts.
FORMATS = ("png", "svg", "pdf")
_SIZES = (1.0, 40.0)
# An average is no longer than this share of the run, whatever the RTTs are.
_MAX_AVERAGE_SHARE = 0.05
# Signals in seconds.
_PRICES = ("maxnet.price", "maxnet2006.price", "scone.price")
# Bins of sizes in a figure of slowdowns.
_SIZE_BINS = 10
# Max-min shares that change more often are not drawn: they would hide the rates.
_MAX_STEPS = 200


def plot(result: Result, kind: str = "overview") -> Figure:
    """Plot a run, simulated now or loaded: `overview` (all there is), `rates` or `queues`.

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
    return rates(result) if kind == "rates" else queues(result)


def rates(result: Result, *, average_s: float = 1.0, title: str = "") -> Figure:
    """Plot the rates of flows and traffic, averaged over intervals of `average_s` (s)."""
    figure, (axis,) = _figure(1)
    _rates(axis, result, average_s)
    axis.set_xlabel("time (s)")
    return _finish(figure, result, title)


def queues(result: Result, *, average_s: float = 0.0, links: Sequence[str] | None = None) -> Figure:
    """Plot the peaks per `average_s` of the queues of these links, by default of the largest."""
    figure, (axis,) = _figure(1)
    _queues(axis, result, average_s, links)
    axis.set_xlabel("time (s)")
    return _finish(figure, result)


def overview(result: Result) -> Figure:
    """Plot rates, queues, utilization and the routers' signals of a run, in up to 100 intervals.

    Each explicit protocol has a panel with what its routers announce: a price, a rate, a load.
    """
    average_s = _average_s(result)
    signals = _router_signals(result)
    figure, axes = _figure(3 + len(signals))
    _rates(axes[0], result, average_s)
    _queues(axes[1], result, average_s)
    _utilization(axes[2], result, average_s)
    for axis, signal in zip(axes[3:], signals, strict=True):
        styles = line_styles()
        for name in _links_with(result, signal):
            rows = result.samples("links", name)
            draw_line(axis, rows, signal, average_s, name, 1.0, next(styles))
        axis.set_ylabel(signal_label(signal))
    axes[-1].set_xlabel("time (s)")
    return _finish(figure, result, free=axes[3:])


def _average_s(result: Result) -> float:
    """Return 1 % of the run, or the largest base RTT where that is longer: windows arrive as such.

    Of a run that is short for its RTTs it is 5 %.
    """
    duration_s = result.summary["duration_s"]
    rtts = (flow["rtt_ms"]["base"] / 1e3 for flow in result.summary["flows"])
    return max(duration_s / 100, min(max(rtts, default=0.0), _MAX_AVERAGE_SHARE * duration_s))


def _router_signals(result: Result) -> list[str]:
    """Return one column of the links' table per protocol: its first signal that routers have."""
    found: dict[str, str] = {}
    for column in result.links.column_names:
        protocol, dot, _ = column.partition(".")
        if dot and protocol not in found and _links_with(result, column):
            found[protocol] = column
    return list(found.values())


def _links_with(result: Result, column: str) -> list[str]:
    """Return the links that have values in a column, the busiest if they are too many to draw."""
    values = _numbers(result.links, column)
    found = result.links["link"].filter(np.isfinite(values))
    known = set(found.unique().to_pylist())
    there = [link["name"] for link in result.summary["links"] if link["name"] in known]
    return most_used(result, there, _MAX_LINES)


def most_used(result: Result, links: Sequence[str], most: int) -> list[str]:
    """Return up to `most` of these links: all in order, or those of the highest utilisation first.

    The utilisation is that of the summary's window, where bottlenecks are at their target.
    """
    if len(links) <= most:
        return list(links)
    used = {link["name"]: link["utilization"] or 0.0 for link in result.summary["links"]}
    return sorted(links, key=lambda name: -used[name])[:most]


def signal_label(column: str) -> str:
    """Return the label of a signal's axis: its column, and the unit of a price."""
    return f"{column} (s)" if column in _PRICES else column


def comparison(
    results: Mapping[str, Result],
    link: str,
    shares: Mapping[str, Sequence[tuple[Series, Series, Series]]],
) -> Figure:
    """Plot rates and the queue of `link` for each protocol, side by side on common axes.

    `shares` are the max-min shares of each run's classes of flows, as (from (s), to (s), bit/s),
    drawn in grey behind the rates. Rates are means, queues peaks, over 1 % of the run.
    """
    from matplotlib.figure import Figure

    columns = min(len(results), _MAX_COLUMNS)
    rows = -(-len(results) // columns)
    figure = Figure(figsize=(2.2 + 2.7 * columns, 1.0 + 3.6 * rows), layout="constrained")
    grid = figure.subplots(
        2 * rows, columns, sharex=True, sharey=False, squeeze=False, height_ratios=[2.2, 1] * rows
    )
    first = next(iter(results.values()))
    duration_s = first.summary["duration_s"]
    average_s = duration_s / 100
    panels = [(grid[2 * (i // columns), i % columns], grid[2 * (i // columns) + 1, i % columns])
              for i in range(rows * columns)]  # fmt: skip
    peak_bytes = max(_link(result, link)["queue_bytes"]["max"] for result in results.values())
    for result in results.values():
        peaks = _numbers(result.samples("links", link), "queue_max_bytes")
        peak_bytes = max(peak_bytes, float(peaks.max(initial=0.0)))
    unit, prefix = (1e6, "MB") if peak_bytes >= 1e6 else (1e3, "kB")
    for (name, result), (rate, queue) in zip(results.items(), panels, strict=False):
        rate.sharey(panels[0][0])
        queue.sharey(panels[0][1])
        rate.set_title(_plain(name), loc="left")
        _shares(rate, shares[name])
        _rates(rate, result, average_s)
        rows_of_link = result.samples("links", link)
        style = {"color": "#000000", "linestyle": "-"}
        draw_line(queue, rows_of_link, "queue_max_bytes", average_s, link, unit, style, np.maximum)
        queue.set_ylabel(f"peak queue ({prefix})\nof each {average_s:.3g} s")
        for axis in (rate, queue):
            axis.set_xlim(0, duration_s)
            axis.grid(alpha=0.3)
            axis.label_outer()
    for i, (rate, queue) in enumerate(panels):
        if i >= len(results):
            rate.remove()
            queue.remove()
        elif i + columns >= len(results):
            queue.set_xlabel("time (s)")
            queue.tick_params(labelbottom=True)
    for axis in panels[0]:
        axis.set_ylim(bottom=0)
    figure.suptitle(f"{_plain(first.summary['scenario'])}: rates, and queue of {_plain(link)}")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2 * columns, frameon=False)
    return figure


# Quantities over seeds: key, label, unit's size.
_OVER_SEEDS = (
    ("utilization", "utilisation of the bottleneck (%)", 0.01),
    ("queue_bytes.mean", "mean queue (kB)", 1e3),
    ("jain_index", "Jain's index", 1.0),
    ("share_ratio.worst", "smallest rate / max-min share", 1.0),
    ("settling_s.worst", "settling time, slowest flow (s)", 1.0),
    ("slowdown.p99", "slowdown, 99th percentile", 1.0),
)


def over_seeds(document: Mapping[str, Any]) -> Figure:
    """Plot means with 95 % intervals and each seed's value, a panel per quantity.

    `document` is a comparison's with several seeds. A quantity that a seed lacks has no mean.
    """
    from matplotlib.figure import Figure

    runs = document["over_seeds"]
    there = [
        quantity
        for quantity in _OVER_SEEDS
        if any(value is not None for mine in runs.values()
               for value in mine.get(quantity[0], {}).get("values", ()))
    ]  # fmt: skip
    columns = min(len(there), _MAX_COLUMNS)
    rows = -(-len(there) // columns)
    height = 0.9 + 0.28 * len(runs)
    figure = Figure(figsize=(3.4 * columns + 0.6, 0.5 + height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for axis, (key, label, unit) in zip(grid, there, strict=False):
        for place, (mine, style) in enumerate(zip(runs.values(), line_styles(), strict=False)):
            found = mine[key]
            values = [value / unit for value in found["values"] if value is not None]
            axis.plot(values, [place] * len(values), ".", color="#666666", markersize=4, zorder=3)
            if found["interval"] is not None:
                low, high = (end / unit for end in found["interval"])
                axis.plot([low, high], [place, place], color=style["color"], linewidth=2.2)
                axis.plot(found["mean"] / unit, place, "o", color=style["color"], markersize=5)
        axis.set_xlabel(label)
        axis.grid(alpha=0.3, axis="x")
        axis.set_ylim(len(runs) - 0.5, -0.5)
        axis.set_yticks(range(len(runs)), [_plain(name) for name in runs])
    for axis in grid[len(there) :]:
        axis.remove()
    figure.suptitle(f"{len(document['seeds'])} seeds: mean, 95 % interval, and each seed (grey)")
    return figure


def slowdowns(tables: Mapping[str, pa.Table]) -> Figure:
    """Plot the slowdowns of transfers (`Result.transfers`) by name: of a protocol, or of a run.

    Left the distribution, right the median and the 99th percentile by size, in up to ten bins of
    equally many flows. Unfinished flows have no slowdown: a distribution ends below 1 by them.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 4.6), layout="constrained")
    share, size = figure.subplots(1, 2)
    for (name, table), style in zip(tables.items(), line_styles(), strict=False):
        found = transfers.cdf(table)
        share.step(
            _numbers(found, "slowdown"), _numbers(found, "share"),
            where="post", label=_plain(name), linewidth=1.4, **style,
        )  # fmt: skip
        middle, median, p99 = _by_size(table)
        size.plot(middle, median, linewidth=1.4, **style)
        size.plot(middle, p99, linewidth=1.0, marker=".", **style)
    share.set_xlabel("slowdown (completion time / ideal time)")
    share.set_ylabel("share of flows")
    share.set_ylim(0, 1)
    size.set_xlabel("size (bytes)")
    size.set_ylabel("slowdown: median, and 99th percentile (dots)")
    share.set_xscale("log")
    size.set_xscale("log")
    size.set_yscale("log")
    for axis in (share, size):
        axis.grid(alpha=0.3)
    handles, labels = share.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    return figure


def _by_size(table: pa.Table) -> tuple[Series, Series, Series]:
    """Return the median size, the median and the 99th percentile of the slowdown in each bin."""
    sizes, slowdown = _numbers(table, "size_bytes"), _numbers(table, "slowdown")
    there = np.isfinite(slowdown)
    order = np.argsort(sizes[there], kind="stable")
    sizes, slowdown = sizes[there][order], slowdown[there][order]
    bins = min(_SIZE_BINS, len(sizes))
    parts = [part for part in np.array_split(np.arange(len(sizes)), max(1, bins)) if len(part)]
    middle = np.array([np.median(sizes[part]) for part in parts])
    spreads = [transfers.spread(slowdown[part]) for part in parts]
    p50, p99 = (np.array([s[key] for s in spreads], dtype=np.float64) for key in ("p50", "p99"))
    return middle, p50, p99


def resize(figure: Figure, size: str) -> None:
    """Give a figure a size "WIDTHxHEIGHT" in inches, such as "7x3".

    Raises InputError for another text, and for a size out of range or too small for its panels.
    """
    import warnings

    try:
        width, height = (float(side) for side in size.lower().split("x"))
    except ValueError:
        width = height = float("nan")
    low, high = _SIZES
    if not (low <= width <= high and low <= height <= high):
        message = f'expected inches such as "7x4.5", {low:g} to {high:g}, got {shown(size)}'
        raise InputError("command line", "size", message)
    figure.set_size_inches(width, height)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        figure.draw_without_rendering()
    if any("collapsed" in str(warning.message) for warning in found):
        message = f"expected a size that its panels fit in, got {shown(size)}"
        raise InputError("command line", "size", message)


def save(figure: Figure, stem: Path, formats: Sequence[str] = ("png", "svg")) -> list[Path]:
    """Write `stem`.png, `stem`.svg and so on atomically and return their paths.

    Raises InputError for an unknown format and when one cannot be written.
    """
    import matplotlib

    for kind in formats:
        if kind not in FORMATS:
            raise InputError(
                "command line", "format", f"unknown format {shown(kind)}{nearest(kind, FORMATS)}"
            )

    # By default an SVG's ids are random and the files hold the date and the version.
    metadata: dict[str, dict[str, Any]] = {
        "png": {"Software": None},
        "svg": {"Date": None, "Creator": None},
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    }
    # Text stays text, which readers can search and editors change.
    text: Any = {"svg.hashsalt": "waterfill", "svg.fonttype": "none", "pdf.fonttype": 42}
    written = []
    for kind in formats:
        extra = metadata[kind]

        def write(path: Path, kind: str = kind, extra: dict[str, Any] = extra) -> None:
            with matplotlib.rc_context(text):
                figure.savefig(path, format=kind, dpi=150, metadata=extra)

        written.append(write_atomically(stem.with_name(f"{stem.name}.{kind}"), write))
    return written


def _figure(rows: int) -> tuple[Figure, list[Any]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.2 + 2.2 * (rows - 1)), layout="constrained")
    return figure, list(figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0])


def _finish(figure: Figure, result: Result, title: str = "", free: Sequence[Any] = ()) -> Figure:
    """Add title, limits and legends; the vertical axes begin at zero, but for those in `free`."""
    figure.axes[0].set_title(
        drawn(title or result.summary["scenario"]), loc="left", parse_math=False
    )
    for axis in figure.axes:
        axis.set_xlim(0, result.summary["duration_s"])
        if axis not in free:
            axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        handles, labels = axis.get_legend_handles_labels()
        if len(handles) > _MAX_LEGEND:
            rest = len(handles) - _MAX_LEGEND + 1
            labels = [*labels[: _MAX_LEGEND - 1], f"and {rest} others"]
            handles = [*handles[: _MAX_LEGEND - 1], _nothing()]
        if handles:
            axis.legend(
                handles, labels, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False
            )
    return figure


def _nothing() -> Any:
    """Return a legend's handle without a line."""
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="none")


def _rates(axis: Any, result: Result, average_s: float) -> None:
    flows = result.summary["flows"]
    sources = [source["name"] for source in result.summary.get("traffic", [])]
    few = [flow["name"] for flow in flows] if len(flows) <= _MAX_LINES else []
    styles = iter(named_styles([*few, *sources]) if few else line_styles())
    if len(flows) <= _MAX_LINES:
        for flow in flows:
            rows = result.samples("flows", flow["name"])
            draw_line(axis, rows, "rate_bps", average_s, flow["name"], 1e6, next(styles))
    else:
        groups: dict[str, list[str]] = {}
        for flow in flows:
            groups.setdefault(flow["group"], []).append(flow["name"])
        if len(groups) > _MAX_LINES:  # as imported networks have: a group per flow
            groups = {"all flows": [flow["name"] for flow in flows]}
        for group, names in groups.items():
            many = f"{group} (median; bands: 80 % and all of {len(names)})"
            label = group if len(names) == 1 else many
            _band(axis, result.flows, names, average_s, label, next(styles))
    for name in sources:
        rows = result.samples("traffic", name)
        draw_line(axis, rows, "rate_bps", average_s, name, 1e6, next(styles))
    axis.set_ylabel(f"rate (Mbit/s)\nmeans of {average_s:.3g} s" if average_s else "rate (Mbit/s)")


def _shares(axis: Any, classes: Sequence[tuple[Series, Series, Series]]) -> None:
    if len(classes) > _MAX_LINES or sum(len(spans[0]) for spans in classes) > _MAX_STEPS:
        return
    label: str | None = "max-min share"
    for from_s, to_s, share_bps in classes:
        there = share_bps > 0
        axis.hlines(
            *(share_bps[there] / 1e6, from_s[there], to_s[there]),
            color="#BBBBBB", linewidth=3.0, label=label,
        )  # fmt: skip
        label = None


def _link(result: Result, name: str) -> Any:
    return next(entry for entry in result.summary["links"] if entry["name"] == name)


def _queues(
    axis: Any, result: Result, average_s: float, links: Sequence[str] | None = None
) -> None:
    styles = line_styles()
    for name in links or _busy_links(result, "queue_max_bytes"):
        rows = result.samples("links", name)
        draw_line(axis, rows, "queue_max_bytes", average_s, name, 1e6, next(styles), np.maximum)
    each = f"\nof each {average_s:.3g} s" if average_s else ""
    axis.set_ylabel(f"peak queue (MB){each}")


def _utilization(axis: Any, result: Result, average_s: float) -> None:
    styles = line_styles()
    for name in _busy_links(result, "utilization"):
        rows = result.samples("links", name)
        draw_line(axis, rows, "utilization", average_s, name, 0.01, next(styles))
    axis.set_ylabel("utilisation (%)")


def _busy_links(result: Result, column: str) -> list[str]:
    """Return the links with the largest values of a column, up to the number of colours."""
    peaks = {}
    for link in result.summary["links"]:
        values = _numbers(result.samples("links", link["name"]), column)
        peaks[link["name"]] = float(values.max(initial=0.0))
    highest = max(peaks.values(), default=0.0)
    # Reverse links carry acknowledgements only: leave out the nearly idle ones.
    worth = [name for name, peak in peaks.items() if peak > 0.05 * highest]
    kept = sorted(worth, key=lambda name: -peaks[name])[:_MAX_LINES]
    return [name for name in worth if name in kept]


def draw_line(
    axis: Any,
    rows: pa.Table,
    column: str,
    average_s: float,
    label: str,
    unit: float,
    style: dict[str, Any],
    combine: np.ufunc = np.add,
) -> None:
    """Draw a column of a flow, link or source over time, in `unit`, means of `average_s`."""
    time_s, values = intervals(_numbers(rows, "time_s"), _numbers(rows, column), average_s, combine)
    axis.plot(time_s, values / unit, label=_plain(label), linewidth=1.4, **style)


def _band(
    axis: Any,
    table: pa.Table,
    names: list[str],
    average_s: float,
    label: str,
    style: dict[str, Any],
) -> None:
    """Draw the median of these flows' means, and the bands of 80 % and of all of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = table.filter(pc.is_in(table["flow"].cast("string"), pa.array(names)))
    time_s, rate_bps = _numbers(rows, "time_s"), np.nan_to_num(_numbers(rows, "rate_bps"))
    flow = rows["flow"].combine_chunks().indices.to_numpy()
    # The bands are of each flow's means: of samples they would show single packets.
    number = np.ceil(time_s / average_s - 1e-6) if average_s > 0 else time_s
    numbers, place = np.unique(number, return_inverse=True)
    flows, column = np.unique(flow, return_inverse=True)
    sums, counts = np.zeros((2, len(numbers), len(flows)))
    np.add.at(sums, (place, column), rate_bps / 1e6)
    np.add.at(counts, (place, column), 1)
    means = np.full_like(sums, np.nan)  # a flow that is not there has no mean
    np.divide(sums, counts, out=means, where=counts > 0)
    low, tenth, median, ninetieth, high = np.nanpercentile(means, [0, 10, 50, 90, 100], axis=1)
    middle_s = (numbers - 0.5) * average_s if average_s > 0 else numbers
    axis.plot(middle_s, median, label=_plain(label), linewidth=1.4, **style)
    axis.fill_between(middle_s, low, high, color=style["color"], alpha=0.12, linewidth=0)
    axis.fill_between(middle_s, tenth, ninetieth, color=style["color"], alpha=0.25, linewidth=0)


def intervals(
    time_s: Series, values: Series, average_s: float, combine: np.ufunc = np.add
) -> tuple[Series, Series]:
    """Return means (or maxima) over intervals of `average_s`, at the intervals' middles."""
    values = np.nan_to_num(values)
    if average_s <= 0 or not len(values):
        return time_s, values
    # A sample at exactly 1.0 s ends the interval (0, 1].
    number = np.ceil(time_s / average_s - 1e-6).astype(np.int64)
    starts = np.flatnonzero(np.diff(number, prepend=number[0] - 1))
    combined = combine.reduceat(values, starts)
    if combine is np.add:
        combined = combined / np.diff(np.append(starts, len(values)))
    return np.asarray((number[starts] - 0.5) * average_s), combined


def line_styles() -> Iterator[dict[str, Any]]:
    """Yield the colour and style of the first line, the second …; 28 differ from each other."""
    for count in itertools.count():
        turn, place = divmod(count, len(_COLOURS))
        yield {"color": _COLOURS[place], "linestyle": _STYLES[(place + turn) % len(_STYLES)]}


def named_styles(names: Sequence[str]) -> list[dict[str, Any]]:
    """Return colour and style of lines: as `line_styles`, but names of colours have theirs.

    A name counts by its first word, as in "red-blue". Lines of one colour differ in style.
    """
    known = [_NAMED.get(re.split(r"[^a-z]", name.lower(), maxsplit=1)[0]) for name in names]
    if not any(known):
        return list(itertools.islice(line_styles(), len(names)))
    free = [colour for colour in _COLOURS if colour not in known] or list(_COLOURS)
    found: list[dict[str, Any]] = []
    unnamed = 0
    for place, named in enumerate(known):
        colour = named or free[unnamed % len(free)]
        unnamed += named is None
        used = [style["linestyle"] for style in found if style["color"] == colour]
        turned = [_STYLES[(place + i) % len(_STYLES)] for i in range(len(_STYLES))]
        style = next((style for style in turned if style not in used), turned[0])
        found.append({"color": colour, "linestyle": style})
    return found


def _numbers(table: pa.Table, column: str) -> Series:
    return np.asarray(table[column].to_numpy(), dtype=np.float64)


def drawn(text: str) -> str:
    """Return a text for a figure: XML has no control characters, U+FFFE and U+FFFF."""
    return "".join(
        "\ufffd"
        if c < " " or "\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff" or c in "\ufffe\uffff"
        else c
        for c in text
    )


def _plain(label: str) -> str:
    # matplotlib typesets $…$ and hides labels that start with an underscore.
    label = drawn(label).replace("$", r"\$")
    return f" {label}" if label.startswith("_") else label
