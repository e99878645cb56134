"""Settings survive the link that restores them, and wrong links give one sentence."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from waterfill.errors import InputError
from waterfill.studio import drawn, shipped
from waterfill.studio.session import Session
from waterfill.studio.settings import DRAWN, Settings, from_query, to_query

CHANGED = Settings(
    "parking-lot", "xcp", (("link.link1.rate", "1 Gbit/s"), ("params.xcp.alpha", "0.3"))
)


@pytest.mark.parametrize(
    ("settings", "pinned"),
    [
        (Settings(), None),
        (CHANGED, Settings("wan", on="sim")),
        (Settings().with_scenario(DRAWN).with_set("flow.a-c.count", "3"), CHANGED),
    ],
)
def test_a_link_restores_what_was_chosen(settings, pinned):
    assert from_query(to_query(settings, pinned)) == (settings, pinned)
    # marimo gives the same as a mapping, a list where a key is repeated.
    assert from_query({"scenario": "wan", "set": ["seed=2", "name=b"], "access_token": "x"}) == (
        Settings("wan", sets=(("seed", "2"), ("name", "b"))),
        None,
    )


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("scenario=dumbel", 'did you mean "dumbbell"'),
        ("on=kernel", 'unknown backend "kernel"'),
        ("set=rate", "must be KEY=VALUE"),
        ("scenario=drawn&link=a,b", "must have four fields"),
        ("scenario=drawn&" + "link=a,b,1 Gbit/s,1 ms&" * 13, "must have 1 to 12 rows, got 13"),
    ],
)
def test_a_wrong_link_is_one_sentence(query, message):
    with pytest.raises(InputError, match=message) as error:
        from_query(query)
    assert "\n" not in str(error.value)


def test_changes_reach_the_scenario_and_the_command():
    scenario = CHANGED.load()
    assert scenario.protocol == "xcp"
    assert scenario.link[0].rate == 1e9
    assert CHANGED.command() == (
        "waterfill run S.toml --protocol xcp --set 'link.link1.rate=1 Gbit/s' "
        "--set params.xcp.alpha=0.3"
    )
    assert CHANGED.with_set("link.link1.rate", None).load().link[0].rate == 150e6
    # Another scenario has other links; the law's parameters stay.
    assert CHANGED.with_scenario("wan").sets == (("params.xcp.alpha", "0.3"),)


def test_every_scenario_loads_and_has_a_title():
    assert {"dumbbell", "wan"} <= set(shipped.names())
    for name in shipped.names():
        assert Settings(name).load().link
        assert len(shipped.title(name)) > 10


def test_a_drawing_becomes_a_scenario():
    rows = ["a,b,10 Mbit/s,5 ms", "a,b,20 Mbit/s,5 ms", "b,c,30 Mbit/s,5 ms"]
    drawing = drawn.from_rows(rows, ["a,c,2,0 s"])
    scenario = Settings(DRAWN, drawing=drawing).load()
    assert [link.name for link in scenario.link] == ["a-b", "a-b-2", "b-c"]
    assert [(flow.name, flow.count) for flow in scenario.flow] == [("a-c", 2)]
    wrong = drawing._replace(flows=(drawing.flows[0]._replace(number="two"),))
    with pytest.raises(InputError, match=r"flow\.a-c\.count: must be a whole number"):
        Settings(DRAWN, drawing=wrong).load()


@pytest.mark.parametrize(
    "query",
    [
        {"scenario": "dumbbell", "protocol": ""},
        {"scenario": "dumbbell", "protocol": "nowhere"},
        {"scenario": "dumbbell", "set": "params.maxnet.alpha=poisson"},
        {"scenario": "dumbbell", "show": "tours", "step": "9" * 5000},
        {"scenario": DRAWN, "flow": f"a,b,{'9' * 5000},0 s"},
    ],
)
def test_a_link_with_odd_values_opens_a_page(query):
    session, wrong = Session.begin(query)
    assert not wrong
    for one in session.selects():
        assert one.start in one.words
    assert isinstance(session.controls(), list)


def test_pins_within_pins_are_left_out():
    query = "scenario=dumbbell"
    for _ in range(5):
        query = urlencode({"scenario": "dumbbell", "pin": query})
    settings, pinned = from_query(query)
    assert from_query(to_query(settings, pinned)) == (settings, pinned)
    assert pinned == Settings("dumbbell")
