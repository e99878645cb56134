"""A process tree with a network of its own, which dies with whoever started it.

The tree's first process is the init of a new PID namespace, with new network and mount
namespaces. No namespace in it has a name outside: two runs cannot meet, and once the init is gone
the kernel kills its processes, and the last process takes namespaces, interfaces, queues and
mounts with it. The init dies when its parent does (PR_SET_PDEATHSIG), that one when the front end
does; both also when the pipe from the front end closes. So a normal end, an exception, Ctrl-C,
kill -9 and a power cut leave the same: nothing.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 0x2, 0x4, 0x8
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000
_PR_SET_PDEATHSIG = 1

_LATENCY = "/dev/cpu_dma_latency"

SCRATCH = "/dev/shm"
"""A file system in memory that only the tree sees; it is there on every glibc system."""

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Gives this thread namespaces of its own; a new PID namespace begins with its next child."""
    _checked(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int = 0) -> None:
    """Mounts a file system, which only the tree sees once `enter` has been called."""
    fields = (source.encode(), target.encode(), kind.encode() if kind else None)
    _checked(_libc.mount(*fields, flags, None), f"mount {target}")


def unmount(target: str) -> None:
    """Takes it away again."""
    _checked(_libc.umount2(target.encode(), 0), f"umount {target}")


def die_with_parent() -> None:
    """This process is killed when the thread that started it ends; at once if it has ended."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")


def enter() -> None:
    """Makes the calling process two: the caller waits, its child returns as init of the tree.

    The caller never returns: it leaves with the child's exit code. Needs CAP_SYS_ADMIN. Raises
    OSError where the kernel refuses.
    """
    parent = os.getppid()
    die_with_parent()
    if os.getppid() != parent:
        os._exit(1)
    unshare(CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC)
    child = os.fork()
    if child:
        # Only the child holds the pipe to the front end, so that its end is seen there.
        for fd in (0, 1):
            os.close(fd)
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    die_with_parent()
    if os.getppid() != 0:  # 0: the parent lives outside this PID namespace
        os._exit(1)
    _stay_awake()
    mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    mount("tmpfs", SCRATCH, "tmpfs", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


_awake: int | None = None
"""Held open while processors are asked to stay awake; the kernel forgets the wish with it."""


def _stay_awake() -> None:
    """Asks for no latency of waking (PM QoS): idle processors poll while this process lives.

    A virtual machine's idle processor goes back to its host, which returns it milliseconds later
    when others want it too: late for every packet held at that moment.
    """
    global _awake
    try:
        _awake = os.open(_LATENCY, os.O_WRONLY | os.O_CLOEXEC)
        os.write(_awake, struct.pack("i", 0))
    except OSError:  # no such file, or none for us: the checks tell what came of it
        _awake = None


def awake() -> bool:
    """Whether the kernel was asked to keep this tree's processors awake."""
    return _awake is not None


class Namespace:
    """A network namespace without a name, held by a descriptor."""

    def __init__(self) -> None:
        """Makes a new one; the calling thread stays where it was."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            unshare(CLONE_NEWNET)
            self.fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            _checked(_libc.setns(before, CLONE_NEWNET), "setns")
        finally:
            os.close(before)

    @classmethod
    def current(cls) -> Namespace:
        """The one that the calling thread is in."""
        here = cls.__new__(cls)
        here.fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        return here

    @contextmanager
    def entered(self) -> Iterator[None]:
        """The calling thread is inside: sockets opened and processes started here belong to it."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _checked(_libc.setns(self.fd, CLONE_NEWNET), "setns")
            yield
        finally:
            _checked(_libc.setns(before, CLONE_NEWNET), "setns")
            os.close(before)
