"""Property tests of `import` and `generate`: every scenario that they write runs."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from waterfill.errors import InputError
from waterfill.formats import effects
from waterfill.formats.build import RULES, Options, generated, imported
from waterfill.formats.layout import Routes
from waterfill.formats.writing import text
from waterfill.runs import backends
from waterfill.scenario.loading import from_toml

SIZES = {"fat-tree": [4], "leaf-spine": [2, 2, 2], "rail-optimized": [2, 2, 2],
         "torus": [3, 3], "dumbbell": [3],
         "parking-lot": [3], "wan": [9]}  # fmt: skip
RATES = (None, 1, 10)


def gml(nodes, edges, directed):
    body = [f'node [ id {n} label "N{n}" ]' for n in range(nodes)]
    body += [f"edge [ source {a} target {b} key {i}"
             + (f' capacity "{rate} Mbit/s" length {rate}' if rate else "") + " ]"
             for i, (a, b, rate) in enumerate(edges)]  # fmt: skip
    return f"graph [ directed {int(directed)} multigraph 1\n" + "\n".join(body) + "\n]"


def graphml(nodes, edges, directed):
    body = "".join(f'<node id="N{n}"/>' for n in range(nodes))
    for a, b, rate in edges:
        data = f'<data key="c">{rate} Mbps</data>' if rate else ""
        body += f'<edge source="N{a}" target="N{b}">{data}</edge>'
    default = "directed" if directed else "undirected"
    return (
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key attr.name="capacity" '
        f'attr.type="string" for="edge" id="c"/><graph edgedefault="{default}">{body}'
        "</graph></graphml>"
    )


def sndlib(nodes, edges, directed):
    lines = ["?SNDlib native format; type: network; version: 1.0", "NODES ("]
    lines += [f" N{n} ( {n} 0 )" for n in range(nodes)] + [")", "LINKS ("]
    lines += [f" L{i} ( N{a} N{b} ) {rate or 0} 0 0 0 ( )" for i, (a, b, rate) in enumerate(edges)]
    lines += [")", "DEMANDS ("]
    pairs = itertools.combinations(range(nodes), 2) if directed else ()
    return "\n".join([*lines, *(f" D{a}{b} ( N{a} N{b} ) 1 7 UNLIMITED" for a, b in pairs), ")"])


def hpcc(nodes, edges, directed):
    links = [(a, b, rate) for a, b, rate in edges if a != b]
    lines = [f"{nodes} {int(directed)} {len(links)}", "0" if directed else ""]
    return "\n".join(lines + [f"{a} {b} {rate or 3}Mbps 1ms 0.1" for a, b, rate in links])


def repetita(nodes, edges, directed):
    lines = [f"NODES {nodes}", "label x y", *(f"N{n} 0 0" for n in range(nodes)), ""]
    rows = [(a, b, rate or 5) for a, b, rate in edges]
    rows += [] if directed else [(b, a, rate) for a, b, rate in rows]
    lines += [f"EDGES {len(rows)}", "label src dest weight bw delay"]
    return "\n".join(lines + [f"e{i} {a} {b} 1 {r}000 7" for i, (a, b, r) in enumerate(rows)])


def rocketfuel(nodes, edges, directed):
    rows = [f"N{a},+X N{b},+X {rate or 2.5}" for a, b, rate in edges]
    return "\n".join(rows + ([] if directed else [f"N{b},+X N{a},+X 1" for a, b, _ in edges]))


def shadow(nodes, edges, directed):
    """A graph in which all nodes but the first have hosts."""
    body = ['node [ id 0 label "N0" ]']
    body += [f'node [ id {n} label "N{n}" host_bandwidth_up "{n} Mbit" '
             f'host_bandwidth_down "10 Mbit" ]' for n in range(1, nodes)]  # fmt: skip
    body += [f'edge [ source {a} target {b} latency "{rate or 3} ms" packet_loss 0.01 ]'
             for a, b, rate in edges]  # fmt: skip
    return f"graph [ directed {int(directed)}\n" + "\n".join(body) + "\n]"


WRITERS = {"gml": gml, "graphml": graphml, "sndlib": sndlib, "hpcc": hpcc, "repetita": repetita,
           "rocketfuel": rocketfuel, "shadow": shadow}  # fmt: skip
FORMAT = {"shadow": "gml"}


@st.composite
def graphs(draw):
    nodes = draw(st.integers(2, 6))
    node = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(node, node, st.sampled_from(RATES)), max_size=9))
    return nodes, edges, draw(st.booleans())


@st.composite
def options(draw):
    """Return a kind of traffic and a subset of the options that take effect with it."""
    chosen = draw(st.sampled_from([kind for kind in effects.TRAFFIC if kind != "--flows"]))
    values = {
        "--pairs": {"pairs": draw(st.integers(1, 3))}, "--count": {"count": 2},
        "--load": {"load": draw(st.sampled_from([0.25, 2.0]))}, "--size": {"size_bytes": 77},
        "--sizes": {"sizes": "rpc"}, "--traffic": {"pattern": chosen.partition("--traffic ")[2]},
    }  # fmt: skip
    able = effects.TRAFFIC[chosen]
    needed = [option for option in ("--sizes", "--traffic") if option in able]
    more = draw(st.lists(st.sampled_from(able), unique=True))
    found = {"seed": draw(st.integers(0, 9))}
    for option in {*needed, *more}:
        found |= values[option]
    return Options(**found)


def accepted(layout, chosen):
    written = text(layout, "maxnet", 1)
    if chosen.pattern == "none":
        written += (
            f'[[traffic]]\nkind = "cbr"\nrate = "1 kbit/s"\npath = ["{layout.links[0].name}"]\n'
        )
    backends.prepare(from_toml(written, "written"), "sim")
    ends = {(flow.start, flow.end) for flow in layout.flows}
    return ends, written


@settings(max_examples=150)
@given(name=st.sampled_from(sorted(WRITERS)), graph=graphs(), chosen=options())
def test_any_imported_network_is_refused_or_runs(name, graph, chosen):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in.latencies.intra"
        path.write_text(WRITERS[name](*graph), encoding="utf-8")
        try:
            layout = imported(FORMAT.get(name, name), str(path), chosen)
        except InputError:
            event("refused")
            return
    ends, written = accepted(layout, chosen)
    pairs = len(layout.hosts) * (len(layout.hosts) - 1)
    if chosen.pattern == "all-to-all" and chosen.sizes is None and len(ends) < pairs:
        assert f"{pairs - len(ends)} of {pairs} pairs have no route" in written
    if chosen.pattern == "permutation":
        assert sorted(a for a, _ in ends) == sorted(b for _, b in ends)


@settings(max_examples=60)
@given(name=st.sampled_from(sorted(RULES)), chosen=options())
def test_any_generated_network_is_refused_or_runs(name, chosen):
    try:
        layout = generated(name, SIZES[name], chosen)
    except InputError:
        event("refused")
        return
    accepted(layout, chosen)


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_most_of_these_networks_are_imported(tmp_path, name):
    path = tmp_path / "in.latencies.intra"
    path.write_text(WRITERS[name](4, [(0, 1, 10), (1, 0, None), (2, 3, 1), (3, 2, 1)], True))
    layout = imported(FORMAT.get(name, name), str(path), Options(pattern="all-to-all"))
    # hpcc has a switch, and shadow a node without a host.
    assert len(layout.flows) == (2 if name in ("hpcc", "shadow") else 4)


@st.composite
def fabrics(draw):
    """Return a .topo file whose radixes fit, and its number of hosts."""
    hosts, tors, aggs, cores, pods, *bundles = (draw(st.integers(1, 3)) for _ in range(7))
    tiers = draw(st.sampled_from([2, 3]))
    pods = pods if tiers == 3 else 1
    lines = [f"Nodes {pods * tors * hosts}", f"Tiers {tiers}", f"Podsize {tors * hosts}"]
    down = [hosts, tors * bundles[0], pods * bundles[1]]
    up = [aggs * bundles[0], cores * bundles[1]]
    for tier in range(tiers):
        lines += [f"Tier {tier}", f"Downlink_speed_Gbps {4 - tier}", f"Radix_Down {down[tier]}",
                  "Downlink_Latency_ns 1000", f"Switch_Latency_ns {tier * 100}"]  # fmt: skip
        lines += [f"Radix_Up {up[tier]}"] if tier < tiers - 1 else []
        lines += [f"Bundle {bundles[tier - 1]}"] if tier else []
    return "\n".join(lines), pods * tors * hosts


@settings(max_examples=60)
@given(fabric=fabrics(), chosen=options())
def test_any_topology_of_htsim_is_refused_or_runs(fabric, chosen):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in.topo"
        path.write_text(fabric[0])
        try:
            layout = imported("htsim-topo", str(path), chosen)
        except InputError as error:
            refusal = str(error)
        else:
            refusal = ""
    if refusal:
        # Options may contradict each other, or a network of few hosts; the file is right.
        assert fabric[1] == 1 or refusal.startswith("--")
        return
    accepted(layout, chosen)
    searched = Routes(layout.links)
    for flow in layout.flows:
        assert len(flow.path) == len(searched.between(flow.start, flow.end, Random(1)))


@st.composite
def matrices(draw):
    """Return a connection matrix in which a connection may wait for earlier ones."""
    count = draw(st.integers(1, 6))
    lines, triggers, after = [], [], {}
    done = {i: "" for i in range(count)}
    for i in range(1, count):
        before = draw(st.sets(st.integers(0, i - 1), max_size=2))
        before = {j for j in before if not done[j]}
        for j in before:
            done[j] = f" {draw(st.sampled_from(['send', 'recv']))}_done_trigger {i}"
        if before:
            kind = "oneshot" if len(before) == 1 else f"barrier count {len(before)}"
            triggers.append(f"trigger id {i} {kind}")
            after[i] = before
    for i in range(count):
        start = f"trigger {i}" if i in after else f"start {i}000"
        a, b = draw(st.permutations(range(4)))[:2]
        lines.append(f"{a}->{b} id {i + 1} {start} size 3000{done[i]}")
    head = ["Nodes 4", f"Connections {count}", f"Triggers {len(triggers)}"]
    return "\n".join([*head, *lines, *triggers]), after


@settings(max_examples=60)
@given(matrix=matrices())
def test_any_matrix_keeps_its_order(matrix):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in.cm"
        path.write_text(matrix[0])
        layout = imported("htsim", str(path), Options())
    accepted(layout, Options())
    names = [flow.name for flow in layout.flows]
    found = {i: {names.index(n) for n in f.after} for i, f in enumerate(layout.flows) if f.after}
    assert found == matrix[1]
