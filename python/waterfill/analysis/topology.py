"""Positions of a network's nodes in a drawing. Equal networks have equal positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Points: TypeAlias = npt.NDArray[np.float64]


def layout(edges: Sequence[tuple[str, str]]) -> Mapping[str, Points]:
    """Return the position of each node in the order of the edges. Neighbours are about one apart.

    A chain is a line that its first edge follows to the right. Other networks get the layout of
    Kamada and Kawai, turned so that its longest extent lies across and the first node is on the
    left. Components lie side by side.
    """
    return _layout(tuple(edges))


@lru_cache(maxsize=64)
def _layout(edges: tuple[tuple[str, str], ...]) -> Mapping[str, Points]:
    import networkx as nx

    names = list(dict.fromkeys(node for edge in edges for node in edge))
    place = {name: i for i, name in enumerate(names)}
    graph: Any = nx.Graph()
    graph.add_nodes_from(range(len(names)))
    graph.add_edges_from((place[a], place[b]) for a, b in edges if a != b)
    where: Points = np.zeros((len(names), 2))
    right = 0.0
    for component in nx.connected_components(graph):
        members = sorted(component)
        mine = _component(graph.subgraph(members), members)
        mine -= mine.min(axis=0)
        where[members] = mine + np.array([right, 0.0])
        right += float(mine[:, 0].max()) + 1.0
    return dict(zip(names, where, strict=True))


def _component(graph: Any, members: Sequence[int]) -> Points:
    """Return the positions of a connected graph's nodes, in the order of `members`."""
    import networkx as nx

    degrees = [graph.degree(node) for node in members]
    row = {node: i for i, node in enumerate(members)}
    found: Points = np.zeros((len(members), 2))
    if max(degrees) <= 2 and degrees.count(1) in (0, 2) and len(members) > len(graph.edges):
        ends = [node for node, degree in zip(members, degrees, strict=True) if degree == 1]
        chain = nx.shortest_path(graph, *ends) if ends else members
        found[[row[node] for node in chain], 0] = np.arange(len(chain))
        second = min(graph.neighbors(members[0]), default=members[0])
        return found if found[0, 0] <= found[row[second], 0] else found * [-1.0, 1.0]
    # From a circle in the order of the file, so that the layout does not depend on hashing.
    settled = nx.kamada_kawai_layout(graph, pos=nx.circular_layout(members))
    found = np.array([settled[node] for node in members])
    found -= found.mean(axis=0)
    _, _, axes = np.linalg.svd(found, full_matrices=False)
    axes *= np.sign(axes[np.arange(2), np.abs(axes).argmax(axis=1)])[:, None]
    found = found @ axes.T
    if found[0, 0] > 0:
        found[:, 0] *= -1
    lengths = [np.hypot(*(found[row[a]] - found[row[b]])) for a, b in graph.edges]
    return found / max(1e-9, float(np.median(lengths)))


def rate_text(rate_bps: float) -> str:
    """Return a rate as text with its unit, such as `622 Mbit/s`."""
    for size, unit in ((1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if rate_bps >= size:
            return f"{rate_bps / size:.4g} {unit}"
    return f"{rate_bps:.4g} bit/s"
