"""NewReno for a QUIC sender (RFC 9002 §7), which keeps its own recovery period."""

from math import inf
from typing import Any

import waterfill

MIN_PACKETS = 2  # RFC 9002 §7.2


class NewReno:
    """Window in bytes; losses are counted per packet, by the time of sending."""

    def __init__(self, connection: Any) -> None:
        self.beta = connection.params.beta
        self.mss = connection.packet_bytes
        self.minimum = MIN_PACKETS * self.mss
        self.window: float = connection.initial_window_bytes
        self.ssthresh = inf
        self.recovery_since = -1.0  # start of the recovery period
        self.undo: tuple[float, float] | None = None

    def on_ack(self, ack: Any) -> None:
        if ack.kind == "syn" or not ack.window_limited:
            return
        if ack.sent_s is not None and ack.sent_s <= self.recovery_since:
            return
        if self.window < self.ssthresh:
            self.window = min(self.window + ack.acked_bytes, max(self.ssthresh, self.window))
        else:
            self.window += self.mss * ack.acked_bytes / self.window

    def on_lost(self, now_s: float, sent_s: float) -> None:
        self._congested(now_s, sent_s)

    def on_event(self, now_s: float, event: str) -> None:
        if event == "marked":
            self._congested(now_s, now_s)
        elif event == "timeout":
            self.undo = None
            self.ssthresh = max(self.window * self.beta, self.minimum)
            self.window = self.minimum
        elif event == "spurious" and self.undo is not None:
            self.window, self.ssthresh = max(self.window, self.undo[0]), self.undo[1]
            self.undo = None
        elif event == "syns_lost":
            self.window = self.minimum

    def _congested(self, now_s: float, sent_s: float) -> None:
        """Reduce the window once per recovery period."""
        if sent_s <= self.recovery_since:
            return
        self.recovery_since = now_s
        self.undo = (self.window, self.ssthresh)
        self.ssthresh = max(self.window * self.beta, self.minimum)
        self.window = self.ssthresh

    def limit(self) -> tuple[float | None, float | None]:
        return self.window, None

    def observe(self) -> dict[str, float]:
        return {"window": self.window / self.mss}


LAWS = {
    "healthy-1": waterfill.PythonLaw(
        source=NewReno,
        paced=False,
        ecn="classic",
        recovery="quic",
        params={"beta": waterfill.LawParam(0.5, min=0.1, max=0.95, doc="window after ÷ before")},
        signals={"window": "packets"},
        summary="NewReno of RFC 9002",
    )
}
