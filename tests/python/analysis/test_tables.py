"""Tables as data: durations in a unit in which they have digits."""

from __future__ import annotations

import math

import pytest

from waterfill.analysis.tables import Column, Table

MS = Column[float]("RTT", lambda v: v, "ms", form=".1f", seconds=1e-3)
S = Column[float]("settle", lambda v: v, "s", form=".2f", seconds=1)
SHORT = Column[float]("p50", lambda v: v, "ms", 1e-3, ".3g", seconds=1)


@pytest.mark.parametrize(
    ("column", "rows", "unit", "shown"),
    [
        (MS, [80.0, 123.45], "ms", ["80.0", "123.5"]),
        (MS, [0.012, 5.0], "µs", ["12.0", "5000.0"]),
        (MS, [3e-4, 4e-4], "ns", ["300.0", "400.0"]),
        (MS, [0.012, 2000.0], "ms", ["0.012", "2000.0"]),
        (MS, [0.0, 50_000.0], "s", ["0.00", "50.00"]),
        (S, [0.2, 1.25], "s", ["0.20", "1.25"]),
        (S, [0.0031, math.inf], "ms", ["3.1", "–"]),
        (SHORT, [0.348, 1.219], "ms", ["348", "1219"]),
        (SHORT, [2e-6, 12e-6], "µs", ["2", "12"]),
        (SHORT, [], "ms", []),
    ],
)
def test_durations_choose_their_unit(column, rows, unit, shown):
    table = Table("t", "", (column,), rows)
    (fitted,) = table.shown("terminal")
    assert fitted.unit == unit
    assert [fitted.cell(row, "terminal").text for row in rows] == shown


def test_columns_of_one_unit_keep_one_unit():
    second = Column[float]("p99", lambda v: 100 * v, "ms", form=".1f", seconds=1e-3)
    assert [c.unit for c in Table("t", "", (MS, second, S), [0.5]).shown("page")] == [
        "µs", "µs", "s",
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore::waterfill.network.protocols.Misfit")
def test_a_run_of_a_fabric_shows_its_rtt(waterfill, tmp_path):
    (tmp_path / "s.toml").write_text(
        'duration = "10 ms"\nprotocol = "reno"\n[[link]]\nname = "l"\nfrom = "a"\nto = "b"\n'
        'rate = "100 Gbit/s"\ndelay = "3 us"\n[[flow]]\nname = "f"\npath = ["l"]\nsize = "20 kB"\n'
    )
    shown = waterfill("run", "s.toml").out
    assert "µs" in shown
    assert " us of 10 ms" in shown


def test_fast_rates_are_in_gbit_per_second():
    columns = [
        Column("flow", lambda row: row[0]),
        Column("rate", lambda row: row[1], "Mbit/s", 1e6, ".2f", ".2f"),
    ]
    fast = Table("", "", columns, [("a", 3e11), ("b", 0.0), ("c", 1e10)])
    assert fast.text().split() == [
        "flow",
        "rate",
        "Gbit/s",
        "a",
        "300.00",
        "b",
        "0.00",
        "c",
        "10.00",
    ]
    slow = Table("", "", columns, [("a", 3e11), ("b", 9e9)])
    assert "Mbit/s" in slow.text()
