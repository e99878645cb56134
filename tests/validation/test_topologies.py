"""Tests of the study of real networks: its setting, a few runs, reasons, tables, kept results."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from validation import study as harness
from validation.topologies import cases, reasons, running, study
from validation.topologies.reasons import Reason
from validation.topologies.running import Record
from waterfill.scenario.units import RATE
from waterfill.theory import equilibrium

pytest.importorskip("topohub", reason="topohub is not installed")

MBPS = 1e6


def record(rates, shares, law="rcp", **changes):
    """A settled run of flows a, b, ... with these rates and shares in Mbit/s."""
    number = len(rates)
    values = {
        "network": "topozoo/Made-up", "law": law, "links": 1, "demands": number, "kept": 1.0,
        "ended_s": 30.0, "took_s": 1.0, "names": [chr(ord("a") + i) for i in range(number)],
        "shares_bps": [s * MBPS for s in shares], "demands_bps": [1e9] * number,
        "rates_bps": [r * MBPS for r in rates], "before_bps": [r * MBPS for r in rates],
        "swings": [0.0] * number, "signals": {},
    }  # fmt: skip
    return Record(**{**values, **changes})


def ran(name, law, end_s):
    """A run, settled or not, and the reasons for its exceptions."""
    done = running.run(cases.build(name, law, end_s))
    return done, reasons.explain(done)


def test_all_networks_are_there():
    assert len(cases.names("topozoo")) == 203
    assert len(cases.names("sndlib")) == 26


def test_the_setting_of_a_network_with_many_demands(monkeypatch):
    monkeypatch.setattr(cases, "MAX_FLOWS", 60)
    case = cases.build("sndlib/norway", "rcp", 30.0)
    assert (case.demands, len(case.network.flows)) == (702, 60)
    assert 60 / 702 < case.kept < 0.5
    assert {link.rate_bps for link in case.network.links} == {cases.RATE_BPS * 60 / cases.PAIRS}
    assert min(link.delay_s for link in case.network.links) == cases.STEP_S
    rtts_s = [flow.base_rtt_s for flow in case.network.flows]
    assert min(rtts_s) == pytest.approx(cases.MIN_RTT_S)
    assert max(rtts_s) < cases.MAX_RTT_S + 0.05
    loads_bps = [
        sum(flow.limit_bps for flow in case.network.flows if link in flow.forward)
        for link in range(len(case.network.links))
    ]
    assert max(loads_bps) == pytest.approx(cases.LOAD * case.network.links[0].rate_bps, rel=1e-4)


def test_the_largest_demands_are_kept(monkeypatch):
    monkeypatch.setattr(cases, "MAX_FLOWS", 2)
    flows = [{"name": n, "demand": RATE.format(d)} for n, d in (("a", 1e6), ("b", 3e6), ("c", 4e6))]
    document = {"flow": flows}
    assert cases.keep_largest(document) == pytest.approx(7 / 8)
    assert [flow["name"] for flow in document["flow"]] == ["b", "c"]


def test_maxnet_is_max_min_on_abilene():
    done, found = ran("topozoo/Abilene", "maxnet", 30.0)
    assert found == []
    # The SYN's RTT is shorter than a packet's. Until it expires, errors are 0.1 to 0.6 %.
    assert abs(done.errors).max() < 0.001


@pytest.mark.parametrize(("rtt_s", "holds"), [(0.06, True), (0.0501, False)])
def test_an_rtt_explains_no_more_than_its_excess(rtt_s, holds):
    price = -0.4 * math.log(10 * MBPS / 1e15)
    signals = {"rtt_s": [rtt_s], "base_rtt_s": [0.05], "price": [price]}
    rate = 10 * 0.05 / rtt_s
    done = record([rate], [rate / 0.9], "maxnet", signals=signals)
    distances = reasons.models(done, None)["rtt"]
    assert (distances[0] < 1e-9) == holds


def test_xcp_rests_at_its_own_fixed_point_on_airtel():
    done, found = ran("topozoo/Airtel", "xcp", 30.0)
    assert abs(done.errors).max() > 0.04
    assert [x.reason for x in found] == ["fixed point"] * 4
    assert max(x.evidence for x in found) < 0.01
    # Without what idle flows state it is elsewhere.
    case = cases.build(done.network, done.law, 30.0)
    plain = equilibrium.of_network(case.network, equilibrium.Gains(0.4, 0.1), "xcp")
    assert abs(np.array(done.rates_bps) / np.array(plain.rates_bps) - 1).max() > 0.1


def test_vcp_regains_as_much_between_overloads_for_every_flow_on_abilene():
    done, found = ran("topozoo/Abilene", "vcp", 120.0)
    assert {x.reason for x in found} == {"overload"}
    # α·s/t_d² · t_rho/(1 − β) is 0.48 Mbit/s, if increase filled all of the time.
    assert 0.4 * MBPS < reasons.overload_constant_bps(done) < 0.48 * MBPS


def test_ixcp_rests_elsewhere_with_other_starts_on_claranet():
    _, found = ran("topozoo/Claranet", "ixcp", 30.0)
    assert {"start"} <= {x.reason for x in found} <= {"start", "fixed point"}


def test_a_run_goes_on_until_it_is_settled_and_demands_are_met():
    rates = np.array([10.0, 20.0])
    assert running.is_settled(rates, rates, np.array([math.inf, 20.0]))
    assert not running.is_settled(rates, rates * [1.0, 1.003], np.array([math.inf, 30.0]))
    assert not running.is_settled(rates, rates, np.array([math.inf, 19.0]))


def test_samples_of_the_last_fifths():
    samples = np.arange(20.0).reshape(10, 2)
    assert running.fifth(samples, 1).tolist() == [[16.0, 17.0], [18.0, 19.0]]
    assert running.fifth(samples, 2).tolist() == [[12.0, 13.0], [14.0, 15.0]]


def test_reasons_by_their_order():
    shares, rates = [10.0] * 6, [9.0, 9.0, 9.0, 9.0, 9.0, 9.9]
    before = [9.0, 9.0, 9.0, 9.1, 9.0, 9.9]
    done = record(
        rates, shares, "xcp", swings=[0, 0, 0.1, 0, 0, 0], before_bps=[b * MBPS for b in before]
    )
    predicted = {
        "fixed point": np.array([0.01, 0.05, 0.5, 0.5, 0.5, 0.0]),
        "residues": np.array([0.0, 0.01, 0.5, 0.5, math.inf, 0.0]),
    }
    off = np.flatnonzero(abs(done.errors) > reasons.WITHIN).tolist()
    found = reasons.classify(done, off, predicted)
    expected = ["fixed point", "residues", "swings", "not settled", "unexplained"]
    assert [x.reason for x in found[:5]] == expected
    assert [x.evidence for x in found[:3]] == [0.01, 0.01, 0.1]
    assert found[3].evidence == pytest.approx(0.1 / 9.1)


def test_a_flow_above_its_demand_means_that_the_others_are_not_settled():
    done = record([9.0, 11.0], [10.0, 10.0], "aecp", demands_bps=[1e9, 10 * MBPS])
    assert [x.reason for x in reasons.classify(done, [0, 1], {})] == ["not settled"] * 2


def test_a_prediction_may_leave_a_third_of_a_large_error():
    done = record([4.0], [10.0], "pxcp")
    for left, reason in ((0.19, "fixed point"), (0.21, "unexplained")):
        (found,) = reasons.classify(done, [0], {"fixed point": np.array([left])})
        assert found.reason == reason


def test_what_more_runs_and_other_flows_explain():
    left = Reason("a", -0.5, "unexplained", 0.0)
    assert reasons.second(left, 0.1, 0.1) == Reason("a", -0.5, "start", 0.1)
    assert reasons.second(left, 0.001, 0.1) == Reason("a", -0.5, "not settled", 0.1)
    assert reasons.second(left, 0.001, 0.001) == left
    swings = Reason("a", -0.5, "swings", 0.2)
    assert reasons.second(swings, 0.1, 0.1) == swings


def test_a_saw_tooth_is_no_reason():
    for before, reason in ((8.5, "unexplained"), (11.0, "not settled")):
        done = record([9.0], [10.0], "vcp", swings=[0.2], before_bps=[before * MBPS])
        assert [x.reason for x in reasons.classify(done, [0], {})] == [reason]


def test_flows_of_one_bottleneck_are_compared_together():
    point = equilibrium.FixedPoint([10.0, 10.0, 5.0, 3.0], [0, 0, 1, None], [], [], [], 0.0)
    distances = reasons.together(np.array([9.0, 11.2, 6.0, 3.0]), point)
    assert distances.tolist() == pytest.approx([0.01, 0.01, math.inf, math.inf])


def test_overloads_predict_rates_up_to_the_demand():
    done = record(
        [8.0, 4.0, 2.0], [5.0] * 3, "vcp", demands_bps=[1e9, 1e9, 2 * MBPS],
        signals={"half_bps": [8 * MBPS, 4 * MBPS, 2 * MBPS], "overload": [0.05, 0.1, 0.1]},
    )  # fmt: skip
    assert reasons.overload_constant_bps(done) == pytest.approx(0.4 * MBPS)
    assert reasons.by_overload(done) == pytest.approx([8 * MBPS, 4 * MBPS, 2 * MBPS])
    # 75 intervals of 0.2 s in the last half of 30 s: 3.75 and 7.5 overloads.
    assert reasons.counting_error(done)[:2] == pytest.approx([1 / 3.75, 1 / 7.5])


def test_an_unexplained_exception_fails():
    row = study.Explained(record([5.0], [10.0]), [Reason("a", -0.5, "unexplained", 0.0)])
    case = study.TopologyStudyCase("topozoo/Abilene", "rcp")
    assert study.failed({case: row}) == ["topozoo/Abilene rcp: a is -50.0% off, unexplained"]
    assert study.failed({case: row._replace(reasons=[])}) == []


def test_a_run_is_kept_for_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(harness.cache, "root", lambda: tmp_path)
    monkeypatch.setattr(cases, "PAIRS", 6)
    case = study.TopologyStudyCase("topozoo/Abilene", "rcp")
    first = study.measure(case)
    monkeypatch.setattr(running, "run", lambda _case: pytest.fail("the run is there"))
    assert study.measure(case) == first
    assert case in study.chosen(SimpleNamespace(laws=("rcp",)))
