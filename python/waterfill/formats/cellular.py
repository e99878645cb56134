"""Reader of rate traces as a network: one link that follows the trace, and flows over this link.

The file is a list of delivery opportunities, as mahimahi's, or a CSV of times and rates.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from waterfill.errors import InputError
from waterfill.formats.layout import FlowPlan, Layout, LinkPlan
from waterfill.scenario import traces
from waterfill.scenario.distributions import PartError
from waterfill.scenario.units import RATE, TIME


def read(path: Path, delay_s: float, count: int, keys: Mapping[str, object]) -> Layout:
    """Return a link whose forward direction follows the trace, and `count` flows over this link.

    `keys` are further keys of the scenario's `rate_trace`. Raises InputError.
    """
    table = {"file": str(path.resolve()), **keys}
    try:
        trace = traces.parse(table)
    except PartError as error:
        where = f"--{error.part}" if error.part in keys else str(path)
        text = str(error).replace(str(path.resolve()), str(path))
        for key, option in (("write shift = true", "add --shift"), ("write unit =", "add --unit")):
            text = text.replace(key, option)
        raise InputError(where, "", text) from None
    if keys.get("shift") and trace.points == _unshifted(table):
        why = f"no effect on {path.name}, whose first time is 0 s"
        raise InputError("--shift", "", why, "remove it")
    rates = [rate for _, rate in trace.points[:-1]]
    # Three significant digits: the buffer refers to it, and nothing else.
    mean_bps = float(f"{trace.mean_bps:.3g}")
    link = LinkPlan("cell", "tower", "phone", mean_bps, delay_s, rate_trace=table)
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


def _unshifted(table: Mapping[str, object]) -> traces.Points | None:
    """Return the points of a trace without `shift`, or None if the first time is not 0 s."""
    try:
        return traces.parse({**table, "shift": False}).points
    except PartError:
        return None
