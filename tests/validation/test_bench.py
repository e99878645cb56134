"""bench/measure.py and bench/compare.py: the history, its limit, and pairs of runs."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

from known import ROOT


@pytest.fixture(scope="module")
def bench():
    """Both programs, imported as they import each other."""
    sys.path.insert(0, str(ROOT / "bench"))
    modules = {name: importlib.import_module(name) for name in ("measure", "compare")}
    sys.path.remove(str(ROOT / "bench"))
    yield modules
    for name in modules:
        del sys.modules[name]


def line(ratio: float, host: str = "a CPU", calibration: int = 1, slow: bool = False):
    found = {"host": host, "calibration": calibration, "ratios": {"window-10": ratio}}
    return found | {"slower": ["window-10"] if slow else []}


def test_a_ratio_is_held_to_the_median_of_its_last_five(bench):
    measure = bench["measure"]
    past = [line(ratio) for ratio in (99.0, 10.0, 11.0, 12.0, 13.0, 14.0)]
    known = measure.reference(past, line(1.0))
    assert known == {"window-10": 12.0}
    assert measure.slower(line(10.81), known) == []
    assert measure.slower(line(10.79), known) == ["window-10"]


def test_other_hosts_other_calibrations_and_slow_runs_do_not_count(bench):
    measure = bench["measure"]
    past = [line(10.0), line(5.0, host="b"), line(5.0, calibration=2), line(5.0, slow=True)]
    assert measure.reference(past, line(1.0)) == {"window-10": 10.0}
    assert measure.reference([], line(1.0)) == {}
    assert measure.slower(line(1.0), {}) == []


def test_a_run_is_a_line_of_the_history(bench, tmp_path, monkeypatch, capsys):
    measure, path = bench["measure"], tmp_path / "history.jsonl"
    ratios = iter([10.0, 8.9, 8.9])

    def fake(command, **options):
        if command[0] == "git":
            return "abc\n" if "rev-parse" in command else ""
        run = {"name": "window-10", "ratio": next(ratios), "packet_transmissions_per_s": 4e6}
        return json.dumps({"calibration": 1, "runs": [run]})

    monkeypatch.setattr(measure, "run", fake)
    monkeypatch.setattr(measure, "build", lambda: Path("bench"))
    words = ["window-10", "--history", str(path)]
    assert [measure.main(words) for _ in range(3)] == [0, 1, 1]
    lines = measure.read(path)
    assert [one["slower"] for one in lines] == [[], ["window-10"], ["window-10"]]
    assert lines[0]["commit"] == "abc"
    assert lines[0]["ratios"] == {"window-10": 10.0}
    assert "-11.0%" in capsys.readouterr().out


def test_a_broken_history_is_refused_in_one_line(bench, tmp_path, capsys):
    path = tmp_path / "history.jsonl"
    path.write_text('{"ratios": {}}\nnonsense\n')
    measure = bench["measure"]
    assert measure.command(lambda: measure.main(["--history", str(path)])) == 2
    assert capsys.readouterr().err == f"bench: {path}:2: must be a JSON object with ratios\n"


def test_the_committed_history_can_be_read(bench):
    measure = bench["measure"]
    for one in measure.read(measure.HISTORY):
        assert {"date", "commit", "host", "calibration"} <= set(one)
        assert all(ratio > 0 for ratio in one["ratios"].values())


def test_a_base_that_is_no_commit_is_refused(bench, capsys):
    measure, compare = bench["measure"], bench["compare"]
    assert measure.command(lambda: compare.base_program("no-such-commit")) == 2
    assert capsys.readouterr().err == "bench: BASE: must be a commit, got 'no-such-commit'\n"


def test_pairs_are_compared_per_packet_and_second(bench, tmp_path):
    compare = bench["compare"]
    pair = compare.Pair(compare.Timed(2.0, 100.0), compare.Timed(1.0, 100.0))
    assert pair.speed == 2.0
    # A program of before November 2026, and one that lacks the case.
    old, without = tmp_path / "old", tmp_path / "without"
    runs = [{"packet_hops_per_s": 10.0, "wall_s": 3.0}]
    old.write_text(f"#!/bin/sh\necho '{json.dumps({'runs': runs})}'\n")
    without.write_text("#!/bin/sh\nexit 2\n")
    for program in (old, without):
        program.chmod(0o755)
    assert compare.timed(old, "window-10").hops == 30.0
    assert len(compare.pairs(old, old, "window-10", 3)) == 3
    assert compare.pairs(old, without, "window-10", 3) == []
