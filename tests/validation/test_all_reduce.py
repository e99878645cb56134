"""The study of an all-reduce: its scenario is the page's, and its figure has each law's share."""

from __future__ import annotations

import pyarrow as pa
import pytest

from validation import all_reduce
from waterfill.network import protocols
from waterfill.scenario.loading import from_toml


def test_the_scenario_is_the_one_of_the_page():
    scenario = from_toml(all_reduce.scenario(), sets=[f"{all_reduce.KEY}=ring"])
    (one,) = scenario.collective
    assert (one.name, len(one.members)) == ("gradients", 128)
    assert set(all_reduce.LAWS) <= set(protocols.load())


def test_shares_are_means_over_seeds_with_intervals():
    points = {"protocol": ["a", "b", "a"], "bus_of_ideal": [0.4, 1.0, 0.6]}
    found = all_reduce.shares(pa.table(points))
    assert found["a"].mean == pytest.approx(0.5)
    assert found["a"].half == pytest.approx(12.706 * 0.1, rel=1e-3)
    assert found["b"].half is None
    with pytest.raises(ValueError, match="without an end: a"):
        all_reduce.shares(pa.table({"protocol": ["a"], "bus_of_ideal": [None]}))


def test_table_and_figure_have_all_laws(tmp_path):
    of = all_reduce.shares(pa.table({"protocol": ["a", "a", "b"], "bus_of_ideal": [0.4, 0.6, 1]}))
    found = dict.fromkeys(all_reduce.OPERATIONS, of)
    assert "| `a` | 50.0 ± 127.1 | 50.0 ± 127.1 |" in all_reduce.table(found)
    all_reduce.draw(found, tmp_path / "figure")
    assert (tmp_path / "figure.png").stat().st_size > 5000
