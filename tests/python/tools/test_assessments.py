"""Assessments of explicit laws: the page and the sections, made from recorded verdicts."""

from __future__ import annotations

import pytest

from tools import assessments
from waterfill.evaluation import suites
from waterfill.evaluation.expected import ExpectedFile
from waterfill.network import protocols


@pytest.fixture
def toy() -> ExpectedFile:
    verdicts = {"5.1.1-collapse": "fails", "5.1.2-bufferbloat": "mixed", "5.2-harm": "meets"}
    fails = {"5.1.1-collapse": ["0.5"], "5.1.2-bufferbloat": ["10 bdp", "20 bdp"]}
    return ExpectedFile(suite="s 1", law="toy", quick=False, verdicts=verdicts, fails=fails)


def test_a_section_names_what_fails(toy):
    text = assessments.section(toy)
    assert "it meets 1 of 3. It fails in all cells of Congestion collapse (5.1.1)." in text
    assert text.endswith("It fails in some cells of Bufferbloat (5.1.2).\n")


def test_the_table_replaces_the_one_between_the_marks(toy):
    before = f"above\n\n{assessments._BEGIN}| old |{assessments._END}\nbelow\n"
    page = assessments.page({"toy": toy}, before)
    rows = [line for line in page.splitlines() if line.startswith("|")][2:]
    assert rows == [
        "| 5.1.1 Congestion collapse | ✗ |", "| 5.1.2 Bufferbloat | 2 |", "| 5.2 Harm | ✓ |",
        "| **meets**, of 3 | 1 |",
    ]  # fmt: skip
    assert page.startswith("above")
    assert page.endswith("below\n")
    assert "old" not in page


def test_the_records_are_of_explicit_laws_and_of_this_suite():
    criteria = {one.id for one in suites.load("rfc9743").criteria}
    known = protocols.load()
    records = assessments.records()
    assert len(records) == 8
    for name, record in records.items():
        assert record.law == name
        assert set(record.verdicts) == criteria
        assert known[name].kind == "explicit" or name in ("vcp", "abc")
