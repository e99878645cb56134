"""CUBIC (RFC 9438) with HyStart++ (RFC 9406), written in Python, next to the law in Rust.

On sim its results are those of the protocol cubic, byte by byte, with the same loss recovery: by
RFC 6675, the default of laws in Python, or by recovery = "rack".
Use it as the start of a law of your own:

waterfill compare S.toml --law examples/own_cubic.py --protocols my-cubic,cubic
"""

from copy import copy
from math import inf
from typing import Any

import waterfill
from waterfill._core import cbrt  # the same on every host, unlike math.cbrt

MAX_WINDOW = 1e9  # packets
ROUND_SAMPLES, SLOW_ROUNDS, SLOW_GROWTH, MAX_ACKED = 8, 5, 1 / 4, 8.0  # RFC 9406 §4.3


def ps(time_s: float) -> int:
    """Convert seconds to picoseconds, the integers in which the simulator counts."""
    return round(time_s * 1e12)


class SlowStart:
    """HyStart++: slow start that ends when the delay grows."""

    def __init__(self) -> None:
        self.left = 0.0  # packets of the round that have not arrived
        self.last_min: int | None = None
        self.round_min: int | None = None
        self.samples = self.slow_rounds = 0
        self.baseline: int | None = None  # RTT at the start of the conservative phase
        self.leave = False

    def measure(self, acked: float, in_flight: float, rtt: int) -> None:
        self.left -= acked
        if self.left < 0.0:
            self.left = in_flight
            if self.baseline is not None:
                self.slow_rounds += 1
                self.leave = self.leave or self.slow_rounds >= SLOW_ROUNDS
            self.last_min, self.round_min, self.samples = self.round_min, None, 0
        self.round_min = rtt if self.round_min is None else min(self.round_min, rtt)
        self.samples += 1
        if self.samples < ROUND_SAMPLES:
            return
        if self.baseline is not None:
            if self.round_min < self.baseline:
                self.baseline = None
        elif self.last_min is not None:
            threshold = min(max(self.last_min // 8, ps(0.004)), ps(0.016))
            if self.round_min >= self.last_min + threshold:
                self.baseline, self.slow_rounds = self.round_min, 0


class Cubic:
    """One sender's window, in packets as in the RFC."""

    def __init__(self, connection: Any) -> None:
        self.params = connection.params
        self.packet_bytes = connection.packet_bytes
        self.cwnd: float = connection.initial_window_bytes / connection.packet_bytes
        self.initial = self.cwnd
        self.ssthresh = inf
        self.timeouts = 0
        self.slow_start = SlowStart()
        self.alpha = 3.0 * (1.0 - self.params.beta) / (1.0 + self.params.beta)
        self.epoch: int | None = None  # start of the stage, None outside of congestion avoidance
        self.k = self.w_est = 0.0
        self.w_max = self.cwnd_prior = 0.0
        self.at_plateau = self.unbounded = True
        self.last_ack = 0
        self.before: dict[str, Any] | None = None  # state before the last loss or timeout

    def on_ack(self, ack: Any) -> None:
        if ack.kind == "syn":
            return
        acked, now = ack.acked_bytes / self.packet_bytes, ps(ack.now_s)
        if self.ssthresh == inf:
            in_flight = ack.in_flight_bytes / self.packet_bytes
            self.slow_start.measure(acked, in_flight, ps(ack.rtt_s))
        self._leave_out_silence(ack, now)
        if acked > 0.0:
            self.timeouts = 0
        if ack.recovering or not ack.window_limited:
            return
        if self.cwnd < self.ssthresh:
            acked = self._grow(acked)
        if acked > 0.0:
            self._avoid(ack, acked, now)
        self.cwnd = min(max(self.cwnd, 1.0), MAX_WINDOW)

    def _leave_out_silence(self, ack: Any, now: int) -> None:
        """Move the stage by the time in which the window was not used (§4.2)."""
        if self.epoch is not None:
            silence = max(now - self.last_ack, 0)
            if ack.window_limited:
                silence = max(silence - ps(ack.smoothed_rtt_s), 0)
            self.epoch += silence
        self.last_ack = now

    def _grow(self, acked: float) -> float:
        """Grow in slow start; return the packets that count in congestion avoidance."""
        if self.slow_start.leave:
            self.slow_start.leave, self.slow_start.baseline = False, None
            self.ssthresh = self.cwnd
            return acked
        if self.ssthresh == inf:
            share = 1.0 if self.slow_start.baseline is None else SLOW_GROWTH
            self.cwnd += share * min(acked, MAX_ACKED)
            return 0.0
        grown = min(self.cwnd + acked, max(self.ssthresh, self.cwnd))
        left = acked - (grown - self.cwnd)
        self.cwnd = grown
        return left

    def _avoid(self, ack: Any, acked: float, now: int) -> None:
        if self.epoch is None:
            if self.w_max == 0.0:
                self.cwnd_prior = self.cwnd  # §4.10
            if self.at_plateau or self.w_max <= self.cwnd:
                self.w_max = self.cwnd
            self.at_plateau = False
            self.k = cbrt((self.w_max - self.cwnd) / self.params.aggressiveness)  # eq. 2
            self.epoch, self.w_est = now, self.cwnd
        least = self.cwnd if self.unbounded else 0.0
        t = max(now - self.epoch, 0) / 1e12
        caught_up = self.params.catch_up and self.w_est >= self.cwnd_prior
        self.w_est += (1.0 if caught_up else self.alpha) * acked / self.cwnd  # eq. 4
        if self._w_cubic(t) < self.w_est:
            self.cwnd = max(self.w_est, self.cwnd)
        else:
            target = min(max(self._w_cubic(t + ack.smoothed_rtt_s), self.cwnd), 1.5 * self.cwnd)
            self.cwnd += (target - self.cwnd) * min(acked / self.cwnd, 1.0)
        self.cwnd = max(self.cwnd, least)

    def _w_cubic(self, t: float) -> float:
        """Return the window `t` seconds into the stage (eq. 1)."""
        beyond = t - self.k
        return float(self.params.aggressiveness * (beyond * beyond * beyond) + self.w_max)

    def on_event(self, now_s: float, event: str) -> None:
        if event == "loss" or (event == "timeout" and self.timeouts == 0):
            self.before = {**vars(self), "slow_start": copy(self.slow_start), "before": None}
        if event in ("loss", "marked"):
            self.ssthresh = max(self._reduced(timeout=False), 2.0)
            self.cwnd = min(self.ssthresh, max(self.cwnd, 2.0))
        elif event == "timeout":
            if self.timeouts == 0:
                self.ssthresh = max(self._reduced(timeout=True), 2.0)
            self.timeouts += 1
            self.cwnd = 1.0
        elif event == "syns_lost":
            self.cwnd = self.initial = 1.0
        elif event == "idle_restart":
            self._decay(ps(now_s) - self.last_ack)
        elif event == "spurious":
            self._undo()

    def _undo(self) -> None:
        """Restore the state before a loss that was none; keep a window that is larger (§4.9)."""
        cwnd = self.cwnd
        vars(self).update(self.before or {})
        self.cwnd, self.timeouts = max(cwnd, self.cwnd), 0

    def _decay(self, pause: int) -> None:
        """Halve the window for each second of a pause, the shortest timeout (RFC 2861)."""
        for _ in range(min(pause // ps(1.0), 32)):
            self.ssthresh = max(self.ssthresh, 0.75 * self.cwnd)
            self.cwnd = max(self.cwnd / 2.0, min(self.cwnd, self.initial))

    def _reduced(self, *, timeout: bool) -> float:
        self.epoch = None
        shrinks = self.params.fast_convergence and self.cwnd < self.w_max
        self.w_max = self.cwnd * (1.0 + self.params.beta) / 2.0 if shrinks else self.cwnd  # §4.7
        self.cwnd_prior = self.cwnd
        self.at_plateau = self.unbounded = timeout
        return float(self.params.beta * self.cwnd)  # §4.6

    def limit(self) -> tuple[float | None, float | None]:
        return self.cwnd * self.packet_bytes, None

    def observe(self) -> dict[str, float]:
        shown = {"cwnd": self.cwnd}
        if self.ssthresh < inf:
            shown["ssthresh"] = self.ssthresh
        if self.w_max > 0.0:
            shown["w_max"] = self.w_max
        if self.epoch is not None:
            shown["w_est"] = self.w_est
        return shown


def param(default: float | bool, unit: str, doc: str, largest: float | None = None) -> Any:
    """Return a parameter from 0 to `largest`."""
    least = None if unit == "flag" else 1e-6
    return waterfill.LawParam(default, unit, least, largest, doc=doc)


LAWS = {
    "my-cubic": waterfill.PythonLaw(
        source=Cubic,
        paced=False,
        ecn="classic",
        reduction="proportional",
        params={
            "aggressiveness": param(0.4, "ratio", "C, in packets/s³", 1e6),
            "beta": param(0.7, "ratio", "window after a loss ÷ before", 0.999999),
            "fast_convergence": param(True, "flag", "reduce a shrinking flow further"),
            "catch_up": param(True, "flag", "grow as Reno beyond the last maximum"),
        },
        signals=dict.fromkeys(("cwnd", "ssthresh", "w_max", "w_est"), "packets"),
        summary="CUBIC in Python",
    )
}
