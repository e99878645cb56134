"""When a verdict needs no further seeds, and what a boundary's search makes of an axis."""

from __future__ import annotations

import math

import pytest

from waterfill.evaluation import suites
from waterfill.evaluation.api import evaluate
from waterfill.evaluation.boundary import brackets
from waterfill.evaluation.schema import Limit
from waterfill.evaluation.verdict import CellVerdict, is_decided


def limit(relation="<", value=10.0, of=None, tolerance=0.0):
    return Limit(
        id="l", measure="queue_max", unit="kB", relation=relation, limit=value, of=of,
        tolerance=tolerance, source="ours",
    ).claim()  # fmt: skip


@pytest.mark.parametrize(
    ("values", "decided"),
    [
        ([5.0], False),  # one value has no interval
        ([9.9, 10.1, 10.0], True),  # half of the interval is 2.5 % of the mean
        ([8.0, 12.0, 10.0], False),  # on both sides
        ([1.0, 9.0, 5.0], False),  # on one side, but the mean only 5 from the limit, half 9.9
        ([1.0, 2.0, 1.5], True),  # far from the limit
        ([math.inf, 2.0], True),
        ([None, 2.0], True),
    ],
)
def test_a_small_interval_or_a_clear_side_decides(values, decided):
    assert is_decided(limit(), values, [], 0.05) is decided
    mirrored = [None if value is None else 20 - value for value in values]
    if all(value is not None and math.isfinite(value) for value in values):
        # Above instead of below the same limit: only the precision of the mean differs.
        assert is_decided(limit(">"), mirrored, [], 0.05) is decided


def test_a_limit_of_another_run_is_compared_seed_by_seed():
    values, others = [10.0, 20.0, 30.0], [9.0, 19.0, 29.0]
    assert is_decided(limit(value=1.0, of="reference"), values, others, 0.05)
    assert not is_decided(limit(value=1.0, of="reference"), values, others[::-1], 0.05)


def test_undecided_cells_get_more_seeds_and_decided_ones_do_not(suite):
    scenario = suite / "scenarios" / "alone.toml"
    scenario.write_text(
        scenario.read_text().replace('delay = "10 ms"', 'delay = "10 ms"\nloss = 0.02')
    )
    file = suite / "queue.toml"
    text = (
        file.read_text()
        .replace("limit = 20", "limit = 15")
        .replace('"5 packets", ', '"3 packets", ')
    )
    file.write_text(text)
    (suite / "harm.toml").unlink()
    found = {
        one.id: one for one in evaluate("cubic", suite=suite, precision=0.001).document.criteria
    }
    small, large = [cell for cell in found["queue"].cells if not cell.added]
    assert small.seeds == [1, 2]
    assert len(large.seeds) > 2


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        (["1 bdp", "10 bdp", "4 bdp"], ["4 bdp", "10 bdp"]),
        ([1, 2, 16], [2, 16]),
        (["500 kbit/s", "1 Mbit/s", "2 Mbit/s"], ["1e+06 bit/s", "2e+06 bit/s"]),
        (["codel", "pie", "droptail"], None),
        ([True, False, True], None),
    ],
)
def test_boundaries_are_between_neighbours_of_a_numeric_axis(suite, values, ends):
    ordered = sorted(values) if values[0] == 1 else values
    failing = ordered[1] if ordered[1] == "10 bdp" else ordered[2]
    cells = [
        CellVerdict(
            name=f"{value}", values_={"k": value}, seeds=[1], limits=[],
            verdict="fails" if value == failing else "meets",
        )
        for value in ordered
    ]  # fmt: skip
    found = brackets(suites.load(suite).criteria[0], {"k": values}, cells)
    assert [[one.boundary().low, one.boundary().high] for one in found] == ([ends] if ends else [])
