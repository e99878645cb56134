"""Flows that start when other flows have completed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import waterfill as package
from waterfill.errors import InputError
from waterfill.scenario.loading import from_dict

LINK = {"rate": "10 Mbit/s", "delay": "10 ms"}
RING = {
    "name": "ring",
    "duration": "3 s",
    "protocol": "cubic",
    "link": [
        {"name": "ab", "from": "a", "to": "b", **LINK},
        {"name": "bc", "from": "b", "to": "c", **LINK},
    ],
    "flow": [
        {"name": "last", "from": "c", "to": "a", "size": "50 kB", "after": ["one", "two"]},
        {"name": "one", "from": "a", "to": "b", "size": "50 kB"},
        {"name": "two", "from": "b", "to": "c", "size": "50 kB", "after": ["one"],
         "start": "250 ms", "count": 2, "stagger": "5 ms"},
    ],
}  # fmt: skip


def changed(index, **keys):
    flows = [dict(flow) for flow in RING["flow"]]
    flows[index] = {**flows[index], **keys}
    return {**RING, "flow": flows}


@pytest.mark.parametrize("threads", [1, 2])
def test_starts_are_completions_plus_delays(threads):
    flows = {f.name: f for f in package.run(RING, threads=threads).summary.flows}
    assert flows["one"].start_s == 0
    assert flows["two[0]"].start_s == pytest.approx(flows["one"].completed_s + 0.25, abs=2e-12)
    assert flows["two[1]"].start_s == pytest.approx(flows["one"].completed_s + 0.255, abs=2e-12)
    assert flows["last"].start_s == max(flows[f"two[{i}]"].completed_s for i in (0, 1))
    assert flows["last"].completed_s < 3
    # The default window is the time in which flows are active, from the first that waits for none.
    assert package.run(RING).summary.measure_s == [0, flows["last"].completed_s]


def test_resolved_scenario_keeps_the_order(tmp_path):
    scenario = from_dict(RING)
    assert scenario.flow[0].after == ["one", "two"]
    path = tmp_path / "s.toml"
    path.write_text(scenario.to_toml())
    again = package.run(path).summary
    assert again.flows == package.run(RING).summary.flows


def test_flow_whose_turn_does_not_come_is_named(waterfill):
    Path("s.toml").write_text(from_dict({**RING, "duration": "0.3 s"}).to_toml())
    shown = " ".join(waterfill("run", "s.toml").out.split())
    assert "3 of 4 flows did not start: flows that they follow did not complete." in shown
    found = json.loads(waterfill("run", "s.toml", "--json").out)
    assert [group["completed"] for group in found["groups"]] == [0, 1, 0]
    assert "last 0 0" in shown  # started, completed


def test_check_shows_what_a_flow_waits_for(waterfill):
    Path("s.toml").write_text(from_dict(RING).to_toml())
    flows = {
        flow["name"]: flow for flow in waterfill("check", "s.toml", "--json").document["flows"]
    }
    assert [flows[name]["after"] for name in ("last", "one", "two")] == [
        ["one", "two"],
        [],
        ["one"],
    ]
    shown = waterfill("check", "s.toml").out
    assert "one, two" in shown
    assert "one + 250 ms" in shown


def test_a_flow_may_wait_for_the_first_of_several():
    done = {flow.name: flow for flow in package.run(changed(0, after_count=1)).summary.flows}
    assert done["last"].start_s == done["one"].completed_s
    assert done["last"].start_s < done["two[0]"].completed_s


@pytest.mark.parametrize(
    ("scenario", "key", "message"),
    [
        (changed(0, after=["tow"]), "flow.last.after", 'unknown flow "tow", did you mean "two"?'),
        (changed(0, after=["one", "one"]), "flow.last.after",
         'must name each flow once, got "one" twice'),
        (changed(0, stop="2 s"), "flow.last.stop", "not allowed with after, got 2 s"),
        (changed(1, after=["last"]), "flow.last.after",
         "flows wait for each other, got last after one after last"),
        (changed(1, after=["one"]), "flow.one.after",
         "flows wait for each other, got one after one"),
        (changed(0, after=[]), "flow.last.after", "must have at least 1 entry, got []"),
        (changed(0, after_count=3), "flow.last.after_count",
         "must be at most 2, the flows in after, got 3"),
        (changed(0, after_count=0), "flow.last.after_count", "must be from 1 to 10000000, got 0"),
        (changed(1, after_count=1), "flow.one.after_count", "not allowed without after, got 1"),
        (changed(1, continues="two"), "flow.one.continues", 'must be a flow of after, got "two"'),
        (changed(0, continues="one"), "flow.last.continues",
         'must name a flow with the same from, got "one"'),
        (changed(0, continues="one", after_count=1), "flow.last.continues",
         'not allowed with after_count, got "one"; remove one of the two'),
        (changed(2, continues="one", **{"from": "a", "to": "b", "count": 1, "handshake": True}),
         "flow.two.continues", "opens no connection, so handshake has no effect; remove it"),
        (changed(2, continues="one", weight=3, **{"from": "a", "to": "b", "count": 1}),
         "flow.two.continues", 'must name a flow with the same weight, got "one"'),
    ],
)  # fmt: skip
def test_refused(scenario, key, message):
    with pytest.raises(InputError) as caught:
        from_dict(scenario)
    assert caught.value.key == key
    assert caught.value.message.startswith(message)


def test_a_flow_goes_on_to_use_a_connection():
    again = {"name": "again", "from": "a", "to": "b", "size": "50 kB", "after": ["one"]}
    two = {**RING, "flow": [RING["flow"][1], again]}
    open_ = {**RING, "flow": [RING["flow"][1], {**again, "continues": "one"}]}
    new, kept = (package.run(scenario) for scenario in (two, open_))
    assert kept.network.flows[1].continues == 0
    # No handshake, of one RTT, and no slow start; the ideal time has no handshake either.
    took_s = [result.transfers["completion_s"][1].as_py() for result in (new, kept)]
    assert took_s[1] < took_s[0] - 0.02
    assert 1 <= kept.transfers["slowdown"][1].as_py() < 1.2
    assert kept.transfers["ideal_s"][1].as_py() < new.transfers["ideal_s"][1].as_py() - 0.02


def test_flow_without_end_cannot_be_awaited():
    endless = {**RING, "flow": [{"name": "one", "from": "a", "to": "b"}, RING["flow"][2]]}
    with pytest.raises(InputError, match="must name flows with a size, which end") as caught:
        from_dict(endless)
    assert caught.value.key == "flow.two.after"


@pytest.mark.parametrize("on", ["fluid", "linux"])
def test_other_backends_refuse_it(on):
    with pytest.raises(InputError, match=f"not supported by the {on} backend") as caught:
        package.run({**RING, "protocol": "maxnet"}, on=on)
    assert caught.value.key == "flow.last.after"


def test_shares_over_time_are_refused(waterfill):
    Path("s.toml").write_text(from_dict(RING).to_toml())
    answer = waterfill("maxmin", "s.toml")
    assert answer.code == 2
    assert "flow.last.after: the start depends on the run" in answer.err
