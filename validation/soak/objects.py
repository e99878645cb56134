"""BPF objects in the running kernel that belong to a soak, and the memory that they hold.

Other programs of the host have objects too, so the run's are found by what connects them. A program
belongs to it if it uses one of the run's maps, a map if one of these programs uses it, a link if it
holds one of them. Pins, the daemon's file descriptors and the law's name are where this starts.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

_NUMBERS = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "s390x": 351, "ppc64le": 361}
_LOOKUP, _OBJ_GET, _INFO = 1, 7, 15
_STRUCT_OPS = 26
_KINDS = {"program": (11, 13), "map": (12, 14), "link": (31, 30)}
# In fdinfo of a file descriptor; the line that comes first says which object it is.
_FDINFO = {"prog_id": "program", "map_id": "map", "link_id": "link"}
_BUFFER_BYTES = 1 << 12
_MAX_IDS = 256
# Offsets in bpf_prog_info, bpf_map_info and bpf_link_info.
_MAP_COUNT, _MAP_POINTER, _PROGRAM_NAME = 52, 56, 64
_VALUE_SIZE, _MAP_NAME = 12, 24
_LINK_PROGRAM, _LINK_MAP = 8, 16
_LINK_STRUCT_OPS = 9


@dataclass(frozen=True)
class Id:
    """Identity of a BPF object: its kind ("program", "map" or "link") and the kernel's unique
    number.
    """

    kind: str
    number: int


@dataclass
class Object:
    """A BPF object, with the objects that it uses and the memory that the kernel accounts to it."""

    id: Id
    name: str
    uses: frozenset[Id] = frozenset()
    locked_bytes: int = 0
    value: bytes = b""
    """Value that a congestion control registered, including its name. It is empty for other
    objects.
    """


@dataclass
class Found:
    """The BPF objects of a soak run."""

    objects: dict[Id, Object] = field(default_factory=dict)

    def count(self, kind: str) -> int:
        """Return the number of objects of a kind."""
        return sum(id.kind == kind for id in self.objects)

    @property
    def locked_bytes(self) -> int:
        """Memory of all maps and programs, in bytes."""
        return sum(one.locked_bytes for one in self.objects.values())


def component(objects: dict[Id, Object], first: Collection[Id]) -> set[Id]:
    """Return all objects that are connected with `first` by using or being used."""
    users: dict[Id, set[Id]] = {}
    for one in objects.values():
        for used in one.uses:
            users.setdefault(used, set()).add(one.id)
    found: set[Id] = set()
    left = [id for id in first if id in objects]
    while left:
        id = left.pop()
        if id not in found:
            found.add(id)
            left += (objects[id].uses & objects.keys()) | users.get(id, set())
    return found


def scan(law: str, folder: Path, pids: Collection[int]) -> Found:
    """Return the BPF objects that belong to a law, a folder of pins or a set of processes."""
    objects = _all()
    first = {id for path in _files(folder) if (id := _pinned(path)) is not None}
    for pid in pids:
        first |= _held(pid)
    name = law.encode() + b"\0"
    first |= {one.id for one in objects.values() if name in one.value}
    return Found({id: objects[id] for id in component(objects, first)})


def left(ids: Collection[Id]) -> list[Id]:
    """Return the objects among `ids` that still exist."""
    existing = {id for kind in _KINDS for id in _ids(kind)}
    return sorted(existing.intersection(ids), key=lambda id: (id.kind, id.number))


def pins(folder: Path) -> int:
    """Return the number of pins in a folder and its subfolders."""
    return sum(1 for _ in _files(folder))


def _files(folder: Path) -> Iterator[Path]:
    for path, _, names in os.walk(folder):
        for name in names:
            yield Path(path) / name


# --- bpf(2) -------------------------------------------------------------------------------------

_libc = ctypes.CDLL(None, use_errno=True)


def _bpf(command: int, attributes: bytes) -> tuple[int, bytes]:
    """Call bpf(2), and return the result and the updated attributes. Raises OSError on failure."""
    buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    number = _NUMBERS[platform.machine()]
    result = _libc.syscall(number, command, buffer, 128)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result, buffer.raw


def _ids(kind: str) -> Iterator[Id]:
    number = 0
    with suppress(FileNotFoundError):
        while True:
            _, raw = _bpf(_KINDS[kind][0], struct.pack("=I", number))
            (number,) = struct.unpack_from("=I", raw, 4)
            yield Id(kind, number)


@contextmanager
def _opened(fd: int) -> Iterator[int]:
    try:
        yield fd
    finally:
        os.close(fd)


def _all() -> dict[Id, Object]:
    found = {}
    for kind, (_, open_) in _KINDS.items():
        for id in _ids(kind):
            with suppress(FileNotFoundError), _opened(
                _bpf(open_, struct.pack("=I", id.number))[0]
            ) as fd:  # fmt: skip
                found[id] = _describe(id, fd)
    return found


def _describe(id: Id, fd: int) -> Object:
    ids = (ctypes.c_uint32 * _MAX_IDS)()
    ask = b""
    if id.kind == "program":
        ask = bytes(_MAP_COUNT) + struct.pack("=IQ", _MAX_IDS, ctypes.addressof(ids))
    info = ctypes.create_string_buffer(ask, 256)
    address = ctypes.addressof(info)
    _bpf(_INFO, struct.pack("=IIQ", fd, len(info), address))
    raw = info.raw

    def word(at: int) -> int:
        return int(struct.unpack_from("=I", raw, at)[0])

    def text(at: int) -> str:
        return raw[at : at + 16].split(b"\0")[0].decode()

    locked = int(_fdinfo(os.getpid(), fd).get("memlock", 0))
    if id.kind == "program":
        maps = frozenset(Id("map", n) for n in ids[: min(word(_MAP_COUNT), _MAX_IDS)])
        return Object(id, text(_PROGRAM_NAME), maps, locked)
    if id.kind == "map":
        value = b""
        if word(0) == _STRUCT_OPS:
            value = _registered(fd, word(_VALUE_SIZE))
        return Object(id, text(_MAP_NAME), locked_bytes=locked, value=value)
    if word(0) == _LINK_STRUCT_OPS:
        return Object(id, "", frozenset({Id("map", word(_LINK_MAP))}))
    return Object(id, "", frozenset({Id("program", word(_LINK_PROGRAM))}))


def _registered(fd: int, size: int) -> bytes:
    key, value = ctypes.c_uint32(0), ctypes.create_string_buffer(max(size, _BUFFER_BYTES))
    with suppress(OSError):  # not registered yet
        addresses = (ctypes.addressof(key), ctypes.addressof(value))
        _bpf(_LOOKUP, struct.pack("=IIQQQ", fd, 0, *addresses, 0))
    return value.raw


def _pinned(path: Path) -> Id | None:
    name = ctypes.create_string_buffer(os.fsencode(path))
    try:
        fd, _ = _bpf(_OBJ_GET, struct.pack("=QII", ctypes.addressof(name), 0, 0))
    except FileNotFoundError:  # removed since the folder was listed
        return None
    with _opened(fd):
        return _identify(_fdinfo(os.getpid(), fd))


def _held(pid: int) -> set[Id]:
    found = set()
    with suppress(OSError):  # the process has ended
        for name in os.listdir(f"/proc/{pid}/fdinfo"):
            id = _identify(_fdinfo(pid, int(name)))
            if id is not None:
                found.add(id)
    return found


def _identify(fields: dict[str, str]) -> Id | None:
    # A link also names its program or map, a program its maps.
    for key in ("link_id", "prog_id", "map_id"):
        if key in fields:
            return Id(_FDINFO[key], int(fields[key]))
    return None


def _fdinfo(pid: int, fd: int) -> dict[str, str]:
    try:
        text = Path(f"/proc/{pid}/fdinfo/{fd}").read_text()
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.splitlines())
    return {key: value.strip() for key, _, value in pairs}
