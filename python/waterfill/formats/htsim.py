"""Connection matrices of htsim (.cm), on a fat-tree or leaf-spine network built by rule.

`Nodes N`, `Connections M`, then `SOURCE->SINK [id I] start PS size BYTES [prio P]` for each; times
are picoseconds. Connections that a trigger starts have no start of their own and are refused.
"""

from __future__ import annotations

from pathlib import Path

from waterfill.errors import shown
from waterfill.formats.source import Source

_IGNORED = ("id", "prio", "send_done_trigger", "recv_done_trigger")


def read(path: Path) -> tuple[int, list[tuple[tuple[int, int], float, int | None]]]:
    """Return the number of hosts, and the ends, start (s) and size (bytes, or None) of each flow.

    Raises InputError.
    """
    source = Source.read(path)
    nodes = connections = None
    found = []
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
            found.append(_connection(source, number, words, nodes))
        else:
            raise source.wrong(number, f"must be SOURCE->SINK, got {shown(words[0])}")
    if nodes is None or connections is None:
        raise source.wrong(None, "no `Nodes N` and `Connections M`")
    if connections != len(found):
        raise source.wrong(None, f"must have {connections} connections, got {len(found)}")
    return nodes, found


def _connection(
    source: Source, line: int, words: list[str], nodes: int
) -> tuple[tuple[int, int], float, int | None]:
    start, _, end = words[0].partition("->")
    a, b = source.whole(line, "a source", start), source.whole(line, "a sink", end)
    if max(a, b) >= nodes or a == b:
        raise source.wrong(line, f"must be two different nodes below {nodes}, got {words[0]}")
    values = dict(zip(words[1::2], words[2::2], strict=False))
    if len(words) % 2 == 0 or "trigger" in values or "addon" in words:
        raise source.wrong(line, "triggers are not supported; write `start PS size BYTES`")
    for key in values:
        if key not in ("start", "size", *_IGNORED):
            raise source.wrong(line, f"unknown word {shown(key)}; write start and size")
    if "start" not in values:
        raise source.wrong(line, "no start; add `start PS` in picoseconds")
    start_s = source.number(line, "a start", values["start"]) / 1e12
    size = source.whole(line, "a size in bytes", values.get("size", "0"))
    # Its generators write 0 for a connection without an end.
    return (a, b), start_s, size or None
