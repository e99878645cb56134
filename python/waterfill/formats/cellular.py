"""Reader of rate traces as a network: one link that follows the trace, and flows over this link.

The file is a list of delivery opportunities, as mahimahi's, or a CSV of times and rates.
"""

from __future__ import annotations

from pathlib import Path

from waterfill.errors import InputError
from waterfill.formats.layout import FlowPlan, Layout, LinkPlan
from waterfill.scenario import traces
from waterfill.scenario.distributions import PartError
from waterfill.scenario.units import RATE, TIME


def read(path: Path, delay_s: float, count: int) -> Layout:
    """Return a link whose forward direction follows the trace, and `count` flows over this link.

    Raises InputError.
    """
    try:
        trace = traces.parse(str(path))
    except PartError as error:
        raise InputError(str(path), "", str(error)) from None
    rates = [rate for _, rate in trace.points[:-1]]
    # Three significant digits: the buffer refers to it, and nothing else.
    mean_bps = float(f"{trace.mean_bps:.3g}")
    link = LinkPlan("cell", "tower", "phone", mean_bps, delay_s, rate_trace=str(path.resolve()))
    return Layout(
        path.stem,
        [link],
        ["tower", "phone"],
        flows=[FlowPlan("down", "tower", "phone", ("cell",), count=count)],
        notes=[
            f"The trace lasts {TIME.format(trace.length_s)}; its mean is {RATE.format(mean_bps)}, "
            f"its rates are {RATE.format(round(min(rates)))} to {RATE.format(round(max(rates)))}.",
            "Only the direction from the tower follows it; `rate` is the buffer's and the other's.",
        ],
        duration_s=trace.length_s,
    )
