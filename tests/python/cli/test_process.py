"""Answers and files under closed streams, full disks, two processes at once, and signals."""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from known import ROOT
from validation import kills
from waterfill.analysis import compare, draw, plots
from waterfill.runs import backends
from waterfill.runs.steps import KEY
from waterfill.runs.stored import load_run
from waterfill.sweeps.dataset import read

SCENARIO = """\
duration = "200 ms"
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
TABLE = "Jain's index of rate ÷ max-min share:"
# Without figures, which take longer than all else. Without bytecode (-B): Python takes a short
# write of it, under a limit, for a whole one, and every later import of that module would fail.
WATERFILL = [
    sys.executable,
    "-B",
    "-c",
    "from waterfill.cli import main, process; process.begin()\n"
    "from waterfill.analysis import draw, plots\n"
    "plots.overview, draw.save = lambda *_: None, lambda *_: []\n"
    "main()",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.toml").write_text(SCENARIO)
    return tmp_path


def limited(size: int = 1000):
    """Limit the size of files, which looks like a full disk to a library."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def ran(folder: Path, *words: str, **more):
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.run([*WATERFILL, *words], cwd=folder, text=True, check=False, **given)


def shell(folder: Path, text: str, *words: str):
    """Run the command in a shell's line: `"$@"` is the command, its streams as `text` has them."""
    return subprocess.run(
        ["sh", "-c", text, "sh", *WATERFILL, *words],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


# --- streams -----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ['"$@" 2>/dev/full', '"$@" 2>&- <&-'])
def test_without_standard_error_nothing_is_lost(folder, text):
    done = shell(folder, text, "run", "s.toml", "-o", "out")
    assert done.returncode == 0
    assert TABLE in done.stdout
    assert load_run(folder / "out").flows.num_rows


@pytest.mark.parametrize(
    ("text", "reason"),
    [('"$@" >&-', "it is closed"), ('"$@" >/dev/full', "No space left on device")],
)
def test_without_standard_output_the_files_are_there(folder, text, reason):
    done = shell(folder, text, "run", "s.toml", "-o", "out")
    assert done.returncode == 1
    assert done.stdout == ""
    said = done.stderr.splitlines()[1:]  # the first is the progress
    assert said == [f"standard output: cannot be written: {reason}"]
    assert load_run(folder / "out").flows.num_rows


def test_when_the_reader_has_gone_the_files_are_there(folder):
    script = '{ "$@"; echo "code $?" >&2; } | true'
    done = shell(folder, script, "run", "s.toml", "-o", "out")
    _progress, *said = done.stderr.splitlines()
    assert said == ["code 141"]
    assert load_run(folder / "out").flows.num_rows


# --- failed writes -----------------------------------------------------------------------------


@pytest.mark.parametrize(("command", "file"), [("report", "report.html"), ("plot", "figure.png")])
def test_a_page_or_a_figure_that_cannot_be_written_leaves_the_old_one(folder, command, file):
    assert ran(folder, "run", "s.toml", "-o", "out").returncode == 0
    (folder / "out" / file).write_text("old")
    # Not WATERFILL, which draws nothing.
    code = "from waterfill.cli import main, process; process.begin(); main()"
    failed = subprocess.run(
        [sys.executable, "-B", "-c", code, command, "out"],
        cwd=folder, capture_output=True, text=True, check=False, preexec_fn=limited(),
    )  # fmt: skip
    assert failed.returncode == 2
    (said,) = failed.stderr.splitlines()
    assert said.startswith(f"out/{file}: cannot be written: file too large")
    assert (folder / "out" / file).read_text() == "old"
    assert not [path for path in (folder / "out").iterdir() if path.name.startswith(".")]


def test_a_failed_write_loses_neither_the_table_nor_the_old_result(folder):
    assert ran(folder, "run", "s.toml", "-o", "out").returncode == 0
    before = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    failing = ran(
        folder, "run", "s.toml", "--seed", "9", "-o", "out", "--pcap", preexec_fn=limited()
    )
    assert failing.returncode == 1
    assert TABLE in failing.stdout
    assert "written to" not in failing.stdout
    _progress, *said = failing.stderr.splitlines()
    assert len(said) == 2
    assert all("file too large" in line.lower() for line in said)
    assert {path.name: path.read_bytes() for path in (folder / "out").iterdir()} == before


def test_compare_goes_on_with_the_other_protocols(waterfill, tmp_path, monkeypatch):
    from waterfill.runs.files import WriteError
    from waterfill.runs.result import Result

    write = Result.write_into

    def fails_for_maxnet(self, folder):
        if folder.name == "maxnet":
            raise WriteError("out/maxnet/summary.json", "", "cannot be written: no space")
        return write(self, folder)

    (tmp_path / "s.toml").write_text(SCENARIO)
    monkeypatch.setattr(Result, "write_into", fails_for_maxnet)
    monkeypatch.setattr(draw, "save", lambda *_: [])
    done = waterfill("compare", "s.toml", "--protocols", "maxnet,xcp", "-o", "out")
    assert done.code == 1
    assert "xcp" in done.out
    assert done.err.splitlines()[-1] == "out/maxnet/summary.json: cannot be written: no space"
    assert load_run(tmp_path / "out" / "xcp").flows.num_rows
    document = json.loads((tmp_path / "out" / "compare.json").read_text())
    assert set(document["runs"]) == {"maxnet", "xcp"}
    assert not (tmp_path / "out" / "maxnet").exists()


def test_compare_prints_its_table_on_a_full_disk(folder):
    words = ("compare", "s.toml", "--protocols", "maxnet,xcp", "-o", "out", "--seeds", "2")
    done = ran(folder, *words, preexec_fn=limited())
    assert done.returncode == 1
    assert "xcp" in done.stdout
    assert "file too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert list((folder / "out").rglob("*")) == []


def test_theory_prints_its_table_on_a_full_disk(folder):
    words = ("theory", "encoding", "maxnet", "-o", "out")
    done = ran(folder, *words, preexec_fn=limited(100))
    assert done.returncode == 1
    assert done.stdout
    assert done.stderr == "out/theory.json: cannot be written: file too large\n"


def test_a_sweep_that_cannot_record_its_rows_prints_those_it_has(waterfill, tmp_path, monkeypatch):
    from waterfill.runs.files import WriteError
    from waterfill.sweeps.dataset import Dataset

    (tmp_path / "s.toml").write_text(SCENARIO)
    append, count = Dataset._append, iter(range(100))

    def fails_at_third(self, text):
        if next(count) == 2:
            raise WriteError("out/journal.jsonl", "", "cannot be written: no space left on device")
        append(self, text)

    monkeypatch.setattr(Dataset, "_append", fails_at_third)
    words = ("sweep", "s.toml", "--grid", "link.l.delay=5..9ms:5", "--workers", "1", "-o", "out")
    done = waterfill(*words)
    assert done.code == 1
    assert "2 of 5 points" in done.out
    assert "0.006" in done.out
    assert done.err.endswith("out/journal.jsonl: cannot be written: no space left on device\n")
    assert read(tmp_path / "out").num_rows == 2
    monkeypatch.setattr(Dataset, "_append", append)
    assert waterfill(*words).code == 0  # goes on
    assert read(tmp_path / "out").num_rows == 5


def no_space(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_figure_that_cannot_be_written_takes_nothing_else_with_it(
    waterfill, tmp_path, monkeypatch
):
    from matplotlib.figure import Figure

    (tmp_path / "s.toml").write_text(SCENARIO)
    monkeypatch.setattr(Figure, "savefig", no_space)
    done = waterfill("run", "s.toml", "-o", "out")
    assert done.code == 1
    assert TABLE in done.out
    _progress, said = done.err.splitlines()
    assert said.startswith("out/figure.")
    assert said.endswith(": cannot be written: no space left on device")
    assert sorted(os.listdir("out")) == [
        "flows.parquet", "links.parquet", "scenario.toml", "summary.json",
    ]  # fmt: skip


@pytest.mark.usefixtures("no_figures")
def test_a_log_of_steps_that_cannot_be_written_takes_nothing_else_with_it(
    waterfill, tmp_path, monkeypatch
):
    import pyarrow.parquet as pq

    write = pq.write_table

    def fails_for_steps(table, *words, **more):
        (no_space if KEY in (table.schema.metadata or {}) else write)(table, *words, **more)

    (tmp_path / "s.toml").write_text(SCENARIO)
    monkeypatch.setattr(pq, "write_table", fails_for_steps)
    done = waterfill("run", "s.toml", "-o", "out", "--log-steps", "50")
    assert done.code == 1
    assert TABLE in done.out
    _progress, said = done.err.splitlines()
    assert said == "out/steps.parquet: cannot be written: no space left on device"
    assert sorted(os.listdir("out")) == [
        "flows.parquet", "links.parquet", "scenario.toml", "summary.json",
    ]  # fmt: skip


def test_reproduce_goes_on_with_the_other_experiments(waterfill, tmp_path):
    kept, lost = "maxnet-2007/encoding", "tcp-maxnet-2006/encoding"
    (tmp_path / "out" / lost / "claims.json" / "x").mkdir(parents=True)
    done = waterfill("reproduce", kept, lost, "--short", "-o", "out")
    assert done.code == 1
    for name in (kept, lost):
        assert f"{name}: " in done.out
    said = f"out/{lost}/claims.json: is in the way of the new result; remove it"
    assert done.err.splitlines()[-1] == said
    assert json.loads((tmp_path / "out" / kept / "claims.json").read_text())
    assert not [path for path in (tmp_path / "out").rglob("*") if path.name.startswith(".")]


def in_namespace(folder: Path, script: str):
    """Run a script in a mount namespace of its own; skip where that is not allowed."""
    command = ["unshare", "--mount", "sh", "-ec", script, "sh", *WATERFILL]
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root, to mount")
    if subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
        pytest.skip("namespaces are not allowed here")
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_full_disk_and_a_read_only_directory(folder):
    (folder / "full").mkdir()
    (folder / "fixed").mkdir()
    done = in_namespace(folder, """
        mount -t tmpfs -o size=12k none full
        mount -t tmpfs -o ro none fixed
        "$@" run s.toml -o full/out || echo "code $?"
        find full -type f | wc -l
        "$@" run s.toml -o fixed || echo "code $?"
        "$@" new dumbbell -o fixed/s.toml || echo "code $?"
    """)  # fmt: skip
    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if line.startswith(("code", "0", TABLE))] == [
        f"{TABLE} 1.0000", "code 1", "0", "code 2", "code 2",
    ]  # fmt: skip
    said = done.stderr.splitlines()
    assert said[1].startswith("full/out/")
    assert said[1].endswith(".parquet: cannot be written: no space left on device")
    assert said[2:] == [
        "fixed: cannot write into the directory: read-only file system",
        "fixed/s.toml: cannot be written: read-only file system",
    ]


# --- two at once -------------------------------------------------------------------------------


def test_two_runs_into_one_directory(folder):
    words = ["run", "s.toml", "--set", "duration=100000 s", "-o", "out"]
    first = subprocess.Popen(
        [*WATERFILL, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not (folder / "out").is_dir():
        time.sleep(0.02)
    time.sleep(0.3)
    second = ran(folder, "run", "s.toml", "-o", "out")
    assert second.returncode == 2
    assert second.stderr == (
        "out: another command is writing here: wait, or choose another directory\n"
    )
    third = ran(folder, "compare", "s.toml", "--protocols", "maxnet", "-o", "out")
    assert (third.returncode, third.stderr) == (2, second.stderr)
    first.send_signal(signal.SIGTERM)
    first.communicate()
    assert first.returncode == 143
    assert load_run(folder / "out").summary["duration_s"] == 100_000


def test_of_two_reproductions_at_once_one_is_there_whole(folder):
    words = ["reproduce", "maxnet-2007/encoding", "--short", "-o", "out"]
    both = [
        subprocess.Popen(
            [*WATERFILL, *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(2)
    ]
    refused = 0
    for process in both:
        out, err = process.communicate(timeout=120)
        if process.returncode == 1:  # on a busy host the other one writes its figures for seconds
            assert err.endswith(
                b"\nout: another command is writing here: wait, or choose another directory\n"
            )
            refused += 1
            continue
        assert process.returncode == 0, err
        assert b"maxnet-2007/encoding: " in out
    assert refused < 2
    assert json.loads((folder / "out" / "claims.json").read_text())
    assert load_run(folder / "out").flows.num_rows
    assert not [path for path in (folder / "out").rglob("*") if path.name.startswith(".")]


@pytest.fixture
def no_figures(monkeypatch):
    """Figures take longer than all else."""
    for name in ("overview", "comparison"):
        monkeypatch.setattr(plots, name, lambda *_: None)
    monkeypatch.setattr(draw, "save", lambda *_: [])


@pytest.mark.usefixtures("no_figures")
def test_a_comparison_of_mixed_runs_is_refused(waterfill, tmp_path):
    (tmp_path / "s.toml").write_text(SCENARIO)
    assert waterfill("compare", "s.toml", "--protocols", "maxnet,xcp", "-o", "out").code == 0
    compare.load_comparison("out")
    assert waterfill("run", "s.toml", "--seed", "8", "-o", "out/maxnet").code == 0
    done = waterfill("plot", "out")
    assert done.code == 2
    assert done.err == "out/maxnet: not the run of compare.json; " \
        "compare again\n"  # fmt: skip


@pytest.mark.usefixtures("no_figures")
def test_what_was_made_from_an_older_run_goes_with_it(waterfill, tmp_path):
    (tmp_path / "s.toml").write_text(SCENARIO)
    assert waterfill("run", "s.toml", "-o", "out", "--pcap").code == 0
    assert waterfill("report", "out").code == 0
    (tmp_path / "out" / "notes.txt").write_text("mine")
    (tmp_path / "out" / "figure.png").write_text("of the first run")
    assert waterfill("run", "s.toml", "--seed", "2", "-o", "out").code == 0
    assert sorted(os.listdir("out")) == [
        "flows.parquet", "links.parquet", "notes.txt", "scenario.toml", "summary.json",
    ]  # fmt: skip


# --- the clock ---------------------------------------------------------------------------------


def test_the_clock_on_the_wall_changes_nothing(folder, monkeypatch):
    """A wall clock that jumps by years, both ways, at each look."""
    backends.run(folder / "s.toml").write(folder / "calm")
    jumps = random.Random(1)
    monkeypatch.setattr(time, "time", lambda: jumps.uniform(-1e9, 4e9))
    monkeypatch.setattr(time, "time_ns", lambda: jumps.randrange(-(10**18), 4 * 10**18))
    backends.run(folder / "s.toml").write(folder / "jumping")
    for name in ("flows.parquet", "links.parquet", "scenario.toml"):
        assert (folder / "calm" / name).read_bytes() == (folder / "jumping" / name).read_bytes()
    engines = [
        ROOT / "crates" / f"waterfill-{name}" for name in ("laws", "network", "sim", "fluid")
    ]
    readers = [
        path.name
        for folder in engines
        for path in folder.rglob("*.rs")
        if "SystemTime" in path.read_text()
    ]
    assert readers == []


# --- signals -----------------------------------------------------------------------------------


def test_a_signal_at_a_random_moment():
    """A few of the cases of `make validate STUDY=kills`."""
    command, count = kills.COMMANDS["run"], len(kills.SIGNALS)
    ends = [end for *_, end in kills.kills(command, count, seed=3, more=kills.NO_FIGURES)]
    assert [end.wrong for end in ends] == [""] * count


def test_a_signal_in_the_first_moment(folder):
    """A signal while the command's modules are imported."""
    for number in (signal.SIGINT, signal.SIGTERM):
        end = kills.end_at(kills.COMMANDS["run"], folder, number, 0.01)
        assert end.wrong == ""
        assert end.code == 128 + number


LONG = ("run", "s.toml", "--set", "duration=100000 s", "-o", "out")
# The run says when it writes, and takes its time.
SLOW_WRITE = """
import time
from waterfill.runs.result import Result
# Many short sleeps: a signal just before the system call of a long one would wait for its end.
Result.write_into = lambda *_: (print("writing", flush=True), *map(time.sleep, 6000 * [0.01]))
"""


def started(folder: Path, more: str = "") -> subprocess.Popen[str]:
    """Start a long run, and wait until it has begun."""
    *python, code = WATERFILL
    command = [*python, code.replace("main()", f"{more}\nmain()"), *LONG]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=folder, text=True, **pipes)
    while not (folder / "out").is_dir():
        time.sleep(0.02)
    # On a busy host the same time would end before the run has begun.
    begun_s = cpu_s(process)
    while cpu_s(process) < begun_s + 0.3 and process.poll() is None:
        time.sleep(0.02)
    return process


def cpu_s(process: subprocess.Popen[str]) -> float:
    """Return the CPU time of a running process, or the time of the clock without /proc."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_sighup_ends_a_run_with_what_there_is(folder):
    process = started(folder)
    process.send_signal(signal.SIGHUP)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGHUP
    assert TABLE in out
    assert "Traceback" not in err
    assert "interrupted_at_s" in load_run(folder / "out").summary


def test_sighup_that_was_ignored_at_the_start_stays_so(folder):
    # As `nohup` starts a command.
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = started(folder)
    finally:
        signal.signal(signal.SIGHUP, before)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM


def test_a_second_signal_ends_at_once_and_leaves_nothing_half_written(folder):
    process = started(folder, SLOW_WRITE)
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "writing\n"
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - began < 20
    assert process.returncode == 128 + signal.SIGTERM  # the first one's
    assert (out, os.listdir(folder / "out")) == ("", [])
    assert "Traceback" not in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_after_the_last_line_ends_at_once(folder, number):
    *python, code = WATERFILL
    # All is done, and the interpreter takes its time to end.
    wait = "import time; done = process.finish; process.finish = lambda: (done(), hold())"
    hold = "hold = lambda: (print('end', flush=True), *map(time.sleep, 6000 * [0.01]))"
    process = subprocess.Popen(
        [*python, code.replace("main()", f"{wait}\n{hold}\nmain()"), "run", "s.toml", "--json"],
        cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    answer = ""
    while not answer.endswith("\nend\n"):
        answer += process.stdout.readline()
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert json.loads(answer.removesuffix("end\n"))["flows"]
    assert "Traceback" not in err


def test_a_child_of_a_sweep_that_a_signal_ends_is_run_again():
    from waterfill.sweeps.worker import LOST, Child, Limits

    child = Child(0)
    child._answer(time.monotonic(), Limits(), lambda: True)  # it has started
    os.kill(child.pid, signal.SIGINT)
    assert child._ended(0.1, Limits())["status"] == LOST
