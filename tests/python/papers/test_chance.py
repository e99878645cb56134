"""Claims of random scenarios: means over seeds, and the recorded range of single runs."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import synthetic
from waterfill.errors import InputError
from waterfill.papers import reproduce
from waterfill.papers.claims import loading
from waterfill.papers.claims import text as claim_text
from waterfill.papers.claims import verdict as verdicts
from waterfill.papers.claims.experiment import Experiment, seeds
from waterfill.papers.claims.schema import boundaries
from waterfill.papers.claims.verdict import judge, mean

SCENARIO = """
duration = "2 s"
protocol = "maxnet"
link = [{ name = "l", from = "a", to = "b", rate = "10 Mbit/s", delay = "5 ms", loss = 0.1 }]
flow = [{ name = "f", from = "a", to = "b" }]
"""

FILE = """
title = "Means"
seeds = 3
[short]
set = ["duration=1 s"]
[[claim]]
id = "mean"
source = "§1"
statement = "s"
measure = "rate_over"
args = { flow = "f", start_s = 0.0, stop_s = 1.0 }
unit = "Mbit/s"
paper_value = 10
tolerance = 1.0
expect = "reproduced"
"""

LINKS = {"l": {"utilization": [0.5] * 10, "queue_max_bytes": [1e4] * 10}}

RECORD = "over_seeds = { runs = 15, least = 8.5, most = 9.5 }\n"


def experiment(folder: Path, text: str = FILE) -> Experiment:
    home = folder / "paper" / "experiment"
    home.mkdir(parents=True, exist_ok=True)
    (home / "claims.toml").write_text(text, encoding="utf-8")
    (home / "scenario.toml").write_text(SCENARIO, encoding="utf-8")
    return loading.load(home / "claims.toml")


def rates(*mbit: float) -> list[dict[str, object]]:
    """Samples of one run each, with these constant rates."""
    return [{"run": synthetic.result({"f": [rate * 1e6] * 10}, LINKS)} for rate in mbit]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_seeds_of_two_seeds_have_none_in_common(count):
    assert seeds(1, count) == list(range(1, count + 1))
    used = [one for seed in range(8) for one in seeds(seed, count)]
    assert len(set(used)) == len(used)
    assert min(used) >= 0
    assert max(seeds(2**63 - 1, count) + used) < 2**63


def test_a_mean_is_of_all_runs():
    assert mean([1.0, 2.0, 6.0]) == 3.0
    assert mean([1.0, None]) is None
    assert mean([1.0, math.inf]) == math.inf
    assert mean([]) is None


def test_a_claim_is_judged_by_its_mean(tmp_path):
    """8, 9.6 and 10 Mbit/s: the first alone is outside 10 ± 1, their mean, 9.2, is inside."""
    (judged,) = judge(experiment(tmp_path), rates(8.0, 9.6, 10.0))
    assert judged.measured == pytest.approx(9.2)
    assert judged.values_ == pytest.approx([8.0, 9.6, 10.0])
    assert judged.verdict == "reproduced"


@pytest.mark.parametrize(
    ("record", "measured", "verdict"),
    [
        # 10 ± 1 has boundaries at 9 and at 11.
        ((8.5, 9.5), 9.2, "cannot be checked"),
        ((8.5, 9.5), 8.6, "cannot be checked"),
        ((10.5, 11.5), 10.6, "cannot be checked"),
        ((8.5, 11.5), 10.0, "cannot be checked"),
        # A value outside the record is judged by itself.
        ((8.5, 9.5), 9.6, "reproduced"),
        ((8.5, 9.5), 8.4, "differs"),
        ((8.5, 9.5), math.inf, "differs"),
        # Single runs that are all on one side agree with the mean.
        ((9.1, 10.9), 9.2, "reproduced"),
        ((7.0, 8.9), 8.8, "differs"),
        ((9.0, 9.0), 9.0, "reproduced"),
    ],
)
def test_the_verdict_where_single_runs_fall_on_both_sides(tmp_path, record, measured, verdict):
    least, most = record
    text = FILE + f"over_seeds = {{ runs = 15, least = {least}, most = {most} }}\n"
    (claim,) = experiment(tmp_path, text).claims
    assert verdicts.verdict(claim, measured) == verdict


@pytest.mark.parametrize(("relation", "edge"), [("<", 11.0), (">", 9.0)])
def test_a_bound_has_one_boundary(tmp_path, relation, edge):
    around = f"over_seeds = {{ runs = 15, least = {edge - 0.5}, most = {edge + 0.5} }}\n"
    text = FILE.replace("paper_value", f'relation = "{relation}"\npaper_value') + around
    (claim,) = experiment(tmp_path, text).claims
    assert (
        verdicts.verdict(claim, edge + 0.1)
        == verdicts.verdict(claim, edge - 0.1)
        == "cannot be checked"
    )
    other = 20.0 - edge
    far = text.replace(around, f"over_seeds = {{ runs = 15, least = {other}, most = {other} }}\n")
    (claim,) = experiment(tmp_path, far).claims
    assert verdicts.verdict(claim, other) == "reproduced"


def test_a_short_version_has_one_run_and_no_record(tmp_path):
    found = experiment(tmp_path, FILE + RECORD)
    assert [len(found.samples(short)) for short in (False, True)] == [3, 1]
    (judged,) = judge(found, rates(9.2), short=True)
    assert judged.verdict == "reproduced"
    (judged,) = judge(found, rates(9.2, 9.2, 9.2))
    assert judged.verdict == "cannot be checked"


def test_the_scenarios_of_a_seed(tmp_path):
    found = experiment(tmp_path)
    of_two = [sample["run"] for sample in found.samples(seed=2)]
    assert [scenario.seed for scenario in of_two] == [4, 5, 6]
    assert len({scenario.to_toml() for scenario in of_two}) == 3
    assert len({scenario.to_toml().replace("seed = 5", "seed = 4") for scenario in of_two[:2]}) == 1


def test_every_run_of_every_seed_is_run_and_written(tmp_path):
    found = experiment(tmp_path)
    ran: set[str] = set()
    done = reproduce.reproduce(
        [found], lambda _: tmp_path / "out", seed=2, progress=lambda name, _: ran.add(name)
    )
    assert ran == {f"paper/experiment seed {seed}" for seed in (4, 5, 6)}
    (judged,) = done.claims[found.path]
    assert len(set(judged.values_)) == 3
    assert judged.measured == pytest.approx(sum(judged.values_) / 3)
    folders = {path.parent.name for path in (tmp_path / "out").glob("*/flows.parquet")}
    assert folders == {"run", "run seed 5", "run seed 6"}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("runs = 1, least = 1.0, most = 2.0", "over_seeds.runs: "),
        ("runs = 5, least = 2.0, most = 1.0", "over_seeds: most must be at least 2, got 1"),
        ("runs = 5, least = 1.0", "over_seeds.most: missing"),
        ("runs = 5, least = 1.0, most = 2.0, mean = 1.5", "over_seeds.mean: unknown key"),
    ],
)
def test_a_wrong_record_is_one_line(tmp_path, record, message):
    with pytest.raises(InputError) as caught:
        experiment(tmp_path, FILE + f"over_seeds = {{ {record} }}\n")
    assert f"claim.mean.{message}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_seeds_is_one_or_more(tmp_path):
    with pytest.raises(InputError, match=r"seeds: .*got 0"):
        experiment(tmp_path, FILE.replace("seeds = 3", "seeds = 0"))


def test_the_remark_on_a_random_claim(tmp_path):
    text = FILE.replace('"reproduced"', '"cannot be checked"\nwhy = "Chance decides."') + RECORD
    (judged,) = judge(experiment(tmp_path, text), rates(9.2))
    note = "Chance decides. 15 single runs, each with its own seed: 8.5 to 9.5 Mbit/s."
    assert claim_text.remark(judged) == note


def test_the_repositorys_random_claims_are_on_record():
    """Ranges of single runs on record for all claims whose experiments take means."""
    for found in loading.experiments():
        if found.seeds == 1:
            continue
        for claim in found.claims:
            record, tolerance = claim.over_seeds, claim.tolerance_in_unit
            assert record is not None, f"{found.path}/{claim.id}"
            assert claim.paper_value is not None
            assert tolerance is not None
            around = boundaries(claim.relation, claim.paper_value, tolerance)
            assert record.spans(around) == (claim.expect == "cannot be checked"), claim.id
