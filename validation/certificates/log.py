"""Reader of the step logs of the simulator and the fluid model.

A Parquet file with a row for each call of a law, in order. Columns: `backend`, `law`, `part`
(router, receiver or source), `entity` (the link or flow), `call`, `time_ps`, and four lists of
64-bit words: `inputs`, the state `before` and `after` the call, and `outputs`. The file's metadata
`waterfill.steps` (JSON) names the words of each law, part and call, and says how to read each:
`real` is a double (NaN: none), `time` picoseconds and `count` a whole number (2⁶⁴ − 1: none),
`wire` eight bytes of a header, the first one highest.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from waterfill.errors import InputError
from waterfill.runs.steps import FORMAT, KEY, LISTS

_TEXTS = ("backend", "law", "part", "entity", "call")
_NONE = 2**64 - 1
_BATCH = 16_384

Value: TypeAlias = "float | int | bytes | None"
Values: TypeAlias = "dict[str, Value]"
Fields: TypeAlias = "Sequence[tuple[str, str]]"


@dataclass(frozen=True)
class Step:
    """One call of a law: a row of a step log, decoded into values."""

    row: int
    backend: str
    law: str
    part: str
    entity: str
    call: str
    time: int
    inputs: Values
    before: Values
    after: Values
    outputs: Values


@dataclass
class Header:
    """Metadata of a log: the parameters of its laws, and the fields of its rows."""

    backend: str
    params: dict[str, dict[str, Any]]
    fields: dict[tuple[str, str, str], dict[str, list[tuple[str, str]]]]
    dropped: int
    rows: int = 0


def read(path: Path) -> tuple[Header, Iterator[Step]]:
    """Read a log. Return its header and an iterator over its rows.

    Raises InputError for a file that is not there or is no log.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.exists():
        raise InputError(str(path), "", "no such file; `waterfill run … --log-steps N` writes one")
    try:
        file = pq.ParquetFile(path)
    except (OSError, pa.ArrowException):
        raise InputError(str(path), "", "not a log of steps, which is a Parquet file") from None
    try:
        document = json.loads((file.schema_arrow.metadata or {})[KEY])
        if document["format"] != FORMAT:
            why = f"format must be {FORMAT}, got {document['format']}"
            raise InputError(str(path), "", why)
        header = Header(
            str(document["backend"]),
            document["params"],
            {
                (e["law"], e["part"], e["call"]): {
                    name: [(str(field), str(kind)) for field, kind in e["lists"][name]]
                    for name in LISTS
                }
                for e in document["fields"]
            },
            int(document["dropped"]),
            file.metadata.num_rows,
        )
        missing = [n for n in (*_TEXTS, "time_ps", *LISTS) if n not in file.schema_arrow.names]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(str(path), "", "not a log of steps: it has no metadata") from None
    if not isinstance(header.params, dict):
        raise InputError(str(path), "", "no parameters of laws in the metadata")
    if missing:
        raise InputError(str(path), "", f"not a log of steps: column {missing[0]} is missing")
    return header, _rows(path, file, header)


def _rows(path: Path, file: Any, header: Header) -> Iterator[Step]:
    import pyarrow as pa

    readers: dict[tuple[str, str, str], tuple[Callable[[Sequence[int]], Values], ...]] = {}
    number = 0
    try:
        for batch in file.iter_batches(batch_size=_BATCH):
            columns = [batch.column(name).cast("string").to_pylist() for name in _TEXTS]
            times = batch.column("time_ps").to_pylist()
            lists = [_words(batch.column(name)) for name in LISTS]
            for i, (backend, law, part, entity, call) in enumerate(zip(*columns, strict=True)):
                key = (law, part, call)
                if key not in readers:
                    readers[key] = tuple(reader(header.fields[key][name]) for name in LISTS)
                values = [
                    read_one(words[ends[i] : ends[i + 1]])
                    for read_one, (ends, words) in zip(readers[key], lists, strict=True)
                ]
                yield Step(number, backend, law, part, entity, call, times[i], *values)
                number += 1
    except (
        pa.ArrowException,
        OSError,
        LookupError,
        ValueError,
        struct.error,
        TypeError,
        AttributeError,
    ):
        why = f"row {number} does not have the words that the metadata name"
        raise InputError(str(path), "", why) from None


def _words(column: Any) -> tuple[list[int], list[int]]:
    """Return all 64-bit words of a column, and the offsets at which the words of each row begin and
    end.
    """
    offsets = column.offsets.to_pylist()
    first = offsets[0]
    words = column.values.slice(first, offsets[-1] - first).to_pylist()
    return [offset - first for offset in offsets], words


def reader(fields: Fields) -> Callable[[Sequence[int]], Values]:
    """Return a function that decodes words into named values. The words of one header
    are joined.
    """
    count = len(fields)
    pack = struct.Struct(f"<{count}Q").pack
    shape = "<" + "".join("d" if kind == "real" else "Q" for _, kind in fields)
    unpack = struct.Struct(shape).unpack
    kinds = [kind for _, kind in fields]
    names = [name for name, _ in fields]
    headers = _headers(names, kinds)

    def read_words(words: Sequence[int]) -> Values:
        values: Values = {}
        for name, kind, value in zip(names, kinds, unpack(pack(*words)), strict=True):
            if kind == "real":
                values[name] = None if value != value else value
            elif kind != "wire":
                values[name] = None if value == _NONE else value
        for name, places in headers.items():
            values[name] = b"".join(words[i].to_bytes(8, "big") for i in places)
        return values

    return read_words


def _headers(names: Sequence[str], kinds: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for i, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        if kind == "wire":
            found.setdefault(name.rpartition(".")[0], []).append(i)
    return found
