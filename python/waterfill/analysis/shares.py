"""Exact max-min shares over a run, for the flows that are active at each time."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from waterfill.analysis.series import Series
from waterfill.network import maxmin, protocols

if TYPE_CHECKING:
    from waterfill.runs.result import Result

# Relative difference below which two shares are equal.
_SAME = 1e-9


class Spans(NamedTuple):
    """Time spans (from, to] (s) with one max-min share (bit/s) each, as arrays of shape (spans,).

    Spans are consecutive, with a share of zero where there is none; neighbours differ.
    """

    from_s: Series
    to_s: Series
    share_bps: Series

    def within(self, from_s: float, to_s: float) -> Spans:
        """Return the spans cut to the time range [from_s, to_s]."""
        met = (self.to_s > from_s) & (self.from_s < to_s)
        starts_s = np.maximum(self.from_s[met], from_s)
        ends_s = np.minimum(self.to_s[met], to_s)
        return Spans(starts_s, ends_s, self.share_bps[met])

    def at(self, time_s: Series) -> Series:
        """Return the share (bit/s) at each of these sample times, or zero outside all spans."""
        if not len(self.to_s):
            return np.zeros(len(time_s))
        index = np.searchsorted(self.to_s, time_s - 1e-9)
        inside = (index < len(self.to_s)) & (time_s > self.from_s[0])
        return np.where(inside, self.share_bps[np.minimum(index, len(self.to_s) - 1)], 0.0)


@dataclass(frozen=True)
class Allocation:
    """The exact max-min allocation over a run, for the flows that are active at each time.

    `classes` are the shares of each class of flows; `of_flow` and `lives` the class and the life
    [start, end) (s) of every entry of the summary's flows; `bound_s` per link the flow-seconds in
    the summary's window during which it was a bottleneck.
    """

    classes: list[Spans]
    of_flow: list[int]
    lives: list[tuple[float, float]]
    bound_s: list[float]

    def of(self, flow: int) -> Spans:
        """Return the shares of a flow over its life. `flow` is the flow's index in the summary."""
        return self.classes[self.of_flow[flow]].within(*self.lives[flow])


def allocation(result: Result) -> Allocation:
    """Compute the max-min allocation of a run over the lives of its flows. Shares are NaN where
    switches choose the links of flows.
    """
    end_s = _end_s(result)
    lives = [(a, min(b, end_s)) for a, b in maxmin.lives_in(result.summary.flows)]
    targets = protocols.targets(result.network.params)
    targets |= {name: law.target for name, law in (result.summary.laws or {}).items()}
    classes, of_single = maxmin.classes_of(result.network)
    # An entry may stand for several flows: see `CoreFlow`.
    counts = [flow.count for flow in result.summary.flows]
    firsts = itertools.accumulate(counts[:-1], initial=0)
    of_flow = [of_single[first] for first in firsts] if counts else []
    single = [life for life, count in zip(lives, counts, strict=True) for _ in range(count)]
    arrivals: list[list[float]] = [[] for _ in classes]
    departures: list[list[float]] = [[] for _ in classes]
    for c, (start_s, stop_s) in zip(of_single, single, strict=True):
        if start_s < stop_s:
            arrivals[c].append(start_s)
            departures[c].append(stop_s)
    for times in (*arrivals, *departures):
        times.sort()
    rows: list[list[tuple[float, float, float]]] = [[] for _ in classes]
    bound_s = [0.0] * len(result.network.links)
    if result.network.has_switched:
        unknown = np.array([[0.0], [end_s], [math.nan]])
        return Allocation([Spans(*unknown) for _ in classes], of_flow, lives, bound_s)
    window = result.summary.measure_s
    for from_s, to_s, shares in maxmin.intervals(result.network, targets, single, (0.0, end_s)):
        counted_s = max(0.0, min(to_s, window[1]) - max(from_s, window[0]))
        for c, share in enumerate(shares):
            rate_bps = 0.0 if share is None else share.rate_bps
            if rows[c] and math.isclose(rows[c][-1][2], rate_bps, rel_tol=_SAME):
                rows[c][-1] = (rows[c][-1][0], to_s, rows[c][-1][2])
            else:
                rows[c].append((from_s, to_s, rate_bps))
            if share is not None and share.bottleneck is not None and counted_s > 0:
                alive = bisect_right(arrivals[c], from_s) - bisect_right(departures[c], from_s)
                bound_s[share.bottleneck] += alive * counted_s
    spans = [Spans(*np.array(mine, dtype=np.float64).reshape(-1, 3).T) for mine in rows]
    return Allocation(spans, of_flow, lives, bound_s)


def _end_s(result: Result) -> float:
    return result.summary.end_s
