"""The default measure window: the last third, or the time in which finite flows are active."""

from __future__ import annotations

import json

import pytest

import waterfill as package
from waterfill.runs import cache
from waterfill.scenario.loading import from_dict

LINK = {"name": "l", "from": "a", "to": "b", "rate": "10 Mbit/s", "delay": "5 ms",
        "buffer": "10 packets"}  # fmt: skip
FLOW = {"name": "f", "from": "a", "to": "b", "size": "200 kB", "count": 3, "start": "250 ms"}
INCAST = {"name": "s", "duration": "3 s", "protocol": "dctcp", "link": [LINK], "flow": [FLOW]}
WEB = {"kind": "web", "path": ["l"], "arrival_rate": 5}


def files(folder, **changes):
    path = folder / "s.toml"
    path.write_text(from_dict({**INCAST, **changes}).to_toml())
    return path


@pytest.mark.parametrize("on", ["sim", "fluid"])
def test_window_of_finite_flows_is_the_time_in_which_they_are_active(on):
    link = {**LINK, "buffer": "100 packets"}
    changes = {"protocol": "maxnet", "link": [link]}
    found = package.run({**INCAST, **changes}, on=on).summary
    last_s = max(flow.completed_s for flow in found.flows)
    assert found.measure_s == [0.25, pytest.approx(last_s, abs=1e-6)]
    assert last_s <= found.measure_s[1] < 1
    assert all(flow.rate_bps > 1e6 for flow in found.flows)
    assert found.links[0].utilization > 0.6
    # A window that a scenario states gives the same numbers as that one by default.
    stated = {"measure": [f"{edge!r} s" for edge in found.measure_s]}
    same = package.run({**INCAST, **changes, **stated}, on=on).summary
    assert (same.flows, same.links) == (found.flows, found.links)


def test_drops_of_an_incast_are_in_its_window():
    # By RFC 6675, each packet sent again was dropped; RACK also sends probes.
    without_probes = {**INCAST, "flow": [{**FLOW, "recovery": "rfc6675"}]}
    for threads in (1, 2):
        found = package.run(without_probes, threads=threads).summary
        sent_again = sum(flow.retransmissions for flow in found.flows)
        assert found.links[0].drops == sent_again > 20
        assert found.links[0].queue_bytes.max == 15_000
        assert found.jain_index is not None


def test_window_ends_with_the_stop_of_an_unfinished_flow_or_with_the_run():
    late = {**FLOW, "size": "5 MB", "count": 1}
    assert package.run({**INCAST, "flow": [late]}).summary.measure_s == [0.25, 3]
    late["stop"] = "1 s"
    assert package.run({**INCAST, "flow": [late]}).summary.measure_s == [0.25, 1]


@pytest.mark.parametrize(
    ("changes", "window"),
    [
        ({"flow": [FLOW, {"name": "g", "path": ["l"]}]}, [2, 3]),
        ({"traffic": [WEB]}, [2, 3]),
        ({"measure": ["1 s", "2 s"]}, [1, 2]),
    ],
)
def test_other_windows_are_as_they_were(changes, window):
    assert package.run({**INCAST, **changes}).summary.measure_s == window


def test_a_written_run_is_read_again(tmp_path, waterfill):
    path = files(tmp_path)
    assert waterfill("run", str(path), "-o", "out", "--pcap", "--log-steps", "9").code == 0
    found = package.load(tmp_path / "out")
    assert found.summary.measure_s[1] < 3
    # The scenario does not state a window that only the run knows.
    assert "measure" not in (tmp_path / "out" / "scenario.toml").read_text()
    assert waterfill("report", "out").code == 0
    shown = waterfill("check", str(path), "--json").document
    assert shown["measure_s"] == [0.25, 3]
    scenario = from_dict(INCAST)
    result = package.run(scenario)
    cache.store(scenario, "sim", result)
    kept = cache.lookup(scenario, "sim")
    assert kept is not None
    assert kept.summary.measure_s == result.summary.measure_s == found.summary.measure_s


def test_tables_say_why_they_are_empty(tmp_path, waterfill):
    path = files(tmp_path)
    shown = waterfill("run", str(path)).out
    assert "No flow" not in shown
    assert "not active" not in shown
    words = ("--set", 'measure=["2 s","3 s"]')
    text = "No flow was active in the window from 2 s to 3 s: they ran from 250 ms to"
    ran = waterfill("run", str(path), *words, "-o", "out")
    assert text in " ".join(ran.out.split())
    assert 'set measure = ["250 ms", "' in " ".join(ran.out.split())
    ran = waterfill("compare", str(path), *words, "--protocols", "reno,bbr", "-o", "both")
    assert f"bbr: {text}" in " ".join(ran.out.split())
    for folder in ("out", "both"):
        waterfill("report", folder)
        assert text in (tmp_path / folder / "report.html").read_text()
    ran = waterfill(
        "run", str(path), "--set", "flow.f.stagger=1s", "--set", 'measure=["1 s","2 s"]'
    )
    assert "–: not active in the window from 1 s to 2 s." in ran.out
    thirds = ("--set", "flow.f.stagger=1s", "--set", 'measure=["1.3333333333 s","2 s"]')
    assert "from 1.33333 s to 2 s." in waterfill("run", str(path), *thirds).out


def test_comparison_of_an_incast_shows_drops_queues_and_completion_times(tmp_path, waterfill):
    ran = waterfill("compare", str(files(tmp_path)), "--protocols", "dctcp,cubic", "--json")
    runs = json.loads(ran.out)["runs"]
    for run in runs.values():
        found = run["compare"]
        assert found["drops"] > 20
        assert found["queue_bytes"]["max"] == 15_000
        assert found["transfers"]["completion_s"]["p99"] > 0.3
    assert runs["dctcp"]["measure_s"] != runs["cubic"]["measure_s"]
    ran = waterfill("compare", str(files(tmp_path)), "--protocols", "dctcp,cubic")
    assert ran.out.startswith("s on sim, seed 1: 0.25 s until each run's last flow, of 3 s\n")


def test_a_notebook_says_why_its_table_is_empty():
    shown = package.run({**INCAST, "measure": ["2 s", "3 s"]})._repr_html_()
    assert "No flow was active in the window from 2 s to 3 s" in shown


def test_a_sweep_says_which_columns_have_no_values(tmp_path, waterfill):
    words = ("--grid", "flow.f.count=1,2", "--workers", "1", "-o", "out")
    ran = waterfill("sweep", str(files(tmp_path, measure=["2 s", "3 s"])), *words)
    text = "no values of share_min, rtt_p99_ms: no flow was active in the window"
    assert text in " ".join(ran.out.split())
