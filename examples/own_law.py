"""A law written in Python: RCP's, beside the one in Rust. Also for `waterfill run --law`."""

from math import inf, isfinite
from typing import Any

import waterfill

ALPHA, BETA = 0.4, 1.0  # gains of spare capacity and of the queue
INTERVAL_S = 0.01  # between updates of a link's rate


class Router:
    """Offers one rate to all: it rises with spare capacity and falls with the queue."""

    def __init__(self, link: Any) -> None:
        self.rate_bps = 0.05 * link.capacity_bps
        self.mean_rtt_s, self.next_s = 0.1, INTERVAL_S
        self.bytes = self.rtt_bytes = self.rtt_sum = 0.0

    def on_arrival(self, link: Any, passing: Any) -> None:
        self.bytes += passing.bytes
        if passing.header is not None:
            self.rtt_sum += passing.header.rtt * passing.bytes
            self.rtt_bytes += passing.bytes if passing.header.rtt > 0 else 0.0
            passing.header.rate = min(passing.header.rate, self.rate_bps)

    def poll_at(self) -> float:
        return self.next_s

    def on_timer(self, link: Any, now_s: float) -> None:
        if self.rtt_bytes > 0:
            weight = min(1.0, INTERVAL_S / self.mean_rtt_s)
            self.mean_rtt_s += weight * (self.rtt_sum / self.rtt_bytes - self.mean_rtt_s)
        capacity, rtt_s = link.capacity_bps, self.mean_rtt_s
        spare = (
            ALPHA * (capacity - 8 * self.bytes / INTERVAL_S) - BETA * 8 * link.queue_bytes / rtt_s
        )
        self.rate_bps *= 1 + INTERVAL_S / rtt_s * spare / capacity
        self.rate_bps = min(max(self.rate_bps, 24e3), capacity)
        self.bytes = self.rtt_bytes = self.rtt_sum = 0.0
        self.next_s = now_s + INTERVAL_S


class Source:
    """Sends at the smallest rate on its path."""

    def __init__(self, connection: Any) -> None:
        self.window_bytes: float = connection.initial_window_bytes
        self.rate_bps: float | None = None
        self.weight, self.rtt_s = connection.weight, 0.0

    def stamp(self, sending: Any) -> dict[str, float]:
        return {"rate": inf, "rtt": self.rtt_s}

    def on_ack(self, ack: Any) -> None:
        self.rtt_s = ack.rtt_s or self.rtt_s
        if isfinite(ack.echo.rate):
            self.rate_bps = self.weight * ack.echo.rate

    def limit(self) -> tuple[float | None, float | None]:
        return (self.window_bytes, None) if self.rate_bps is None else (None, self.rate_bps)


LAWS = {"mine": waterfill.PythonLaw(source=Source, router=Router, header=("rate", "rtt"))}


def dumbbell(protocol: str) -> waterfill.Scenario:
    """Return three flows that share a link, the last one from 3 s on."""
    scenario = waterfill.Scenario("own law", duration="12 s", protocol=protocol)
    scenario.link("l", "a", "b", rate="10 Mbit/s", delay="25 ms")
    return scenario.flow("f", "a", "b", count=2).flow("late", "a", "b", start="3 s")


if __name__ == "__main__":
    for result in (dumbbell("mine").run(laws=LAWS), dumbbell("rcp").run()):
        rates = [f"{(flow.rate_bps or 0) / 1e6:.3f}" for flow in result.summary.flows]
        print(result.summary.flows[0].protocol, *rates, "Mbit/s")
