"""Tables and figure of the study of price bits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from validation.price_bits import theory
from validation.price_bits.cases import (
    CODES,
    LAWS,
    NETWORKS,
    OWN,
    RTTS_MS,
    Code,
    PriceCase,
    PriceRow,
)
from validation.price_bits.claims import Claim, bound, gain_margin, maxnet_cycle, predicted
from validation.tables import markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# The lowest value that the figure shows, % or ms.
_FLOOR = 0.01


def claim_table(judged: Sequence[Claim]) -> str:
    """Return the claims as a Markdown table."""
    rows = ([c.text, c.limit, c.found, "holds" if c.holds else "**fails**"] for c in judged)
    return markdown("claim|limit|found|verdict", rows)


def row_table(rows: Mapping[PriceCase, PriceRow]) -> str:
    """Return a Markdown table with one row per law, encoding and RTT."""
    lines: list[list[object]] = []
    for case, one in rows.items():
        if case.network != NETWORKS[0]:
            continue
        two = rows[case._replace(network=NETWORKS[1])]
        own = [rows[row.case._replace(code=OWN)] for row in (one, two)]
        expected = "–"
        if case.code.bits and not case.code.carried:
            value = predicted(one) if case.law.startswith("maxnet") else bound(one)
            expected = f"{value:.1%}" if case.law.startswith("maxnet") else f"≤ {value:.1%}"
        lines.append(
            [case.law, case.code.name, case.rtt_ms, f"{one.deviation:.1%}", expected,
             f"{one.queue_ms[0]:.1f}", f"{one.off(own[0]):.1%}", f"{two.off(own[1]):.1%}",
             one.drops + two.drops]
        )  # fmt: skip
    head = "law|bits|RTT, ms:|load's deviation:|theory:|queue, ms:|shares off: one link:"
    return markdown(f"{head}|two links:|drops:", lines)


def margin_table() -> str:
    """Return a table of each law's gain margin, with and without a quantiser."""
    lines = []
    for law in LAWS:
        for rtt_ms in RTTS_MS:
            margin = gain_margin(law, rtt_ms / 1e3)
            left = theory.gain_margin_left(margin)
            cells = [law, str(rtt_ms), f"{margin:.2f}", f"{left:.2f}", "–", "–"]
            if law.startswith("maxnet"):
                cycle = maxnet_cycle(law, rtt_ms / 1e3)
                cells[4:] = [f"{2 / math.pi / margin:.2f}", f"{cycle.period_s * 1e3 / rtt_ms:.1f}"]
            lines.append(cells)
    head = "law|RTT, ms:|gain margin:|left across bands:|relay's amplitude, bands:|period, RTTs:"
    return markdown(head, lines)


def figure(rows: Mapping[PriceCase, PriceRow]) -> Figure:
    """Draw the load deviation, queue and rate errors of each encoding against the RTT, for each
    law.
    """
    from matplotlib.figure import Figure

    laws = tuple(dict.fromkeys(case.law for case in rows))
    drawn = Figure(figsize=(3.1 * len(laws), 8.0), layout="constrained")
    axes = drawn.subplots(3, len(laws), sharex=True, sharey="row", squeeze=False)
    styles = {code.name: (f"C{i}", "--" if code.carried else "-") for i, code in enumerate(CODES)}
    for column, law in enumerate(laws):
        for code in CODES:
            found = [
                (rows[case], rows[case._replace(network=NETWORKS[1])])
                for case in rows
                if case.law == law and case.code == code and case.network == NETWORKS[0]
            ]
            rtts = [one.case.rtt_ms for one, _ in found]
            own = [rows[two.case._replace(code=OWN)] for _, two in found]
            colour, dashes = styles[code.name]
            style = {"color": colour, "linestyle": dashes, "marker": "o", "markersize": 3}
            axes[0, column].plot(rtts, [100 * one.deviation for one, _ in found], **style)
            axes[1, column].plot(rtts, [one.queue_ms[0] for one, _ in found], **style)
            if code.bits:
                shares = [
                    max(_FLOOR, 100 * two.off(o)) for (_, two), o in zip(found, own, strict=True)
                ]
                axes[2, column].plot(rtts, shares, **style, label=_label(code))
            if code.name in ("7", "5"):
                expected = predicted if law.startswith("maxnet") else bound
                theory_style = {"color": colour, "linestyle": ":", "linewidth": 1}
                values = [100 * expected(one) for one, _ in found]
                (dotted,) = axes[0, column].plot(rtts, values, **theory_style)
        axes[0, column].set_title(law)
        axes[2, column].set_xlabel("RTT (ms)")
        axes[0, column].set_xscale("log")
        axes[2, column].set_xticks(RTTS_MS, [str(rtt) for rtt in RTTS_MS])
        axes[2, column].minorticks_off()
    labels = (
        "deviation of the load (%)",
        "mean queue (ms)",
        "error of shares,\ntwo equal links (%)",
    )
    for line, label in zip(axes, labels, strict=True):
        line[0].set_ylabel(label)
        line[0].set_yscale("log")
        line[0].set_ylim(bottom=_FLOOR)
        for panel in line:
            panel.grid(alpha=0.3)
    handles, names = axes[2, 0].get_legend_handles_labels()
    own_line = axes[0, 0].get_lines()[0]
    drawn.legend(
        [own_line, *handles, dotted],
        ["as specified", *names, "theory for 5 and 7 bits (rcp, aecp: a bound)"],
        loc="outside lower center",
        ncols=4,
        fontsize=8,
    )
    return drawn


def _label(code: Code) -> str:
    """Return an encoding's entry of the legend."""
    remainder = ", remainder carried" if code.carried else ""
    return f"{code.bits} bits over {code.decades:g} decades{remainder}"


def draw(rows: Mapping[PriceCase, PriceRow], stem: Path) -> None:
    """Write the figure to a PNG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    drawn = figure(rows)
    FigureCanvasAgg(drawn)
    drawn.savefig(stem.with_suffix(".png"), dpi=110)
