"""Switches that choose links in a run: what the front end derives, and what it refuses."""

from __future__ import annotations

import itertools

import pytest

import waterfill
from waterfill.analysis import tables
from waterfill.errors import InputError
from waterfill.network import protocols, resolve, shares, switching
from waterfill.network.graph import Graph
from waterfill.network.shortest import entries
from waterfill.runs import effective
from waterfill.scenario.loading import from_dict, from_toml
from waterfill.theory import subject

FABRIC = {"kind": "leaf-spine", "leaves": 3, "spines": 4, "hosts": 2, "host_rate": "10 Gbit/s",
          "delay": "1 us"}  # fmt: skip
FLOW = {"name": "f", "from": "h0", "to": "h5", "size": "150 kB"}
DATACENTER = {"profile": "datacenter", "sample": "100 us"}
WEB = {"name": "web", "kind": "poisson", "pattern": "all-to-all", "sizes": "20 kB", "load": 0.3}


def build(**more):
    document = {"duration": "2 ms", "protocol": "dctcp", "ecmp": "hash", "fabric": FABRIC,
                "link_defaults": {"mark_at": "30 kB"}, **more}  # fmt: skip
    if "flow" not in document and "traffic" not in document:
        document["flow"] = [FLOW]
    return from_dict(document, "S.toml")


def core(**more):
    return resolve.to_core(build(**more), protocols.load())


def refusal(call, **more):
    with pytest.raises(InputError) as refused:
        call(build(**more))
    return str(refused.value)


@pytest.mark.parametrize("pattern", ["all-to-all", "permutation", "incast"])
def test_the_cover_has_each_link_with_its_largest_rtt(pattern):
    """Compared with a walk over all equal routes of each pair. Two links have delays of their own,
    and one of them also other routes."""
    slow = [{"name": "h0-l0", "delay": "7 us"}, {"name": "l1-s2", "delay": "2 us"}]
    graph = Graph(build(traffic=[WEB | {"pattern": pattern}], link=slow))
    found: dict[int, float] = {}
    for route in graph.pattern_routes(0)[0]:
        for link in route.forward:
            found[link] = max(found.get(link, 0.0), route.base_rtt_s)
    number = {node: i for i, node in enumerate(graph._numbers)}
    names = {i: node for node, i in number.items()}
    starts = [start for start, _ in graph.nodes()]
    delays_s = [direction.link.min_delay for direction in graph.directions]

    def crossed(start, end):
        """Links on all shortest routes, and the delay of one."""
        into = entries(graph._leaving, start)
        links, waiting = set(), [end]
        while waiting:
            new = [i for i in into[waiting.pop()] if i not in links]
            links.update(new)
            waiting += [names[starts[i]] for i in new]
        delay_s, node = 0.0, end
        while node != start:
            delay_s += delays_s[into[node][0]]
            node = names[starts[into[node][0]]]
        return links, delay_s

    expected: dict[int, float] = {}
    for a, b in itertools.chain.from_iterable(graph.pairs(0)):
        links, there_s = crossed(names[a], names[b])
        rtt_s = there_s + crossed(names[b], names[a])[1]
        for link in links:
            expected[link] = max(expected.get(link, 0.0), rtt_s)
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, rel=1e-12)
    assert max(found.values()) > min(found.values())


def test_buffers_of_all_equal_links_count_the_flow():
    """1 bdp of 8 us at 5 Gbit/s, on each of the eight links that the data may cross."""
    network = core()
    sizes = {link.name: link.buffer.size for link in network.links}
    assert [sizes[f"{leaf}-s{s}"] for leaf in ("l0", "l2") for s in range(4)] == [5000] * 8
    assert sizes["l1-s0"] > 5000
    assert network.switching.choice == "hash"
    assert [flow.switched for flow in network.flows] == [True]


def test_neighbors_cross_their_link_only():
    """Also hosts without another link, and a switch and its host."""
    link = {"name": "x", "from": "a", "to": "b", "rate": "10 Gbit/s", "delay": "3 us"}
    one = {"name": "f", "from": "a", "to": "b"}
    graph = Graph(build(flow=[one], link=[link]))
    names = [direction.name for direction in graph.directions]
    (route,) = graph.flows_cover()
    assert [names[i] for i in route.forward] == ["x"]
    assert (route.base_rtt_s, len(route.reverse)) == (pytest.approx(6e-6), 1)
    for start, end, way in (("h0", "l0", "h0-l0"), ("l0", "h0", "h0-l0:rev")):
        graph = Graph(build(flow=[one | {"from": start, "to": end}]))
        (route,) = graph.flows_cover()
        assert [graph.directions[i].name for i in route.forward] == [way]
    run = waterfill.run(build(flow=[one], link=[link], **DATACENTER))
    assert run.summary.flows[0].rate_bps > 9e9


def test_a_path_is_not_switched():
    listed = FLOW | {"path": ["h0-l0", "l0-s1", "l2-s1", "h5-l2"]}
    assert [flow.switched for flow in core(flow=[listed]).flows] == [False]


def test_the_route_of_a_pair_is_one_of_its_shortest():
    flows = core(traffic=[WEB]).traffic[0].flows
    network = core(traffic=[WEB])
    way = switching.ways(network, flows, switching.of_network(network))
    ends = network.switching.nodes
    for index, (start, end) in enumerate(flows.pairs[0]):
        route = way(index)
        assert (ends[route.forward[0]][0], ends[route.forward[-1]][1]) == (start, end)
        assert (ends[route.reverse[0]][0], ends[route.reverse[-1]][1]) == (end, start)
        assert round(route.base_rtt_s * 1e6, 9) == 2 * len(route.forward) in (4, 8)


@pytest.mark.parametrize("choice", ["hash", "flowlet", "spray"])
def test_a_run_reports_transfers(choice):
    gap = {"flowlet_gap": "20 us"} if choice == "flowlet" else {}
    run = waterfill.run(build(ecmp=choice, traffic=[WEB], flow=[FLOW], **DATACENTER, **gap))
    rows = run.transfers.to_pylist()
    assert len(rows) > 50
    assert all(row["from"] != row["to"] for row in rows)
    assert min(row["slowdown"] for row in rows if row["slowdown"] is not None) > 0.999
    (own,) = [row for row in rows if row["source"] == "f"]
    assert (own["from"], own["to"]) == ("h0", "h5")
    assert run.summary.flows[0].max_min_bps is None
    assert "switches choose the links" in tables.without_shares(run.network)


def test_a_gap_is_kept_for_another_choice_of_the_command_line():
    file = build(ecmp="flowlet", flowlet_gap="20 us", flow=[FLOW], **DATACENTER).to_toml()
    network = resolve.to_core(from_toml(file, sets=["ecmp=hash"]), protocols.load())
    assert (network.switching.choice, network.switching.gap_s) == ("hash", None)
    network = resolve.to_core(from_toml(file), protocols.load())
    assert (network.switching.choice, network.switching.gap_s) == ("flowlet", 2e-5)


def test_check_counts_pairs():
    document = effective.document(build(traffic=[WEB], **DATACENTER))
    assert document["traffic"][0]["flows"]["pairs"] == 30
    assert set(document["backends"]) == {"sim", "fluid", "linux"}


def test_targets_hold_on_each_equal_link():
    laws = {"protocol": "maxnet", "params": {"maxnet": {"mu": 0.8}}}
    document = effective.document(build(**laws, **DATACENTER))
    targets = {link["name"]: link["target"] for link in document["links"]}
    assert [targets[f"l0-s{s}"] for s in range(4)] == [0.8] * 4
    assert targets["l1-s0"] == 1.0


@pytest.mark.parametrize(
    ("call", "more", "message"),
    [
        (str, {"ecmp": "flowlet"}, 'flowlet_gap: missing; write flowlet_gap = "20 us", next to '
         'ecmp = "flowlet"'),
        (str, {"flowlet_gap": "1 ms"}, 'flowlet_gap: has no effect without ecmp = "flowlet"; '
         "remove it"),
        (lambda s: resolve.to_core(s, protocols.load(), "fluid"), {"protocol": "maxnet"},
         'ecmp: "hash" is not supported by the fluid backend; use "pair"'),
        (lambda s: resolve.to_core(s, protocols.load(), "linux"), {},
         'ecmp: "hash" is not supported by the linux backend; use "pair"'),
        (shares.document, {}, 'ecmp: "hash" lets switches choose links in a run, and shares need '
         'fixed paths; use ecmp = "pair"'),
        (lambda s: subject._on_network(s, ["maxnet"]), {"protocol": "maxnet"},
         'ecmp: "hash" lets switches choose links in a run, and theory needs fixed paths; use '
         'ecmp = "pair"'),
        (waterfill.run, {"protocol": "sperc", "ecmp": "spray"},
         'flow.f.protocol: sperc keeps a slot for each link of one path, which ecmp = "spray" '
         'changes; use ecmp = "hash"'),
        (waterfill.run, {"protocol": "hpcc", "ecmp": "spray"},
         "flow.f.protocol: hpcc compares telemetry of one path, and ecmp = \"spray\" sends each "
         'packet on another; use ecmp = "hash" or "flowlet"'),
        (lambda s: resolve.to_core(s, protocols.load()),
         {"link": [{"name": "x", "from": "y", "to": "z", "rate": "1 Gbit/s", "delay": "1 us"}],
          "flow": [FLOW | {"to": "z"}]},
         'flow.f.path: no route from "h0" to "z"; add a link or a `path`'),
    ],
)  # fmt: skip
def test_what_has_no_fixed_path_is_refused(call, more, message):
    assert refusal(call, **more) == f"S.toml: {message}"


def test_a_comparison_without_shares_shows_the_busiest_link():
    compared = waterfill.compare(build(**DATACENTER), protocols=["dctcp", "maxnet"])
    used = [
        sum(result.summary.links[i].utilization for result in compared.results.values())
        for i in range(len(compared.results["dctcp"].summary.links))
    ]
    first = compared.results["dctcp"].summary.links
    assert compared.bottleneck == first[used.index(max(used))].name
    runs = compared.document().runs
    assert tables.chosen(runs) == "the link with the highest utilization over all runs"
    assert runs["dctcp"].compare.jain_index_of_shares is None
