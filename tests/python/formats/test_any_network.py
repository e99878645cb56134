"""Property tests of `import` and `generate`: every scenario that they write runs."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from waterfill.errors import InputError
from waterfill.formats import effects
from waterfill.formats.build import RULES, Options, generated, imported
from waterfill.formats.writing import text
from waterfill.runs import backends
from waterfill.scenario.loading import from_toml

SIZES = {"fat-tree": [4], "leaf-spine": [2, 2, 2], "torus": [3, 3], "dumbbell": [3],
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


WRITERS = {"gml": gml, "graphml": graphml, "sndlib": sndlib, "hpcc": hpcc}


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


@settings(max_examples=400)
@given(name=st.sampled_from(sorted(WRITERS)), graph=graphs(), chosen=options())
def test_any_imported_network_is_refused_or_runs(name, graph, chosen):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in"
        path.write_text(WRITERS[name](*graph), encoding="utf-8")
        try:
            layout = imported(name, str(path), chosen)
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
    path = tmp_path / "in"
    path.write_text(WRITERS[name](4, [(0, 1, 10), (1, 0, None), (2, 3, 1), (3, 2, 1)], True))
    layout = imported(name, str(path), Options(pattern="all-to-all"))
    assert len(layout.flows) == (2 if name == "hpcc" else 4)
