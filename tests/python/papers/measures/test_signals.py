"""Measures and plots of sampled columns, on samples written by hand."""

from __future__ import annotations

import math

import pytest

import synthetic
from waterfill.papers.figures import PLOTS
from waterfill.papers.measures import signals
from waterfill.runs.result import Result

WHICH = {"which": "links", "name": "l", "column": "queue_max_bytes"}


@pytest.fixture
def run() -> Result:
    # Samples end at 0.1, 0.2 … 1.0 s.
    rate = [10e6, 10e6, 10e6, 10e6, 10e6, 4e6, 8e6, 10e6, 10e6, 12e6]
    peak = [1e3, 1e3, 1e3, 1e3, 1e3, 9e3, 5e3, 2e3, 1e3, 1e3]
    links = {"l": {"utilization": [0.5] * 10, "queue_max_bytes": peak, "queue_bytes": peak}}
    return synthetic.result({"f": rate}, links)


def test_mean_and_spread_of_a_window(run):
    assert signals.signal_mean(run, **WHICH, start_s=0.5, stop_s=0.7) == pytest.approx(7e3)
    spread = signals.signal_spread(run, **WHICH, start_s=0.5, stop_s=0.7)
    assert spread == pytest.approx(2e3 / 7e3)
    assert signals.signal_spread(run, **WHICH, start_s=0.0, stop_s=0.5) == 0


def test_error_is_of_the_mean_and_has_no_sign(run):
    window = {**WHICH, "start_s": 0.5, "stop_s": 0.7}
    assert signals.signal_error(run, **window, value=8e3) == pytest.approx(1 / 8)
    assert signals.signal_error(run, **window, value=5e3) == pytest.approx(2 / 5)
    assert signals.signal_error(run, **(window | {"column": "n"}), value=1.0) is None


def test_presence_and_growth_in_a_window(run):
    counted = {"which": "links", "name": "l", "column": "n", "start_s": 0.4, "stop_s": 1.0}
    grown = synthetic.result({"f": [1e6] * 10}, {"l": {"n": [0.0] * 6 + [3.0, 6.0, 9.0, 12.0]}})
    assert signals.signal_presence(grown, **counted) == pytest.approx(4 / 6)
    assert signals.count_rate(grown, **(counted | {"start_s": 0.6})) == pytest.approx(30)
    assert signals.count_rate(grown, **counted) == pytest.approx(24)
    assert signals.count_rate(grown, **(counted | {"start_s": 0.9})) is None
    assert signals.signal_presence(run, **counted) is None


def test_dip_is_of_the_least_sample_after(run):
    rate = {"which": "flows", "name": "f", "column": "rate_bps"}
    assert signals.signal_dip(run, **rate, at_s=0.5, stop_s=1.0, before_s=0.5) == pytest.approx(0.4)


def test_settling(run):
    asked = {**WHICH, "value": 1e3, "at_s": 0.5, "stop_s": 1.0}
    assert signals.signal_settle(run, **asked, band=0.1) == pytest.approx(0.4)
    assert signals.signal_settle(run, **(asked | {"value": 3e3}), band=0.1) == math.inf
    clear = signals.queue_clears(run, link="l", at_s=0.5, stop_s=1.0, most_bytes=2e3)
    assert clear == pytest.approx(0.3)


def test_rates_that_swing(run):
    window = {"flow": "f", "start_s": 0.5, "stop_s": 1.0, "average_s": 0.0}
    assert signals.rate_min(run, **window) == 4e6
    assert signals.rate_max(run, **window) == 12e6
    assert signals.rate_span(run, **window, of_bps=10e6) == pytest.approx(0.8)
    assert signals.rate_excess(run, **window, share_bps=10e6) == pytest.approx(0.2)
    assert signals.rate_error(run, **window, share_bps=10e6) == pytest.approx(0.6)
    assert signals.rate_min(run, **(window | {"average_s": 0.2})) == pytest.approx(6e6)


def test_what_sources_ask_for_is_their_sum_over_the_links_rate(run):
    # Against each other: 60 and 20 Mbit/s of swing leave 40 of a link of 100.
    asked = [[50e6] * 5 + [20e6, 80e6] * 2 + [20e6], [50e6] * 5 + [60e6, 40e6] * 2 + [math.nan]]
    queue = {"l": {"queue_bytes": [0.0] * 10}}
    rates = {"f": [1e6] * 10, "g": [1e6] * 10}
    paced = synthetic.result(rates, queue, more={"pacing_bps": asked})
    window = {"link": "l", "start_s": 0.5, "stop_s": 0.9}
    assert signals.asked_span(paced, **window) == pytest.approx(0.4)
    # Without a sample a source asks for nothing: 20 at the last, 120 before.
    assert signals.asked_span(paced, **(window | {"stop_s": 1.0})) == pytest.approx(1.0)
    assert signals.asked_span(paced, **(window | {"start_s": 0.0, "stop_s": 0.5})) == 0
    assert signals.asked_span(run, **window) is None
    with pytest.raises(KeyError):
        signals.asked_span(paced, **(window | {"link": "m"}))


def test_a_column_of_another_protocol_is_nothing(run):
    price = {"which": "flows", "name": "f", "column": "maxnet_price"}
    assert signals.price_mean(run, **price, start_s=0.0, stop_s=1.0) is None


def test_an_unknown_name_is_an_error(run):
    with pytest.raises(KeyError):
        signals.rtt_max(run, flow="g", start_s=0.0, stop_s=1.0)


def test_panels_draw_each_line_once(run):
    line = {"run": "a", "which": "flows", "name": "f", "column": "rate_bps", "label": "F"}
    panels = [{"y_label": "rate", "unit": 1e6, "lines": [line]}, {"y_label": "q", "lines": []}]
    figure = PLOTS["signals"].function({"a": run}, panels=panels)
    assert [len(axis.lines) for axis in figure.axes] == [1, 0]
    assert max(figure.axes[0].lines[0].get_ydata()) == 12.0
