"""Topology and flow files of HPCC's simulator and of ns-3-alibabacloud.

HPCC's topology: `nodes switches links`, the switches' numbers, then `a b rate delay error-rate` for
each link. Alibaba's begins with `nodes GPUs-per-server NVSwitches switches links GPU-type`, and
PowerTCP's with `nodes switches ToR-switches links`, perhaps with two capacities after that. The
flow file: the number of flows, then `source sink priority port bytes start` each; HPCC ignores what
follows the last flow.

A link is full duplex: its rate and delay hold in both directions, and its error rate is that of
packets at the receivers of both (`ReceiveErrorModel` of both devices, `ERROR_UNIT_PACKET`, in the
simulator's `third.cc`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path

from waterfill.errors import shown
from waterfill.formats.layout import Layout, LinkPlan
from waterfill.formats.source import Source
from waterfill.formats.table import TableRow

_HPCC = ("nodes", "switches", "links")
_ALIBABA = ("nodes", "GPUs per server", "NVSwitches", "switches", "links")
_POWERTCP = ("nodes", "switches", "ToR switches", "links")
# As ns-3's DataRate and Time: without a unit in bit/s and seconds.
_RATE = re.compile(r"([0-9.]+)\s*(?:([kMGT]?)(bps|b/s|Bps|B/s))?")
_DELAY = re.compile(r"\+?([0-9.eE+-]+?)(ns|us|ms|s)?")
# Beyond any network that these simulators run; every node gets a name.
_MAX_NODES = 1_000_000
_PREFIX = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12}
_UNIT = {"s": 0, "ms": -3, "us": -6, "ns": -9}


def topology(path: Path) -> Layout:
    """Read a topology file of any of the three kinds. Raises InputError."""
    source = Source.read(path)
    lines = _lines(source)
    number, head = next(lines, (1, []))
    if len(head) == 4 or (len(head) == 6 and head[5][0].isdigit()):
        # The switches include those at the top of racks.
        nodes, switches, _, links = _counts(source, number, _POWERTCP, head[:4])
    elif len(head) >= 6:
        nodes, _, inner, outer, links = _counts(source, number, _ALIBABA, head[:5])
        switches = inner + outer
    elif len(head) == 3:
        nodes, switches, links = _counts(source, number, _HPCC, head)
    else:
        problem = "must be `nodes switches links`, or the words of Alibaba's or PowerTCP's form"
        raise source.wrong(number, problem)
    if nodes > _MAX_NODES:
        raise source.wrong(number, f"more than {_MAX_NODES} nodes, got {nodes}")
    numbers: list[int] = []
    while len(numbers) < switches:
        number, words = next(lines, (number, []))
        if not words:
            raise source.wrong(number, f"must name {switches} switches, got {len(numbers)}")
        numbers += [source.whole(number, "a switch", word) for word in words]
        if max(numbers) >= nodes or len(set(numbers)) < len(numbers):
            problem = f"switches must be different nodes below {nodes}"
            raise source.wrong(number, f"{problem}, got {shown(' '.join(words))}")
    is_switch = set(numbers)
    plans = []
    for index in range(links):
        number, words = next(lines, (number, []))
        if len(words) < 4:
            wanted = "`a b rate delay error-rate`"
            raise source.wrong(number, f"no link {index + 1} of {links}; write {wanted}")
        a, b = (source.whole(number, "a node", word) for word in words[:2])
        if max(a, b) >= nodes or a == b:
            raise source.wrong(number, f"must be two nodes below {nodes}, got {a} and {b}")
        if len(words) > 5:
            wanted = "`a b rate delay error-rate`"
            raise source.wrong(number, f"must be {wanted}, got {len(words)} words")
        loss = source.number(number, "an error rate", words[4]) if len(words) > 4 else 0.0
        if loss > 1:
            raise source.wrong(number, f"an error rate must be at most 1, got {shown(words[4])}")
        plans.append(
            LinkPlan(f"link{index}", f"n{a}", f"n{b}", _rate_bps(source, number, words[2]),
                     _delay_s(source, number, words[3]), loss, loss_reverse=loss)
        )  # fmt: skip
    hosts = [f"n{node}" for node in range(nodes) if node not in is_switch]
    notes = ["Nodes n0, n1, … have the file's numbers. Rates, delays and error rates hold in both "
             "directions; error rates are losses of packets."]  # fmt: skip
    if len(head) > 3:
        unused = head[2:3] + head[4:] if head[-1][0].isdigit() else head[1:2] + head[5:]
        notes.append(f"Not used of the first line: {' '.join(unused)}.")
    if rest := sum(1 for _ in lines):
        notes.append(f"Not used: {rest} lines after the last link.")
    return Layout(path.stem, plans, hosts, notes=notes, duration_s=1.0, packet_bytes=1000)


def flows(path: Path, layout: Layout) -> list[TableRow]:
    """Read the ends, start and size of each flow in a flow file; raise InputError if the file is
    invalid.
    """
    source = Source.read(path)
    lines = _lines(source)
    number, head = next(lines, (1, []))
    count = source.whole(number, "the number of flows (an HPCC list)", " ".join(head))
    hosts, found = set(layout.hosts), []
    for index in range(count):
        number, words = next(lines, (number, []))
        if len(words) != 6:
            wanted = "`source sink priority port bytes start`"
            raise source.wrong(number, f"no flow {index + 1} of {count}; write {wanted}")
        ends = [f"n{source.whole(number, 'a host', word)}" for word in words[:2]]
        for end in ends:
            if end not in hosts:
                raise source.wrong(number, f"the topology has no host {end[1:]}")
        if ends[0] == ends[1]:
            raise source.wrong(number, f"must be two hosts, got {words[0]} twice")
        size = source.whole(number, "a size in bytes", words[4], 1)
        start_s = source.number(number, "a start", words[5])
        found.append(TableRow(number, (ends[0], ends[1]), start_s, size))
    if found:
        layout.notes.append("Not used of the flows: priorities and ports.")
    if rest := sum(1 for _ in lines):
        layout.notes.append(f"Not used: {rest} lines after the last flow.")
    return found


def _counts(source: Source, line: int, what: Sequence[str], words: Sequence[str]) -> list[int]:
    return [source.whole(line, f"the number of {name}", word)
            for name, word in zip(what, words, strict=True)]  # fmt: skip


def _lines(source: Source) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(source.text.splitlines(), 1):
        words = line.split()
        if words:
            yield number, words


def _rate_bps(source: Source, line: int, text: str) -> float:
    match = _RATE.fullmatch(text)
    if match is None:
        raise source.wrong(line, f"must be a rate such as 100Gbps, got {shown(text)}")
    bits = 8 if (match[3] or "").startswith("B") else 1
    rate_bps = _scaled(source, line, "a rate", match[1], _PREFIX[match[2] or ""]) * bits
    if rate_bps == 0:
        raise source.wrong(line, f"the rate must be above zero, got {shown(text)}")
    return rate_bps


def _delay_s(source: Source, line: int, text: str) -> float:
    match = _DELAY.fullmatch(text)
    if match is None:
        raise source.wrong(line, f"must be a delay such as 1us, got {shown(text)}")
    return _scaled(source, line, "a delay", match[1], _UNIT[match[2] or "s"])


def _scaled(source: Source, line: int, what: str, text: str, exponent: int) -> float:
    """Return a number times a power of ten: the float nearest to it, so that 1000ns is 1 us."""
    source.number(line, what, text)
    return float(Decimal(text).scaleb(exponent))
