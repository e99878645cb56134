"""The validation on real networks: a small run, its table, and how it goes on."""

from __future__ import annotations

import json

import pytest

from validation import topologies

pytest.importorskip("topohub", reason="topohub is not installed")


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(topologies, "PAIRS", 6)
    monkeypatch.setattr(topologies, "DURATION_S", 5.0)


def test_all_networks_are_there():
    assert len(topologies.names("topozoo")) == 203
    assert len(topologies.names("sndlib")) == 26


def test_rcp_is_max_min_on_abilene_and_a_finished_run_is_not_repeated(small, tmp_path, monkeypatch):
    arguments = ["--laws", "rcp", "--only", "topozoo/Abilene", "-o", str(tmp_path)]
    assert topologies.main(arguments) == 0
    (row,) = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert (row["network"], row["law"], row["flows"], row["within"]) == (
        *("topozoo/Abilene", "rcp", 6, 6),
    )
    assert 0 < row["worst"] < 0.02

    def refuse(*_arguments):
        raise AssertionError("the run is there")

    monkeypatch.setattr(topologies, "run", refuse)
    assert topologies.main(arguments) == 0


def test_a_flow_that_is_off_fails_unless_the_law_is_not_max_min(tmp_path, capsys):
    row = {"network": "topozoo/Abilene", "flows": 2, "within": 1, "worst": 0.5, "flow": "A>B"}
    for law, code in (("rcp", 1), ("vcp", 0)):
        (tmp_path / "runs.jsonl").write_text(json.dumps({**row, "law": law}) + "\n")
        arguments = ["--laws", law, "--only", "topozoo/Abilene", "-o", str(tmp_path)]
        assert topologies.main(arguments) == code
        line = f"| {law} | 1 | 0 | 1 of 2 | 50.0% (topozoo/Abilene, A>B) |"
        assert line in capsys.readouterr().out


def test_a_name_that_no_network_has(tmp_path, capsys):
    assert topologies.main(["--only", "nowhere", "-o", str(tmp_path)]) == 2
    assert "expected the package topohub and a network of it" in capsys.readouterr().err
