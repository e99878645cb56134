"""Tests of the commands as a user types them: output, files, the exit code."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import waterfill as package
from waterfill.papers.claims import loading
from waterfill.runs import backends, engine
from waterfill.scenario.loading import load

COMMAND = [sys.executable, "-c", "from waterfill.cli import main; main()"]

SCENARIO = """
name = "small"
protocol = "maxnet"
duration = "3 s"
measure = ["2 s", "3 s"]
[[link]]
name = "l"
from = "a"
to = "b"
rate = "20 Mbit/s"
delay = "5 ms"
[[flow]]
name = "f"
path = ["l"]
"""
TRAFFIC = '[[traffic]]\nkind = "cbr"\npath = ["l"]\nrate = "4 Mbit/s"\n'


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    (tmp_path / "s.toml").write_text(SCENARIO)
    return "s.toml"


def long_scenario(folder: Path) -> Path:
    """Write a scenario with more work than any test waits for."""
    file = folder / "long.toml"
    text = SCENARIO.replace('"3 s"\nmeasure = ["2 s", "3 s"]', '"100000 s"\nsample = "1 s"')
    file.write_text(text.replace("20 Mbit/s", "10 Gbit/s"))
    return file


# --- run ----------------------------------------------------------------------------------------


def test_run_prints_tables(waterfill, scenario):
    ran = waterfill("run", scenario)
    assert ran.code == 0
    assert "small on sim, seed 1: 2 s to 3 s of 3 s" in ran.out
    assert "max-min" in ran.out
    assert "l:rev" in ran.out
    assert "\x1b" not in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    assert ran.err.count("\n") == 1
    assert ran.err.startswith("small: simulated 3 s in ")


def test_the_fluid_model_counts_steps_not_packets(waterfill, scenario):
    ran = waterfill("run", scenario, "--on", "fluid", "--set", "step=1 ms", "--json")
    assert re.fullmatch(r"small: simulated 3 s in \S+ s, 3,000 steps, \S+ M steps/s\n", ran.err)
    assert "packet_transmissions_per_s" not in ran.document["engine"]


def test_run_says_over_what_time_retransmissions_count(waterfill, scenario):
    note = "retransmissions: of the whole run; drops: of the window."
    assert note not in waterfill("run", scenario).out
    lossy = waterfill("run", scenario, "--protocol", "cubic", "--set", "link.l.loss=0.01")
    assert note in lossy.out


def test_plot_of_a_sweep_says_what_to_type(waterfill, tmp_path):
    (tmp_path / "grid").mkdir()
    (tmp_path / "grid" / "sweep.json").write_text("{}")
    ran = waterfill("plot", "grid", "--style", "paper")
    assert ran.code == 2
    assert "waterfill report grid, or repeat the sweep with --style paper" in ran.err


def test_run_names_the_flow_with_the_smallest_share(waterfill, scenario):
    rest = '[[flow]]\nname = "g"\npath = ["l"]\ndemand = "4 Mbit/s"\nprotocol = "cubic"\n'
    Path(scenario).write_text(
        SCENARIO + rest + '[[flow]]\nname = "late"\npath = ["l"]\nstart = "1.9 s"\n'
    )
    rows = {flow["name"]: flow for flow in waterfill("run", scenario, "--json").document["flows"]}
    ratios = {name: flow["rate_bps"] / flow["max_min_bps"] for name, flow in rows.items()}
    lowest = min(ratios, key=lambda name: ratios[name])
    out = waterfill("run", scenario).out
    assert f"; smallest: {ratios[lowest]:.3f}, of {lowest}" in out


def test_run_json_is_one_document(waterfill, scenario):
    ran = waterfill("run", scenario, "--json")
    flow, link = ran.document["flows"][0], ran.document["links"][0]
    assert ran.code == 0
    assert flow["name"] == flow["group"] == "f"
    assert flow["max_min_bps"] == pytest.approx(18e6)
    assert flow["rate_bps"] == pytest.approx(18e6, rel=0.05)
    assert link["utilization"] == pytest.approx(0.9, rel=0.05)
    assert [link["name"] for link in ran.document["links"]] == ["l", "l:rev"]
    assert ran.document["jain_index"] == ran.document["jain_index_of_shares"] == pytest.approx(1.0)
    params = ran.document["params"]["maxnet"]
    assert (params["mu"], params["t"], params["x_max"]) == (0.9, 0.4, 1e15)
    assert "interrupted_at_s" not in ran.document


def test_run_json_has_the_slowdowns_that_its_table_has(waterfill, scenario):
    flow = '[[flow]]\nname = "s{0}"\npath = ["l"]\nsize = "{0} kB"\nstart = "{1} s"\n'
    sized = "".join(flow.format(*one) for one in ((5, 0.2), (50, 0.4), (9_000_000, 0.6)))
    Path("sized.toml").write_text(SCENARIO + sized)
    ran = waterfill("run", "sized.toml", "--json")
    both = ran.document["transfers"]
    assert (both["flows"], both["unfinished"]) == (3, 1)
    assert both["slowdown"]["p50"] > 1
    first, second, *_, last = ran.document["transfers_by_size"]
    assert [one["flows"] for one in (first, second, last)] == [1, 1, 1]
    assert both["slowdown"]["p99"] == max(one["slowdown"]["p99"] for one in (first, second))
    bins = waterfill("run", "sized.toml", "--json", "--bins", "20 kB").document
    assert [one["flows"] for one in bins["transfers_by_size"]] == [1, 2]
    assert "transfers" not in waterfill("run", scenario, "--json").document


def test_a_comparison_without_flows_has_no_columns_of_flows(waterfill, scenario):
    with_flows = waterfill("compare", scenario, "--protocols", "maxnet").out
    web = '[[traffic]]\nkind = "web"\npath = ["l"]\nload = 0.2\nsizes = "web-search"\n'
    Path("web.toml").write_text(SCENARIO.partition("[[flow]]")[0] + web)
    without = waterfill("compare", "web.toml", "--protocols", "maxnet")
    assert without.code == 0
    for words in ("Jain", "settle", "start:"):
        assert words in with_flows
        assert words not in without.out
    assert "util." in without.out
    assert "Jain" in waterfill("run", scenario).out
    assert "Jain" not in waterfill("run", "web.toml").out


def test_run_takes_overrides(waterfill, scenario):
    ran = waterfill(
        *("run", scenario, "--json", "--seed", "9"),
        *("--set", "params.maxnet.mu=0.5", "--set", "flow.f.count=2"),
    )
    assert ran.document["seed"] == 9
    assert ran.document["params"]["maxnet"]["mu"] == 0.5
    assert [flow["name"] for flow in ran.document["flows"]] == ["f[0]", "f[1]"]
    assert [flow["max_min_bps"] for flow in ran.document["flows"]] == pytest.approx([5e6, 5e6])


def test_protocol_replaces_the_default_only(waterfill, scenario, tmp_path):
    own = SCENARIO + '[[flow]]\nname = "own"\nprotocol = "maxnet"\npath = ["l"]\n'
    (tmp_path / "own.toml").write_text(own)
    ran = waterfill("run", "own.toml", "--protocol", "window", "--json")
    assert [flow["protocol"] for flow in ran.document["flows"]] == ["window", "maxnet"]


@pytest.mark.usefixtures("undrawn")
def test_traffic_is_reported_apart(waterfill, tmp_path):
    (tmp_path / "t.toml").write_text(SCENARIO + TRAFFIC)
    ran = waterfill("run", "t.toml", "--json", "-o", "out")
    assert [flow["max_min_bps"] for flow in ran.document["flows"]] == pytest.approx([14e6])
    assert ran.document["traffic"][0]["name"] == "cbr"
    assert pq.read_table("out/traffic.parquet")["traffic"].unique().to_pylist() == ["cbr"]
    assert "cbr" in waterfill("run", "t.toml").out


def test_flows_are_grouped_when_there_are_many(waterfill, scenario):
    ran = waterfill("run", scenario, "--set", "flow.f.count=21")
    assert "f[0]" not in ran.out
    assert "21" in ran.out
    assert "f[19]" in waterfill("run", scenario, "--set", "flow.f.count=20").out


@pytest.mark.usefixtures("undrawn")
def test_output_directory(waterfill, scenario):
    ran = waterfill("run", scenario, "--json", "-o", "out/here")
    assert ran.code == 0
    assert sorted(os.listdir("out/here")) == [
        "figure.png",
        "figure.svg",
        "flows.parquet",
        "links.parquet",
        "scenario.toml",
        "summary.json",
    ]
    assert json.loads(Path("out/here/summary.json").read_text()) == ran.document
    again = waterfill("run", "out/here/scenario.toml", "--json").document
    assert again["flows"] == ran.document["flows"]


def test_same_seed_same_bytes(waterfill, scenario):
    for folder in ("a", "b"):
        assert waterfill("run", scenario, "-o", folder).code == 0
    for name in ("flows.parquet", "links.parquet", "scenario.toml", "figure.svg", "figure.png"):
        assert Path("a", name).read_bytes() == Path("b", name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "none.toml"], "none.toml: "),
        (["run", "s.toml", "--on", "mars"], 'command line: on: unknown backend "mars"'),
        (["run", "s.toml", "--protocol", "maxnt"], 'did you mean "maxnet"?'),
        (["run", "s.toml", "--set", "flow.f.cout=2"], 'did you mean "count"?'),
        (["run", "s.toml", "--set", "duration=0 s"], "duration: "),
        (["run", "s.toml", "--set", "params.maxnet.mu=2"], "mu"),
        (["run", "s.toml", "--seed", "-1"], "command line: seed: "),
        (["run", "s.toml", "-o", "s.toml"], "s.toml: a file, not a directory"),
        (["run", "s.toml", "-o", "s.toml/x"], "a file, not a directory"),
        (["run", "s.toml", "-o", "/proc/x"], "/proc/x: cannot write into the directory"),
        (["maxmin", "s.toml", "--set", "link.l.rate=1 mbit/s"], "must be a rate such as"),
        (["maxmin", "."], ".: a directory, not a scenario file"),
        (["reproduce"], "no experiment given; type PAPER"),
        (["reproduce", "maxnet-2077"], "unknown experiment, did you mean"),
        (["reproduce", "--list", "x/y/z"], "reproduce: x/y/z: unknown experiment"),
        (["run", "s.toml", "--protocol", "rcp,xcp"], "waterfill compare … --protocols rcp,xcp"),
        (["run", "s.toml", "--seed", "abc"], '--seed: must be a whole number, got "abc"'),
        (["run", "s.toml", "--sede", "1"], 'run: unknown option "--sede", did you mean "--seed"?'),
        (["run", "s.toml", "x"], 'run: unexpected argument "x"; type waterfill run S.toml'),
        (["run"], "run: no S.toml given; type waterfill run S.toml"),
        (["rn"], 'waterfill: unknown command "rn", did you mean "run"?'),
        (["generate", "wan", "3", "--pairs=0"], '--pairs: must be at least 1, got "0"'),
        (["reproduce", "--list", "--match"], "--match: no value given; type --match and a value"),
        (["theory", "margin"], "theory margin: no P given; type waterfill theory margin P"),
    ],
)
def test_wrong_input_is_one_line_and_exit_2(waterfill, scenario, arguments, message):
    ran = waterfill(*arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1
    assert ran.out == ""


# --- the other commands -------------------------------------------------------------------------


def test_maxmin(waterfill, scenario):
    ran = waterfill("maxmin", scenario, "--json")
    flows = [{"name": "f", "rate_bps": pytest.approx(18e6), "bottleneck": "l"}]
    assert ran.document["intervals"] == [{"from_s": 0, "to_s": 3, "flows": flows}]
    assert "18.00" in waterfill("maxmin", scenario).out


def test_protocols(waterfill):
    ran = waterfill("protocols", "--json")
    known = {protocol["name"]: protocol for protocol in ran.document}
    assert {"name", "kind", "backends", "header_bytes", "params"} <= set(known["maxnet"])
    assert [known[name]["paced"] for name in ("rcp", "bbr", "maxnet", "cubic")] == [
        *(True, True, False, False)
    ]
    assert {name: info["backends"] for name, info in known.items()} == {
        name: list(info.backends) for name, info in package.protocols().items()
    }
    assert known["cubic"]["backends"] == ["sim", "linux"]
    assert any(param["name"] == "alpha" for param in known["maxnet"]["params"])
    table = waterfill("protocols").out
    assert "alpha" in table
    lines = table.splitlines()
    (row,) = (n for n, line in enumerate(lines) if line.split()[:1] == ["rcp"])
    assert lines[row + 1].split()[0] == "paced"
    assert max(map(len, table.splitlines())) <= 80


def test_version(waterfill):
    assert waterfill("--version").out.startswith("waterfill ")


# --- reproduce ----------------------------------------------------------------------------------

CLAIMS = """
title = "A small experiment"
[[figure]]
name = "rates"
plot = "rates"
[[claim]]
id = "target"
source = "§1"
statement = "The flow gets 90 % of the link"
measure = "rate_over"
args = { flow = "f", start_s = 2.0, stop_s = 3.0 }
unit = "Mbit/s"
paper_value = 18.0
tolerance = "5 %"
expect = "reproduced"
[[claim]]
id = "queue"
source = "§2"
statement = "The queue has a size that nobody wrote down"
measure = "queue_max"
args = { link = "l", start_s = 2.0, stop_s = 3.0 }
unit = "kB"
expect = "cannot be checked"
why = "not in the text"
"""


FIXED = """
import waterfill
class Fixed:
    def __init__(self, connection):
        pass
    def on_ack(self, ack):
        pass
    def limit(self):
        return None, 10e6
LAWS = {"fixed": waterfill.PythonLaw(source=Fixed)}
"""


@pytest.fixture
def papers(tmp_path, monkeypatch) -> Path:
    """Two small experiments instead of the repository's."""
    root = tmp_path / "papers"
    for name in ("one", "two"):
        folder = root / "paper" / name
        folder.mkdir(parents=True)
        (folder / "scenario.toml").write_text(SCENARIO)
        (folder / "claims.toml").write_text(CLAIMS)
    monkeypatch.setattr(loading, "papers_folder", lambda: root)
    return root


def test_own_claims_of_an_own_law_replace_the_papers(waterfill, tmp_path):
    mine = tmp_path / "mine" / "law"
    mine.mkdir(parents=True)
    (mine / "scenario.toml").write_text(SCENARIO.replace('"maxnet"', '"fixed"'))
    (mine / "claims.toml").write_text(CLAIMS.replace("paper_value = 18.0", "paper_value = 10.0"))
    (tmp_path / "laws.py").write_text(FIXED)
    ran = waterfill("reproduce", "--claims", "mine", "--law", "laws.py", "--json")
    target, queue = ran.document["claims"]
    assert (target["paper"], target["experiment"], target["id"]) == ("mine", "law", "target")
    assert target["measured"] == pytest.approx(10.0, rel=0.01)
    assert (target["verdict"], queue["verdict"]) == ("reproduced", "cannot be checked")
    assert ran.code == 0


def test_own_claims_have_a_report(waterfill, tmp_path):
    mine = tmp_path / "claims" / "c" / "exp"
    mine.mkdir(parents=True)
    (mine / "scenario.toml").write_text(SCENARIO)
    (mine / "claims.toml").write_text(CLAIMS)
    assert waterfill("reproduce", "--claims", "claims", "-o", "rc").code == 0
    for folder in ("rc", "rc/c/exp"):
        ran = waterfill("report", folder)
        assert (ran.code, ran.err) == (0, "")
        page = Path(folder, "report.html").read_text()
        assert "waterfill reproduce c/exp --claims DIR" in page
        assert page.count("data:image/svg+xml;base64,") == len(list(Path("rc/c/exp").glob("*.svg")))
        assert "scenario.toml" in page
        assert "### c/exp" in Path(folder, "report.md").read_text()


@pytest.mark.parametrize(
    ("option", "message"),
    [([], "no flow uses the law fixed of laws.py"), (["--list"], "--law: no effect with --list")],
)
def test_a_law_that_own_claims_do_not_use_is_refused(waterfill, tmp_path, option, message):
    mine = tmp_path / "mine" / "law"
    mine.mkdir(parents=True)
    (mine / "scenario.toml").write_text(SCENARIO)
    (mine / "claims.toml").write_text(CLAIMS)
    (tmp_path / "laws.py").write_text(FIXED)
    ran = waterfill("reproduce", "--claims", "mine", "--law", "laws.py", *option)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--law", "laws.py", "--all"], "law: no effect without --claims; add --claims DIR"),
        (["--claims", "mine"], "claims: no claims.toml in mine; write one, or name the folder"),
    ],
)
def test_own_claims_that_are_not_there_are_refused(waterfill, tmp_path, arguments, message):
    (tmp_path / "mine").mkdir()
    ran = waterfill("reproduce", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_list_is_one_line_a_claim(waterfill):
    ran = waterfill("reproduce", "--list")
    lines = ran.out.splitlines()
    assert ran.code == 0
    assert len(lines) == sum(len(e.claims) for e in loading.experiments())
    assert all(len(line.split("  ")[0].split("/")) == 3 for line in lines)
    assert any(line.startswith("maxnet-2007/cross-traffic/reclaimed  ") for line in lines)
    only = waterfill("reproduce", "--list", "maxnet-2007/two-hop").out.splitlines()
    assert only == [line for line in lines if line.startswith("maxnet-2007/two-hop/")]


def test_list_json(waterfill):
    listed = waterfill("reproduce", "--list", "--json").document["claims"]
    assert len(listed) == len(waterfill("reproduce", "--list").out.splitlines())
    assert "verdict" not in listed[0]


def test_reproduce_json(waterfill, papers):
    ran = waterfill("reproduce", "paper/one", "--json")
    assert ran.code == 0
    assert ran.document["counts"] == {"reproduced": 1, "differs": 0, "cannot be checked": 1}
    target, queue = ran.document["claims"]
    keys = "id paper experiment source statement paper_value measured unit tolerance verdict"
    assert set(f"{keys} expect why".split()) <= set(target)
    assert (target["paper"], target["experiment"], target["id"]) == ("paper", "one", "target")
    assert target["measured"] == pytest.approx(18.0, rel=0.05)
    assert queue["measured"] is not None
    assert queue["verdict"] == "cannot be checked"


def test_reproduce_prints_values_and_where_the_figure_is(waterfill, papers):
    ran = waterfill("reproduce", "paper/one")
    assert ran.code == 0
    assert "18 ± 0.9 Mbit/s" in ran.out
    assert "[1] queue: not in the text" in ran.out
    assert ran.out.startswith("by sentence: reproduced: 1, differs: 0, cannot be checked: 1\n")
    assert ran.out.index("wrote down [1]") < ran.out.index("90 % of the link")
    assert "figure: out/paper/one/rates.png" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    assert Path("out/paper/one/flows.parquet").is_file()


@pytest.mark.usefixtures("undrawn")
def test_reproduce_writes_where_it_is_told(waterfill, papers):
    assert waterfill("reproduce", "paper/one", "-o", "here").code == 0
    assert Path("here/rates.svg").is_file()
    assert waterfill("reproduce", "paper", "-o", "there").code == 0
    assert Path("there/paper/two/claims.json").is_file()
    assert waterfill("reproduce", "--all", "-o", "all").code == 0
    assert Path("all/paper/one/summary.json").is_file()


@pytest.mark.parametrize("value", ["180.0", "18.0"])
def test_a_verdict_that_changes_is_exit_1_in_either_direction(waterfill, papers, value):
    text = CLAIMS.replace("18.0", value)
    if value == "18.0":
        text = text.replace('expect = "reproduced"', 'expect = "differs"\nwhy = "so it was"')
    (papers / "paper" / "one" / "claims.toml").write_text(text)
    ran = waterfill("reproduce", "paper/one", "--json")
    assert ran.code == 1
    assert len(ran.document["claims"]) == 2
    assert "paper/one/target: " in ran.err


def test_reproduce_with_a_file_in_the_way_runs_nothing(waterfill, papers, monkeypatch):
    Path("out").write_text("")
    monkeypatch.setattr(backends, "run", None)
    ran = waterfill("reproduce", "paper/one")
    assert ran.code == 2
    assert "a file, not a directory" in ran.err


# --- signals, pipes, terminals ------------------------------------------------------------------


def test_interrupt_leaves_what_there_is(tmp_path):
    file, out = long_scenario(tmp_path), tmp_path / "out"
    process = subprocess.Popen(
        [*COMMAND, "run", str(file), "--json", "-o", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not out.is_dir():  # made just before the run
        time.sleep(0.05)
    time.sleep(3.0)  # a sample of 0.1 s must be over, on a busy machine too
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    document = json.loads(stdout)
    assert 0 < document["interrupted_at_s"] < 100_000
    assert json.loads((out / "summary.json").read_text()) == document
    assert pq.read_table(out / "flows.parquet").num_rows > 0
    assert not [name for name in os.listdir(out) if name.endswith(".tmp")]


def test_interrupted_python_run_returns_what_there_is(tmp_path):
    def interrupt(tick: Any) -> None:
        if tick.now_s > 0.5:
            raise KeyboardInterrupt

    result = backends.run(load(long_scenario(tmp_path)), progress=interrupt)
    assert result.summary["interrupted_at_s"] > 0.5


def test_interrupted_reproduce_judges_nothing(waterfill, papers, monkeypatch):
    monkeypatch.setattr(engine, "_advance", lambda simulation, *_: simulation.advance(1.0) or 1.0)
    ran = waterfill("reproduce", "--all")
    assert ran.code == 130
    assert ran.out == ""
    assert "0 of 2 experiments finished" in ran.err
    assert not Path("out/paper/one/claims.json").exists()


@pytest.mark.parametrize("arguments", [["protocols"], ["protocols", "--json"]])
def test_a_full_disk_on_standard_output(arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr == b"standard output: cannot be written: No space left on device\n"


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_reader_that_goes_away_is_no_error(tmp_path, form):
    (tmp_path / "s.toml").write_text(SCENARIO)
    process = subprocess.Popen(
        [*COMMAND, "run", str(tmp_path / "s.toml"), *form],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    stderr = process.stderr.read().decode()
    assert process.wait() == 141
    assert stderr.count("\n") == 1  # the closing line alone
    process.stderr.close()


def test_progress_on_a_terminal(tmp_path):
    (tmp_path / "s.toml").write_text(SCENARIO)
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    done = subprocess.run(
        [*COMMAND, "run", str(tmp_path / "s.toml"), "--json"],
        stdout=subprocess.PIPE,
        stderr=follower,
        env=environment,
        check=True,
    )
    os.close(follower)
    shown = os.read(leader, 1 << 16).decode()
    os.close(leader)
    assert "M packets/s" in shown
    assert "left" in shown
    assert json.loads(done.stdout)["scenario"] == "small"


def test_a_terminal_without_unicode(tmp_path):
    (tmp_path / "s.toml").write_text(SCENARIO.replace("small", "a → b"))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for extra in ([], ["--json"]):
        done = subprocess.run(
            [*COMMAND, "run", str(tmp_path / "s.toml"), *extra],
            capture_output=True,
            env=environment,
            check=True,
        )
    assert json.loads(done.stdout)["scenario"] == "a → b"


def test_bytes_that_are_no_text_are_refused_with_their_key(waterfill, tmp_path):
    (tmp_path / "s.toml").write_text(waterfill("new", "dumbbell").out)
    ran = waterfill("run", str(tmp_path / "s.toml"), "--set", 'name="\udcff"')
    assert ran.code == 2
    assert ran.err == 'command line: name: not UTF-8, got "\\"\\udcff\\""\n'
