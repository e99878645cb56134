"""Tests of named sizes, loads and patterns of [[traffic]]: the core's view, errors."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

import waterfill
from known import PROTOCOLS
from waterfill.analysis import transfers
from waterfill.errors import InputError
from waterfill.formats import rules
from waterfill.network import patterns, resolve
from waterfill.scenario import distributions
from waterfill.scenario.fabric import end_nodes
from waterfill.scenario.loading import from_dict
from waterfill.scenario.units import VOLUME
from waterfill.scenario.workloads import WORKLOADS


def fabric(traffic, **keys):
    """Two leaves with two hosts each, 1 Gbit/s, joined by two spines at half of that."""
    made = rules.leaf_spine(2, 2, 2, 1e9, 1e-5, uplink_bps=5e8)
    links = [
        {"name": p.name, "from": p.start, "to": p.end, "rate": f"{p.rate_bps:.0f} bit/s",
         "delay": "10 us", "buffer": "100 packets"}
        for p in made.links
    ]  # fmt: skip
    source = {"name": "t", "kind": "web", "sizes": "rpc", "pattern": "all-to-all"} | traffic
    return {"duration": "100 ms", "protocol": "maxnet", "link": links, "traffic": [source]} | keys


def resolved(traffic, **keys):
    network = resolve.to_core(from_dict(fabric(traffic, **keys)), PROTOCOLS)
    return network, network.traffic[0].flows


def pairs(network, group):
    """The hosts at the ends of routes: link h0-l0 joins host h0."""
    ends = [(network.links[r.forward[0]].name, network.links[r.forward[-1]].name) for r in group]
    return [(a.split("-")[0], b.split("-")[0]) for a, b in ends]


@pytest.mark.parametrize("name", WORKLOADS)
def test_points_of_workloads_are_distributions_of_their_means(name):
    found = distributions.parse(name, VOLUME)
    sizes, shares = np.array(found.points).T
    assert (np.diff(sizes) > 0).all()
    assert (np.diff(shares) > 0).all()
    assert shares[-1] == 1
    by_hand = sizes[0] * shares[0] + (np.diff(shares) * (sizes[1:] + sizes[:-1]) / 2).sum()
    assert found.mean == pytest.approx(by_hand)
    assert found.written(VOLUME) == name
    scaled = distributions.parse({"distribution": name, "mean": "50 kB"}, VOLUME)
    assert scaled.mean == 5e4
    assert np.allclose(np.array(scaled.points)[:, 0] / sizes, 5e4 / by_hand)
    assert distributions.parse(scaled.written(VOLUME), VOLUME) == scaled


def test_workloads_have_the_medians_of_their_figures():
    def median(name):
        sizes, shares = np.array(distributions.parse(name, VOLUME).points).T
        return float(np.interp(0.5, shares, sizes))

    assert median("data-mining") == 1100
    assert median("hadoop") == 700
    assert 70e3 < median("web-search") < 80e3
    assert 256 < median("rpc") < 260


def test_a_load_on_a_path_is_a_share_of_its_slowest_link():
    path = {"pattern": None, "path": ["h0-l0", "l0-s0", "l1-s0", "h2-l1"], "sizes": "10 kB"}
    path.pop("pattern")
    for load in (0.6, "60 %"):
        document = fabric({})
        document["traffic"] = [{"kind": "web", "name": "t", "load": load, **path}]
        flows = resolve.to_core(from_dict(document), PROTOCOLS).traffic[0].flows
        assert flows.arrivals_per_s == pytest.approx(0.6 * 5e8 / 8e4)
        assert flows.routes == ()


def test_a_load_of_a_pattern_is_a_share_of_what_hosts_send_across_the_bisection():
    # Each leaf's two hosts send 2 Gbit/s, but only 1 Gbit/s leaves it.
    _, flows = resolved({"load": "30 %", "sizes": "10 kB"})
    assert flows.arrivals_per_s == pytest.approx(0.3 * 2e9 / 8e4)
    # An incast to one host is limited by that host's link.
    _, flows = resolved({"load": 0.3, "sizes": "10 kB", "pattern": "incast", "to": "h3"})
    assert (flows.fan_in, flows.arrivals_per_s) == (3, pytest.approx(0.3 * 1e9 / 8e4 / 3))


def test_capacity_of_a_fat_tree_is_that_of_its_hosts():
    tree = rules.fat_tree(4, 1e9, 1e-6)
    hops = [patterns.Hop(*ends, p.rate_bps)
            for p in tree.links for ends in ((p.start, p.end), (p.end, p.start))]  # fmt: skip
    assert end_nodes((hop.start, hop.end) for hop in hops) == tree.hosts
    assert patterns.capacity_bps(hops, tree.hosts) == 16e9
    ring = [patterns.Hop(a, b, 1e9) for a, b in itertools.permutations("abc", 2)]
    assert end_nodes((hop.start, hop.end) for hop in ring) == ["a", "b", "c"]
    assert patterns.capacity_bps(ring, ["a", "b", "c"]) == 6e9
    star = [patterns.Hop(*ends, 1e9) for h in "ab" for ends in ((h, "s"), ("s", h))]
    assert patterns.capacity_bps(star, ["a", "b"]) == 2e9


def test_patterns_are_groups_of_pairs_of_hosts():
    network, flows = resolved({"load": 0.5})
    (group,) = flows.routes
    assert sorted(pairs(network, group)) == sorted(itertools.permutations(
        ["h0", "h1", "h2", "h3"], 2))  # fmt: skip
    network, flows = resolved({"load": 0.5, "pattern": "permutation"})
    (group,) = flows.routes
    senders, sinks = zip(*pairs(network, group), strict=True)
    assert set(senders) == set(sinks) == {"h0", "h1", "h2", "h3"}
    assert all(a != b for a, b in pairs(network, group))
    network, flows = resolved({"load": 0.5, "pattern": "incast", "fan_in": 2})
    assert [sorted(pairs(network, group)) for group in flows.routes] == [
        [(a, sink) for a in ("h0", "h1", "h2", "h3") if a != sink]
        for sink in ("h0", "h1", "h2", "h3")
    ]
    network, flows = resolved({"load": 0.5, "hosts": ["h0", "h3"]})
    assert pairs(network, flows.routes[0]) == [("h0", "h3"), ("h3", "h0")]


def test_equal_routes_are_drawn_by_the_seed_and_acknowledgements_return_on_theirs():
    def spines(seed):
        network, flows = resolved({"load": 0.5}, seed=seed)
        for route in flows.routes[0]:
            there = [network.links[i].name.removesuffix(":rev") for i in route.forward]
            back = [network.links[i].name.removesuffix(":rev") for i in route.reverse]
            assert there == back[::-1]
        return [network.links[r.forward[1]].name for r in flows.routes[0] if len(r.forward) == 4]

    assert spines(1) == spines(1)
    drawn = Counter(name for seed in range(8) for name in spines(seed))
    uses = [count for name, count in drawn.items() if not name.endswith(":rev")]
    assert len(uses) == 4
    assert min(uses) > 5


def test_a_buffer_of_one_bdp_and_a_target_count_the_routes_of_a_pattern():
    document = fabric({"load": 0.1})
    for link in document["link"]:
        del link["buffer"]
    network = resolve.to_core(from_dict(document), PROTOCOLS)
    # Four hops of 10 us each way: 80 us.
    assert network.links[0].buffer.size == round(1e9 / 8 * 80e-6)


def test_flows_of_a_pattern_complete_and_know_their_own_ideal_times():
    document = fabric({"load": "20 %"}, duration="3 s", sample="1 s", rto_min="5 ms")
    document["traffic"][0] |= {"stop": "150 ms", "initial_window": 3, "protocol": "cubic"}
    result = waterfill.run(document)
    source = result.summary["traffic"][0]
    assert source["flows_started"] > 1000
    assert source["flows_completed"] == source["flows_started"]
    slowdown = result.transfers["slowdown"].to_numpy()
    assert slowdown.min() == pytest.approx(1.0, abs=1e-6)
    # Some pairs share a leaf, and their flows take half as long.
    ideal = result.transfers.filter(result.transfers["size_bytes"].to_numpy() < 1000)["ideal_s"]
    assert len(set(np.round(ideal.to_numpy(), 5))) >= 2


WRONG = {
    "load = 0": "load: must be in (0, 100], got 0",
    'load = "60"': 'load: must be a load such as "60 %", got "60"',
    'load = "x %"': 'load: must be a load such as "60 %", got "x %"',
    "arrival_rate = 5\nload = 0.5": (
        "load: not allowed together with arrival_rate; remove one of them"
    ),
    'load = 0.5\nfrom = "h0"': 'from: not allowed with pattern = "all-to-all"',
    'load = 0.5\nto = "h0"': 'to: only allowed with pattern = "incast"',
    "load = 0.5\nfan_in = 2": 'fan_in: only allowed with pattern = "incast"',
    'load = 0.5\naccess_rate = "1 Gbit/s"': (
        "access_rate: not allowed with a pattern, because its hosts have links"
    ),
    'load = 0.5\nhosts = ["h0", "h0"]': 'hosts: must name each host once, got "h0" twice',
    'load = 0.5\nhosts = ["h0", "h9"]': 'hosts: no link ends at "h9"',
}


@pytest.mark.parametrize("text", WRONG)
def test_errors_name_the_key(text):
    import tomllib

    with pytest.raises(InputError) as error:
        resolved(tomllib.loads(text))
    assert str(error.value).removeprefix("<dict>: traffic.t.") == WRONG[text]


def test_other_errors_of_patterns_name_the_key():
    def refusal(document):
        with pytest.raises(InputError) as error:
            resolve.to_core(from_dict(document), PROTOCOLS)
        return str(error.value).removeprefix("<dict>: traffic.t.")

    incast = {"load": 0.5, "pattern": "incast"}
    assert refusal(fabric(incast | {"fan_in": 4})) == (
        "fan_in: must be at most 3, the number of other hosts, got 4"
    )
    assert refusal(fabric(incast | {"to": "x"})) == 'to: no link ends at "x"'
    alone = fabric({"load": 0.5})
    del alone["traffic"][0]["pattern"]
    alone["traffic"][0] |= {"path": ["h0-l0"], "hosts": ["h0", "h1"]}
    assert refusal(alone) == "hosts: only allowed with a pattern"
    apart = fabric({"load": 0.5, "hosts": ["h0", "z"]})
    apart["link"].append({"name": "y-z", "from": "y", "to": "z", "rate": "1 Gbit/s"})
    assert refusal(apart) == 'hosts: no route from "h0" to "z"; add a link'


@pytest.mark.parametrize("backend", ["fluid", "linux"])
def test_only_the_simulator_has_patterns(backend):
    with pytest.raises(InputError, match="is not supported by"):
        resolve.to_core(from_dict(fabric({"load": 0.5})), PROTOCOLS, backend)


def test_incasts_start_at_given_times_next_to_other_traffic():
    """Both receivers' links carry 3 × 20 kB, which take 3 × 15 packets of 12 us."""
    made = fabric(
        {"pattern": "incast", "to": "h0", "sizes": "20 kB", "at": ["10 ms", "40 ms"]},
        profile="datacenter",
    )
    background = {"name": "b", "kind": "web", "from": "h2", "to": "h3", "sizes": "1 kB",
                  "load": "1 %"}  # fmt: skip
    result = waterfill.run(made | {"traffic": [*made["traffic"], background]})
    found = transfers.incasts(result.transfers, result.network)
    assert [(one.start_s, one.flows, one.unfinished) for one in found] == [
        (0.01, 3, 0), (0.04, 3, 0)
    ]  # fmt: skip
    last = result.transfers.filter(np.array(result.transfers["source"].to_pylist()) == "t")
    assert set(last["to"].to_pylist()) == {"h0"}
    assert sorted(last["from"].to_pylist()) == ["h1", "h1", "h2", "h2", "h3", "h3"]
    assert found[0].completion_s == max(last["completion_s"].to_pylist()[:3])
    assert 3 * 14 * 12e-6 < found[0].completion_s < 2e-3
    (summary,) = transfers.incast_summaries(result.transfers, result.network)
    assert (summary.arrivals, summary.flows, summary.unfinished) == (2, 3, 0)
    assert summary.slowest_s == max(one.completion_s for one in found)


def test_every_repeats_an_arrival_from_the_start_to_the_stop():
    keys = {"pattern": "incast", "every": "10 ms", "start": "5 ms", "stop": "35 ms"}
    assert resolved(keys)[1].at_s == (0.005, 0.015, 0.025)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"at": ["2 ms", "1 ms"]}, r"at: must be in order of time, got 1 ms after 2 ms"),
        ({"at": ["200 ms"]}, r"at: must be within 0 s to 100 ms, got 200 ms"),
        ({"at": ["1 ms"], "start": "2 ms"}, r"at: must be within 2 ms to 100 ms, got 1 ms"),
        ({"at": ["1 ms"], "load": "5 %"}, r"at: not allowed together with load"),
        ({"every": "1 ns"}, r"every: gives 1e\+08 arrivals; the limit is 100,000"),
        ({}, r"arrival_rate: missing; .* or times of arrivals \(at, every\)"),
    ],
)
def test_times_of_arrivals_are_checked(keys, message):
    with pytest.raises(InputError, match=message):
        from_dict(fabric({"pattern": "incast"} | keys))
