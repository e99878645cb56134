"""Faults on the kernel beside the simulator: which run, how they are kept, judged and shown."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from validation import faults as simulated
from validation.faults import Course
from validation.testbed import faults
from waterfill.errors import RunError
from waterfill.network.protocols import load
from waterfill.network.resolve import to_core
from waterfill.scenario.loading import from_toml
from waterfill.testbed import variation

COUNT = round(faults.SHORT.end_s / simulated.SAMPLE_S)
STEADY = Course([10e6] * COUNT, [10e6] * COUNT, [0.0] * COUNT, [0.0] * COUNT)


def run_of(subject=STEADY.subject, failed=(), left_s=None, why=()):
    course = Course(list(subject), STEADY.other, STEADY.queue, STEADY.drops)
    return faults.Run(course, list(failed), left_s, list(why), 1.5)


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


def test_runs_are_kept_and_those_that_were_disturbed_repeated(tmp_path, monkeypatch):
    started = []

    def run(scenario, on):
        assert on == "linux"
        started.append(scenario)
        if len(started) == 2:
            raise RunError("no")
        return run_of(failed=["law"] if len(started) > 1 else ["delay line"])

    monkeypatch.setattr(faults.waterfill, "run", run)
    monkeypatch.setattr(faults, "judged", lambda result: result)
    faults.run_all("cubic", tmp_path, repeat=False)
    kept = dict(faults.kept_runs("cubic", tmp_path))
    assert (len(started), set(kept)) == (5, {"plain", "half", "ack-loss", "ack-hold"})
    faults.run_all("cubic", tmp_path, repeat=False)
    assert len(started) == 6  # what had failed
    faults.run_all("cubic", tmp_path, repeat=True)
    assert len(started) == 7  # what was disturbed
    assert dict(faults.kept_runs("cubic", tmp_path))["plain"] == run_of(failed=["law"])


def test_a_run_is_judged_by_its_checks(monkeypatch):
    monkeypatch.setattr(simulated, "course", lambda result: STEADY)
    flows = [{"left_s": at_s, "without_price": why} for at_s, why in ((None, []), (6.5, ["x"]))]
    checks = [
        {"name": "law", "ok": False, "found": flows},
        {"name": "clock", "ok": True, "found": {}},
    ]
    run = faults.judged(SimpleNamespace(summary={"checks": checks}))
    assert (run.failed, run.left_s, run.why) == (["law"], 6.5, ["x"])
    assert not faults.disturbed(run)


def test_a_table_shows_the_kernel_beside_the_simulator(tmp_path, monkeypatch):
    down = [0.0 if 50 <= i < 70 else bps for i, bps in enumerate(STEADY.subject)]
    for name, run in (("plain", run_of()), ("down", run_of(down, left_s=6.25, why=["gone"]))):
        fault = faults.FAULTS.get(name)
        text = faults.text_of("xcp", fault)
        faults.keep(text, tmp_path / f"runs/xcp/{name}.json", run)
    monkeypatch.setattr(simulated, "measured", lambda text, path: STEADY)
    found = faults.pairs("xcp", tmp_path)
    assert set(found) == {"down"}
    text = faults.tables({"xcp": found, "rcp": {}})
    assert "| `xcp` | 1.0 / 0.0 †6.2 | 1.0 / 1.0 | 0 / 0 | 100 / 100 |" in text
    assert "`rcp`" not in text
    runs = [run for _, run in faults.kept_runs("xcp", tmp_path / "runs")]
    assert faults.host(runs) == (
        "2 runs, load 1.5 to 1.5, 0 disturbed; failed checks: none\n- 1 runs: gone\n"
    )
