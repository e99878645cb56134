"""Tests of the totals of `make test`, from the output of the test programs."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from tools import run_tests
from tools.run_tests import (
    Outcome,
    Program,
    beside_a_soak,
    count_binary,
    count_examples,
    soaked,
)

# As libtest of Rust 1.95 prints it.
BINARY = """
running 5 tests
test equation_1 ... ok
test minutes ... ignored, minutes: cargo test -- --ignored
test quiet ... ignored
test a_sum ... FAILED
test an_echo_is_ignored ... ok

failures:

---- a_sum stdout ----

thread 'a_sum' (4711) panicked at tests/battery.rs:3:5:
assertion `left == right` failed

failures:
    a_sum

test result: FAILED. 2 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 1.54s

"""
PASSING = BINARY.replace("FAILED. 2 passed; 1 failed", "ok. 3 passed; 0 failed")

# An edition-2024 crate may announce documentation examples twice.
EXAMPLES = """\
   Doc-tests toy

running 1 test
test src/lib.rs - (line 3) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

running 2 tests
test src/lib.rs - (line 9) - compile fail ... ok
test src/lib.rs - (line 12) ... ignored

test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s

all doctests ran in 0.30s; merged doctests compilation took 0.15s
   Doc-tests tool

running 0 tests

test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

"""


def counts(outcome: Outcome) -> tuple[int, int]:
    return outcome.passed, outcome.failed


def test_tests_are_counted_and_skips_named():
    outcome = count_binary(BINARY, 101)
    assert counts(outcome) == (2, 1)
    assert outcome.names == ["a_sum"]
    assert outcome.skipped == {
        "minutes: minutes: cargo test -- --ignored": 1,
        "quiet: marked ignore": 1,
    }


@pytest.mark.parametrize("last", ["test equation_1 ... ok\n", "running 5 tests\n", "\n"])
def test_a_binary_that_dies_is_one_failure(last):
    head, _, _ = BINARY.partition(last)
    assert counts(count_binary(head + last, -9)) == (0, 1)


def test_totals_that_do_not_add_up_are_a_failure():
    assert counts(count_binary(PASSING)) == (3, 0)
    assert counts(count_binary(PASSING.replace("running 5 tests", "running 6 tests"))) == (3, 1)
    assert counts(count_binary(PASSING.replace("quiet ... ignored", "quiet was ignored"))) == (3, 1)


@pytest.mark.parametrize("before", ["test equation_1", "test an_echo", "\ntest result"])
def test_the_output_of_a_test_does_not_change_the_counts(before):
    child = """
running 3 tests
test end ... ok
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 41 filtered out; finished in 0.01s
"""
    assert counts(count_binary(PASSING.replace(before, child + before))) == (3, 0)
    assert counts(count_binary(BINARY.replace(before, child + before), 101)) == (2, 1)


def test_an_error_after_the_tests_is_a_failure():
    assert counts(count_binary(PASSING, 0)) == (3, 0)
    assert counts(count_binary(PASSING, 101)) == (3, 1)


def test_examples_of_all_groups_are_counted():
    outcome = count_examples(EXAMPLES)
    assert counts(outcome) == (2, 0)
    assert outcome.skipped == {"src/lib.rs - (line 12): marked ignore": 1}
    assert counts(count_examples(EXAMPLES.replace("running 1 test", "running 2 tests"))) == (2, 1)
    assert counts(count_examples("error: could not compile `toy` (doctest)\n", 101)) == (0, 1)


def test_a_program_counts_its_output_and_prints_its_seconds(tmp_path, capfd, monkeypatch):
    monkeypatch.delenv("PROPTEST_RNG_SEED", raising=False)
    script = "import os; print(os.getcwd(), os.environ['PROPTEST_RNG_SEED']); raise SystemExit(3)"
    seen = []
    program = Program(
        "toy all",
        [sys.executable, "-c", script],
        tmp_path,
        lambda text, code: seen.append((text, code)) or Outcome(passed=7),
    )
    assert program.run() == Outcome(passed=7)
    assert seen == [(f"{tmp_path} 1\n", 3)]
    assert re.search(r"= toy all: \d+\.\d s$", capfd.readouterr().out.strip())


REPORT = """<testsuites><testsuite>
<testcase classname="tests.toy" name="test_sum[2]">
<failure message="AssertionError: 3&#10;more"/></testcase>
<testcase classname="tests.toy" name="test_page"><error message="no browser"/></testcase>
<testcase classname="tests.toy" name="test_cluster"><skipped message="needs dask"/></testcase>
<testcase classname="tests.toy" name="test_flow"/>
</testsuite></testsuites>"""


def test_a_report_of_pytest_is_counted_and_failures_named(tmp_path):
    report = tmp_path / "report.xml"
    assert run_tests.count_report(report, 4).names == ["pytest: exit code 4"]
    report.write_text(REPORT)
    outcome = run_tests.count_report(report, 1)
    assert counts(outcome) == (1, 2)
    assert outcome.names == [
        "tests.toy::test_sum[2]: AssertionError: 3",
        "tests.toy::test_page: no browser",
    ]
    assert outcome.skipped == {"tests.toy: needs dask": 1}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout without missing packages, whose suites are replaced."""
    (tmp_path / "tools").mkdir()
    for name in ("setup.sh", "daemon.sh"):
        (tmp_path / "tools" / name).write_text("#!/bin/sh\n")
        (tmp_path / "tools" / name).chmod(0o755)
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    monkeypatch.setattr(run_tests, "_BUILD", ["true"])
    monkeypatch.setattr(run_tests, "beside_a_soak", lambda suite: suite)
    gone = {False: Outcome(4, 1, ["tests.toy::test_page: gone"]), True: Outcome()}
    monkeypatch.setattr(run_tests, "pytest", lambda kernel: gone[kernel])
    return tmp_path


def test_the_last_lines_name_the_failed_tests(checkout, monkeypatch, capfd):
    child = "print('running 1 test\\ntest late ... FAILED\\n')"
    toy = Program("toy", [sys.executable, "-c", child + "; raise SystemExit(101)"], checkout)
    monkeypatch.setattr(run_tests, "prepare", lambda: ([toy], Outcome()))
    assert run_tests.main() == 1
    assert capfd.readouterr().out.splitlines()[-3:] == [
        "failed toy: exit code 101",
        "failed tests.toy::test_page: gone",
        "4 passed, 2 failed, 0 skipped",
    ]


@pytest.mark.parametrize(
    ("build", "programs", "failed"),
    [
        (["false"], [Program("toy", ["true"])], "make build"),
        (["true"], None, "cargo test --no-run"),
    ],
)
@pytest.mark.usefixtures("checkout")
def test_without_a_build_no_test_runs(monkeypatch, capfd, build, programs, failed):
    monkeypatch.setattr(run_tests, "_BUILD", build)
    monkeypatch.setattr(run_tests, "compiled", lambda _: programs)
    assert run_tests.main() == 1
    last = capfd.readouterr().out.splitlines()[-2:]
    assert last == [f"failed {failed}", "0 passed, 1 failed, 0 skipped"]


def test_the_kernel_has_a_lane_of_its_own(checkout, monkeypatch):
    """Each of two programs waits for the other's file; pytest follows in both lanes."""
    linux = checkout / "waterfill-linux"
    linux.mkdir()
    both = "touch $0; for i in $(seq 100); do [ -e $1 ] && exit 9; sleep 0.1; done"
    here, there = str(checkout / "here"), str(checkout / "there")
    ended = []

    def met(name: str) -> Callable[[str, int], Outcome]:
        def count(_text: str, code: int) -> Outcome:
            ended.append(name)
            return Outcome(passed=int(code == 9), failed=int(code != 9))

        return count

    programs = [
        Program("computes", ["sh", "-c", both, here, there], checkout, met("computes")),
        Program("waits", ["sh", "-c", both, there, here], linux, met("waits")),
    ]

    def pytest(kernel: bool) -> Outcome:
        return Outcome(failed=int(("waits" if kernel else "computes") not in ended))

    monkeypatch.setattr(run_tests, "prepare", lambda: (programs, Outcome()))
    monkeypatch.setattr(run_tests, "pytest", pytest)
    assert run_tests.main() == 0


def test_both_calls_of_pytest_share_the_tests(monkeypatch):
    """What one call names, the other leaves out, and all of it exists."""
    called = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        called.append(command)
        return subprocess.CompletedProcess(command, 5, "")

    monkeypatch.setattr(subprocess, "run", run)
    run_tests.pytest(kernel=True)
    run_tests.pytest(kernel=False)
    named = [part for part in called[0] if part.startswith("tests/")]
    assert named == [part[9:] for part in called[1] if part.startswith("--ignore=")]
    assert len(named) == 3
    assert all((run_tests.ROOT / path).exists() for path in named)


def test_the_soak_is_one_test_that_passes_fails_or_is_skipped_with_its_reason():
    assert soaked(0, "table\n") == Outcome(passed=1)
    assert soaked(1, "table\n").names == ["validation.soak: exit code 1"]
    missed = "criterion  measured\nstuck flows  2   0      FAILED\nkills        2 of 2  ok\n"
    assert soaked(1, missed).names == ["validation.soak: stuck flows 2 0 FAILED"]
    skipped = soaked(2, "soak: needs root, got user 1000\n")
    assert (skipped.passed, skipped.failed) == (0, 0)
    assert list(skipped.skipped) == ["validation.soak: soak: needs root, got user 1000"]


@pytest.mark.parametrize(("code", "passed"), [(0, 4), (1, 3)])
def test_the_soak_is_counted_with_the_suite_that_it_runs_beside(monkeypatch, capfd, code, passed):
    program = f"import sys; print('a table'); sys.exit({code})"
    monkeypatch.setattr(run_tests, "_SOAK", [sys.executable, "-c", program])
    outcome = beside_a_soak(lambda: Outcome(passed=3))()
    assert (outcome.passed, outcome.failed) == (passed, code)
    assert "a table" in capfd.readouterr().out
