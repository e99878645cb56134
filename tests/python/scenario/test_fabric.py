"""`[fabric]`: a network of a data center by rule."""

from __future__ import annotations

from itertools import chain

import pytest

import waterfill
from waterfill.formats import rules
from waterfill.network import protocols, resolve
from waterfill.scenario.loading import from_dict, from_toml

LEAVES = {
    "kind": "leaf-spine", "leaves": 3, "spines": 2, "hosts": 4,
    "host_rate": "100 Gbit/s", "delay": "1 us",
}  # fmt: skip
FILE = {"duration": "1 ms", "protocol": "dctcp", "flow": [{"name": "f", "from": "h0", "to": "h5"}]}


def plans(scenario):
    return [(x.name, x.from_, x.to, x.rate, x.delay) for x in scenario.link]


@pytest.mark.parametrize(
    ("fabric", "layout"),
    [
        (LEAVES, rules.leaf_spine(3, 2, 4, 1e11, 1e-6)),
        (LEAVES | {"oversubscription": 4}, rules.leaf_spine(3, 2, 4, 1e11, 1e-6, 5e10)),
        (LEAVES | {"uplink_rate": "400 Gbit/s"}, rules.leaf_spine(3, 2, 4, 1e11, 1e-6, 4e11)),
        ({"kind": "fat-tree", "k": 4, "host_rate": "25 Gbit/s", "delay": "500 ns"},
         rules.fat_tree(4, 25e9, 5e-7)),
        ({"kind": "rail-optimized", "servers": 4, "rails": 8, "spines": 2,
          "host_rate": "400 Gbit/s", "delay": "1 us", "oversubscription": 2},
         rules.rail_optimized(4, 8, 2, 4e11, 1e-6, 2)),
    ],
)  # fmt: skip
def test_a_fabric_has_the_links_of_its_rule(fabric, layout):
    scenario = from_dict({**FILE, "fabric": fabric})
    assert plans(scenario) == [
        (x.name, x.start, x.end, x.rate_bps, x.delay_s) for x in layout.links
    ]
    assert from_toml(scenario.to_toml()).link == scenario.link


def test_an_interface_of_each_server_is_at_each_rail():
    layout = rules.rail_optimized(3, 4, 2, 1e11, 1e-6, 2)
    assert layout.hosts == [f"h{n}" for n in range(12)]
    leaf = {link.start: link.end for link in layout.links if link.start.startswith("h")}
    for server in range(3):
        assert [leaf[f"h{4 * server + rail}"] for rail in range(4)] == ["l0", "l1", "l2", "l3"]
    up = [link.rate_bps for link in layout.links if link.start == "l0"]
    assert sum(up) == 3 * 1e11 / 2


def test_a_link_of_the_same_name_changes_its_keys():
    slow = {"name": "l1-s0", "rate": "10 Gbit/s", "event": [{"at": "500 us", "up": False}]}
    extra = {"name": "x", "from": "h0", "to": "h1", "rate": "1 Gbit/s", "delay": "2 us"}
    scenario = from_dict(
        {**FILE, "fabric": LEAVES, "link": [slow, extra], "link_defaults": {"buffer": "4 MB"}},
        sets=["fabric.spines=3", "link.h0-*.buffer=1 MB"],
    )
    links = {link.name: link for link in scenario.link}
    assert len(links) == 12 + 3 * 3 + 1
    assert (links["l1-s0"].rate, links["l1-s0"].event[0].up) == (10e9, False)
    assert links["l1-s1"].rate == 4 * 100e9 / 3
    assert [str(links[name].buffer) for name in ("h0-l0", "h1-l0", "x")] == ["1 MB", "4 MB", "4 MB"]
    assert from_dict({**FILE, "fabric": LEAVES}, sets={"fabric.spines": 3}).link[12].to == "s0"


def route(file, seed):
    scenario = from_dict(file | {"seed": seed})
    network = resolve.to_core(scenario, protocols.load())
    return [network.links[i].name for i in network.flows[0].forward]


def test_the_seed_draws_one_of_the_equal_routes_of_a_pair():
    file = {**FILE, "fabric": LEAVES}
    routes = [route(file, seed) for seed in range(1, 20)]
    assert {tuple(one) for one in routes} == {
        ("h0-l0", f"l0-{spine}", f"l1-{spine}:rev", "h5-l1:rev") for spine in ("s0", "s1")
    }
    # A source of flows between the same hosts takes the same route.
    web = {"kind": "web", "load": 0.1, "pattern": "permutation", "hosts": ["h0", "h5"]}
    for seed in (1, 2, 3, 4):
        network = resolve.to_core(
            from_dict(file | {"traffic": [web], "flow": [], "seed": seed}), protocols.load()
        )
        drawn = {
            tuple(network.links[i].name for i in one.forward)
            for one in chain.from_iterable(network.traffic[0].flows.routes)
        }
        assert tuple(routes[seed - 1]) in drawn
    plain = from_toml(from_dict(file).to_toml())
    assert plain.ecmp == "pair"
    with pytest.raises(waterfill.InputError, match=r'several .* or write ecmp = "pair"'):
        resolve.to_core(plain.model_copy(update={"ecmp": None}), protocols.load())


@pytest.mark.parametrize(
    ("fabric", "sets", "message"),
    [
        (3, [], "<dict>: fabric: must be a table, got 3; write [fabric]"),
        ({}, [], '<dict>: fabric.kind: missing; write one of "fat-tree", '),
        (LEAVES, ["fabric.kind=tree"], "command line: fabric.kind: must be "),
        (LEAVES, ["fabric.spine=2"], "command line: fabric.spine: unknown key, did you mean"),
        (LEAVES, ["fabric.k=4"], "fabric.k: not a key of a leaf-spine, got 4; it has leaves, "),
        ({k: v for k, v in LEAVES.items() if k != "hosts"}, [],
         "<dict>: fabric.hosts: missing; a leaf-spine has leaves, spines, hosts"),
        (LEAVES, ["fabric.hosts=0"], "fabric.hosts: must be from 1 to 1000000, got 0"),
        (LEAVES, ["fabric.hosts=1000000", "fabric.leaves=1000000"],
         "fabric: more than 200000 links, got 1000002000000"),
        (LEAVES, ["fabric.host_rate=100"], "command line: fabric.host_rate: must be a rate "),
        (LEAVES, ["fabric.oversubscription=0"], "fabric.oversubscription: must be above 0, got 0"),
        (LEAVES | {"oversubscription": 2}, ["fabric.uplink_rate=1 Gbit/s"],
         "<dict>: fabric.oversubscription: decided by uplink_rate, got 2; remove one"),
        ({"kind": "fat-tree", "k": 5, "host_rate": "1 Gbit/s", "delay": "1 us"}, [],
         "<dict>: fabric: k must be an even number from 2 to 64, got 5"),
        (LEAVES, ["link.l9-s0.rate=1 Gbit/s"], "command line: link.l9-s0.rate: unknown [[link]]"),
    ],
)  # fmt: skip
def test_wrong_values_are_named(fabric, sets, message):
    with pytest.raises(waterfill.InputError) as caught:
        from_dict({**FILE, "fabric": fabric}, sets=sets)
    assert message in str(caught.value)


def test_check_counts_equal_links(capsys):
    from waterfill.cli import tables
    from waterfill.cli.console import show
    from waterfill.runs import effective

    slow = {"name": "l1-s0", "rate": "1 Gbit/s"}
    file = {**FILE, "profile": "datacenter", "fabric": LEAVES, "link": [slow]}
    scenario = from_dict(file)
    show(*tables.effective(effective.document(scenario, "sim", {})))
    shown = capsys.readouterr().out
    assert "h0-l0 and 23 more" in shown
    assert "l0-s0 and 9 more" in shown
    assert "l1-s0 and 1 more" in shown
