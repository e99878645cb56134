"""Tests of the comparison of the kernel's TCPs in cells of one flow."""

from __future__ import annotations

import pytest

from validation.testbed import tcp_cells
from validation.testbed.tcp_cells import Figures, Sides

SIM = Figures(utilization=0.98, loss=0.005, rtt_s=0.1)


def sides(*linux):
    return Sides([SIM, SIM], [Figures(*one) for one in linux])


@pytest.mark.parametrize(
    ("linux", "apart"),
    [
        ((0.935, 0.014, 0.109), []),
        ((0.925, 0.014, 0.109), ["utilization"]),
        ((0.935, 0.016, 0.109), ["loss"]),
        ((0.935, 0.014, 0.111), ["RTT"]),
        ((0.935, 0.014, 0.089), ["RTT"]),
    ],
)
def test_a_cell_agrees_within_five_points_one_point_and_ten_per_cent(linux, apart):
    assert tcp_cells.apart(sides(linux)) == apart


def test_the_median_of_three_runs_counts_and_failed_checks_are_said():
    cell = tcp_cells.TcpCell(10e6, 0.1, "1 bdp", "cubic", 40.0)
    found = sides((0.98, 0.005, 0.1), (0.2, 0.5, 0.1, ("processor",)), (0.97, 0.005, 0.1))
    (row,) = tcp_cells.rows({cell: found})
    assert row[2:] == [
        "98.00", "97.00", "0.50", "0.50", "100.0", "100.0", "1 of 3: processor", "yes",
    ]  # fmt: skip
    assert tcp_cells.failed({cell: found}) == []


def test_both_backends_run_the_same_scenarios():
    runs = tcp_cells.runs(tcp_cells.TcpCell(10e6, 0.1, "1 bdp", "bbr", 40.0))
    texts = [
        {run.scenario.to_toml() for run in runs.values() if run.on == on} for on in ("sim", "linux")
    ]
    assert texts[0] == texts[1]
    assert len(texts[0]) == 3
