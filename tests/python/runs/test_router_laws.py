"""Theorems of router laws, in packets: both sides of a condition, and what it costs."""

from __future__ import annotations

import numpy as np
import pytest

from waterfill.runs import backends
from waterfill.theory.alpha_rcp import Network, alpha_fair


def run(
    protocol,
    rtts_s,
    duration_s,
    *,
    on="sim",
    rate_bps=20e6,
    buffer="100 MB",
    starts_s=None,
    **params,
):
    """Run flows of these RTTs over one link, with 200 samples."""
    link = {
        "name": "l", "from": "a", "to": "b", "rate": f"{rate_bps} bit/s", "buffer": buffer,
        "delay": f"{1e9 * min(rtts_s) / 2:.0f} ns",
    }  # fmt: skip
    flows = [
        {"name": f"f{i}", "path": ["l"], "rtt": f"{1e9 * rtt_s:.0f} ns", "start": f"{start_s} s"}
        for i, (rtt_s, start_s) in enumerate(
            zip(rtts_s, starts_s or [0] * len(rtts_s), strict=True)
        )
    ]
    document = {
        "name": "law", "protocol": protocol, "duration": f"{duration_s:.6f} s",
        "sample": f"{duration_s / 200:.6f} s", "link": [link], "flow": flows,
        "params": {protocol: params},
    }  # fmt: skip
    return backends.run(document, on=on)


def column(result, name, start_s):
    """Return a column of the first link after a time."""
    rows = result.links.to_pydict()
    time_s, link = np.array(rows["time_s"]), np.array(rows["link"])
    return np.array(rows[name], dtype=float)[(link == link[0]) & (time_s > start_s)]


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
    rates = {"l0": 50e6, "l1": 40e6, "l2": 60e6}
    links = [
        {"name": name, "from": f"n{i}", "to": f"n{i + 1}", "rate": f"{rate} bit/s",
         "delay": "10 ms", "buffer": "20 MB"}
        for i, (name, rate) in enumerate(rates.items())
    ]  # fmt: skip
    paths = [["l0", "l1", "l2"], ["l0"], ["l1"], ["l2"], ["l2"]]
    flows = [{"name": f"f{i}", "path": path} for i, path in enumerate(paths)]
    document = {
        "name": "lot", "protocol": "alpha_rcp", "duration": "20 s", "link": links, "flow": flows,
        "params": {"alpha_rcp": {"fairness": fairness}},
    }  # fmt: skip
    found = [flow["rate_bps"] for flow in backends.run(document, on=on).summary["flows"]]
    names = list(rates)
    network = Network.of(
        [0.95 * rate for rate in rates.values()], [[names.index(n) for n in p] for p in paths]
    )
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
