"""Collectives as `run`, `compare` and `sweep` print them."""

import json

SCENARIO = """
duration = "20 ms"
profile = "datacenter"
handshake = false
protocol = "dctcp"

[fabric]
kind = "leaf-spine"
leaves = 1
spines = 1
hosts = 4
host_rate = "10 Gbit/s"
delay = "1 us"

[[collective]]
name = "ring"
kind = "all-reduce"
size = "400 kB"
"""


def test_a_run_prints_operations_and_not_their_messages(waterfill, tmp_path):
    (tmp_path / "S.toml").write_text(SCENARIO)
    printed = waterfill("run", "S.toml").out
    assert "all-reduce" in printed
    assert "ring-0-h0-h1" not in printed


def test_a_comparison_has_a_row_for_each_protocol(waterfill, tmp_path):
    (tmp_path / "S.toml").write_text(SCENARIO)
    command = ("compare", "S.toml", "--protocols", "dctcp,xcp")
    lines = [line.split() for line in waterfill(*command).out.splitlines()]
    assert [line[0] for line in lines if line[1:2] == ["ring"]] == ["dctcp", "xcp"]
    runs = json.loads(waterfill(*command, "--json").out)["runs"]
    assert [run["compare"]["collectives"][0]["unfinished"] for run in runs.values()] == [0, 0]


def test_a_sweep_has_the_bandwidth(waterfill, tmp_path):
    (tmp_path / "S.toml").write_text(SCENARIO)
    grid = ("--grid", "collective.ring.size=400 kB,800 kB", "--show", "collective_ms,bus_of_ideal")
    printed = waterfill("sweep", "S.toml", *grid, "-o", "out").out
    rows = [line.split() for line in printed.splitlines() if line[:1].isdigit()]
    assert len(rows) == 2
    assert 0.3 < float(rows[0][-1]) < float(rows[1][-1]) < 1
