"""s-PERC in packets: exact shares, and rounds that are too short."""

from __future__ import annotations

import pytest

from router_laws import column, parking_lot, run


def test_a_parking_lot_has_the_rates_of_our_solver():
    found, wanted = parking_lot("sperc", "sim", "20 s")
    assert found == pytest.approx(wanted, rel=2e-3)


def test_flows_have_exact_shares_without_a_queue():
    result = run("sperc", [0.02, 0.05, 0.1, 0.2], 20, rate_bps=1e8, starts_s=[0, 1, 2, 3])
    rates = [flow["rate_bps"] for flow in result.summary["flows"]]
    assert rates == pytest.approx([0.95 * 25e6] * 4, rel=2e-3)
    assert column(result, "queue_bytes", 10).max() < 10 * 1500


def test_a_round_that_is_too_short_for_slow_flows_gives_their_shares_away():
    """40 flows of 0.24 Mbit/s send a packet in 50 ms, and ask their link every second time. With
    rounds of 50 ms the link has forgotten half of them, and the others' shares overload it.
    """

    def load(interval):
        rtts_s = [0.02] * 40
        result = run("sperc", rtts_s, 20, rate_bps=1e7, buffer="1 MB", interval=interval)
        return result.summary["links"][0]["utilization"]

    assert load("500 ms") == pytest.approx(0.95, abs=0.01)
    assert load("50 ms") > 0.99
