"""MaxNet's static law, eq. 5 of maxnet-2007, in packets: rates depend on the RTT."""

from __future__ import annotations

import math
from typing import Any

import pytest

import waterfill
from waterfill.theory import maxnet

ALPHA, X_MAX_BPS, MU, DT_P_S, RATE_BPS = 0.66, 1e15, 0.9, 0.001, 10e6
RTTS_S = [0.050, 0.052]


class Router:
    """Eq. 3, from a price at which the longer flow would have the link alone."""

    def __init__(self, link: Any) -> None:
        self.price_s = RTTS_S[1] / ALPHA * math.log(X_MAX_BPS / RATE_BPS)
        self.bytes, self.next_s = 0.0, DT_P_S

    def on_arrival(self, link: Any, passing: Any) -> None:
        self.bytes += passing.bytes
        if passing.header is not None:
            passing.header.price = max(passing.header.price, self.price_s)

    def poll_at(self) -> float:
        return self.next_s

    def on_timer(self, link: Any, now_s: float) -> None:
        self.price_s += 8 * self.bytes / link.capacity_bps - MU * DT_P_S
        self.bytes, self.next_s = 0.0, now_s + DT_P_S


class Source:
    """Eq. 5."""

    def __init__(self, connection: Any) -> None:
        self.rate_bps: float | None = None
        self.window_bytes = connection.initial_window_bytes

    def on_ack(self, ack: Any) -> None:
        self.rate_bps = X_MAX_BPS * math.exp(-ALPHA * ack.echo.price / ack.base_rtt_s)

    def limit(self) -> tuple[float | None, float | None]:
        return (self.window_bytes, None) if self.rate_bps is None else (None, self.rate_bps)


def test_eq5_in_packets_has_the_rates_of_its_equilibrium():
    law = waterfill.PythonLaw(source=Source, router=Router, header=("price",))
    scenario = waterfill.Scenario("eq. 5", duration="20 s", protocol="static")
    scenario = scenario.link("l", "a", "b", "10 Mbit/s", "1 ms")
    for name, rtt_s in zip(("short", "long"), RTTS_S, strict=True):
        scenario = scenario.flow(name, path=["l"], rtt=f"{rtt_s * 1000:g} ms")
    result = scenario.run(laws={"static": law})
    rates = [flow.rate_bps for flow in result.summary.flows]
    expected = maxnet.static_rates_bps(ALPHA, X_MAX_BPS, RTTS_S, MU * RATE_BPS)
    assert rates == pytest.approx(list(expected), rel=0.05)
    # 4 % of RTT are more than a factor of 2 in rate.
    assert rates[1] > 2 * rates[0]
