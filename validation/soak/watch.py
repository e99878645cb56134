"""Observation of the daemon and the kernel while a soak runs."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from validation.soak import objects
from validation.soak.network import Network
from validation.soak.service import Service
from waterfill.runs.result import Document
from waterfill.testbed import isolate
from waterfill.testbed.isolate import Namespace

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# The kernel's levels from 3 on are no errors. Some of its errors are reported at a lower level.
_ERROR_LEVEL = 3
_SERIOUS = re.compile(
    r"WARNING:|BUG:|Oops|Call Trace|refcount_t|rcu.*stall|blocked for more than|KASAN|UBSAN"
    r"|kmemleak|leaked|unregister_netdevice|use-after-free|general protection|out of memory",
    re.IGNORECASE,
)


@dataclass
class Sample:
    """One sample of the daemon and the kernel. A value is None if the host does not show it."""

    time_s: float
    life: int
    """Number of the daemon's life, which increases with each restart."""
    own_bytes: int
    """Memory of the daemon in bytes, without the pages of files: its code comes in for minutes on
    a busy host.
    """
    descriptors: int
    programs: int
    maps: int
    links: int
    pins: int
    locked_bytes: int
    """Memory of BPF programs and maps, in bytes."""
    kernel_bytes: int | None
    """Kernel memory of the run's processes in bytes: maps, sockets and packets."""
    sockets: int
    time_wait: int
    prices_s: dict[str, float] = field(default_factory=dict)
    packets: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    marked: dict[str, int] = field(default_factory=dict)
    targets: dict[str, float] = field(default_factory=dict)
    modes: dict[str, int] = field(default_factory=dict)
    counters: Document = field(default_factory=dict)
    routers: int = 0
    """How often the routers had been taken away or brought back. Their counters then begin anew."""


class Watch:
    """Sampler of the state of the daemon and the kernel."""

    def __init__(
        self, service: Service, network: Network, law: str, folder: Path, memory: Path | None
    ) -> None:
        """Create the sampler. `folder` holds the pins, and `memory` is the control
        group to read.
        """
        self._service, self._network = service, network
        self._law, self._folder, self._memory = law, folder, memory
        self._start_s = time.monotonic()
        self.life = self.routers = 0
        self.seen: set[objects.Id] = set()
        """BPF objects seen during the run so far."""

    def take(self) -> Sample:
        """Return a sample of the present state. Raises ServiceError if `waterfilld
        status` fails.
        """
        status = self._service.status()
        pids = self._service.pids
        found = objects.scan(self._law, self._folder, pids)
        self.seen.update(found.objects)
        inuse, time_wait = _sockets([*self._network.hosts, self._network.router])
        links = {link["device"]: link for link in status["links"]}
        return Sample(
            time_s=time.monotonic() - self._start_s, life=self.life,
            own_bytes=sum(_own_bytes(pid) for pid in pids),
            descriptors=sum(_descriptors(pid) for pid in pids),
            programs=found.count("program"), maps=found.count("map"), links=found.count("link"),
            pins=objects.pins(self._folder), locked_bytes=found.locked_bytes,
            kernel_bytes=kernel_bytes(self._memory), sockets=inuse, time_wait=time_wait,
            prices_s={device: link["price_s"] for device, link in links.items()},
            packets={device: link["packets"] for device, link in links.items()},
            bytes={device: link["bytes"] for device, link in links.items()},
            marked={device: link["marked"] for device, link in links.items()},
            targets={device: link["target"] for device, link in links.items()},
            modes=dict(Counter(flow["mode"] for flow in status["flows"])),
            counters=status.get("counters") or {}, routers=self.routers,
        )  # fmt: skip


def _own_bytes(pid: int) -> int:
    with suppress(OSError):
        resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[1:3]
        return (int(resident) - int(shared)) * _PAGE_BYTES
    return 0


def _descriptors(pid: int) -> int:
    with suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/fd"))
    return 0


def _sockets(spaces: Sequence[Namespace]) -> tuple[int, int]:
    inuse = time_wait = 0
    for space in spaces:
        with space.entered():
            counts = sockstat(Path("/proc/thread-self/net/sockstat").read_text())
        inuse += counts["inuse"]
        time_wait += counts["tw"]
    return inuse, time_wait


def sockstat(text: str) -> dict[str, int]:
    """Return the TCP counts in the text of /proc/net/sockstat."""
    for line in text.splitlines():
        kind, _, counts = line.partition(": ")
        if kind == "TCP":
            words = counts.split()
            return {name: int(n) for name, n in zip(words[::2], words[1::2], strict=True)}
    raise ValueError("/proc/net/sockstat: no line for TCP")


# --- kernel memory ------------------------------------------------------------------------------


@contextmanager
def memory_group(name: str) -> Iterator[Path | None]:
    """Yield a new memory control group, or None if that is impossible, and remove it at the end."""
    folder = _memory_root()
    if folder is not None:
        folder = folder / name
        try:
            folder.mkdir()
        except OSError:
            folder = None
    try:
        yield folder if kernel_bytes(folder) is not None else None
    finally:
        if folder is not None:
            remove(folder)


def _memory_root() -> Path | None:
    for line in Path("/proc/mounts").read_text().splitlines():
        _, point, kind, options, *_ = line.split(" ")
        root = Path(point)
        if kind == "cgroup" and "memory" in options.split(","):
            return root
        if kind == "cgroup2" and "memory" in (root / "cgroup.subtree_control").read_text().split():
            return root
    return None


def join(group: Path) -> None:
    """Move the calling process into a control group."""
    (group / "cgroup.procs").write_text("0")


def kernel_bytes(group: Path | None) -> int | None:
    """Return the kernel memory (bytes) of a control group's processes, or None if it is
    unavailable.
    """
    if group is None:
        return None
    with suppress(OSError):
        return int((group / "memory.kmem.usage_in_bytes").read_text())
    with suppress(OSError):
        for line in (group / "memory.stat").read_text().splitlines():
            key, value = line.split()
            if key == "kernel":
                return int(value)
    return None


def remove(group: Path) -> None:
    """Remove a control group, whose last processes may still be ending."""
    for _ in range(50):
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.1)
        else:
            return


# --- the kernel's log ---------------------------------------------------------------------------


def serious(record: str) -> str | None:
    """Return the text of a /dev/kmsg record if it reports an error, or None."""
    head, found, text = record.partition(";")
    level = head.split(",")[0]
    if not found or not level.isdigit():
        return None
    text = text.splitlines()[0] if text else ""
    return text if int(level) & 7 <= _ERROR_LEVEL or _SERIOUS.search(text) else None


def show_every_warning() -> None:
    """Make the kernel repeat warnings that it normally shows once per boot, if this
    host allows it.
    """
    folder = Path(isolate.SCRATCH) / "debug"
    folder.mkdir()
    with suppress(OSError):
        isolate.mount("debugfs", str(folder), "debugfs")
        (folder / "clear_warn_once").write_text("1")


class KernelLog:
    """Errors in the kernel's log from the time of creation on."""

    def __init__(self) -> None:
        """Open the kernel's log at its end, if this process has permission."""
        try:
            self._fd: int | None = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._fd, 0, os.SEEK_END)
        except OSError:
            self._fd = None
        self.errors: list[str] = []

    @property
    def readable(self) -> bool:
        """True if the kernel's log can be read."""
        return self._fd is not None

    def read(self) -> None:
        """Read new log records and add their errors to `errors`."""
        while self._fd is not None:
            try:
                record = os.read(self._fd, 1 << 13).decode(errors="replace")
            except BlockingIOError:
                return
            except BrokenPipeError:  # records were overwritten before they were read
                continue
            text = serious(record)
            if text is not None:
                self.errors.append(text)
