"""AIMD with CUBIC's decrease and an increase that is fair to Reno, paced, with classic ECN."""

from math import inf
from typing import Any

import waterfill

MIN_PACKETS = 2


class Aimd:
    """One sender's window, in bytes."""

    def __init__(self, connection: Any) -> None:
        self.beta = connection.params.beta
        self.alpha = 3.0 * (1.0 - self.beta) / (1.0 + self.beta)
        self.mss = connection.packet_bytes
        self.minimum = MIN_PACKETS * self.mss
        self.window: float = connection.initial_window_bytes
        self.ssthresh = inf
        self.srtt: float | None = None
        self.saved: tuple[float, float] | None = None

    def on_ack(self, ack: Any) -> None:
        if ack.kind == "syn":
            return
        self.srtt = ack.smoothed_rtt_s
        if ack.recovering or not ack.window_limited:
            return
        if self.window < self.ssthresh:
            grown = self.window + ack.acked_bytes
            self.window = min(grown, max(self.ssthresh, self.window))
        else:
            self.window += self.alpha * self.mss * ack.acked_bytes / self.window

    def on_event(self, now_s: float, event: str) -> None:
        if event == "loss":
            self.saved = (self.window, self.ssthresh)
            self.ssthresh = max(self.beta * self.window, self.minimum)
            self.window = self.ssthresh
        elif event == "marked":
            self.ssthresh = max(self.beta * self.window, self.minimum)
            self.window = self.ssthresh
        elif event == "timeout":
            self.saved = None
            self.ssthresh = max(self.beta * self.window, self.minimum)
            self.window = self.minimum
        elif event == "spurious" and self.saved is not None:
            self.window, self.ssthresh = max(self.window, self.saved[0]), self.saved[1]
            self.saved = None
        elif event == "syns_lost":
            self.window = self.minimum

    def limit(self) -> tuple[float | None, float | None]:
        if self.srtt is None:
            return self.window, None
        gain = 2.0 if self.window < self.ssthresh else 1.25
        return self.window, gain * 8 * self.window / self.srtt

    def observe(self) -> dict[str, float]:
        return {"window": self.window / self.mss}


LAWS = {
    "healthy-4": waterfill.PythonLaw(
        source=Aimd,
        paced=True,
        ecn="classic",
        recovery="quic",
        params={"beta": waterfill.LawParam(0.7, min=0.1, max=0.95, doc="window after ÷ before")},
        signals={"window": "packets"},
        summary="AIMD fair to Reno, paced",
    )
}
