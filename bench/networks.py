"""The two networks on which several threads are measured: a fat-tree and a WAN.

    python bench/networks.py

Writes out/bench/fat-tree.toml and out/bench/wan.toml, which always have the same bytes.
"""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

OUT = Path(__file__).parents[1] / "out" / "bench"

# A fat-tree of switches with K ports (Al-Fares, Loukissas, Vahdat, SIGCOMM 2008).
K = 8
GROUPS_PER_HOST = 4
FLOWS_PER_GROUP = 2

NODES = 100
WAN_GROUPS = 300
WAN_SIDE_KM = 4000.0
FIBRE_KM_PER_MS = 200.0


def fat_tree() -> str:
    """Return a fat-tree of 128 hosts, and 1,024 flows between pods on random shortest paths."""
    draw = random.Random(1)
    half = K // 2
    links: list[tuple[str, str]] = []
    for pod in range(K):
        for edge in range(half):
            links += [(f"p{pod}e{edge}", f"p{pod}a{agg}") for agg in range(half)]
            links += [(f"p{pod}e{edge}h{host}", f"p{pod}e{edge}") for host in range(half)]
        for agg in range(half):
            links += [(f"p{pod}a{agg}", f"c{agg}{core}") for core in range(half)]
    hosts = [(pod, edge, h) for pod in range(K) for edge in range(half) for h in range(half)]
    flows = []
    for number in range(GROUPS_PER_HOST):
        targets = hosts[:]
        while any(a[0] == b[0] for a, b in zip(hosts, targets, strict=True)):
            draw.shuffle(targets)
            # A pod that meets itself swaps with the host half the tree away.
            for i, (a, b) in enumerate(zip(hosts, targets, strict=True)):
                other = (i + len(hosts) // 2) % len(hosts)
                if a[0] == b[0] and a[0] != targets[other][0] and hosts[other][0] != b[0]:
                    targets[i], targets[other] = targets[other], targets[i]
        for (pod, edge, host), (to, to_edge, to_host) in zip(hosts, targets, strict=True):
            agg, core = draw.randrange(half), draw.randrange(half)
            path = [
                f"p{pod}e{edge}h{host}",
                f"p{pod}e{edge}",
                f"p{pod}a{agg}",
                f"c{agg}{core}",
                f"p{to}a{agg}",
                f"p{to}e{to_edge}",
                f"p{to}e{to_edge}h{to_host}",
            ]
            flows.append((f"{path[0]}-{number}", path, f"{draw.randrange(1000)} us"))
    head = [
        "# A fat-tree of k = 8: 128 hosts, 80 switches, 10 Gbit/s, 1,024 flows between pods.",
        "",
        'name = "fat-tree k = 8"',
        'duration = "20 ms"',
        'sample = "5 ms"',
        'protocol = "sack"',
        'rto_min = "5 ms"',
        "",
    ]
    delays = dict.fromkeys(links, "5 us")
    return "\n".join([*head, *_links(delays, "10 Gbit/s"), *_flows(links, flows, FLOWS_PER_GROUP)])


def wan() -> str:
    """Return 100 nodes in a square, linked to near ones, and flows between random pairs."""
    draw = random.Random(2)
    at = [(draw.uniform(0, WAN_SIDE_KM), draw.uniform(0, WAN_SIDE_KM)) for _ in range(NODES)]

    def apart_km(a: int, b: int) -> float:
        return ((at[a][0] - at[b][0]) ** 2 + (at[a][1] - at[b][1]) ** 2) ** 0.5

    # The shortest tree over all nodes, then each node's two nearest.
    linked = {0}
    chosen: set[tuple[int, int]] = set()
    while len(linked) < NODES:
        pairs = ((a, b) for a in linked for b in range(NODES) if b not in linked)
        a, b = min(pairs, key=lambda pair: apart_km(*pair))
        linked.add(b)
        chosen.add((min(a, b), max(a, b)))
    for a in range(NODES):
        near = sorted((b for b in range(NODES) if b != a), key=lambda b: apart_km(a, b))
        chosen |= {(min(a, b), max(a, b)) for b in near[:3]}
    delays = {
        (f"n{a}", f"n{b}"): f"{max(apart_km(a, b) / FIBRE_KM_PER_MS, 0.5):.3f} ms"
        for a, b in sorted(chosen)
    }
    flows = []
    for number in range(WAN_GROUPS):
        a, b = draw.sample(range(NODES), 2)
        flows.append((f"f{number}", [f"n{a}", f"n{b}"], f"{draw.randrange(500)} ms"))
    head = [
        "# A wide-area network: 100 nodes in a square of 4,000 km, 1 Gbit/s, 600 flows.",
        "",
        'name = "100-node WAN"',
        'duration = "1500 ms"',
        'sample = "250 ms"',
        'protocol = "maxnet"',
        "",
    ]
    return "\n".join([*head, *_links(delays, "1 Gbit/s"), *_flows(None, flows, 2)])


def _links(delays: dict[tuple[str, str], str], rate: str) -> list[str]:
    lines = [
        f'  {{ name = "{a}-{b}", from = "{a}", to = "{b}", rate = "{rate}", delay = "{delay}" }},'
        for (a, b), delay in delays.items()
    ]
    return ["link = [", *lines, "]", ""]


def _flows(
    links: list[tuple[str, str]] | None, flows: list[tuple[str, list[str], str]], count: int
) -> list[str]:
    """Return the flows, with the links of their paths where `links` has them."""
    lines = []
    for name, nodes, start in flows:
        route = f'from = "{nodes[0]}", to = "{nodes[-1]}"'
        if links is not None:
            known = set(links)
            steps = [f"{a}-{b}" if (a, b) in known else f"{b}-{a}:rev" for a, b in pairwise(nodes)]
            route = "path = [" + ", ".join(f'"{step}"' for step in steps) + "]"
        lines.append(f'  {{ name = "{name}", {route}, count = {count}, start = "{start}" }},')
    return ["flow = [", *lines, "]", ""]


NETWORKS = {"fat-tree": fat_tree, "wan": wan}


def main() -> None:
    """Write both files."""
    OUT.mkdir(parents=True, exist_ok=True)
    for name, text in NETWORKS.items():
        (OUT / f"{name}.toml").write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
