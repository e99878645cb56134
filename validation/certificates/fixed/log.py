"""Reader of the kernel's step logs (`waterfilld … --log-steps FILE`).

The file has `WFSTEPS1`, the length of a JSON text, that text (law and role), and records, each
after its length; a length of 0 and the number of steps that were not logged end it. A record is a
structure of crates/waterfill-linux/bpf (*_steps.h); numbers are in the host's order.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from validation.certificates.log import Header, Step, Values
from waterfill.errors import InputError
from waterfill.network import protocols

MAGIC = b"WFSTEPS1"
BACKEND = "linux"

Layout: TypeAlias = "Sequence[tuple[str, str]]"
"""Fields of a C structure, as pairs of a name and a format letter of Python's `struct`."""

U64 = (1 << 64) - 1
"""Mask of 64 bits: the sums of each CPU wrap at 2⁶⁴."""

_HEAD = struct.Struct("=QBBBBI")
_CALLS = ("mark", "tick", "idle", "ack", "receive")
_PACKET: Layout = (("bytes", "Q"), ("segments", "I"), ("syn", "I"))
TCP: Layout = (
    ("now_us", "Q"),
    *((name, "I") for name in ("srtt_us", "base_rtt_us", "delivered", "acked", "in_flight")),
    *((name, "I") for name in ("packet", "payload", "max_segments", "recovering")),
    *((name, "I") for name in ("app_limited", "window_limited", "unlimited", "reserved")),
)
_VALUE_BYTES = 16


def layout(wide: str, narrow: str = "") -> Layout:
    """Return the layout of a structure from the names of its 64-bit fields and then its 32-bit
    fields.
    """
    return (*((name, "Q") for name in wide.split()), *((name, "I") for name in narrow.split()))


def params_layout(law: str) -> Layout:
    """Return the fields of a law's `struct law_params`, as the compiled core describes them.

    A member of a structure within has its own name there, or its parameter's where another member
    has that name. Unused members are numbered.
    """
    info = protocols.load()[law]
    if info.kernel is None:
        raise ValueError(f"{law} has no C code")
    nested = {p.kernel["member"]: p.name for p in info.params if p.kernel is not None}
    fields = []
    for number, member in enumerate(info.kernel["members"]):
        name = member["name"].rpartition(".")[2]
        if name == "reserved":
            name = f"reserved_{number}"
        elif name != member["name"]:
            name = nested.get(member["name"], name)
        fields.append((name, "Q" if member["bytes"] == 8 else "I"))
    return fields


def is_log(path: Path) -> bool:
    """Return True if a file begins like a kernel log."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read(path: Path, layouts: Mapping[str, Mapping[str, Layout]]) -> tuple[Header, Iterator[Step]]:
    """Read a kernel log. `layouts` gives the structures of each law.

    Raises InputError for a file that is cut off, or of another law.
    """
    data = path.read_bytes()
    try:
        (length,) = struct.unpack_from("=I", data, len(MAGIC))
        start = len(MAGIC) + 4
        text = json.loads(data[start : start + length])
        law, role = str(text["law"]), str(text["role"])
    except (struct.error, ValueError, KeyError, TypeError):
        raise InputError(str(path), "", "not a log of the kernel's steps") from None
    if law not in layouts:
        known = ", ".join(layouts)
        raise InputError(str(path), "", f"no fixed-point equations for {law}; known: {known}")
    if role == "host" and "source" not in layouts[law]:
        raise InputError(str(path), "", f"no fixed-point equations for {law}'s hosts, only routers")
    header = Header(BACKEND, {law: {}}, {}, 0)
    records = _records(path, data, start + length, header)
    return header, _steps(path, records, law, role, layouts[law])


def _records(path: Path, data: bytes, place: int, header: Header) -> Iterator[bytes]:
    """Yield the records of a log. The header's count of steps that were not logged is set after the
    last record.
    """
    try:
        while True:
            (length,) = struct.unpack_from("=I", data, place)
            place += 4
            if length == 0:
                (header.dropped,) = struct.unpack_from("=Q", data, place)
                return
            if place + length > len(data):
                raise struct.error
            yield data[place : place + length]
            place += length
    except struct.error:
        raise InputError(str(path), "", "the log is cut off: the daemon was killed") from None


def _steps(
    path: Path, records: Iterator[bytes], law: str, role: str, layouts: Mapping[str, Layout]
) -> Iterator[Step]:
    for row, record in enumerate(records):
        try:
            yield _step(record, row, law, role, layouts)
        except (struct.error, IndexError, KeyError):
            why = f"record {row} is not one of {law}'s {role}, as this version logs them"
            raise InputError(str(path), "", why) from None


def _step(record: bytes, row: int, law: str, role: str, layouts: Mapping[str, Layout]) -> Step:
    time, number, state_words, extra_words, sums_words, entity = _HEAD.unpack_from(record)
    call, cursor = _CALLS[number], Cursor(record, _HEAD.size)
    inputs: Values = {}
    outputs: Values = {}
    if role == "router":
        inputs["queue"], inputs["intervals"] = cursor.take("QQ")
        inputs |= cursor.fields(_PACKET)
        inputs["value"], outputs["value"] = cursor.bytes(16), cursor.bytes(16)
        sums = cursor.bytes(8 * sums_words)
        inputs |= fields(layouts["sums"], sums)
        link = layouts["link"]
        before, after = (fields(link, cursor.bytes(8 * state_words)) for _ in range(2))
        cpu = layouts["cpu"]
        if call == "mark":
            before |= fields(cpu, cursor.bytes(8 * extra_words))
            after |= fields(cpu, cursor.bytes(8 * extra_words))
        part, name = "router", f"device {entity}"
    else:
        inputs |= fields(layouts["params"], cursor.bytes(8 * extra_words))
        tcp = cursor.fields(TCP)
        cursor.skip(4)
        data = cursor.fields((("now_us", "Q"), ("rtt_us", "I"), ("segments", "I")))
        (inputs["has_echo"], _) = cursor.take("II")
        inputs |= {f"tcp.{key}": value for key, value in tcp.items()} if call == "ack" else data
        inputs["value"] = cursor.bytes(_VALUE_BYTES)
        part = "source" if call == "ack" else "receiver"
        before, after = (fields(layouts[part], cursor.bytes(8 * state_words)) for _ in range(2))
        name = "host"
    step = (row, BACKEND, law, part, name, call, 1000 * time)
    return Step(*step, inputs, before, after, outputs)


def fields(layout: Layout, data: bytes) -> dict[str, Any]:
    """Read the fields of a C structure from the start of `data`, ignoring any bytes after them."""
    letters = "=" + "".join(letter for _, letter in layout)
    names = [name for name, _ in layout]
    return dict(zip(names, struct.unpack_from(letters, data), strict=True))


class Cursor:
    """Reader of a log record, from front to back."""

    def __init__(self, data: bytes, place: int) -> None:
        self.data, self.place = data, place

    def take(self, letters: str) -> tuple[int, ...]:
        """Read numbers in the given `struct` formats."""
        found = struct.unpack_from("=" + letters, self.data, self.place)
        self.place += struct.calcsize("=" + letters)
        return found

    def fields(self, layout: Layout) -> dict[str, Any]:
        """Read the fields of a C structure."""
        numbers = self.take("".join(letter for _, letter in layout))
        return dict(zip((name for name, _ in layout), numbers, strict=True))

    def bytes(self, count: int) -> bytes:
        """Read the next `count` bytes."""
        found = self.data[self.place : self.place + count]
        if len(found) != count:
            raise struct.error
        self.place += count
        return found

    def skip(self, count: int) -> None:
        """Skip padding bytes before the next field."""
        self.place += count
