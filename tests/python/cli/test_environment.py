"""Environment of commands: variables, a full standard output, empty names."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

SCENARIO = """
duration = "100 ms"
protocol = "maxnet"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "5 ms"
[[flow]]
name = "long"
path = ["l"]
"""
FULL = Path("/dev/full")


def command(*arguments: str, stdout: object = subprocess.PIPE, **variables: str):
    """Run a command in a fresh interpreter: libraries read variables when they are imported."""
    return subprocess.run(
        [sys.executable, "-m", "waterfill", *arguments],
        env={**os.environ, **variables},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("columns", ["0", "000", "-5", "²", "9" * 5000, "1"])
def test_table_has_columns(waterfill, tmp_path, monkeypatch, columns):
    (tmp_path / "s.toml").write_text(SCENARIO)
    monkeypatch.setenv("COLUMNS", columns)
    ran = waterfill("run", "s.toml")
    assert ran.code == 0
    assert "l:rev" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 1000


def test_figures_without_home_or_known_backend(tmp_path):
    scenario = tmp_path / "s.toml"
    scenario.write_text(SCENARIO)
    out = tmp_path / "out"
    nowhere = {"HOME": "/proc/nowhere", "XDG_CONFIG_HOME": "", "XDG_CACHE_HOME": ""}
    ran = command("run", str(scenario), "-o", str(out), MPLBACKEND="nonsense", **nowhere)
    assert ran.returncode == 0
    assert (out / "figure.svg").exists()
    # Progress alone: nothing about settings that cannot be kept.
    assert ran.stderr.startswith("s: simulated")
    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["--version"]])
def test_full_standard_output(arguments):
    with FULL.open("w") as full:
        ran = command(*arguments, stdout=full)
    assert ran.returncode == 1
    assert ran.stderr == "standard output: cannot be written: No space left on device\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "s.toml", "-o", ""],
        ["run", "s.toml", "--output="],
        ["run", ""],
        ["check", ""],
        ["compare", "s.toml", "-o", ""],
        ["plot", ""],
        ["report", ""],
        ["sweep", "s.toml", "--grid", "link.l.delay=1..2ms:2", "-o", ""],
        ["theory", "encoding", "maxnet", "-o", ""],
        ["new", "dumbbell", "-o", ""],
        ["generate", "fat-tree", "4", "-o", ""],
    ],
)
def test_empty_name_is_not_the_current_directory(waterfill, tmp_path, arguments):
    (tmp_path / "s.toml").write_text(SCENARIO)
    ran = waterfill(*arguments)
    assert ran.code == 2
    assert ": must not be empty" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["s.toml"]


@pytest.mark.parametrize("words", [["run", "--set", "sample=10 ms"], ["maxmin"]])
def test_limited_memory_is_one_sentence(tmp_path, words):
    limit = 600_000_000
    scenario = tmp_path / "s.toml"
    scenario.write_text(SCENARIO)
    name, *options = words
    ran = subprocess.run(
        [sys.executable, "-m", "waterfill", name, str(scenario), "--set", "flow.long.count=2000000",
         *options],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 2
    assert "free memory" in ran.stderr or "of memory are free" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
