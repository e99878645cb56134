"""Runs every test suite that this machine can run and closes with one line of totals.

Before that line it says what was skipped and why. Run by `make test` with .venv's interpreter.
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
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Outcome:
    """What one suite's tests came to."""

    passed: int = 0
    failed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)  # "test: why" → how many


@dataclass(frozen=True)
class Suite:
    """One runner. If `missing` names what this machine lacks, the suite is skipped by name."""

    name: str
    run: Callable[[], Outcome]
    missing: Callable[[], str | None] = lambda: None


def cargo() -> Outcome:
    """The Rust tests of the default workspace members, documentation examples included."""
    outcome = Outcome()
    # --no-fail-fast: one run tells everything that is broken.
    command = ["cargo", "test", "--locked", "--no-fail-fast"]
    lacks = subprocess.run(
        [ROOT / "tools/daemon.sh"], stdout=subprocess.PIPE, text=True, check=False
    )
    if lacks.returncode == 0:
        command += ["--features", "waterfill-linux/daemon"]
    else:
        outcome.skipped[f"waterfill-linux/daemon: {lacks.stdout.strip()}"] += 1
    # proptest draws the same cases on every run, unless another seed is asked for.
    environment = {"PROPTEST_RNG_SEED": "1", **os.environ}
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
            if totals := re.match(r"test result: \S+ (\d+) passed; (\d+) failed;", line):
                outcome.passed += int(totals[1])
                outcome.failed += int(totals[2])
            elif ignored := re.match(r"test (.+?) \.\.\. ignored(?:, (.+))?$", line):
                outcome.skipped[f"{ignored[1]}: {ignored[2] or 'marked ignore'}"] += 1
    if process.returncode != 0 and outcome.failed == 0:
        outcome.failed = 1  # it did not build, or a test binary died before it could count
    return outcome


def pytest() -> Outcome:
    """The Python tests."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", f"--junitxml={report}"]
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


SUITES = [Suite("cargo test", cargo), Suite("pytest", pytest)]


def main() -> int:
    """Run all suites in turn; the exit code."""
    total = Outcome()
    for suite in SUITES:
        print(f"\n== {suite.name} ==", flush=True)
        if why := suite.missing():
            total.skipped[f"{suite.name}: {why}"] += 1
            continue
        outcome = suite.run()
        total.passed += outcome.passed
        total.failed += outcome.failed
        total.skipped.update(outcome.skipped)
    print()
    for what, count in total.skipped.items():
        print(f"skipped {what}" + (f" ({count} tests)" if count > 1 else ""))
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped.total()} skipped")
    return 0 if total.passed > 0 and total.failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
