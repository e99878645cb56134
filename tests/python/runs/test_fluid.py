"""The fluid backend: the same scenarios, the same documents."""

from __future__ import annotations

import pytest

from waterfill.errors import InputError
from waterfill.network import protocols
from waterfill.runs import backends, engine
from waterfill.scenario.loading import from_dict


def scenario(**root):
    return {
        "name": "small",
        "duration": "6 s",
        "protocol": "maxnet",
        "link": [{"name": "l", "from": "a", "to": "b", "rate": "100 Mbit/s", "delay": "10 ms"}],
        "flow": [{"name": "f", "path": ["l"], "count": 3, "stagger": "0.5 s"}],
    } | root


def keys(value):
    """The shape of a document: keys and the kinds of their values."""
    if isinstance(value, dict):
        return {key: keys(item) for key, item in value.items()}
    if isinstance(value, list):
        return [keys(item) for item in value]
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def test_a_run_has_the_shape_of_the_simulators():
    sim, fluid = (backends.run(scenario(), on=on) for on in ("sim", "fluid"))
    assert fluid.summary["backend"] == "fluid"
    shapes = [keys(result.summary) for result in (sim, fluid)]
    extra = {"step_s", "steps", "classes", "delay_added_s"}
    assert set(shapes[1]["engine"]) - set(shapes[0]["engine"]) == extra
    for shape in shapes:
        del shape["engine"]
    # The model has no packets, so it knows neither what a sender waits for nor what arrives twice.
    of_packets = {"limited_by", "spurious_retransmissions"}
    for sims, fluids in zip(shapes[0]["flows"], shapes[1]["flows"], strict=True):
        sims.pop("longest_recovery", None)  # of a flow that has lost packets
        assert set(sims) - set(fluids) == of_packets
        for key in of_packets:
            del sims[key]
    assert shapes[0] == shapes[1]
    for which in ("flows", "links", "traffic"):
        assert getattr(sim, which).schema == getattr(fluid, which).schema
    assert sim.links.num_rows == fluid.links.num_rows


def test_the_same_bytes_every_time():
    one, two = (backends.run(scenario(), on="fluid") for _ in range(2))
    for result in (one, two):
        del result.summary["engine"]["wall_s"]
        assert "packet_transmissions_per_s" not in result.summary["engine"]
    assert one.to_json() == two.to_json()
    assert one.flows.equals(two.flows)


@pytest.mark.parametrize(
    "protocol", [n for n, p in protocols.load().items() if "fluid" in p.backends]
)
def test_the_seed_draws_only_jitter(protocol):
    plain, jittered = scenario(protocol=protocol), scenario(protocol=protocol)
    jittered["flow"] = [{**jittered["flow"][0], "start_jitter": "10 ms"}]
    for given, same in ((plain, True), (jittered, False)):
        one, two = (backends.run(given, on="fluid", seed=seed).flows for seed in (1, 2))
        assert one.equals(two) == same


def test_rates_are_the_max_min_shares():
    result = backends.run(scenario(duration="30 s"), on="fluid")
    for flow in result.summary["flows"]:
        assert flow["rate_bps"] == pytest.approx(flow["max_min_bps"], rel=0.01)


def test_the_command_runs_it(waterfill, tmp_path):
    (tmp_path / "s.toml").write_text(from_dict(scenario()).to_toml())
    ran = waterfill("run", "s.toml", "--on", "fluid", "--json", "-o", "out")
    assert ran.code == 0
    assert ran.document["backend"] == "fluid"
    assert (tmp_path / "out" / "flows.parquet").exists()
    assert "small on fluid" in waterfill("run", "s.toml", "--on", "fluid").out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"step": "1 s"}, "step: must be above zero and at most"),
        (
            {"link": [scenario()["link"][0] | {"loss": 0.1}]},
            "link.l.loss: 0.1 is not supported by the fluid backend; use 0.0",
        ),
        (
            {"link": [scenario()["link"][0] | {"loss_reverse": 0.1}]},
            "link.l.loss_reverse: 0.1 is not supported by the fluid backend; use 0.0",
        ),
    ],
)
def test_what_it_does_not_do_is_refused_in_a_line(waterfill, tmp_path, change, message):
    (tmp_path / "s.toml").write_text(from_dict(scenario(**change)).to_toml())
    ran = waterfill("run", "s.toml", "--on", "fluid")
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1


def test_a_step_of_the_users_is_taken():
    result = backends.run(scenario(step="1 ms"), on="fluid")
    assert result.summary["engine"]["step_s"] == pytest.approx(1e-3)
    assert result.summary["engine"]["steps"] == 6000
    # The simulator has no steps: the key does no harm there.
    backends.run(scenario(step="1 ms", duration="2 s"), on="sim")


def test_the_step_is_checked_when_asked():
    result = backends.run(scenario(check_step=True), on="fluid")
    check = result.summary["check_step"]
    assert check["ok"]
    assert 0 <= check["largest_change"] < 0.01
    assert check["half_step_s"] == check["step_s"] / 2
    assert result.summary["engine"]["step_s"] == pytest.approx(check["step_s"])


def test_a_step_that_is_too_long_is_halved_and_said_to_be(monkeypatch):
    # No change is small enough: every halving is tried, and the result says so.
    monkeypatch.setattr(engine, "_MAX_CHANGE", 0.0)
    plain = backends.run(scenario(duration="2 s"), on="fluid")
    result = backends.run(scenario(duration="2 s", check_step=True), on="fluid")
    halved = plain.summary["engine"]["step_s"] / 2 ** (engine._MAX_HALVINGS - 1)
    assert result.summary["engine"]["step_s"] == pytest.approx(halved)
    assert not result.summary["check_step"]["ok"]


def test_many_flows_are_listed_by_class():
    many = scenario(duration="1 s")
    many["flow"] = [
        {"name": "f", "path": ["l"], "count": 20_000},
        {"name": "g", "path": ["l"], "count": 5, "start": "0.2 s"},
    ]
    summary = backends.run(many, on="fluid").summary
    assert [(f["name"], f["count"]) for f in summary["flows"]] == [("f", 20_000), ("g", 5)]
    shares = [f["max_min_bps"] for f in summary["flows"]]
    assert shares == pytest.approx([90e6 / 20_005] * 2)
    assert summary["jain_index"] == pytest.approx(1.0, abs=0.01)


def test_no_such_backend():
    with pytest.raises(InputError, match="known: fluid, linux, sim"):
        backends.check("mars")


@pytest.mark.parametrize(
    "protocol", ["maxnet", "maxnet2006", "xcp", "ixcp", "pxcp", "aecp", "rcp", "jetmax"]
)
def test_links_that_change_carry_what_they_carry_in_packets(protocol):
    events = [
        {"at": "8 s", "rate": "10 Mbit/s"},
        {"at": "16 s", "rate": "30 Mbit/s", "delay": "10 ms"},
        {"at": "24 s", "up": False},
        {"at": "26 s", "up": True},
    ]
    link = {
        "name": "l", "from": "a", "to": "b", "rate": "20 Mbit/s", "delay": "20 ms",
        "event": events,
    }  # fmt: skip
    flows = [{"name": "f", "from": "a", "to": "b", "count": 2}]
    changing = scenario(protocol=protocol, link=[link], flow=flows, duration="34 s", sample="2 s")
    rates = []
    for on in ("sim", "fluid"):
        rows = backends.run(changing, on=on).flows.to_pydict()
        found = {}
        for time_s, bps in zip(rows["time_s"], rows["rate_bps"], strict=True):
            found[round(time_s)] = found.get(round(time_s), 0.0) + bps
        rates.append(found)
    # Before each change, after the outage, and in it: what was on the wire still arrives.
    for time_s in (8, 16, 24, 34):
        assert rates[1][time_s] == pytest.approx(rates[0][time_s], rel=0.03)
    assert rates[1].get(26, 0) == pytest.approx(rates[0].get(26, 0), abs=1e6)


def test_a_trace_is_followed():
    points = [["0 s", "20 Mbit/s"], ["1.5 s", "5 Mbit/s"], ["3 s", "5 Mbit/s"]]
    link = scenario()["link"][0] | {"rate_trace": {"points": points}, "rate": "20 Mbit/s"}
    result = backends.run(scenario(link=[link], protocol="xcp", measure=["3 s", "6 s"]), on="fluid")
    total = sum(flow["rate_bps"] for flow in result.summary["flows"])
    assert total == pytest.approx(12.5e6, rel=0.05)
    capacity = result.links.to_pydict()["capacity_bps"]
    assert min(capacity) == pytest.approx(5e6)
