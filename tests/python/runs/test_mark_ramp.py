"""Marks whose probability grows with the queue."""

from __future__ import annotations

import waterfill


def marks(**keys: object) -> tuple[int, float]:
    """Number of marks that two DCTCP flows get, and their largest queue in packets."""
    scenario = waterfill.Scenario("ramp", duration="1 s", measure=["500 ms", "1 s"])
    scenario = scenario.link("l", "a", "b", "100 Mbit/s", "1 ms", buffer="200 packets", **keys)
    scenario = scenario.flow("f", "a", "b", protocol="dctcp", count=2)
    link = scenario.run().summary.links[0]
    return link.marks, link.queue_packets.max


def test_a_ramp_marks_less_than_a_step_and_lets_the_queue_grow():
    step, low = marks(mark_at="10 packets")
    ramp, between = marks(mark_at="10 packets", mark_to="100 packets", mark_max=0.2)
    none, full = marks(mark_at="10 packets", mark_to="500 packets", mark_max=0)
    assert step > ramp > 0 == none
    assert low < between < full
