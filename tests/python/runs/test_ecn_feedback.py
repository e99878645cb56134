"""Feedback of marks through acknowledgements that stand for many packets."""

from __future__ import annotations

import pytest

import waterfill


@pytest.mark.parametrize(
    ("feedback", "low", "high"), [("accecn", 99, 101), ("accecn-ace", 10, 30), (None, 99, 101)]
)
def test_the_accecn_option_counts_marks_in_thinned_acknowledgements(feedback, low, high):
    """Without the option Prague reads eight marks in an acknowledgement of eight packets."""
    bursts = {"ack_aggregation": "5 ms", "ack_thinning": 8}
    scenario = waterfill.Scenario("p", duration="12 s", measure=["6 s", "12 s"])
    scenario = scenario.link(
        "l", "a", "b", "100 Mbit/s", "10 ms", queue="dualpi2", buffer="1000 packets", **bursts
    )
    scenario = scenario.flow("f", "a", "b", protocol="prague", ecn_feedback=feedback)
    (flow,) = scenario.run().summary.flows
    assert low < flow.rate_bps / 1e6 < high
