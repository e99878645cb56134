"""Suites and options that would give a wrong number are refused, or not evaluated with a reason."""

from __future__ import annotations

import pytest

from waterfill.errors import InputError
from waterfill.evaluation.api import evaluate

GRID = '"link.l.buffer" = ["5 packets", "100 packets"]'


def test_an_axis_that_an_override_fixes_is_not_evaluated(suite):
    found = evaluate("cubic", suite=suite, seeds=1, set=["link.l.buffer=9 packets"]).document
    queue, harm = (next(c for c in found.criteria if c.id == one) for one in ("queue", "harm"))
    assert queue.verdict == "not evaluated"
    assert queue.reason == "--set gives link.l.buffer one value, and the criterion varies it"
    assert harm.verdict != "not evaluated"


@pytest.mark.parametrize(
    ("override", "recovery", "problem"),
    [
        ("flow.law.protocol=reno", None, "the evaluation chooses each flow's protocol"),
        ("protocol=reno", None, "the evaluation chooses each flow's protocol"),
        ("flow.law.recovery=reno", "rack", "--recovery rack sets the law's recovery"),
    ],
)
def test_an_override_that_replaces_the_law_is_refused(suite, override, recovery, problem):
    with pytest.raises(InputError, match=problem):
        evaluate("cubic", suite=suite, seeds=1, set=[override], recovery=recovery)


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("scenarios/alone.toml", '"law"', '"newreno"', "no flow has the protocol of the law"),
        ("queue.toml", "limit = 20\n", 'limit = 2\nof = "rival"\n', 'has protocol = "rival"'),
        ("queue.toml", GRID, '"link.l.buffer" = []', "needs different values of link.l.buffer"),
        ("queue.toml", '"100 packets"', '"5 packets"', "needs different values of link.l.buffer"),
        (
            "queue.toml",
            "limit = 20\n",
            'limit = 20\nwhere = { "link.l.buffer" = ["6 packets"] }\n',
            'no value of the grid, got "6 packets"',
        ),
    ],
)
def test_a_suite_that_would_drop_a_limit_or_the_law_is_refused(suite, file, old, new, problem):
    path = suite / file
    text = path.read_text()
    assert old in text
    # The name of the law's flow is the same word as its protocol.
    path.write_text(new.join(text.rsplit(old, 1)))
    with pytest.raises(InputError, match=problem):
        evaluate("cubic", suite=suite, seeds=1)
