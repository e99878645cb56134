"""RoCC in packets and in the fluid model: its queue, its shares and its condition."""

from __future__ import annotations

import numpy as np
import pytest

from router_laws import column, parking_lot, run

ALPHA, BETA = 0.025, 0.125


def radius(n, delay):
    """Return the largest root of (z − 1)²·z^D + n·(α·z + β·(z − 1)), with D intervals of delay."""
    loop = np.polymul([1, -2, 1], [1] + [0] * delay)
    return abs(np.roots(np.polyadd(loop, n * np.array([ALPHA + BETA, -BETA])))).max()


@pytest.mark.parametrize("on", ["sim", "fluid"])
@pytest.mark.parametrize("rtts_s", [[0.02, 0.05, 0.1, 0.2], [0.05] * 40])
def test_flows_have_equal_rates_and_the_queue_its_reference(on, rtts_s):
    result = run("rocc", rtts_s, 60, on=on, rate_bps=1e8)
    rates = [flow["rate_bps"] for flow in result.summary["flows"]]
    assert rates == pytest.approx([1e8 / len(rtts_s)] * len(rtts_s), rel=0.02)
    assert column(result, "queue_bytes", 40).mean() == pytest.approx(0.0375 * 1e8 / 8, rel=0.03)


@pytest.mark.parametrize("on", ["sim", "fluid"])
def test_a_parking_lot_has_the_rates_of_our_solver(on):
    # Three queues lengthen the RTT of the long flow to 170 ms, too long for the default T.
    found, wanted = parking_lot("rocc", on, "300 s", interval="100 ms")
    assert found == pytest.approx(wanted, rel=0.02)


@pytest.mark.parametrize("on", ["sim", "fluid"])
def test_many_flows_oscillate_without_the_tuning_of_gains(on):
    def swing(tuning):
        result = run("rocc", [0.05] * 24, 120, on=on, rate_bps=1e8, self_tuning=tuning)
        offers = column(result, "rocc_rate", 80)
        return np.ptp(offers) / offers.mean()

    # With the tuning n is 24/16; without it n is 24, unstable without any delay.
    assert radius(1.5, 1) < 1 < radius(24, 0)
    assert swing(True) < 0.05
    assert swing(False) > 0.5


def test_a_long_rtt_oscillates():
    def swing(rtt_s):
        result = run("rocc", [rtt_s] * 3, 200, rate_bps=1e8)
        offers = column(result, "rocc_rate", 150)
        return np.ptp(offers) / offers.mean()

    # n is 3/2, T is 50 ms, and the queue at rest adds 37.5 ms.
    assert radius(1.5, 2) < 1 < radius(1.5, 6)
    assert swing(0.1) < 0.05
    assert swing(0.3) > 0.3
