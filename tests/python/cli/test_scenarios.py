"""`new`, `check`, `protocols NAME`, help and completion, as a newcomer types them."""

from __future__ import annotations

import html
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from waterfill.cli.commands import app
from waterfill.runs import progress
from waterfill.scenario import templates
from waterfill.scenario.loading import from_toml, load


@pytest.mark.parametrize("name", templates.names())
def test_a_template_is_commented_valid_and_runs(waterfill, name):
    made = waterfill("new", name, "-o", "s.toml")
    assert made.code == 0
    text = Path("s.toml").read_text(encoding="utf-8")
    assert text == templates.text(name)
    assert text.startswith("# ")
    assert text.count("#") >= 8
    assert max(map(len, text.splitlines())) <= 100
    ran = waterfill("run", "s.toml", "--json")
    assert ran.code == 0
    assert all(flow["packets_sent"] > 0 for flow in ran.document["flows"])


def test_new_lists_prints_and_never_overwrites(waterfill):
    listed = waterfill("new").out.splitlines()
    assert [line.split()[0] for line in listed] == list(templates.names())
    assert from_toml(waterfill("new", "wan").out).name == "wan"
    Path("mine.toml").write_text("kept")
    refused = waterfill("new", "wan", "-o", "mine.toml")
    assert refused.code == 2
    assert refused.err == "mine.toml: exists already\n"
    assert Path("mine.toml").read_text() == "kept"
    assert waterfill("new", "wann").err == 'new: wann: unknown template, did you mean "wan"?\n'
    assert (
        "none/s.toml: cannot be written: no such file"
        in waterfill("new", "wan", "-o", "none/s.toml").err
    )
    assert waterfill("new", "-o", "s.toml").code == 2


def test_check_prints_what_is_in_force(waterfill):
    waterfill("new", "wan", "-o", "s.toml")
    checked = waterfill("check", "s.toml", "--set", "params.maxnet.mu=0.8")
    assert checked.code == 0
    assert "sim: can run it" in checked.out
    assert 'fluid: traffic.web.kind: "web" is not supported by the fluid backend' in checked.out
    assert "mu=0.8" in checked.out.replace("\n", " ")
    assert max(map(len, checked.out.splitlines())) <= 80


def test_the_document_of_check_is_what_the_run_uses(waterfill):
    waterfill("new", "dumbbell", "-o", "s.toml")
    document = waterfill("check", "s.toml", "--json", "--seed", "7").document
    run = waterfill("run", "s.toml", "--json", "--seed", "7").document
    assert (document["seed"], document["measure_s"]) == (7, run["measure_s"])
    assert document["params"] == run["params"]
    assert [link["name"] for link in document["links"]] == [link["name"] for link in run["links"]]
    forward = document["links"][0]
    # 100 Mbit/s × 100 ms, the far flows' base RTT; MaxNet's target.
    assert (forward["buffer_bytes"], forward["target"]) == (1_250_000, 0.9)
    near, far = document["flows"]
    assert (near["base_rtt_s"], far["base_rtt_s"], far["stop_s"]) == (0.02, 0.1, 30.0)
    assert near["forward"] == ["bottleneck"]
    assert document["traffic"][0]["path"] == ["bottleneck"]
    assert document["backends"]["sim"] is None


def test_check_writes_every_default(waterfill):
    waterfill("new", "parking-lot", "-o", "s.toml")
    text = waterfill("check", "s.toml", "--toml", "--set", "seed=3").out
    assert 'buffer = "1 bdp"' in text
    Path("full.toml").write_text(text)
    assert (
        load("full.toml").model_dump()
        == load("s.toml", ["seed=3"]).model_copy(update={"measure": [20.0, 30.0]}).model_dump()
    )


def test_check_refuses_as_run_does(waterfill):
    waterfill("new", "dumbbell", "-o", "s.toml")
    for arguments in (["--set", "flow.near.count=0"], ["--protocol", "maxnt"], ["--on", "mars"]):
        checked, ran = (waterfill(command, "s.toml", *arguments) for command in ("check", "run"))
        assert checked.code == ran.code == 2
        assert checked.err == ran.err
        assert checked.out == ""
    on_fluid = waterfill("check", "s.toml", "--on", "fluid", "--protocol", "cubic")
    assert (on_fluid.code, '"cubic" does not run on fluid' in on_fluid.err) == (2, True)
    assert waterfill("check", "s.toml", "--toml", "--json").code == 2


def test_protocols_lists_shortly_and_shows_those_named(waterfill):
    listed = waterfill("protocols").out
    known = len(waterfill("protocols", "--json").document)
    assert listed.count("\n") < 4 * known
    assert "maxnet-2007" not in listed
    shown = waterfill("protocols", "maxnet", "rcp").out
    assert "t_0" in shown
    assert "xcp" not in shown
    document = waterfill("protocols", "--json", "rcp").document
    assert [entry["name"] for entry in document] == ["rcp"]
    # The same on every host, and as in docs/reference/protocols/README.md.
    (sack,) = waterfill("protocols", "--json", "sack").document
    assert sack["backends"] == ["sim", "linux"]
    wrong = waterfill("protocols", "rpc")
    assert (wrong.code, wrong.err) == (2, 'protocols: rpc: unknown protocol, did you mean "rcp"?\n')


@pytest.mark.skipif(sys.platform != "linux", reason="the linux backend is not here")
def test_protocols_names_the_kernel_where_it_can_run_them(waterfill):
    by_name = {entry["name"]: entry for entry in waterfill("protocols", "--json").document}
    assert "linux" in by_name["reno"]["backends"]


def commands() -> list[list[str]]:
    """Return every command that help lists, as words, groups entered."""
    from typer.main import get_command

    found = []

    def walk(command, words):
        for name, inner in getattr(command, "commands", {}).items():
            walk(inner, [*words, name])
        if not getattr(command, "commands", {}) and not command.hidden:
            found.append(words)

    walk(get_command(app), [])
    return found


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_help_has_an_example_of_its_own(waterfill, words):
    text = waterfill(*words, "--help").out
    lines = [line.strip() for line in text.partition("Examples:")[2].splitlines()]
    assert any(line.startswith(f"waterfill {' '.join(words)}") for line in lines)
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_for_each_shell(shell):
    """`--show-completion` prints a script; the script's own request completes names."""
    program = [sys.executable, "-m", "waterfill"]
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    script = subprocess.run(
        [*program, "--show-completion", shell],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "complete" in script
    asked = {
        "bash": {"COMP_WORDS": "waterfill protocols maxn", "COMP_CWORD": "2"},
        "zsh": {"_TYPER_COMPLETE_ARGS": "waterfill protocols maxn"},
        "fish": {
            "_TYPER_COMPLETE_ARGS": "waterfill protocols maxn",
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        },
    }[shell]
    names = subprocess.run(
        program,
        env={**environment, "_WATERFILL_COMPLETE": f"complete_{shell}", **asked},
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    assert "maxnet2006" in names
    assert "xcp" not in names


@pytest.mark.parametrize(
    ("words", "some", "none"),
    [
        (["run", "S.toml", "--on", ""], {"sim", "fluid", "linux"}, {"maxnet"}),
        (["run", "S.toml", "--set", "link.bottle"], {"link.bottleneck.rate="}, {"link.rate="}),
        (["run", "S.toml", "--set", "params.maxnet.m"], {"params.maxnet.mu="}, {"seed="}),
        (["run", "S.toml", "--set", "s"], {"seed=", "sample="}, {"link="}),
        (["run", "absent.toml", "--set", "link."], set(), {"link.bottleneck.rate="}),
        (["compare", "S.toml", "--protocols", "maxnet,c"], {"maxnet,cubic"}, {"maxnet,xcp"}),
        (["theory", "margin", ""], {"aecp"}, {"cubic"}),
        (["import", "h"], {"hpcc", "htsim"}, {"gml"}),
        (["generate", "fat"], {"fat-tree"}, {"torus"}),
    ],
)
def test_completion_knows_names_and_keys(tmp_path, monkeypatch, capsys, words, some, none):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "S.toml").write_text(templates.text("dumbbell"))
    monkeypatch.setenv("_WATERFILL_COMPLETE", "complete_zsh")
    typed = ["waterfill", *words]
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", " ".join(typed))
    with pytest.raises(SystemExit):
        app(prog_name="waterfill")
    found = set(re.findall(r'"([^":]+)"', capsys.readouterr().out))
    assert some <= found
    assert not none & found


def test_listing_claims_by_verdict_and_text(waterfill):
    every = waterfill("reproduce", "--list").out.splitlines()
    differs = waterfill("reproduce", "--list", "--verdict", "differs").out.splitlines()
    some = waterfill("reproduce", "--list", "--match", "QUEUE", "maxnet-2007").out.splitlines()
    assert 0 < len(differs) < len(every)
    assert set(differs) < set(every)
    assert some
    assert all("queue" in line.lower() and line.startswith("maxnet-2007/") for line in some)
    document = waterfill("reproduce", "--list", "--verdict", "differs", "--json").document
    assert {claim["expect"] for claim in document["claims"]} == {"differs"}
    assert len(document["claims"]) == len(differs)
    wrong = waterfill("reproduce", "--list", "--verdict", "diffrs")
    assert (wrong.code, 'did you mean "differs"?' in wrong.err) == (2, True)
    alone = waterfill("reproduce", "maxnet-2007/encoding", "--match", "x")
    assert (alone.code, "only filters --list; add --list" in alone.err) == (2, True)


def test_a_short_version_says_so_everywhere(waterfill):
    ran = waterfill("reproduce", "tcp-maxnet-2006/encoding", "--short")
    assert "short version: shorter runs of fewer cases" in ran.out
    assert ran.out.splitlines()[0].endswith("(short version)")
    folder = Path("out/short/tcp-maxnet-2006/encoding")
    claims = json.loads((folder / "claims.json").read_text(encoding="utf-8"))["claims"]
    # Claims that are computed from formulas read no run, so nothing of theirs is shorter.
    changed = [claim["short"] for claim in claims if claim["short"] is not None]
    assert len(changed) == 5
    assert all(any("duration=" in change for change in short) for short in changed)
    assert sum(claim["short"] is None for claim in claims) == 6
    assert "Short version: duration=" in ran.out.replace("\n", " ")
    assert waterfill("report", "out/short").code == 0
    for page in ("report.html", "report.md"):
        text = Path("out/short", page).read_text(encoding="utf-8")
        assert "verdicts are of a short version: shorter runs of fewer cases" in text
        assert "experiment: tcp-maxnet-2006/encoding." in html.unescape(text)
    assert not Path("out/tcp-maxnet-2006").exists()


def test_a_full_run_is_not_called_short(waterfill):
    ran = waterfill("reproduce", "maxnet-2007/encoding", "--json")
    assert {claim["short"] for claim in ran.document["claims"]} == {None}


def test_a_missing_file_and_a_section_in_single_brackets_are_explained(waterfill):
    missing = waterfill("run", "none.toml")
    assert missing.err == "none.toml: no such file; `waterfill new` lists scenarios to start from\n"
    Path("twice.toml").write_text('duration = "1 s"\n[link]\nname = "a"\n[link]\nname = "b"\n')
    twice = waterfill("run", "twice.toml")
    assert (twice.code, twice.err.count("\n")) == (2, 1)
    assert "each link starts with [[link]], not [link]" in twice.err


def test_a_long_title_leaves_the_time_left_visible():
    """A terminal of 80 columns, on which the title is cut, not the text after it."""
    title = "a name of a scenario that is " + "very " * 20 + "long"
    bars = progress.Bars([title])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "xterm")  # a dumb terminal shows no bars
        out = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
        patch.setattr("sys.stderr.isatty", lambda: True, raising=False)
        patch.setattr("rich.console.Console", lambda **_: out)
        with bars:
            bars.show(title, progress.Tick(50.0, 100.0, 10**6, 1.0))
    lines = [line for line in out.file.getvalue().splitlines() if " left" in line]
    assert lines
    assert "… " in lines[-1]
    assert "50 of 100 s" in lines[-1]
    assert len(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", lines[-1]).strip("\r")) <= 80
