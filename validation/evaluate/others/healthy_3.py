"""A delay-based law after FAST TCP: each flow keeps a few packets in the queue."""

from math import inf
from typing import Any

import waterfill

MIN_PACKETS = 4
EPOCH_S = 5.0  # between renewals of the base RTT


class BaseRtt:
    """The smallest RTT of the current epoch and of the one before."""

    def __init__(self) -> None:
        self.previous = self.current = inf
        self.since = 0.0

    def update(self, now_s: float, rtt_s: float) -> bool:
        """Take a sample; return whether a new epoch has begun."""
        renewed = now_s - self.since >= EPOCH_S
        if renewed:
            self.previous = self.current
            self.current, self.since = inf, now_s
        self.current = min(self.current, rtt_s)
        return renewed

    def value(self) -> float:
        return min(self.previous, self.current)


class Source:
    """One sender's window, in packets."""

    def __init__(self, connection: Any) -> None:
        self.params = connection.params
        self.mss = connection.packet_bytes
        self.window: float = connection.initial_window_bytes / self.mss
        self.starting = True
        self.base = BaseRtt()
        self.round, self.round_min = -1, inf
        self.drain_until = -1
        self.srtt: float | None = None
        self.undo: float | None = None

    def on_ack(self, ack: Any) -> None:
        if ack.rtt_s is None:
            return
        if self.base.update(ack.now_s, ack.rtt_s) and not self.starting:
            self.drain_until = ack.round + 2
        self.srtt = ack.smoothed_rtt_s
        if ack.kind == "syn":
            return
        self.round_min = min(self.round_min, ack.rtt_s)
        used = ack.window_limited and not ack.recovering
        if used and self.starting:
            self.window += ack.acked_bytes / self.mss
        if ack.round != self.round:
            if self.round_min < inf and ack.round > self.drain_until + 1:
                self._update(used)
            self.round, self.round_min = ack.round, inf

    def _update(self, used: bool) -> None:
        """Once per round, move towards the window that queues `alpha` packets."""
        ratio = min(self.base.value() / self.round_min, 1.0)
        queued = self.window * (1.0 - ratio)
        if self.starting:
            if queued > self.params.alpha:
                self.starting = False
                self.window = max(self.window * ratio, MIN_PACKETS)
            return
        target = self.window * ratio + self.params.alpha
        if target > self.window and not used:
            return
        gain = self.params.gain
        self.window = max((1.0 - gain) * self.window + gain * target, MIN_PACKETS)

    def on_event(self, now_s: float, event: str) -> None:
        if event in ("loss", "marked"):
            self.undo, self.starting = self.window, False
            self.window = max(0.7 * self.window, MIN_PACKETS)
        elif event == "timeout":
            self.undo = None
            self.window, self.starting = float(MIN_PACKETS), True
        elif event == "spurious" and self.undo is not None:
            self.window, self.undo = max(self.window, self.undo), None
        elif event == "syns_lost":
            self.window = float(MIN_PACKETS)

    def limit(self) -> tuple[float | None, float | None]:
        window = self.window
        if self.round <= self.drain_until:
            window = max(window / 2, MIN_PACKETS)
        if self.srtt is None:
            return window * self.mss, None
        gain = 2.0 if self.starting else 1.25
        return window * self.mss, 8 * gain * window * self.mss / self.srtt

    def observe(self) -> dict[str, float]:
        base = self.base.value()
        return {"window": self.window, "base": base if base < inf else 0.0}


LAWS = {
    "healthy-3": waterfill.PythonLaw(
        source=Source,
        paced=True,
        ecn="classic",
        recovery="quic",
        params={
            "alpha": waterfill.LawParam(8.0, "packets", min=1, max=1000, doc="packets to queue"),
            "gain": waterfill.LawParam(0.5, min=0.01, max=1, doc="step towards the target"),
        },
        signals={"window": "packets", "base": "s"},
        summary="delay-based window after FAST TCP",
    )
}
