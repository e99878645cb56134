"""Switches whose links share a buffer: scenario keys, resolution, results."""

from __future__ import annotations

import copy

import pytest

import waterfill
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
