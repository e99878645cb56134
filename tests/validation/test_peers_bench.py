"""bench/peers/table.py, with programs in place of the simulators."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys

import pytest

from known import ROOT

FOLDER = ROOT / "bench" / "peers"


@pytest.fixture(scope="module")
def peers():
    spec = importlib.util.spec_from_file_location("peers_table", FOLDER / "table.py")
    module = importlib.util.module_from_spec(spec)
    paths, known = list(sys.path), set(sys.modules)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = paths
    for name in set(sys.modules) & {"peers_table", "measure"} - known:
        del sys.modules[name]


@pytest.fixture
def program(tmp_path):
    """A driver that keeps its arguments and prints its own line, then its input."""

    def make(text: str, code: int = 0):
        path = tmp_path / "driver"
        path.write_text(
            f'#!/bin/sh\necho "$@" >{tmp_path}/arguments\n'
            f"echo starting\necho '{text}'\necho ending\nexit {code}\n"
        )
        path.chmod(0o755)
        return path

    return make


def work(peers, law="sack"):
    return peers.Work(law, 10, 0.05, 1e9, 0.05, 5.0)


def test_a_driver_gets_the_cases_numbers_and_its_last_line_counts(peers, program, tmp_path):
    driver = program('{"packets": 300}')
    speed = peers.once(peers.htsim(str(driver)), work(peers))
    assert speed.packets == 300
    assert speed.cpu_s > 0
    assert speed.peak_bytes > 0
    assert (tmp_path / "arguments").read_text().split() == [
        *("-law", "sack", "-flows", "10", "-stagger", "0.05", "-rate", "1e+09", "-rtt", "0.05"),
        *("-buffer", "4166", "-seconds", "5"),
    ]


def test_simulators_take_turns_and_only_with_laws_that_they_have(peers, monkeypatch):
    turns = []
    watched = peers.watched
    monkeypatch.setattr(peers, "watched", lambda call: watched(call)._replace(cpu_s=0.5))

    def simulator(name, laws, speeds):
        left = iter(speeds)

        def call(work):
            turns.append(name)
            return ["echo", json.dumps({"packets": next(left)})]

        return peers.Simulator(name, laws, call, peers.packets)

    able = [
        simulator("waterfill", ("sack", "xcp"), [10, 30, 20]),
        simulator("other", ("sack",), [5, 4, 3]),
        simulator("third", ("window",), []),
    ]
    found = peers.measured(able, work(peers), 3)
    assert turns == ["waterfill", "other"] * 3
    assert {name: speed.packets for name, speed in found.items()} == {"waterfill": 20, "other": 4}
    line = peers.row(work(peers), found, ["waterfill", "other", "third"])
    assert "5.00 ×" in line
    assert line.endswith("–")


def test_what_is_missing_is_named_with_its_reason(peers, monkeypatch, tmp_path):
    monkeypatch.setattr(peers, "waterfill", lambda: None)
    monkeypatch.setattr(peers, "NS3_HEADER", str(tmp_path / "none.h"))
    monkeypatch.setenv("PATH", str(tmp_path))
    _, missing = peers.available(None)
    assert missing == {
        "ns-3": "needs libns3-dev (Debian's name)",
        "ns-2": "needs ns2 (Debian's name)",
        "htsim": "needs a driver: HTSIM=PATH (bench/peers/README.md)",
    }
    assert peers.available("/no/such")[1]["htsim"] == "HTSIM: must be a program, got /no/such"
    assert peers.available(None, skip=["ns-2"])[1]["ns-2"] == "--skip"


def test_a_driver_that_fails_is_refused_in_one_line(peers, program, monkeypatch, capsys):
    driver = program("{}", code=3)
    with pytest.raises(peers.Refused, match="htsim failed on sack-10 with exit code 3"):
        peers.once(peers.htsim(str(driver)), work(peers))


def test_a_driver_that_prints_no_figures_is_refused_in_one_line(peers, program):
    with pytest.raises(peers.Refused, match="has to print"):
        peers.once(peers.htsim(str(program("nothing"))), work(peers))


def test_what_is_not_the_run_is_subtracted(peers, monkeypatch):
    one = peers.Simulator("x", ("sack",), lambda _: ["echo", "{}"], lambda _: 9.0, lambda _: 0.25)
    watched = peers.watched
    monkeypatch.setattr(peers, "watched", lambda call: watched(call)._replace(cpu_s=1.0))
    assert peers.once(one, work(peers)).packets_per_s == 12.0


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 (Debian's ns2) is not installed")
@pytest.mark.parametrize("law", ["window", "sack", "cubic", "xcp"])
def test_ns2_runs_the_dumbbell(peers, law):
    one = work(peers, law)._replace(flows=2, rate_bps=1e7, seconds=3.0)
    speed = peers.once(peers.ns2(), one)
    # The link passes 2,500 packets in three seconds.
    assert 1_500 < speed.packets <= 2_500


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 (Debian's ns2) is not installed")
def test_ns2_refuses_an_unknown_law(peers):
    done = subprocess.run(
        ["ns", FOLDER / "dumbbell.tcl", "-law", "pigeon"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "must be window, sack, cubic or xcp, got pigeon" in done.stderr
