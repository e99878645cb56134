"""Check the theorem of s-PERC on real networks: max-min fair within 6·N rounds.

N is the number of iterations of 2-Waterfilling (`waterfill.theory.sperc`). The networks are those
of the study of topologies, with capacities and flows drawn by chance. The order in which packets
visit links is drawn anew in each round. The max-min rates are those of `waterfill.network.maxmin`.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import NamedTuple

import networkx as nx

from validation.study import Need, Option, Options, Study, only
from validation.tables import markdown
from validation.topologies import cases as networks
from waterfill.formats.graph import Defaults, topohub
from waterfill.network import maxmin
from waterfill.theory import sperc

FLOWS = 40
"""Flows of a set, between different hosts; two sets in three have a third or a tenth as many."""
CAPACITIES = (1.0, 2.5, 4.0, 10.0, 40.0)
EXTRA_ROUNDS = 20
"""Rounds after the bound in which a wrong allocation would still be noticed."""


class TheoremCase(NamedTuple):
    """Sets of flows on one network."""

    network: str
    sets: int


class TheoremRow(NamedTuple):
    """Results of a network's sets: the largest number of iterations N, the largest number of rounds
    until all rates are exact, the largest ratio of rounds to 6·N, and the number of sets above 1.
    """

    links: int
    sets: int
    iterations: int
    levels: int
    rounds: int
    ratio: float
    above: int
    above_without_max: int
    wrong_without_max: int


def cases(options: Options) -> list[TheoremCase]:
    """Return a case for each network."""
    found = [name for group in networks.GROUPS for name in networks.names(group)]
    return [TheoremCase(name, options.sets) for name in found]


def graph(name: str) -> nx.Graph:
    """Return a network as a graph of hosts."""
    layout, _ = topohub(name, Defaults(rate_bps=1e9, delay_s=1e-3))
    found = nx.Graph()
    found.add_edges_from((link.start, link.end) for link in layout.links)
    return found


def flows(network: nx.Graph, random: Random) -> tuple[list[float], list[list[int]]]:
    """Return the capacities of all directed links, and the paths of flows as link indexes."""
    ways = [way for a, b in sorted(network.edges) for way in ((a, b), (b, a))]
    index = {way: i for i, way in enumerate(ways)}
    capacities = [random.choice(CAPACITIES) for _ in ways]
    hosts = sorted(network.nodes)
    paths: list[list[int]] = []
    for _ in range(max(1, FLOWS // random.choice((1, 3, 10)))):
        start, end = random.sample(hosts, 2)
        if nx.has_path(network, start, end):
            nodes = nx.shortest_path(network, start, end)
            paths.append([index[way] for way in pairwise(nodes)])
    return capacities, paths


def exact(capacities: Sequence[float], paths: Sequence[Sequence[int]]) -> list[float]:
    """Return the max-min fair rates by the solver of scenarios."""
    classes = [maxmin.FlowClass(tuple(path), 1.0, float("inf")) for path in paths]
    shares = maxmin.solve(capacities, classes, [1] * len(classes))
    return [0.0 if share is None else share.rate_bps for share in shares]


def measure(case: TheoremCase) -> TheoremRow:
    """Run all sets of a network."""
    network = graph(case.network)
    row = TheoremRow(2 * network.number_of_edges(), 0, 0, 0, 0, 0.0, 0, 0, 0)
    for i in range(case.sets):
        random = Random(zlib.crc32(f"{case.network} {i}".encode()))
        capacities, paths = flows(network, random)
        if not paths:
            continue
        shares = exact(capacities, paths)
        iterations, rates = sperc.two_waterfilling(capacities, paths)
        assert all(abs(a / b - 1) < 1e-9 for a, b in zip(rates, shares, strict=True))
        bound = sperc.BOUND * iterations
        most = bound + EXTRA_ROUNDS
        with_max = sperc.run(capacities, paths, shares, random, most)
        without = sperc.run(capacities, paths, shares, random, most, tracks_max=False)
        rounds = with_max.exact_after
        took = most if rounds is None else rounds
        row = TheoremRow(
            row.links,
            row.sets + 1,
            max(row.iterations, iterations),
            max(row.levels, len({round(share, 9) for share in shares})),
            max(row.rounds, took),
            max(row.ratio, took / bound),
            row.above + (took > bound),
            row.above_without_max + (without.exact_after is None or without.exact_after > bound),
            row.wrong_without_max + (without.exact_after is None),
        )
    return row


HEAD = "networks:|sets:|N:|levels:|rounds:|rounds/6N:|above:|without MaxE: above:|never:"


def table(found: Mapping[TheoremCase, TheoremRow]) -> str:
    """Return the totals and maxima of all networks."""
    rows = list(found.values())
    totals = [sum(row.sets for row in rows)]
    maxima = [max(row[i] for row in rows) for i in (2, 3, 4)]
    counts = [sum(row[i] for row in rows) for i in (6, 7, 8)]
    ratio = f"{max(row.ratio for row in rows):.2f}"
    cells = [len(rows), *totals, *maxima, ratio, *counts]
    return markdown(HEAD, [[str(cell) for cell in cells]])


def failed(found: Mapping[TheoremCase, TheoremRow]) -> list[str]:
    """Return the networks with a set above the bound."""
    above = {case.network: row for case, row in found.items() if row.above}
    return [f"{name}: {row.above} of {row.sets}" for name, row in above.items()]


STUDY = Study(
    shows="s-PERC is max-min fair within 6·N rounds on 229 real networks × 100 sets of flows",
    minutes=20,
    needs=(Need("topohub", lambda: None if networks.names("topozoo") else "the package topohub"),),
    options=(Option("--sets", 100, "sets of flows per network"), only("topozoo/A*")),
    quick={"sets": 5, "only": "topozoo/A*"},
    cases=cases,
    measure=measure,
    row=TheoremRow,
    line=lambda case, row: f"{case.network}: {row.rounds} rounds, {row.ratio:.2f} of 6·N",
    table=table,
    failed=failed,
)
