"""Tests of cuts by predicted work, so that a slider has an answer at once, a link one."""

from __future__ import annotations

import pytest

from waterfill.errors import InputError
from waterfill.network import protocols, resolve
from waterfill.scenario.loading import from_dict
from waterfill.studio import answer, shipped
from waterfill.studio.settings import Settings, known


@pytest.mark.parametrize("name", shipped.names())
@pytest.mark.parametrize("protocol", ["maxnet", "rcp", "cubic"])
def test_work_is_within_the_budget_and_prediction_covers_it(name, protocol):
    settings = Settings(name, protocol=protocol)
    given = answer.answer(settings)
    engine = given.result.summary["engine"]
    assert 0 < given.ran_s <= given.whole_s
    assert given.result.summary["duration_s"] == given.ran_s
    if given.result.summary["backend"] == "sim":
        network = resolve.to_core(settings.load(), known(), "sim")
        predicted = answer.transmissions_per_s(network) * given.ran_s
        assert engine["packet_hops"] <= predicted
        assert given.ran_s == answer.MIN_S or predicted <= answer.PACKET_BUDGET
    assert f"{given.whole_s:g} s" in given.note


def test_the_fluid_answers_where_it_can():
    assert answer.choose(Settings("dumbbell", "maxnet").load()) == "fluid"
    assert answer.choose(Settings("dumbbell", "cubic").load()) == "sim"
    lossy = Settings("dumbbell", "maxnet", (("link.bottleneck.loss", "0.01"),))
    assert answer.choose(lossy.load()) == "sim"


def test_a_part_of_a_run_has_what_started_in_it():
    scenario = Settings("two-hops").load()
    part = answer.cut(scenario, 20.0)
    assert [flow.name for flow in part.flow] == ["one-hop", "both"]
    staggered = Settings("dumbbell", "cubic").load()
    assert [flow.count for flow in answer.cut(staggered, 10.3).flow] == [5, 2]
    assert answer.cut(staggered, 10.3).traffic == []
    assert answer.cut(scenario, 40.0).flow[2].stop is None


def test_a_part_without_a_flow_is_one_sentence():
    late = Settings(
        "one-link", "cubic", (("link.link.rate", "10 Gbit/s"), ("flow.first.start", "9 s"))
    )
    with pytest.raises(InputError, match="none starts in the first 1 s"):
        answer.answer(late)


def test_the_whole_run_is_there_when_asked_for():
    settings = Settings("dumbbell", "cubic", (("duration", "60 s"),))
    quick, whole = answer.answer(settings), answer.answer(settings, whole=True)
    assert quick.ran_s < whole.ran_s == 60.0
    assert "the first" in quick.note
    assert "all 60 s" in whole.note


def test_known_is_the_registry():
    assert known() == protocols.load()


def test_a_flow_that_follows_one_that_is_left_out_is_left_out_too():
    flow = {"from": "a", "to": "b", "size": "1 MB"}
    scenario = from_dict({
        "duration": "9 s", "protocol": "cubic",
        "link": [{"name": "l", "from": "a", "to": "b", "rate": "9 Mbit/s"}],
        "flow": [
            {"name": "last", "after": ["second"], **flow},
            {"name": "first", "start": "5 s", **flow},
            {"name": "second", "after": ["first"], **flow},
            {"name": "other", **flow},
        ],
    })  # fmt: skip
    assert [flow.name for flow in answer.cut(scenario, 2.0).flow] == ["other"]
    assert len(answer.cut(scenario, 6.0).flow) == 4
