"""Collective operations: the keys of `[[collective]]` and the flows that they stand for.

A message between two hosts is a flow. A host begins a step when all that it sent and received in
the step before has arrived.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from waterfill.scenario.table import Name, Table
from waterfill.scenario.units import PACKETS, TIME, VOLUME, packets, whole

MAX_MESSAGES = 200_000


class Collective(Table):
    """One [[collective]]: an operation in which hosts combine or exchange data, step by step.

    Each message is a flow NAME-STEP-FROM-TO, with a tree's chunks NAME-STEP-FROM-TO-CHUNK.
    """

    name: Name
    """Name of the operation, with which the names of its flows begin."""
    kind: Literal["all-reduce", "all-to-all"]
    """all-reduce: each host gets the sum of all hosts' data. all-to-all: each host sends an equal
    part of its data to each host."""
    algorithm: Literal["ring", "halving-doubling", "tree"] | None = None
    """Messages of an all-reduce; default: ring. ring: in 2·(N - 1) steps each host sends a part of
    1/N to the next. halving-doubling: N is a power of two, and a host exchanges parts with hosts
    at distances of N/2 to 1 and back. tree: up a binary tree and down again."""
    hosts: Annotated[list[str], Field(min_length=2)] | None = None
    """Hosts in the order of the algorithm; default: the nodes with links to one other node only,
    or all where none is like that, in the order of the links."""
    size: Annotated[float, replace(VOLUME, zero=False, whole=True)]
    """Data of each host (bytes); in an all-to-all a host keeps its own part."""
    chunks: Annotated[int, Field(ge=1), BeforeValidator(lambda v: whole(v, minimum=1))] = 1
    """Parts into which a tree divides the data: a host passes on one part while it receives the
    next."""
    start: Annotated[float, TIME] = 0.0
    """Start of the operation (s)."""
    protocol: str | None = None
    """Protocol of the flows; default: the scenario's."""
    initial_window: Annotated[int, BeforeValidator(packets), PACKETS.described()] | None = None
    """Initial window of the flows (packets); default: as for flows."""
    connections: Literal["new", "open"] = "new"
    """new: each message is a flow that starts anew. open: the messages of a host to another use one
    connection, which keeps its law's state and RTTs."""

    @property
    def members(self) -> Sequence[str]:
        """The hosts, which loading has filled in."""
        return self.hosts or ()

    @property
    def bus_factor(self) -> float:
        """What a host has to send at least, as a multiple of `size`, whatever the algorithm.

        Divided by the completion time it is the bus bandwidth, as benchmarks of collectives
        report it.
        """
        share = 1 - 1 / len(self.members)
        return 2 * share if self.kind == "all-reduce" else share


class Message(NamedTuple):
    """A message of a collective: `after` counts the messages that its sender waits for."""

    step: int
    source: str
    target: str
    size_bytes: int
    after: tuple[int, ...] = ()
    chunk: int = 0


def fault_of(collective: Collective) -> tuple[str, str] | None:
    """Return the first key that does not fit the others, with the problem, or None."""
    hosts, size = collective.members, int(collective.size)
    count = len(hosts)
    if collective.kind != "all-reduce" and collective.algorithm is not None:
        why = f'must not be there for an {collective.kind}, got "{collective.algorithm}"'
        return "algorithm", why
    if collective.chunks > 1 and collective.algorithm != "tree":
        return "chunks", f'must be 1 unless algorithm = "tree", got {collective.chunks}'
    if len(set(hosts)) < count or count < 2:
        twice = next((host for host in hosts if list(hosts).count(host) > 1), None)
        got = f"got {twice} twice" if twice else f"got {count}"
        return "hosts", f"must be two or more different nodes, {got}"
    if collective.algorithm == "halving-doubling" and count & (count - 1):
        return "hosts", f"must be 2, 4, 8 … for halving-doubling, got {count}"
    if size < count * collective.chunks:
        return "size", f"must be a byte for each host and chunk, got {VOLUME.format(size)}"
    number = _number(collective)
    if number > MAX_MESSAGES:
        key = "chunks" if collective.chunks > 1 else "hosts"
        return key, f"must give at most {MAX_MESSAGES} messages, got {number}"
    return None


def _number(collective: Collective) -> int:
    """Return the number of messages of a collective."""
    n = len(collective.members)
    rules = {
        "ring": 2 * n * (n - 1),
        "halving-doubling": 2 * n * (n.bit_length() - 1),
        "tree": 2 * (n - 1) * collective.chunks,
    }
    return n * (n - 1) if collective.kind == "all-to-all" else rules[collective.algorithm or "ring"]


def messages(collective: Collective) -> list[Message]:
    """Return the messages of a collective. `fault_of` has found none."""
    hosts, size = collective.members, int(collective.size)
    if collective.kind == "all-to-all":
        return _all_to_all(hosts, size)
    if collective.algorithm == "tree":
        return _tree(hosts, size, collective.chunks)
    return _ALL_REDUCE[collective.algorithm or "ring"](hosts, size)


def flow_name(collective: Collective, message: Message) -> str:
    """Return the name of a message's flow."""
    chunk = f"-{message.chunk}" if collective.chunks > 1 else ""
    return f"{collective.name}-{message.step}-{message.source}-{message.target}{chunk}"


def entries(collective: Collective) -> Iterator[dict[str, Any]]:
    """Yield the flows of a collective as the [[flow]] tables of a scenario."""
    found = messages(collective)
    names = [flow_name(collective, message) for message in found]
    last: dict[tuple[str, str], int] = {}
    for index, (name, message) in enumerate(zip(names, found, strict=True)):
        ends = (message.source, message.target)
        before = last.get(ends) if collective.connections == "open" else None
        last[ends] = index
        flow: dict[str, Any] = {
            "name": name, "from": message.source, "to": message.target,
            "size": f"{message.size_bytes} B",
        }  # fmt: skip
        if before is not None:
            # The earlier message has completed in any case: this one's sender has waited for it.
            flow["continues"] = names[before]
        if message.after:
            waits = dict.fromkeys((*message.after, *(() if before is None else (before,))))
            flow["after"] = [names[one] for one in waits]
        else:
            flow["start"] = TIME.format(collective.start)
        for key in ("protocol", *(("initial_window",) if before is None else ())):
            if (value := getattr(collective, key)) is not None:
                flow[key] = value
        yield flow


def _parts(size: int, count: int) -> list[int]:
    """Return the sizes of `count` parts that differ by one byte at most."""
    return [(i + 1) * size // count - i * size // count for i in range(count)]


def _ring(hosts: Sequence[str], size: int) -> list[Message]:
    """In step k host i sends part i − k to the next host, which it has received in step k − 1.

    After N − 1 steps each host has the sum of one part; in as many further steps they go around.
    """
    n = len(hosts)
    parts = _parts(size, n)
    found = []
    for step in range(2 * (n - 1)):
        for i, host in enumerate(hosts):
            before = (step - 1) * n
            after = (before + (i - 1) % n, before + i) if step else ()
            part = parts[(i - step) % n]
            found.append(Message(step, host, hosts[(i + 1) % n], part, after))
    return found


def _halving_doubling(hosts: Sequence[str], size: int) -> list[Message]:
    """Partners at a distance of N/2, N/4 … 1 send each other the half that the other keeps; then
    the sums go back the same way (recursive halving and doubling).
    """
    n = len(hosts)
    span = {i: (0, size) for i in range(n)}  # the bytes that a host still adds up, or has
    distances = [n >> level for level in range(1, n.bit_length())]
    found: list[Message] = []
    received: dict[int, int] = {}

    def exchange(step: int, distance: int, sent: Mapping[int, int]) -> None:
        first = len(found)
        for i in range(n):
            after = (received[i], first - n + i) if step else ()
            found.append(Message(step, hosts[i], hosts[i ^ distance], sent[i], after))
        received.update({i ^ distance: first + i for i in range(n)})

    kept: list[dict[int, tuple[int, int]]] = []
    for step, distance in enumerate(distances):
        kept.append(dict(span))
        sent = {}
        for i, (low, high) in span.items():
            middle = (low + high) // 2
            halves = ((low, middle), (middle, high))
            upper = bool(i & distance)
            span[i] = halves[upper]
            sent[i] = halves[not upper][1] - halves[not upper][0]
        exchange(step, distance, sent)
    for step, distance in enumerate(reversed(distances), start=len(distances)):
        exchange(step, distance, {i: high - low for i, (low, high) in span.items()})
        span = kept.pop()
    return found


def _tree(hosts: Sequence[str], size: int, chunks: int) -> list[Message]:
    """Host i's parent is host (i − 1)/2. A chunk goes up once all children have sent it, and down
    once the parent has; a link between two hosts carries the chunks in order.
    """
    n = len(hosts)
    deepest = _depth(n - 1)
    found: list[Message] = []
    ups: dict[tuple[int, int], int] = {}
    downs: dict[tuple[int, int], int] = {}
    for chunk, part in enumerate(_parts(size, chunks)):
        for i in range(n - 1, 0, -1):
            waits = [ups[child, chunk] for child in (2 * i + 1, 2 * i + 2) if child < n]
            waits += [ups[i, chunk - 1]] if chunk else []
            ups[i, chunk] = len(found)
            step, parent = deepest - _depth(i), hosts[(i - 1) // 2]
            found.append(Message(step, hosts[i], parent, part, tuple(waits), chunk))
        for i in range(1, n):
            parent_index = (i - 1) // 2
            waits = [downs[parent_index, chunk]] if parent_index else [
                ups[child, chunk] for child in (1, 2) if child < n
            ]  # fmt: skip
            waits += [downs[i, chunk - 1]] if chunk else []
            downs[i, chunk] = len(found)
            step = deepest + _depth(i) - 1
            found.append(Message(step, hosts[parent_index], hosts[i], part, tuple(waits), chunk))
    return found


def _depth(i: int) -> int:
    return int(math.log2(i + 1))


def _all_to_all(hosts: Sequence[str], size: int) -> list[Message]:
    """Each host sends each other host its part at once, the next host's first."""
    n = len(hosts)
    parts = _parts(size, n)
    return [
        Message(0, host, hosts[(i + k) % n], parts[(i + k) % n])
        for k in range(1, n)
        for i, host in enumerate(hosts)
    ]


_ALL_REDUCE: Mapping[str, Callable[[Sequence[str], int], list[Message]]] = {
    "ring": _ring,
    "halving-doubling": _halving_doubling,
}
