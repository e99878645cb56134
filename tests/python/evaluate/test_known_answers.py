"""Laws whose verdicts are known from the literature, on the suite of RFC 9743 itself."""

from __future__ import annotations

import pytest

from validation.evaluate.study import KNOWN, KnownAnswer, verdicts
from waterfill.evaluation import suites

# 500 Mbit/s for a minute: left to the study.
SHORT = [one for one in KNOWN if one.criterion != "5.2.1-large-bdp"]


@pytest.mark.parametrize("one", SHORT, ids=lambda one: f"{one.law}-{one.criterion}")
def test_known_answer(one: KnownAnswer):
    assert verdicts(one.law, one.against, [one.criterion], one.sets) == {one.criterion: one.verdict}


def test_every_section_is_evaluated_or_says_why_not():
    criteria = suites.load("rfc9743").criteria
    sections = {one.content.section for one in criteria}
    wanted = {
        *(f"5.1.{n}" for n in range(1, 6)), *(f"5.2.{n}" for n in range(1, 4)), "5.3.1", "5.3.2",
        *(f"6.{n}" for n in range(1, 5)), *(f"7.{n}" for n in range(1, 12)),
    }  # fmt: skip
    assert wanted <= sections


@pytest.mark.parametrize(("law", "verdict"), [("prague", "fails"), ("cubic", "meets")])
def test_prague_takes_the_rate_of_a_rival_in_a_tunnel_and_cubic_does_not(law: str, verdict: str):
    # Key finding 1 of the L4S tests: 24 to 1.
    assert verdicts(law, "cubic", ["5-tunnel"], suite="l4s") == {"5-tunnel": verdict}
