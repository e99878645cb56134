"""Comparison with TCP on one link: its scenarios are valid, and shares follow from rates."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from validation.testbed import cohabit
from validation.testbed.cohabit import TcpShareCell


def test_a_kernel_without_bbr_runs_the_cells_of_cubic():
    every = cohabit.cells(["reno", "cubic", "bbr"])
    assert [c.name for c in every if c.tcp == "cubic"] == [
        "cubic-none", "cubic-paper", "cubic-paper-packet", "cubic-improved", "cubic-ecn-improved",
    ]  # fmt: skip
    assert {c.tcp for c in cohabit.cells(["reno", "cubic"])} == {"cubic"}
    assert len(every) == 9


@pytest.mark.parametrize("cell", cohabit.cells(["cubic", "bbr"]), ids=lambda cell: cell.name)
def test_scenarios_are_valid_and_name_the_controller(cell):
    link = cell.scenario().link[0]
    if cell.mode == "none":
        assert link.queue == "droptail"
    else:
        assert (link.queue, link.queue_params) == ("cohabit", cohabit.MODES[cell.mode])


def fake(explicit_bps, tcp_bps, drops=0, bad=()):
    """A run whose classes have these rates, one value a second."""
    seconds = len(explicit_bps)
    step = round(1 / cohabit.SAMPLE_S)
    times, names, rates = [], [], []
    for i in range(round(cohabit.JUDGED_S) * step, (round(cohabit.JUDGED_S) + seconds) * step):
        second = i // step - round(cohabit.JUDGED_S)
        for flow, bps in (("explicit[0]", explicit_bps), ("tcp[0]", tcp_bps)):
            times.append((i + 1) * cohabit.SAMPLE_S)
            names.append(flow)
            rates.append(bps[second])
    link = {"utilization": 0.9, "queue_bytes": {"mean": 12500.0}, "drops": drops, "marks": 0}
    return SimpleNamespace(
        flows=pa.table({"time_s": times, "flow": names, "rate_bps": rates}),
        summary={"links": [link], "checks": [{"name": name, "ok": False} for name in bad]},
    )


def test_shares_are_relative_to_fair_ones_and_the_lowest_window_counts():
    fair = 90e6 * 10 / 13
    explicit = [fair] * 30 + [0.5 * fair] * 10 + [fair] * 30
    found = cohabit.measure(fake(explicit, [0.8 * (90e6 - fair)] * 70, drops=10))
    assert found["explicit_lowest"] == pytest.approx(0.75)
    assert found["explicit"] == pytest.approx(65 / 70)
    assert found["tcp"] == pytest.approx(0.8)
    assert found["queue_ms"] == pytest.approx(1.0)
    assert found["signalled"] == pytest.approx(10 / (0.8 * (90e6 - fair) * 70 / 12000))
    assert not cohabit.meets(found)
    assert cohabit.meets(cohabit.measure(fake([0.9 * fair] * 40, [0.8 * (90e6 - fair)] * 40)))


def test_flows_that_gave_up_are_a_result_and_other_failed_checks_make_a_run_invalid():
    rates = np.full(40, 90e6)
    gave_up = cohabit.measure(fake(rates, rates, bad=["law"]))
    assert (gave_up["gave_up"], gave_up["checks_failed"]) == (True, [])
    assert not cohabit.meets(gave_up)
    invalid = cohabit.measure(fake(rates, rates, bad=["delay line"]))
    rows = cohabit.table(
        {TcpShareCell("cubic", "none"): gave_up, TcpShareCell("bbr", "improved"): invalid}
    )
    assert "| 3 CUBIC | none |" in rows
    assert "missed; explicit flows gave up |" in rows
    assert "(failed checks: delay line)" in rows


def test_an_invalid_run_fails_and_so_does_a_missed_goal():
    fair = 90e6 * 10 / 13
    good = cohabit.measure(fake([0.9 * fair] * 40, [0.8 * (90e6 - fair)] * 40))
    found = {
        TcpShareCell("cubic", "improved"): good,
        TcpShareCell("cubic", "none"): good | {"checks_failed": ["delay line"]},
        TcpShareCell("bbr", "improved"): good | {"tcp": 0.5},
        TcpShareCell("bbr", "paper"): good | {"tcp": 0.5},
    }
    assert cohabit.failed(found) == ["cubic-none: failed checks", "bbr-improved: misses the goals"]
