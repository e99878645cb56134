"""Measures over several runs, on measures that answer by hand."""

from __future__ import annotations

import pytest

from waterfill.papers import figures
from waterfill.papers.measures import several
from waterfill.papers.measures.base import Measure
from waterfill.papers.measures.single import SINGLE


def test_measures_over_runs(monkeypatch):
    by_hand = Measure(lambda run, factor=1.0: None if run is None else run * factor, "ratio")
    monkeypatch.setitem(SINGLE, "by_hand", by_hand)
    runs = {"a": 2.0, "b": 6.0, "c": 3.0, "none": None, "zero": 0.0}
    every = {"measure": "by_hand", "of": ["a", "b", "c"], "args": {"factor": 10.0}}
    assert several.smallest_of(runs, **every) == 20.0
    assert several.largest_of(runs, **every) == 60.0
    missing = {"measure": "by_hand", "of": ["a", "none"], "args": {}}
    assert several.smallest_of(runs, **missing) is None
    assert several.largest_of(runs, **missing) is None
    assert several.ratio(runs, measure="by_hand", of="b", to="a", args={}) == 3.0
    assert several.ratio(runs, measure="by_hand", of="b", to="zero", args={}) == float("inf")
    assert several.ratio(runs, measure="by_hand", of="b", to="none", args={}) is None
    pair = {"measure": "by_hand", "of": "b", "args": {}}
    assert several.count_rate_difference(runs, to="a", **pair) == 4.0
    assert several.count_rate_difference(runs, to="none", **pair) is None


def test_a_sweep_draws_a_line_a_template_and_marks_upright(monkeypatch):
    monkeypatch.setitem(SINGLE, "by_hand", Measure(lambda run: run, "ratio"))
    at = Measure(lambda *, ms: ms * 1e-3, "s", "nothing")
    monkeypatch.setitem(SINGLE, "edge", at)
    figure = figures.sweep(
        {"a 1": 4.0, "a 2": 6.0},
        x=[1, 2, 3],
        lines={"A": "a {x}"},
        measure="by_hand",
        marks={"edge": {"measure": "edge", "args": {"ms": 2500.0}}},
        y_unit=2.0,
        x_label="x",
        y_label="y",
    )
    line, mark = figure.axes[0].lines
    assert list(line.get_ydata()) == pytest.approx([2.0, 3.0, float("nan")], nan_ok=True)
    assert list(mark.get_xdata()) == pytest.approx([2.5, 2.5])
    assert [text.get_text() for text in figure.axes[0].get_legend().texts] == ["A", "edge"]
