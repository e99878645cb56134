"""Tests of demands that change with time: keys, shares, runs, refusals."""

import pytest

import waterfill
from known import PROTOCOLS, TARGETS
from waterfill.errors import InputError
from waterfill.network import resolve, shares
from waterfill.scenario.loading import from_toml

BASE = """
duration = "9 s"
protocol = "maxnet"
measure = ["7 s", "9 s"]
[[link]]
name = "l"
from = "a"
to = "b"
rate = "20 Mbit/s"
delay = "10 ms"
[[flow]]
name = "f"
from = "a"
to = "b"
KEYS
[[flow]]
name = "g"
from = "a"
to = "b"
"""
POINTS = '{points = [["0 s", "4 Mbit/s"], ["3 s", "0 bit/s"], ["6 s", "6 Mbit/s"]], repeat = false}'


def scenario_of(keys, source="S.toml"):
    return from_toml(BASE.replace("KEYS", keys), str(source))


def demands_of(keys, source="S.toml"):
    flow, other = resolve.to_core(scenario_of(keys, source), PROTOCOLS).flows
    assert (flow.demand_bps, other.demands, other.limits) == (None, (), ())
    return [tuple(demand) for demand in flow.demands]


def test_points_and_files_become_the_core_s_demands(tmp_path):
    wanted = [(0.0, 4e6), (3.0, 0.0), (6.0, 6e6)]
    assert demands_of(f"demand_trace = {POINTS}") == wanted
    (tmp_path / "d.csv").write_text("time_s,demand_mbps\n0,4\n3,0\n6,6\n7,1\n")
    source = tmp_path / "S.toml"
    assert demands_of('demand_trace = "d.csv"', source) == [*wanted, (7.0, 4e6)]
    # Three seconds of 2 Mbit/s and 1 Mbit/s, again and again.
    points = '[["0 s", "2 Mbit/s"], ["2 s", "1 Mbit/s"], ["3 s", "0 bit/s"]]'
    repeated = demands_of(f"demand_trace = {{points = {points}}}")
    assert repeated == [(float(t), 1e6 if t % 3 else 2e6) for t in (0, 2, 3, 5, 6, 8)]
    written = scenario_of('demand_trace = "d.csv"', source).to_toml()
    assert from_toml(written, "S.toml").flow[0].demand_trace.points[3] == (7.0, 1e6)


def test_shares_follow_the_demand():
    found = shares.document(scenario_of(f"demand_trace = {POINTS}"), PROTOCOLS, TARGETS)
    rows = [
        (entry["from_s"], [(f["rate_bps"] / 1e6, f["bottleneck"]) for f in entry["flows"]])
        for entry in found["intervals"]
    ]
    aim = TARGETS["maxnet"] * 20
    assert rows == [
        (0.0, [(4.0, "demand"), (pytest.approx(aim - 4), "l")]),
        (3.0, [(0.0, "demand"), (pytest.approx(aim), "l")]),
        (6.0, [(6.0, "demand"), (pytest.approx(aim - 6), "l")]),
    ]
    limited = scenario_of(f'access_rate = "5 Mbit/s"\ndemand_trace = {POINTS}')
    last = shares.document(limited, PROTOCOLS, TARGETS)["intervals"][-1]
    assert last["flows"][0]["rate_bps"] == 5e6


@pytest.mark.parametrize("on", ["sim", "fluid"])
def test_both_backends_follow_the_demand(on):
    scenario = scenario_of(f"demand_trace = {POINTS}")
    result = waterfill.run(scenario, on=on)
    one, other = result.summary["flows"]
    assert one["rate_bps"] == pytest.approx(6e6, rel=0.02)
    assert one["max_min_bps"] == pytest.approx(6e6)
    assert other["rate_bps"] == pytest.approx(other["max_min_bps"], rel=0.05)
    rows = result.flows.to_pylist()
    quiet = [row["rate_bps"] for row in rows if row["flow"] == "f" and 3.2 < row["time_s"] < 5.9]
    assert len(quiet) > 20
    assert max(rate or 0.0 for rate in quiet) == 0.0


REFUSED = {
    'demand_trace = {points = [["0 s", "5 Mbit/s"]]}': (
        "flow.f.demand_trace.points: needs 2 to 1000000 points, got 1"
    ),
    f'demand = "1 Mbit/s"\ndemand_trace = {POINTS}': (
        "flow.f.demand: not allowed with demand_trace, got 1 Mbit/s; remove it"
    ),
    'demand_trace = "none"': (
        "flow.f.demand_trace.file: cannot read none: No such file or directory"
    ),
    'demand_trace = {points = [["0 s", "0 bit/s"], ["1 s", "0 bit/s"]]}': (
        "flow.f.demand_trace.points: all rates are zero; at least one must be above zero"
    ),
    'demand_trace = {points = [["0 s", "1 bit/s"], ["1 us", "2 bit/s"]]}': (
        "flow.f.demand_trace: more than 4000000 changes of the demand in the run, got 1.8e+07: it "
        "repeats every 1 us"
    ),
}


@pytest.mark.parametrize("keys", REFUSED)
def test_wrong_traces_are_refused_in_one_sentence(keys):
    with pytest.raises(InputError) as refused:
        scenario_of(keys)
    assert str(refused.value) == f"S.toml: {REFUSED[keys]}"


def test_linux_refuses_a_trace():
    with pytest.raises(InputError) as refused:
        resolve.to_core(scenario_of(f"demand_trace = {POINTS}"), PROTOCOLS, "linux")
    wanted = "flow.f.demand_trace: not supported by the linux backend, got 3"
    assert str(refused.value) == f"S.toml: {wanted}"
