"""Run every test suite that this host supports, and print the totals last.

Before the totals it prints what was skipped and why, then the names of the tests that failed, which
the last lines of a log therefore hold. Run by `make test` with .venv's interpreter. Exits 1 when a
test failed or when none ran.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Outcome:
    """Test counts of one suite: passed, failed and skipped."""

    passed: int = 0
    failed: int = 0
    names: list[str] = field(default_factory=list)  # of the failed tests
    skipped: Counter[str] = field(default_factory=Counter)  # "test: why" → number of tests

    def add(self, other: Outcome) -> Outcome:
        """Add the counts of another suite to this outcome, which is returned."""
        self.passed += other.passed
        self.failed += other.failed
        self.names += other.names
        self.skipped.update(other.skipped)
        return self


# Lines of a test binary. They are parsed because libtest's JSON needs a nightly compiler.
# cargo-nextest, which writes JUnit files, runs no documentation examples.
_ANNOUNCED = re.compile(r"running (\d+) tests?$")
_FAILED = re.compile(r"test (.+?) \.\.\. FAILED")
_IGNORED = re.compile(r"test (.+?) \.\.\. ignored(?:, (.+))?$")
_TOTALS = re.compile(r"test result: \S+ (\d+) passed; (\d+) failed; (\d+) ignored; (\d+) measured;")


def count_binary(text: str, code: int = 0) -> Outcome:
    """Count the tests in the output of one test binary, given its exit code.

    A test may print such lines too, for example when it starts its binary again. Therefore only the
    first announcement and the last totals count, which enclose the output of the tests.
    Counted as one failure: no totals, totals that differ from the number of tests announced, fewer
    named skips than the totals say, and a non-zero exit code without a failed test.
    """
    lines = text.splitlines()
    announced = next((int(found[1]) for line in lines if (found := _ANNOUNCED.match(line))), None)
    totals = [found for line in lines if (found := _TOTALS.match(line))]
    ignored = [found for line in lines if (found := _IGNORED.match(line))]
    if not totals:
        return Outcome(failed=1)
    passed, failed, skipped, measured = map(int, totals[-1].groups())
    failed += passed + failed + skipped + measured != announced or len(ignored) < skipped
    failures = [found[1] for line in lines if (found := _FAILED.match(line))] if failed else []
    skips = Counter(f"{found[1]}: {found[2] or 'marked ignore'}" for found in ignored[:skipped])
    return Outcome(passed, failed or int(code != 0), failures, skips)


def count_examples(text: str, code: int = 0) -> Outcome:
    """Count the documentation examples in the output of `cargo test --doc`, given its exit code.

    A crate announces its examples in one group or two.
    """
    outcome = Outcome()
    for group in re.split(r"(?m)^(?=running \d+ tests?$)", text)[1:]:
        outcome.add(count_binary(group))
    outcome.failed = outcome.failed or int(code != 0)
    return outcome


@dataclass(frozen=True)
class Program:
    """A command that runs tests, and the function that counts them in its output."""

    name: str
    command: list[str]
    folder: Path = ROOT
    count: Callable[[str, int], Outcome] = count_binary

    def run(self) -> Outcome:
        """Run the tests, then print what the program printed and how long it took."""
        start = time.monotonic()
        done = subprocess.run(
            self.command,
            cwd=self.folder,
            env=_rust_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )
        seconds = time.monotonic() - start
        print(f"\n= {self.name}\n{done.stdout}= {self.name}: {seconds:.1f} s", flush=True)
        outcome = self.count(done.stdout, done.returncode)
        outcome.names = [f"{self.name}: {name}" for name in outcome.names]
        if outcome.failed and not outcome.names:
            outcome.names = [f"{self.name}: exit code {done.returncode}"]
        return outcome


def _rust_environment() -> dict[str, str]:
    # proptest draws the same cases on every run, unless another seed is asked for. Colors would
    # hide the lines that are counted.
    return {"PROPTEST_RNG_SEED": "1", **os.environ, "CARGO_TERM_COLOR": "never"}


def compiled(features: list[str]) -> list[Program] | None:
    """Compile the Rust tests of the workspace and return their programs, or None if that failed."""
    command = ["cargo", "test", "--locked", "--no-run", *features]
    built = subprocess.run(
        [*command, "--message-format=json-render-diagnostics"],
        cwd=ROOT,
        env=_rust_environment(),
        stdout=subprocess.PIPE,
    )
    if built.returncode != 0:
        return None
    programs = []
    for message in map(json.loads, built.stdout.splitlines()):
        if message["reason"] == "compiler-artifact" and message["profile"]["test"]:
            folder = Path(message["manifest_path"]).parent
            name = f"{folder.name} {message['target']['name']}"
            programs.append(Program(name, [message["executable"]], folder))
    return programs


def prepare() -> tuple[list[Program], Outcome]:
    """Compile everything; return the programs of the Rust tests, and what is skipped or failed.

    The last minute of a release build uses one CPU, so the tests are compiled at the same time.
    """
    features, outcome = [], Outcome()
    check = subprocess.run([ROOT / "tools/daemon.sh"], stdout=subprocess.PIPE, text=True)
    if check.returncode == 0:
        features = ["--features", "waterfill-linux/daemon,waterfill-fuzz/daemon"]
    else:
        outcome.skipped[f"waterfill-linux/daemon: {check.stdout.strip()}"] += 1
    with ThreadPoolExecutor(1) as lane:
        release = lane.submit(subprocess.run, _BUILD, cwd=ROOT, check=False)
        programs = compiled(features)
    for name, passed in (
        ("make build", release.result().returncode == 0),
        ("cargo test --no-run", bool(programs)),
    ):
        if not passed:
            outcome.add(Outcome(failed=1, names=[name]))
    examples = ["cargo", "test", "--locked", "--no-fail-fast", "--doc", *features]
    documented = Program("examples in documentation", examples, count=count_examples)
    return [*(programs or []), documented], outcome


_BUILD = ["make", "--no-print-directory", "build"]


def rust(programs: list[Program]) -> Callable[[], Outcome]:
    """Return a function that runs test programs one after the other."""
    return lambda: reduce(Outcome.add, [program.run() for program in programs], Outcome())


@contextmanager
def timed(name: str) -> Iterator[None]:
    """Print how long the block took."""
    start = time.monotonic()
    yield
    print(f"{name}: {time.monotonic() - start:.0f} s", flush=True)


# Tests of the kernel need root, who may raise their priority. The other tests then delay no timer,
# and a busy host does not stop them, as it would at the lowest priority.
_FIRST = ["nice", "-n", "-15"] if os.geteuid() == 0 else []
_BEFORE = ["nice", "-n", "-5"] if os.geteuid() == 0 else []

# Tests that load programs into the kernel or measure in its networks. They run one after another.
KERNEL = (
    "tests/python/packaging/test_live_capture.py",
    "tests/python/testbed",
    "tests/validation/testbed",
)


def pytest(kernel: bool) -> Outcome:
    """Run the Python tests: those of the kernel, or all others on every CPU."""
    command = [sys.executable, "-m", "pytest", "--durations=20", "--durations-min=4"]
    if kernel:
        command = [*_FIRST, *command, *KERNEL]
    else:
        # One file stays in one process, so that its tests share a browser, a build or a network.
        # Files keep the order of tests/conftest.py, while xdist would sort by number.
        spread = ["--numprocesses=auto", "--maxprocesses=4", "--dist=loadfile"]
        ignored = [f"--ignore={path}" for path in KERNEL]
        command = [*command, *spread, "--no-loadscope-reorder", *ignored]
    name = "pytest, kernel" if kernel else "pytest, all others"
    with tempfile.TemporaryDirectory() as folder, timed(name):
        report = Path(folder) / "report.xml"
        # One of two outputs can be shown as it comes.
        done = subprocess.run(
            [*command, f"--junitxml={report}"],
            cwd=ROOT,
            stdout=subprocess.PIPE if kernel else None,
            stderr=subprocess.STDOUT if kernel else None,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
        if kernel:
            print(f"\n== {name} ==\n{done.stdout}", flush=True)
        return count_report(report, done.returncode)


def count_report(report: Path, code: int) -> Outcome:
    """Count the tests in a JUnit report of pytest, given pytest's exit code."""
    outcome = Outcome()
    cases = list(ET.parse(report).iter("testcase")) if report.exists() else []
    for case in cases:
        skip = case.find("skipped")
        wrong = case.find("failure") if case.find("failure") is not None else case.find("error")
        if wrong is not None:
            outcome.failed += 1
            why = (wrong.get("message") or "").partition("\n")[0]
            outcome.names.append(f"{case.get('classname')}::{case.get('name')}: {why}")
        elif skip is not None:
            outcome.skipped[f"{case.get('classname')}: {skip.get('message')}"] += 1
        else:
            outcome.passed += 1
    if code != 0 and outcome.failed == 0:
        outcome.failed = 1  # a wrong option, an interruption, no test collected
        outcome.names.append(f"pytest: exit code {code}")
    return outcome


def soaked(code: int, text: str) -> Outcome:
    """Count the short soak as one test, given its exit code and its output."""
    if code == _LACKING:
        why = text.strip().splitlines()[-1] if text.strip() else "it does not say why"
        return Outcome(skipped=Counter([f"validation.soak: {why}"]))
    missed = [line for line in text.splitlines() if line.endswith("FAILED")]
    why = "; ".join(" ".join(line.split()) for line in missed) or f"exit code {code}"
    names = [] if code == 0 else [f"validation.soak: {why}"]
    return Outcome(passed=int(code == 0), failed=len(names), names=names)


_LACKING = 2
# The soak waits most of its time. It comes before the tests that compute, and after those that
# measure in the kernel.
_SOAK = [*_BEFORE, sys.executable, "-m", "validation", "soak", "--quick"]


def beside_a_soak(suite: Callable[[], Outcome]) -> Callable[[], Outcome]:
    """Return a function that runs a test suite while a short soak of the daemon runs
    in parallel.
    """

    def both() -> Outcome:
        with tempfile.TemporaryFile("w+") as file:
            with subprocess.Popen(
                _SOAK, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT
            ) as process:
                outcome = suite()
            file.seek(0)
            text = file.read()
        print(f"\n== soak ==\n{text}", flush=True)
        return outcome.add(soaked(process.returncode, text))

    return both


def lanes(programs: list[Program]) -> list[list[Callable[[], Outcome]]]:
    """Return the suites in two lanes, given the programs of the Rust tests.

    Tests of the kernel wait most of the time, and two at once would disturb each other. All other
    tests compute.
    """
    kernel = [program for program in programs if program.folder.name == "waterfill-linux"]
    others = [program for program in programs if program not in kernel]
    first = [replace(program, command=[*_FIRST, *program.command]) for program in kernel]
    return [
        [rust(first), beside_a_soak(lambda: pytest(kernel=True))],
        [rust(others), lambda: pytest(kernel=False)],
    ]


def at_once(lanes: list[list[Callable[[], Outcome]]]) -> Outcome:
    """Run all lanes at the same time, the suites of each one after the other."""
    with ThreadPoolExecutor(len(lanes)) as pool:
        done = pool.map(lambda lane: [suite() for suite in lane], lanes)
        return reduce(Outcome.add, [outcome for lane in done for outcome in lane], Outcome())


def heed_signals() -> None:
    """Let the tests' programs start with the default actions of signals, also under `nohup`.

    Ignored signals are inherited, and handlers are not. A run that ignores SIGHUP gets a session of
    its own, so that the end of the terminal's session does not reach the tests.
    """
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        with suppress(PermissionError):  # it leads its process group already
            os.setsid()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def main() -> int:
    """Run all test suites and return the exit code."""
    heed_signals()
    print("\n== build ==", flush=True)
    with timed("build"):
        programs, total = prepare()
    if total.failed == 0:
        print("\n== tests ==", flush=True)
        with timed("tests"):
            total.add(at_once(lanes(programs)))
    print()
    for what, count in total.skipped.items():
        print(f"skipped {what}" + (f" ({count} tests)" if count > 1 else ""))
    missing = subprocess.run([ROOT / "tools/setup.sh", "missing"], capture_output=True, text=True)
    if total.skipped and missing.stdout.strip():
        print(f"missing packages, without which tests are skipped: {missing.stdout.strip()}")
        print("to install them: make deps")
    for name in total.names:
        print(f"failed {name}")
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped.total()} skipped")
    return 0 if total.passed > 0 and total.failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
