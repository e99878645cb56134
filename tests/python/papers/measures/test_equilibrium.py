"""Measures of rest and of AECP's theorems, against values worked out by hand."""

from __future__ import annotations

import math

import pytest

import synthetic
from waterfill.papers.measures import convergence, equilibrium, several

FIG_1 = [155e6, 100e6]


def test_xcp_leaves_a_fifth_of_the_link_to_many_flows():
    assert equilibrium.rest_utilization(x=1e9, capacity_bps=FIG_1) == pytest.approx(124 / 155)
    assert equilibrium.rest_rate(x=1e9, capacity_bps=FIG_1) == pytest.approx(24e6, rel=1e-6)
    share = equilibrium.rest_share(x=4, capacity_bps=FIG_1, protocol="ixcp")
    assert share == pytest.approx(1.0, rel=1e-6)


def test_header_growth_is_what_ixcp_states():
    assert equilibrium.header_growth(protocol="ixcp", over="xcp", where=["data"]) == 8
    share = equilibrium.header_growth_share(protocol="ixcp", over="xcp", packet_bytes=400)
    assert share == pytest.approx(0.03)


def test_variation_and_rest_time():
    rates = [0.0] * 10 + [8e6, 12e6] * 15
    link = {"l": {"utilization": [1.0] * 40, "drops": [0.0] * 39 + [3.0]}}
    run = synthetic.result({"f": rates}, link)
    variation = equilibrium.rate_variation(run, flow="f", start_s=1, stop_s=4, average_s=0)
    assert variation == pytest.approx(0.2)
    found = equilibrium.rest_time(run, flow="f", at_s=0, stop_s=4, average_s=0, fraction=0.9)
    assert found == pytest.approx(1.2)
    assert several.drops_in_runs({"a": run, "b": run}) == 6


def test_theorems():
    case = {"capacity": 62500.0, "flows": 1.0, "x_0": 10.0, "r_0": 10.0, "theta": 0.9}
    lower_s = math.log(6250 * 9)
    excess = convergence.efficiency_excess(**case, side="lower")
    assert excess == pytest.approx(10.32 - lower_s, abs=0.02)
    assert convergence.fairness_excess(ratio=6250, epsilon=0.9, form="follows") == pytest.approx(
        0, abs=1e-6
    )
    assert convergence.fairness_excess(ratio=6250, epsilon=0.9, form="printed") < -1
    margin_s = convergence.delay_margin(alpha=2, beta=1, t=2)
    assert margin_s == pytest.approx(math.atan(2) - math.atan(0.5), abs=1e-4)
    sampled_s = convergence.sampled_delay_margin(alpha=2, beta=1, t=2, t_2=0.1, source="exact")
    assert sampled_s == pytest.approx(0.55, abs=0.01)
    assert convergence.tuned_gain(alpha=2, gain="beta") == pytest.approx(1)
