"""A process tree with its own network, which is killed together with the process that started it.

The tree's first process is the init of a new PID namespace, with new network and mount namespaces.
None of them has a name outside, so two runs cannot interfere. When the init ends the kernel kills
its processes, and with the last one go namespaces, interfaces, queues and mounts. The init is
killed with its parent (PR_SET_PDEATHSIG), the parent with the front end; both also end when the
pipe from the front end closes. So nothing is left after a normal end, an exception, Ctrl-C,
kill -9 or a power cut.
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
"""Directory in memory that only the process tree sees. Every glibc system has this directory."""

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Move this thread to new namespaces. A new PID namespace begins with the next child."""
    _checked(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int = 0) -> None:
    """Mount a file system. After `enter`, only the process tree sees the mount."""
    fields = (source.encode(), target.encode(), kind.encode() if kind else None)
    _checked(_libc.mount(*fields, flags, None), f"mount {target}")


def unmount(target: str) -> None:
    """Unmount a file system."""
    _checked(_libc.umount2(target.encode(), 0), f"umount {target}")


def die_with_parent() -> None:
    """Make the kernel kill this process when the thread that started it ends or has ended."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")


def enter() -> None:
    """Fork this process into a new process tree. The caller waits, and its child returns as the
    init.

    The caller never returns: it exits with the child's exit code. Needs CAP_SYS_ADMIN. Raises
    OSError if the kernel refuses.
    """
    parent = os.getppid()
    die_with_parent()
    if os.getppid() != parent:
        os._exit(1)
    unshare(CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC)
    child = os.fork()
    if child:
        # Only the child keeps the pipe to the front end, so that it notices the pipe's end.
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
"""Descriptor of the request to keep CPUs awake. Closing the descriptor ends the request."""


def _stay_awake() -> None:
    """Request zero wake-up latency (PM QoS), so that idle CPUs poll while this process lives.

    A VM's idle CPU goes back to its hypervisor, which may return it milliseconds later if others
    want it: too late for every packet held at that moment.
    """
    global _awake
    try:
        _awake = os.open(_LATENCY, os.O_WRONLY | os.O_CLOEXEC)
        os.write(_awake, struct.pack("i", 0))
    except OSError:  # missing or not permitted: the checks show the effect
        _awake = None


def awake() -> bool:
    """Return True if the kernel was asked to keep this process tree's CPUs awake."""
    return _awake is not None


class Namespace:
    """A network namespace without a name, kept open by a file descriptor."""

    def __init__(self) -> None:
        """Create a network namespace. The calling thread stays in its current namespace."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            unshare(CLONE_NEWNET)
            self.fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            _checked(_libc.setns(before, CLONE_NEWNET), "setns")
        finally:
            os.close(before)

    @classmethod
    def current(cls) -> Namespace:
        """Return the calling thread's network namespace."""
        here = cls.__new__(cls)
        here.fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        return here

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Enter the namespace with this thread. Sockets and processes created in the context belong
        to the namespace.
        """
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _checked(_libc.setns(self.fd, CLONE_NEWNET), "setns")
            yield
        finally:
            _checked(_libc.setns(before, CLONE_NEWNET), "setns")
            os.close(before)
