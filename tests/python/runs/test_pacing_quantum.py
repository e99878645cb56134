"""Bursts of a paced flow."""

from __future__ import annotations

import pytest

import waterfill


def test_a_quantum_sends_bursts_at_the_same_mean_rate():
    def run(quantum):
        scenario = waterfill.Scenario("burst", duration="10 s", protocol="sack", sample="1 ms")
        scenario = scenario.link("l", "a", "b", "50 Mbit/s", "20 ms")
        return scenario.flow(
            "f", "a", "b", pacing=True, pacing_quantum=quantum, initial_window=100,
        ).run()  # fmt: skip

    single, bursts = run(1), run(10)
    queues = [max(result.links["queue_max_bytes"].to_pylist()[:200]) for result in (single, bursts)]
    assert queues[1] > queues[0] + 5 * 1500
    rates = [result.summary.flows[0].rate_bps for result in (single, bursts)]
    assert rates[1] == pytest.approx(rates[0], rel=0.02)
