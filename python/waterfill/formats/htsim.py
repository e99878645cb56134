"""Connection matrices of htsim (.cm), on a fat-tree or leaf-spine network built by rule.

`Nodes N`, `Connections M`, then `SOURCE->SINK [id I] start PS size BYTES [prio P]` for each; times
are picoseconds, and a connection sends from SOURCE to SINK. Connections that a trigger starts have
no start of their own and are refused.
"""

from __future__ import annotations

from pathlib import Path

from waterfill.errors import shown
from waterfill.formats.source import Source
from waterfill.formats.table import TableRow

_IGNORED = ("id", "prio", "send_done_trigger", "recv_done_trigger")


def read(path: Path) -> tuple[int, list[TableRow], list[str]]:
    """Return the number of hosts, the flows, and the keys of connections that are not used.

    Raises InputError.
    """
    source = Source.read(path)
    nodes = connections = None
    found = []
    unused: dict[str, None] = {}
    for number, line in enumerate(source.text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] in ("Nodes", "Connections") and len(words) == 2:
            count = source.whole(number, f"the number of {words[0].lower()}", words[1])
            if words[0] == "Nodes":
                nodes = count
            else:
                connections = count
        elif words[0] in ("Triggers", "Failures"):
            if source.whole(number, words[0].lower(), words[-1]):
                raise source.wrong(number, f"{words[0].lower()} are not supported")
        elif "->" in words[0]:
            if nodes is None:
                raise source.wrong(number, "`Nodes N` must come before the first connection")
            found.append(_connection(source, number, words, nodes, unused))
        else:
            raise source.wrong(number, f"must be SOURCE->SINK, got {shown(words[0])}")
    if nodes is None or connections is None:
        raise source.wrong(None, "no `Nodes N` and `Connections M`")
    if connections != len(found):
        raise source.wrong(None, f"must have {connections} connections, got {len(found)}")
    return nodes, found, list(unused)


def _connection(
    source: Source, line: int, words: list[str], nodes: int, unused: dict[str, None]
) -> TableRow:
    start, _, end = words[0].partition("->")
    a, b = source.whole(line, "a source", start), source.whole(line, "a sink", end)
    if max(a, b) >= nodes or a == b:
        raise source.wrong(line, f"must be two different nodes below {nodes}, got {words[0]}")
    values: dict[str, str] = {}
    rest = iter(words[1:])
    for key in rest:
        if key == "trigger":
            raise source.wrong(line, "triggers are not supported; write `start PS size BYTES`")
        if key not in ("start", "size", *_IGNORED):
            message = f"{shown(key)} is not supported; write `start PS size BYTES`"
            raise source.wrong(line, message)
        value = next(rest, None)
        if value is None:
            raise source.wrong(line, f"no value of {key}")
        values[key] = value
    unused.update(dict.fromkeys(key for key in values if key in _IGNORED))
    if "start" not in values:
        raise source.wrong(line, "no start; add `start PS` in picoseconds")
    start_s = source.number(line, "a start", values["start"]) / 1e12
    size = source.whole(line, "a size in bytes", values.get("size", "0"))
    # Its generators write 0 for a connection without an end.
    return TableRow(line, (f"h{a}", f"h{b}"), start_s, size or None)
