"""Tests of Ctrl-C within a slice: runs that would take hours end with partial results."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

# Signals itself soon after each run has begun. Without that being heard it would never end.
RUNS = """
import signal
import waterfill

LINK = {"name": "l", "from": "a", "to": "b", "rate": "500 Mbit/s", "delay": "10 ms"}
FLOW = {"name": "f", "path": ["l"]}

def scenario(protocol, **more):
    return {"duration": "60 s", "protocol": protocol, "link": [LINK], "flow": [FLOW], **more}

def source(kind, rate):
    return {"traffic": [{"name": "t", "kind": kind, "path": ["l"], "rate": rate}]}

def params(law, name, value):
    return {"params": {law: {name: value}}}

two = {"link": [LINK, {**LINK, "name": "m", "from": "b", "to": "c"}],
       "flow": [{"name": "f", "path": ["l", "m"]}]}
RUNS = {
    "poisson": ("sim", scenario("newreno", **source("poisson", "1.3e16 bit/s"))),
    "cbr": ("sim", scenario("newreno", **source("cbr", "1e30 bit/s"))),
    "vcp.alpha": ("sim", scenario("vcp", **params("vcp", "alpha", 1e6))),
    "vcp.t_q": ("sim", scenario("vcp", **params("vcp", "t_q", "1 ps"))),
    "aecp.t_2": ("sim", scenario("aecp", **params("aecp", "t_2", "1 ps"))),
    "aecp.q_0": ("sim", scenario("aecp", **params("aecp", "q_0", 1e9))),
    "packets": ("sim", scenario("window", **params("window", "packets", 1e9))),
    "initial_window": ("sim", scenario("newreno", flow=[
        {**FLOW, "count": 3000, "initial_window": "2147483647 packets"}])),
    "threads": ("sim", scenario("aecp", **params("aecp", "t_2", "1 ps"), **two)),
    "fluid aecp.t_2": ("fluid", scenario("aecp", **params("aecp", "t_2", "1 ps"))),
    "fluid step": ("fluid", scenario("maxnet", step="20 ns", duration="1000 s")),
}
signal.signal(signal.SIGALRM, signal.default_int_handler)
begun = set()

def report(tick):
    if name not in begun:
        begun.add(name)
        signal.setitimer(signal.ITIMER_REAL, 0.1)

for name, (on, found) in RUNS.items():
    result = waterfill.run(found, on=on, threads=2 if name == "threads" else 1, progress=report)
    assert 0 <= result.summary["interrupted_at_s"] < 60, name
print("all", len(RUNS))
"""


def test_a_signal_is_heard_within_every_long_loop():
    ran = subprocess.run(
        [sys.executable, "-c", RUNS], capture_output=True, text=True, timeout=100, check=False
    )
    assert ran.stdout == "all 11\n", ran.stderr


@pytest.mark.filterwarnings("ignore::waterfill.runs.engine.LongRun")
def test_a_report_is_heard_within_a_slice():
    """The thread of the pool of runs: signals arrive on the main thread only."""
    from waterfill import run

    def stop(tick):
        if tick.wall_s > 0.05:
            raise KeyboardInterrupt

    timers = {
        "duration": "60 s",
        "protocol": "aecp",
        "link": [{"name": "l", "from": "a", "to": "b", "rate": "1 Gbit/s", "delay": "1 ms"}],
        "flow": [{"name": "f", "path": ["l"]}],
        "params": {"aecp": {"t_2": "1 ps"}},
    }
    assert run(timers, progress=stop).summary["interrupted_at_s"] < 60


FLOOD = """
name = "flood"
duration = "60 s"
protocol = "newreno"
link = [{name = "l", from = "a", to = "b", rate = "500 Mbit/s", delay = "10 ms"}]
flow = [{name = "f", path = ["l"]}]
traffic = [{name = "t", kind = "poisson", path = ["l"], rate = "1.3e16 bit/s"}]
"""


def test_the_command_warns_in_one_line_and_then_hears_the_signal(tmp_path):
    (tmp_path / "s.toml").write_text(FLOOD)
    process = subprocess.Popen(
        [sys.executable, "-m", "waterfill", "run", str(tmp_path / "s.toml"), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=100)
    assert line.startswith(f"warning: {tmp_path}/s.toml: traffic.t: expected to take about ")
    assert "days of one CPU; Ctrl-C ends" in line
    assert process.returncode == 130
    # Nothing if the signal came before the first slice.
    assert not out or json.loads(out)["interrupted_at_s"] < 60
    assert "Warning" not in err
