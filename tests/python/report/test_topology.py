"""The picture of a topology: positions, directions, loads."""

from __future__ import annotations

import numpy as np
import pytest

from waterfill.contract.summary import LinkSummary
from waterfill.report import topology
from waterfill.scenario.loading import from_toml


def scenario(edges):
    links = "".join(
        f'[[link]]\nname = "{name}"\nfrom = "{a}"\nto = "{b}"\nrate = "10 Mbit/s"\n'
        for name, a, b in edges
    )
    flow = f'[[flow]]\nname = "f"\npath = ["{edges[0][0]}"]\n'
    return from_toml(f'name = "n"\nduration = "1 s"\nprotocol = "maxnet"\n{links}{flow}')


def loads(edges, load=0.5):
    names = [name for name, *_ in edges]
    every = [*names, *(f"{n}:rev" for n in names)]
    return [LinkSummary.read({"name": n, "utilization": load}) for n in every]


RING = [("e1", "a", "b"), ("e2", "b", "c"), ("e3", "c", "d"), ("e4", "d", "a"), ("e5", "a", "c")]
CHAIN = [("l1", "r1", "r2"), ("l2", "r2", "r3"), ("l3", "r3", "r4")]


def test_a_chain_is_a_line_in_the_files_order():
    found = topology.picture(scenario(CHAIN), loads(CHAIN))
    assert [node.name for node in found.nodes] == ["r1", "r2", "r3", "r4"]
    x = [node.x for node in found.nodes]
    assert x == sorted(x)
    assert len({node.y for node in found.nodes}) == 1
    assert len(found.arrows) == 6


@pytest.mark.parametrize("edges", [RING, CHAIN, RING[:1], [*RING, ("far", "x", "y")]])
def test_nodes_are_apart_and_on_the_page(edges):
    found = topology.picture(scenario(edges), loads(edges))
    where = np.array([(node.x, node.y) for node in found.nodes])
    apart = np.hypot(*(where[:, None] - where[None]).transpose(2, 0, 1))
    assert apart[np.triu_indices(len(where), 1)].min() > 40
    assert (where > 0).all()
    assert (where[:, 0] < found.width).all()
    assert (where[:, 1] < found.height).all()
    assert found == topology.picture(scenario(edges), loads(edges))


def test_directions_lie_apart_and_loads_choose_the_colour():
    links = loads(CHAIN[:1])
    links[0]["utilization"], links[1]["utilization"] = 0.97, 0.01
    forward, back = topology.picture(scenario(CHAIN[:1]), links).arrows
    assert (forward.level, back.level) == (len(topology.LEVELS), 0)
    assert forward.y1 != back.y1
    assert forward.x1 < forward.x2
    assert back.x1 > back.x2
    assert forward.text == "l1: 10 Mbit/s, 97.0 % used"


def test_large_networks_show_their_busiest_links():
    count = topology.MAX_LINKS + 20
    edges = [(f"l{i}", f"n{i}", f"n{i + 1}") for i in range(count)]
    links = loads(edges, 0.0)
    for entry in links[20:count]:
        entry["utilization"] = 0.5
    found = topology.picture(scenario(edges), links)
    assert found.left_out == 20
    assert {arrow.name for arrow in found.arrows} >= {"l20", f"l{count - 1}"}
    assert not any(arrow.label for arrow in found.arrows)
