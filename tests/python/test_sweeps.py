"""Measures over several runs, on measures that answer by hand."""

from __future__ import annotations

from waterfill import measures, sweeps


def test_measures_over_runs(monkeypatch):
    by_hand = measures.Measure(
        lambda run, factor=1.0: None if run is None else run * factor, "ratio"
    )
    monkeypatch.setitem(measures.MEASURES, "by_hand", by_hand)
    runs = {"a": 2.0, "b": 6.0, "c": 3.0, "none": None, "zero": 0.0}
    every = {"measure": "by_hand", "of": ["a", "b", "c"], "args": {"factor": 10.0}}
    assert sweeps.smallest_of(runs, **every) == 20.0
    assert sweeps.largest_of(runs, **every) == 60.0
    missing = {"measure": "by_hand", "of": ["a", "none"], "args": {}}
    assert sweeps.smallest_of(runs, **missing) is None
    assert sweeps.largest_of(runs, **missing) is None
    assert sweeps.ratio(runs, measure="by_hand", of="b", to="a", args={}) == 3.0
    assert sweeps.ratio(runs, measure="by_hand", of="b", to="zero", args={}) == float("inf")
    assert sweeps.ratio(runs, measure="by_hand", of="b", to="none", args={}) is None
