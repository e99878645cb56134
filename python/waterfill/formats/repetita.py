"""Topologies (.graph) and demands (.demands) of Repetita.

`NODES N` and a line of headings come before `label x y` for each node, then `EDGES M` and
`label src dest weight bw delay` for each edge. Ends are numbers of nodes, from 0. An edge is one
direction of a link. A file of demands has `DEMANDS N` and `label src dest bw`; a demand goes from
source to destination. Rates are in kbit/s and delays in microseconds, unless --unit and
--delay-unit say otherwise: the networks of 2015 and Rocketfuel's have delays in ms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from waterfill.errors import shown
from waterfill.formats.layout import Layout, LinkPlan, names_of, oriented, renamed
from waterfill.formats.source import Source
from waterfill.formats.table import TableRow
from waterfill.scenario.units import RATE, TIME

UNIT_BPS = 1e3
DELAY_UNIT_S = 1e-6
# Below it no delay of a wide-area network is the longest: the unit is another.
_SHORT_S = 1e-3
_NODES = ("label", "x", "y")
_EDGES = ("label", "src", "dest", "weight", "bw", "delay")
_DEMANDS = ("label", "src", "dest", "bw")


def topology(path: Path, unit_bps: float, delay_unit_s: float) -> Layout:
    """Read the topology of a .graph file, with the units of rates and delays. Raises InputError."""
    source = Source.read(path)
    lines = _lines(source)
    labels = [words[0] for _, words in _section(source, lines, "NODES", _NODES)]
    hosts = names_of(labels)
    edges, loops = [], 0
    for number, words in _section(source, lines, "EDGES", _EDGES):
        a, b = _ends(source, number, words[1:3], len(hosts))
        rate_bps = source.number(number, "bw", words[4]) * unit_bps
        if rate_bps == 0:
            raise source.wrong(number, f"bw must be above zero, got {shown(words[4])}")
        late_s = source.number(number, "delay", words[5]) * delay_unit_s
        loops += a == b
        if a != b:
            edges.append(LinkPlan("", hosts[a], hosts[b], rate_bps, round(late_s, 15)))
    if rest := next(lines, None):
        raise source.wrong(rest[0], f"more lines than EDGES says, got {shown(' '.join(rest[1]))}")
    plans, directions = oriented(edges, one_way=True)
    names = names_of(f"{link.start}-{link.end}" for link in plans)
    links = [replace(link, name=name) for name, link in zip(names, plans, strict=True)]
    rate, delay = RATE.format(unit_bps), TIME.format(delay_unit_s)
    notes = [f"Rates are in units of {rate}, delays of {delay}.", *directions]
    longest_s = max((edge.delay_s for edge in edges), default=0.0)
    if longest_s < _SHORT_S:
        notes.append(f"The longest delay is {TIME.format(longest_s)}: is it in ms? --delay-unit.")
    notes += renamed(labels, hosts)
    if loops:
        notes.append(f"Left out: {loops} edges from a node to itself.")
    notes.append("Not used: places of nodes; weights, so routes are not those of the weights.")
    return Layout(path.stem, links, hosts, notes=notes)


def flows(path: Path, layout: Layout, unit_bps: float) -> list[TableRow]:
    """Read a .demands file as flows whose demands are in `unit_bps`. Raises InputError."""
    source = Source.read(path)
    lines = _lines(source)
    found, idle = [], 0
    for number, words in _section(source, lines, "DEMANDS", _DEMANDS):
        a, b = _ends(source, number, words[1:3], len(layout.hosts))
        demand_bps = source.number(number, "bw", words[3]) * unit_bps
        if a == b or demand_bps == 0:
            idle += 1
            continue
        ends = layout.hosts[a], layout.hosts[b]
        found.append(TableRow(number, ends, demand_bps=demand_bps))
    if rest := next(lines, None):
        got = shown(" ".join(rest[1]))
        raise source.wrong(rest[0], f"more lines than DEMANDS says, got {got}")
    if idle:
        layout.notes.append(f"Left out: {idle} demands of zero, or from a node to itself.")
    layout.notes.append(f"Demands are in units of {RATE.format(unit_bps)}.")
    return found


def _lines(source: Source) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(source.text.splitlines(), 1):
        if words := line.split():
            yield number, words


def _section(
    source: Source, lines: Iterator[tuple[int, list[str]]], title: str, columns: tuple[str, ...]
) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of a section after its title, its count and its headings."""
    number, words = next(lines, (1, []))
    if len(words) != 2 or words[0] != title:
        raise source.wrong(number, f"must be `{title} COUNT`, got {shown(' '.join(words))}")
    count = source.whole(number, f"the number of {title}", words[1])
    number, words = next(lines, (number, []))
    if tuple(words) != columns:
        raise source.wrong(number, f"must be `{' '.join(columns)}`, got {shown(' '.join(words))}")
    for index in range(count):
        number, words = next(lines, (number, []))
        if len(words) != len(columns):
            problem = f"no line {index + 1} of {count} in {title}; write `{' '.join(columns)}`"
            raise source.wrong(number, f"{problem}, got {shown(' '.join(words))}")
        yield number, words


def _ends(source: Source, line: int, words: list[str], nodes: int) -> tuple[int, int]:
    a, b = (source.whole(line, what, word) for what, word in zip(("src", "dest"), words,
                                                                 strict=True))  # fmt: skip
    if max(a, b) >= nodes:
        raise source.wrong(line, f"src and dest must be below {nodes}, got {a} and {b}")
    return a, b
