"""The comparison of the fluid with packets, and two of its draws."""

from __future__ import annotations

import pytest

import synthetic
from validation import fluid_vs_sim
from waterfill.runs import backends


def compared_runs(scenario):
    runs = fluid_vs_sim.runs(scenario)
    results = {on: backends.run(run.scenario, on=run.on) for on, run in runs.items()}
    return fluid_vs_sim.compare(scenario, results)


@pytest.mark.parametrize(
    "seed",
    [next(s for s in range(1, 99) if fluid_vs_sim.draw(s).protocol == p) for p in ("rcp", "xcp")],
)
def test_random_networks_agree_with_packets(seed):
    result = compared_runs(fluid_vs_sim.draw(seed))
    assert result.rests, result
    assert result.rate_ok, result
    assert result.settling_ok, result


def test_a_draw_depends_on_its_seed_alone():
    assert fluid_vs_sim.draw(7).to_toml() == fluid_vs_sim.draw(7).to_toml()
    assert fluid_vs_sim.draw(7).to_toml() != fluid_vs_sim.draw(8).to_toml()


def test_a_slower_fluid_is_noticed():
    drawn = fluid_vs_sim.draw(2, ["rcp"])
    slower = drawn.model_copy(update={"params": {"rcp": {"alpha": 0.05, "beta": 0.3}}})
    runs = fluid_vs_sim.runs(drawn) | {"fluid": fluid_vs_sim.runs(slower)["fluid"]}
    results = {on: backends.run(run.scenario, on=run.on) for on, run in runs.items()}
    assert not fluid_vs_sim.compare(drawn, results).settling_ok


def test_a_draw_that_settles_and_does_not_agree_fails():
    good, bad = fluid_vs_sim.Draw(1), fluid_vs_sim.Draw(2)
    found = {good: compared(0.0, 0.0), bad: compared(0.04, 0.0)}
    assert len(fluid_vs_sim.failed(found)) == 1
    assert "2 of 2 draws settle; of these, mean rates agree within 3% in 1" in fluid_vs_sim.table(
        found
    )


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
    return fluid_vs_sim.Comparison(
        "draw", "rcp", [flow], {"ok": True}, {"sim": swing, "fluid": 0.0}
    )


def test_a_draw_is_judged_by_its_largest_differences():
    assert compared(0.03, 0.2).rate_ok
    assert not compared(0.031, 0.2).rate_ok
    assert compared(0.0, 0.2).settling_ok
    assert not compared(0.0, 0.21).settling_ok
    assert compared(0.0, None).settling_ok  # it settles on neither backend
    assert not compared(0.0, float("inf")).settling_ok
    assert compared(0.0, 0.0, swing=0.1).rests
    assert not compared(0.0, 0.0, swing=0.11).rests
