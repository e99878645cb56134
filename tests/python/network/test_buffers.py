"""Switches whose links share a buffer: scenario keys, resolution, results."""

from __future__ import annotations

import copy
import warnings

import pytest

import waterfill
from waterfill.analysis import hosts
from waterfill.network import protocols, resolve
from waterfill.scenario import loading

DOCUMENT = {
    "duration": "400 us",
    "protocol": "dctcp",
    "profile": "datacenter",
    "handshake": False,
    "measure": ["0 s", "400 us"],
    "fabric": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts": 4,
               "host_rate": "100 Gbit/s", "delay": "1 us"},
    "switch": {"buffer": "600 kB"},
    "traffic": [{"name": "incast", "kind": "web", "pattern": "incast", "to": "h0",
                 "sizes": "200 kB", "initial_window": 200, "at": ["10 us"]}],
}  # fmt: skip


def resolved(backend: str = "sim", **keys):
    scenario = loading.from_dict(copy.deepcopy(DOCUMENT | keys))
    return resolve.to_core(scenario, protocols.load(), backend)


def test_links_that_leave_a_switch_share_its_buffer():
    network = resolved(switch={"buffer": "2 MB", "alpha": 0.25})
    names = [link.name for link in network.links]
    leaf = network.switches[0]
    assert (leaf.name, leaf.buffer_bytes, leaf.alpha) == ("l0", 2_000_000, 0.25)
    assert [names[i] for i in leaf.outputs] == [
        "h0-l0:rev", "h1-l0:rev", "h2-l0:rev", "h3-l0:rev", "l0-s0", "l0-s1"
    ]  # fmt: skip
    assert sorted(switch.name for switch in network.switches) == ["l0", "l1", "s0", "s1"]
    down, up = (network.links[names.index(name)] for name in ("h0-l0:rev", "h0-l0"))
    assert down.buffer.size == 2_000_000
    assert up.buffer.size > 2_000_000, "a host's own"


def test_hosts_pull_with_switches():
    def pulls(**keys):
        return [link.name for link in resolved(**keys).links if link.pull]

    hosts = [f"h{n}-l{n // 4}" for n in range(8)]
    assert pulls() == hosts
    assert pulls(nic="queue") == []
    assert pulls(nic="pull", switch=None) == hosts
    assert pulls(switch=None) == []


def test_pulling_hosts_do_not_drop():
    """One host sends to seven; its link would hold 20 packets."""
    flows = [{"name": f"f{n}", "from": "h0", "to": f"h{n}", "size": "200 kB",
              "initial_window": 200} for n in range(1, 8)]  # fmt: skip
    link = {"name": "h0-l0", "buffer": "20 packets", "mark_at": "5 packets"}
    for nic, drops in [("queue", True), ("pull", False)]:
        document = {k: v for k, v in DOCUMENT.items() if k not in ("traffic", "switch")}
        document |= {"flow": flows, "link": [link], "nic": nic}
        summary = waterfill.run(loading.from_dict(document)).summary
        first = next(link for link in summary.links if link.name == "h0-l0")
        assert (first.drops > 0) == drops


def test_an_incast_fills_its_share_of_the_buffer():
    """One queue at h0's leaf is overloaded, so it takes αB/(1 + α)."""
    for alpha, share in [(1, 1 / 2), (3, 3 / 4)]:
        switch = {"buffer": "600 kB", "alpha": alpha}
        summary = waterfill.run(loading.from_dict(DOCUMENT | {"switch": switch})).summary
        used = {switch.name: switch for switch in summary.switches}
        assert abs(used["l0"].used_max_bytes - share * 600e3) < 3000, used
        dropping = [link.name for link in summary.links if link.drops]
        assert "h0-l0:rev" in dropping
        assert used["l1"].used_max_bytes < 600e3 * share


def test_a_run_without_switches_has_no_table_of_them():
    document = {key: value for key, value in DOCUMENT.items() if key != "switch"}
    assert "switches" not in waterfill.run(loading.from_dict(document)).summary


@pytest.mark.parametrize(
    ("backend", "keys", "message"),
    [
        ("sim", {"switch": {}}, "switch.buffer: missing"),
        ("sim", {"switch": {"buffer": "0 B"}}, "switch.buffer: must be above zero"),
        ("sim", {"switch": {"buffer": "1 MB", "alpha": 0}},
         r"switch.alpha: must be in \(0, 1e\+06\], got 0"),
        ("sim", {"switch": {"buffer": "1 MB", "size": 1}}, "switch.size: unknown key"),
        ("fluid", {}, r"switch: not supported by the fluid backend; remove \[switch\]"),
        ("fluid", {"switch": None, "nic": "pull", "handshake": True, "traffic": [],
                   "flow": [{"name": "f", "from": "h0", "to": "h1"}], "protocol": "maxnet"},
         'nic: "pull" is not supported by the fluid backend; use "queue"'),
        ("linux", {"profile": "wan"},
         r"switch: not supported by the linux backend; remove \[switch\]"),
    ],
)  # fmt: skip
def test_what_a_switch_cannot_be(backend, keys, message):
    with pytest.raises(waterfill.InputError, match=message):
        resolved(backend, **keys)


def test_a_network_without_switches_is_refused():
    link = {"name": "l", "from": "a", "to": "b", "rate": "1 Gbit/s", "delay": "1 us"}
    document = {
        "duration": "1 ms", "protocol": "dctcp", "link": [link], "switch": {"buffer": "1 MB"},
        "flow": [{"name": "f", "from": "a", "to": "b"}],
    }  # fmt: skip
    with pytest.raises(waterfill.InputError, match="switch: no node has links to two others"):
        waterfill.run(loading.from_dict(document))


def test_a_switch_without_a_plain_queue_is_refused():
    with pytest.raises(waterfill.InputError, match="cannot share the buffer of switch"):
        waterfill.run(loading.from_dict(DOCUMENT | {"link_defaults": {"queue": "codel"}}))


def pfc(**keys):
    return {"switch": {"buffer": "2 MB", "pfc": True} | keys}


def test_the_headroom_follows_from_rates_and_delays():
    """100 Gbit/s and 1 us: 25,000 B on the way, two packets and the frame. Uplinks: 200 Gbit/s."""
    network = resolved(**pfc())
    leaf = network.switches[0]
    assert leaf.alpha == 0.125
    names = [link.name for link in network.links]
    inputs = {names[i.link]: (names[i.back], i.headroom_bytes) for i in leaf.pfc.inputs}
    assert inputs["h0-l0"] == ("h0-l0:rev", 25_000 + 2 * 1500 + 64)
    assert inputs["l0-s1:rev"] == ("l0-s1", 50_000 + 2 * 1500 + 64)
    assert len(inputs) == 6
    given = resolved(**pfc(xoff="100 kB", headroom="50 kB")).switches[1]
    assert given.pfc.xoff_bytes == 100_000
    assert {i.headroom_bytes for i in given.pfc.inputs} == {50_000}


def test_an_incast_of_255_hosts_is_lossless():
    """All packets reach h0, whose link they fill without a break."""
    fabric = {"kind": "leaf-spine", "leaves": 16, "spines": 8, "hosts": 16,
              "host_rate": "100 Gbit/s", "delay": "1 us"}  # fmt: skip
    document = DOCUMENT | pfc() | {"fabric": fabric, "duration": "2 ms", "ecmp": "hash",
                                   "measure": ["0 s", "2 ms"]}  # fmt: skip
    document["traffic"] = [{"name": "incast", "kind": "web", "pattern": "incast", "to": "h0",
                            "sizes": "20 kB", "initial_window": 20, "at": ["10 us"]}]  # fmt: skip
    for lossless in (True, False):
        switch = document["switch"] | {"pfc": lossless}
        if not lossless:
            switch = {"buffer": "600 kB"}
        summary = waterfill.run(loading.from_dict(document | {"switch": switch})).summary
        drops = sum(link.drops for link in summary.links)
        assert (drops == 0) == lossless
        if lossless:
            source = summary.traffic[0]
            assert (source.flows_completed, source.retransmissions) == (255, 0)
            # 14 packets of 1,460 B of payload take 20,560 B on the wire.
            ideal_ms = 255 * 20_560 * 8 / 100e6
            assert ideal_ms < source.flow_completion_ms.max < ideal_ms + 0.02
            assert sum(link.pause_frames or 0 for link in summary.links) > 0
            assert summary.deadlock is None
            assert max(switch.used_max_bytes for switch in summary.switches) < 2e6


def test_a_planted_deadlock_is_reported(tmp_path):
    """Three switches in a ring; each flow crosses two of its links."""
    rate = {"rate": "100 Gbit/s", "delay": "1 us"}
    links = [{"name": f"r{i}", "from": f"s{i}", "to": f"s{(i + 1) % 3}"} | rate for i in range(3)]
    links += [{"name": f"h{i}", "from": f"h{i}", "to": f"s{i}"} | rate for i in range(3)]
    flows = [
        {"name": f"f{i}", "path": [f"h{i}", f"r{i}", f"r{(i + 1) % 3}", f"h{(i + 2) % 3}"]}
        for i in range(3)
    ]
    document = {
        "duration": "2 ms", "sample": "20 us",
        "rto_min": "200 us", "syn_rto": "200 us",
        "protocol": "window", "link": links, "flow": flows,
        "params": {"window": {"packets": 1000}}, "measure": ["0 s", "2 ms"],
        "switch": {"buffer": "300 kB", "pfc": True, "xoff": "30 kB"},
    }  # fmt: skip
    result = waterfill.run(loading.from_dict(document))
    assert result.summary.deadlock.links == ["r0", "r1", "r2"]
    assert result.summary.deadlock.at_s < 1e-3
    lines = hosts.warnings(result.summary)
    assert any(line.startswith("deadlock: r0, r1, r2 are paused") for line in lines)
    paused = result.links.column("paused").to_pylist()
    assert max(p for p in paused if p is not None) == pytest.approx(1)


@pytest.mark.parametrize(
    ("switch", "message"),
    [
        ({"buffer": "1 MB", "xoff": "1 kB"}, "switch.xoff: has no effect without pfc"),
        ({"buffer": "1 MB", "headroom": "1 kB"}, "switch.headroom: has no effect without pfc"),
        ({"buffer": "100 kB", "pfc": True}, "switch.buffer: must be above the headroom of l0"),
        ({"buffer": "1 MB", "pfc": True, "xoff": "2 MB"}, "switch.xoff: must be at most the buf"),
        ({"buffer": "1 MB", "pfc": True, "xoff": "9 kB", "alpha": 1}, "switch.alpha: has no effec"),
    ],
)
def test_what_pfc_refuses(switch, message):
    with pytest.raises(waterfill.InputError, match=message):
        waterfill.run(loading.from_dict(DOCUMENT | {"switch": switch}))


def test_hosts_of_lossless_switches_pull():
    with pytest.raises(waterfill.InputError, match='nic: must be "pull" with pfc'):
        loading.from_dict(DOCUMENT | {"switch": {"buffer": "1 MB", "pfc": True}, "nic": "queue"})


@pytest.mark.parametrize(
    ("switch", "warned"),
    [
        ({"buffer": "150 kB", "alpha": 0.5}, True),  # a queue has 50 kB at most
        ({"buffer": "400 kB", "alpha": 0.5}, False),
        ({"buffer": "2 MB", "pfc": True}, False),
    ],
)
def test_a_threshold_above_the_longest_queue_is_named(switch, warned):
    document = DOCUMENT | {"switch": switch, "link_defaults": {"mark_at": "100 kB"}}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        waterfill.run(loading.from_dict(document))
    found = [str(one.message) for one in caught if "switch.buffer" in str(one.message)]
    assert bool(found) == warned
    if warned:
        assert "a single queue of at most 50 kB is below mark_at, 100 kB" in found[0]
