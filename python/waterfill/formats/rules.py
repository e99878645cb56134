"""Networks built by rule: fat-tree, leaf-spine, rail-optimized, torus, dumbbell, parking lot, WAN.

Hosts of data-centre networks have links of their own; in the others traffic starts at the nodes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import combinations

from waterfill.formats.layout import Layout, LinkPlan, delay_s
from waterfill.scenario import fabric

# The area of a random WAN, km: that of the contiguous United States.
_WIDTH_KM, _HEIGHT_KM = 4500.0, 2500.0
# Where routes are searched: their memory grows with the square of the nodes.
_MAX_NODES = 2000
_MAX_CHAIN = 200  # routes take the cube of it: 15 s


def _distance(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Return the distance of two places; `math.dist` depends on the version of Python."""
    x, y = a[0] - b[0], a[1] - b[1]
    return math.sqrt(x * x + y * y)


def fat_tree(k: int, rate_bps: float, link_delay_s: float, oversubscription: float = 1.0) -> Layout:
    """Return a fat-tree of k-port switches: k³/4 hosts, 5k²/4 switches (Al-Fares et al., 2008).

    Raises ValueError unless k is even and from 2 to 64.
    """
    links = fabric.fat_tree(k)
    half = k // 2

    def route(start: str, end: str, chance: random.Random) -> tuple[str, ...] | None:
        source, sink = int(start[1:]), int(end[1:])
        first, last = source // half, sink // half
        if source == sink:
            return None
        up, down = f"{start}-e{first}", f"{end}-e{last}"
        if first == last:
            return up, down
        i = chance.randrange(half)
        left, right = f"a{first // half * half + i}", f"a{last // half * half + i}"
        outer = f"e{first}-{left}", f"e{last}-{right}"
        if left == right:
            return up, *outer, down
        core = f"c{i * half + chance.randrange(half)}"
        return up, outer[0], f"{left}-{core}", f"{right}-{core}", outer[1], down

    notes = [f"Fat-tree of {k}-port switches; h: hosts, e: edge, a: aggregation, c: core switches.",
             "Flows take one of the equal routes at random, by the seed (ECMP)."]  # fmt: skip
    uplink_bps = fabric.balanced_bps(links, rate_bps) / oversubscription
    layout = _of_fabric(f"fat-tree {k}", links, rate_bps, uplink_bps, link_delay_s)
    layout.own_route, layout.notes = route, notes
    return layout


def leaf_spine(
    leaves: int, spines: int, hosts: int, rate_bps: float, link_delay_s: float,
    uplink_bps: float | None = None, oversubscription: float = 1.0,
) -> Layout:  # fmt: skip
    """Return a leaf-spine network, with `hosts` hosts per leaf and a link from each leaf to each
    spine.

    `uplink_bps` None: 1 ÷ oversubscription of what a leaf's hosts have. Raises ValueError if a
    number is below 1, or for more links than `fabric.MAX_LINKS`.
    """
    _check_counts(leaves=leaves, spines=spines, hosts=hosts)
    links = fabric.leaf_spine(leaves, spines, hosts)
    uplink_bps = uplink_bps or fabric.balanced_bps(links, rate_bps) / oversubscription
    layout = _two_layers(f"leaf-spine {leaves} x {spines}", links, rate_bps, uplink_bps,
                         link_delay_s, lambda number: number // hosts, spines)  # fmt: skip
    layout.notes.insert(0, "Leaf-spine; h: hosts, l: leaves, s: spines.")
    return layout


def rail_optimized(
    servers: int, rails: int, spines: int, rate_bps: float, link_delay_s: float,
    oversubscription: float = 1.0,
) -> Layout:  # fmt: skip
    """Return a rail-optimized network: interface i of each server is a host at leaf i, and each
    leaf has a link to each spine.

    Raises ValueError if a number is below 1, or for more links than `fabric.MAX_LINKS`.
    """
    _check_counts(servers=servers, rails=rails, spines=spines)
    links = fabric.rail_optimized(servers, rails, spines)
    uplink_bps = fabric.balanced_bps(links, rate_bps) / oversubscription
    layout = _two_layers(f"rail-optimized {servers} x {rails}", links, rate_bps, uplink_bps,
                         link_delay_s, lambda number: number % rails, spines)  # fmt: skip
    layout.notes.insert(
        0,
        f"Rail-optimized; host n is interface n % {rails} of server n // {rails}, l: leaves "
        "(one a rail), s: spines. Servers forward nothing between their interfaces.",
    )
    return layout


def _check_counts(**counts: int) -> None:
    for name, number in counts.items():
        if number < 1:
            raise ValueError(f"{name} must be at least 1, got {number}")


def _two_layers(
    name: str, links: list[fabric.FabricLink], rate_bps: float, uplink_bps: float,
    link_delay_s: float, leaf_of: Callable[[int], int], spines: int,
) -> Layout:  # fmt: skip
    def route(start: str, end: str, chance: random.Random) -> tuple[str, ...] | None:
        first, last = leaf_of(int(start[1:])), leaf_of(int(end[1:]))
        if start == end:
            return None
        up, down = f"{start}-l{first}", f"{end}-l{last}"
        if first == last:
            return up, down
        spine = chance.randrange(spines)
        return up, f"l{first}-s{spine}", f"l{last}-s{spine}", down

    layout = _of_fabric(name, links, rate_bps, uplink_bps, link_delay_s)
    layout.own_route = route
    layout.notes = ["Flows take one of the equal routes at random, by the seed (ECMP)."]
    return layout


def _of_fabric(
    name: str, links: list[fabric.FabricLink], rate_bps: float, uplink_bps: float,
    link_delay_s: float,
) -> Layout:  # fmt: skip
    plans = [
        LinkPlan(link.name, link.low, link.high, uplink_bps if link.uplink else rate_bps,
                 link_delay_s)
        for link in links
    ]  # fmt: skip
    hosts = [link.low for link in links if not link.uplink]
    return Layout(name, plans, hosts, duration_s=1.0)


def torus(rows: int, columns: int, rate_bps: float, link_delay_s: float) -> Layout:
    """Return a two-dimensional torus of nodes.

    Raises ValueError if a side is shorter than 3, or for more than 2000 nodes.
    """
    if rows < 3 or columns < 3:
        raise ValueError(f"both sides must be at least 3, got {rows} and {columns}")
    if rows * columns > _MAX_NODES:
        raise ValueError(f"more than {_MAX_NODES} nodes, got {rows * columns}")
    plans = []
    for row in range(rows):
        for column in range(columns):
            here = f"n{row}-{column}"
            for there in (f"n{row}-{(column + 1) % columns}", f"n{(row + 1) % rows}-{column}"):
                plans.append(LinkPlan(f"{here}/{there}", here, there, rate_bps, link_delay_s))
    hosts = [f"n{row}-{column}" for row in range(rows) for column in range(columns)]
    notes = ["Torus; flows take one of the shortest routes at random, by the seed."]
    return Layout(f"torus {rows} x {columns}", plans, hosts, notes=notes)


def dumbbell(pairs: int, rate_bps: float, link_delay_s: float) -> Layout:
    """Return a dumbbell: pairs of hosts, s0 and d0 and so on, on both sides of one link.

    Raises ValueError unless there are 1 to 1000 pairs.
    """
    if not 1 <= pairs <= _MAX_NODES // 2:
        raise ValueError(f"must be 1 to {_MAX_NODES // 2} pairs, got {pairs}")
    plans = [LinkPlan("bottleneck", "left", "right", rate_bps, link_delay_s)]
    for n in range(pairs):
        plans.append(LinkPlan(f"s{n}-left", f"s{n}", "left", 10 * rate_bps, 0.0))
        plans.append(LinkPlan(f"right-d{n}", "right", f"d{n}", 10 * rate_bps, 0.0))
    hosts = [f"{side}{n}" for side in "sd" for n in range(pairs)]
    notes = ["Dumbbell; the hosts' own links are ten times as fast as the bottleneck."]
    return Layout(f"dumbbell {pairs}", plans, hosts, notes=notes)


def parking_lot(hops: int, rate_bps: float, link_delay_s: float) -> Layout:
    """Return a parking lot: a chain of links with the nodes n0, n1 and so on.

    Raises ValueError unless there are 1 to 200 links.
    """
    if not 1 <= hops <= _MAX_CHAIN:
        raise ValueError(f"must be 1 to {_MAX_CHAIN} links, got {hops}")
    plans = [LinkPlan(f"link{n + 1}", f"n{n}", f"n{n + 1}", rate_bps, link_delay_s)
             for n in range(hops)]  # fmt: skip
    hosts = [f"n{n}" for n in range(hops + 1)]
    return Layout(f"parking lot {hops}", plans, hosts, notes=["A chain of links."])


def wan(nodes: int, rate_bps: float, seed: int) -> Layout:
    """Return a random planar network: nodes in a rectangle, joined as a Gabriel graph.

    Two nodes are joined unless a third is inside the circle between them (Gabriel and Sokal, 1969).
    Such a graph is connected. Raises ValueError unless there are 2 to 2000 nodes.
    """
    if not 2 <= nodes <= 2000:
        raise ValueError(f"must be 2 to 2000 nodes, got {nodes}")
    chance = random.Random(f"wan/{seed}")
    at = [(chance.uniform(0, _WIDTH_KM), chance.uniform(0, _HEIGHT_KM)) for _ in range(nodes)]
    plans = []
    for a, b in combinations(range(nodes), 2):
        middle = ((at[a][0] + at[b][0]) / 2, (at[a][1] + at[b][1]) / 2)
        radius = _distance(at[a], at[b]) / 2
        if all(_distance(at[c], middle) >= radius for c in range(nodes) if c not in (a, b)):
            late_s = round(delay_s(2 * radius), 6)
            plans.append(LinkPlan(f"n{a}-n{b}", f"n{a}", f"n{b}", rate_bps, late_s))
    hosts = [f"n{n}" for n in range(nodes)]
    notes = [
        f"Gabriel graph of {nodes} random places in {_WIDTH_KM:.0f} x {_HEIGHT_KM:.0f} km, "
        "light in fibre at 200,000 km/s."
    ]
    return Layout(f"wan {nodes}", plans, hosts, notes=notes)
