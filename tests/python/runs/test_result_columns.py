"""The reference of a result's columns has those of a run, in its order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import waterfill

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "results.md"


@pytest.mark.parametrize("which", ["flows", "links", "traffic", "transfers"])
def test_every_column_is_in_the_reference(which):
    scenario = waterfill.Scenario("s", duration="1 s", protocol="window")
    scenario.link("l", "a", "b", "10 Mbit/s", "5 ms").flow("f", "a", "b")
    result = scenario.traffic("web", "a", "b", arrival_rate=20).run()
    section = PAGE.read_text(encoding="utf-8").partition(f"## `{which}`\n")[2].partition("\n## ")[0]
    named = re.findall(r"(?m)^\| `(\w+)` \|", section)
    assert named == getattr(result, which).column_names
