"""Warnings of flows that start, end or have not settled in the measure window."""

from __future__ import annotations

import pytest

from waterfill.analysis import hosts
from waterfill.cli import tables
from waterfill.runs import backends
from waterfill.scenario.loading import from_toml

SCENARIO = """
name = "two"
duration = "12 s"
measure = ["8 s", "12 s"]
protocol = "maxnet"
sample = "50 ms"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "50 Mbit/s"
delay = "20 ms"
buffer = "1 MB"
[[flow]]
name = "f"
path = ["l"]
[[flow]]
name = "g"
path = ["l"]
count = 5
"""
WINDOW = "inside the window from 8 s to 12 s"
ALL = "g[0], g[1], g[2] and 2 more flows"


@pytest.mark.parametrize(
    ("sets", "line"),
    [
        ([], None),
        (["flow.g.start=10 s"], f"{ALL}: started {WINDOW}; the rate is not settled"),
        (["flow.f.stop=10 s"], f"f: ended {WINDOW}; rates change at its end"),
        (["flow.g.size=100 kB", "flow.g.start=10 s"], None),
        (["flow.f.stop=8 s", "flow.g.start=1 s"], None),
        (["flow.g.start=1 s", "measure=['1 s', '3 s']"], "the rate changed by up to"),
        (["flow.g.start=1 s", "measure=['1 s', '3 s']", "protocol=cubic"], None),
    ],
)
def test_the_line_names_flows_and_window(sets, line):
    packets_only = any("size" in one or "cubic" in one for one in sets)
    for backend in ("sim",) if packets_only else ("sim", "fluid"):
        summary = backends.run(from_toml(SCENARIO, "S.toml", sets), on=backend).summary
        found = hosts.warnings(summary)
        if line is None:
            assert found == []
            assert summary.warnings is None
        else:
            assert len(found) == 1
            assert line in found[0]
            assert line in " ".join(" ".join(map(str, tables.run(summary))).split())


def test_a_comparison_says_it_once_for_all_protocols(waterfill, tmp_path):
    (tmp_path / "S.toml").write_text(SCENARIO)
    words = ("--protocols", "maxnet,rcp", "--set", "flow.g.start=10 s")
    out = " ".join(waterfill("compare", "S.toml", *words).out.split())
    assert out.count(f"{ALL}: started {WINDOW}; the rate is not settled") == 1
    assert "maxnet: g[0]" not in out
