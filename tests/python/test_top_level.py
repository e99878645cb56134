"""The functions of `import waterfill`: overrides, comparisons, shares, theory, data frames."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

import waterfill
from waterfill.runs import result as results


def scenario(**keys: Any) -> waterfill.Scenario:
    found = waterfill.Scenario("s", duration="2 s", protocol="maxnet", **keys)
    return found.link("l", "a", "b", "10 Mbit/s", "5 ms").flow("f", "a", "b")


def refused(call: Any) -> str:
    with pytest.raises(waterfill.InputError) as found:
        call()
    return str(found.value)


@pytest.mark.parametrize("kind", ["builder", "file", "dictionary", "checked"])
def test_a_run_takes_overrides_of_every_kind_of_scenario(kind, tmp_path):
    path = tmp_path / "S.toml"
    path.write_text(scenario().to_toml())
    given: Any = {
        "builder": scenario(),
        "file": path,
        "dictionary": scenario().to_dict(),
        "checked": scenario().checked(),
    }[kind]
    found = waterfill.run(given, protocol="rcp", set={"duration": "1 s", "link.l.rate": "5 Mbit/s"})
    assert found.summary.duration_s == 1
    assert found.summary.flows[0].protocol == "rcp"
    assert found.network.links[0].rate_bps == 5e6


def test_an_override_leaves_the_scenario_unchanged():
    mine = scenario()
    waterfill.run(mine, set={"flow.f.count": 2})
    assert mine.to_dict() == scenario().to_dict()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: scenario().set(durration=3),
            '<scenario>: durration: unknown key, did you mean "du',
        ),
        (lambda: scenario().set(duration=3), "<scenario>: duration: must be a time"),
        (lambda: scenario().set({"link.l.rat": 3}), "<scenario>: link.l.rat: unknown key, did you"),
        (lambda: scenario().set({"link.k.rate": 3}), "set: link.k.rate: unknown [[link]]"),
        (
            lambda: scenario().set({"params.maxnet.mu": 2}),
            "<scenario>: params.maxnet.mu: must be a",
        ),
        (lambda: scenario().params("maxnet", nu=2), "<scenario>: params.maxnet.nu: unknown param"),
        (lambda: scenario().set({"": 3}), 'set: not a key: ""; write keys such as'),
        (
            lambda: waterfill.run(scenario(), set={"sed": 3}),
            'set: sed: unknown key, did you mean "s',
        ),
        (lambda: waterfill.run(scenario(), set=["seed=3"]), "run: set: must be a dictionary"),
        (lambda: waterfill.run(scenario(), on="simm"), 'run: on: unknown backend "simm", did you'),
        (
            lambda: waterfill.run(scenario().set({"flow.f.protocol": "rcp"}), protocol="xcp"),
            "run: protocol: no effect: every flow names its",
        ),
        (
            lambda: scenario().run().to_polars("flow"),
            'result: table: unknown table "flow", did you',
        ),
        (lambda: waterfill.theory.margins("maxnett"), "theory: maxnett: neither a protocol nor"),
        (lambda: waterfill.theory.margins("aecp", rtt="5"), "theory: rtt: must be a time"),
        (
            lambda: waterfill.theory.convergence_times("aecp", rtt="1 ns"),
            "theory: rtt: must be at l",
        ),
        (lambda: waterfill.theory.equilibrium_rates("xcp"), "theory: must be a scenario, got"),
    ],
)
def test_what_is_wrong_is_said_at_once(call, said):
    assert refused(call).startswith(said)


def test_a_refused_set_changes_nothing():
    mine = scenario()
    refused(lambda: mine.set({"link.l.rate": "1 Gbit"}, seed=3))
    assert mine.to_dict() == scenario().to_dict()


def test_parameters_of_laws_in_python_are_not_judged_before_a_run():
    assert scenario().params("mine", gain=3).to_dict()["params"] == {"mine": {"gain": 3}}


def test_a_comparison_prints_its_table_and_gives_it_to_data_frames():
    found = waterfill.compare(scenario(), ["maxnet", "cubic"], seed=3, set={"flow.f.count": 2})
    assert {run.summary.seed for run in found.results.values()} == {3}
    title, *_, first, second = str(found).splitlines()
    assert title == "bottleneck l"
    assert re.match(r"maxnet +\d\d\.\d\d ", first)
    assert re.match(r"cubic +\d\d\.\d\d ", second)
    assert len(first) == len(second)
    rows = found.to_polars().to_dicts()
    assert [row["protocol"] for row in rows] == ["maxnet", "cubic"]
    assert rows[0]["utilization"] == found.figures["maxnet"].utilization
    assert found.document().runs["maxnet"].compare == found.figures["maxnet"]


def test_rates_are_time_by_flow():
    found = scenario().flow("late", "a", "b", start="1 s").run()
    wide = found.to_polars("rates")
    assert wide.columns == ["time_s", "f", "late"]
    assert wide["time_s"].to_list() == sorted(set(found.flows["time_s"].to_pylist()))
    for name in ("f", "late"):
        mine = found.samples("flows", name)
        pairs = dict(zip(mine["time_s"].to_pylist(), mine["rate_bps"].to_pylist(), strict=True))
        assert [pairs.get(time_s) for time_s in wide["time_s"]] == wide[name].to_list()


def test_max_min_shares_follow_the_flows():
    late = scenario().flow("late", "a", "b", start="1 s")
    found = waterfill.maxmin(late, set={"params.maxnet.mu": 1.0}).to_pylist()
    rates = [(row["from_s"], row["flow"], row["rate_bps"], row["bottleneck"]) for row in found]
    assert rates == [(0, "f", 1e7, "l"), (1, "f", 5e6, "l"), (1, "late", 5e6, "l")]


def test_theory_takes_a_scenario():
    found = waterfill.theory.equilibrium_rates(scenario(), protocol="xcp")
    assert math.isclose(found["flows"][0]["rate_bps"], 1e7, rel_tol=1e-6)
    assert waterfill.theory.check_stability(scenario())["scenario"] == "s"


def test_a_missing_reader_is_named(monkeypatch):
    monkeypatch.setattr(results, "find_spec", lambda name: None)
    found = scenario().run()
    assert refused(found.to_polars) == "table: polars is not installed; type pip install polars"
    assert refused(found.to_pandas) == "table: pandas is not installed; type pip install pandas"
