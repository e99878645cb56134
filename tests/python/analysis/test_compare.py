"""Figures of a comparison on samples worked out by hand, and the command as a user types it."""

from __future__ import annotations

import copy
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from waterfill.analysis import compare, shares
from waterfill.analysis.shares import Spans
from waterfill.contract.summary import CLOCKED
from waterfill.errors import InputError
from waterfill.runs import backends, pool

COMMAND = [sys.executable, "-c", "from waterfill.cli import main; main()"]
MBIT = 1e6

# Two flows share 20 Mbit/s from 4 s on; MaxNet aims at 90 % of it.
SCENARIO = """
name = "small"
protocol = "maxnet"
duration = "12 s"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "20 Mbit/s"
delay = "5 ms"
[[link]]
name = "wide"
from = "b"
to = "c"
rate = "50 Mbit/s"
delay = "1 ms"
[[flow]]
name = "f"
from = "a"
to = "c"
[[flow]]
name = "g"
from = "a"
to = "c"
start = "4 s"
"""
PAIR = ("--protocols", "maxnet,window")
SHORT = ("--set", "duration=200 ms", "--set", "flow.g.start=50 ms")


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    (tmp_path / "s.toml").write_text(SCENARIO)
    return "s.toml"


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("runs") / "s.toml"
    file.write_text(SCENARIO)
    return pool.run_each(compare.load_each(file, [], ["maxnet", "window"]), threads=1)


def spans(*rows: tuple[float, float, float]) -> Spans:
    """Spans of (from s, to s, Mbit/s)."""
    from_s, to_s, share = np.array(rows, dtype=np.float64).T
    return Spans(from_s, to_s, share * MBIT)


def series(rates: Sequence[float], step_s: float = 1.0) -> tuple[Any, Any]:
    """Samples (Mbit/s) that end at step_s, 2 step_s …"""
    return np.arange(1, len(rates) + 1) * step_s, np.array(rates, dtype=np.float64) * MBIT


# --- settling ------------------------------------------------------------------------------------


def settling(rates: Sequence[float], *rows: tuple[float, float, float], **more: Any) -> Any:
    return compare.settling_s(*series(rates), spans(*rows), average_s=1.0, **more)


def test_settling_is_the_end_of_the_first_mean_inside_for_good():
    assert settling([2, 9.4, 9.5, 10.5, 10], (0, 5, 10)) == 3.0


def test_leaving_the_band_starts_the_wait_again():
    assert settling([10, 10, 11, 10, 10], (0, 5, 10)) == 4.0


def test_a_rate_that_ends_outside_never_settled():
    assert settling([10, 10, 10, 10, 9], (0, 5, 10)) == math.inf


def test_the_count_starts_with_the_flow():
    # From 2 s on: the samples that end at 3, 4 and 5 s are its own.
    assert settling([0, 0, 5, 10, 10], (2, 5, 10)) == 2.0


def test_each_change_of_the_share_starts_a_count_and_the_longest_counts():
    rates = [10, 10, 10, 7, 6, 5, 5]
    assert settling(rates, (0, 3, 10), (3, 7, 5)) == 3.0  # 1 s, then from 3 s until 6 s


def test_a_span_cut_short_counts_with_its_length():
    rates = [1, 2, 3, 4, 5, 5, 5]
    assert settling(rates, (0, 4, 10), (4, 7, 5)) == 4.0


def test_a_span_too_short_for_a_mean_does_not_count():
    time_s, rate_bps = series([0, 0, 0, 0, 5, 5, 5, 5, 5, 5], 0.5)
    rows = spans((0, 0.5, 20), (0.5, 2, 10), (2, 5, 5))
    # Means of 1 s: (0.5, 2] never settles in its 1.5 s, (2, 5] within the first mean.
    assert compare.settling_s(time_s, rate_bps, rows, average_s=1.0) == pytest.approx(1.5)
    assert compare.settling_s(time_s, rate_bps, rows, average_s=4.0) is None


def test_a_flow_without_a_share_is_not_judged():
    assert settling([0, 0, 0], (0, 3, 0)) is None
    assert settling([5, 5, 0, 0], (0, 2, 5), (2, 4, 0)) == 1.0


def test_a_flow_that_completed_was_not_given_the_time():
    rates = [10, 10, 1, 2]
    assert settling(rates, (0, 2, 10), (2, 4, 5), completed=True) == 2.0
    assert settling(rates, (0, 2, 10), (2, 4, 5)) == math.inf
    assert settling([1, 1], (0, 2, 10), completed=True) == math.inf  # never, in all its life


def test_rates_are_means():
    time_s, rate_bps = series([0, 0, 8, 12, 8, 12], 0.5)
    rows = spans((0, 3, 10))
    assert compare.settling_s(time_s, rate_bps, rows, average_s=1.0) == 2.0
    assert compare.settling_s(time_s, rate_bps, rows, average_s=0.5) == math.inf


def test_one_packet_more_or_less_is_no_deviation():
    # 12 kbit a packet: a share of 30 kbit/s is two or three packets a second.
    rates = [0.024, 0.036, 0.024, 0.036]
    assert settling(rates, (0, 4, 0.03)) == math.inf
    assert settling(rates, (0, 4, 0.03), packet_bytes=1500) == 1.0


# --- start-up ------------------------------------------------------------------------------------


def start_up(rates: Sequence[float], *rows: tuple[float, float, float], **more: Any) -> Any:
    start_s = rows[0][0]
    return compare.start_up_s(*series(rates), spans(*rows), start_s=start_s, **more)


def test_start_up_is_the_end_of_the_first_sample_with_half_of_the_share():
    assert start_up([4.9, 5, 1, 1], (0, 4, 10)) == 2.0
    assert start_up([9, 9, 4, 5], (2, 4, 10)) == 2.0  # what was before the SYN is not its own


def test_the_share_is_that_of_the_samples_end():
    assert start_up([4, 4, 4], (0, 2, 10), (2, 3, 8)) == 3.0
    assert start_up([0, 4, 0], (0, 2, 8), (2, 3, 80)) == 2.0


def test_a_flow_that_never_starts_up():
    assert start_up([1, 1], (0, 2, 10)) == math.inf
    assert start_up([math.nan, math.nan], (0, 2, 10)) == math.inf
    assert start_up([1, 1], (0, 2, 10), completed=True) is None
    assert start_up([0, 0], (0, 2, 0)) is None
    assert start_up([], (0, 2, 10)) is None


def test_spans_are_cut_to_a_life():
    cut = spans((0, 2, 1), (2, 4, 2), (4, 6, 3)).within(1, 4)
    assert cut.from_s.tolist() == [1, 2]
    assert cut.to_s.tolist() == [2, 4]
    assert cut.at(np.array([1.0, 1.5, 2.0, 2.5, 4.0, 4.5])).tolist() == [0, 1e6, 1e6, 2e6, 2e6, 0]
    assert cut.at(np.array([])).tolist() == []
    assert spans((0, 2, 1)).within(5, 6).at(np.array([5.5])).tolist() == [0.0]


# --- runs ----------------------------------------------------------------------------------------


def test_select_takes_the_protocols_of_the_backend():
    assert compare.select(None, "sim") == ["maxnet", "xcp", "rcp", "abc"]
    assert compare.select(None, "fluid") == ["maxnet", "xcp", "rcp"]
    assert compare.select("aecp, maxnet", "sim") == ["aecp", "maxnet"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("maxnt", 'unknown protocol "maxnt", did you mean "maxnet"?'),
        ("cubic", '"cubic" does not run on fluid; choose one of maxnet, maxnet2006, xcp, '),
        ("maxnet,xcp,maxnet", '"maxnet" is named 2 times; name it once'),
        ("maxnet,", 'must be names separated by commas, got "maxnet,"'),
        ("", 'must be names separated by commas, got ""'),
    ],
)
def test_select_refuses(names, message):
    with pytest.raises(InputError) as refused:
        compare.select(names, "fluid")
    assert str(refused.value).startswith(f"command line: protocols: {message}")


def plain(result: Any) -> Any:
    """A run's document without the host's own values, and its samples."""
    summary = copy.deepcopy(result.summary)
    del summary["engine"]["wall_s"]
    del summary["engine"]["packet_transmissions_per_s"]
    return summary, result.flows.to_pydict(), result.links.to_pydict()


def test_threads_change_nothing(results, tmp_path):
    (tmp_path / "s.toml").write_text(SCENARIO)
    scenarios = compare.load_each(tmp_path / "s.toml", [], ["maxnet", "window"])
    together = pool.run_each(scenarios, threads=2)
    assert list(together) == list(results) == ["maxnet", "window"]
    for name, result in together.items():
        # NaN is not itself; its text is.
        assert repr(plain(result)) == repr(plain(results[name]))
        assert repr(plain(result)) == repr(plain(backends.run(scenarios[name])))


def test_an_error_of_one_run_ends_the_others(tmp_path, monkeypatch):
    (tmp_path / "s.toml").write_text(SCENARIO.replace('"12 s"', '"100000 s"\nsample = "1 s"'))
    scenarios = compare.load_each(tmp_path / "s.toml", [], ["maxnet", "window"])
    run = backends.run

    def refuse(scenario: Any, **more: Any) -> Any:
        if scenario.protocol == "window":
            raise InputError("s.toml", "here", "no")
        return run(scenario, **more)

    monkeypatch.setattr(backends, "run", refuse)
    with pytest.raises(InputError, match="here: no"):
        pool.run_each(scenarios, threads=2)


def test_allocation_follows_the_flows(results):
    allocated = shares.allocation(results["maxnet"])
    first, second = allocated.of(0), allocated.of(1)
    assert first.from_s.tolist() == [0, 4]
    assert first.share_bps.tolist() == pytest.approx([18e6, 9e6])
    assert second.from_s.tolist() == [4]
    assert second.share_bps.tolist() == pytest.approx([9e6])
    # The window is the last third, 8 s to 12 s: two flows for four seconds.
    assert allocated.bound_s == pytest.approx([8, 0, 0, 0])


def test_the_bottleneck_binds_most_flows_for_longest(results):
    compared = compare.of(results)
    assert compared.bottleneck == "l"


def test_without_a_bottleneck_it_is_the_busiest_link(tmp_path):
    file = tmp_path / "s.toml"
    file.write_text(SCENARIO)
    sets = ["flow.f.demand=1 Mbit/s", "flow.g.demand=1 Mbit/s", "link.wide.rate=10 Mbit/s"]
    compared = compare.of(pool.run_each(compare.load_each(file, sets, ["maxnet"])))
    assert compared.bottleneck == "wide"


def test_figures_of_a_run(results):
    compared = compare.of(results)
    figures = compared.document()["runs"]["maxnet"]["compare"]
    assert figures["bottleneck"] == "l"
    assert figures["average_s"] == pytest.approx(0.6)  # a twentieth of 12 s
    assert figures["utilization"] == pytest.approx(0.9, rel=0.02)
    assert figures["queue_bytes"] == results["maxnet"].summary["links"][0]["queue_bytes"]
    assert figures["drops"] == 0
    for key in ("jain_index", "jain_index_of_shares"):
        assert figures[key] == results["maxnet"].summary[key]
    f, g = figures["flows"]
    assert f["share_ratio"] == pytest.approx(1, abs=0.03)
    assert 0.6 - 1e-9 <= g["settling_s"] < 8
    assert 0 < g["start_up_s"] < 1
    assert figures["settling_s"]["worst"] == max(f["settling_s"], g["settling_s"])
    assert figures["settling_s"]["never"] == figures["start_up_s"]["never"] == 0
    middle_s = (f["start_up_s"] + g["start_up_s"]) / 2
    assert figures["start_up_s"]["median"] == pytest.approx(middle_s)


def test_a_window_too_small_for_the_share(results):
    # Ten packets each 12.9 ms are 9.3 Mbit/s: below half of f's 20, 7 % below its later 10.
    figures = compare.of(results).document()["runs"]["window"]["compare"]
    assert figures["share_ratio"]["worst"] == pytest.approx(0.93, abs=0.01)
    assert figures["settling_s"] == {"worst": math.inf, "worst_flow": "f", "never": 2}
    assert figures["flows"][0]["start_up_s"] == pytest.approx(4.1)
    assert figures["flows"][1]["start_up_s"] == pytest.approx(0.1)


# --- the command ---------------------------------------------------------------------------------


def test_compare_prints_a_table_of_figures_and_one_of_hosts(waterfill, scenario):
    ran = waterfill("compare", scenario, *PAIR)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == "small on sim, seed 1: 8 s to 12 s of 12 s"
    assert sum(line.startswith(("maxnet ", "window ")) for line in lines) == 4
    assert sum("window 100 %" in line for line in lines) == 2
    assert "of l, the bottleneck of most flow-seconds over all runs; drops" in " ".join(
        ran.out.split()
    )
    assert max(map(len, lines)) <= 80
    assert "…" not in ran.out
    assert [line.split(":")[0] for line in ran.err.splitlines()] == ["maxnet", "window", "hint"]


def test_compare_runs_four_explicit_protocols(waterfill, scenario):
    ran = waterfill("compare", scenario, *SHORT, "--json")
    assert list(ran.document["runs"]) == ["maxnet", "xcp", "rcp", "abc"]


@pytest.mark.usefixtures("undrawn")
def test_all_and_explicit_stand_for_protocols(waterfill, scenario):
    known = waterfill("protocols", "--json").document
    able = {p["name"]: p["kind"] for p in known if "sim" in p["backends"]}
    explicit = [name for name, kind in able.items() if kind == "explicit"]
    assert compare.select("explicit", "sim") == explicit
    assert compare.select("cubic,explicit,xcp", "sim") == ["cubic", *explicit]
    assert compare.select("all", "sim") == list(able)
    assert "abc" not in compare.select("all", "fluid")
    ran = waterfill("compare", scenario, "--protocols", "all", *SHORT, "--json", "-o", "out")
    assert list(ran.document["runs"]) == list(able)
    assert f"compare: {len(able)} runs, then a figure of each; a figure takes" in ran.err
    ran = waterfill("compare", scenario, *PAIR, *SHORT, "-o", "pair")
    assert "a figure of each" not in ran.err


def test_compare_json_is_the_runs_documents(waterfill, scenario):
    ran = waterfill("compare", scenario, *PAIR, "--json", "--seed", "3")
    assert list(ran.document) == ["schema_version", "runs"]
    for name in ("maxnet", "window"):
        run = ran.document["runs"][name]
        del run["compare"]
        alone = waterfill("run", scenario, "--protocol", name, "--json", "--seed", "3").document
        assert alone["seed"] == 3
        for key in CLOCKED:
            del run["engine"][key], alone["engine"][key]
        assert run == alone


def test_never_is_null(waterfill, scenario):
    more = ("--protocols", "window", "--set", "params.window.packets=1")
    figures = waterfill("compare", scenario, *more, "--json").document["runs"]["window"]["compare"]
    assert figures["settling_s"] == {"worst": None, "worst_flow": "f", "never": 2}
    assert figures["start_up_s"]["median"] is None
    assert waterfill("compare", scenario, *more).out.count("–") >= 3


def test_compare_writes(waterfill, scenario):
    ran = waterfill("compare", scenario, *PAIR, "--json", "-o", "out")
    assert ran.code == 0
    assert json.loads(Path("out/compare.json").read_text()) == ran.document
    assert Path("out/compare.png").read_bytes().startswith(b"\x89PNG")
    svg = Path("out/compare.svg").read_text()
    for name in ("maxnet", "window"):
        assert f">{name}<" in svg
        run = Path("out", name)
        assert {file.name for file in run.iterdir()} == {
            *("summary.json", "scenario.toml", "flows.parquet", "links.parquet"),
            *("figure.png", "figure.svg"),
        }
        assert f'protocol = "{name}"' in (run / "scenario.toml").read_text()
        assert pq.read_table(run / "flows.parquet").num_rows > 0
    for label in ("rate (Mbit/s)", "peak queue", "(kB)", "time (s)", "max-min share"):
        assert f">{label}<" in svg


def test_protocols_replace_the_default_only(waterfill, tmp_path):
    (tmp_path / "own.toml").write_text(SCENARIO + 'protocol = "maxnet"\n')
    ran = waterfill("compare", "own.toml", *PAIR, "--json")
    used = {
        name: [flow["protocol"] for flow in run["flows"]]
        for name, run in ran.document["runs"].items()
    }
    assert used == {"maxnet": ["maxnet", "maxnet"], "window": ["window", "maxnet"]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--protocols", "maxnt"], 'command line: protocols: unknown protocol "maxnt", did you'),
        (["--on", "smi"], 'command line: on: unknown backend "smi", did you mean "sim"?'),
        (["--set", "params.maxnet.mu=7"], "command line: params.maxnet.mu: "),
        (["--set", "flow.g.stat=1"], "command line: flow.g.stat: unknown key"),
        (
            ["--set", "flow.f.protocol=window", "--set", "flow.g.protocol=window"],
            "flow: every flow names",
        ),
        (["-o", "s.toml"], "s.toml: a file, not a directory"),
    ],
)
def test_wrong_input_is_one_line_before_anything_runs(
    waterfill, scenario, monkeypatch, arguments, message
):
    monkeypatch.setattr(backends, "run", None)
    ran = waterfill("compare", scenario, *arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert message in ran.err
    assert ran.err.count("\n") == 1


def test_interrupt_leaves_what_there_is(tmp_path):
    text = SCENARIO.replace('"12 s"', '"100000 s"\nsample = "1 s"').replace(" Mbit/s", " Gbit/s")
    (tmp_path / "long.toml").write_text(text)
    process = subprocess.Popen(
        [*COMMAND, "compare", "long.toml", "--protocols", "maxnet,rcp", "--json", "-o", "out"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "out").is_dir():  # made just before the runs
        time.sleep(0.05)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    document = json.loads(stdout)
    assert 0 < document["runs"]["maxnet"]["interrupted_at_s"] < 100_000
    assert json.loads((tmp_path / "out" / "compare.json").read_text()) == document
    assert not [name for name in os.listdir(tmp_path / "out") if name.endswith(".tmp")]


def test_entries_that_stand_for_many_flows():
    link = {"name": "l", "from": "a", "to": "b", "rate": "100 Gbit/s", "delay": "5 ms"}
    flows = [{"name": name, "path": ["l"], "count": 6000, "rtt": rtt}
             for name, rtt in (("f", "10 ms"), ("g", "20 ms"))]  # fmt: skip
    document = {"duration": "1 s", "protocol": "rcp", "link": [link], "flow": flows}
    result = backends.run(document, "fluid")
    assert [flow["count"] for flow in result.summary["flows"]] == [6000, 6000]
    found = compare.of({"rcp": result})
    for entry in (0, 1):
        assert found.allocations["rcp"].of(entry).share_bps == pytest.approx([1e11 / 12000])
    assert found.allocations["rcp"].bound_s[0] == pytest.approx(
        12000 * np.diff(result.summary["measure_s"])[0]
    )
    assert compare._never([{"x": math.inf}, {"x": 1.0}], [6000, 6000], "x") == 6000
