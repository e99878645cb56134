"""Poseidon in packets and in the fluid model: its target, its shares and its condition."""

from __future__ import annotations

import math

import numpy as np
import pytest

from router_laws import column, parking_lot, run
from waterfill.runs import backends

# Defaults: k, p (s) and the network's rates (bit/s).
K, P, LOW, HIGH = 0.005, 0.1, 10e3, 10e9


def target(rate_bps):
    """Return the delay (s) at which a flow of this rate rests."""
    return K + P * math.log(HIGH / rate_bps) / math.log(HIGH / LOW)


def gain(m, rate_bps, rtt_s, *, exponent="rate"):
    """Return the relative change of U per relative change of all windows."""
    a = math.log(HIGH / (rate_bps if exponent == "rate" else LOW))
    return m * a * (rtt_s + target(rate_bps)) / P


@pytest.mark.parametrize("on", ["sim", "fluid"])
def test_flows_with_unequal_rtts_have_equal_rates_at_the_target(on):
    result = run("poseidon", [0.02, 0.05, 0.1, 0.2], 90, on=on, rate_bps=1e8)
    rates = [flow["rate_bps"] for flow in result.summary["flows"]]
    assert rates == pytest.approx([25e6] * 4, rel=0.02)
    queue = column(result, "queue_bytes", 60).mean()
    assert queue == pytest.approx(target(25e6) * 1e8 / 8, rel=0.01)


@pytest.mark.parametrize("on", ["sim", "fluid"])
def test_a_parking_lot_has_the_rates_of_our_solver(on):
    found, wanted = parking_lot("poseidon", on)
    assert found == pytest.approx(wanted, rel=0.02)


@pytest.mark.parametrize("exponent", ["rate", "range"])
@pytest.mark.parametrize("on", ["sim", "fluid"])
def test_both_sides_of_the_condition(on, exponent):
    for wanted in (0.7, 1.4):
        m = round(wanted / gain(1.0, 25e6, 0.1, exponent=exponent), 4)
        result = run("poseidon", [0.1] * 4, 120, on=on, rate_bps=1e8, m=m, exponent=exponent)
        queue = column(result, "queue_bytes", 90)
        assert bool(np.ptp(queue) < 0.1 * queue.mean()) is (wanted < 1), (m, np.ptp(queue))


def test_with_the_exponent_of_the_model_the_largest_rate_is_reached_slowly():
    link = {"name": "l", "from": "a", "to": "b", "rate": "100 Gbit/s", "delay": "6 us",
            "buffer": "25 bdp"}  # fmt: skip
    document = {
        "name": "fabric", "profile": "datacenter", "protocol": "poseidon", "duration": "3 ms",
        "link": [link], "flow": [{"name": "f", "path": ["l"]}],
    }  # fmt: skip
    used = {}
    for exponent in ("rate", "range"):
        document["params"] = {"poseidon": {"exponent": exponent}}
        used[exponent] = backends.run(document).summary["links"][0]["utilization"]
    # U is 1 at r_max, so a source does not reach it.
    assert used["rate"] < 0.995 < used["range"]
