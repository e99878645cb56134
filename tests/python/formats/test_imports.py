"""Importers: small files of our own making in each format, and one sentence for each wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from waterfill.errors import InputError
from waterfill.formats import graph, hpcc, sndlib
from waterfill.formats.build import Options, imported
from waterfill.formats.writing import text
from waterfill.network import protocols, resolve
from waterfill.scenario.loading import from_toml

GML = """
graph [
  node [ id 0 label "North" Longitude 0.0 Latitude 60.0 ]
  node [ id 1 label "South" Longitude 0.0 Latitude 51.0067 ]
  node [ id 2 label "South" ]
  edge [ source 0 target 1 LinkSpeedRaw 155000000.0 ]
  edge [ source 1 target 2 ]
]
"""
GRAPHML = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="Latitude" attr.type="double" for="node" id="d0" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d1" />
  <key attr.name="label" attr.type="string" for="node" id="d2" />
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d3" />
  <graph edgedefault="undirected">
    <node id="0"><data key="d0">0.0</data><data key="d1">0.0</data><data key="d2">A b</data></node>
    <node id="1"><data key="d0">0.0</data><data key="d1">1.0</data><data key="d2">C.d</data></node>
    <edge source="0" target="1"><data key="d3">1e9</data></edge>
    <edge source="0" target="1"><data key="d3">2e9</data></edge>
  </graph>
</graphml>
"""
TRACE = "1\n1\n50\n150\n200\n"
SNDLIB = """?SNDlib native format; type: network; version: 1.0
# a comment
NODES (
  A ( 0.0 0.0 )
  B ( 1.0 0.0 )
  C ( 2.0 0.0 )
)
LINKS (
  L1 ( A B ) 0.00 0.00 0.00 0.00 ( 155.00 1.0 622.00 2.0 )
  L2 ( B C ) 40.00 0.00 0.00 0.00 ( )
)
DEMANDS (
  D1 ( A C ) 1 30.00 UNLIMITED
  D2 ( C B ) 1 5.00 UNLIMITED
)
"""
SNDLIB_XML = """<?xml version="1.0" encoding="UTF-8"?>
<network xmlns="http://sndlib.zib.de/network" version="1.0"><networkStructure>
<nodes coordinatesType="pixel">
<node id="A"><coordinates><x>10</x><y>500</y></coordinates></node>
<node id="B"><coordinates><x>20</x><y>600</y></coordinates></node></nodes>
<links><link id="L"><source>A</source><target>B</target>
<preInstalledModule><capacity>7.0</capacity><cost>0</cost></preInstalledModule></link></links>
</networkStructure><demands>
<demand id="D"><source>A</source><target>B</target><demandValue>3.5</demandValue></demand>
</demands></network>
"""
HPCC = """5 2 4
3 4
0 3 100Gbps 1us 0
1 3 25Gbps 0.001ms 0.5
3 4 400Gbps 2us 0
4 2 100Gbps 500ns 0
"""
ALIBABA = HPCC.replace("5 2 4", "5 1 1 1 4 A100")
HPCC_FLOWS = "2\n0 2 3 100 200000000 2\n1 2 3 101 5000 0.5\nwhatever follows is not read\n"
HTSIM = "Nodes 16\nConnections 2\n0->15 id 1 start 0 size 2000000\n3->4 start 5000000 size 0\n"


def written(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def network(layout):
    """Return the resolved network of a layout, whose text must be a scenario that runs."""
    return resolve.to_core(from_toml(text(layout, "maxnet", 1)), protocols.load())


def test_gml_has_the_zoos_rates_and_places(tmp_path):
    path = written(tmp_path, "zoo.gml", GML)
    layout = imported("gml", str(path), Options(rate_bps=2e9, delay_s=7e-3))
    assert layout.hosts == ["North", "South", "South-2"]
    first, second = layout.links
    # A degree of latitude is 111.19 km on a sphere of 6371 km: 1000 km take 5 ms.
    assert first.rate_bps == 155e6
    assert first.delay_s == pytest.approx(5e-3, rel=1e-3)
    assert (second.rate_bps, second.delay_s) == (2e9, 7e-3)
    assert [note for note in layout.notes if note.startswith("1 of 2 links")] != []
    assert [flow.name for flow in network(layout).flows][:2] == ["North>South", "North>South-2"]


LENGTHS = """
graph [
  node [ id 0 label "a" Longitude 0.0 Latitude 60.0 ]
  node [ id 1 label "b" Longitude 0.0 Latitude 51.0067 ]
  node [ id 2 label "c" ]
  edge [ source 0 target 1 length 100 capacity "2.5 Gbit/s" cost 7 ]
  edge [ source 1 target 2 distance 400 bandwidth "10 Mbit/s" capacity 40 ]
  edge [ source 0 target 2 label "third" ]
]
"""


def test_gml_has_lengths_and_rates_with_a_unit_and_names_what_it_does_not_use(tmp_path):
    path = written(tmp_path, "own.gml", LENGTHS)
    layout = imported("gml", str(path), Options(rate_bps=1e9, delay_s=7e-3))
    assert [(link.rate_bps, link.delay_s) for link in layout.links] == [
        (2.5e9, 0.5e-3), (1e9, 7e-3), (10e6, 2e-3)
    ]  # fmt: skip
    assert layout.notes[1:7] == [
        "Rates: attribute capacity or bandwidth.",
        "Delays: light in fibre (200,000 km/s) over attribute length (km), or attribute "
        "distance (km).",
        "1 of 3 links name no rate: they have the default.",
        "1 of 3 links have neither a length nor places of both ends: they have the default delay.",
        "1 of 3 nodes have no place.",
        "Not used of the links' attributes: capacity, cost.",
    ]
    assert "# Not used of the links' attributes: capacity, cost." in text(layout, "maxnet", 1)


def test_gml_says_of_great_circles_that_they_were_used(tmp_path):
    layout = imported("gml", str(written(tmp_path, "zoo.gml", GML)), Options())
    assert layout.notes[1:3] == [
        "Rates: attribute LinkSpeedRaw.",
        "Delays: light in fibre (200,000 km/s) over the great circle between the ends.",
    ]
    assert not any("Not used" in note for note in layout.notes)


def test_graphml_keeps_parallel_links_and_makes_names_usable(tmp_path):
    layout = imported("graphml", str(written(tmp_path, "zoo.graphml", GRAPHML)), Options())
    assert layout.hosts == ["A-b", "C-d"]
    assert [(link.name, link.rate_bps) for link in layout.links] == [
        ("A-b-C-d", 1e9), ("A-b-C-d-2", 2e9)
    ]  # fmt: skip


@pytest.mark.parametrize(("content", "name"), [(SNDLIB, "n.txt"), (SNDLIB_XML, "n.xml")])
def test_sndlib_has_its_own_demands(tmp_path, content: str, name: str):
    layout, demands = sndlib.read(
        written(tmp_path, name, content), graph.Defaults(1e9, 1e-3), unit_bps=1e6
    )
    if name == "n.txt":
        # The largest module where nothing is installed, else what is installed.
        assert [link.rate_bps for link in layout.links] == [622e6, 40e6]
        assert demands == {("A", "C"): 30e6, ("C", "B"): 5e6}
        assert layout.links[0].delay_s == pytest.approx(111.19e3 / 2e8, rel=1e-3)
    else:
        assert [(link.rate_bps, link.delay_s) for link in layout.links] == [(7e6, 1e-3)]
        assert demands == {("A", "B"): 3.5e6}


def test_demands_are_scaled_to_the_busiest_link(tmp_path):
    path = written(tmp_path, "net.txt", SNDLIB)
    layout = imported("sndlib", str(path), Options(load=2.0))
    # A to C offers 30 of 40 Mbit/s on the second link: 80 is twice its rate.
    found = {flow.name: flow.demand_bps for flow in layout.flows}
    assert found == {"A>C": pytest.approx(80e6), "C>B": pytest.approx(80e6 / 6, rel=1e-5)}


@pytest.mark.parametrize("content", [HPCC, ALIBABA])
def test_hpcc_topologies_of_both_kinds(tmp_path, content: str):
    path = written(tmp_path, "topology.txt", content)
    if content is HPCC:
        layout = hpcc.topology(path)
        assert layout.hosts == ["n0", "n1", "n2"]
        assert [link.rate_bps for link in layout.links] == [100e9, 25e9, 400e9, 100e9]
        assert [link.delay_s for link in layout.links] == pytest.approx([1e-6, 1e-6, 2e-6, 5e-7])
        assert (layout.links[1].loss, layout.links[1].loss_reverse) == (0.5, 0.5)
    flows = written(tmp_path, "flow.txt", HPCC_FLOWS)
    layout = imported("hpcc", str(path), Options(flows=flows, duration_s=3.0))
    found = [(flow.name, flow.start_s, flow.size_bytes) for flow in layout.flows]
    assert found == [("n0>n2", 2.0, 200_000_000), ("n1>n2", 0.5, 5000)]
    # Without a length, one second after the last start, as the list begins after the usual second.
    assert imported("hpcc", str(path), Options(flows=flows)).duration_s == 3.0
    assert len(network(layout).flows[0].forward) == 3


def test_htsim_connections_run_on_a_fat_tree(tmp_path):
    layout = imported("htsim", str(written(tmp_path, "two.cm", HTSIM)), Options())
    assert len(layout.hosts) == 16
    found = [(flow.start, flow.end, flow.start_s, flow.size_bytes) for flow in layout.flows]
    assert found == [("h0", "h15", 0.0, 2_000_000), ("h3", "h4", 5e-6, None)]
    assert [len(flow.path) for flow in layout.flows] == [6, 6]


def test_flows_of_a_table(tmp_path):
    path = written(tmp_path, "zoo.gml", GML)
    table = "source,sink,start,size,count,stop\nNorth,South,1.5,30 kB,2,40\nSouth-2,North,2 ms,,,\n"
    flows = written(tmp_path, "flows.csv", table)
    layout = imported("gml", str(path), Options(flows=flows))
    found = [(f.name, f.start_s, f.size_bytes, f.count, f.stop_s) for f in layout.flows]
    assert found == [("North>South", 1.5, 30_000, 2, 40.0), ("South-2>North", 2e-3, None, 1, None)]
    assert [flow.stop_s for flow in network(layout).flows] == [40.0, 40.0]


def test_flows_of_a_table_follow_others(tmp_path):
    path = written(tmp_path, "zoo.gml", GML)
    table = (
        "name,source,sink,size,start,after\n"
        "b,South,North,2 MB,1 ms,a; c\na,North,South,1 MB,2,\nc,South-2,North,3 MB,,a\n"
    )
    flows = written(tmp_path, "flows.csv", table)
    layout = imported("gml", str(path), Options(flows=flows))
    found = [(flow.name, flow.start_s, flow.after) for flow in layout.flows]
    assert found == [("b", 1e-3, ("a", "c")), ("a", 2.0, ()), ("c", 0.0, ("a",))]
    assert [flow.after for flow in network(layout).flows] == [(1, 2), (), (1,)]


def test_topohub_names_networks_and_their_demands():
    pytest.importorskip("topohub", reason="the package topohub is not installed")
    layout = imported("topohub", "sndlib/polska", Options())
    assert (len(layout.hosts), len(layout.links), len(layout.flows)) == (12, 18, 132)
    assert {flow.name: flow.demand_bps for flow in layout.flows}["Gdansk>Krakow"] == 101e6
    zoo = imported("topohub", "topozoo/Abilene", Options(pairs=20))
    assert (len(zoo.links), len(zoo.flows)) == (14, 20)
    assert len(network(zoo).flows) == 20


WRONG = [
    ("gml", "graph [ node [", "not valid GML"),
    ("graphml", "<graphml", "not valid GraphML: unclosed token: line"),
    (
        "graphml",
        '<graphml><graph edgedefault="directed"><node id="a"/><node id="b"/>'
        '<edge source="a" target="b" directed="false"/></graph></graphml>',
        "edges of both kinds, directed and not, are not supported; write edges of one kind",
    ),
    (
        "graphml",
        '<graphml><graph edgedefault="undirected"><node id="a"/><hyperedge/></graph></graphml>',
        "hyperedges are not supported; write edges of one kind",
    ),
    ("graphml", '<!DOCTYPE a [<!ENTITY b "c">]><graphml/>', "GraphML must not have entities"),
    ("sndlib", "NODES (", "line 1: must be `?SNDlib native format; type:"),
    ("sndlib", SNDLIB.replace("( A C )", "( A X )"), 'no node "X", which a link or demand names'),
    ("sndlib", SNDLIB.replace("L2 ( B C )", "L2 B C"), "line 10: not a line of LINKS in SNDlib's"),
    ("hpcc", "5 2\n", "line 1: must be `nodes switches links`"),
    ("hpcc", HPCC.replace("100Gbps", "fast", 1), 'line 3: must be a rate such as 100Gbps, got "f'),
    (
        "hpcc",
        HPCC.replace("100Gbps", "0Gbps", 1),
        'line 3: the rate must be above zero, got "0Gbps"',
    ),
    ("hpcc", HPCC.replace("4 2 100Gbps 500ns 0", ""), "no link 4 of 4"),
    ("hpcc", HPCC.replace("0 3 100", "0 9 100"), "line 3: must be two nodes below 5, got 0 and 9"),
    (
        "htsim",
        HTSIM.replace("0->15", "0->16"),
        "line 3: must be two different nodes below 16, got 0->16",
    ),
    ("htsim", HTSIM.replace("Connections 2", "Connections 3"), "must have 3 connections, got 2"),
    ("htsim", HTSIM.replace("start 0", "trigger 1"), "line 3: no trigger 1; add `trigger id 1 o"),
]


@pytest.mark.parametrize(("name", "content", "message"), WRONG)
def test_a_wrong_file_gets_one_sentence(tmp_path, name: str, content: str, message: str):
    path = written(tmp_path, "file", content)
    with pytest.raises(InputError) as error:
        imported(name, str(path), Options())
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("source,dest\n", 'unknown column "dest"'),
        ("source\n", "no column sink, got source"),
        ("source,sink\nNorth,Nord\n", 'line 2: unknown host "Nord", did you mean "North"?'),
        ("source,sink,size\nNorth,South,many\n", "line 2: size: must be a volume"),
        ("source,sink,size\nNorth,South\n", "line 2: must have 3 values"),
        (
            "source,sink,start,stop\nNorth,South,2,2\n",
            'line 2: stop must be after the start, got "2"',
        ),
        (
            "source,sink,size,after\nNorth,South,1 MB,a\n",
            'line 2: after: no row named "a"; add a column name',
        ),
        (
            "name,source,sink,size,after\nfirst,North,South,1 MB,\nb,South,North,,fist\n",
            'line 3: after: no row named "fist", did you mean "first"?',
        ),
        (
            "name,source,sink,after\na,North,South,\nb,South,North,a\n",
            'line 3: after: must name flows with a size, which end, got "a"',
        ),
        (
            "name,source,sink,size,stop,after\na,North,South,9 B,,\nb,South,North,9 B,2,a\n",
            "line 3: stop is not allowed with after",
        ),
        (
            "name,source,sink,size,after\na,North,South,9 B,b\nb,South,North,9 B,a\n",
            "after: flows wait for each other, got ",
        ),
        ("name,source,sink\na,North,South\na,South,North\n", 'name: must be unique, got "a" twice'),
        ("name,source,sink\n,North,South\n", "line 2: name: must not be empty"),
        ("name,source,sink\na.b,North,South\n", "line 2: name: must not contain ."),
    ],
)
def test_a_wrong_table_gets_one_sentence(tmp_path, table: str, message: str):
    path = written(tmp_path, "zoo.gml", GML)
    flows = written(tmp_path, "flows.csv", table)
    with pytest.raises(InputError, match=r"flows\.csv") as error:
        imported("gml", str(path), Options(flows=flows))
    assert message in str(error.value)


def test_a_missing_file_and_an_unknown_format(tmp_path):
    with pytest.raises(InputError, match="cannot read the file: no such file or"):
        imported("gml", str(tmp_path / "none.gml"), Options())
    with pytest.raises(InputError, match=r"unknown format, did you mean .graphml"):
        imported("graphmal", "x", Options())


def test_a_trace_becomes_a_link_that_follows_it(tmp_path):
    (tmp_path / "cell").write_text(TRACE)
    options = Options(delay_s=0.02, count=2)
    written = text(imported("trace", str(tmp_path / "cell"), options), "abc", 1)
    assert "# The trace lasts 200 ms; its mean is 300 kbit/s" in written
    network = resolve.to_core(from_toml(written, "elsewhere/S.toml"), protocols.load())
    forward, back = network.links
    # Three opportunities in the first 100 ms, two in the second.
    assert (forward.rate_bps, [(c.at_s, c.rate_bps) for c in forward.changes]) == (
        360e3,
        [(0.1, 240e3)],
    )
    assert (back.rate_bps, back.changes, network.duration_s) == (300e3, (), 0.2)
    assert (network.flows[0].count, network.flows[0].forward) == (2, (0,))


def test_a_wrong_trace_is_one_sentence(tmp_path):
    (tmp_path / "cell").write_text("1\ntwo\n")
    with pytest.raises(InputError, match=r"line 2 of") as refused:
        imported("trace", str(tmp_path / "cell"), Options())
    assert "\n" not in str(refused.value)


def test_node_without_links_has_no_route(tmp_path):
    lonely = GML.replace("edge [ source 1 target 2 ]\n", "")
    layout = imported("gml", str(written(tmp_path, "lonely.gml", lonely)), Options())
    assert {plan.path for plan in layout.flows} == {("North-South",)}


def test_number_of_5000_digits(tmp_path):
    path = written(tmp_path, "long.txt", HPCC.replace("5 2 4", "5 2 " + "9" * 5000))
    with pytest.raises(InputError, match="the number of links must be a whole number") as caught:
        imported("hpcc", str(path), Options())
    assert len(str(caught.value)) < 300


def test_two_thousand_million_nodes_are_not_named(tmp_path):
    path = written(tmp_path, "many.txt", HPCC.replace("5 2 4", "2147483647 2 4"))
    with pytest.raises(InputError, match="more than 1000000 nodes, got 2147483647"):
        imported("hpcc", str(path), Options())


def test_edge_of_gml_that_is_a_number(tmp_path):
    path = written(tmp_path, "flat.gml", GML.replace("edge [ source 1 target 2 ]", "edge 3"))
    with pytest.raises(InputError, match="not valid GML; write a graph of nodes and edges,"):
        imported("gml", str(path), Options())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("hpcc", HPCC.replace("400Gbps", "9" * 305 + "Gbps")),
        ("sndlib", SNDLIB.replace("40.00", "1e308")),
        ("sndlib", SNDLIB.replace("30.00", "1e308")),
    ],
)
def test_numbers_that_no_float_holds(tmp_path, name, content):
    path = written(tmp_path, "large.txt", content)
    with pytest.raises(InputError, match=r"must be finite, got inf"):
        imported(name, str(path), Options())


@pytest.mark.parametrize(
    "name", ["gml", "graphml", "hpcc", "htsim", "htsim-topo", "repetita", "rocketfuel", "sndlib"]
)
def test_a_device_is_no_source(name):
    with pytest.raises(InputError, match="/dev/zero: not a regular file"):
        imported(name, "/dev/zero", Options())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "1e9",
            "fast",
            "a value is not of its key's type",
        ),
        ("<node", "<nothing", "not valid GraphML: mismatched tag"),
    ],
)
def test_wrong_graphml_is_said_in_one_line(tmp_path, old, new, said):
    path = tmp_path / "g.graphml"
    path.write_text(GRAPHML.replace(old, new))
    with pytest.raises(InputError, match=said):
        imported("graphml", str(path), Options())


def test_a_graph_without_nodes_is_refused(tmp_path):
    path = tmp_path / "g.graphml"
    path.write_text('<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph/></graphml>')
    with pytest.raises(InputError, match="the graph has no nodes"):
        imported("graphml", str(path), Options(pattern="incast"))


def test_a_flow_to_its_own_host_names_its_line(tmp_path):
    (tmp_path / "g.graphml").write_text(GRAPHML)
    (tmp_path / "flows.csv").write_text("source,sink\nA-b,C-d\nA-b,A-b\n")
    options = Options(flows=tmp_path / "flows.csv")
    with pytest.raises(InputError, match='line 3: source and sink must differ, got "A-b" twice'):
        imported("graphml", str(tmp_path / "g.graphml"), options)


def test_a_rate_that_a_run_refuses_is_not_written(waterfill, tmp_path):
    (tmp_path / "g.graphml").write_text(GRAPHML.replace("1e9", "1e-300"))
    ran = waterfill("import", "graphml", "g.graphml", "--traffic", "none", "-o", "new.toml")
    assert ran.code == 2
    assert ".rate: a packet would take more than" in ran.err
    assert not (tmp_path / "new.toml").exists()


def test_a_rate_beyond_any_link_names_the_link(tmp_path):
    path = tmp_path / "n.txt"
    path.write_text(SNDLIB.replace("40.00", "1e300"))
    with pytest.raises(InputError, match="B-C: the rate must be at most 1e"):
        imported("sndlib", str(path), Options(pattern="gravity"))
