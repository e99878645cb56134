"""Tests of htsim's topologies and triggers, Repetita, Rocketfuel and Shadow's graphs."""

from __future__ import annotations

import pytest

import waterfill as package
from waterfill.errors import InputError
from waterfill.formats.build import Options, imported
from waterfill.formats.writing import text

TOPO = """# two pods
Nodes 8
Tiers 3
Podsize 4

Tier 0
Downlink_speed_Gbps 200
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Switch_Latency_ns 50

Tier 1
Downlink_speed_Gbps 200
Radix_Down 2
RADIX_UP 4
Downlink_Latency_ns 2000
Switch_Latency_ns 70

Tier 2
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 3000
Bundle 2
Queue_Down 1000
"""
GRAPH = """NODES 3
label x y
A 1.0 2.0
B.1 0 0
C 0 0

EDGES 4
label src dest weight bw delay
e0 0 1 10 10000 416
e1 1 0 10 5000 500
e2 1 2 10 8000 20
e3 2 1 10 8000 20
"""
DEMANDS = "DEMANDS 3\nlabel src dest bw\nd0 0 2 700\nd1 2 0 0\nd2 1 0 90\n"
SHADOW = """graph [ directed {directed}
  node [ id 0 label "x" host_bandwidth_up "10 Mbit" host_bandwidth_down "100 Mbit" ]
  node [ id 1 label "y" host_bandwidth_up "20 Mbit" host_bandwidth_down "20 Mbit" ]
  edge [ source 0 target 0 latency "1 ms" packet_loss 0.0 ]
  {edges}
]"""


def layout_of(folder, name, content, file="in.latencies.intra", **options):
    path = folder / file
    path.write_text(content)
    return imported(name, str(path), Options(**options))


def values(layout):
    """Return (start, end, Mbit/s, us, loss) of each direction."""
    found = []
    for link in layout.links:
        losses = (link.loss, link.loss_reverse)
        found += [(way.start, way.end, way.rate_bps / 1e6, round(way.delay_s * 1e6, 6), loss)
                  for way, loss in zip(link.ways(), losses, strict=False)]  # fmt: skip
    return found


def test_tiers_of_htsim_hold_in_both_directions_and_switches_delay_what_enters_them(tmp_path):
    layout = layout_of(tmp_path, "htsim-topo", TOPO, pattern="none")
    found = {(a, b): (rate, delay) for a, b, rate, delay, _ in values(layout)}
    assert found["h0", "t0"] == (200e3, 1.05)
    assert found["t0", "h0"] == (200e3, 1)
    assert found["t0", "a1"] == (200e3, 2.07)
    assert found["a1", "t0"] == (200e3, 2.05)
    assert found["a1", "c3"] == (100e3, 3)
    assert found["c3", "a1"] == (100e3, 3.07)
    assert len(layout.links) == 8 + 8 + 16
    assert [link.name for link in layout.links if {link.start, link.end} == {"a1", "c3"}] == [
        "a1-c3-0", "a1-c3-1"]  # fmt: skip
    assert ("a1", "c0") not in found  # a switch at place 1 reaches the cores 1 and 3
    assert "Not used: queue_down." in layout.notes


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Tier 0", "Tier 3", "line 6: tier must be 0, 1 or 2, each once, got 3"),
        ("Nodes 8\n", "", "no nodes before the first tier; add `Nodes N`"),
        ("Tiers 3", "Tiers 2", "tiers must be 2 or 3, each with a section `Tier N`, got 2 with"),
        ("Radix_Down 4", "Radix_Down 3", "radix_down of tier 2 must be 4, the links below each"),
        ("Podsize 4", "Podsize 3", "nodes must be a multiple of 3, got 8"),
        ("Bundle 2", "Bundle 3", "radix_up of tier 1 must be a multiple of 3, got 4"),
        ("Bundle 2", "Hops 2", 'unknown key "Hops"; known: tier, downlink_speed_gbps'),
        ("Bundle 2", "Bundle two", 'bundle must be a whole number, got "two"'),
        ("Bundle 2", "Bundle 2\nBundle 2", "line 25: bundle is already set"),
        ("Radix_Up 2\n", "", "tier 0 has no radix_up"),
        ("Bundle 2", "Radix_Up 2", "tier 2 is the top and must not have radix_up, got 2"),
        ("RADIX_UP 4", "RADIX_UP 4\nOversubscribed 2",
         "oversubscribed of tier 1 must be down / up, got 2 with 400 Gbit/s down and 400 Gbit/s"),
    ],
)  # fmt: skip
def test_wrong_topologies_of_htsim(tmp_path, old, new, message):
    assert old in TOPO
    with pytest.raises(InputError) as caught:
        layout_of(tmp_path, "htsim-topo", TOPO.replace(old, new, 1))
    assert message in str(caught.value)


MATRIX = """Nodes 8
Connections 4
Triggers 2
0->1 id 1 start 1000000 size 30000 recv_done_trigger 1
1->2 id 2 trigger 1 size 30000 send_done_trigger 2
3->2 id 3 start 0 size 30000 recv_done_trigger 2
2->7 id 4 trigger 2 size 30000
trigger id 1 oneshot
trigger id 2 barrier count 2
"""


@pytest.mark.filterwarnings("ignore::waterfill.network.protocols.Misfit")
def test_triggers_of_htsim_become_an_order(tmp_path):
    (tmp_path / "m.cm").write_text(MATRIX)
    layout = layout_of(tmp_path, "htsim-topo", TOPO, flows=tmp_path / "m.cm")
    flows = {flow.name: flow for flow in layout.flows}
    assert {name: flow.after for name, flow in flows.items()} == {
        "h0>h1": (), "h1>h2": ("h0>h1",), "h3>h2": (), "h2>h7": ("h1>h2", "h3>h2"),
    }  # fmt: skip
    assert flows["h0>h1"].start_s == 1e-6
    assert flows["h1>h2"].start_s == 0
    # The way back of 1->2: the ToR, an upper switch, the other ToR, the host.
    assert flows["h2>h7"].start_s == pytest.approx((1.05 + 2.07 + 2.05 + 1) * 1e-6)
    path = tmp_path / "s.toml"
    path.write_text(text(layout, "dctcp", 1))
    done = {flow.name: flow for flow in package.run(path).summary.flows}
    assert done["h1>h2"].start_s == done["h0>h1"].completed_s
    barrier = max(done[name].completed_s for name in ("h1>h2", "h3>h2"))
    assert done["h2>h7"].start_s == pytest.approx(barrier + 6.17e-6, abs=1e-12)
    assert "2 connections start when others have completed (triggers)." in layout.notes


# Two connections at a time out of four: each end starts the next one of the list.
QUEUE = """Nodes 8
Connections 4
Triggers 1
0->1 id 1 start 0 size 90000 recv_done_trigger 1
2->3 id 2 start 0 size 30000 recv_done_trigger 1
4->5 id 3 trigger 1 size 30000 recv_done_trigger 1
6->7 id 4 trigger 1 size 30000 recv_done_trigger 1
trigger id 1 multishot
"""


@pytest.mark.filterwarnings("ignore::waterfill.network.protocols.Misfit")
def test_a_multishot_trigger_starts_one_connection_at_each_activation(tmp_path):
    (tmp_path / "m.cm").write_text(QUEUE)
    layout = layout_of(tmp_path, "htsim-topo", TOPO, flows=tmp_path / "m.cm")
    assert [(flow.after, flow.after_count) for flow in layout.flows] == [
        ((), None), ((), None), (("h0>h1", "h2>h3"), 1), (("h0>h1", "h2>h3", "h4>h5"), 2),
    ]  # fmt: skip
    path = tmp_path / "s.toml"
    path.write_text(text(layout, "dctcp", 1))
    flows = package.run(path).summary.flows
    ends = sorted(flow.completed_s for flow in flows)
    assert [flow.start_s for flow in flows[2:]] == ends[:2]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("recv_done_trigger 1\n2->3 id 2 start 0 size 30000 recv_done_trigger 1",
         "\n2->3 id 2 start 0 size 30000",
         "line 6: the connection is number 1 of multishot trigger 1, so it never starts: 0 act"),
        ("30000 recv_done_trigger", "30000 send_done_trigger",
         "line 6: send_done_trigger of multishot trigger 1 by several connections is not"),
    ],
)  # fmt: skip
def test_wrong_multishot_triggers(tmp_path, old, new, message):
    (tmp_path / "m.cm").write_text(QUEUE.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        layout_of(tmp_path, "htsim-topo", TOPO, flows=tmp_path / "m.cm")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("count 2", "count 3", "line 9: trigger 2 must have 3 activations, got 2 in the file"),
        ("trigger 1 size 30000", "trigger 1 start 5 size 30000", "line 5: must have one of start"),
        ("start 0 size", "size", "line 6: must have one of start PS in picoseconds, or trigger ID"),
        ("trigger id 1 oneshot\n", "", "must have 2 triggers, got 1"),
        ("trigger id 1 oneshot", "trigger id 7 oneshot", "line 8: trigger 7 must have 1 activ"),
        ("1000000 size 30000", "1000000 size 0", "line 4: recv_done_trigger needs a size"),
        ("Triggers 2", "Triggers 2\nFailures 1", "failures are not supported, got 1"),
        ("Nodes 8", "Nodes 9", "must have at most 8 nodes, those of the topology, got 9"),
        ("id 3 start", "msg 3 start", 'line 6: "msg" is not supported; write `start PS size B'),
        (
            "trigger id 1 oneshot",
            "trigger id 1 once",
            "line 8: must be `id N` and one of oneshot, b",
        ),
    ],
)
def test_wrong_triggers(tmp_path, old, new, message):
    assert old in MATRIX
    (tmp_path / "m.cm").write_text(MATRIX.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        layout_of(tmp_path, "htsim-topo", TOPO, flows=tmp_path / "m.cm")
    assert message in str(caught.value)


def test_edges_of_repetita_are_directions_in_kbit_and_microseconds(tmp_path):
    (tmp_path / "d.demands").write_text(DEMANDS)
    layout = layout_of(tmp_path, "repetita", GRAPH, flows=tmp_path / "d.demands")
    assert values(layout) == [
        ("A", "B-1", 10, 416, 0), ("B-1", "A", 5, 500, 0),
        ("B-1", "C", 8, 20, 0), ("C", "B-1", 8, 20, 0),
    ]  # fmt: skip
    assert [(flow.start, flow.end, flow.demand_bps) for flow in layout.flows] == [
        ("A", "C", 700e3), ("B-1", "A", 90e3)]  # fmt: skip
    assert "Left out: 1 demands of zero, or from a node to itself." in layout.notes
    other = {"unit_bps": 1e6, "delay_unit_s": 1e-3, "flows": tmp_path / "d.demands"}
    layout = layout_of(tmp_path, "repetita", GRAPH, **other)
    assert values(layout)[1] == ("B-1", "A", 5000, 500e3, 0)
    assert layout.flows[0].demand_bps == 700e6
    assert not any("is it in ms" in note for note in layout.notes)


def test_short_delays_of_repetita_are_named(tmp_path):
    layout = layout_of(tmp_path, "repetita", GRAPH)
    assert "The longest delay is 500 us: is it in ms? --delay-unit." in layout.notes


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("NODES 3", "NODES", "line 1: must be `NODES COUNT`, got"),
        ("weight bw delay", "bw delay", "line 8: must be `label src dest weight bw delay`, got"),
        ("EDGES 4", "EDGES 5", "no line 5 of 5 in EDGES"),
        ("EDGES 4", "EDGES 3", "line 12: more lines than EDGES says"),
        ("e1 1 0", "e1 1 3", "line 10: src and dest must be below 3, got 1 and 3"),
        ("5000 500", "0 500", 'line 10: bw must be above zero, got "0"'),
        ("5000 500", "5000 soon", 'line 10: delay must be a number, got "soon"'),
    ],
)
def test_wrong_files_of_repetita(tmp_path, old, new, message):
    with pytest.raises(InputError) as caught:
        layout_of(tmp_path, "repetita", GRAPH.replace(old, new, 1))
    assert message in str(caught.value)


def test_lines_of_rocketfuel_are_directions_with_latencies_in_ms(tmp_path):
    lines = "A,+X1 B,+X2 7\nB,+X2 A,+X1 9  # back\nB,+X2 C 2\nC B,+X2 2\nC C 1\n"
    layout = layout_of(tmp_path, "rocketfuel", lines, rate_bps=5e6)
    assert values(layout) == [
        ("A,+X1", "B,+X2", 5, 7000, 0), ("B,+X2", "A,+X1", 5, 9000, 0),
        ("B,+X2", "C", 5, 2000, 0), ("C", "B,+X2", 5, 2000, 0),
    ]  # fmt: skip
    assert "Left out: 1 links from a node to itself." in layout.notes
    weights = layout_of(tmp_path, "rocketfuel", lines, file="w.weights.intra", delay_s=4e-3)
    assert {value[3] for value in values(weights)} == {4000}
    assert any(note.startswith("Not used: weights") for note in weights.notes)


CCH = """0 @Houston,+TX  \t(1) &2 -> <7> {-1} \t=a.example r0
7 @Dallas,+TX + bb\t(3) -> <0> <9> <7>  =!b.example r1
9 @? (1) -> <7> =c.example r1
-1 =d.example r0
"""


def test_maps_of_rocketfuel_have_links_in_both_directions(tmp_path):
    layout = layout_of(tmp_path, "rocketfuel", CCH, file="1.cch", rate_bps=2e6, delay_s=3e-3)
    assert values(layout) == [
        ("Houston,+TX-0", "Dallas,+TX-7", 2, 3000, 0),
        ("Dallas,+TX-7", "Houston,+TX-0", 2, 3000, 0),
        ("Dallas,+TX-7", "?-9", 2, 3000, 0), ("?-9", "Dallas,+TX-7", 2, 3000, 0),
    ]  # fmt: skip
    assert "Left out: 1 routers of other networks, 1 links to them." in layout.notes


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("map.txt", "a b 1\n", "the name must end in .cch or have latencies or weights in it"),
        ("x.latencies.intra", "a b\n", 'line 1: must be FROM TO and a latency, got "a b"'),
        ("x.latencies.intra", "a b -1\n", 'line 1: a latency must not be negative, got "-1"'),
        ("x.latencies.intra", "a a 1\n", "no links between two nodes"),
        ("x.cch", CCH.replace("<9>", "<8>"), "line 2: no router 8, which a link names"),
        ("x.cch", CCH.replace("@Houston", "Houston"), "line 1: must be `UID @LOCATION"),
        ("x.cch", CCH.replace("9 @?", "7 @?"), "line 3: router 7 is already defined"),
    ],
)
def test_wrong_maps_of_rocketfuel(tmp_path, file, content, message):
    with pytest.raises(InputError) as caught:
        layout_of(tmp_path, "rocketfuel", content, file=file)
    assert message in str(caught.value)


def test_hosts_of_shadow_have_the_rates_and_edges_limit_nothing(tmp_path):
    edge = 'edge [ source 0 target 1 latency "50 ms" packet_loss 0.1 ]'
    layout = layout_of(tmp_path, "gml", SHADOW.format(directed=0, edges=edge))
    assert values(layout) == [
        ("x", "y", 120, 50e3, 0.1), ("y", "x", 120, 50e3, 0.1),
        ("x-host", "x", 10, 0, 0), ("x", "x-host", 100, 0, 0),
        ("y-host", "y", 20, 0, 0), ("y", "y-host", 20, 0, 0),
    ]  # fmt: skip
    assert layout.hosts == ["x-host", "y-host"]
    edges = edge + " edge [ source 1 target 0 latency 0.02 packet_loss 0.2 ]"
    layout = layout_of(tmp_path, "gml", SHADOW.format(directed=1, edges=edges))
    assert values(layout)[:2] == [("x", "y", 120, 50e3, 0.1), ("y", "x", 120, 20e3, 0.2)]


def test_an_edge_of_gml_may_be_listed_in_both_orders(tmp_path):
    edge = 'edge [ source {} target {} latency "50 ms" packet_loss 0.0 ]'
    both = edge.format(0, 1) + edge.format(1, 0)
    layout = layout_of(tmp_path, "gml", SHADOW.format(directed=0, edges=both))
    assert sorted(value[:2] for value in values(layout))[:4] == [
        ("x", "x-host"), ("x", "y"), ("x", "y"), ("x-host", "x")]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"10 Mbit"', '"10 Mfoo"', "node x: host_bandwidth_up: must be a rate"),
        ('host_bandwidth_up "10 Mbit"', "", "node x: host_bandwidth_up: missing next to the"),
        ('label "y"', 'label "x-host"', "node x: a node is named x-host already"),
    ],
)
def test_wrong_graphs_of_shadow(tmp_path, old, new, message):
    content = SHADOW.format(directed=0, edges='edge [ source 0 target 1 latency "5 ms" ]')
    with pytest.raises(InputError) as caught:
        layout_of(tmp_path, "gml", content.replace(old, new, 1))
    assert message in str(caught.value)


def test_rates_of_shadows_edges_take_no_default(tmp_path):
    content = SHADOW.format(directed=0, edges='edge [ source 0 target 1 latency "5 ms" ]')
    with pytest.raises(InputError, match="--rate: no effect as each link has its own"):
        layout_of(tmp_path, "gml", content, rate_bps=7e6)
