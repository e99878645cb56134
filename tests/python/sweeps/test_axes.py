"""Tests of axes: the values of `--grid`, `--random`, `--latin` and `--refine`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from waterfill.errors import InputError
from waterfill.sweeps import axes, measure
from waterfill.sweeps.points import Design, key_of


def test_values_keep_their_text_and_have_numbers_in_si():
    one = axes.grid("link.l.rate=10 Mbit/s, 1 Gbit/s")
    assert one.values == ("10 Mbit/s", "1 Gbit/s")
    assert one.numbers == (1e7, 1e9)
    assert (one.kind, one.unit) == ("double", "bit/s")


def test_values_of_mixed_kinds_are_texts():
    assert axes.grid("x=1 ms,2 Mbit/s").kind == "string"
    assert axes.grid("x=true,false").numbers == (True, False)
    assert axes.grid('path=["a","b"],["c"]').values == (["a", "b"], ["c"])


def test_even_values_of_a_range():
    assert axes.grid("x=0..1:5").axis().numbers == (0.0, 0.25, 0.5, 0.75, 1.0)
    one = axes.grid("x=1..100 ms:3:log").axis()
    assert one.values == ("1 ms", "10 ms", "100 ms")
    assert one.numbers == (0.001, 0.01, 0.1)
    assert axes.grid("count=1..3:3").axis().values == (1, 2, 3)
    whole = replace(axes.grid("count=1..4:7"), span=axes.Range("count", 1, 4, "", False, True))
    assert whole.axis().values == (1, 2, 3, 4)


def test_units_of_one_kind_meet_in_si():
    assert axes.span("x=100 us..1 ms") == axes.Range("x", 1e-4, 1e-3, "s", False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x", "must be KEY=VALUE"),
        ("x=", "must be KEY=VALUE"),
        ("x=1..2", "must be LOW..HIGH:N"),
        ("x=2..1:3", "LOW must be below HIGH"),
        ("x=0..1:3:log", "above 0"),
        ("x=1..2:1", "2 to 100000"),
        ("x=1 ms..2 Mbit/s:3", "units of one kind"),
        ("x=-1 ms", "x: must not be negative"),
        ("x=-1 ms,2 ms", "x: must not be negative"),
        ("x=-1e308..1.7e308:3", "must be a finite range"),
        ("x=1..1e309:3", "must be a finite range"),
        ("x=1 us..1e309 ms:3", "x: must be"),
    ],
)
def test_wrong_axes_are_said_in_one_line(text, said):
    with pytest.raises(InputError, match=said) as error:
        axes.grid(text)
    assert "\n" not in str(error.value)


def test_an_assignment_reads_back_as_its_value():
    for value in ("10 Mbit/s", "true", "3", 3, 2.5, True, ["a", "b"]):
        _, _, text = axes.assignment("k", value).partition("=")
        assert axes.parsed(text) == value


def test_draws_are_the_same_each_time_and_more_of_them_begin_alike():
    span = (axes.span("a=1..10"), axes.span("b=1..1000 ms:log"))
    few, many = (Design(ranges=span, samples=n).drawn for n in (5, 50))
    assert [one.values[:5] for one in many] == [one.values for one in few]
    assert all(1 <= number <= 10 for number in many[0].numbers)
    assert Design(ranges=span, samples=5, draw_seed=2).drawn != few


def test_a_latin_hypercube_has_one_point_in_each_stratum():
    span = (axes.span("a=0..1000"), axes.span("b=0..1000"))
    for one in Design(ranges=span, samples=20, latin=True).drawn:
        assert sorted(int(number // 50) for number in one.numbers) == list(range(20))


def test_a_design_is_the_product_of_its_axes_with_the_seed_fastest():
    design = Design((axes.grid("x=1,2"),), protocols=("p", "q"), seeds=(1, 2))
    rows = [[one.values[i] for one, i in row] for row in design.rows()]
    assert rows == [["p", 1], ["p", 2], ["q", 1], ["q", 2]]
    assert design.count == 8


def test_one_axis_for_a_key():
    with pytest.raises(InputError, match="two axes have this key"):
        Design((axes.grid("x=1,2"), axes.grid("x=3")))


def test_keys_depend_on_the_content_and_not_on_the_order():
    one = axes.grid("x=1,2")
    assert Design(identity="i").point([(one, 0)], 1).key == key_of("i", ["seed=1", "x=1"])
    keys = {key_of("i", ["x=1"]), key_of("i", ["x=2"]), key_of("j", ["x=1"])}
    assert len(keys) == 3


@pytest.mark.parametrize("text", ["x=-5..-1 ms", "x=1..1e300 ms"])
def test_drawn_values_outside_of_a_quantity_are_said_in_one_line(text):
    with pytest.raises(InputError, match="x: must "):
        Design(ranges=(axes.span(text),), samples=3)


def test_a_draw_seed_is_not_negative():
    with pytest.raises(InputError, match="draw-seed: must not be negative, got -1"):
        Design(ranges=(axes.span("x=1..2"),), samples=2, draw_seed=-1)


def test_a_column_is_named_once():
    with pytest.raises(InputError, match="a: two columns have this name"):
        measure.check(["a=flows.f.rate_bps", "a=flows.f.weight"])


def test_values_of_a_range_have_a_unit_also_where_the_dataset_keeps_text():
    assert axes.span("link.l.delay=1..20 ms").measured(5.0) == ([0.005], "s")
    assert axes.span("link.l.buffer=0.1..4 bdp").measured(0.5, 2.0) == ([0.5, 2.0], "bdp")
