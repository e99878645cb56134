"""Runs with the endpoint in C that the documentation shows."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from known import ROOT

CRATE = ROOT / "crates" / "waterfill-endpoint"
SCENARIO = """
name = "endpoint"
duration = "5 s"
[[link]]
name = "link1"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "10 ms"
buffer = "30 kB"
[[flow]]
name = "mine"
protocol = "cubic"
path = ["link1"]
count = 2
[[flow]]
name = "rival"
protocol = "cubic"
path = ["link1"]
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    file: Path = tmp_path_factory.mktemp("endpoint") / "aimd.so"
    source = CRATE / "examples" / "aimd.c"
    include = CRATE / "include"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-I", include, "-o", file, source], check=True)
    return file


def test_endpoints_share_a_link_with_a_flow_of_ours(waterfill, library, tmp_path):
    (tmp_path / "s.toml").write_text(SCENARIO)
    command = ("run", "s.toml", "--json", "--endpoint", f"mine[1]={library}")
    first, second = (json.loads(waterfill(*command).out) for _ in range(2))
    assert first["flows"] == second["flows"]
    ours, theirs, rival = first["flows"]
    assert [ours["protocol"], theirs["protocol"], rival["protocol"]] == ["cubic", "aimd", "cubic"]
    rates = [flow["goodput_bps"] for flow in first["flows"]]
    assert min(rates) > 5e5
    assert 8e6 < sum(rates) < 10e6
    assert theirs["rtt_ms"]["mean"] is None
    # Payloads of 1200 bytes, one datagram each.
    assert theirs["goodput_bps"] * 1228 == pytest.approx(theirs["rate_bps"] * 1200, rel=0.02)


def test_datagrams_are_logged_with_their_sizes(waterfill, library, tmp_path):
    (tmp_path / "s.toml").write_text(SCENARIO)
    ran = waterfill(
        "run", "s.toml", "--json", "-o", "out", "--qlog-flow", "mine[1]", "--endpoint",
        f"mine[1]={library}",
    )  # fmt: skip
    flow = json.loads(ran.out)["flows"][1]
    text = (tmp_path / "out" / "mine[1].sqlog").read_text()
    records = [json.loads(line) for line in text.split("\x1e")[2:]]
    sent = [one for one in records if one["name"] == "transport:packet_sent"]
    received = [one for one in records if one["name"] == "transport:packet_received"]
    assert [one["data"]["header"]["packet_number"] for one in sent] == list(
        range(flow["packets_sent"])
    )
    assert {one["data"]["raw"]["length"] for one in sent} == {1200 + 28}
    assert {one["data"]["raw"]["length"] for one in received} == {8 + 28}
    assert 0 < len(received) <= len(sent)


def test_a_library_is_evaluated(waterfill, library, tmp_path):
    run = (
        "evaluate", "--endpoint", str(library), "--quick", "--only", "6.1,7.8-idle", "-o", "out"
    )  # fmt: skip
    document = json.loads(waterfill(*run, "--json").out)
    assert document["law"] == "aimd.so"
    tail_drop, idle = document["criteria"]
    assert idle["verdict"] == "not evaluated"
    assert "`application`" in idle["reason"]
    [cell] = tail_drop["cells"]
    assert cell["endpoints"] == [f"law={library}"]
    [limit] = cell["limits"]
    again = json.loads(
        waterfill("run", f"out/{cell['file']}", "--json", "--endpoint", f"law={library}").out
    )
    assert again["flows"][0]["protocol"] == "aimd"
    assert 100 * again["links"][0]["utilization"] == pytest.approx(limit["value"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--endpoint", "mine=x.so:a"), "endpoint: x.so:a: cannot be loaded: "),
        (("--endpoint", "mine=x.so:a=1,b"), 'endpoint: an option must be key=value, got "b"'),
        (("--endpoint", "mine"), 'endpoint: must be FLOW=LIBRARY, got "mine"; for example'),
        (("--endpoint", "mine=./no.so"), "endpoint: no.so: cannot be loaded: "),
        (("--endpoint", "mien=./no.so"), 'endpoint: unknown flow "mien"'),
        (("--endpoint", "mine=a", "--endpoint", "mine=b"), 'endpoint: flow "mine" is named twice'),
        (("--endpoint", "mine=a", "--on", "fluid"), "endpoint: fluid cannot run endpoints; use"),
    ],
)
def test_wrong_endpoints_are_one_line(waterfill, tmp_path, arguments, message):
    (tmp_path / "s.toml").write_text(SCENARIO)
    ran = waterfill("run", "s.toml", *arguments)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert message in ran.err
