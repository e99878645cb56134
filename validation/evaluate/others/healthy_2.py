"""CUBIC (RFC 9438) for a QUIC sender, in bytes, paced, with a delay-based end of slow start."""

from math import inf
from typing import Any

import waterfill
from waterfill._core import cbrt

C = 0.4  # packets/s³
MIN_PACKETS = 2
GAIN_START, GAIN_LATER = 2.0, 1.25  # pacing rate ÷ (window / smoothed RTT)
SAMPLES = 8


class Cubic:
    """One sender's window."""

    def __init__(self, connection: Any) -> None:
        self.beta = connection.params.beta
        self.mss = connection.packet_bytes
        self.minimum = MIN_PACKETS * self.mss
        self.window: float = connection.initial_window_bytes
        self.ssthresh = inf
        self.alpha = 3.0 * (1.0 - self.beta) / (1.0 + self.beta)
        self.epoch: float | None = None
        self.w_max = self.w_est = self.k = 0.0
        self.srtt: float | None = None
        self.round = -1
        self.round_min = self.last_min = inf
        self.samples = 0
        self.last_ack = 0.0
        self.timeouts = 0
        self.undo: tuple[float, float, float] | None = None

    def on_ack(self, ack: Any) -> None:
        if ack.kind == "syn":
            return
        self.srtt = ack.smoothed_rtt_s
        if ack.acked_bytes > 0:
            self.timeouts = 0
        if self.ssthresh == inf:
            self._watch_delay(ack)
        self._shift(ack)
        if ack.recovering or not ack.window_limited:
            return
        if self.window < self.ssthresh:
            self.window = min(self.window + ack.acked_bytes, max(self.ssthresh, self.window))
        else:
            self._avoid(ack)

    def _shift(self, ack: Any) -> None:
        """Leave out of the stage the time in which the window was not used (§4.2)."""
        unused = ack.now_s - self.last_ack
        if ack.window_limited:
            unused = max(unused - ack.smoothed_rtt_s, 0.0)
        if self.epoch is not None:
            self.epoch += unused
        self.last_ack = ack.now_s

    def _watch_delay(self, ack: Any) -> None:
        """End slow start when the delay of a round has grown (HyStart)."""
        if ack.round != self.round:
            self.round, self.last_min = ack.round, self.round_min
            self.round_min, self.samples = inf, 0
        self.round_min = min(self.round_min, ack.rtt_s)
        self.samples += 1
        if self.samples >= SAMPLES and self.last_min < inf:
            threshold = min(max(self.last_min / 8, 0.004), 0.016)
            if self.round_min >= self.last_min + threshold:
                self.ssthresh = self.window

    def _avoid(self, ack: Any) -> None:
        window = self.window / self.mss
        if self.epoch is None:
            self.epoch = ack.now_s
            self.w_max = max(self.w_max, window)
            self.k = cbrt((self.w_max - window) / C)
            self.w_est = window
        acked = ack.acked_bytes / self.mss
        self.w_est += (1.0 if self.w_est >= self.w_max else self.alpha) * acked / window
        t = ack.now_s - self.epoch + ack.smoothed_rtt_s
        beyond = t - self.k
        cubic = C * beyond * beyond * beyond + self.w_max
        target = min(max(cubic, window), 1.5 * window)
        window += (target - window) * min(acked / window, 1.0)
        self.window = max(window, self.w_est) * self.mss

    def on_event(self, now_s: float, event: str) -> None:
        if event in ("loss", "marked"):
            self.undo = (self.window, self.ssthresh, self.w_max)
            self._reduce()
            self.window = self.ssthresh
        elif event == "timeout":
            self.undo = None
            if self.timeouts == 0:
                self._reduce()
            self.timeouts += 1
            self.window = self.minimum
        elif event == "spurious" and self.undo is not None:
            window, self.ssthresh, self.w_max = self.undo
            self.window = max(self.window, window)
            self.epoch, self.undo = None, None
        elif event == "syns_lost":
            self.window = self.minimum

    def _reduce(self) -> None:
        window = self.window / self.mss
        self.epoch = None
        shrinks = window < self.w_max
        self.w_max = window * (1.0 + self.beta) / 2.0 if shrinks else window
        self.ssthresh = max(self.window * self.beta, self.minimum)

    def limit(self) -> tuple[float | None, float | None]:
        if self.srtt is None:
            return self.window, None
        gain = GAIN_START if self.window < self.ssthresh else GAIN_LATER
        return self.window, 8 * gain * self.window / self.srtt

    def observe(self) -> dict[str, float]:
        return {"window": self.window / self.mss, "w_max": self.w_max}


LAWS = {
    "healthy-2": waterfill.PythonLaw(
        source=Cubic,
        paced=True,
        ecn="classic",
        recovery="quic",
        params={"beta": waterfill.LawParam(0.7, min=0.1, max=0.95, doc="window after ÷ before")},
        signals={"window": "packets", "w_max": "packets"},
        summary="CUBIC of RFC 9438, paced",
    )
}
