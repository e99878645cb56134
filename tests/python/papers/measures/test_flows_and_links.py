"""Tests of every measure on samples whose answer is worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

import synthetic
from waterfill.papers.measures import flows, links
from waterfill.papers.measures.registry import MEASURES
from waterfill.runs.result import Result

MBIT = 1e6


def run_of(rate_mbps: Sequence[float], step_s: float = 0.1, **links: Any) -> Result:
    """One flow `f` with these rates; links as given, or one idle link."""
    idle = {"link": {"utilization": [0.0] * len(rate_mbps)}}
    return synthetic.result({"f": [r * MBIT for r in rate_mbps]}, links or idle, step_s)


def test_rate_over_takes_the_samples_after_start_up_to_stop():
    # Samples end at 0.1, 0.2 … 0.5 s; (0.1, 0.3] holds the second and the third.
    run = run_of([9, 1, 2, 9, 9])
    assert flows.rate_over(run, flow="f", start_s=0.1, stop_s=0.3) == pytest.approx(1.5e6)


def test_rate_over_counts_missing_samples_as_zero():
    run = run_of([4, math.nan, math.nan, 4])
    assert flows.rate_over(run, flow="f", start_s=0.0, stop_s=0.4) == pytest.approx(2e6)


def test_rate_over_outside_the_run_is_unknown():
    assert flows.rate_over(run_of([1, 1]), flow="f", start_s=5.0, stop_s=6.0) is None


def test_share_error_is_the_worst_flows():
    run = synthetic.result(
        {"a": [9 * MBIT] * 4, "b": [12 * MBIT] * 4}, {"link": {"utilization": [1.0] * 4}}
    )
    shares = {"a": 10 * MBIT, "b": 10 * MBIT}
    error = flows.share_error(run, shares_bps=shares, start_s=0.0, stop_s=0.4)
    assert error == pytest.approx(0.2)


def test_start_rate_is_the_first_known_window_over_the_rtt():
    def run(*window_bytes: float) -> Result:
        idle = {"link": {"utilization": [0.0] * 3}}
        return synthetic.result({"f": [0.0] * 3}, idle, more={"window_bytes": [window_bytes]})

    rate_bps = flows.start_rate(run(math.nan, 2000.0, 9000.0), flow="f", rtt_s=0.1)
    assert rate_bps == pytest.approx(160e3)
    assert flows.start_rate(run(*[math.nan] * 3), flow="f", rtt_s=0.1) is None


def test_rise_time_is_the_end_of_the_first_sample_at_the_goal():
    run = run_of([0, 0, 5, 9, 10])
    rise_s = flows.rise_time(run, flow="f", at_s=0.1, target_bps=10 * MBIT)
    assert rise_s == pytest.approx(0.3)  # 9 Mbit/s in the sample that ends at 0.4 s


def test_rise_time_ignores_what_was_before():
    run = run_of([10, 10, 0, 0, 10])
    assert flows.rise_time(run, flow="f", at_s=0.2, target_bps=1e7) == pytest.approx(0.3)


def test_rise_time_goes_down_too():
    run = run_of([10, 10, 8, 5, 4])
    fall_s = flows.rise_time(run, flow="f", at_s=0.2, before_bps=1e7, target_bps=4e6)
    assert fall_s == pytest.approx(0.3)  # 90 % of the way from 10 to 4 is 4.6


def test_step_time_is_between_levels_of_the_flow_itself():
    # From 4 (mean of 3 and 5) to 2: 90 % of the way is 2.2, first in the sample that ends at 0.4 s.
    run = run_of([3, 5, 3, 2.1, 1.9, 2])
    windows = {"before_s": (0.0, 0.2), "after_s": (0.3, 0.6)}
    fall_s = flows.step_time(run, flow="f", at_s=0.2, **windows)
    assert fall_s == pytest.approx(0.2)
    # Back to the same 4 is never, half of the way is at once.
    back = {"before_s": (0.3, 0.6), "after_s": (0.0, 0.2)}
    assert flows.step_time(run, flow="f", at_s=0.2, **back) == math.inf
    half_s = flows.step_time(run, flow="f", at_s=0.2, **back, fraction=0.5)
    assert half_s == pytest.approx(0.1)
    late = {"before_s": (0.0, 0.2), "after_s": (5.0, 6.0)}
    assert flows.step_time(run, flow="f", at_s=0.2, **late) is None


def take_up(flow: Sequence[float], giver: Sequence[float]) -> float | None:
    rates = {"f": [r * MBIT for r in flow], "g": [r * MBIT for r in giver]}
    run = synthetic.result(rates, {"link": {"utilization": [0.0] * len(flow)}}, 0.1)
    arguments = {"at_s": 0.2, "stop_s": 0.6, "average_s": 0.0, "before_s": 0.2}
    return flows.take_up_time(run, flow="f", giver="g", **arguments)


def test_take_up_time_ends_with_the_last_sample_that_lacks_a_tenth():
    # Freed 6, 4, 4, 4 after 0.2 s; taken 2, 3, 3.7, 4: 90 % first from the sample at 0.5 s on.
    assert take_up([4, 4, 6, 7, 7.7, 8], [10, 10, 4, 6, 6, 6]) == pytest.approx(0.3)


def test_take_up_time_of_a_flow_that_follows_at_once_is_zero():
    assert take_up([4, 4, 10, 8, 8, 8], [10, 10, 4, 6, 6, 6]) == 0.0


def test_take_up_time_that_never_comes_is_infinite():
    assert take_up([4, 4, 6, 7, 7, 7], [10, 10, 4, 6, 6, 6]) == math.inf


def test_rise_time_that_never_comes_is_infinite():
    assert flows.rise_time(run_of([1, 1]), flow="f", at_s=0.0, target_bps=1e7) == math.inf


def test_rise_time_is_not_delayed_by_averaging():
    # A step at 0.5 s: the mean over 0.5 s centred on 0.7 s is the first that holds no zero.
    run = run_of([0] * 5 + [10] * 10)
    late_s = flows.rise_time(run, flow="f", at_s=0.0, target_bps=1e7, fraction=0.99, average_s=0.5)
    assert late_s == pytest.approx(0.8)
    half_s = flows.rise_time(run, flow="f", at_s=0.0, target_bps=1e7, fraction=0.5, average_s=0.5)
    assert half_s == pytest.approx(0.6)


def test_reclaimed_fraction_by_hand():
    # 4 before, 10 aimed at, 7 at the instant asked for: half of it is back.
    run = run_of([4] * 10 + [5, 6, 7, 8, 9])
    fraction = flows.reclaimed_fraction(
        run, flow="f", at_s=1.0, after_s=0.25, target_bps=1e7, average_s=0.1
    )
    assert fraction == pytest.approx(0.5)


def test_reclaimed_fraction_of_nothing_is_unknown():
    run = run_of([10] * 15)
    arguments = {"flow": "f", "at_s": 1.0, "after_s": 0.2, "target_bps": 1e7, "average_s": 0.1}
    assert flows.reclaimed_fraction(run, **arguments) is None


def settle(run: Result, **changed: Any) -> float | None:
    arguments = {"start_s": 0.0, "stop_s": 1.0, "band": 0.05, "average_s": 0.1} | changed
    return flows.settle_time(run, shares_bps={"f": 1e7}, **arguments)


def test_settle_time_is_after_the_last_sample_outside():
    # Outside at 0.1 and again at 0.4 s; inside for good from the sample that ends at 0.5 s.
    assert settle(run_of([0, 10, 10, 20, 10, 10, 10, 10, 10, 10])) == pytest.approx(0.5)


def test_settle_time_of_a_flow_that_is_there_already_is_one_average():
    assert settle(run_of([10] * 10)) == pytest.approx(0.1)
    assert settle(run_of([10] * 10), average_s=0.3) == pytest.approx(0.3)


def test_settle_time_leaves_out_means_that_begin_before_the_window():
    run = run_of([0] * 5 + [10] * 5)
    assert settle(run, start_s=0.5, average_s=0.2) == pytest.approx(0.2)


def test_settle_time_of_a_flow_outside_at_the_end_is_infinite():
    assert settle(run_of([10] * 9 + [11])) == math.inf


@pytest.mark.parametrize(
    ("rates", "swings"),
    [
        ([0, 5, 9, 10, 10, 10], 0),  # settles from below
        ([20, 12, 10, 10, 10, 10], 0),  # settles from above
        ([0, 20, 10, 10, 10, 10], 1),  # one overshoot
        ([20, 0, 20, 0, 20, 0], 5),  # swings for good
        ([10.4, 9.6, 10.4, 9.6, 10, 10], 0),  # inside its band
    ],
)
def test_rate_swings(rates: list[float], swings: int):
    found = flows.rate_swings(
        run_of(rates), flow="f", share_bps=1e7, band=0.05, start_s=0.0, stop_s=1.0, average_s=0.1
    )
    assert found == swings


def links_of(**columns: Any) -> Result:
    length = len(next(iter(next(iter(columns.values())).values())))
    return run_of([1] * length, 0.1, **columns)


def test_queue_measures():
    run = links_of(l={"queue_bytes": [1e3, 3e3, 5e3, 7e3], "queue_max_bytes": [2e3, 9e3, 6e3, 8e3]})
    windows = [(0.0, 0.2), (0.2, 0.4)]
    assert links.queue_mean(run, link="l", windows_s=windows) == pytest.approx(6e3)
    # 6 kB of 100 Mbit/s × 48 ms = 600 kB
    share = links.queue_share(run, link="l", rtt_s=0.048, windows_s=windows)
    assert share == pytest.approx(0.01)
    assert links.queue_max(run, link="l", start_s=0.2, stop_s=0.4) == 8e3
    assert links.queue_max(run, link="l", start_s=0.0, stop_s=0.4) == 9e3
    assert links.queue_mean(run, link="l", windows_s=[(0.0, 0.2), (7.0, 8.0)]) is None


def test_peak_prominence_compares_all_links():
    run = links_of(a={"queue_max_bytes": [1, 2, 3]}, b={"queue_max_bytes": [4, 8, 2]})
    both = {"links": ["a", "b"]}
    assert links.peak_prominence(run, **both, start_s=0.1, stop_s=0.2) == pytest.approx(2.0)
    assert links.peak_prominence(run, **both, start_s=0.0, stop_s=9.0) is None
    only = links.peak_prominence(run, links=["a"], start_s=0.1, stop_s=0.2)
    assert only == pytest.approx(2 / 3)


def test_arrival_excess_is_served_and_queued():
    # A full link of 100 Mbit/s whose queue grows by 250 kB in 0.1 s, twice: 20 Mbit/s more.
    queue = [0, 0, 250e3, 500e3, 500e3]
    run = links_of(l={"utilization": [0.5, 1, 1, 1, 1], "queue_bytes": queue})
    window = {"link": "l", "at_s": 0.1, "stop_s": 0.5}
    assert links.arrival_excess(run, **window, rtt_s=0.2) == pytest.approx(0.2)
    assert links.arrival_excess(run, **window, rtt_s=0.9) is None


def test_utilization_measures():
    run = links_of(l={"utilization": [0.0, 0.5, 0.9, 0.95, 0.85, 0.9]})
    over = links.utilization_over(run, link="l", start_s=0.2, stop_s=0.6)
    assert over == pytest.approx(0.9)
    assert links.fill_time(run, link="l", at_s=0.1, utilization=0.9) == pytest.approx(0.2)
    assert links.fill_time(run, link="l", at_s=0.1, utilization=0.99) == math.inf
    error = {"link": "l", "target": 0.9, "windows_s": [(0.2, 0.6)]}
    assert links.utilization_error(run, average_s=0.1, **error) == pytest.approx(0.05 / 0.9)
    # Means of two samples that lie inside the window: 0.925, 0.9, 0.875.
    assert links.utilization_error(run, average_s=0.2, **error) == pytest.approx(0.025 / 0.9)


def switches(a: list[float], b: list[float], average_s: float = 0.1) -> float | None:
    run = links_of(a={"maxnet_price": a}, b={"maxnet_price": b})
    return links.bottleneck_switches(run, flow="f", start_s=0.0, stop_s=9.0, average_s=average_s)


def test_bottleneck_switches_count_changes_of_the_highest_price():
    assert switches([2, 2, 2, 2], [1, 1, 3, 3]) == 1
    assert switches([2, 2, 2, 2], [1, 3, 1, 3]) == 3
    assert switches([2, 2, 2, 2], [1, 1, 1, 1]) == 0


def test_bottleneck_switches_of_a_touch_disappear_in_the_mean():
    assert switches([2, 2, 2, 2, 2, 2], [1, 1, 2.5, 1, 1, 1], average_s=0.3) == 0


def test_bottleneck_switches_need_prices():
    run = links_of(a={"utilization": [1.0, 1.0]})
    arguments = {"flow": "f", "start_s": 0.0, "stop_s": 1.0, "average_s": 0.1}
    assert links.bottleneck_switches(run, **arguments) is None


def test_a_name_that_the_run_lacks_is_an_error():
    with pytest.raises(KeyError):
        flows.rate_over(run_of([1]), flow="g", start_s=0.0, stop_s=1.0)
    with pytest.raises(KeyError):
        links.queue_max(run_of([1]), link="nowhere", start_s=0.0, stop_s=1.0)


def test_every_measure_says_what_it_is():
    for name, measure in MEASURES.items():
        assert measure.function.__doc__, name
        assert measure.dimension in ("s", "1/s", "bit/s", "bytes", "ratio", "count")
