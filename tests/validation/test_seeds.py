"""Tests of the comparison of seeds: random runs, margins, and changes of verdicts."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from validation import seeds
from validation.study import execute
from waterfill.papers.claims import loading
from waterfill.papers.claims.schema import OverSeeds
from waterfill.papers.claims.verdict import Statement
from waterfill.runs.progress import ExperimentBars, Tick

SCENARIO = """
name = "lossy"
duration = "3 s"
protocol = "maxnet"
link = [{ name = "l", from = "a", to = "b", rate = "10 Mbit/s", delay = "5 ms", loss = 0.1 }]
flow = [{ name = "f", from = "a", to = "b" }]
"""

CLAIM = """
[[claim]]
id = "{id}"
source = "§1"
statement = "s"
measure = "{measure}"
args = {args}
unit = "{unit}"
relation = "{relation}"
paper_value = {value}
tolerance = {tolerance}
expect = "reproduced"
"""


def row(measured: tuple[float | None, ...], verdicts: tuple[str, ...] = (), **claim: Any):
    record = claim.pop("over_seeds", None)
    entry = {
        **{"paper": "p", "experiment": "e", "id": "c", "unit": "s", "expect": "reproduced"},
        **{"relation": "=", "paper_value": 10.0, "tolerance": 2.0, "source": "§1"},
        **{"statement": "s", "why": None},
        **{"over_seeds": None if record is None else OverSeeds(**record)},
        **claim,
    }
    return seeds.SeedRow(Statement(**entry), measured, verdicts or ("reproduced",) * len(measured))


def test_spread_and_margin_of_a_value():
    """9 to 10.5 in 10 ± 2: a spread of 1.5, and 1 from 9 to the boundary at 8."""
    found = row((9.0, 10.5, 10.0))
    assert found.random
    assert found.same
    assert found.spread == pytest.approx(1.5)
    assert found.spread_over_tolerance == pytest.approx(0.75)
    assert found.margin == pytest.approx(1.0 / 1.5)


@pytest.mark.parametrize(("relation", "edge"), [("<", 12.0), (">", 8.0)])
def test_margin_of_a_bound_includes_its_tolerance(relation, edge):
    found = row((9.0, 9.5), relation=relation)
    nearest = min(abs(9.0 - edge), abs(9.5 - edge))
    assert found.margin == pytest.approx(nearest / 0.5)


def test_what_has_no_spread_and_no_margin():
    assert not row((3.0, 3.0)).random
    assert row((3.0, 3.0)).margin is None
    never = row((3.0, None))
    assert never.random
    assert (never.spread, never.margin) == (None, None)
    assert row((3.0, 4.0), paper_value=None, tolerance=None).margin is None
    assert row((9.0, 9.1), tolerance=0.0).spread_over_tolerance is None
    assert row((9.0, 13.0), ("reproduced", "differs")).margin is None


def test_the_table_starts_with_the_smallest_margins():
    found = [
        row((9.9, 10.0), id="safe"),
        row((8.5, 10.5), id="near"),
        row((9.0, 13.0), ("reproduced", "differs"), id="changed"),
        row((10.0, 10.0), id="fixed"),
        row((9.0, None), id="never"),
    ]
    lines = seeds.table(found).splitlines()
    order = [line.split(" ")[1].removeprefix("p/e/") for line in lines[2:]]
    assert order == ["changed", "near", "safe", "never"]
    assert "**1 reproduced, 1 differs**" in lines[2]
    assert "| 8.5 | 10.5 | 1 | 0.25 |" in lines[3]
    text = seeds.summary(found, range(1, 3))
    assert text.startswith("5 claims, seeds 1 to 2: 4 of them")
    assert seeds.complaints(found) == ["p/e/changed: 1 reproduced, 1 differs"]


SINGLES = (7.5, 8.5, 9.0, 9.5, 9.0, 8.6)  # two means of three; 10 ± 2 has a boundary at 8


def means(singles: tuple[float | None, ...] = SINGLES, **claim: Any) -> seeds.SeedRow:
    entry = row((8.33, 9.03), **claim)
    return seeds.SeedRow(entry.claim, entry.measured, entry.verdicts, singles)


def test_single_runs_on_both_sides_are_a_complaint_unless_recorded():
    assert "7.5 to 9.5, on both sides" in str(means().complaint)
    record = {"runs": 6, "least": 7.5, "most": 9.5}
    assert means(over_seeds=record).complaint is None
    assert means((8.5, *SINGLES[1:])).complaint is None
    assert row((7.5, 9.5)).complaint is None  # one run per seed: the verdicts show it


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        ({"runs": 6, "least": 7.0, "most": 10.0}, False),
        ({"runs": 6, "least": 8.6, "most": 9.5}, True),  # 1.1 below, the range is 0.9
        ({"runs": 6, "least": 7.5, "most": 20.0}, True),  # far from as wide as it says
        ({"runs": 60, "least": 7.5, "most": 20.0}, False),  # so few runs need not be
        ({"runs": 60, "least": 9.0, "most": 9.5}, True),
    ],
)
def test_single_runs_outside_the_record_are_a_complaint(record, complaint):
    found = means(over_seeds=record)
    assert (found.complaint is not None) == complaint
    if complaint:
        assert "on record is" in seeds.complaints([found])[0]


def test_the_table_has_the_range_of_single_runs():
    assert "| 7.5 to 9.5 |" in seeds.table([means()])
    assert means((None, *SINGLES[1:])).single_runs is None


def test_an_experiment_of_several_seeds(tmp_path, monkeypatch, capsys):
    """Six runs for two seeds, with a boundary that is a complaint until it is recorded."""
    root = written(tmp_path, rate("mean", ">", "1.0"))
    monkeypatch.setattr(loading, "papers_folder", lambda: root)
    file = root / "paper" / "one" / "claims.toml"
    file.write_text(file.read_text().replace('title = "x"', 'title = "x"\nseeds = 3'))
    assert execute(seeds.STUDY, "seeds", ["--seeds", "2", "--json"]) == 0
    (claim,) = json.loads(capsys.readouterr().out)["claims"]
    singles = claim["singles"]
    assert len(singles) == 6
    assert len(set(singles)) > 3
    assert claim["measured"] == pytest.approx([sum(singles[:3]) / 3, sum(singles[3:]) / 3])

    between = (min(singles) + min(claim["measured"])) / 2
    amid = f'title = "x"\nseeds = 3\n{rate("mean", ">", f"{between}")}'
    file.write_text(amid)
    assert execute(seeds.STUDY, "seeds", ["--seeds", "2"]) == 1
    assert "no over_seeds on record" in capsys.readouterr().err
    record = f"over_seeds = {{ runs = 6, least = {min(singles)}, most = {max(singles)} }}\n"
    file.write_text(amid + record)
    assert execute(seeds.STUDY, "seeds", ["--seeds", "2"]) == 0
    assert "cannot be checked" in capsys.readouterr().out


def written(tmp_path: Path, text: str) -> Path:
    folder = tmp_path / "papers" / "paper" / "one"
    folder.mkdir(parents=True)
    (folder / "scenario.toml").write_text(SCENARIO)
    (folder / "claims.toml").write_text(f'title = "x"\n{text}')
    return tmp_path / "papers"


def rate(name: str, relation: str, value: str, tolerance: str = "0.0") -> str:
    args = '{ flow = "f", start_s = 1.0, stop_s = 3.0 }'
    kinds = {"id": name, "measure": "rate_over", "args": args, "unit": "Mbit/s"}
    return CLAIM.format(**kinds, relation=relation, value=value, tolerance=tolerance)


def test_seeds_of_a_run_with_losses(tmp_path, monkeypatch, capsys):
    """Random losses and rates, with a bound amid their values that changes its verdict."""
    root = written(tmp_path, rate("above", ">", "1.0"))
    monkeypatch.setattr(loading, "papers_folder", lambda: root)
    out = tmp_path / "out"
    assert execute(seeds.STUDY, "seeds", ["--seeds", "3", "--json", "-o", str(out)]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert found == json.loads((out / "seeds.json").read_text())
    (claim,) = found["claims"]
    assert claim["random"]
    assert claim["same"]
    assert claim["verdicts"] == ["reproduced"] * 3
    assert min(claim["measured"]) > 1.0
    assert claim["complaint"] is None
    assert claim["singles"] == claim["measured"]
    assert [f"seed {seed}" in shown.err for seed in (1, 2, 3)] == [True] * 3
    # Kept: the same again begins no run.
    assert execute(seeds.STUDY, "seeds", ["--seeds", "3", "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == found
    assert "simulated in" not in shown.err

    middle = sorted(claim["measured"])[1]
    (root / "paper" / "one" / "claims.toml").write_text(
        f'title = "x"\n{rate("amid", "<", f"{middle}")}'
    )
    assert execute(seeds.STUDY, "seeds", ["paper/one", "--seeds", "3"]) == 1
    shown = capsys.readouterr()
    assert "1 a verdict that does" in shown.out
    assert "paper/one/amid: " in shown.err


@pytest.mark.parametrize("arguments", [["--seeds", "1"], ["no-such-paper"]])
def test_wrong_arguments_are_one_line_and_exit_2(arguments, capsys):
    assert execute(seeds.STUDY, "seeds", arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


# --- the live list ------------------------------------------------------------------------------


def ticks(live: ExperimentBars, run: str) -> None:
    live.show(run, Tick(0.5, 2.0, 10, 0.1))
    live.show(run, Tick(2.0, 2.0, 40, 0.4))


def test_plain_lines_report_started_and_finished_runs(capsys):
    with ExperimentBars(2) as live:
        live.planned({"p/a x": "p/a", "p/a y": "p/a"}, 3)
        live.show("p/a x", Tick(0.5, 2.0, 10, 0.1))
        ticks(live, "p/a y")
        live.show("p/a x", Tick(2.0, 2.0, 40, 0.4))
        live.done("p/a", ["differs", "differs"])
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "2 experiments, 2 runs to do, 3 from the cache"
    assert lines[1:3] == ["started p/a x", "started p/a y"]
    assert lines[3].startswith("p/a y: simulated 2 s in 0.4 s")
    assert lines[3].endswith("(1 of 2 runs)")
    assert lines[4].startswith("p/a x: simulated 2 s")
    assert lines[5:] == ["finished p/a: 2 differs (1 of 2 experiments)"]


def test_a_single_run_prints_only_its_closing_line(capsys):
    with ExperimentBars(1) as live:
        live.planned({"p/a": "p/a"}, 0)
        ticks(live, "p/a")
        live.done("p/a", ["reproduced"])
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("p/a: simulated 2 s in 0.4 s")


def test_without_lines_the_number_of_runs_is_printed_now_and_then(capsys, monkeypatch):
    now = 0.0
    monkeypatch.setattr("waterfill.runs.progress.time.monotonic", lambda: now)
    with ExperimentBars(1, lines=False) as live:
        live.planned({str(run): "p/a" for run in range(8)}, 0)
        for run in range(8):
            now = float(run)
            ticks(live, str(run))
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["8 runs to do", "2 of 8 runs", "4 of 8 runs", "8 of 8 runs"]


def test_a_terminal_shows_runs_in_progress_and_finished_ones():
    code = """
from waterfill.runs.progress import ExperimentBars, Tick
with ExperimentBars(2) as live:
    live.planned({"p/a x": "p/a", "p/b": "p/b"}, 0)
    live.show("p/a x", Tick(0.5, 2.0, 10, 0.1))
    live.show("p/b", Tick(1.0, 2.0, 10, 0.1))
    live.show("p/b", Tick(2.0, 2.0, 10, 0.1))
    live.done("p/b", ["reproduced"])
    live._progress.refresh()
"""
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    subprocess.run([sys.executable, "-c", code], stderr=follower, env=environment, check=True)
    os.close(follower)
    shown = os.read(leader, 1 << 16).decode()
    os.close(leader)
    assert "finished p/b: 1 reproduced (1 of 2 experiments)" in shown
    assert "0.5 of 2 s" in shown
    assert "1 of 2 runs, 1 of 2 experiments" in shown
