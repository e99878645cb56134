"""Theorems of router laws, in packets: both sides of a condition, and what it costs."""

from __future__ import annotations

import numpy as np
import pytest

from router_laws import LOT_PATHS, LOT_RATES_BPS, column, parking_lot, run
from waterfill.theory.alpha_rcp import Network, alpha_fair


@pytest.mark.filterwarnings("ignore::waterfill.network.protocols.Misfit")
@pytest.mark.parametrize("rtt_s", [10e-6, 1e-3, 0.1, 10.0])
def test_one_set_of_constants_of_mkc_is_stable_at_every_rtt(rtt_s):
    duration_s = 60 * rtt_s + 6
    loads = column(run("mkc", [rtt_s, 2 * rtt_s], duration_s), "mkc_load", 0.7 * duration_s)
    wanted = 0.95 * 20e6 + 2 * 0.2e6
    assert loads.mean() == pytest.approx(wanted, rel=0.005)
    # A packet in the law's 20 ms is 3 % of the load.
    assert np.abs(loads / wanted - 1).max() < 0.065


def test_a_gain_of_mkc_above_two_oscillates():
    for beta, stable in ((1.8, True), (2.2, False)):
        used = run("mkc", [0.01], 10, rate_bps=1e8, beta=beta).summary["links"][0]["utilization"]
        assert (abs(used - 0.95) < 0.01) is stable, (beta, used)


def test_mkc_overloads_a_link_in_proportion_to_its_flows():
    for flows in (4, 64):
        result = run("mkc", [0.02, 0.04] * (flows // 2), 12, rate_bps=1e8, buffer="250 kB")
        loads, wanted = column(result, "mkc_load", 6), 95e6 + flows * 0.2e6
        assert loads.mean() == pytest.approx(wanted, rel=0.01)
        assert (result.summary["links"][0]["drops"] > 0) is (wanted > 1e8)


@pytest.mark.parametrize("on", ["sim", "fluid"])
@pytest.mark.parametrize("fairness", [1.0, 2.0, 50.0])
def test_alpha_rcp_gives_the_rates_of_our_solver(on, fairness):
    found, _ = parking_lot("alpha_rcp", on, "20 s", fairness=fairness)
    network = Network.of([0.95 * rate for rate in LOT_RATES_BPS], LOT_PATHS)
    assert found == pytest.approx(alpha_fair(network, fairness), rel=0.02)


@pytest.mark.parametrize("on", ["sim", "fluid"])
def test_both_sides_of_the_bound_of_alpha_rcp_and_its_queue_term(on):
    def swing(gain, rtts_s, **more):
        params = {"gain": gain, "max_interval": "5 ms"} | more
        result = run("alpha_rcp", rtts_s, 40, on=on, rate_bps=1e8, **params)
        offers = column(result, "alpha_rcp_rate", 27)
        return np.ptp(offers) / offers.mean()

    equal, unequal = [0.1] * 4, [0.04, 0.16] * 2
    assert swing(1.2, equal) < 0.04
    assert swing(1.9, equal) > 0.5
    # With unequal RTTs the bound is sufficient, not necessary.
    assert swing(1.9, unequal) < 0.04
    assert swing(1.2, equal, queue_gain=0.02, gamma=1.0) > 0.5


def test_a_step_of_alpha_rcp_spares_the_queue_of_a_new_flow():
    queues = []
    for step in (False, True):
        result = run("alpha_rcp", [0.05] * 3, 12, rate_bps=1e8, starts_s=[0, 0, 8], step=step)
        queues.append(column(result, "queue_max_bytes", 8).max())
    assert queues[1] < 0.05 * queues[0]
    assert queues[0] > 100_000
