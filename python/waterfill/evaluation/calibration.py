"""Calibration: short runs of this version whose results a formula gives.

They show that the engine, and the laws that others are compared with, do what their documents say.
All runs together take about a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from waterfill.analysis import response
from waterfill.evaluation.verdict import Calibration
from waterfill.runs.backends import run
from waterfill.runs.result import Result
from waterfill.scenario.loading import from_dict

_C = 0.4
_GAIN_UP = 1.25
_LOSSES = 100


def calibrate() -> list[Calibration]:
    """Run all comparisons; the same version gives the same numbers."""
    return [check() for check in (_queue, _sawtooth, _mathis, _cubic_mean, _cubic_curve, _probe)]


def _of(
    name: str, formula: str, source: str, unit: str, values: tuple[float, float], tolerance: float
) -> Calibration:
    expected, measured = values
    return Calibration(
        name=name, formula=formula, source=source, unit=unit, expected=expected,
        measured=measured, tolerance=tolerance,
        met=abs(measured - expected) <= tolerance * abs(expected),
    )  # fmt: skip


def _dumbbell(link: Mapping[str, Any], **more: Any) -> Result:
    """Run one link with a flow or a source of packets."""
    ends = {"name": "l", "from": "a", "to": "b"}
    return run(from_dict({"name": "calibration", "link": [{**ends, **link}], **more}))


def _series(result: Result, column: str, after_s: float) -> tuple[Any, Any]:
    """Return the times (s) and values of a flow's series after a time."""
    times = result.flows["time_s"].to_numpy()
    there = times > after_s
    return times[there], result.flows[column].to_numpy()[there].astype(np.float64)


def _queue() -> Calibration:
    source = {"name": "p", "kind": "poisson", "rate": "8 Mbit/s", "from": "a", "to": "b"}
    link = {"rate": "10 Mbit/s", "delay": "1 ms", "buffer": "10 MB"}
    found = _dumbbell(link, duration="400 s", traffic=[source]).summary.links[0]
    load = 0.8
    expected = load**2 / (2 * (1 - load))
    values = (expected, found.queue_packets.mean)
    return _of("M/D/1 queue at load 0.8", "ρ² ÷ (2 (1 − ρ))", "Pollaczek–Khinchine", "packets",
               values, 0.05)  # fmt: skip


def _alone(protocol: str, rate: str, buffer: str, duration: str, sample: str) -> Result:
    flow = {"name": "f", "from": "a", "to": "b", "protocol": protocol}
    link = {"rate": rate, "delay": "50 ms", "buffer": buffer}
    return _dumbbell(link, duration=duration, sample=sample, flow=[flow])


def _sawtooth() -> Calibration:
    result = _alone("sack", "10 Mbit/s", "0.5 bdp", "120 s", "20 ms")
    _, window = _series(result, "sack_cwnd", 60)
    before, after = _drops(window)
    values = (0.5, float(np.mean(window[after] / window[before])))
    return _of("Reno's window after ÷ before a loss", "1 ÷ 2", "RFC 5681 §3.2", "ratio", values,
               0.03)  # fmt: skip


def _drops(window: Any) -> tuple[Any, Any]:
    """Return the samples before a loss's reduction of a window, and where the window is smallest
    in the RTTs that follow.
    """
    down = np.flatnonzero(np.diff(window) < -0.1 * window[:-1])
    first = down[np.insert(np.diff(down) > _RECOVERY, 0, True)]
    first = first[first + _RECOVERY < len(window)]
    after = [place + int(np.argmin(window[place : place + _RECOVERY])) for place in first]
    return first, np.array(after)


_RECOVERY = 25
"""Samples in which a recovery is over."""


def _response(protocol: str, p: float) -> tuple[float, float]:
    """Return the reference and the measured mean window under periodic losses (packets)."""
    point = response.Point(protocol, "periodic", p, 0.1)
    document = response.scenario(protocol, point.loss, p, point.rtt_s, losses=_LOSSES)
    found = response.case_of(point, run(from_dict(document)).summary)
    return found.reference, found.window


def _mathis() -> Calibration:
    return _of("Reno's mean window, p = 0.001", "√(3 ÷ 2) ÷ √p", "Mathis et al. 1997, eq. 3",
               "packets", _response("reno", 1e-3), response.TOLERANCE)  # fmt: skip


def _cubic_mean() -> Calibration:
    formula = "(C (3 + β) ÷ (4 (1 − β)))^¼ (RTT ÷ p)^¾"
    return _of("CUBIC's mean window, p = 0.0001, RTT 0.1 s", formula, "RFC 9438 eq. 5", "packets",
               _response("cubic", 1e-4), response.TOLERANCE)  # fmt: skip


def _cubic_curve() -> Calibration:
    """Compare the time from a loss until the window is at its plateau again."""
    result = _alone("cubic", "100 Mbit/s", "0.2 bdp", "60 s", "20 ms")
    times, window = _series(result, "cubic_cwnd", 20)
    _, plateau = _series(result, "cubic_w_max", 20)
    low = _drops(window)[1][0]
    top = plateau[low]
    # The time counts from the end of the recovery, until which the window stays.
    begin = low + int(np.argmax(window[low:] > 1.0001 * window[low])) - 1
    k_s = float(np.cbrt((top - window[begin]) / _C))
    again = begin + int(np.argmax(window[begin:] >= top))
    return _of("CUBIC's time back to W_max", "K = ∛((W_max − cwnd) ÷ C)", "RFC 9438 eq. 2", "s",
               (k_s, float(times[again] - times[begin])), 0.03)  # fmt: skip


def _probe() -> Calibration:
    """Compare the time between two probes for bandwidth with eight RTTs."""
    result = _alone("bbr", "20 Mbit/s", "2 bdp", "9 s", "5 ms")
    times, gain = _series(result, "bbr_pacing_gain", 2)
    up = np.flatnonzero((gain[1:] == _GAIN_UP) & (gain[:-1] != _GAIN_UP))
    cycle_s = float(np.median(np.diff(times[up])))
    return _of("BBR's cycle of gains", "8 RTprop", "draft-cardwell-iccrg-bbr-00 §4.3.4.3", "RTT",
               (8.0, cycle_s / 0.1), 0.1)  # fmt: skip
