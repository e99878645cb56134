"""Faults on the kernel next to the simulator: which run, how they are judged and shown."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from validation import faults as simulated
from validation.faults import Course, FaultCase
from validation.testbed import faults
from waterfill.network.protocols import load
from waterfill.network.resolve import to_core
from waterfill.scenario.loading import from_toml
from waterfill.testbed import variation

COUNT = round(faults.SHORT.end_s / simulated.SAMPLE_S)
STEADY = Course([10e6] * COUNT, [10e6] * COUNT, [0.0] * COUNT, [0.0] * COUNT)


def pair_of(failed=(), left_s=None, why=(), subject=STEADY.subject):
    run = Course(list(subject), STEADY.other, STEADY.queue, STEADY.drops)
    linux, sim = (
        simulated.cost(course, STEADY, faults.FAULTS["down"], faults.SHORT)
        for course in (run, STEADY)
    )
    return faults.Pair(linux, sim, list(failed), left_s, list(why))


@pytest.mark.parametrize("protocol", faults.PROTOCOLS)
def test_every_fault_of_the_table_is_one_that_linux_runs(protocol):
    assert faults.faults_of(protocol)
    for fault in faults.faults_of(protocol):
        scenario = from_toml(faults.text_of(protocol, fault), "test")
        assert scenario.duration == faults.SHORT.end_s
        variation.refuse(scenario, to_core(scenario, load(), "sim"))


def test_a_signal_that_the_delay_line_does_not_know_is_no_lie():
    names = {
        protocol: {fault.name for fault in faults.faults_of(protocol)}
        for protocol in ("xcp", "rcp", "cubic")
    }
    assert names["rcp"] - names["xcp"] == set(faults.LIES)
    assert names["cubic"] == {"down", "half", "ack-loss", "ack-hold"}


def test_a_run_is_judged_by_its_checks(monkeypatch):
    monkeypatch.setattr(simulated, "course", lambda result: STEADY)
    flows = [{"left_s": at_s, "without_price": why} for at_s, why in ((None, []), (6.5, ["x"]))]
    checks = [
        {"name": "law", "ok": False, "found": flows},
        {"name": "clock", "ok": True, "found": {}},
    ]
    results = {
        f"{name} {on}": SimpleNamespace(summary={"checks": checks})
        for name in ("fault", "plain")
        for on in ("linux", "sim")
    }
    pair = faults.measure(FaultCase("xcp", "down"), results)
    assert (pair.failed, pair.left_s, pair.why) == (["law"], 6.5, ["x"])
    assert faults.undisturbed(results["fault linux"])
    checks.append({"name": "delay line", "ok": False, "found": {}})
    assert not faults.undisturbed(results["fault linux"])


def test_a_table_shows_the_kernel_beside_the_simulator():
    down = [0.0 if 50 <= i < 70 else bps for i, bps in enumerate(STEADY.subject)]
    pair = pair_of(subject=down, left_s=6.25, why=["gone"])
    text = faults.tables({FaultCase("xcp", "down"): pair})
    assert "| `xcp` | 1.0 / 0.0 †6.2 | 1.0 / 1.0 | 0 / 0 | 100 / 100 |" in text
    assert text.endswith("1 runs with a fault, 0 disturbed; failed checks: none\n- 1 runs: gone")
