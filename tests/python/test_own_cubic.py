"""CUBIC in Python has the results of CUBIC in Rust, byte by byte, with the same recovery."""

from __future__ import annotations

import re
import runpy
from dataclasses import replace
from typing import Any

import pytest

import waterfill
from known import ROOT

FILE = ROOT / "examples" / "own_cubic.py"
LAWS = runpy.run_path(str(FILE))["LAWS"]
OUTAGE = [{"at": "4 s", "up": False}, {"at": "7 s", "up": True}]

Keys = dict[str, Any]
CASES: dict[str, tuple[Keys, Keys]] = {
    "a full buffer": ({"buffer": "1 bdp"}, {}),
    "random loss": ({"loss": 0.002}, {}),
    "long path": ({"loss": 0.001, "delay": "150 ms", "rate": "50 Mbit/s"}, {}),
    "slow start ends by delay": ({"buffer": "4 bdp", "rate": "50 Mbit/s"}, {}),
    "delayed acknowledgements": ({"buffer": "1 bdp"}, {"delayed_ack": True}),
    "time-outs": ({"event": OUTAGE}, {}),
    "an outage, by RACK": ({"event": OUTAGE}, {"recovery": "rack"}),
    "late packets, by RACK": ({"reorder": {"share": 0.01, "delay": "8 ms"}}, {"recovery": "rack"}),
    "marks": ({"queue": "codel", "buffer": "200 packets"}, {"ecn": True}),
    "an application that pauses": ({"loss": 0.002}, {"demand": "8 Mbit/s"}),
    "pauses of seconds": (
        {"rate": "10 Mbit/s", "buffer": "2 bdp", "loss": 0.001},
        {"application": {"kind": "ticks", "sizes": "2 MB", "interval": "6 s"}},
    ),
    "pacing": ({"buffer": "0.5 bdp"}, {"pacing": True}),
    "six flows": ({"buffer": "1 bdp"}, {"count": 6, "stagger": "500 ms"}),
    "parameters": ({"buffer": "1 bdp"}, {"params": {"beta": 0.5, "aggressiveness": 1.0}}),
}


def run(protocol: str, link: Keys, flow: Keys) -> waterfill.Result:
    keys = {"rate": "20 Mbit/s", "delay": "15 ms", **link}
    own = {"recovery": "rfc6675", **flow}
    params = own.pop("params", {})
    scenario = waterfill.Scenario("both", duration="20 s", protocol=protocol, sample="10 ms")
    scenario = scenario.link("l", "a", "b", **keys).flow(
        "f", "a", "b", **{"recovery": "rfc6675", **own}
    )
    if params:
        scenario = scenario.params(protocol, **params)
    return scenario.run(laws=LAWS if protocol == "my-cubic" else None, seed=7)


def columns(table: Any) -> dict[str, list[Any]]:
    """Return the columns of a table, with signals under their own names."""
    named = {
        re.sub(r"^(my-cubic|my_cubic|cubic)[._]", "", name): name for name in table.column_names
    }
    return {name: table[column].to_pylist() for name, column in named.items()}


@pytest.mark.parametrize("case", CASES)
def test_cubic_in_python_equals_cubic_in_rust(case):
    link, flow = CASES[case]
    rust, mine = run("cubic", link, flow), run("my-cubic", link, flow)
    assert columns(mine.flows) == columns(rust.flows)
    assert columns(mine.links) == columns(rust.links)
    for ours, theirs in zip(mine.summary["flows"], rust.summary["flows"], strict=True):
        assert {**ours, "protocol": "cubic"} == theirs
    happened = {
        "time-outs": rust.summary["flows"][0]["timeouts"] > 0,
        "marks": rust.summary["links"][0]["marks"] > 0,
    }
    assert happened.get(case, True)
    windows = rust.flows["window_bytes"].to_pylist()
    assert len(set(windows)) > 20  # the law was at work


def test_a_law_names_its_loss_recovery():
    def flows(law: waterfill.PythonLaw, **own: Any) -> Any:
        scenario = waterfill.Scenario("one", duration="10 s", protocol="mine")
        scenario = scenario.link("l", "a", "b", "20 Mbit/s", "15 ms", loss=0.002)
        return scenario.flow("f", "a", "b", **own).run(laws={"mine": law}).flows

    law = LAWS["my-cubic"]
    by_rack = flows(replace(law, recovery="rack"))
    assert by_rack.equals(flows(law, recovery="rack"))
    assert not by_rack.equals(flows(law))
    assert flows(law).equals(flows(replace(law, recovery="rack"), recovery="rfc6675"))
    with pytest.raises(
        waterfill.InputError, match=r"recovery: must be reno, .* or quic, got \"x\""
    ):
        flows(replace(law, recovery="x"))


def test_the_port_passes_the_battery(waterfill):
    ran = waterfill("check", "--law", str(FILE), "--json")
    verdicts = {line["check"]: line["ok"] for line in ran.document["laws"]["my-cubic"]}
    assert ran.code == 0
    assert set(verdicts.values()) == {True, None}
    found = {line["check"]: line["found"] for line in ran.document["laws"]["my-cubic"]}
    assert found["window within an RTT after a loss"] == "× 0.70"
    assert found["window within an RTT after a mark"] == "× 0.70"
    assert float(found["window within an RTT after a time-out"][2:]) < 0.1


STUCK = """
import waterfill

class Fixed:
    count = 0

    def __init__(self, connection):
        Fixed.count += 1
        self.packet_bytes = connection.packet_bytes

    def on_ack(self, ack):
        pass

    def limit(self):
        return {window}, None

LAWS = {{"mine": waterfill.PythonLaw(source=Fixed, paced=False)}}
"""


@pytest.mark.parametrize(
    ("window", "failing"),
    [
        ("5 * self.packet_bytes * Fixed.count", {"two runs with one seed"}),
        ("self.packet_bytes", {"utilization of an idle link"}),
        ("-1.0", {"calls of the law"}),
        ("50 * self.packet_bytes", set()),
    ],
)
def test_the_battery_finds_what_is_wrong(tmp_path, waterfill, window, failing):
    file = tmp_path / "stuck.py"
    file.write_text(STUCK.format(window=window))
    ran = waterfill("check", "--law", str(file), "--json")
    assert {
        line["check"] for line in ran.document["laws"]["mine"] if line["ok"] is False
    } >= failing
    assert ran.code == (1 if failing else 0)


def test_the_battery_finds_a_window_that_grows_unused(tmp_path, waterfill):
    file = tmp_path / "grows.py"
    text = FILE.read_text().replace("ack.recovering or not ack.window_limited", "ack.recovering")
    file.write_text(text)
    ran = waterfill("check", "--law", str(file))
    assert ran.code == 1
    assert "FAILS" in ran.out


def test_check_without_a_scenario_needs_laws(waterfill):
    ran = waterfill("check")
    said = "check: S.toml: no scenario given; type its file, or --law FILE.py to check laws"
    assert (ran.code, ran.err.strip()) == (2, said)
    ran = waterfill("check", "--law", str(FILE), "--set", "seed=3")
    assert ran.code == 2
    assert "no scenario given, to which the other options apply" in ran.err
