"""Directories that someone else wrote: one sentence and exit 2, never a traceback, no script."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from waterfill.errors import InputError
from waterfill.report import write


@pytest.fixture
def copied(tmp_path):
    def copy(folder):
        return shutil.copytree(folder, tmp_path / "copy")

    return copy


def change(path, edit):
    """Edit a JSON document in place: `edit` gets it, and may return another one."""
    document = json.loads(path.read_text(encoding="utf-8"))
    changed = edit(document)
    path.write_text(json.dumps(document if changed is None else changed), encoding="utf-8")


@pytest.mark.parametrize("content", [None, "", "a file"])
def test_other_directories_are_refused(tmp_path, content):
    path = tmp_path / "x"
    if content == "":
        path.mkdir()
    elif content:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"(not a directory|no such directory|no results here)"):
        write.write(path)


SUMMARIES = {
    "a list": lambda d: [],
    "null": lambda d: "null",
    "no flows": lambda d: d.pop("flows") and None,
    "flows of text": lambda d: d.update(flows="f"),
    "a flow of null": lambda d: d.update(flows=[None]),
    "a rate of text": lambda d: d["flows"][0].update(rate_bps="fast"),
    "a truth as a rate": lambda d: d["flows"][0].update(rate_bps=True),
    "one flow too few": lambda d: d["flows"].pop() and None,
    "a huge count": lambda d: d["flows"][0].update(count=10**400),
    "no time": lambda d: d.update(duration_s=0),
    "no end": lambda d: d.update(duration_s=float("inf")),
    "backwards": lambda d: d.update(measure_s=[3, 1]),
    "three times": lambda d: d.update(measure_s=[1, 2, 3]),
    "another link": lambda d: d["links"][0].update(name="<img>"),
    "a queue of text": lambda d: d["links"][0]["queue_bytes"].update(mean="x"),
    "half a character": lambda d: d.update(scenario="\ud800"),
    "a name of numbers": lambda d: d["flows"][0].update(name=7),
}


@pytest.mark.parametrize("edit", SUMMARIES.values(), ids=SUMMARIES)
def test_wrong_summaries_are_one_sentence(made_run, copied, edit):
    folder = copied(made_run)
    change(folder / "summary.json", edit)
    with pytest.raises(InputError, match=r"summary\.json"):
        write.write(folder)


def test_broken_files_are_one_sentence(made_run, copied):
    folder = copied(made_run)
    whole = {path: path.read_bytes() for path in folder.iterdir() if path.name != "report.html"}
    for path, content in whole.items():
        for broken in (b"", content[: len(content) // 2], b"\xff" * 40, b"[" * 100_000):
            path.write_bytes(broken)
            with pytest.raises(InputError):
                write.write(folder)
        path.unlink()
        if path.name != "transfers.parquet":  # the summary has the same
            with pytest.raises(InputError):
                write.write(folder)
        os.mkfifo(path)  # would hang a reader
        with pytest.raises(InputError):
            write.write(folder)
        path.unlink()
        path.write_bytes(content)
    assert write.write(folder)


COMPARISONS = {
    "no runs": lambda d: d.update(runs={}),
    "a list of runs": lambda d: d.update(runs=[]),
    "a run elsewhere": lambda d: d["runs"].update({"../copy": {}}),
    "a run of root": lambda d: d["runs"].update({"/etc": {}}),
    "seeds of text": lambda d: d.update(seeds=["1"], over_seeds={}),
    "seeds of no run": lambda d: d.update(seeds=[1, 2], over_seeds={"other": {}}),
    "an estimate of text": lambda d: d.update(
        seeds=[1, 2], over_seeds={"xcp": {"utilization": "high"}}
    ),
    "an interval of three": lambda d: d.update(
        seeds=[1], over_seeds={"xcp": {"utilization": {"values": [], "mean": 1, "interval": [1]}}}
    ),
}


@pytest.mark.parametrize("edit", COMPARISONS.values(), ids=COMPARISONS)
def test_wrong_comparisons_are_one_sentence(made_comparison, copied, edit):
    folder = copied(made_comparison)
    change(folder / "compare.json", edit)
    with pytest.raises(InputError, match=r"copy"):
        write.write(folder)


SWEEPS = {
    "a list": lambda d: [],
    "columns of text": lambda d: d.update(columns="all"),
    "columns of three": lambda d: d.update(columns=[["a", "b", "c"]]),
    "an unknown column": lambda d: d["columns"].append(["other", "double"]),
    "an unknown type": lambda d: d["columns"][0].__setitem__(1, "blob"),
    "an axis without a column": lambda d: d["axes"].update(other="s"),
    "half a character": lambda d: d["meanings"].update(drops="\udfff"),
    "a meaning of null": lambda d: d["meanings"].update(drops=None),
}


@pytest.mark.parametrize("edit", SWEEPS.values(), ids=SWEEPS)
def test_wrong_sweeps_are_one_sentence(made_sweep, copied, edit):
    folder = copied(made_sweep)
    change(folder / "sweep.json", edit)
    with pytest.raises(InputError, match=r"sweep\.json"):
        write.write(folder)


def test_broken_points_are_one_sentence(made_sweep, copied):
    folder = copied(made_sweep)
    (part,) = (folder / "points").glob("*.parquet")
    part.write_bytes(part.read_bytes()[:200])
    with pytest.raises(InputError):
        write.write(folder)
    part.unlink()
    with pytest.raises(InputError, match="no points of a sweep"):
        write.write(folder)


def test_the_command_exits_with_2(made_run, copied, waterfill):
    folder = copied(made_run)
    (folder / "summary.json").write_text("{}", encoding="utf-8")
    ran = waterfill("report", str(folder))
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.count("\n") == 1
    assert "summary.json: scenario: missing" in ran.err


def test_the_command_writes_beside_what_it_read(made_run, waterfill):
    ran = waterfill("report", str(made_run))
    assert (ran.code, ran.out) == (0, f"written to {made_run / 'report.html'}\n")
