"""Planted faults by somebody who had not seen the suite, and the judgment of all."""

from __future__ import annotations

import pytest

from validation.evaluate import planted
from validation.evaluate.planted import PLANTED, Planted

BY_NAME = {one.law: one for one in PLANTED}


@pytest.mark.parametrize(("law", "criterion"), [("law-6", "7.4-many"), ("law-5", "7.8-outage")])
def test_the_suite_names_a_fault_that_its_author_did_not_plant(law: str, criterion: str):
    assert planted.found(BY_NAME[law], [criterion]) == [criterion]


def test_each_law_by_somebody_else_has_a_healthy_version_with_the_other_parameters_equal():
    others = [one for one in PLANTED if planted.own_laws(one.law)]
    assert len(others) == 6
    for one in others:
        (law,) = planted.own_laws(one.law).values()
        (healthy,) = planted.own_laws(one.healthy).values()
        assert (law.params, law.paced, law.ecn) == (healthy.params, healthy.paced, healthy.ecn)


def test_worse_is_a_step_from_meets_to_mixed_or_fails():
    base = {"a": "meets", "b": "mixed", "c": "fails", "d": "not evaluated", "e": "meets"}
    law = {"a": "mixed", "b": "meets", "c": "fails", "d": "fails", "e": "not evaluated"}
    assert planted.worse(law, base) == ["a"]


@pytest.mark.parametrize(
    ("criterion", "names", "wrong"),
    [
        ("7.1", ["7.1-ecn", "7.8-idle"], False),
        ("7.1", ["7.8-idle"], True),
        ("7.1", [], True),
        (None, [], False),
        (None, ["7.8-idle"], True),
    ],
)
def test_a_fault_must_be_named_and_a_healthy_law_be_worse_in_nothing(criterion, names, wrong):
    one = Planted("mine", "healthy", "does", criterion)
    assert (planted.problem(one, names) is not None) == wrong
