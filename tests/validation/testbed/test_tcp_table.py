"""Tests of the table of the kernel's TCPs: agreement, and the list of cells."""

from __future__ import annotations

import pytest

from validation.testbed import tcp_table


def run_of(rates, queue_bytes, ok=True):
    return {
        "flows": [{"group": f"f{i}", "rate_bps": r, "retransmissions": 1, "rtt_ms": {"mean": 30.0}}
                  for i, r in enumerate(rates)],
        "links": [{"queue_bytes": {"mean": queue_bytes}, "utilization": 1.0, "lost": 100}],
        "measure_s": [20.0, 120.0],
        "checks": [{"name": "processor", "ok": ok}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rates", "queue_bytes", "rate_ok", "delay_ok"),
    [
        ([50e6, 50e6], 125_000, True, True),
        ([54e6, 46e6], 137_000, True, True),  # 8 % off; 10.96 ms for 10 ms
        ([56e6, 44e6], 125_000, False, True),
        ([50e6, 50e6], 151_000, True, False),  # 12.08 ms for 10 ms: beyond 20 %
    ],
)
def test_a_cell_agrees_within_ten_per_cent_of_rate_and_twenty_of_delay(
    rates, queue_bytes, rate_ok, delay_ok
):
    found = verdict([run_of([50e6, 50e6], 125_000)], run_of(rates, queue_bytes))
    assert (found["rate_ok"], found["delay_ok"]) == (rate_ok, delay_ok)


def verdict(sims, linux):
    return tcp_table.verdict(
        [tcp_table.figures(run) for run in sims], tcp_table.figures(linux), 100e6
    )


def test_short_queues_may_differ_by_a_millisecond():
    near = verdict([run_of([1e6], 0)], run_of([1e6], 12_000))
    far = verdict([run_of([1e6], 0)], run_of([1e6], 13_000))
    assert (near["delay_ok"], far["delay_ok"]) == (True, False)


def test_outside_the_tolerance_a_run_may_be_within_the_simulators_own_spread():
    # 80, 100, 120: mean 100, standard deviation 20. The queue does not spread.
    sims = [run_of([rate], 125_000) for rate in (80e6, 100e6, 120e6)]
    assert tcp_table.word(verdict(sims, run_of([109e6], 125_000))) == "yes"
    assert tcp_table.word(verdict(sims, run_of([139e6], 125_000))) == "rate within the spread"
    assert tcp_table.word(verdict(sims, run_of([141e6], 125_000))) == "**no: rate**"
    assert tcp_table.word(verdict(sims, run_of([139e6], 160_000))) == "**no: rate and delay**"


def sides(sim_bps, linux_bps, failed=()):
    return tcp_table.Sides(
        [tcp_table.figures(run_of([sim_bps], 0))] * 2,
        tcp_table.figures(run_of([linux_bps], 0)),
        failed,
    )


def test_rtt_and_loss_rate_are_divided_out_of_random_losses():
    # 10 Mbit/s: 833.3 packets/s, 25 per RTT of 30 ms, of which 1 in 833.3 was lost.
    found = tcp_table.window_of_loss(tcp_table.figures(run_of([10e6], 0)), 1500)
    assert found == pytest.approx(25 / 833.333**0.5)
    cell = tcp_table.TcpTableCell("loss-1e-3", "100M", "sack")
    found = {
        one: sides(10e6, 12.1e6) for one in (cell, tcp_table.TcpTableCell("one", "100M", "sack"))
    }
    (row,) = tcp_table.losses(found)
    # The same losses of more packets: the loss rate is smaller, so 1.1 of the window, not 1.21.
    assert row[-3:] == ["0.866 ± 0.0%", "0.953", "+10.0%"]


def test_the_simulators_runs_differ_in_when_flows_start():
    cell = tcp_table.TcpTableCell("two-rtts", "100M", "bbr")
    starts = {tuple(flow.get("start") for flow in cell.scenario(seed=n)["flow"]) for n in range(5)}
    assert len(starts) == 5
    assert cell.scenario(seed=3) == cell.scenario(seed=3)
    assert cell.scenario()["params"] == {}  # the default is Linux's variant


def test_a_cell_lasts_as_long_as_its_losses_need():
    assert tcp_table.TcpTableCell("one", "1G", "sack").seconds() == 60
    # √(1.5/10⁻⁴) packets in 28 ms are 4374 a second: 10⁶ packets in 228.6 s.
    assert tcp_table.TcpTableCell("loss-1e-4", "100M", "sack").seconds() == 229
    assert len({cell.name for cell in tcp_table.cells()}) == len(tcp_table.cells()) == 42


def test_a_run_that_failed_its_checks_is_no_result():
    cells = [
        tcp_table.TcpTableCell("one", "100M", "sack"),
        tcp_table.TcpTableCell("four", "100M", "sack"),
    ]
    found = dict(zip(cells, (sides(1e6, 1e6), sides(1e6, 1e6, ["processor"])), strict=True))
    agrees, failed = tcp_table.rows(found)
    assert (agrees[-1], failed[-1]) == ("yes", "failed checks: processor")
    assert tcp_table.failed(found) == ["four-100M-sack"]


def test_the_simulator_has_one_run_per_seed_and_linux_one():
    runs = tcp_table.runs(tcp_table.TcpTableCell("one", "100M", "sack", 3.0))
    assert len(runs) == tcp_table.SEEDS + 1
    assert [run.on for run in runs.values()].count("linux") == 1
    assert runs["linux"].scenario.duration == 3.0
