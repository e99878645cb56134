"""The comparison of the fluid with packets, and two of its draws."""

from __future__ import annotations

import json

import pytest

import synthetic
from validation import fluid_vs_sim
from waterfill.runs import backends


@pytest.mark.parametrize(
    "seed",
    [next(s for s in range(1, 99) if fluid_vs_sim.draw(s).protocol == p) for p in ("rcp", "xcp")],
)
def test_random_networks_agree_with_packets(seed):
    result = fluid_vs_sim.compare(fluid_vs_sim.draw(seed))
    assert result.rests, result
    assert result.rate_ok, result
    assert result.settling_ok, result


def test_a_draw_depends_on_its_seed_alone():
    assert fluid_vs_sim.draw(7).to_toml() == fluid_vs_sim.draw(7).to_toml()
    assert fluid_vs_sim.draw(7).to_toml() != fluid_vs_sim.draw(8).to_toml()


def test_a_slower_fluid_is_noticed(monkeypatch):
    drawn = fluid_vs_sim.draw(2, ["rcp"])
    run = backends.run

    def slower(scenario, on="sim"):
        if on == "fluid":
            scenario = scenario.model_copy(update={"params": {"rcp": {"alpha": 0.05, "beta": 0.3}}})
        return run(scenario, on=on)

    monkeypatch.setattr(backends, "run", slower)
    assert not fluid_vs_sim.compare(drawn).settling_ok


def test_the_check_is_a_command(capsys):
    code = fluid_vs_sim.main(["--draws", "1", "--seed", "3", "--protocols", "jetmax", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert code in (0, 1)
    assert len(document["draws"]) == 1


def constant_links(count):
    return {"l": {"utilization": [0.5] * count, "queue_max_bytes": [0.0] * count}}


def test_a_rate_has_settled_once_it_stays_near_its_mean():
    """1 Mbit/s from 1 s on: means of 0.1 s (one sample) are outside 5 % until 1 s."""
    result = synthetic.result({"f": [2e6] * 10 + [1e6] * 90}, constant_links(100))
    assert fluid_vs_sim.settling_s(result, "f") == pytest.approx(1.0)
    settled = synthetic.result({"f": [1.04e6] * 100}, constant_links(100))
    assert fluid_vs_sim.settling_s(settled, "f") == 0.0
    late = synthetic.result({"f": [1e6] * 80 + [2e6] * 20}, constant_links(100))
    assert fluid_vs_sim.settling_s(late, "f") is None  # after the middle of the window


def compared(rate_apart, settling_apart, swing=0.01):
    flow = fluid_vs_sim.FlowComparison("f", {}, {}, rate_apart, settling_apart)
    return fluid_vs_sim.Comparison("draw", "rcp", [flow], {}, {"sim": swing, "fluid": 0.0})


def test_a_draw_is_judged_by_its_largest_differences():
    assert compared(0.03, 0.2).rate_ok
    assert not compared(0.031, 0.2).rate_ok
    assert compared(0.0, 0.2).settling_ok
    assert not compared(0.0, 0.21).settling_ok
    assert compared(0.0, None).settling_ok  # it settles on neither backend
    assert not compared(0.0, float("inf")).settling_ok
    assert compared(0.0, 0.0, swing=0.1).rests
    assert not compared(0.0, 0.0, swing=0.11).rests
