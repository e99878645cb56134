"""Run every test suite that this host supports, and print the totals last.

Before the totals it prints what was skipped and why. Run by `make test` with .venv's interpreter.
Exits 1 when a test failed or when none ran.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Outcome:
    """Test counts of one suite: passed, failed and skipped."""

    passed: int = 0
    failed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)  # "test: why" → number of tests

    def add(self, other: Outcome) -> Outcome:
        """Add the counts of another suite to this outcome, which is returned."""
        self.passed += other.passed
        self.failed += other.failed
        self.skipped.update(other.skipped)
        return self


# What `cargo test` prints. libtest's JSON needs a nightly compiler, and cargo-nextest, which writes
# JUnit files, runs no documentation examples. So it is text, and what does not add up is a failure.
_STARTED = re.compile(r" *(?:Running (?:unittests )?\S+ \(\S+\)|Doc-tests \S+)$")
_ANNOUNCED = re.compile(r"running (\d+) tests?$")
_IGNORED = re.compile(r"test (.+?) \.\.\. ignored(?:, (.+))?$")
_TOTALS = re.compile(r"test result: \S+ (\d+) passed; (\d+) failed; (\d+) ignored; (\d+) measured;")


def count_cargo(lines: Iterable[str], code: int = 0) -> Outcome:
    """Count the tests in the output of `cargo test`, given its exit code.

    Counted as one failure each: a test binary that ends without its totals, totals that differ from
    the number of tests announced, a non-zero exit code without a failed test, and no test at all.
    """
    outcome = Outcome()
    announced = ignored = errors = 0
    unfinished = False
    for line in lines:
        text = line.rstrip()
        if _STARTED.match(text):
            errors += unfinished
            unfinished = True
        elif match := _ANNOUNCED.match(text):
            announced, ignored, unfinished = int(match[1]), 0, True
        elif match := _IGNORED.match(text):
            ignored += 1
            outcome.skipped[f"{match[1]}: {match[2] or 'marked ignore'}"] += 1
        elif match := _TOTALS.match(text):
            counts = [int(count) for count in match.groups()]
            outcome.passed += counts[0]
            outcome.failed += counts[1]
            errors += sum(counts) != announced or counts[2] != ignored
            unfinished = False
    outcome.failed += errors + unfinished
    if outcome.failed == 0 and (code != 0 or outcome.passed == 0):
        outcome.failed = 1
    return outcome


def cargo() -> Outcome:
    """Run the Rust tests of the workspace, including documentation examples."""
    # --no-fail-fast: one run reports everything that is broken.
    command = ["cargo", "test", "--locked", "--no-fail-fast"]
    check = subprocess.run([ROOT / "tools/daemon.sh"], stdout=subprocess.PIPE, text=True)
    if check.returncode == 0:
        command += ["--features", "waterfill-linux/daemon,waterfill-fuzz/daemon"]
    # proptest draws the same cases on every run, unless another seed is asked for. Colours would
    # hide the lines that are counted.
    environment = {"PROPTEST_RNG_SEED": "1", **os.environ, "CARGO_TERM_COLOR": "never"}
    lines = []
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    outcome = count_cargo(lines, process.returncode)
    if check.returncode != 0:
        outcome.skipped[f"waterfill-linux/daemon: {check.stdout.strip()}"] += 1
    return outcome


def pytest() -> Outcome:
    """Run the Python tests."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        # One file stays in one process, so that its tests share a browser, a build or a namespace.
        spread = ["--numprocesses=auto", "--maxprocesses=4", "--dist=loadfile"]
        command = [sys.executable, "-m", "pytest", *spread, f"--junitxml={report}"]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        cases = list(ET.parse(report).iter("testcase")) if report.exists() else []
    for case in cases:
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            outcome.failed += 1
        elif skip is not None:
            outcome.skipped[f"{case.get('classname')}: {skip.get('message')}"] += 1
        else:
            outcome.passed += 1
    if code != 0 and outcome.failed == 0:
        outcome.failed = 1  # a wrong option, an interruption, no test collected
    return outcome


def soaked(code: int, text: str) -> Outcome:
    """Count the short soak as one test, given its exit code and its output."""
    if code == _LACKING:
        why = text.strip().splitlines()[-1] if text.strip() else "it does not say why"
        return Outcome(skipped=Counter([f"validation.soak: {why}"]))
    return Outcome(passed=int(code == 0), failed=int(code != 0))


_LACKING = 2
# The soak waits most of its time, and nothing that it requires depends on how fast the host is.
_SOAK = [sys.executable, "-m", "validation", "soak", "--quick"]


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


def main() -> int:
    """Run all test suites and return the exit code."""
    total = Outcome()
    for name, suite in (("cargo test", cargo), ("pytest", beside_a_soak(pytest))):
        print(f"\n== {name} ==", flush=True)
        total.add(suite())
    print()
    for what, count in total.skipped.items():
        print(f"skipped {what}" + (f" ({count} tests)" if count > 1 else ""))
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped.total()} skipped")
    return 0 if total.passed > 0 and total.failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
