"""Fat-trees and leaf-spine networks of htsim (.topo), described tier by tier.

`Nodes N`, `Tiers 2` or `3`, `Podsize P`, then for each `Tier` from 0 (ToR) upwards:
`Downlink_speed_Gbps`, `Downlink_Latency_ns`, `Radix_Down`, `Radix_Up` (not at the top), and
optionally `Bundle` (parallel links below the tier), `Switch_Latency_ns`, `Oversubscribed` and queue
sizes. Keys are not case-sensitive. Speed and latency hold in both directions; a switch's latency is
added to each packet that enters it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from waterfill.errors import shown
from waterfill.formats.layout import Layout, LinkPlan
from waterfill.formats.source import Source

_HEAD = ("nodes", "tiers", "podsize")
_NEEDED = ("downlink_speed_gbps", "downlink_latency_ns", "radix_down")
_UNUSED = ("queue_up", "queue_down")
_KEYS = (*_NEEDED, "radix_up", "bundle", "switch_latency_ns", "oversubscribed", *_UNUSED)
_MAX_NODES = 65_536
_MAX_LINKS = 1_000_000


def topology(path: Path) -> Layout:
    """Read a .topo file. Raises InputError."""
    source = Source.read(path)
    head, tiers = _read(source)
    network = _checked(source, head, tiers)
    if network.links() > _MAX_LINKS:
        raise source.wrong(None, f"more than {_MAX_LINKS} links, got {network.links()}")
    notes = [
        f"{network.pods} pods of {network.tors} ToR and {network.aggs} upper switches, "
        f"{network.aggs * network.cores} core switches. Speeds and latencies hold in both "
        "directions; a switch's latency is that of packets that enter it.",
        "Flows take one of the shortest routes at random, by the seed.",
    ]
    if unused := sorted({key for tier in tiers for key in tier if key in _UNUSED}):
        notes.append(f"Not used: {', '.join(unused)}.")
    hosts = [f"h{n}" for n in range(head["nodes"])]
    layout = Layout(path.stem, network.plans(), hosts, notes=notes, duration_s=1.0)
    layout.own_route = network.route
    return layout


@dataclass(frozen=True)
class _Clos:
    """Sizes of a network of two or three tiers, and the values of each tier's links."""

    pods: int
    hosts: int
    """Hosts of a ToR switch."""
    tors: int
    """ToR switches of a pod."""
    aggs: int
    """Switches of the second tier in a pod; spines of a network of two tiers."""
    cores: int
    """Core switches above each of them, or 0."""
    bundles: tuple[int, ...]
    rates_bps: tuple[float, ...]
    delays_s: tuple[float, ...]
    switches_s: tuple[float, ...]

    def links(self) -> int:
        """Return the number of links."""
        upper = self.aggs * self.cores * self.bundles[2] if self.cores else 0
        within = self.tors * (self.hosts + self.aggs * self.bundles[1])
        return self.pods * (within + upper)

    def plans(self) -> list[LinkPlan]:
        """Return the links, from the hosts upwards."""
        found: list[LinkPlan] = []
        for pod in range(self.pods):
            for tor in range(pod * self.tors, (pod + 1) * self.tors):
                for host in range(tor * self.hosts, (tor + 1) * self.hosts):
                    found += self._bundle(0, f"h{host}", f"t{tor}")
                for agg in range(pod * self.aggs, (pod + 1) * self.aggs):
                    found += self._bundle(1, f"t{tor}", f"a{agg}")
            for place in range(self.aggs):
                for level in range(self.cores):
                    agg, core = pod * self.aggs + place, place + self.aggs * level
                    found += self._bundle(2, f"a{agg}", f"c{core}")
        return found

    def _bundle(self, tier: int, low: str, high: str) -> list[LinkPlan]:
        """Return the parallel links between two switches, or a host and its switch."""
        up_s = self.delays_s[tier] + self.switches_s[tier]
        down_s = self.delays_s[tier] + (self.switches_s[tier - 1] if tier else 0.0)
        return [
            LinkPlan(name, low, high, self.rates_bps[tier], up_s,
                     delay_reverse_s=None if up_s == down_s else down_s)
            for name in self._names(tier, low, high)
        ]  # fmt: skip

    def _names(self, tier: int, low: str, high: str) -> list[str]:
        bundle = self.bundles[tier]
        ends = f"{low}-{high}"
        return [ends] if bundle == 1 else [f"{ends}-{index}" for index in range(bundle)]

    def route(self, start: str, end: str, chance: random.Random) -> tuple[str, ...] | None:
        """Return a shortest route between two hosts, or None without one."""
        a, b = int(start[1:]), int(end[1:])
        tors = a // self.hosts, b // self.hosts
        pods = [tor // self.tors for tor in tors]

        def hop(tier: int, low: str, high: str) -> str:
            names = self._names(tier, low, high)
            return names[0] if len(names) == 1 else chance.choice(names)

        first, last = hop(0, start, f"t{tors[0]}"), hop(0, end, f"t{tors[1]}")
        if tors[0] == tors[1]:
            return first, last
        place = chance.randrange(self.aggs)
        aggs = [f"a{pod * self.aggs + place}" for pod in pods]
        across = [hop(1, f"t{tors[0]}", aggs[0]), hop(1, f"t{tors[1]}", aggs[1])]
        if pods[0] != pods[1]:
            core = f"c{place + self.aggs * chance.randrange(self.cores)}"
            across[1:1] = [hop(2, aggs[0], core), hop(2, aggs[1], core)]
        return first, *across, last


def _read(source: Source) -> tuple[dict[str, int], list[dict[str, int]]]:
    """Return the keys of the head and of each tier, all of them whole numbers."""
    head: dict[str, int] = {}
    tiers: dict[int, dict[str, int]] = {}
    current = head
    for number, line in enumerate(source.text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        key = words[0].lower()
        if len(words) != 2:
            raise source.wrong(number, f"must be KEY and a number, got {shown(' '.join(words))}")
        known = ("tier", *(_HEAD if current is head else _KEYS))
        if key not in known:
            wanted = ", ".join(known)
            raise source.wrong(number, f"unknown key {shown(words[0])}; known: {wanted}")
        value = source.whole(
            number, key, words[1], 0 if key in ("tier", "switch_latency_ns") else 1
        )
        if key == "tier":
            if value in tiers or value > 2:
                raise source.wrong(number, f"tier must be 0, 1 or 2, each once, got {value}")
            current = tiers.setdefault(value, {})
            continue
        if key in current:
            raise source.wrong(number, f"{key} is already set")
        current[key] = value
    for key in _HEAD:
        if key not in head:
            raise source.wrong(None, f"no {key} before the first tier; add `{key.title()} N`")
    if head["tiers"] not in (2, 3) or sorted(tiers) != list(range(head["tiers"])):
        got = f"{head['tiers']} with sections {', '.join(map(str, sorted(tiers))) or 'none'}"
        raise source.wrong(None, f"tiers must be 2 or 3, each with a section `Tier N`, got {got}")
    return head, [tiers[tier] for tier in sorted(tiers)]


def _checked(source: Source, head: dict[str, int], tiers: list[dict[str, int]]) -> _Clos:
    """Return the network's sizes. Raises InputError if radixes and sizes contradict each other."""
    for index, tier in enumerate(tiers):
        top = index == len(tiers) - 1
        for key in (*_NEEDED, *(() if top else ("radix_up",))):
            if key not in tier:
                raise source.wrong(None, f"tier {index} has no {key}")
        if top and "radix_up" in tier:
            got = f"got {tier['radix_up']}"
            raise source.wrong(None, f"tier {index} is the top and must not have radix_up, {got}")
    nodes, size = head["nodes"], head["podsize"]
    if nodes > _MAX_NODES:
        raise source.wrong(None, f"more than {_MAX_NODES} nodes, got {nodes}")
    bundles = tuple(tier.get("bundle", 1) for tier in tiers)
    if bundles[0] != 1:
        raise source.wrong(None, f"bundle of tier 0 must be 1, got {bundles[0]}")

    def ratio(whole: int, part: int, what: str) -> int:
        if whole % part:
            raise source.wrong(None, f"{what} must be a multiple of {part}, got {whole}")
        return whole // part

    if len(tiers) == 2 and size != nodes:
        why = f"podsize must be {nodes}, all nodes, without a core tier"
        raise source.wrong(None, f"{why}, got {size}")
    pods = ratio(nodes, size, "nodes")
    hosts = tiers[0]["radix_down"]
    tors = ratio(size, hosts, "podsize")
    aggs = ratio(tiers[0]["radix_up"], bundles[1], "radix_up of tier 0")
    cores = ratio(tiers[1]["radix_up"], bundles[2], "radix_up of tier 1") if tiers[2:] else 0
    below = [(1, tors * bundles[1])] + ([(2, pods * bundles[2])] if cores else [])
    for index, ports in below:
        if tiers[index]["radix_down"] != ports:
            why = (
                f"radix_down of tier {index} must be {ports}, the links below each of its switches"
            )
            raise source.wrong(None, f"{why}, got {tiers[index]['radix_down']}")
    for index, tier in enumerate(tiers[:-1]):
        down = tier["radix_down"] * tier["downlink_speed_gbps"]
        up = tier["radix_up"] * tiers[index + 1]["downlink_speed_gbps"]
        if "oversubscribed" in tier and down != tier["oversubscribed"] * up:
            got = f"got {tier['oversubscribed']} with {down} Gbit/s down and {up} Gbit/s up"
            raise source.wrong(None, f"oversubscribed of tier {index} must be down / up, {got}")
    return _Clos(
        pods, hosts, tors, aggs, cores, bundles,
        tuple(1e9 * tier["downlink_speed_gbps"] for tier in tiers),
        tuple(round(tier["downlink_latency_ns"] * 1e-9, 15) for tier in tiers),
        tuple(round(tier.get("switch_latency_ns", 0) * 1e-9, 15) for tier in tiers),
    )  # fmt: skip
