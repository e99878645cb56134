"""MaxNet's experiments as data: their scenarios are valid, and verdicts follow from numbers."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from validation.testbed import maxnet, maxnet_cells, maxnet_special
from validation.testbed.maxnet_cells import Goal, MaxnetCell, Of, Panel
from waterfill.errors import RunError
from waterfill.network import protocols
from waterfill.runs import backends

CELLS = maxnet_cells.cells()


def small(**changes):
    document = {
        "name": "small", "duration": "2 s", "protocol": "maxnet", "measure": ["1 s", "2 s"],
        # Small packets: with acknowledgements for every second one a window needs many.
        "packet_size": "600 B",
        "link": [{"name": "l", "from": "r1", "to": "r2", "rate": "10 Mbit/s", "delay": "5 ms",
                  "buffer": "5 packets"}],
        "flow": [
            {"name": "f", "from": "a", "to": "b", "path": ["l"], "stop": "1 s"},
            {"name": "g", "from": "c", "to": "d", "path": ["l"], "protocol": "cubic",
             "start": "1 s"},
        ],
    }  # fmt: skip
    goals = [
        Goal("rate", Of("rate_over", {"flow": "f", "start_s": 0.5, "stop_s": 1.0}, "sim"),
             "Mbit/s", "near", 9e6, 0.1),
        Goal("drops", Of("drops_over", {"link": "l", "start_s": 1.0, "stop_s": 2.0}, "sim"), "",
             "least", 1.0),
        Goal("kernel", Of("rate_over", {"flow": "f", "start_s": 0.5, "stop_s": 1.0}), "Mbit/s",
             "near", Of("rate_over", {"flow": "f", "start_s": 0.5, "stop_s": 1.0}, "sim"), 0.05),
    ]  # fmt: skip
    panels = [
        Panel("rate (Mbit/s)", "flows", ["f", "g"], "rate_bps", 1e6, 0.2),
        Panel("price (s)", "links", ["l"], "maxnet_price"),
    ]
    return MaxnetCell("small", "A small one", document, goals=goals, panels=panels, **changes)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_every_cell_is_a_scenario_on_every_backend_and_its_goals_ask_for_what_it_has(cell):
    flows = {flow.name for flow in cell.scenario("linux").flow}
    links = {link.name for link in cell.scenario("linux").link}
    for backend in cell.backends:
        scenario = cell.scenario(backend)
        assert scenario.params["maxnet"]["mu"] in (0.9, 0.94)
        assert any((flow.protocol or scenario.protocol) == "maxnet" for flow in scenario.flow)
    names = {other.name for other in CELLS}
    for goal in cell.goals:
        for of in (goal.what, goal.to):
            if not isinstance(of, Of):
                continue
            assert of.measure in maxnet._OWN or of.measure in maxnet.MEASURES
            assert of.backend in cell.backends
            assert of.cell is None or of.cell in names
            assert of.args.get("flow", next(iter(flows))) in flows
            assert set(of.args.get("flows", flows)) <= flows
            assert of.args.get("link", next(iter(links))) in links
            assert of.args["start_s"] < of.args["stop_s"] <= cell.scenario("linux").duration
        assert goal.unit in maxnet._UNITS
    for panel in cell.panels:
        known = {"flows": flows, "links": links,
                 "traffic": {t.name for t in cell.scenario("linux").traffic}}  # fmt: skip
        assert set(panel.names) <= known[panel.which]


def test_names_of_cells_and_special_experiments_differ():
    names = [cell.name for cell in CELLS] + list(maxnet_special.SPECIALS)
    assert len(set(names)) == len(names)


def test_the_kernel_paces_so_the_others_do_and_the_fluid_has_maxnet_alone():
    cell = small()
    assert [f.pacing for f in cell.scenario("linux").flow] == [None, None]
    assert [f.pacing for f in cell.scenario("sim").flow] == [True, None]
    assert [f.name for f in cell.scenario("fluid").flow] == ["f"]
    integers = any(p.name == "arithmetic" for p in protocols.load()["maxnet"].params)
    given = cell.scenario("sim").params.get("maxnet", {})
    assert given.get("arithmetic") == ("kernel-host" if integers else None)


def test_a_trial_is_shorter_in_every_time_but_the_round_trips():
    cell = small().shorter(0.5)
    scenario = cell.scenario("linux")
    assert (scenario.duration, list(scenario.measure_s)) == (1.0, [0.5, 1.0])
    assert [(f.start, f.stop) for f in scenario.flow] == [(0.0, 0.5), (0.5, None)]
    assert scenario.link[0].delay == 5e-3
    assert cell.arguments(cell.goals[0].what)["stop_s"] == 0.5


# --- goals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "got", "reference", "ok"),
    [
        ("near", 10.49, 10.0, True), ("near", 10.51, 10.0, False), ("near", 9.49, 10.0, False),
        ("least", 9.0, 9.0, True), ("least", 8.9, 9.0, False),
        ("most", 0.0, 0.0, True), ("most", 1.0, 0.0, False),
        ("shown", 1.0, None, None), ("near", None, 10.0, None), ("near", 1.0, None, None),
    ],
)  # fmt: skip
def test_a_goal_is_met_or_not_or_unknown(kind, got, reference, ok):
    goal = Goal("g", Of("rate_over", {}), "", kind, reference, 0.05)
    assert maxnet.met(goal, got, reference) is ok


def test_a_reference_can_be_scaled():
    goal = Goal("g", Of("rate_over", {}), "", "least", 100.0, scale=0.95)
    assert maxnet.met(goal, 95.0, 100.0) is True
    assert maxnet.met(goal, 94.0, 100.0) is False


def test_verdicts_of_special_goals():
    assert maxnet_special.goal("g", 5.0, least=4.0)["ok"] is True
    assert maxnet_special.goal("g", 5.0, most=4.0)["ok"] is False
    assert maxnet_special.goal("g", None, near=4.0)["ok"] is False
    assert maxnet_special.goal("g", 5.0)["ok"] is None


# --- runs -------------------------------------------------------------------------------------


def ran(cell):
    """Return the simulator's run of a cell, used in place of every backend's run."""
    result = backends.run(cell.scenario("sim"))
    return dict.fromkeys(cell.backends, result)


def test_a_run_is_measured_and_judged(monkeypatch):
    cell = small(backends=("sim", "linux"))
    monkeypatch.setattr(maxnet, "_cells", lambda: {"small": cell})
    case = maxnet.MaxnetCase("small", 1.0)
    assert set(maxnet.runs(case)) == {"sim", "linux"}
    found = {case: ran(cell)}
    rate, drops, kernel = maxnet.document(found)["small"]["goals"]
    assert rate["measured"] == pytest.approx(9e6, rel=0.1)
    assert rate["ok"] is True
    # A queue of five packets is too small for CUBIC's slow start.
    assert drops["measured"] >= 1
    assert kernel["ok"] is True
    assert maxnet.failed(maxnet.document(found)) == []
    assert "9 Mbit/s ± 10.0% (" in maxnet.table(maxnet.document(found))
    found[case]["linux"].summary["checks"] = [{"name": "clock", "ok": False}]
    assert maxnet.failed(maxnet.document(found)) == ["small: failed checks: clock"]


def test_a_goal_may_refer_to_another_cells_run():
    fig14 = next(case for case in map(lambda c: maxnet.MaxnetCase(c.name, 0.1), CELLS)
                 if set(maxnet.runs(case)) - set(case.cell.backends))  # fmt: skip
    (other,) = set(maxnet.runs(fig14)) - set(fig14.cell.backends)
    assert other.split()[0] in {cell.name for cell in CELLS}


def test_unequal_is_the_largest_deviation_from_the_mean():
    result = ran(small())["sim"]
    window = {"start_s": 0.2, "stop_s": 0.8}
    assert maxnet.unequal(result, flows=["f"], **window) == 0.0
    # g has not started: its rate is zero, the mean half of f's.
    assert maxnet.unequal(result, flows=["f", "g"], **window) == pytest.approx(1.0)


def test_a_special_experiment_needs_what_it_says(monkeypatch):
    goals = [maxnet_special.goal("flows", 400.0, least=500)]
    monkeypatch.setattr(maxnet_special, "run", lambda name, times: goals)
    monkeypatch.setattr(maxnet_special, "missing", lambda name: None)
    case = maxnet.MaxnetCase("crowd", 1.0)
    found = maxnet.special_document({case: maxnet.special(case)})
    assert "500 flows, 1 Gbit/s" in maxnet.table(found)
    assert maxnet.failed(found) == ["crowd: flows: missed"]
    monkeypatch.setattr(maxnet_special, "missing", lambda name: "clang, got none")
    with pytest.raises(RunError, match="crowd needs clang"):
        maxnet.special(case)


def test_a_random_file_has_the_hash_it_is_said_to_have(tmp_path):
    path = tmp_path / "data"
    digest = maxnet_special._fill(path, (1 << 22) + 3)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
    assert path.stat().st_size == (1 << 22) + 3
    assert np.frombuffer(path.read_bytes()[:4096], dtype=np.uint8).std() > 50
