"""The totals of `make test`, from what `cargo test` prints."""

from __future__ import annotations

import pytest

from tools.run_tests import count_cargo

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
