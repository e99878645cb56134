"""Maps of Rocketfuel: links with latencies or weights (.intra), and router-level maps (.cch).

A line of an .intra file is `FROM TO VALUE`, one direction of a link. In a file whose name has
`latencies`, the value is the delay in ms; in one with `weights`, an inferred weight, which is not
used. A line of a .cch map is `UID @LOCATION [+] [bb] (NEIGHBOURS) [&EXTERNAL] -> <UID> … {-EUID} …
=NAME rN`; a link is there in both directions, and lines that begin with `-` are routers of other
networks.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from waterfill.errors import shown
from waterfill.formats.layout import Layout, LinkPlan, names_of, oriented, renamed
from waterfill.formats.source import Source

_ROUTER = re.compile(r"([0-9]+)\s+@(\S*)\s*([^(]*)\(([0-9]+)\)([^>]*)->(.*)")
_INNER, _OUTER = re.compile(r"<([0-9]+)>"), re.compile(r"\{-[0-9]+\}")


def topology(path: Path, rate_bps: float, delay_s: float) -> Layout:
    """Read a map by its name's end. The defaults are for all links that lack a value.

    Raises InputError.
    """
    source = Source.read(path)
    if path.name.endswith(".cch"):
        return _routers(source, rate_bps, delay_s)
    if "latencies" in path.name or "weights" in path.name:
        return _links(source, rate_bps, delay_s)
    why = "the name must end in .cch or have latencies or weights in it, which says what is in it"
    raise source.wrong(None, f"{why}, got {shown(path.name)}")


def _links(source: Source, rate_bps: float, delay_s: float) -> Layout:
    has_delays = "latencies" in source.path.name
    what = "a latency" if has_delays else "a weight"
    edges: list[tuple[str, str, float]] = []
    labels: dict[str, None] = {}
    loops = 0
    for number, line in enumerate(source.text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 3:
            got = shown(" ".join(words))
            raise source.wrong(number, f"must be FROM TO and {what}, got {got}")
        value = source.number(number, what, words[2])
        labels.update(dict.fromkeys(words[:2]))
        loops += words[0] == words[1]
        if words[0] != words[1]:
            edges.append((words[0], words[1], value / 1e3 if has_delays else delay_s))
    if not edges:
        raise source.wrong(None, "no links between two nodes")
    names = dict(zip(labels, names_of(labels), strict=True))
    found = [LinkPlan("", names[a], names[b], rate_bps, late_s) for a, b, late_s in edges]
    plans, directions = oriented(found, one_way=True)
    notes = ["Rates: the default.", *directions]
    notes.append("Delays: latencies in ms." if has_delays else "Delays: the default.")
    if not has_delays:
        notes.append("Not used: weights, so routes are not those of the weights.")
    return _layout(source, plans, names, loops, notes)


def _routers(source: Source, rate_bps: float, delay_s: float) -> Layout:
    locations: dict[str, str] = {}
    links: dict[tuple[str, str], int] = {}
    others = outside = loops = 0
    for number, line in enumerate(source.text.splitlines(), 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        if text.startswith("-"):
            others += 1
            continue
        match = _ROUTER.match(text)
        if match is None:
            wanted = "`UID @LOCATION (NEIGHBOURS) -> <UID> … =NAME rN`"
            raise source.wrong(number, f"must be {wanted}, got {shown(text)}")
        uid, location, neighbours = match[1], match[2], _INNER.findall(match[6].partition("=")[0])
        if uid in locations:
            raise source.wrong(number, f"router {uid} is already defined")
        locations[uid] = location
        outside += len(_OUTER.findall(match[6]))
        for other in neighbours:
            loops += other == uid
            if other != uid:
                links.setdefault((min(uid, other), max(uid, other)), number)
    for (a, b), number in links.items():
        for uid in (a, b):
            if uid not in locations:
                raise source.wrong(number, f"no router {uid}, which a link names")
    if not links:
        raise source.wrong(None, "no links between two routers")
    labels = {uid: f"{location.strip(',+')}-{uid}" for uid, location in locations.items()}
    names = dict(zip(labels, names_of(labels.values()), strict=True))
    plans = [LinkPlan("", names[a], names[b], rate_bps, delay_s) for a, b in links]
    notes = ["A link is in both directions. Rates and delays: the default."]
    if others or outside:
        notes.append(f"Left out: {others} routers of other networks, {outside} links to them.")
    notes.append("Not used: addresses, backbone flags, distances r0, r1, … of routers.")
    return _layout(source, plans, names, loops, notes, changed=False)


def _layout(
    source: Source, plans: list[LinkPlan], names: dict[str, str], loops: int, notes: list[str],
    *, changed: bool = True,
) -> Layout:  # fmt: skip
    found = names_of(f"{link.start}-{link.end}" for link in plans)
    links = [replace(link, name=name) for name, link in zip(found, plans, strict=True)]
    if changed:
        notes += renamed(list(names), list(names.values()))
    if loops:
        notes.append(f"Left out: {loops} links from a node to itself.")
    return Layout(source.path.stem, links, list(names.values()), notes=notes)
