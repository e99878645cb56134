"""The comparison of the fluid with packets, and two of its draws."""

from __future__ import annotations

import json

import pytest

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
