"""Networks of data centers by rule: the keys of `[fabric]` and the links that they stand for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from waterfill.scenario.table import Table
from waterfill.scenario.units import RATE, TIME, number, whole

_Count = Annotated[int, Field(ge=1), BeforeValidator(lambda v: whole(v, minimum=1, maximum=10**6))]

MAX_LINKS = 200_000
"""More than the largest fat-tree, k = 64, has."""


class Fabric(Table):
    """The [fabric] table: a network of a data center by rule.

    Its hosts are h0, h1 and so on, its links are named HOST-SWITCH and LOWER-UPPER.
    """

    kind: Literal["fat-tree", "leaf-spine", "rail-optimized"]
    """fat-tree: three layers of k-port switches. leaf-spine: two layers. rail-optimized: two
    layers, in which the interfaces of a server are at different leaves."""
    k: Annotated[int, BeforeValidator(whole)] | None = None
    """Ports of each switch of a fat-tree, even, 2 to 64; it has k³/4 hosts."""
    leaves: _Count | None = None
    """Leaf switches of a leaf-spine network."""
    spines: _Count | None = None
    """Spine switches of a leaf-spine or rail-optimized network; each has a link to each leaf."""
    hosts: _Count | None = None
    """Hosts at each leaf of a leaf-spine network."""
    servers: _Count | None = None
    """Servers of a rail-optimized network."""
    rails: _Count | None = None
    """Interfaces of each server, and leaves, of a rail-optimized network. Host n is interface
    n % rails of server n // rails."""
    host_rate: Annotated[float, RATE]
    """Rate of the hosts' links (bit/s)."""
    uplink_rate: Annotated[float, RATE] | None = None
    """Rate of the links between switches (bit/s); default: what `oversubscription` makes of it."""
    oversubscription: (
        Annotated[float, Field(gt=0), BeforeValidator(lambda v: number(v, above=0))] | None
    ) = None
    """Capacity of a switch's links to hosts ÷ capacity of its uplinks; default: 1."""
    delay: Annotated[float, TIME]
    """Propagation delay of each link (s)."""


_SIZES = {
    "fat-tree": ("k",),
    "leaf-spine": ("leaves", "spines", "hosts"),
    "rail-optimized": ("servers", "rails", "spines"),
}
"""Keys of the size of each kind."""


def fault_of(fabric: Fabric) -> tuple[str, str] | None:
    """Return the first key that is missing or not one of the kind's, with the problem, or None."""
    own = _SIZES[fabric.kind]
    for key in dict.fromkeys(key for keys in _SIZES.values() for key in keys):
        value = getattr(fabric, key)
        if value is None and key in own:
            return key, f"missing; a {fabric.kind} has {', '.join(own)}"
        if value is not None and key not in own:
            return key, f"not a key of a {fabric.kind}, got {value}; it has {', '.join(own)}"
    if fabric.uplink_rate is not None and fabric.oversubscription is not None:
        why = f"decided by uplink_rate, got {fabric.oversubscription:g}; remove one of the two"
        return "oversubscription", why
    return None


def entries(fabric: Fabric) -> list[dict[str, str]]:
    """Return the links of a fabric as the [[link]] tables of a scenario.

    `fault_of` has found none. Raises ValueError if the sizes are outside their ranges.
    """
    sizes = [getattr(fabric, key) for key in _SIZES[fabric.kind]]
    links = _RULES[fabric.kind](*sizes)
    uplink_bps = fabric.uplink_rate or balanced_bps(links, fabric.host_rate) / (
        fabric.oversubscription or 1.0
    )
    rates = {True: RATE.format(uplink_bps), False: RATE.format(fabric.host_rate)}
    delay = TIME.format(fabric.delay)
    return [
        {"name": link.name, "from": link.low, "to": link.high, "rate": rates[link.uplink],
         "delay": delay}
        for link in links
    ]  # fmt: skip


def end_nodes(links: Iterable[tuple[str, str]]) -> list[str]:
    """Return the nodes with links to only one other node, or all nodes if there are none, in the
    order of the links. `links` are pairs of nodes.
    """
    neighbors: defaultdict[str, set[str]] = defaultdict(set)
    for low, high in links:
        neighbors[low].add(high)
        neighbors[high].add(low)
    found = [node for node, others in neighbors.items() if len(others) == 1]
    return found or list(neighbors)


class FabricLink(NamedTuple):
    """A duplex link of a fabric."""

    low: str
    high: str
    uplink: bool
    """True between switches, False from a host to its switch."""

    @property
    def name(self) -> str:
        """Name of the link."""
        return f"{self.low}-{self.high}"


def balanced_bps(links: Sequence[FabricLink], host_bps: float) -> float:
    """Return the rate of an uplink (bit/s) at which the first host's switch has as much capacity to
    the switches above it as to its hosts.
    """
    switch = links[0].high
    hosts = sum(link.high == switch and not link.uplink for link in links)
    return host_bps * hosts / sum(link.low == switch for link in links)


def fat_tree(k: int) -> list[FabricLink]:
    """Return the links of a fat-tree of k-port switches: k³/4 hosts h0, h1 …, k²/2 edge switches e,
    as many aggregation switches a, and k²/4 core switches c (Al-Fares et al., 2008).

    Raises ValueError unless k is even and from 2 to 64.
    """
    if k % 2 or not 2 <= k <= 64:
        raise ValueError(f"k must be an even number from 2 to 64, got {k}")
    half = k // 2
    hosts = range(k * half * half)
    links = [FabricLink(f"h{number}", f"e{number // half}", uplink=False) for number in hosts]
    for pod in range(k):
        for i in range(half):
            for j in range(half):
                links += (
                    FabricLink(f"e{pod * half + i}", f"a{pod * half + j}", uplink=True),
                    # The i-th switch of a pod's upper layer has cores i·k/2 to (i+1)·k/2 − 1.
                    FabricLink(f"a{pod * half + i}", f"c{i * half + j}", uplink=True),
                )
    return links


def leaf_spine(leaves: int, spines: int, hosts: int) -> list[FabricLink]:
    """Return the links of a leaf-spine network: host n is at leaf n // hosts, and each leaf has a
    link to each spine.

    Raises ValueError if it has more than `MAX_LINKS` links.
    """
    return _two_layers(leaves * hosts, lambda number: number // hosts, leaves, spines)


def rail_optimized(servers: int, rails: int, spines: int) -> list[FabricLink]:
    """Return the links of a rail-optimized network: a server has a network interface on each rail,
    host n is interface n % rails of server n // rails, and each rail is a leaf.

    Raises ValueError if it has more than `MAX_LINKS` links.
    """
    return _two_layers(servers * rails, lambda number: number % rails, rails, spines)


def _two_layers(
    hosts: int, leaf_of: Callable[[int], int], leaves: int, spines: int
) -> list[FabricLink]:
    # Before the list, which may not fit into memory.
    if (count := hosts + leaves * spines) > MAX_LINKS:
        raise ValueError(f"more than {MAX_LINKS} links, got {count}")
    links = [FabricLink(f"h{n}", f"l{leaf_of(n)}", uplink=False) for n in range(hosts)]
    links += [
        FabricLink(f"l{leaf}", f"s{spine}", uplink=True)
        for leaf in range(leaves) for spine in range(spines)
    ]  # fmt: skip
    return links


_RULES: Mapping[str, Callable[..., list[FabricLink]]] = {
    "fat-tree": fat_tree,
    "leaf-spine": leaf_spine,
    "rail-optimized": rail_optimized,
}
