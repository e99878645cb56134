"""Evaluations: cells, seeds, verdicts, documents."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from waterfill.errors import InputError
from waterfill.evaluation import api, suites
from waterfill.evaluation.api import evaluate
from waterfill.evaluation.plan import Plan, Subject
from waterfill.papers import jobs
from waterfill.papers.measures.links import queue_max
from waterfill.runs import pool
from waterfill.runs.backends import run
from waterfill.runs.result import to_json
from waterfill.scenario.loading import load


def by_id(document):
    return {criterion.id: criterion for criterion in document.criteria}


def test_criteria_are_in_the_order_of_their_sections(suite):
    assert [one.content.section for one in suites.load(suite).criteria] == ["2.9", "2.10", "2.11"]


def test_cells_have_a_verdict_each_and_criteria_the_verdict_of_all(suite):
    found = by_id(evaluate("cubic", suite=suite, seeds=1).document)
    assert found["queue"].verdict == "mixed"
    grid = [cell for cell in found["queue"].cells if not cell.added]
    assert [cell.verdict for cell in grid] == ["meets", "fails"]
    small, large = (cell.limits[0].value for cell in grid)
    assert small == pytest.approx(5 * 1.5, rel=0.3)
    assert large > 20
    assert found["real-time"].verdict == "not evaluated"
    assert found["real-time"].reason == "no model of a call"


def test_a_boundary_between_whole_numbers_is_found_where_the_first_middle_is_whole(suite):
    path = suite / "queue.toml"
    path.write_text(path.read_text().replace('"100 packets"', '"20 packets"'))
    (found,) = by_id(evaluate("cubic", suite=suite, seeds=1).document)["queue"].boundaries
    assert (found.low, found.high) == ("12 packets", "14 packets")  # 20 kB are 13.3 packets


def test_a_limit_of_the_rival_is_a_factor_of_the_rivals_own_run(suite):
    found = by_id(evaluate("cubic", suite=suite, seeds=2).document)["harm"]
    assert [cell.values_["rival"] for cell in found.cells] == ["cubic", "window"]
    for cell in found.cells:
        (limit,) = cell.limits
        assert limit.limit == pytest.approx(0.5 * limit.others[cell.values_["rival"]])
    assert found.cells[0].limits[0].value == found.cells[0].limits[0].others["cubic"]


def test_the_same_seeds_give_the_same_bytes_with_any_cache_threads_and_order_of_runs(
    suite, monkeypatch
):
    texts, kept = [], []
    for threads, cached in [(2, False), (1, False), (2, True), (2, True)]:
        monkeypatch.setattr(pool, "cpus", lambda threads=threads: threads)
        order = random.Random(len(kept))
        monkeypatch.setattr(jobs, "_work", lambda _, order=order: order.random())
        kept.append(0)

        def count(_: object, found: int) -> None:
            kept[-1] += found

        found = evaluate("cubic", suite=suite, cached=cached, planned=count)
        texts.append(to_json(found.document))
    assert texts == texts[:1] * 4
    assert kept[:2] == [0, 0]
    assert kept[3] > 0


def test_a_cells_file_repeats_its_run(suite, tmp_path):
    found = evaluate("cubic", suite=suite, seeds=2)
    found.write(tmp_path / "out")
    cell = by_id(found.document)["queue"].cells[1]
    scenario = load(tmp_path / "out" / cell.file)
    results = [run(scenario, seed=seed) for seed in cell.seeds]
    queues = [queue_max(result, link="l", start_s=0.0, stop_s=100.0) for result in results]
    assert [1e3 * value for value in cell.limits[0].values_] == pytest.approx(queues)


def test_quick_runs_the_cells_of_its_grid_with_its_overrides(suite):
    plan = evaluate("cubic", suite=suite, quick=True)
    (cell,) = plan.cells["queue"]
    assert cell.values == {"link.l.buffer": "5 packets"}
    assert cell.scenarios["law"].duration == 2.0
    assert by_id(plan.document)["queue"].cells[0].seeds == [1]


def plan(suite, **options):
    subject = Subject("cubic", ("sack",), **options)
    loaded = suites.load(suite)
    return Plan(loaded, subject), {one.id: one for one in loaded.criteria}


def test_flows_of_all_runs_have_jitter(suite):
    planned, criteria = plan(suite)
    (cell,) = planned.cells(criteria["harm"])
    flows = [flow for scenario in cell.scenarios.values() for flow in scenario.flow]
    assert len(flows) == 6
    assert all(flow.rtt_jitter and flow.start_jitter for flow in flows)


def test_recovery_is_that_of_the_law_alone(suite):
    planned, criteria = plan(suite, recovery="quic")
    (cell,) = planned.cells(criteria["harm"])
    found = {role: [flow.recovery for flow in one.flow] for role, one in cell.scenarios.items()}
    assert found == {"law": ["quic", None], "reference": [None, None], "rival": [None, None]}


def test_equal_runs_run_once_and_further_seeds_add_runs_of_new_seeds(suite):
    rounds = []
    evaluate(
        "cubic", suite=suite, cached=False, quick=True, only=["queue", "harm"], seeds=2,
        planned=lambda runs, kept: rounds.append((len(runs), kept)),
    )  # fmt: skip
    # Each seed: the queue; next to cubic; next to window, and window next to window.
    assert rounds == [(8, 0)]
    rounds.clear()
    file = suite / "scenarios" / "alone.toml"
    file.write_text(file.read_text().replace("[[flow]]", "loss = 0.02\n[[flow]]"))
    text = (suite / "queue.toml").read_text().replace("limit = 20", "limit = 15")
    (suite / "queue.toml").write_text(text.replace('"5 packets", "100', '"100'))
    evaluate(
        "cubic", suite=suite, cached=False, only=["queue"], precision=0.001,
        planned=lambda runs, kept: rounds.append((len(runs), kept)),
    )  # fmt: skip
    assert rounds[:2] == [(2, 0), (1, 0)]


def test_a_limit_with_where_applies_to_these_cells(suite):
    file = suite / "queue.toml"
    more = file.read_text().partition("[[limit]]")[2].replace("largest-queue", "other")
    where = 'where = { "link.l.buffer" = ["100 packets"] }'
    file.write_text(f"{file.read_text()}\n[[limit]]{more}\n{where}\n")
    planned, criteria = plan(suite)
    limits = [[claim.id for claim in one.claims] for one in planned.cells(criteria["queue"])]
    assert limits == [["largest-queue"], ["largest-queue", "other"]]


@pytest.mark.parametrize("names", [["2.10"], ["queue"]])
def test_only_selects_criteria_by_id_or_section(suite, names):
    document = evaluate("cubic", suite=suite, quick=True, only=names).document
    assert [one.id for one in document.criteria] == ["queue"]


def test_a_law_that_cannot_run_a_cell_is_not_evaluated(suite):
    scenario = suite / "scenarios" / "alone.toml"
    scenario.write_text(scenario.read_text() + "ecn = true\n")
    found = by_id(evaluate("window", suite=suite, seeds=1, quick=True).document)["queue"]
    assert found.verdict == "not evaluated"
    assert "window does not react to marks" in (found.reason or "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recovery": "rak"}, 'recovery: unknown value "rak", did you mean "rack"?'),
        ({"routers": "none"}, "no effect on cubic"),
        ({"seeds": 0}, "auto or 1 to 10000, got 0"),
        ({"precision": 1.5}, "below 100 %, got 150 %"),
        ({"against": ["cubicc"]}, 'unknown protocol "cubicc", did you mean "cubic"?'),
        ({"set": ["link.x.rate=1"]}, "link.x"),
    ],
)
def test_wrong_options_are_one_sentence(suite, options, message):
    with pytest.raises(InputError) as caught:
        evaluate("cubic", suite=suite, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("queue_max", "queue_maxx", 'measure: unknown measure, did you mean "queue_max"?'),
        ('unit = "kB"', 'unit = "ms"', "unit: must be B or kB or MB, got"),
        ("alone.toml", "none.toml", "scenario: no such file in scenarios/"),
        ("limit = 20", "limits = 20", "unknown key"),
        ('link = "l"', 'link = "m"', 'limit.largest-queue.args.link: unknown link "m"'),
        ("[grid]", 'set = ["link.l.bufer=9"]\n[grid]', "link.l.bufer: unknown key"),
        ('"5 packets", "100', '"5 pkts", "100', "link.l.buffer: "),
        ("[grid]", 'set = ["nonsense"]\n[grid]', "set: must be KEY=VALUE"),
    ],
)
def test_a_wrong_criterion_names_file_and_key_before_the_runs(suite, before, after, message):
    file = suite / "queue.toml"
    file.write_text(file.read_text().replace(before, after, 1))
    with pytest.raises(InputError) as caught:
        evaluate("cubic", suite=suite, seeds=1, planned=lambda *_: pytest.fail("ran"))
    assert "queue.toml" in str(caught.value)
    assert message in str(caught.value)


def test_the_source_of_a_limit_may_be_a_flow(suite):
    scenario, file = suite / "scenarios" / "alone.toml", suite / "queue.toml"
    scenario.write_text(scenario.read_text() + 'size = "100 kB"\n')
    text = file.read_text().replace('unit = "kB"', 'unit = "s"')
    text = text.replace('"queue_max"', '"completion"')
    text = text.replace(
        'link = "l", start_s = 0.0, stop_s = 100.0', 'source = "law", percentile = 50'
    )
    file.write_text(text)
    found = by_id(evaluate("cubic", suite=suite, quick=True, only=["2.10"]).document)["queue"]
    assert found.verdict == "meets"


def test_a_suite_with_more_seeds_than_auto_runs_is_refused(suite):
    file = suite / "suite.toml"
    file.write_text(file.read_text().replace("seeds = 2", "seeds = 99"))
    with pytest.raises(InputError, match=r"suite\.toml: seeds: .*10"):
        suites.load(suite)


def test_an_unknown_suite_is_refused():
    with pytest.raises(InputError, match='unknown suite "nosuch"'):
        suites.load(Path("nosuch"))
    assert api.DEFAULT_SUITE


def test_only_takes_ids_titles_and_sections_with_all_below_them():
    suite = suites.load("rfc9743")

    def ids(*only: str) -> list[str]:
        return [one.id for one in suites.select(suite, only).criteria]

    below = [one.id for one in suite.criteria if one.content.section.startswith("5.1.")]
    assert ids("5.1") == below
    assert ids("Bufferbloat") == ids("5.1.2") == ["5.1.2-bufferbloat"]
    assert len(below) > 5
    with pytest.raises(InputError, match=r'unknown criterion "9.9"; --list prints all'):
        ids("9.9")
    with pytest.raises(InputError, match='did you mean "bufferbloat"'):
        ids("bufferblaot")
