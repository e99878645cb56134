"""Checks of the numbers in a tour's text against the run of its step, for tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from waterfill.analysis import series
from waterfill.analysis.series import Series
from waterfill.errors import InputError, nearest
from waterfill.network import protocols
from waterfill.scenario.units import TIME
from waterfill.studio import nyquist
from waterfill.studio.answer import Answer
from waterfill.studio.settings import known


@dataclass(frozen=True)
class Number:
    """A number stated in a tour's text, and the measure that it must agree with.

    `of` is the measure, of a flow group or a link (`which`) in the window (s), by default the
    scenario's. `says` is what the text states in `unit`; `within` the relative error allowed (of 1
    where the text says 0), which says how many digits the text means.
    """

    of: str
    says: float
    unit: str = ""
    which: str = ""
    within: float = 0.03
    window: tuple[float, float] | None = None

    def holds(self, value: float) -> bool:
        """Return True if a measured value agrees with the stated number."""
        return abs(value - self.says) <= self.within * (abs(self.says) or 1.0)

    def text(self) -> str:
        """Return the number with its unit, as it appears in the tour's text."""
        shown = f"{self.says:,.6g}".replace(",", " ")
        return f"{shown} {self.unit}".strip()


def measured(number: Number, given: Answer) -> float:
    """Return the measured value in the number's unit; raise InputError for an unknown measure."""
    if number.of not in MEASURES:
        raise InputError("tour", "of", f"unknown measure{nearest(number.of, MEASURES)}")
    window = number.window or tuple(given.result.summary.measure_s)
    return MEASURES[number.of](given, number.which, (float(window[0]), float(window[1])))


Window = tuple[float, float]


def _members(given: Answer, group: str) -> list[str]:
    names = [f.name for f in given.result.summary.flows if f.group == group]
    if not names:
        raise InputError("tour", "which", f"no group of flows is named {group}")
    return names


def _rate(given: Answer, group: str, window: Window) -> float:
    """Return the mean rate of the flows of a group (Mbit/s)."""
    means = []
    for name in _members(given, group):
        means.append(series.mean(*series.rate_series(given.result, name), *window) or 0.0)
    return float(np.mean(means)) / 1e6


def _max_min(given: Answer, group: str, window: Window) -> float:
    """Return the mean max-min rate of the flows of a group in the scenario's window (Mbit/s)."""
    flows = [f for f in given.result.summary.flows if f.group == group]
    return float(np.mean([f.max_min_bps or 0.0 for f in flows])) / 1e6


def _swing(given: Answer, group: str, window: Window) -> float:
    """Return the peak-to-peak rate of the group's first flow, relative to its mean (%)."""
    time_s, rate_bps = series.rate_series(given.result, _members(given, group)[0])
    _, inside = series.between(time_s, rate_bps, *window)
    return 100 * float((inside.max() - inside.min()) / inside.mean())


def _rtt(given: Answer, group: str, window: Window) -> float:
    """Return the mean RTT of the group's first flow (ms)."""
    name = _members(given, group)[0]
    return float(series.named(given.result.summary.flows, name).rtt_ms.mean or math.nan)


def _of_link(given: Answer, link: str, column: str) -> tuple[Series, Series]:
    return series.samples(given.result, "links", link, column)


def _utilization(given: Answer, link: str, window: Window) -> float:
    """Return the mean utilization of a link (%)."""
    return 100 * (series.mean(*_of_link(given, link, "utilization"), *window) or 0.0)


def _queue(given: Answer, link: str, window: Window) -> float:
    """Return the maximum queue length of a link (packets)."""
    _, inside = series.between(*_of_link(given, link, "queue_max_bytes"), *window)
    return float(inside.max()) / given.result.network.packet_bytes


def _drops(given: Answer, link: str, window: Window) -> float:
    """Return the number of packets that a link's queue dropped."""
    _, inside = series.between(*_of_link(given, link, "drops"), *window)
    return float(inside.sum())


def _emptiest(given: Answer, link: str, window: Window) -> float:
    """Return the minimum sampled queue length of a link (packets)."""
    _, inside = series.between(*_of_link(given, link, "queue_bytes"), *window)
    return float(inside.min()) / given.result.network.packet_bytes


def _smallest_window(given: Answer, group: str, window: Window) -> float:
    """Return the minimum congestion window of the group's first flow (packets)."""
    return float(_windows(given, group, window).min())


def _largest_window(given: Answer, group: str, window: Window) -> float:
    """Return the maximum congestion window of the group's first flow (packets)."""
    return float(_windows(given, group, window).max())


def _windows(given: Answer, group: str, window: Window) -> Series:
    name = _members(given, group)[0]
    entry = series.named(given.result.summary.flows, name)
    found = series.samples(given.result, "flows", name, protocols.column(entry.protocol, "cwnd"))
    return series.between(*found, *window)[1]


def _spare(given: Answer, link: str, window: Window) -> float:
    """Return XCP's φ/d at a link at the end of the window (Mbit/s)."""
    return _announced(given, link, "spare", window)


def _shuffled(given: Answer, link: str, window: Window) -> float:
    """Return XCP's h/d at a link at the end of the window (Mbit/s)."""
    return _announced(given, link, "shuffled", window)


def _announced(given: Answer, link: str, signal: str, window: Window) -> float:
    protocol = given.result.network.flows[0].protocol
    _, inside = series.between(*_of_link(given, link, protocols.column(protocol, signal)), *window)
    return float(inside[-1]) / 1e6


def _price(given: Answer, link: str, window: Window) -> float:
    """Return a link's MaxNet price at the end of the window (s)."""
    _, inside = series.between(*_of_link(given, link, "maxnet_price"), *window)
    return float(inside[-1])


def _margin(given: Answer, which: str, window: Window) -> float:
    """Return the phase margin (degrees) of a named control loop of the run's protocol.

    "NAME at RTT" is that of another RTT than the run's longest.
    """
    return _loop(given, which).margins.phase_margin_deg


def _delay_margin(given: Answer, which: str, window: Window) -> float:
    """Return the delay margin (ms) of a named control loop of the run's protocol."""
    return 1e3 * _loop(given, which).margins.delay_margin_s


def _loop(given: Answer, which: str) -> nyquist.Curve:
    name, _, rtt = which.partition(" at ")
    protocol, found, _ = nyquist.of_result(given.result)
    if rtt:
        network = given.result.network
        values = protocols.with_defaults([protocol], network.params, known())[protocol]
        found = nyquist.curves(protocol, values, TIME.parse(rtt))
    for curve in found:
        if curve.name == name:
            return curve
    names = ", ".join(curve.name for curve in found)
    raise InputError("tour", "which", f"must be one of {names}, got {which}")


def _window_of_path(given: Answer, group: str, window: Window) -> float:
    """Return the window that fills a group's path (packets): the bottleneck rate × the RTT."""
    network = given.result.network
    flow = next(f for f in network.flows if f.name == group)
    rate_bps = min(network.links[link].rate_bps for link in flow.forward)
    return rate_bps * flow.base_rtt_s / (8 * network.packet_bytes)


def _recovery(given: Answer, group: str, window: Window) -> float:
    """Return the time (s) in which a halved window grows back at one packet per RTT."""
    flow = next(f for f in given.result.network.flows if f.name == group)
    return _window_of_path(given, group, window) / 2 * flow.base_rtt_s


def _mathis(given: Answer, group: str, window: Window) -> float:
    """Return Reno's rate (Mbit/s) at the path's loss p by Mathis et al.: √(3/2p) per RTT."""
    network = given.result.network
    flow = next(f for f in network.flows if f.name == group)
    loss = max(network.links[link].loss for link in flow.forward)
    return math.sqrt(1.5 / loss) * 8 * network.packet_bytes / flow.base_rtt_s / 1e6


MEASURES: Mapping[str, Callable[[Answer, str, Window], float]] = {
    "rate": _rate,
    "max-min": _max_min,
    "swing": _swing,
    "rtt": _rtt,
    "utilization": _utilization,
    "queue": _queue,
    "shortest-queue": _emptiest,
    "drops": _drops,
    "smallest-window": _smallest_window,
    "largest-window": _largest_window,
    "price": _price,
    "spare": _spare,
    "shuffled": _shuffled,
    "phase-margin": _margin,
    "delay-margin": _delay_margin,
    "path-window": _window_of_path,
    "recovery": _recovery,
    "mathis": _mathis,
}
"""Measures that a tour can state, by their names in the tour's file."""
