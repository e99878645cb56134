"""End commands with a signal at random moments, and check their leftovers.

Each command writes into a directory that holds an earlier result. A signal reaches it at a moment
between its first instruction and its end. Then

- the exit code is 0, or 128 and the signal's number (kill -9: the signal itself), within seconds;
- standard error has no traceback;
- the directory holds the earlier result or the later one, whole, and is read without an error.
  A run that was ended early writes what there is: that is a later result.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from validation.study import Option, Options, Report, Study
from waterfill.analysis import compare
from waterfill.errors import InputError
from waterfill.report import reproduction
from waterfill.runs.directory import recover
from waterfill.runs.stored import load_run
from waterfill.scenario.loading import load
from waterfill.sweeps.dataset import read

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
# Beyond this a command does not count as ended by its signal.
MAX_END_S = 5.0
SCENARIO = """\
duration = "{duration}"
protocol = "maxnet"
seed = {seed}
[[link]]
name = "l"
from = "a"
to = "b"
rate = "100 Mbit/s"
delay = "10 ms"
[[flow]]
name = "f"
path = ["l"]
size = "2 MB"
[[flow]]
name = "g"
path = ["l"]
"""
# The signal's default action is replaced as soon as the command's first line runs. `more` is code
# to begin with, `pipe` where it says that it has begun.
_START = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv[0] = "waterfill"
from waterfill.cli import main, process
process.begin()
os.write({pipe}, b".")
os.close({pipe})
{more}
main()
"""
NO_FIGURES = """
from waterfill.analysis import draw, plots
draw.save = lambda *_: []
plots.overview = plots.comparison = lambda *_: None
"""
"""Python code that disables figures before a command runs. Without figures, a command takes half
the time.
"""


@dataclass(frozen=True)
class Command:
    """A command line, with a name and the path of its output."""

    name: str
    words: tuple[str, ...]
    output: str


COMMANDS = {
    command.name: command
    for command in (
        Command("run", ("run", "s.toml", "--pcap", "--pcap-limit", "1 MB", "-o", "out"), "out"),
        Command("compare", ("compare", "s.toml", "--protocols", "maxnet,xcp", "-o", "out"), "out"),
        Command(
            "sweep",
            ("sweep", "s.toml", "--grid", "link.l.delay=5..20ms:8", "--workers", "2", "-o", "out"),
            "out",
        ),
        Command(
            "reproduce",
            ("reproduce", "maxnet-2007/two-hop", "--short", "--fresh", "-o", "out"),
            "out",
        ),
        Command("report", ("report", "done"), "done"),
        Command("new", ("new", "dumbbell", "-o", "new.toml"), "new.toml"),
    )
}


@dataclass(frozen=True)
class End:
    """Outcome of a command: its exit code, the time from signal to exit, leftovers and errors."""

    code: int
    took_s: float
    found: str
    wrong: str


def prepare(command: Command, folder: Path, more: str = "") -> float:
    """Run a command once in `folder` without a signal and return its duration in seconds."""
    (folder / "s.toml").write_text(SCENARIO.format(duration="6 s", seed=1))
    if command.name == "report":
        load(folder / "s.toml")
        words = [sys.executable, "-m", "waterfill", "run", "s.toml", "-o", "done"]
        subprocess.run(words, cwd=folder, check=True, capture_output=True)
    null = os.open(os.devnull, os.O_WRONLY)
    began = time.monotonic()
    subprocess.run(
        _command(command, null, more), cwd=folder, check=True, capture_output=True, pass_fds=[null]
    )
    os.close(null)
    took_s = time.monotonic() - began
    # The next runs differ, so that a mix of two would be seen.
    (folder / "s.toml").write_text(SCENARIO.format(duration="6 s", seed=2))
    return took_s


def _command(command: Command, pipe: int, more: str) -> list[str]:
    return [sys.executable, "-c", _START.format(pipe=pipe, more=more), *command.words]


def end_at(
    command: Command, folder: Path, number: signal.Signals, after_s: float, more: str = ""
) -> End:
    """Run a command in `folder`, end it with a signal after a delay, and check its leftovers."""
    if command.name in ("sweep", "new"):  # these do not begin anew over what is there
        target = folder / command.output
        if target.is_dir():
            shutil.rmtree(target)
        target.unlink(missing_ok=True)
    reading, writing = os.pipe()
    with subprocess.Popen(
        _command(command, writing, more), cwd=folder, pass_fds=[writing],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        os.close(writing)
        os.read(reading, 1)
        os.close(reading)
        time.sleep(after_s)
        sent = time.monotonic()
        process.send_signal(number)
        try:
            _, said = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            _, said = process.communicate()
    took_s = time.monotonic() - sent
    code = process.returncode
    wrong = _judge(code, number, took_s, said)
    try:
        found = _found(command, folder)
    except (InputError, OSError, ValueError, KeyError) as error:
        found, wrong = "damaged", wrong or f"{command.output}: {error}"
    return End(code, took_s, found, wrong)


def _judge(code: int, number: signal.Signals, took_s: float, said: str) -> str:
    expected = -number if number == signal.SIGKILL else 128 + number
    if "Traceback" in said or "Error" in said:
        return f"standard error: {said.strip().splitlines()[-1]}"
    if code not in (0, expected):
        return f"exit code {code}, expected 0 or {expected}: {said.strip()}"
    if took_s > MAX_END_S:
        return f"ended after {took_s:.1f} s"
    return ""


def _found(command: Command, folder: Path) -> str:
    """Return a description of a command's leftovers, such as `nothing`, `earlier` or `later`."""
    output = folder / command.output
    recover(output)
    if not output.exists():
        return "nothing"
    if command.name == "new":
        load(output)
        return "later"
    _no_leftover_counts(output)
    if command.name in ("run", "report"):
        run = load_run(output)
        for table in ("flows", "links", "traffic", "transfers"):
            getattr(run, table)
        if command.name == "report" and (output / "report.html").exists():
            whole = (output / "report.html").read_text().rstrip().endswith("</html>")
            return "later" if whole else _half(output / "report.html")
        return _age([run.summary["seed"]])
    if command.name == "compare":
        found = compare.load_comparison(output)
        return _age(result.summary["seed"] for result in found.results.values())
    if command.name == "sweep":
        rows = read(output)
        if not rows.num_rows:
            return "nothing"
        keys = rows["key"].to_pylist()
        return "later" if len(set(keys)) == len(keys) else _half(output)
    reproduction.read(output / "claims.json")
    load_run(output)
    return "whole"


def _half(path: Path) -> str:
    raise ValueError(f"{path}: half-written")


def _age(seeds: Iterable[int]) -> str:
    (seed,) = set(seeds)
    return "earlier" if seed == 1 else "later"


def _no_leftover_counts(folder: Path) -> None:
    """Raise ValueError if a JSON file in the folder is incomplete."""
    for path in folder.rglob("*"):
        if path.suffix == ".json" and ".waterfill-" not in str(path):
            json.loads(path.read_text())


def kills(
    command: Command, count: int, seed: int, more: str = ""
) -> Iterator[tuple[signal.Signals, float, End]]:
    """End a command `count` times at random moments, and yield each signal, delay and outcome."""
    draw = random.Random(f"{command.name} {seed}")
    with TemporaryDirectory(prefix="waterfill-kills-") as name:
        folder = Path(name)
        whole_s = prepare(command, folder, more)
        for turn in range(count):
            number = SIGNALS[turn % len(SIGNALS)]
            after_s = draw.uniform(0.0, 1.05 * whole_s)
            yield number, after_s, end_at(command, folder, number, after_s, more)


def work(options: Options) -> Report:
    """End every chosen command many times."""
    failed, lines = [], []
    for command in (COMMANDS[name] for name in options.commands):
        counts: Counter[str] = Counter()
        longest_s = 0.0
        for number, after_s, end in kills(command, options.count, options.seed):
            counts[f"{end.code}"] += 1
            counts[end.found] += 1
            longest_s = max(longest_s, end.took_s)
            if end.wrong:
                failed.append(f"{command.name}: {number.name} after {after_s:.3f} s: {end.wrong}")
        tally = ", ".join(f"{what} {n}" for what, n in sorted(counts.items()))
        lines.append(f"{command.name}: {options.count} signals: {tally}; longest {longest_s:.2f} s")
        print(lines[-1], file=sys.stderr, flush=True)
    return Report("\n".join(lines), failed=failed)


STUDY: Study[None, None] = Study(
    shows="a command ended by a signal leaves the earlier result or the later one, whole",
    minutes=10,
    options=(
        Option("commands", tuple(COMMANDS), "default: all", tuple(COMMANDS)),
        Option("--count", 100, "signals per command", low=1),
        Option("--seed", 1, "of the moments"),
    ),
    quick={"count": 6},
    work=work,
)
