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


def test_a_quantum_of_a_time_follows_the_pacing_rate():
    """A hundred packets per RTT of 40 ms: two in 1 ms, five in 2 ms."""

    def queue_max(quantum):
        scenario = waterfill.Scenario("burst", duration="2 s", protocol="window")
        scenario = scenario.link("l", "a", "b", "100 Mbit/s", "20 ms").params("window", packets=100)
        scenario = scenario.flow("f", "a", "b", pacing=True, pacing_quantum=quantum)
        return scenario.set(measure=["1 s", "2 s"]).run().summary.links[0].queue_packets.max

    assert queue_max("1 ms") == queue_max(2) == 1
    assert queue_max("2 ms") == queue_max(5) == 4


@pytest.mark.parametrize(
    ("given", "said"),
    [("0 ms", "must be above zero"), ("1 mss", '10 packets" or a time such as "1 ms"')],
)
def test_a_wrong_quantum_is_refused_in_a_sentence(given, said):
    def of(quantum):
        scenario = waterfill.Scenario("burst", duration="1 s", protocol="sack")
        scenario = scenario.link("l", "a", "b", "50 Mbit/s", "20 ms")
        return scenario.flow("f", "a", "b", pacing_quantum=quantum).to_toml()

    with pytest.raises(waterfill.errors.InputError, match=said):
        of(given)
    assert 'pacing_quantum = "1 ms"' in of("1 ms")


def test_a_quantum_of_one_second_is_no_single_packet():
    scenario = waterfill.Scenario("burst", duration="1 s").link("l", "a", "b", "50 Mbit/s", "20 ms")
    with pytest.raises(waterfill.errors.InputError, match="pacing_quantum"):
        scenario.flow("f", "a", "b", protocol="sack", pacing_quantum="1 s").run(on="fluid")
