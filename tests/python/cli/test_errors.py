"""Wrong command lines as users typed them: the problem comes first, then the text to type."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from waterfill.runs import backends
from waterfill.sweeps.dataset import Dataset
from waterfill.sweeps.plan import SweepSpec, plan
from waterfill.testbed import daemon

SCENARIO = """
duration = "100 ms"
protocol = "maxnet"
[[link]]
name = "bottleneck"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "1 ms"
[[flow]]
name = "f"
path = ["bottleneck"]
"""
TWO_ERRORS = SCENARIO.replace('protocol = "maxnet"', "").replace('path = ["b', 'path = ["d')
EXPLICIT = "maxnet, aecp, xcp, rcp, alpha_rcp, vcp, abc, jetmax, mkc"

# {command: its whole message}. The directory has d.toml, its results out/a and out/b, the sweep
# d.sweep over the delay, and an empty directory.
MESSAGES = {
    "theory stability cubic": "command line: cubic: no router computes its rate, and this "
    f"command covers only loops of routers; choose one of {EXPLICIT}",
    "run d.toml --protocol maxnet,xcp": 'command line: protocol: must be one protocol, got "maxnet,'
    'xcp"; for several: waterfill compare … --protocols maxnet,xcp',
    "run d.toml --on sim,fluid": 'command line: on: must be one backend, got "sim,fluid"; for '
    "several: waterfill compare … --on sim,fluid",
    "run d.toml --on ns3": 'command line: on: unknown backend "ns3"; known: fluid, linux, sim',
    "run d.toml --set params.mu=0.9": "command line: params.mu: parameters belong to a protocol, "
    "got 0.9; write params.maxnet.mu",
    "run d.toml --set duration": 'command line: set: must be KEY=VALUE, got "duration"; type --set '
    "duration='10 s'",
    "run d.toml --set params.maxnet.mu=1.5": "command line: params.maxnet.mu: must be a number in "
    "(0, 1], got 1.5",
    "run d.toml --set link.bottleneck.rate='1 Gbit'": "command line: link.bottleneck.rate: must be "
    'a rate such as "622 Mbit/s", got "1 Gbit", did you mean "1 Gbit/s"?',
    "run d.tml": 'd.tml: no such file, did you mean "d.toml"?',
    "run out/a": "out/a: the result of a run, not a scenario file; type plot, report, or run "
    "out/a/scenario.toml",
    "maxmin empty": "empty: a directory, not a scenario file; type the path of a scenario file in "
    "it",
    "run two-errors.toml": "two-errors.toml: protocol: missing, and flow.f names none; write "
    'protocol = "maxnet" at the top or in the flow; and flow.f.path names no link, got '
    '"dottleneck"',
    "plot nope": "nope: no such directory",
    "plot d.toml": "d.toml: a file, not a directory",
    "plot empty": "empty: not the directory of a run: it has no summary.json",
    "report nope": "nope: no such directory",
    "report empty": "empty: no results here; name a directory that run -o, compare -o, "
    "sweep -o, evaluate -o or reproduce wrote",
    "report out empty": "empty: no results here; name a directory that run -o, compare -o, "
    "sweep -o, evaluate -o or reproduce wrote",
    "reproduce foo": "reproduce: foo: unknown experiment; waterfill reproduce --list shows all",
    "sweep d.toml --grid rate=1": "command line: rate: unknown key, did you mean "
    '"link.bottleneck.rate"?',
    "sweep d.toml --grid flow.f.count=1,2": "d.sweep: holds a sweep of other axes or columns "
    "(link.bottleneck.delay); type -o DIR to keep both, or delete it",
    "run d.toml --seed abc": '--seed: must be a whole number, got "abc"',
    "studio --port 80000": '--port: must be at most 65535, got "80000"',
    "run d.toml --pcap -o new/out --on fluid": "command line: pcap: fluid cannot record packets; "
    "use --on sim",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A directory with a scenario, two results, a sweep and an empty directory."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "d.toml").write_text(SCENARIO)
    (folder / "two-errors.toml").write_text(TWO_ERRORS)
    (folder / "empty").mkdir()
    for name in ("a", "b"):
        backends.run(folder / "d.toml", on="fluid").write(folder / "out" / name)
    spec = SweepSpec(grid=["link.bottleneck.delay=1 ms,2 ms"], workers=1)
    one = plan(folder / "d.toml", spec)
    identity, text = one.design.identity, one.base.text
    with Dataset(folder / "d.sweep", one.columns(), identity, one.about(), text):
        pass
    return folder


@pytest.mark.parametrize("line", MESSAGES)
def test_the_message_is_one_sentence_and_nothing_is_left(waterfill, monkeypatch, made, line):
    monkeypatch.chdir(made)
    before = sorted(made.rglob("*"))
    ran = waterfill(*shlex.split(line))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == MESSAGES[line] + "\n"
    assert sorted(made.rglob("*")) == before


@pytest.mark.parametrize(
    ("binary", "message"),
    [
        (None, '"maxnet" needs the daemon waterfilld, which was not built; in a checkout, '
         "tools/daemon.sh names what is missing; then type make build"),
        ("/bin/true", 'the daemon waterfilld here does not have "maxnet"; type make build'),
    ],
)  # fmt: skip
def test_linux_without_the_daemon(waterfill, monkeypatch, made, binary, message):
    monkeypatch.chdir(made)
    monkeypatch.setattr(daemon, "binary", lambda: binary)
    monkeypatch.setattr(daemon, "laws", dict)
    ran = waterfill("run", "d.toml", "--on", "linux")
    assert (ran.code, ran.err) == (2, f"d.toml: protocol: {message}\n")


def test_report_takes_several_results_and_finds_those_one_level_down(waterfill, made, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(made / "out", out)
    ran = waterfill("report", "out/a", "out/b")
    assert ran.out == "written to out/a/report.html\nwritten to out/b/report.html\n"
    for name in ("a", "b"):
        (out / name / "report.html").unlink()
    assert waterfill("report", "out").out == ran.out
    assert (out / "b" / "report.html").is_file()
