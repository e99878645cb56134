"""Tests of the totals of `make test`, from the output of `cargo test`."""

from __future__ import annotations

import sys

import pytest

from tools import run_tests
from tools.run_tests import Outcome, beside_a_soak, count_cargo, soaked

# As cargo 1.95 prints it. An edition-2024 crate may announce documentation examples twice.
OUTPUT = """\
   Compiling toy v0.1.0 (/toy)
    Finished `test` profile [optimized + debuginfo] target(s) in 0.20s
     Running unittests src/lib.rs (target/debug/deps/toy-b8e70bf6fa9d4777)

running 3 tests
test equation_1 ... ok
test minutes ... ignored, minutes: cargo test -- --ignored
test quiet ... ignored

test result: ok. 1 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 1.54s

     Running tests/battery.rs (target/debug/deps/battery-de0be4878389ef05)

running 2 tests
test an_echo_is_ignored ... ok
test a_sum ... FAILED

failures:

---- a_sum stdout ----

thread 'a_sum' (4711) panicked at tests/battery.rs:3:5:
assertion `left == right` failed

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 2.16s

error: test failed, to rerun pass `--test battery`
   Doc-tests toy

running 1 test
test src/lib.rs - (line 3) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

running 1 test
test src/lib.rs - (line 9) - compile fail ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s

all doctests ran in 0.30s; merged doctests compilation took 0.15s
"""


def count(text: str, code: int = 101) -> tuple[int, int]:
    outcome = count_cargo(text.splitlines(keepends=True), code)
    return outcome.passed, outcome.failed


def test_tests_are_counted_and_skips_named():
    outcome = count_cargo(OUTPUT.splitlines(), 101)
    assert (outcome.passed, outcome.failed) == (4, 1)
    assert outcome.skipped == {
        "minutes: minutes: cargo test -- --ignored": 1,
        "quiet: marked ignore": 1,
    }


@pytest.mark.parametrize("last", ["test equation_1 ... ok\n", "running 3 tests\n", "4777)\n"])
def test_a_binary_that_dies_is_one_failure(last):
    head, _, tail = OUTPUT.partition(last)
    rest = tail[tail.index("     Running tests/battery.rs") :]
    assert count(head + last + rest) == (3, 2)
    assert count(head + last) == (0, 1)


def test_totals_that_do_not_add_up_are_a_failure():
    assert count(OUTPUT.replace("running 3 tests", "running 4 tests")) == (4, 2)
    assert count(OUTPUT.replace("quiet ... ignored", "quiet was ignored")) == (4, 2)


@pytest.mark.parametrize("code", [0, 101])
def test_no_test_is_a_failure(code):
    assert count("error: could not compile `toy` (lib test)\n", code) == (0, 1)


def test_an_error_after_the_tests_is_a_failure():
    passing = OUTPUT.replace("1 passed; 1 failed", "2 passed; 0 failed")
    assert count(passing, 0) == (5, 0)
    assert count(passing, 101) == (5, 1)


def test_the_soak_is_one_test_that_passes_fails_or_is_skipped_with_its_reason():
    assert soaked(0, "table\n") == Outcome(passed=1)
    assert soaked(1, "table\n").failed == 1
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
