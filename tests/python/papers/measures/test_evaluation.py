"""Measures of the evaluation suites on samples whose answer is worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import synthetic
from waterfill.contract.summary import TrafficSummary
from waterfill.papers.measures import evaluation
from waterfill.runs.result import Result

MBIT = 1e6


def run_of(
    *, step_s: float = 0.1, rates: Mapping[str, Sequence[float]] | None = None, **link: Any
) -> Result:
    """Flows with these rates (Mbit/s) on one link of 100 Mbit/s with these columns."""
    rates = rates or {"f": [1.0] * len(next(iter(link.values())))}
    first = next(iter(rates.values()))
    columns = link or {"utilization": [0.0] * len(first)}
    bps = {name: [rate * MBIT for rate in listed] for name, listed in rates.items()}
    return synthetic.result(bps, {"link": columns}, step_s)


def test_queueing_delay_is_a_percentile_of_the_queues_time_to_drain():
    # 12.5 kB take 1 ms at 100 Mbit/s; the median of 1, 2, 3, 4 and 9 ms is 3 ms.
    run = run_of(queue_bytes=[12_500, 112_500, 25_000, 50_000, 37_500])
    assert evaluation.queueing_delay(run, link="link", percentile=50) == pytest.approx(0.003)
    assert evaluation.queueing_delay(
        run, link="link", percentile=100, start_s=0.2, stop_s=0.5
    ) == pytest.approx(0.004)


def test_queueing_delay_follows_a_capacity_that_changes():
    run = run_of(queue_bytes=[12_500, 12_500], capacity_bps=[100e6, 10e6])
    assert evaluation.queueing_delay(run, link="link", percentile=100) == pytest.approx(0.01)


def test_queueing_delay_ignores_a_link_that_is_down():
    run = run_of(queue_bytes=[12_500, 12_500], capacity_bps=[100e6, 0.0])
    assert evaluation.queueing_delay(run, link="link", percentile=100) == pytest.approx(0.001)


def test_packets_per_rtt_counts_all_packets_from_the_start_of_the_flow():
    run = run_of(utilization=[0.0])
    flow = run.summary.flows[0]
    flow["start_s"], flow["stop_s"], flow["packets_sent"] = 1.0, 2.0, 50
    assert evaluation.packets_per_rtt(run, group="f") == pytest.approx(0.5)  # 100 RTTs of 10 ms


def test_lost_between_adds_the_queues_drops_and_the_wires():
    run = run_of(drops=[9, 1, 2, 9], lost=[9, 0, 4, 9])
    assert evaluation.lost_between(run, link="link", start_s=0.1, stop_s=0.3) == 7
    assert evaluation.lost_between(run, link="link", start_s=5.0, stop_s=6.0) is None


def test_restart_queue_is_the_peak_from_the_first_use_on():
    # Samples of 0.1 s. The link is idle in (0.2, 0.4] and used again from then on.
    run = run_of(utilization=[1, 1, 0, 0, 1, 1, 1], queue_max_bytes=[99, 99, 0, 0, 3, 7, 50])
    assert evaluation.restart_queue(run, link="link", at_s=0.2, within_s=0.2) == 7
    assert evaluation.restart_queue(run, link="link", at_s=0.7, within_s=0.2) is None


def test_group_loss_leaves_out_retransmissions_in_vain_and_resent_share_does_not():
    run = run_of(utilization=[0.0])
    flow = run.summary.flows[0]
    flow["packets_sent"], flow["retransmissions"], flow["spurious_retransmissions"] = 200, 30, 10
    assert evaluation.group_loss(run, group="f") == pytest.approx(0.1)
    assert evaluation.resent_share(run, group="f") == pytest.approx(0.15)


def two_flows(rates: Sequence[float]) -> Result:
    """Two flows of the group `g` with these rates (Mbit/s), each with a share of 2 Mbit/s."""
    run = run_of(rates={"a": [1.0], "b": [1.0]}, utilization=[0.0])
    for flow, rate in zip(run.summary.flows, rates, strict=True):
        flow["group"], flow["rate_bps"] = "g", rate * MBIT
    return run


def test_smallest_share_is_the_worst_flows():
    assert evaluation.smallest_share(two_flows([3.0, 0.5]), group="g") == pytest.approx(0.25)


def test_jain_of_one_flow_with_all_is_one_half():
    assert evaluation.jain(two_flows([4.0, 0.0]), group="g") == pytest.approx(0.5)
    assert evaluation.jain(two_flows([4.0, 4.0]), group="g") == pytest.approx(1.0)
    assert evaluation.jain(two_flows([3.0, 1.0]), group="g") == pytest.approx(0.8)


def test_longest_starvation_is_the_longest_time_below_a_tenth_of_the_share():
    # The share is 2 Mbit/s. Samples of 0.1 s: one is low, then three in a row are.
    rates = {"f": [2, 0.1, 2, 0.1, 0, 0.1, 2, 2]}
    run = run_of(rates=rates)
    assert evaluation.longest_starvation(run, group="f", average_s=0.1) == pytest.approx(0.3)
    # Means of two samples: only two of them are low, and they cover three samples.
    assert evaluation.longest_starvation(run, group="f", average_s=0.2) == pytest.approx(0.3)


def test_longest_starvation_is_zero_without_any():
    assert evaluation.longest_starvation(run_of(rates={"f": [1.0] * 20}), group="f") == 0.0


def test_a_group_that_does_not_exist_is_a_wrong_name():
    run = run_of(utilization=[0.0])
    for measure in (evaluation.group_loss, evaluation.jain, evaluation.packets_per_rtt):
        with pytest.raises(KeyError):
            measure(run, group="none")


def test_completion_counts_a_flow_that_has_not_ended_as_infinite(monkeypatch: pytest.MonkeyPatch):
    import pyarrow as pa

    table = pa.table({"source": ["s"] * 4 + ["t"], "completion_s": [1.0, 4.0, 2.0, None, 9.0]})
    monkeypatch.setattr(Result, "transfers", property(lambda _: table))
    run = run_of(utilization=[0.0])
    assert evaluation.completion(run, source="s", percentile=50) == 4.0  # the higher of two
    assert evaluation.completion(run, source="s", percentile=99) == math.inf
    with pytest.raises(KeyError):
        evaluation.completion(run, source="none", percentile=50)


def test_traffic_loss_is_what_did_not_arrive():
    run = run_of(utilization=[0.0])
    run.summary["traffic"] = [
        TrafficSummary(
            name="media", kind="cbr", rate_bps=1e6, packets_sent=200, packets_received=190
        )
    ]
    assert evaluation.traffic_loss(run, source="media") == pytest.approx(0.05)
