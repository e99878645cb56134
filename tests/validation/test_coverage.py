"""Tests of the table of line coverage: counted lines, test code, failures."""

from __future__ import annotations

from pathlib import Path

import pytest

from validation import coverage

SOURCE = """\
//! A module.
#[cfg(test)]
mod checks;

pub fn used() -> u32 {
    1
}

#[cfg(test)]
impl Thing {
    fn only_tested() {
        call();
    }
}

#[cfg(test)]
use std::fmt::{
    Debug, Display,
};

#[cfg(test)]
mod tests {
    #[test]
    fn one() {
        assert_eq!(super::used(), 1);
    }
}

pub fn after() {}
"""


def test_lines_under_cfg_test_are_found() -> None:
    lines, modules = coverage.test_code(SOURCE)
    text = SOURCE.splitlines()
    kept = [text[n - 1] for n in range(1, len(text) + 1) if n not in lines and text[n - 1]]
    assert kept == ["//! A module.", "pub fn used() -> u32 {", "    1", "}", "pub fn after() {}"]
    assert modules == {"checks"}


def test_modules_of_tests_are_not_counted(tmp_path: Path) -> None:
    src = tmp_path / "crates/waterfill-laws/src"
    files = {
        "lib.rs": "#[cfg(test)]\nmod testing;\nmod law;\n",
        "testing.rs": "fn a() {}\n",
        "law.rs": "fn b() {}\n#[cfg(test)]\nmod tests;\n",
        "law/tests.rs": "fn c() {}\n",
        "law/tests/more.rs": "fn d() {}\n",
        "tests.rs": "fn e() {}\n",
    }
    for name, text in files.items():
        (src / name).parent.mkdir(parents=True, exist_ok=True)
        (src / name).write_text(text)
    counts = {f"crates/waterfill-laws/src/{name}": {1: 0, 2: 1} for name in files}
    kept = coverage.without_tests(counts, tmp_path)
    assert {name.partition("/src/")[2]: lines for name, lines in kept.items()} == {
        "lib.rs": {},
        "law.rs": {1: 0},
        "tests.rs": {1: 0, 2: 1},  # no module of tests: the name alone says nothing
    }


def test_counts_are_read_and_added_up() -> None:
    lcov = f"SF:{coverage.ROOT}/a.rs\nDA:1,0\nDA:2,5\nend_of_record\nSF:/b.rs\nDA:9,1\n"
    lcov += f"end_of_record\nSF:{coverage.ROOT}/a.rs\nDA:1,2\nDA:3,0\nend_of_record\n"
    assert coverage.counted(lcov) == {"a.rs": {1: 2, 2: 5, 3: 0}, "/b.rs": {9: 1}}


@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("crates/waterfill-laws/src/protocols/maxnet/fixed_point/tests.rs", "maxnet"),
        ("crates/waterfill-laws/src/protocols/pxcp.rs", "pxcp"),
        ("crates/waterfill-laws/src/protocols/tcp/bbr/model.rs", "tcp/bbr"),
        ("crates/waterfill-laws/src/protocols/tcp/cubic.rs", "tcp/cubic"),
        ("crates/waterfill-laws/src/protocols/mod.rs", None),
        ("crates/waterfill-laws/src/units.rs", None),
        ("crates/waterfill-sim/src/link.rs", None),
    ],
)
def test_a_law_is_a_file_or_a_folder(name: str, law: str | None) -> None:
    assert coverage.law_of(name) == law


def _files(missing: dict[str, int]) -> dict[str, dict[int, int]]:
    """Return a file of 100 lines for each crate, with lines that do not run."""
    return {
        f"crates/{crate}/src/lib.rs": {n: int(n > missing.get(crate, 0)) for n in range(1, 101)}
        for crate in coverage.CRATES
    }


def test_every_crate_must_reach_the_share() -> None:
    text, reached = coverage.report(_files({"waterfill-sim": 5}), every_line=False)
    assert reached
    assert "| waterfill-sim | 100 | 5 | 95.0% |" in text
    assert "not run:" not in text

    text, reached = coverage.report(_files({"waterfill-sim": 6}), every_line=False)
    assert not reached
    assert "crates/waterfill-sim/src/lib.rs: not run: 1-6" in text
    assert "coverage: below 95%: waterfill-sim" in text

    text, reached = coverage.report({}, every_line=False)
    assert not reached, "a crate of which nothing was counted is not covered"
