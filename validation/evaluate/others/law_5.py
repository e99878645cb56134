"""Reno with appropriate byte counting (RFC 5681, RFC 3465), paced, for a QUIC sender."""

from math import inf
from typing import Any

import waterfill

MIN_PACKETS = 2


class Reno:
    """One sender's window, in packets."""

    def __init__(self, connection: Any) -> None:
        self.mss = connection.packet_bytes
        self.cwnd: float = connection.initial_window_bytes / self.mss
        self.ssthresh = inf
        self.counted = 0.0  # packets acknowledged since the last step
        self.srtt: float | None = None
        self.collapsed = False
        self.before: tuple[float, float] | None = None

    def on_ack(self, ack: Any) -> None:
        if ack.kind == "syn":
            return
        self.srtt = ack.smoothed_rtt_s
        if ack.recovering or not ack.window_limited:
            return
        acked = ack.acked_bytes / self.mss
        if self.cwnd < self.ssthresh:
            self.cwnd = min(self.cwnd + acked, max(self.ssthresh, self.cwnd))
        else:
            self.collapsed = False
            self.counted += acked
            if self.counted >= self.cwnd:
                self.counted -= self.cwnd
                self.cwnd += 1.0

    def on_event(self, now_s: float, event: str) -> None:
        if event in ("loss", "marked"):
            self.before = (self.cwnd, self.ssthresh)
            self._set_threshold()
            self.cwnd = self.ssthresh
        elif event == "timeout":
            self._collapse()
        elif event == "spurious":
            self._restore()
        elif event == "syns_lost":
            self.cwnd = float(MIN_PACKETS)

    def _set_threshold(self) -> None:
        self.ssthresh = max(self.cwnd / 2, float(MIN_PACKETS))
        self.counted = 0.0

    def _collapse(self) -> None:
        """Begin again from the smallest window; of several in a row only the first one counts."""
        self.before = None
        self.cwnd = float(MIN_PACKETS)
        if not self.collapsed:
            self._set_threshold()
        self.collapsed = True

    def _restore(self) -> None:
        if self.before is not None:
            self.cwnd, self.ssthresh = max(self.cwnd, self.before[0]), self.before[1]
            self.before = None

    def limit(self) -> tuple[float | None, float | None]:
        window = self.cwnd * self.mss
        if self.srtt is None:
            return window, None
        return window, (2.0 if self.cwnd < self.ssthresh else 1.25) * 8 * window / self.srtt

    def observe(self) -> dict[str, float]:
        return {"cwnd": self.cwnd}


LAWS = {
    "law-5": waterfill.PythonLaw(
        source=Reno,
        paced=True,
        ecn="classic",
        recovery="quic",
        signals={"cwnd": "packets"},
        summary="Reno with byte counting, paced",
    )
}
