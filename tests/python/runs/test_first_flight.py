"""Flows without a handshake: what their times contain, and what refuses them."""

from __future__ import annotations

import pytest

import waterfill
from waterfill.errors import InputError
from waterfill.network import protocols, resolve
from waterfill.scenario.loading import from_dict


def scenario(**keys):
    """Two links in a row, 10 and 5 Mbit/s, 10 and 20 ms, ample buffers."""
    common = {"rate": "10 Mbit/s", "delay": "10 ms", "buffer": "10 MB"}
    slow = common | {"rate": "5 Mbit/s", "delay": "20 ms"}
    flow = {"name": "f", "from": "a", "to": "c", "size": "96 kB", "initial_window": 4000}
    return {
        "duration": "5 s",
        "protocol": "cubic",
        "packet_size": "1000 B",
        "link": [
            {"name": "fast", "from": "a", "to": "b"} | common,
            {"name": "slow", "from": "b", "to": "c"} | slow,
        ],
        "flow": [flow],
    } | keys


# 40 B take 32 us on one link and 64 us on the other; 100 packets leave the slow link 1.6 ms apart.
BACK_S = 0.030 + 96e-6
ONE_WAY_S = 0.030 + 0.8e-3 + 100 * 1.6e-3


@pytest.mark.parametrize(
    ("keys", "completion_s", "ideal_s", "contents"),
    [
        ({}, 2 * BACK_S + ONE_WAY_S, 2 * BACK_S + ONE_WAY_S, "handshake"),
        ({"ideal": "one-way"}, 2 * BACK_S + ONE_WAY_S, ONE_WAY_S, "one-way"),
        ({"ideal": "rtt"}, 2 * BACK_S + ONE_WAY_S, BACK_S + ONE_WAY_S, "rtt"),
        ({"handshake": False}, ONE_WAY_S, ONE_WAY_S, "one-way"),
        ({"handshake": False, "ideal": "rtt"}, ONE_WAY_S, BACK_S + ONE_WAY_S, "rtt"),
    ],
)
def test_ideal_says_what_the_times_of_a_slowdown_contain(keys, completion_s, ideal_s, contents):
    result = waterfill.run(scenario(**keys))
    (row,) = result.transfers.to_pylist()
    assert (row["from"], row["to"]) == ("a", "c")
    assert row["completion_s"] == pytest.approx(completion_s, rel=1e-9)
    assert row["ideal_s"] == pytest.approx(ideal_s, rel=1e-9)
    assert row["slowdown"] == pytest.approx(1.0, rel=1e-9)
    assert result.slowdown_contents == contents


def test_a_flow_overrides_the_scenario():
    flows = scenario()["flow"]
    mixed = [flows[0] | {"handshake": True}, flows[0] | {"name": "g", "start": "2 s"}]
    result = waterfill.run(scenario(flow=mixed, handshake=False))
    with_it, without = result.transfers["completion_s"].to_pylist()
    assert with_it - without == pytest.approx(2 * BACK_S, rel=1e-9)
    assert result.slowdown_contents == "mixed"


@pytest.mark.parametrize(
    ("keys", "backend", "message"),
    [
        ({"handshake": False, "ideal": "handshake"}, "sim", r"ideal: \"handshake\" needs flows"),
        ({"handshake": False}, "fluid", "handshake: false is not supported by the fluid backend"),
        ({"handshake": False}, "linux", "handshake: false is not supported by the linux backend"),
    ],
)
def test_what_a_flow_without_a_handshake_cannot_have(keys, backend, message):
    with pytest.raises(InputError, match=message):
        resolve.to_core(from_dict(scenario(**keys)), protocols.load(), backend)


def test_quic_has_a_handshake():
    flow = scenario()["flow"][0] | {"recovery": "quic", "handshake": False}
    with pytest.raises(InputError, match=r"flow\.f\.recovery: \"quic\" begins with a handshake"):
        resolve.to_core(from_dict(scenario(flow=[flow])), protocols.load())
