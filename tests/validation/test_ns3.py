"""bench/ns3/compare.py, as far as it goes without ns-3."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from waterfill.scenario.loading import from_dict

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "bench" / "ns3" / "compare.py"


@pytest.fixture(scope="module")
def compare():
    spec = importlib.util.spec_from_file_location("ns3_compare", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def side(compare, samples, lost=400, dropped=0, packets=400_000.0):
    return compare.Side(samples, lost, dropped, packets)


def alone(compare, law="sack"):
    return compare.Ns3Cell(law, (0.05,), 1, 1e9, 1e-3, 350e3)


def test_a_figure_is_judged_at_ten_percent(compare):
    ns3 = side(compare, [[100.0], [102.0]])
    for ours, verdict in [(90.0, "off"), (92.0, "within"), (111.0, "within"), (112.0, "off")]:
        pair = compare.Pair("sack", alone(compare), ns3, side(compare, [[ours - 1], [ours + 1]]))
        (figure,) = pair.figures()
        assert figure.ratio == pytest.approx(ours / 101)
        assert pair.verdict(figure) == verdict


def test_few_losses_are_not_judged(compare):
    pair = compare.Pair(
        "sack",
        alone(compare),
        side(compare, [[100.0], [100.0]], lost=299),
        side(compare, [[100.0], [100.0]]),
    )
    assert pair.verdict(pair.figures()[0]) == "few losses"


@pytest.mark.parametrize(("law", "factor"), [("sack", 2.0), ("cubic", 2.0**1.5)])
def test_a_flow_alone_is_compared_at_equal_loss(compare, law, factor):
    # Ours lost four times as much, so at equal loss it would be √4 faster, CUBIC 4^¾.
    ns3 = side(compare, [[100.0], [100.0]])
    ours = side(compare, [[50.0], [50.0]], lost=1600)
    (figure,) = compare.Pair(law, alone(compare, law), ns3, ours).figures()
    assert figure.ratio == 0.5
    assert figure.ratio_at_equal_loss == pytest.approx(0.5 * factor)


def test_shares_are_of_the_flows_of_one_rtt(compare):
    (cell,) = [c for c in compare.cells(["cubic"], 350) if not c.is_alone and c.loss == 1e-3]
    document = {
        "flows": [{"packets_per_s": [r, r]} for r in (30.0, 30.0, 25.0, 15.0)],
        "lost": 300,
        "dropped": 50,
        "packets": 300e3,
    }
    ns3 = compare.ns3_side(cell, document)
    assert ns3.packets_per_s == [[60.0, 40.0], [60.0, 40.0]]
    figures = compare.Pair("cubic", cell, ns3, ns3).figures()
    assert [f.name for f in figures] == ["throughput", "share of 50 ms", "share of 200.2 ms"]
    assert [f.ns3.mean for f in figures] == [100.0, 0.6, 0.4]
    assert all(f.ratio_at_equal_loss == 1.0 for f in figures)


def test_both_sides_are_told_the_same(compare):
    for cell in compare.cells(compare.NS3, 350):
        given = dict(a.removeprefix("--").split("=") for a in compare.arguments(cell))
        rtts_s = [float(rtt_s) for rtt_s in given["rtt"].split(",")]
        assert len(rtts_s) == cell.count * len(cell.rtts_s)
        run = compare.scenario(cell, {})
        assert f"{float(given['duration'])} s" == run["duration"]
        assert [f"{float(given['from'])} s", run["duration"]] == run["measure"]
        (link,) = run["link"]
        assert float(given["loss"]) == link["loss"]
        assert f"{given['buffer']} packets" == link["buffer"]
        from_dict(run)  # and Waterfill takes it


def test_our_side_runs_and_counts(compare, monkeypatch):
    monkeypatch.setattr(compare, "SEEDS", 4)
    cell = compare.Ns3Cell("sack", (0.05,), 1, 1e9, 1e-3, 20e3)
    ours = compare.our_side(cell, {})
    assert len(ours.packets_per_s) == 4
    # Four times twenty losses, and Mathis's window of 39 packets: loosely, this is no comparison.
    assert 40 < ours.lost < 120
    assert ours.dropped == 0
    assert ours.lost / ours.packets == pytest.approx(1e-3, rel=0.4)
    mean = sum(row[0] for row in ours.packets_per_s) / 4
    assert mean == pytest.approx(39 / 0.05, rel=0.3)


def test_what_is_missing_is_said_in_one_line(tmp_path):
    compiler = tmp_path / "c++"
    compiler.write_text("#!/bin/sh\nexit 1\n")  # no <ns3/...> to be found
    compiler.chmod(0o755)
    for cxx, package in [(str(compiler), "libns3-dev"), (str(tmp_path / "none"), "g++")]:
        ran = subprocess.run(
            [sys.executable, str(SCRIPT)],
            env={"CXX": cxx, "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 2
        assert ran.stdout == ""
        assert ran.stderr.startswith("ns3: needs ")
        assert f"install {package}" in ran.stderr
        assert ran.stderr.count("\n") == 1


def test_wrong_options_are_one_line(compare):
    with pytest.raises(compare.Refused, match="expected some of sack, cubic, newreno, got 'tahoe'"):
        compare.main(["--laws", "tahoe"])


def test_json_is_one_document(compare, monkeypatch, capsys):
    document = {
        "packet_bytes": 1500,
        "reno_friendly": True,
        "lost": 400,
        "dropped": 0,
        "packets": 400e3,
        "flows": [{"packets_per_s": [100.0, 102.0]}],
    }
    monkeypatch.setattr(compare, "build", lambda: Path("dumbbell"))
    monkeypatch.setattr(compare, "ns3_document", lambda program, cell: document)
    monkeypatch.setattr(compare, "our_side", lambda cell, params: side(compare, [[150.0], [151.0]]))
    assert compare.compare([alone(compare)], 1, as_json=True) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["counts"] == {"within": 0, "off": 1, "few losses": 0, "shown": 0}
    assert printed["figures"][0]["ratio"] == pytest.approx(150.5 / 101)
