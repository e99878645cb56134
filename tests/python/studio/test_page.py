"""A session's choices and the HTML of them: sliders, buttons, the drawn network, the replay."""

from __future__ import annotations

import json
import re
import unicodedata

import numpy as np
import pytest
import tomllib

from waterfill.studio import (
    animation,
    chart,
    controls,
    drawn,
    equations,
    filling,
    page,
    panels,
    shipped,
    topology,
)
from waterfill.studio.answer import answer
from waterfill.studio.controls import Choice, Slider
from waterfill.studio.session import ACTIONS, SHOW, Session
from waterfill.studio.settings import DRAWN, Settings, from_query, known

NONE = dict.fromkeys(ACTIONS, 0)


def shown(session: Session) -> tuple[list[Slider | Choice], dict[str, object]]:
    found = session.controls()
    at = {c.key: c.steps[c.start].shown if isinstance(c, Slider) else c.start for c in found}
    return found, at


def chosen(session: Session, **changed: str) -> dict[str, str]:
    return {one.key: one.start for one in session.selects()} | changed


@pytest.mark.parametrize("name", shipped.names())
def test_sliders_begin_where_the_scenario_is_and_every_step_is_accepted(name):
    session = Session(Settings(name))
    scenario = session.scenario()
    for one in session.controls():
        if isinstance(one, Slider):
            if not one.key.startswith("params."):
                ends = (one.steps[0].value, one.steps[-1].value)
                for value in ends:
                    assert Settings(name).with_set(one.key, value).load()
            assert len({step.shown for step in one.steps}) == len(one.steps)
    first = controls.of_link(scenario, scenario.link[0].name)[0]
    assert first.steps[first.start].shown == pytest.approx(scenario.link[0].rate / 1e6)


def test_parameters_that_the_core_refuses_are_no_steps():
    scenario = Settings("dumbbell").load()
    found = {one.key: one for one in controls.of_protocol(scenario, "maxnet")}
    mu = found["params.maxnet.mu"]
    assert isinstance(mu, Slider)
    assert max(step.shown for step in mu.steps) <= 1
    assert found["params.maxnet.average"].start == "exponential"
    assert controls.symbol("alpha") == "α"


def test_a_moved_slider_sets_its_key_only():
    session = Session(Settings("parking-lot"))
    found, at = shown(session)
    rate = next(one for one in found if one.key == "link.link1.rate")
    assert isinstance(rate, Slider)
    step = rate.steps[rate.start + 1]
    assert not session.move(at | {rate.key: step.shown}, found)
    assert session.settings.sets == ((rate.key, step.value),)
    # Another link needs other sliders; nothing is set by that.
    found, at = shown(session)
    assert session.move(at | {"link": "link2"}, found)
    assert session.link == "link2"
    assert len(session.settings.sets) == 1


def test_lists_choose_page_tour_scenario_and_protocol():
    session = Session()
    session.select(chosen(session, show=SHOW["tours"], tour="What a price is"))
    assert (session.show, session.current_tour().name) == ("tours", "price")
    assert session.select(chosen(session, scenario="wan", protocol="rcp", on="sim"))
    assert (session.settings.scenario, session.settings.protocol) == ("wan", "rcp")
    assert 'data-show="tours"' in page.results(session)


def test_a_run_is_pinned_beside_the_next_and_reset():
    session = Session(Settings("dumbbell", sets=(("link.bottleneck.rate", "50 Mbit/s"),)))
    session.act(NONE | {"pin": 1})
    session.choose(Settings("dumbbell", "rcp"))
    html = page.results(session)
    assert "A, pinned: dumbbell, maxnet, link.bottleneck.rate = 50 Mbit/s" in html
    assert "B, now: dumbbell, rcp" in html
    assert from_query(session.query()) == (session.settings, session.pinned)
    assert session.act(NONE | {"pin": 1, "reset": 1})
    assert session.settings.sets == ()
    session.act(NONE | {"pin": 2, "reset": 1})
    assert session.pinned is None
    session.act(NONE | {"pin": 2, "reset": 1, "whole": 1})
    assert session.answer().ran_s == session.answer().whole_s


def test_two_runs_have_common_axes():
    longer = answer(Settings("dumbbell", sets=(("duration", "60 s"),)), whole=True)
    shorter = answer(Settings("dumbbell", sets=(("link.bottleneck.rate", "300 Mbit/s"),)))
    a, b = (panels.all_charts(given.result)[0] for given in (longer, shorter))
    assert a.method != b.method  # means of other intervals, and the same quantity
    one, other = chart.on_common_axes(a, b)
    assert one.x_range == other.x_range == (0.0, 60.0)
    assert one.y_range == other.y_range
    assert one.y_range[1] >= max(np.nanmax(band.high) for band in [*a.bands, *b.bands])
    price = panels.all_charts(shorter.result)[2]
    left, right = chart.on_common_axes(a, price)
    assert left.x_range == right.x_range
    assert (left.y_range, right.y_range) == (a.y_range, price.y_range)


def test_the_drawing_names_traffic_without_congestion_control():
    assert "20 Mbit/s CBR on bottleneck from 20 s<" in topology.draw(Settings("dumbbell").load())


def test_a_wrong_setting_is_one_sentence_on_the_page():
    session = Session(Settings("dumbbell", "maxnet", (("link.bottleneck.rate", "60 Mbps"),)))
    html = page.results(session)
    assert 'role="alert"' in html
    assert "60 Mbit/s" in html
    assert session.controls() == []
    opened, wrong = Session.begin({"scenario": "<b>"})
    assert opened.settings == Settings()
    assert "&lt;b&gt;" not in wrong
    assert "<b>" not in page.head("<b>")


def test_a_drawn_network_grows_and_its_fields_are_taken_over():
    session = Session(Settings().with_scenario(DRAWN))
    keys = dict.fromkeys(drawn.CHANGES, 0)
    assert session.resize(keys | {"link+": 1})
    texts = {key: text for key, (_, text) in session.fields().items()}
    assert texts["link.2.from"] == "c"
    assert texts["link.2.to"] == "d"
    assert session.draw(texts | {"flow.1.to": "d", "link.2.rate": "5 Mbit/s"})
    scenario = session.scenario()
    assert scenario.link[2].rate == 5e6
    assert scenario.flow[1].to == "d"
    assert not session.draw({"link.0.from": "a"})  # of a form that is gone
    assert session.resize(keys | {"link+": 1, "link-": 1, "flow-": 1})
    # The form is new after `fields`, so its buttons count from zero: one link more, one less.
    assert len(session.fields()) == 4 * 4
    assert "drawn" in session.query()


def test_files_are_complete(tmp_path):
    session = Session(Settings("one-link", sets=(("link.link.rate", "20 Mbit/s"),)))
    document = tomllib.loads(page.toml_file(session).decode())
    assert document["link"][0]["rate"] == "20 Mbit/s"
    assert page.svg_file(session).startswith(b"<svg xmlns")
    replay = page.animation_file(session).decode()
    assert '"REPLAY"' not in replay
    assert "https:" not in replay


def test_the_replay_is_bounded_and_of_the_run():
    given = answer(Settings("two-hops"))
    data = animation.replay(given)
    json.dumps(data, allow_nan=False)
    assert [flow["name"] for flow in data["flows"]] == ["one-hop", "both", "late"]
    assert all(len(flow["rate_mbps"]) == animation.FRAMES for flow in data["flows"])
    late = data["flows"][2]["rate_mbps"]
    assert late[animation.FRAMES // 4] == 0  # at 15 s it has not begun
    assert late[int(40 / 60 * animation.FRAMES)] > 50
    assert late[-1] == 0  # it ended at 45 s
    assert [hop[2] for hop in data["flows"][1]["path"]] == ["first", "second"]
    assert data["links"][0]["unit"] == "s"
    # At most 24 dots a second leave the sources at the run's busiest moment.
    most = max(sum(flow["packets_per_s"][i] for flow in data["flows"]) for i in range(160))
    assert most / data["per_dot"] <= 24
    assert "value" not in animation.replay(answer(Settings("two-hops", "cubic")))["links"][0]
    many = answer(Settings("one-link", sets=(("flow.others.count", "60"),)))
    assert "up to 12 links and 24 flows; this one has 1 and 61" in animation.fits(many)


@pytest.mark.parametrize("protocol", [*equations.LAWS, "bbr"])
def test_every_equation_is_drawn_and_its_parameters_exist(protocol):
    given = answer(Settings("dumbbell", protocol))
    html = equations.at(given.result, protocol, 0.5 * given.ran_s)
    if protocol in equations.LAWS:
        assert "<math" in html
        drawn_terms = set(re.findall(r'data-term="(\w+)"', html))
        moment = equations.Moment(given.result, protocol, 0.5 * given.ran_s)
        assert {t.key for t in equations.LAWS[protocol].terms(moment)} == drawn_terms
    names = {param.name for param in known()[protocol].params}
    assert set(equations.main_params(protocol)) <= names


# How a legend writes what MathML draws: a subscript, a hat, a dot.
_DRAWN = {
    **{f"<msub><mi>{a}</mi><mi>{b}</mi></msub>": text for a, b, text in (
        ("q", "0", "q₀"), ("T", "0", "T₀"), ("y", "0", "y₀"), ("x", "max", "xₘₐₓ"),
        ("w", "max", "wₘₐₓ"), ("w", "Reno", "w_Reno"),
    )},
    "<mover><mi>d</mi><mo>^</mo></mover>": "d̂",
    **{f"<mover><mi>{a}</mi><mo>˙</mo></mover>": f"{a}\u0307" for a in "prxξ"},
}  # fmt: skip


@pytest.mark.parametrize("protocol", equations.LAWS)
def test_the_legend_names_every_symbol_and_no_other(protocol):
    law = equations.LAWS[protocol]
    drawn: set[str] = set()
    for row in law.rows:
        for shape, text in _DRAWN.items():
            if shape in row:
                drawn.add(unicodedata.normalize("NFC", text))
                row = row.replace(shape, "")
        drawn |= set(re.findall("<mi>(.+?)</mi>", row))
    drawn -= {"max", "exp", "ln"}
    keys = {unicodedata.normalize("NFC", k) for key in law.symbols for k in key.split(", ")}
    explained = keys | ({"xₘₐₓ"} if "xₘₐₓ" in "".join(law.symbols.values()) else set())
    assert drawn == explained
    assert equations.legend(law.symbols) in equations.html(law, [])


def test_the_term_that_matters_is_the_one_that_moves_the_law():
    given = answer(Settings("one-link"))

    def matters(time_s: float) -> set[str]:
        terms = equations.LAWS["maxnet"].terms(equations.Moment(given.result, "maxnet", time_s))
        return {term.key for term in terms if term.matters}

    assert matters(9.9) == set()  # at rest
    assert {"fast"} <= matters(10.3)  # nine flows have come: the price jumped
    tcp = answer(Settings("xcp-and-tcp"), whole=True)
    terms = equations.LAWS["xcp"].terms(equations.Moment(tcp.result, "xcp", 30.0))
    assert {term.key for term in terms if term.matters} == {"queue"}


def test_levels_of_the_filling_end_at_max_min():
    scenario = Settings("parking-lot").load()
    network = answer(Settings("parking-lot")).result.network
    found = filling.levels(network)
    assert [level.full for level in found] == [
        ["link2"], ["link2", "link3"], ["link1", "link2", "link3"],
    ]  # fmt: skip
    assert found[-1].rates_bps["local1"] == pytest.approx(58.5e6)
    assert scenario.flow[0].name in filling.draw(network, 0)
