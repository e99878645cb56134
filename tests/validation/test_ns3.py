"""validation/ns3.py, as far as it goes without ns-3."""

from __future__ import annotations

import pytest

import waterfill
from validation import ns3
from waterfill.scenario.loading import from_dict


def side(samples, lost=400, dropped=0, packets=400_000.0):
    return ns3.Side(samples, lost, dropped, packets)


def alone(law="sack"):
    return ns3.Ns3Cell(law, (0.05,), 1, 1e9, 1e-3, 350e3)


def test_a_figure_is_judged_at_ten_percent():
    theirs = side([[100.0], [102.0]])
    for ours, verdict in [(90.0, "off"), (92.0, "within"), (111.0, "within"), (112.0, "off")]:
        row = ns3.figures(alone(), theirs, side([[ours - 1], [ours + 1]]))
        assert row[0].ratio == pytest.approx(ours / 101)
        assert row[0].verdict == verdict
        assert len(ns3.failed({alone(): row})) == (verdict == "off")


def test_few_losses_are_not_judged_and_fail():
    few, enough = side([[100.0], [100.0]], lost=299), side([[100.0], [100.0]])
    row = ns3.figures(alone(), few, enough)
    assert row[0].verdict == "few losses"
    assert len(ns3.failed({alone(): row})) == 1


@pytest.mark.parametrize(("law", "factor"), [("sack", 2.0), ("cubic", 2.0**1.5)])
def test_a_flow_alone_is_compared_at_equal_loss(law, factor):
    # Ours lost four times as much, so at equal loss it would be √4 faster, CUBIC 4^¾.
    ours = side([[50.0], [50.0]], lost=1600)
    (figure,) = ns3.figures(alone(law), side([[100.0], [100.0]]), ours)
    assert figure.ratio == 0.5
    assert figure.ratio_at_equal_loss == pytest.approx(0.5 * factor)


def test_shares_are_of_the_flows_of_one_rtt():
    (cell,) = [c for c in ns3.cells(["cubic"], 350) if not c.is_alone and c.loss == 1e-3]
    document = {
        "flows": [{"packets_per_s": [r, r]} for r in (30.0, 30.0, 25.0, 15.0)],
        "lost": 300,
        "dropped": 50,
        "packets": 300e3,
    }
    theirs = ns3.ns3_side(cell, document)
    assert theirs.packets_per_s == [[60.0, 40.0], [60.0, 40.0]]
    figures = ns3.figures(cell, theirs, theirs)
    assert [f.name for f in figures] == ["throughput", "share of 50 ms", "share of 200.2 ms"]
    assert [f.ns3.mean for f in figures] == [100.0, 0.6, 0.4]
    assert all(f.ratio_at_equal_loss == 1.0 for f in figures)


def test_both_sides_are_told_the_same():
    for cell in ns3.cells(ns3.NS3, 350):
        given = dict(a.removeprefix("--").split("=") for a in ns3.arguments(cell))
        rtts_s = [float(rtt_s) for rtt_s in given["rtt"].split(",")]
        assert len(rtts_s) == cell.count * len(cell.rtts_s)
        run = ns3.scenario(cell, {})
        assert f"{float(given['duration'])} s" == run["duration"]
        assert [f"{float(given['from'])} s", run["duration"]] == run["measure"]
        (link,) = run["link"]
        assert float(given["loss"]) == link["loss"]
        assert f"{given['buffer']} packets" == link["buffer"]
        from_dict(run)  # and Waterfill takes it


def test_our_side_runs_and_counts():
    cell = ns3.Ns3Cell("sack", (0.05,), 1, 1e9, 1e-3, 20e3)
    results = [waterfill.run(run.scenario) for run in list(ns3.runs(cell).values())[:4]]
    ours = ns3.our_side(cell, results)
    assert len({row[0] for row in ours.packets_per_s}) == 4  # a seed each
    # Four times twenty losses, and Mathis's window of 39 packets: loosely, this is no comparison.
    assert 40 < ours.lost < 120
    assert ours.dropped == 0
    assert ours.lost / ours.packets == pytest.approx(1e-3, rel=0.4)
    mean = sum(row[0] for row in ours.packets_per_s) / 4
    assert mean == pytest.approx(39 / 0.05, rel=0.3)


def test_a_host_without_ns3_lacks_its_packages(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "false")
    monkeypatch.setattr(ns3, "DRIVERS", tmp_path)
    assert "libns3-dev" in ns3.driver("dumbbell").lacks()
