"""Tests of flow completion times: cases, measurements, tables, and the flows for ns-3."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from validation.fct import cases, ns3, report
from waterfill.runs import backends

SHORT = replace(cases.FABRICS[0], count_from_s=0.01, stop_s=0.03, duration_s=0.1)


def test_every_case_is_a_scenario_of_its_own():
    chosen = cases.cases(["dctcp", "maxnet"], cases.FABRICS, cases.LOADS, (1, 2))
    assert len({case.name for case in chosen}) == len(chosen) == 24
    assert [case.seed for case in chosen[:12]] == [1] * 12
    for case in (chosen[0], chosen[-1]):
        scenario = case.scenario()
        assert scenario.protocol == case.law
        assert scenario.traffic[0].load == case.load


def test_laws_are_those_that_control_congestion():
    laws = cases.laws()
    assert {"maxnet", "xcp", "rcp", "dctcp", "cubic"} <= set(laws)
    assert not {"window", "scone"} & set(laws)


# The study has Linux's time-out of a SYN; its own runs last for seconds.
@pytest.mark.filterwarnings("ignore:.*syn_rto:waterfill.network.protocols.Misfit")
def test_unfinished_flows_count_with_the_slowdown_that_they_have():
    case = cases.FctCase(SHORT, "dctcp", 0.6, 1)
    row = cases.measure(case, backends.run(case.scenario()))
    all_ = row["bins"]["all"]
    assert all_["flows"] == sum(row["bins"][name]["flows"] for name in ("small", "middle", "large"))
    assert 10 < all_["flows"] < 60
    assert all_["slowdown"]["p99"] > all_["slowdown"]["p50"] > 1
    brief = replace(case, fabric=replace(SHORT, duration_s=0.031))
    cut = cases.measure(brief, backends.run(brief.scenario()))["bins"]["all"]
    assert cut["unfinished"] > all_["unfinished"]
    assert 1 < cut["slowdown"]["mean"] < all_["slowdown"]["mean"]


def test_tables_have_laws_by_their_median_with_intervals():
    def row(law, seed, mean):
        spread = {"mean": mean, "p50": mean, "p90": mean, "p99": mean}
        bins = {
            name: {"flows": 10, "unfinished": 1 if law == "slow" else 0, "slowdown": spread}
            for name in ("all", "small", "middle")
        }
        bins["large"] = {"flows": 0, "unfinished": 0, "slowdown": dict.fromkeys(spread)}
        return {"fabric": "leaf-spine", "load": 0.6, "law": law, "seed": seed, "bins": bins,
                "drops": 4}  # fmt: skip

    rows = [row("slow", seed, 9.0 + seed) for seed in (1, 2, 3)]
    rows += [row("fast", seed, 2.0) for seed in (1, 2, 3)]
    lines = report.tables(rows).splitlines()
    assert lines[0] == "### leaf-spine, 60% load: 30 flows of 3 seeds for each law"
    assert [line.split("|")[1].strip() for line in lines[4:]] == ["`fast`", "`slow`"]
    assert "| 2 ± 0 |" in lines[4]
    # Mean 11, standard deviation 1, t = 4.303 with two degrees of freedom.
    assert "| 11 ± 2.5 |" in lines[5]
    assert "| 10.00% |" in lines[5]
    assert "| – |" in lines[4]


def test_both_sides_stand_below_each_other_with_their_ratio():
    def side(mean):
        return {"p50": 2.0, "p90": 3.0, "p99": 12345.6, "geometric_mean": mean, "above_100": 0.02,
                "unfinished": 1}  # fmt: skip

    rows = [
        {"law": "sack", "load": 0.3, "seed": seed, "flows": 5, "waterfill": side(6.0 + seed),
         "ns3": side(2.0)}
        for seed in (1, 2, 3)
    ]  # fmt: skip
    ours, theirs = (line.split(" | ") for line in ns3.table(rows).splitlines()[2:])
    assert ours[:4] == ["| `sack`, Waterfill", "30%", "15", "2 ± 0"]
    assert (ours[5], ours[7], ours[8], ours[9]) == ("12346 ± 0", "2 ± 0", "3", "4 ± 1.2 |")
    assert theirs[-1] == "1 |"


def test_ns3_gets_poisson_arrivals_of_the_load():
    flows = [flow for seed in range(20) for flow in ns3.arrivals(0.6, seed)]
    assert flows[:5] == ns3.arrivals(0.6, 0)[:5]
    # 351 a second in the mean.
    assert len(flows) / 20 == pytest.approx(8 * 0.6e9 / 8 / 1.711e6, rel=0.05)
    assert all(flow.source != flow.sink for flow in flows)
    sizes = np.array([flow.size_bytes for flow in flows])
    assert sizes.mean() == pytest.approx(1.711e6, rel=0.15)
    took_s, ideal_s = ns3.waterfill_run("sack", flows[:20])
    assert np.isfinite(took_s).all()
    assert (took_s >= ideal_s * (1 - 1e-9)).all()
