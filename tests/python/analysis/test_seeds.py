"""Comparisons over several seeds: intervals and tests by hand, and the command that prints them."""

from __future__ import annotations

import json
import math

import pytest

from waterfill.analysis import seeds
from waterfill.errors import InputError

SCENARIO = """
name = "web"
duration = "2 s"
protocol = "maxnet"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "20 Mbit/s"
delay = "5 ms"
[[flow]]
name = "long"
path = ["l"]
[[traffic]]
kind = "web"
path = ["l"]
arrival_rate = "20 /s"
"""


@pytest.fixture
def scenario(tmp_path) -> str:
    (tmp_path / "s.toml").write_text(SCENARIO)
    return "s.toml"


def test_an_interval_by_hand():
    # Student's t with two degrees of freedom: 4.302653 at 97.5 %.
    found = seeds.estimate([1.0, 2.0, 3.0])
    assert found["mean"] == 2.0
    assert found["interval"] == pytest.approx([2 - 4.302653 / math.sqrt(3), 2 + 4.302653 / 3**0.5])


def test_an_interval_ends_where_values_can():
    wide = seeds.estimate([0.35, 0.99, 1.0])["interval"]
    assert wide[0] < 0
    assert wide[1] > 1
    assert seeds.estimate([0.35, 0.99, 1.0], seeds.BOUNDS["jain_index"])["interval"] == [0.0, 1.0]


def test_a_seed_without_a_value_leaves_no_mean():
    assert seeds.estimate([1.0, None, 3.0]) == {
        "values": [1.0, None, 3.0], "mean": None, "interval": None,
    }  # fmt: skip
    assert seeds.estimate([4.0])["interval"] is None


def compared(*columns: list[float | None]) -> list[seeds.Difference]:
    found = {f"p{i}": {"x": seeds.estimate(values)} for i, values in enumerate(columns)}
    return seeds.differences(found)


def test_tests_are_paired_by_seed():
    # Seeds differ by far more than protocols, which differ by about 1 in every seed.
    first, second = [10.0, 50.0, 90.0, 30.0], [9.0, 48.9, 89.1, 29.0]
    (row,) = compared(first, second)
    assert row["difference"] == pytest.approx(1.0)
    # t = 1 / (0.0816497 / 2) = 24.49 with three degrees of freedom.
    assert row["p"] == pytest.approx(0.000149, rel=0.01)
    assert row["significant"]


def test_more_pairs_need_more_evidence():
    one, other = [1.0, 2.0, 3.0, 4.0], [0.6, 1.9, 2.3, 3.5]
    (alone,) = compared(one, other)
    assert alone["significant"]
    shifted = [value + 0.05 * (-1) ** i for i, value in enumerate(other)]
    rows = compared(one, other, shifted)
    # Three tests: each p is at least 1 + 1/2 + 1/3 times its own.
    assert min(row["p"] for row in rows) >= alone["p"]
    assert not any(
        row["significant"] for row in rows if {row["first"], row["second"]} == {"p1", "p2"}
    )


def test_what_no_seed_changes_is_not_chance():
    same, apart = compared([2.0] * 3, [2.0] * 3), compared([2.0] * 3, [1.5] * 3)
    assert (same[0]["p"], same[0]["significant"]) == (1.0, False)
    assert (apart[0]["p"], apart[0]["significant"]) == (0.0, True)
    assert compared([1.0, 2.0], [None, 2.0]) == []


def test_seeds_follow_each_other_and_are_bounded():
    assert seeds.seeds(7, 3) == [7, 8, 9]
    for count in (0, -1, 10_001):
        with pytest.raises(InputError, match="seeds: must be 1 to 10000 seeds"):
            seeds.seeds(1, count)


def test_compare_over_seeds(waterfill, scenario, tmp_path):
    ran = waterfill("compare", scenario, "--protocols", "maxnet,rcp", "--seeds", "3", "--seed", "5",
                    "--json", "-o", "out")  # fmt: skip
    assert ran.code == 0, ran.err
    document = ran.document
    assert document["seeds"] == [5, 6, 7]
    assert list(document["over_seeds"]) == ["maxnet", "rcp"]
    queue = document["over_seeds"]["maxnet"]["queue_bytes.mean"]
    assert queue["values"][0] == document["runs"]["maxnet"]["compare"]["queue_bytes"]["mean"]
    assert len(set(queue["values"])) == 3
    assert queue["interval"][0] < queue["mean"] < queue["interval"][1]
    hosts = document["runs"]["maxnet"]["compare"]["hosts"]
    for key in ("loss_rate", "resent_bytes", "timeouts"):
        assert document["over_seeds"]["maxnet"][key]["values"][0] == hosts[key]
    # A seed's run is that of the seed alone.
    alone = json.loads((tmp_path / "out/maxnet/seed-7/summary.json").read_text())
    direct = waterfill("run", "out/maxnet/seed-7/scenario.toml", "--json").document
    assert alone["flows"] == direct["flows"]
    assert {row["quantity"] for row in document["differences_over_seeds"]} >= {"queue_bytes.mean"}
    assert json.loads((tmp_path / "out/compare.json").read_text())["seeds"] == [5, 6, 7]
    assert (tmp_path / "out" / "seeds.png").stat().st_size > 1000
    assert waterfill("plot", "out").code == 0


def test_the_table_over_seeds_fits(waterfill, scenario):
    ran = waterfill("compare", scenario, "--protocols", "maxnet,rcp", "--seeds", "3")
    assert ran.out.splitlines()[0].startswith("web on sim, seed 1 of 3, with jitter: ")
    assert "All 3 seeds, from 1: mean ± half the 95 % interval" in ran.out
    assert "queue: 1 of 1 pairs of protocols differ" in ran.out or "queue: 0 of 1" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


@pytest.mark.usefixtures("undrawn")
def test_seeds_that_change_nothing_are_one_sentence_without_tests(waterfill, scenario, tmp_path):
    fixed = SCENARIO[: SCENARIO.index("[[traffic]]")] + 'start_jitter = "0 s"\n'
    (tmp_path / "s.toml").write_text(fixed)
    words = ("compare", scenario, "--protocols", "maxnet,rcp", "--seeds", "3")
    printed = " ".join(waterfill(*words, "-o", "out").out.split())
    assert "All 3 seeds give the same result, so" in printed
    assert "pairs of protocols" not in printed
    assert "±" not in printed
    assert json.loads((tmp_path / "out/compare.json").read_text())["differences_over_seeds"] == []
    assert waterfill("report", "out").code == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "All 3 seeds give the same result." in page


def test_one_seed_is_as_before(waterfill, scenario):
    ran = waterfill("compare", scenario, "--protocols", "maxnet,rcp", "--json")
    assert set(ran.document) == {"schema_version", "runs"}
    assert waterfill("compare", scenario, "--seeds", "0").code == 2


def test_p_values_are_corrected_for_tests_that_depend_on_each_other():
    rows = [
        seeds.Difference(quantity="q", first="a", second=str(n), difference=1.0, p=p,
                         significant=False)
        for n, p in enumerate((0.01, 0.02, 0.04))
    ]  # fmt: skip
    # Benjamini and Yekutieli: p·(3/rank)·(1 + 1/2 + 1/3), not above that of the next rank. Without
    # the sum of the harmonic series all three would be significant.
    found = seeds._corrected(rows)
    assert [row["p"] for row in found] == pytest.approx([0.055, 0.055, 0.22 / 3])
    assert not any(row["significant"] for row in found)
