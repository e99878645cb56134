"""Connection matrices of htsim (.cm), on a fat-tree built by rule or on a network of a .topo file.

`Nodes N`, `Connections M`, then `SOURCE->SINK [id I] start PS size BYTES [prio P]` for each; times
are picoseconds, and a connection sends from SOURCE to SINK. With `trigger T` in place of a start, a
connection starts when trigger T fires. `send_done_trigger T` and `recv_done_trigger T` activate a
trigger when the sender has all acknowledgements, or the receiver all data. `trigger id T oneshot`
fires at its one activation, `trigger id T barrier count N` at its last of N, and both start all
their connections. `trigger id T multishot` starts one connection at each activation, in the order
of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from waterfill.errors import shown
from waterfill.formats.source import Source
from waterfill.formats.table import TableRow

_IGNORED = ("id", "prio")
_DONE = ("send_done_trigger", "recv_done_trigger")
_KEYS = ("start", "size", "trigger", *_DONE, *_IGNORED)
_KINDS = ("oneshot", "barrier", "multishot")
_ANY = ", ".join(_KINDS)
_WANTED = "write `start PS size BYTES`"


@dataclass
class _Triggers:
    """Triggers of a matrix: their kinds, and the rows that activate them."""

    kinds: dict[str, tuple[int, str, int]] = field(default_factory=dict)
    """Line, kind and count of each trigger."""
    activated_by: dict[str, list[int]] = field(default_factory=dict)
    keys: dict[str, dict[str, None]] = field(default_factory=dict)
    """Keys with which connections activate each trigger."""
    acknowledged: set[tuple[str, int]] = field(default_factory=set)
    """Triggers and rows that activate them when the sender has all acknowledgements."""
    targets: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Line and trigger of each row that a trigger starts."""


def read(path: Path) -> tuple[int, list[TableRow], list[str]]:
    """Return the number of hosts, the flows, and the keys of connections that are not used.

    Raises InputError.
    """
    source = Source.read(path)
    nodes = connections = triggers = None
    found: list[TableRow] = []
    unused: dict[str, None] = {}
    heads: set[str] = set()
    known = _Triggers()
    for number, line in enumerate(source.text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] in ("Nodes", "Connections", "Triggers") and len(words) == 2:
            if words[0] in heads:
                raise source.wrong(number, f"{words[0]} is already given")
            heads.add(words[0])
            count = source.whole(number, f"the number of {words[0].lower()}", words[1])
            if words[0] == "Nodes":
                nodes = count
            elif words[0] == "Connections":
                connections = count
            else:
                triggers = count
        elif words[0] == "Failures":
            if source.whole(number, "failures", words[-1]):
                raise source.wrong(number, f"failures are not supported, got {words[-1]}")
        elif words[0] == "trigger":
            _trigger(source, number, words[1:], known)
        elif "->" in words[0]:
            if nodes is None:
                raise source.wrong(number, "`Nodes N` must come before the first connection")
            found.append(_connection(source, number, words, nodes, unused, len(found), known))
        else:
            raise source.wrong(number, f"must be SOURCE->SINK, got {shown(words[0])}")
    if nodes is None or connections is None:
        raise source.wrong(None, "no `Nodes N` and `Connections M`")
    if connections != len(found):
        raise source.wrong(None, f"must have {connections} connections, got {len(found)}")
    if triggers is not None and triggers != len(known.kinds):
        raise source.wrong(None, f"must have {triggers} triggers, got {len(known.kinds)}")
    rows = _in_order(source, found, known)
    awaited = {name for _, name in known.targets.values()}
    for name, keys in known.keys.items():
        unused.update({} if name in awaited else keys)
    return nodes, rows, list(unused)


def _connection(
    source: Source, line: int, words: list[str], nodes: int, unused: dict[str, None],
    index: int, known: _Triggers,
) -> TableRow:  # fmt: skip
    start, _, end = words[0].partition("->")
    a, b = source.whole(line, "a source", start), source.whole(line, "a sink", end)
    if max(a, b) >= nodes or a == b:
        raise source.wrong(line, f"must be two different nodes below {nodes}, got {words[0]}")
    values: dict[str, str] = {}
    rest = iter(words[1:])
    for key in rest:
        if key not in _KEYS:
            raise source.wrong(line, f"{shown(key)} is not supported; {_WANTED}")
        value = next(rest, None)
        if value is None:
            raise source.wrong(line, f"no value of {key}")
        if key in values:
            got = f"got {shown(values[key])} and {shown(value)}"
            raise source.wrong(line, f"{key} is given twice, {got}")
        values[key] = value
    unused.update(dict.fromkeys(key for key in values if key in _IGNORED))
    if ("start" in values) == ("trigger" in values):
        got = "both" if "start" in values else "neither"
        wanted = "start PS in picoseconds, or trigger ID"
        raise source.wrong(line, f"must have one of {wanted}, got {got}")
    size = source.whole(line, "a size in bytes", values.get("size", "0"))
    for key in _DONE:
        if key in values:
            if size == 0:
                raise source.wrong(line, f"{key} needs a size above zero, because others wait")
            known.keys.setdefault(values[key], {})[key] = None
            known.activated_by.setdefault(values[key], []).append(index)
            if key == "send_done_trigger":
                known.acknowledged.add((values[key], index))
    start_s = 0.0
    if "trigger" in values:
        known.targets[index] = line, values["trigger"]
    else:
        start_s = source.number(line, "a start", values["start"]) / 1e12
    # Its generators write 0 for a connection without an end.
    return TableRow(line, (f"h{a}", f"h{b}"), start_s, size or None)


def _trigger(source: Source, line: int, words: list[str], known: _Triggers) -> None:
    """Read the kind of a trigger."""
    name, kind, count = "", "", 1
    rest = iter(words)
    for word in rest:
        if word == "id":
            name = next(rest, "")
        elif word == "count":
            count = source.whole(line, "a count", next(rest, ""), 1)
        elif word in _KINDS and not kind:
            kind = word
        else:
            raise source.wrong(line, f"must be `id N` and one of {_ANY}, got {shown(word)}")
    if not name or not kind:
        got = shown(" ".join(words))
        raise source.wrong(line, f"a trigger needs an id and one of {_ANY}, got {got}")
    if name in known.kinds:
        raise source.wrong(line, f"trigger {name} is already defined")
    known.kinds[name] = line, kind, count


def _in_order(source: Source, rows: list[TableRow], known: _Triggers) -> list[TableRow]:
    """Return the rows with those after which each starts. Raises InputError."""
    for name, (line, kind, count) in known.kinds.items():
        by = len(known.activated_by.get(name, ()))
        needed = count if kind == "barrier" else 1
        if by != needed and kind != "multishot":
            why = f"trigger {name} must have {needed} activations, got {by} in the file"
            raise source.wrong(line, why)
    started: dict[str, list[int]] = {}
    for index, (line, name) in known.targets.items():
        if name not in known.kinds:
            raise source.wrong(line, f"no trigger {name}; add `trigger id {name} oneshot`")
        started.setdefault(name, []).append(index)
        if known.kinds[name][1] == "multishot":
            rows[index] = _shot(source, rows[index], started[name], name, known)
            continue
        before = tuple(known.activated_by[name])
        acknowledged = any((name, other) in known.acknowledged for other in before)
        rows[index] = replace(rows[index], after=before, acknowledged=acknowledged)
    return rows


def _shot(
    source: Source, row: TableRow, started: Sequence[int], name: str, known: _Triggers
) -> TableRow:
    """Return the row that the next activation of a multishot trigger starts. `started` are the rows
    that its activations so far start, this one last.
    """
    number = len(started)
    # What this row or a later one activates comes after its start.
    later = {index for index, (_, other) in known.targets.items() if other == name}
    later -= set(started[:-1])
    before = [index for index in known.activated_by.get(name, ()) if index not in later]
    if len(before) < number:
        why = f"is number {number} of multishot trigger {name}, so it never starts"
        raise source.wrong(row.line, f"the connection {why}: {len(before)} activations come before")
    if len(before) > 1 and any((name, index) in known.acknowledged for index in before):
        why = f"of multishot trigger {name} by several connections is not supported"
        raise source.wrong(row.line, f"send_done_trigger {why}; write recv_done_trigger")
    acknowledged = (name, before[0]) in known.acknowledged
    return replace(
        row, after=tuple(before), after_count=number if number < len(before) else None,
        acknowledged=acknowledged,
    )  # fmt: skip
