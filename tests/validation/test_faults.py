"""The cost of a fault: how runs are compared and shown."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from validation import faults
from validation.faults import Cost, Course, Fault, FaultCase
from waterfill.network.protocols import load
from waterfill.scenario.loading import from_toml

COUNT = round(faults.LONG.end_s / faults.SAMPLE_S)
PLAIN = Course([10e6] * COUNT, [10e6] * COUNT, [0.0] * COUNT, [0.0] * COUNT)


def course(subject, other):
    """Rates before, during and after the fault."""
    first, last = (
        round(faults.LONG.from_s / faults.SAMPLE_S),
        round(faults.LONG.until_s / faults.SAMPLE_S),
    )
    lengths = (first, last - first, COUNT - last)
    return [
        [bps for bps, count in zip(rates, lengths, strict=True) for _ in range(count)]
        for rates in (subject, other)
    ]


def test_a_cost_is_judged_by_the_run_without_the_fault():
    subject, other = course((10e6, 5e6, 10e6), (10e6, 2e6, 10e6))
    run = Course(subject, other, [25_000.0] * COUNT, [1.0] * COUNT)
    found = faults.cost(run, PLAIN, Fault("x", "x", faults.LONG.until_s))
    assert (found.subject, found.other) == (0.5, 0.2)
    assert found.lost_s == pytest.approx(5 * 13 / 20, abs=0.1)
    assert (found.recovered_s, found.queue_ms) == (pytest.approx(1.0), 10.0)


def test_who_is_not_back_at_the_end_never_is():
    subject, other = course((10e6, 20e6, 20e6), (10e6, 1e6, 1e6))
    found = faults.cost(
        Course(subject, other, [0.0] * COUNT, [0.0] * COUNT), PLAIN, faults.FAULTS[0]
    )
    assert found.recovered_s is None
    assert faults.cells(found)[1] == "never"
    assert faults.cells(None) == [""] * 4


def test_protocols_with_equal_costs_share_a_row():
    costs = {"xcp": 5.0, "rcp": 5.1, "ixcp": 5.0}
    found = {
        FaultCase(protocol, "restart"): Cost(lost_s, 1.0, 2.0, 0, 1.0, 1.0)
        for protocol, lost_s in costs.items()
    }
    table = faults.grouped(found, "##", [("Routers", ("restart",))], faults.cells)
    assert [row.split("|")[1:3] for row in table.splitlines()[4:]] == [
        [" `xcp`, `ixcp` ", " 5.0 "],
        [" `rcp` ", " 5.1 "],
    ]


@pytest.mark.parametrize("fault", faults.FAULTS, ids=lambda fault: fault.name)
def test_every_fault_is_a_scenario_that_reads(fault):
    assert set(fault.on) <= set(load())
    scenario = from_toml(faults.scenario_text(fault.on[0], fault), "test")
    assert scenario.duration == faults.LONG.end_s
    assert any(fault.name in names for _, names in faults.GROUPS)


def test_a_case_is_a_run_with_the_fault_and_one_without():
    cases = faults.cases(SimpleNamespace(protocols=("rcp", "cubic")))
    assert FaultCase("rcp", "restart") in cases
    assert FaultCase("cubic", "restart") not in cases
    runs = faults.runs(FaultCase("rcp", "ignore"))
    assert "ignore" in runs["fault"].scenario.to_toml()
    assert [flow.name for flow in runs["plain"].scenario.flow] == ["subject", "other", "joiner"]


def test_a_table_has_a_row_for_each_protocol_that_a_fault_concerns():
    cost = Cost(1.25, None, 40.0, 7, 0.5, 1.5)
    text = faults.tables({FaultCase("xcp", "restart"): cost, FaultCase("reno", "down"): cost})
    assert "| `xcp` | 1.2 | never | 40 (7) | 50 |" in text
    routers = text.split("### Routers\n")[1].split("###")[0]
    assert "`reno`" not in routers
