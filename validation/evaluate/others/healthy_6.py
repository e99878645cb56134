"""A delay-based law after TCP Vegas, with Reno's response to loss and marks."""

from math import inf
from typing import Any

import waterfill

FRESH_S = 10.0  # after which the base RTT is measured again
PROBE_S, PROBE_PACKETS = 0.2, 2  # with a small window, as BBR does
ALPHA, BETA, GAMMA = 1.0, 3.0, 3.0  # packets in the queue


class Vegas:
    """One sender's window, in bytes."""

    def __init__(self, connection: Any) -> None:
        self.mss = connection.packet_bytes
        self.minimum: float = 2 * self.mss
        self.window: float = connection.initial_window_bytes
        self.slow_start = True
        self.base, self.base_at = inf, 0.0
        self.probe_until: float | None = None
        self.probe_min = inf
        self.round, self.round_min = -1, inf
        self.used = False
        self.kept: float | None = None

    def on_ack(self, ack: Any) -> None:
        if ack.kind == "syn" or ack.rtt_s is None:
            return
        self.round_min = min(self.round_min, ack.rtt_s)
        self.used = self.used or ack.window_limited
        if self.slow_start and ack.window_limited and not ack.recovering:
            self.window += ack.acked_bytes
        if ack.round == self.round:
            return
        self._measure(ack.now_s, ack.smoothed_rtt_s)
        if not ack.recovering and self.probe_until is None:
            self._step()
        self.round, self.round_min, self.used = ack.round, inf, False

    def _measure(self, now_s: float, srtt: float) -> None:
        """Keep the base RTT, and drain the queue to see it again when it is old."""
        if self.round_min <= self.base:
            self.base, self.base_at = self.round_min, now_s
        if self.probe_until is not None:
            self.probe_min = min(self.probe_min, self.round_min)
            if now_s >= self.probe_until:
                self.base, self.base_at = self.probe_min, now_s
                self.probe_until = None
        elif now_s - self.base_at >= FRESH_S and not self.slow_start:
            self.probe_until, self.probe_min = now_s + srtt + PROBE_S, inf

    def _step(self) -> None:
        """Once per round, compare the packets in the queue with the targets."""
        ratio = min(self.base / self.round_min, 1.0)
        queued = self.window / self.mss * (1.0 - ratio)
        if self.slow_start:
            if queued > GAMMA:
                self.slow_start = False
                self._set(self.window * ratio)
        elif queued > BETA:
            excess = self.mss * max((queued - BETA) / 2, 1.0)
            self._set(self.window - min(excess, self.window / 4))
        elif queued < ALPHA and self.used:
            self._set(self.window + self.mss)

    def _set(self, window: float) -> None:
        self.window = max(window, self.minimum)

    def on_event(self, now_s: float, event: str) -> None:
        if event in ("loss", "marked"):
            self.kept, self.slow_start = self.window, False
            self._set(self.window * 0.7)
        elif event == "timeout":
            self.kept, self.slow_start = None, True
            self._set(self.minimum)
        elif event == "spurious" and self.kept is not None:
            self.window, self.kept = max(self.window, self.kept), None
        elif event == "syns_lost":
            self._set(self.minimum)

    def limit(self) -> tuple[float | None, float | None]:
        if self.probe_until is not None:
            return min(self.window, PROBE_PACKETS * self.mss), None
        return self.window, None

    def observe(self) -> dict[str, float]:
        return {"window": self.window / self.mss}


LAWS = {
    "healthy-6": waterfill.PythonLaw(
        source=Vegas,
        paced=False,
        ecn="classic",
        recovery="quic",
        signals={"window": "packets"},
        summary="delay-based window after TCP Vegas",
    )
}
