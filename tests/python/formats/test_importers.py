"""Tests of the importers: directions, units, unused contents and refusals of each format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from waterfill.errors import InputError
from waterfill.formats.build import Options, imported
from waterfill.formats.writing import text
from waterfill.network import protocols, resolve, shares
from waterfill.scenario.loading import from_toml

GML = """graph [
  {head}
  node [ id 0 label "A" ]
  node [ id 1 label "B" ]
  {edges}
]"""
GRAPHML = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key attr.name="capacity" attr.type="string" for="edge" id="c"/>
<key attr.name="length" attr.type="double" for="edge" id="l"/>
<graph edgedefault="{head}"><node id="A"/><node id="B"/>{edges}</graph></graphml>"""
SNDLIB = """?SNDlib native format; type: network; version: 1.0
{meta}NODES (
  A ( 10.0 50.0 )
  B ( 11.0 51.0 )
)
LINKS (
{links}
)
DEMANDS (
{demands}
)
"""
XML = """<network xmlns="http://sndlib.zib.de/network" version="1.0">{meta}<networkStructure>
<nodes coordinatesType="pixel"><node id="A"><coordinates><x>10</x><y>500</y></coordinates></node>
<node id="B"><coordinates><x>20</x><y>600</y></coordinates></node></nodes>
<links>{links}</links></networkStructure><demands>{demands}</demands></network>"""
BOTH = "Directions: 1 pairs of opposite links are one duplex link each"


def gml_edge(a: int, b: int, rate: str, km: float) -> str:
    return f'edge [ source {a} target {b} capacity "{rate}" length {km} ]'


def graphml_edge(a: str, b: str, rate: str, km: float) -> str:
    data = f'<data key="c">{rate}</data><data key="l">{km}</data>'
    return f'<edge source="{a}" target="{b}">{data}</edge>'


def sndlib_link(a: str, b: str, rate: float) -> str:
    return f"  L{a}{b} ( {a} {b} ) {rate} 0.00 0.00 0.00 ( )"


def xml_link(a: str, b: str, rate: float) -> str:
    module = f"<preInstalledModule><capacity>{rate}</capacity><cost>0</cost></preInstalledModule>"
    return f'<link id="{a}{b}"><source>{a}</source><target>{b}</target>{module}</link>'


def xml_demand(a: str, b: str, unit: str, value: float) -> str:
    of = f"<routingUnit>{unit}</routingUnit>" if unit else ""
    ends = f"<source>{a}</source><target>{b}</target>"
    return f'<demand id="{a}{b}">{ends}{of}<demandValue>{value}</demandValue></demand>'


def layout_of(folder: Path, name: str, content: str, **options):
    path = folder / "in.txt"
    path.write_text(content, encoding="utf-8")
    return imported(name, str(path), Options(**options))


def core_of(layout):
    return resolve.to_core(from_toml(text(layout, "reno", 1), "in.toml"), protocols.load())


def ways_of(layout):
    """Return (from-to, rate, delay, loss) of each direction, as an engine gets them."""
    plans = {plan.name: plan for plan in layout.links}
    found = []
    for link in core_of(layout).links:
        plan = plans[link.name.removesuffix(":rev")]
        ends = f"{plan.end}-{plan.start}" if link.name.endswith(":rev") else None
        found.append((ends or f"{plan.start}-{plan.end}", link.rate_bps, link.delay_s, link.loss))
    return found


# One source for each format: what it says, and what each direction must then have.
M = 1e6
LIGHT = 658.9e-6  # the great circle of the places above in fibre
DIRECTIONS = {
    "gml: an undirected edge is both directions": (
        "gml", GML.format(head="", edges=gml_edge(0, 1, "100 Mbit/s", 200)),
        [("A-B", 100 * M, 1e-3, 0), ("B-A", 100 * M, 1e-3, 0)],
    ),
    "gml: a directed edge is one direction": (
        "gml", GML.format(head="directed 1", edges=gml_edge(0, 1, "100 Mbit/s", 200)
                          + gml_edge(1, 0, "10 Mbit/s", 400)),
        [("A-B", 100 * M, 1e-3, 0), ("B-A", 10 * M, 2e-3, 0)],
    ),
    "graphml: an undirected edge is both directions": (
        "graphml", GRAPHML.format(head="undirected", edges=graphml_edge("A", "B", "9 kbit/s", 200)),
        [("A-B", 9e3, 1e-3, 0), ("B-A", 9e3, 1e-3, 0)],
    ),
    "graphml: a directed edge is one direction": (
        "graphml", GRAPHML.format(head="directed", edges=graphml_edge("B", "A", "9 kbit/s", 200)
                                  + graphml_edge("A", "B", "1 kbit/s", 200)),
        [("A-B", 1e3, 1e-3, 0), ("B-A", 9e3, 1e-3, 0)],
    ),
    "sndlib: a link without an opposite is both directions": (
        "sndlib", SNDLIB.format(meta="", links=sndlib_link("A", "B", 100),
                                demands="D ( A B ) 1 3 UNLIMITED"),
        [("A-B", 100 * M, LIGHT, 0), ("B-A", 100 * M, LIGHT, 0)],
    ),
    "sndlib: opposite links are one direction each": (
        "sndlib", SNDLIB.format(meta="", demands="D ( A B ) 1 3 UNLIMITED",
                                links="\n".join([sndlib_link("A", "B", 100),
                                                 sndlib_link("B", "A", 10)])),
        [("A-B", 100 * M, LIGHT, 0), ("B-A", 10 * M, LIGHT, 0)],
    ),
    "sndlib in XML: opposite links are one direction each": (
        "sndlib", XML.format(meta="", links=xml_link("A", "B", 100) + xml_link("B", "A", 10),
                             demands=xml_demand("A", "B", "", 3)),
        [("A-B", 100 * M, 1e-3, 0), ("B-A", 10 * M, 1e-3, 0)],
    ),
    "hpcc: rate, delay and error rate hold in both directions": (
        "hpcc", "2 0 1\n\n0 1 10Mbps 1ms 0.05\n",
        [("n0-n1", 10 * M, 1e-3, 0.05), ("n1-n0", 10 * M, 1e-3, 0.05)],
    ),
    "hpcc: two lines of one pair are two links": (
        "hpcc", "2 0 2\n\n0 1 10Mbps 1ms 0\n1 0 20Mbps 1ms 0.5\n",
        [("n0-n1", 10 * M, 1e-3, 0), ("n1-n0", 10 * M, 1e-3, 0),
         ("n1-n0", 20 * M, 1e-3, 0.5), ("n0-n1", 20 * M, 1e-3, 0.5)],
    ),
    "trace: the rate holds from the tower, its mean to it": (
        "trace", "0,1000000\n1,3000000\n2,3000000\n",
        [("tower-phone", 1 * M, 1e-3, 0), ("phone-tower", 2 * M, 1e-3, 0)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("said", DIRECTIONS)
def test_each_quantity_of_each_direction(tmp_path, said):
    name, content, expected = DIRECTIONS[said]
    found = ways_of(layout_of(tmp_path, name, content))
    assert [(ends, *map(pytest.approx, values)) for ends, *values in expected] == found


def test_links_of_htsim_and_topohub_are_alike_both_ways(tmp_path):
    options = {"rate_bps": 9e9, "delay_s": 2e-6}
    matrix = "Nodes 2\nConnections 1\n1->0 start 0 size 9\n"
    found = ways_of(layout_of(tmp_path, "htsim", matrix, **options))
    assert {(rate, delay, loss) for _, rate, delay, loss in found} == {(9e9, 2e-6, 0)}
    ends = [ends for ends, *_ in found]
    assert sorted(ends) == sorted("-".join(reversed(one.split("-"))) for one in ends)
    pytest.importorskip("topohub")
    found = ways_of(imported("topohub", "topozoo/Abilene", Options(pairs=20, rate_bps=9e9)))
    ways = {ends: values for ends, *values in found}
    assert all(rate == 9e9 and delay > 0 for rate, delay, _ in ways.values())
    for link in imported("topohub", "topozoo/Abilene", Options(pairs=20)).links:
        assert ways[f"{link.start}-{link.end}"] == ways[f"{link.end}-{link.start}"]


def test_htsim_and_csv_flows_go_from_source_to_sink(tmp_path):
    layout = layout_of(tmp_path, "htsim", "Nodes 2\nConnections 1\n1->0 start 0 size 9\n")
    assert [(flow.start, flow.end) for flow in layout.flows] == [("h1", "h0")]
    (tmp_path / "flows.csv").write_text("source,sink\nB,A\n")
    graph = GML.format(head="", edges="edge [ source 0 target 1 ]")
    layout = layout_of(tmp_path, "gml", graph, flows=tmp_path / "flows.csv")
    assert [(flow.start, flow.end) for flow in layout.flows] == [("B", "A")]


def test_equal_opposite_edges_are_one_plain_duplex_link(tmp_path):
    edges = gml_edge(0, 1, "1 Mbit/s", 2) + gml_edge(1, 0, "1 Mbit/s", 2)
    layout = layout_of(tmp_path, "gml", GML.format(head="directed 1", edges=edges))
    written = text(layout, "reno", 1)
    assert written.count("[[link]]") == 1
    assert "_reverse" not in written
    assert f"# {BOTH}." in written


def test_parallel_edges_are_paired_with_their_equals_first(tmp_path):
    edges = [gml_edge(0, 1, "1 Mbit/s", 2), gml_edge(0, 1, "2 Mbit/s", 2),
             gml_edge(1, 0, "2 Mbit/s", 2), gml_edge(1, 0, "7 Mbit/s", 2)]  # fmt: skip
    head = "directed 1 multigraph 1"
    edges = [edge.replace("edge [", f"edge [ key {n}") for n, edge in enumerate(edges)]
    layout = layout_of(tmp_path, "gml", GML.format(head=head, edges="\n".join(edges)))
    rates = [(link.rate_bps, link.rate_reverse_bps) for link in layout.links]
    assert rates == [(1e6, 7e6), (2e6, None)]
    assert layout.notes[1] == (
        "Directions: 2 pairs of opposite links are one duplex link each, 1 of them with a reverse "
        "direction of its own."
    )


RING = """graph [ directed 1 node [ id 0 label "A" ] node [ id 1 label "B" ] node [ id 2 label "C" ]
node [ id 3 label "D" ] edge [ source 0 target 1 ] edge [ source 1 target 2 ]
edge [ source 2 target 3 ] edge [ source 3 target 0 ] edge [ source 0 target 2 ] ]"""


def test_a_one_way_ring_runs_with_return_paths(tmp_path):
    layout = layout_of(tmp_path, "gml", RING, pattern="all-to-all")
    written = text(layout, "reno", 1)
    assert written.count("duplex = false") == 5
    flow = next(flow for flow in layout.flows if (flow.start, flow.end) == ("B", "A"))
    assert (flow.path, flow.return_path) == (("B-C", "C-D", "D-A"), ("A-B",))
    found = shares.document(from_toml(written, "in.toml"))
    assert len(found["intervals"][0]["flows"]) == 12
    # Random arrivals draw their own routes.
    core_of(layout_of(tmp_path, "gml", RING, sizes="rpc"))


def test_a_link_of_one_direction_among_pairs(tmp_path):
    content = GML.format(head="directed 1", edges=gml_edge(0, 1, "1 Mbps", 2)
                         + gml_edge(1, 0, "1 Mbps", 2) + 'node [ id 2 label "End" ]'
                         + gml_edge(0, 2, "1 Mbps", 2))  # fmt: skip
    layout = layout_of(tmp_path, "gml", content, pattern="all-to-all")
    assert [(link.name, link.duplex) for link in layout.links] == [("A-B", True), ("A-End", False)]
    assert f"{BOTH}; 1 without an opposite have one direction." in layout.notes
    assert (
        "4 of 6 pairs have no route and were left out: 1 nodes reach no other and back (End)."
        in layout.notes
    )


@pytest.mark.parametrize("loss", ["", "packet_loss 0.5"])
def test_a_drawing_with_arrows_is_no_directed_graph(tmp_path, loss):
    # yEd writes `directed 1` and lists each link once, as the Topology Zoo's sources do.
    edges = "".join(f'edge [ source {a} target {b} capacity "1 Mbps" {loss} ]'
                    for a, b in ((0, 1), (0, 2), (1, 2)))  # fmt: skip
    content = GML.format(head="directed 1", edges=f'node [ id 2 label "C" ] {edges}')
    layout = layout_of(tmp_path, "gml", content, pattern="all-to-all")
    assert len(layout.flows) == 6
    assert {(x.duplex, x.loss, x.loss_reverse) for x in layout.links} == {
        (True, 0.5 * bool(loss), 0.5 * bool(loss))
    }
    assert layout.notes[1] == (
        "The source is directed, but 0 of 3 links have an opposite and not all nodes reach each "
        "other: each link holds in both directions."
    )


def test_demands_of_sndlib_are_multiples_of_the_routing_unit(tmp_path):
    demands = "D1 ( A B ) 155 2 UNLIMITED\nD2 ( B A ) 1 300 4"
    content = SNDLIB.format(meta="", links=sndlib_link("A", "B", 1000), demands=demands)
    layout = layout_of(tmp_path, "sndlib", content)
    assert {flow.name: flow.demand_bps for flow in layout.flows} == {"A>B": 310e6, "B>A": 300e6}
    assert "Not used: costs of links, longest paths of demands." in layout.notes
    xml = XML.format(meta="", links=xml_link("A", "B", 1000), demands=xml_demand("A", "B", "2", 5))
    assert layout_of(tmp_path, "sndlib", xml).flows[0].demand_bps == 10e6


@pytest.mark.parametrize(
    ("unit", "rate_bps"),
    [("KBITPERSEC", 10e3), ("MBITPERSEC", 10e6), ("GBITPERSEC", 10e9), ("bps", 10)],
)
def test_the_unit_of_meta_is_obeyed(tmp_path, unit, rate_bps):
    meta = f"META (\n  granularity = 15min\n  unit = {unit}\n)\n"
    demand = "D ( A B ) 1 1 UNLIMITED"
    native = SNDLIB.format(meta=meta, links=sndlib_link("A", "B", 10), demands=demand)
    xml = XML.format(meta=f"<meta><unit>{unit}</unit></meta>", links=xml_link("A", "B", 10),
                     demands=xml_demand("A", "B", "", 1))  # fmt: skip
    for content in (native, xml):
        layout = layout_of(tmp_path, "sndlib", content)
        assert (layout.links[0].rate_bps, layout.flows[0].demand_bps) == (rate_bps, rate_bps / 10)
        assert f"(META: {unit})." in layout.notes[1]
        with pytest.raises(InputError, match=f"--unit: the file has unit = {unit} in META, got"):
            layout_of(tmp_path, "sndlib", content, unit_bps=3e6)


def test_an_unknown_unit_of_meta_needs_the_option(tmp_path):
    meta = "META (\n  unit = STM-1\n)\n"
    demand = "D ( A B ) 1 1 UNLIMITED"
    content = SNDLIB.format(meta=meta, links=sndlib_link("A", "B", 10), demands=demand)
    with pytest.raises(InputError, match='unit must be one of rates such as MBITPERSEC, got "STM'):
        layout_of(tmp_path, "sndlib", content)
    assert layout_of(tmp_path, "sndlib", content, unit_bps=155e6).links[0].rate_bps == 1.55e9


@pytest.mark.parametrize(
    ("edge", "rate_bps"),
    [
        ('capacity "100 Mbps"', 100e6), ('capacity "10Gbit/s"', 10e9), ('rate "5 MB/s"', 40e6),
        ('bandwidth "2 MBps"', 16e6), ("LinkSpeedRaw 155.0", 155.0), ('capacity "unknown"', 1e9),
        ('LinkSpeed "2.5" LinkSpeedUnits "G"', 2.5e9),
        ('LinkSpeed "2.5" LinkSpeedUnits "G" LinkSpeedRaw 7.0', 7.0),
    ],
)  # fmt: skip
def test_the_unit_of_an_edges_rate_is_obeyed(tmp_path, edge, rate_bps):
    content = GML.format(head="", edges=f"edge [ source 0 target 1 {edge} ]")
    assert layout_of(tmp_path, "gml", content).links[0].rate_bps == rate_bps


@pytest.mark.parametrize(
    ("edge", "delay_s"),
    [("length 200", 1e-3), ('length "200 km"', 1e-3), ('dist "2000 m"', 1e-5),
     ('distance "100 mi"', 8.047e-4), ("length 0", 0.0), ('length "far"', 1e-3)],
)  # fmt: skip
def test_the_unit_of_an_edges_length_is_obeyed(tmp_path, edge, delay_s):
    content = GML.format(head="", edges=f"edge [ source 0 target 1 {edge} ]")
    assert layout_of(tmp_path, "gml", content).links[0].delay_s == delay_s


def test_positions_of_a_drawing_are_no_places(tmp_path):
    content = GML.replace('"A"', '"A" pos 0.1 pos 0.2').replace('"B"', '"B" pos 0.3 pos 0.9')
    layout = layout_of(tmp_path, "gml", content.format(head="", edges=gml_edge(0, 1, "1 Mbps", 0)
                                                       .replace("length 0", "")))  # fmt: skip
    assert layout.links[0].delay_s == 1e-3
    assert "Not used of the nodes' attributes: pos." in layout.notes


POWERTCP = (
    "4 2 1 3{capacities}\n2 3\n0 2 25000000000.0 1us 0\n1 3 25Gbps 0.000001 0\n2 3 1MBps 5us 0\n"
)


@pytest.mark.parametrize(
    ("capacities", "note"),
    [("", "Not used of the first line: 1."), (" 10 40", "Not used of the first line: 1 10 40.")],
)
def test_powertcps_header_and_numbers_without_a_unit(tmp_path, capacities, note):
    layout = layout_of(tmp_path, "hpcc", POWERTCP.format(capacities=capacities))
    assert layout.hosts == ["n0", "n1"]
    assert [link.rate_bps for link in layout.links] == [25e9, 25e9, 8e6]
    assert [link.delay_s for link in layout.links] == [1e-6, 1e-6, 5e-6]
    assert note in layout.notes


SHADOW = [
    ('latency "10 ms"', 10e-3, 0, 0),
    ('latency "10 ms" packet_loss 0.01 length 300', 10e-3, 0.01, 0.01),
    ('delay "7us"', 7e-6, 0, 0),
    ("latency 10 length 200", 1e-3, 0, 0),
]


@pytest.mark.parametrize(("edge", "delay_s", "loss", "loss_reverse"), SHADOW)
def test_delays_and_losses_of_edges(tmp_path, edge, delay_s, loss, loss_reverse):
    content = GML.format(head="", edges=f"edge [ source 0 target 1 {edge} ]")
    (link,) = layout_of(tmp_path, "gml", content).links
    assert (link.delay_s, link.loss, link.loss_reverse) == (delay_s, loss, loss_reverse)


def test_delays_and_losses_of_a_directed_graph_are_of_each_direction(tmp_path):
    edges = ('edge [ source 0 target 1 latency "1 ms" packet_loss 0.1 ]'
             'edge [ source 1 target 0 latency "2 ms" packet_loss 0.2 ]')  # fmt: skip
    layout = layout_of(tmp_path, "gml", GML.format(head="directed 1", edges=edges))
    assert ways_of(layout) == [("A-B", 1e9, 1e-3, 0.1), ("B-A", 1e9, 2e-3, 0.2)]
    assert "Delays: attribute latency." in layout.notes
    assert "Losses of packets: attribute packet_loss." in layout.notes


@pytest.mark.parametrize(
    ("kind", "delay_s"), [("pixel", 1e-3), ("geographical", LIGHT), (None, LIGHT)]
)
def test_the_kind_of_coordinates_is_obeyed(tmp_path, kind, delay_s):
    xml = XML.format(meta="", links=xml_link("A", "B", 1), demands="")
    for old, new in (("<x>20", "<x>11"), ("<y>500", "<y>50"), ("<y>600", "<y>51")):
        xml = xml.replace(old, new)
    of = "" if kind is None else f' coordinatesType="{kind}"'
    layout = layout_of(tmp_path, "sndlib", xml.replace(' coordinatesType="pixel"', of))
    assert layout.links[0].delay_s == delay_s


def test_changed_names_leave_a_note(tmp_path):
    content = GML.replace('"A"', '"St. Louis"').replace('"B"', '"St. Louis"')
    content = content.format(head="", edges="edge [ source 0 target 1 ]")
    assert (
        'Names changed: "St. Louis" is St--Louis, "St. Louis" is St--Louis-2.'
        in layout_of(tmp_path, "gml", content).notes
    )


@pytest.mark.parametrize(
    ("edge", "message"),
    [
        ('latency "10 fortnights"', "edge A-B: latency: must be a time such as"),
        ("packet_loss 7", "edge A-B: packet_loss: must be in [0, 1], got 7"),
        ('packet_loss "low"', "edge A-B: packet_loss: must be in [0, 1], got"),
        ('capacity "100 MiB/s"', 'edge A-B: capacity: must be a rate such as "622 Mbit/s", got'),
        ('rate "100 MBPS"', 'edge A-B: rate: must be a rate such as "622 Mbit/s", got'),
        ('length "12 furlongs"', "edge A-B: length: must be a length such as 100"),
        ('LinkSpeed 3 LinkSpeedUnits "E"', 'LinkSpeedUnits: must be K, M, G or T, got "E"'),
        ('rate "-10 Mbps"', 'rate: must be above zero, got "-10 Mbps"'),
        ('rate "0 Mbit"', 'rate: must be above zero, got "0 Mbit"'),
        ("LinkSpeedRaw -5", "LinkSpeedRaw: must be a rate of zero or more, got -5"),
        ('LinkSpeedRaw "NaN"', 'LinkSpeedRaw: must be a rate of zero or more, got "NaN"'),
        ('dist "1..2"', 'dist: must be a length such as 100 or "100 km", got "1..2"'),
    ],
)
def test_an_unknown_unit_of_an_edge_is_refused(tmp_path, edge, message):
    content = GML.format(head="", edges=f"edge [ source 0 target 1 {edge} ]")
    with pytest.raises(InputError) as refused:
        layout_of(tmp_path, "gml", content)
    assert message in str(refused.value)


def test_a_default_of_a_graphml_key_is_obeyed(tmp_path):
    content = GRAPHML.format(head="undirected", edges='<edge source="A" target="B"/>').replace(
        'for="edge" id="c"/>', 'for="edge" id="c"><default>7 Mbit/s</default></key>'
    )
    assert layout_of(tmp_path, "graphml", content).links[0].rate_bps == 7e6


ZOO = """graph [ Creator "someone" Backbone 1
node [ id 0 label "A" Country "X" Longitude 0.0 Latitude 0.0 ]
node [ id 1 label "B" Internal 1 ]
edge [ source 0 target 1 LinkNote "old" ] edge [ source 1 target 1 ] ]"""
ALIBABA = "3 8 0 1 2 A100\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\nrest of\nthe file\n"


@pytest.mark.parametrize(
    ("name", "content", "notes"),
    [
        (
            "gml",
            ZOO,
            [
                "Left out: 1 edges from a node to itself.",
                "1 of 2 nodes have no place.",
                "Not used of the links' attributes: LinkNote.",
                "Not used of the nodes' attributes: Country, Internal.",
                "Not used of the graph's attributes: Backbone, Creator.",
            ],
        ),
        (
            "hpcc",
            ALIBABA,
            [
                "Not used of the first line: 8 A100.",
                "Not used: 2 lines after the last link.",
            ],
        ),
        (
            "htsim",
            "Nodes 2\nConnections 1\n0->1 id 3 start 0 size 9 prio 2 send_done_trigger 4\n",
            ["Not used of the connections: id, prio, send_done_trigger."],
        ),
        (
            "htsim",
            "Nodes 4\nConnections 2\n0->1 start 0 size 0\n0->2 start 0 size 9\n",
            ["1 connections of size 0 have no end."],
        ),
        (
            "sndlib",
            SNDLIB.format(
                meta="META (\n  time = 20040501-0000\n)\n",
                links=sndlib_link("A", "B", 5) + "\n" + sndlib_link("A", "A", 5),
                demands="D ( A B ) 1 1 UNLIMITED\nE ( A B ) 1 0 UNLIMITED",
            ).replace("DEMANDS (", "ADMISSIBLE_PATHS (\n D ( P ( L ) )\n)\nDEMANDS ("),
            [
                "Left out: 1 links from a node to itself.",
                "Not used: ADMISSIBLE_PATHS, costs of links, time of META.",
                "Left out: 1 demands of zero, or from a node to itself.",
                "No pair has demands both ways: they go from source to target only.",
            ],
        ),
    ],
)  # fmt: skip
def test_contents_without_use_leave_a_note(tmp_path, name, content, notes):
    layout = layout_of(tmp_path, name, content)
    assert [note for note in notes if note not in layout.notes] == []


def test_the_run_of_an_hpcc_list_begins_at_the_origin(tmp_path):
    (tmp_path / "flow.txt").write_text("2\n0 1 3 100 5000 2\n1 0 3 100 70 2.000001\n")
    options = {"flows": tmp_path / "flow.txt", "origin_s": 2.0}
    layout = layout_of(tmp_path, "hpcc", ALIBABA, **options, duration_s=1e-3)
    assert [flow.start_s for flow in layout.flows] == [0.0, 1e-6]
    with pytest.raises(InputError, match=r'above 2\.000001 s, .*; or write --origin "2 s"'):
        layout_of(tmp_path, "hpcc", ALIBABA, flows=tmp_path / "flow.txt", duration_s=1e-3)
    with pytest.raises(InputError, match=r"line 2: .* before the --origin 2\.5 s, got 2 s"):
        layout_of(tmp_path, "hpcc", ALIBABA, **options | {"origin_s": 2.5})
    with pytest.raises(InputError, match="--origin: no effect"):
        layout_of(tmp_path, "hpcc", ALIBABA, origin_s=2.0)


def test_times_of_a_csv_file_count_from_the_origin(tmp_path):
    rows = "B,A,3,,9,one,\nA,B,1,,,two,one\nB,A,3,5,,three,\n"
    (tmp_path / "flows.csv").write_text("source,sink,start,stop,size,name,after\n" + rows)
    graph = 'graph [\n node [ id 0 label "A" ]\n node [ id 1 label "B" ]\n' + (
        " edge [ source 0 target 1 ]\n]\n"
    )
    layout = layout_of(tmp_path, "gml", graph, flows=tmp_path / "flows.csv", origin_s=2.0)
    # The second flow's start is a pause after the first one.
    times = [(flow.start_s, flow.stop_s) for flow in layout.flows]
    assert times == [(1.0, None), (1.0, None), (1.0, 3.0)]


@pytest.mark.parametrize("delay", ["100ns", "0.1us", "0.0001ms", "1e-7s", "0.0000001"])
def test_delays_of_hpcc_are_the_nearest_floats(tmp_path, delay):
    layout = layout_of(tmp_path, "hpcc", f"2 0 1\n\n0 1 1.07Gbps {delay} 0\n")
    assert (layout.links[0].delay_s, layout.links[0].rate_bps) == (1e-7, 1.07e9)


def test_priorities_of_hpcc_flows_leave_a_note(tmp_path):
    (tmp_path / "flow.txt").write_text("1\n0 1 3 100 5000 2\nnot read\n")
    layout = layout_of(tmp_path, "hpcc", ALIBABA, flows=tmp_path / "flow.txt")
    assert "Not used of the flows: priorities and ports." in layout.notes
    assert "Not used: 1 lines after the last flow." in layout.notes


@pytest.mark.parametrize(
    ("name", "content", "flows", "message"),
    [
        ("hpcc", ALIBABA, "1\n0 0 3 100 10 2\n", "line 2: must be two hosts, got 0 twice"),
        ("hpcc", ALIBABA, "1\n0 1 3 100 0 2\n", "line 2: a size in bytes must be above zero, got"),
        ("hpcc", ALIBABA, "1\n0 1 3 100 5 -2\n", 'line 2: a start must not be negative, got "-2"'),
        ("hpcc", "4 0 2\n\n0 1 1Gbps 1us\n2 3 1Gbps 1us\n", "1\n1 2 3 100 5 2\n",
         'line 2: no route from "n1" to "n2" and back'),
        ("hpcc", "3 1 1\n7\n0 1 1Gbps 1us 0\n", None, "line 2: switches must be different nodes"),
        ("hpcc", "3 2 1\n2 2\n0 1 1Gbps 1us 0\n", None, "line 2: switches must be different no"),
        ("sndlib", SNDLIB.format(meta="", links="", demands="").replace("  B (", "  A ("), None,
         'line 4: node "A" is already defined'),
        ("hpcc", "2 0 1\n\n0 1 1Gbps 1us 1.5\n", None, "an error rate must be at most 1, got"),
        ("hpcc", "2 0 1\n\n0 1 1Gbps 1us 0 9\n", None, "must be `a b rate delay error"),
        ("gml", ZOO, "source,sink,size\nA,B,0\n", 'line 2: size: must be above zero, got "0 B"'),
        ("gml", ZOO, "source,sink\n", "flows: the file has no flows"),
        ("gml", ZOO, "source,sink,size\nA,B,0.1 B\n", "line 2: size: must be"),
        ("gml", ZOO.replace("[ source 0 target 1", "[ source 0 target 0"), None, "no links"),
        ("gml", ZOO.replace("edge", 'node [ id 2 label "C" ] edge', 1), "source,sink\nA,B\nA,C\n",
         'line 3: no route from "A" to "C" and back; add a link'),
        ("htsim", "Nodes 4\nConnections 1\nTriggers 0\n0->1 id 1 msg start 0 size 4086\n", None,
         'line 4: "msg" is not supported; write `start PS size BYTES`'),
        ("htsim", "Nodes 4\nConnections 1\n0->1 start 5 start 7 size 9\n", None,
         'line 3: start is given twice, got "5" and "7"'),
        ("htsim", "Nodes 4\nNodes 8\nConnections 1\n0->1 start 5 size 9\n", None,
         "line 2: Nodes is already given"),
        ("gml", ZOO, "source,sink,size,size\nA,B,1,2\n", 'line 1: column "size" is given twice'),
        ("graphml", GRAPHML.format(head="undirected", edges=graphml_edge("A", "Z", "1 Mbps", 1)),
         None, 'no node "Z", which an edge names'),
        ("graphml", GRAPHML.format(head="undirected", edges='<node id="A"/>'), None,
         'node "A" is already defined'),
        ("hpcc", ALIBABA, "source,sink\nn0,n1\n", "line 1: the number of flows (an HPCC list) mus"),
        ("sndlib", SNDLIB.format(meta="", links="", demands="").replace("LINKS (",
         "LINKS (\n  X ( A B ) 0 0 0 0 ( 155 10 622 )"), None,
         'modules must be pairs of capacity and cost, got "155 10 622"'),
        ("sndlib", XML.format(meta="", links=xml_link("A", "B", 1), demands="").replace(
         'id="B"', 'id="A"'), None, 'node "A" is already defined'),
        ("sndlib", XML.format(meta="", links=xml_link("A", "B", -5), demands=""), None,
         'a capacity must not be negative, got "-5'),
        ("sndlib", SNDLIB.format(meta="", links="", demands="").replace("DEMANDS (",
         "DEMANDS (\n  X ( A B ) 1 5 UNLIMITED 7"), None, "not a line of DEMANDS in SNDlib's"),
        ("htsim", "Nodes 4\nConnections 1\n0->1 start 0 size\n", None, "line 3: no value of size"),
    ],
)  # fmt: skip
def test_the_sentence_names_the_line_and_the_cause(tmp_path, name, content, flows, message):
    options = {}
    if flows is not None:
        options["flows"] = tmp_path / "flows"
        options["flows"].write_text(flows)
    with pytest.raises(InputError) as refused:
        layout_of(tmp_path, name, content, **options)
    assert message in str(refused.value)


PARTS = GML.format(
    head="",
    edges="""node [ id 2 label "C" ] node [ id 3 label "D" ]
node [ id 4 label "Alone" ] node [ id 5 label "E" ]
edge [ source 0 target 1 ] edge [ source 2 target 3 ] edge [ source 3 target 5 ]""",
)
LEFT_OUT = ("22 of 30 pairs have no route and were left out: the network has 2 parts and 1 nodes "
            "reach no other and back (Alone).")  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "flows"),
    [("all-to-all", 8), ("permutation", 5), ("incast", 2), ("gravity", 8), (None, 8)],
)
def test_pairs_without_a_route_are_counted(tmp_path, pattern, flows):
    layout = layout_of(tmp_path, "gml", PARTS, pattern=pattern)
    assert LEFT_OUT in layout.notes
    assert len(layout.flows) == flows
    if pattern == "permutation":
        senders, receivers = zip(*((f.start, f.end) for f in layout.flows), strict=True)
        assert sorted(senders) == sorted(receivers) == ["A", "B", "C", "D", "E"]


@pytest.mark.parametrize(
    ("pattern", "hosts"),
    [("all-to-all", [("A", "B"), ("C", "D", "E")]), ("incast", [("C", "D", "E")])],
)
def test_random_arrivals_stay_within_a_part(tmp_path, pattern, hosts):
    layout = layout_of(tmp_path, "gml", PARTS, pattern=pattern, sizes="rpc")
    assert [source.hosts for source in layout.sources] == hosts
    assert LEFT_OUT in layout.notes
    core_of(layout)


def test_demands_without_a_route_are_counted(tmp_path):
    content = SNDLIB.format(
        meta="", links=sndlib_link("A", "B", 5), demands="D ( A B ) 1 1 X\nE ( A C ) 1 1 X"
    ).replace("NODES (", "NODES (\n  C ( 9.0 9.0 )")
    notes = layout_of(tmp_path, "sndlib", content).notes
    assert "1 of 2 demands have no route and were left out." in notes


def test_names_of_any_characters_are_toml(tmp_path):
    names = ["a\x7fb", "\x01", 'q"', "back\\slash", "né"]
    nodes = "".join(f'<node id="{i}"><data key="n">{name}</data></node>'
                    for i, name in enumerate(n for n in names if n != "\x01"))  # fmt: skip
    content = GRAPHML.replace("</key>", "").format(head="undirected", edges="").replace(
        '<node id="A"/><node id="B"/>', nodes + '<edge source="0" target="1"/>'
        '<edge source="1" target="2"/><edge source="2" target="3"/>'
    ).replace("<key attr.name=\"length\"", '<key attr.name="label" for="node" id="n" '
              'attr.type="string"/><key attr.name="length"')  # fmt: skip
    layout = layout_of(tmp_path, "graphml", content)
    assert "a\x7fb" in layout.hosts
    core_of(layout)
    layout.name = "two\nlines"
    assert from_toml(text(layout, "reno", 1), "x").name == "two\nlines"


@pytest.mark.parametrize("words", ["--protocol nosuch", "--duration 0s", f"--seed {10**20}"])
@pytest.mark.parametrize("name", ["trace", "gml"])
def test_what_check_refuses_is_not_written(waterfill, tmp_path, name, words):
    (tmp_path / "in").write_text("1\n2\n4\n" if name == "trace" else PARTS)
    ran = waterfill("import", name, "in", *words.split(), "-o", "new.toml")
    assert (ran.code, (tmp_path / "new.toml").exists()) == (2, False)
    assert ran.err.startswith(f"{words.split()[0]}: ")


def test_a_network_without_flows_says_so(waterfill, tmp_path):
    (tmp_path / "in.gml").write_text(RING)
    ran = waterfill("import", "gml", "in.gml", "--traffic", "none", "-o", "new.toml")
    assert (
        ran.out.strip()
        == "written to new.toml; add a [[flow]], then run it: waterfill run new.toml"
    )


def test_both_directions_of_a_lossy_link_lose_packets(waterfill, tmp_path):
    (tmp_path / "topology.txt").write_text("2 0 1\n\n0 1 10Mbps 1ms 0.05\n")
    (tmp_path / "flow.txt").write_text("1\n1 0 3 100 3000000 0\n")
    ran = waterfill("import", "hpcc", "topology.txt", "--flows", "flow.txt", "--protocol", "reno",
                    "--duration", "200 s", "-o", "s.toml")  # fmt: skip
    assert ran.code == 0
    ran = waterfill("run", "s.toml", "--set", 'measure=["0 s","200 s"]', "--json")
    lost = {link["name"]: link["lost"] for link in json.loads(ran.out)["links"]}
    # 3,100 data packets go back and as many acknowledgements forward.
    assert 120 < lost["link0:rev"] < 210
    assert 120 < lost["link0"] < 210
