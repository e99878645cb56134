"""Tests of tours: stated numbers are measured in their steps' runs; all render completely."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

import pytest

from waterfill.errors import InputError
from waterfill.scenario.loading import read_toml
from waterfill.studio import equations, numbers, tour_page, tours
from waterfill.studio.answer import Answer, answer
from waterfill.studio.numbers import Number
from waterfill.studio.session import Session
from waterfill.studio.settings import Settings
from waterfill.studio.tours import Step

STEPS = [
    pytest.param(tour, place, id=f"{tour.name}-{place + 1}")
    for tour in tours.load().values()
    for place in range(len(tour.steps))
]
_UNITS = r"Mbit/s|Gbit/s|ms|s|%|packets|°|flows"
_QUANTITY = re.compile(rf"(?<![\w.])(\d[\d. ]*?)\s?({_UNITS})(?![\w/])")


@cache
def _ran(settings: Settings) -> Answer:
    return answer(settings, whole=True)


def ran_once(step: Step) -> Answer:
    return _ran(step.settings)


def test_the_seven_tours_are_there_each_under_five_minutes():
    assert list(tours.load()) == [
        "reno", "price", "water-filling", "xcp-ixcp", "rcp-maxnet", "aecp-margin", "xcp-tcp",
    ]  # fmt: skip
    for tour in tours.load().values():
        assert tour.minutes <= 5
        # 200 words a minute, and half a minute to look at each step.
        words = sum(len(f"{s.text} {s.look} {s.question} {s.answer}".split()) for s in tour.steps)
        assert words / 200 + 0.5 * len(tour.steps) <= 5.0, tour.name


@pytest.mark.parametrize(("tour", "place"), STEPS)
def test_numbers_in_the_text_are_those_of_the_run(tour, place):
    step = tour.steps[place]
    assert step.numbers, "a step states at least one number of its run"
    given = ran_once(step)
    for name, number in step.numbers.items():
        value = numbers.measured(number, given)
        assert number.holds(value), f"{name}: the text says {number.text()}, the run {value:.6g}"
        assert number.text() in step.text


@pytest.mark.parametrize(("tour", "place"), STEPS)
def test_a_step_renders_with_what_it_shows(tour, place):
    step = tour.steps[place]
    html = tour_page.render(tour, place, ran_once(step))
    assert "{" not in step.text + step.look + step.question + step.answer
    assert set(step.show) <= set(tours.SHOWN)
    assert html.count('class="wf-card"') == len(step.show)
    assert step.question.endswith("?")
    assert step.answer
    assert f"step {place + 1} of {len(tour.steps)}" in html


@pytest.mark.parametrize(("tour", "place"), STEPS)
def test_other_quantities_in_the_text_are_of_its_scenario_or_given(tour, place):
    raw = read_toml((resources.files(tours) / f"{tour.name}.toml").read_text(encoding="utf-8"))
    entry = raw["step"][place]
    step = tour.steps[place]
    scenario = f"{step.settings.text()} {dict(step.settings.sets)}"
    known = {f"{n} {u}" for n, u in _QUANTITY.findall(scenario)}
    known |= {number.text() for number in step.numbers.values()} | set(entry.get("given", []))
    for key in ("text", "look", "question", "answer"):
        for number, unit in _QUANTITY.findall(str(entry.get(key, ""))):
            assert f"{number.strip()} {unit}" in known, f"{key}: {number} {unit}"


def test_what_is_measured_is_named():
    given = ran_once(tours.load()["price"].steps[0])
    with pytest.raises(InputError, match="unknown measure"):
        numbers.measured(Number("rates", 1.0), given)
    with pytest.raises(InputError, match="no group of flows is named"):
        numbers.measured(Number("rate", 1.0, which="none"), given)
    assert not Number("rate", 90.0, within=0.03).holds(93.0)
    assert Number("swing", 0.0, within=0.03).holds(0.02)
    assert not Number("swing", 0.0, within=0.03).holds(0.2)


def test_next_and_back_walk_through_a_tour_and_complete_it():
    session, _ = Session.begin({"show": "tours", "tour": "price", "step": "2"})
    assert session.step == 2
    session.turn({"back": 0, "next": 1})
    assert session.step == 3
    assert session.query() == "show=tours&tour=price&step=3"
    session.turn({"back": 0, "next": 2})  # past the end
    session.turn({"back": 1, "next": 2})
    assert session.step == 2
    assert "Tour complete" in tour_page.complete(session.current_tour())


def test_an_equation_is_of_the_link_that_its_step_names():
    tour = tours.load()["xcp-ixcp"]
    for place in (0, 1, 2):
        step = tour.steps[place]
        assert step.link == "first"
        given = ran_once(step)
        assert "Values of link first, and flow short." in tour_page.render(tour, place, given)
        protocol = given.result.network.flows[0].protocol
        # The busiest link is the other one, where h/d is 10 % of a full load.
        assert "link second, the busiest" in equations.at(given.result, protocol, given.ran_s)
    with pytest.raises(InputError, match="no ixcp flow crosses third"):
        equations.at(given.result, "ixcp", given.ran_s, "third")


def test_ixcp_shuffles_what_names_the_link():
    given = ran_once(tours.load()["xcp-ixcp"].steps[2])
    terms = equations.LAWS["ixcp"].terms(equations.Moment(given.result, "ixcp", 40.0, "first"))
    shuffle = next(term.text for term in terms if term.key == "shuffle")
    # γ (y − y₀): of 155 Mbit/s the 55 of the short flow.
    assert shuffle.endswith("+5.48 Mbit/s")
