"""Process of the delay line: its start, its statistics, and its end."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from waterfill.runs.result import Document
from waterfill.testbed.answer import LineStats
from waterfill.testbed.child import Child, installed

_NAME = "waterfill-delay"


class DelayLineError(RuntimeError):
    """Error for a delay line that did not start or ended early."""


def binary() -> str | None:
    """Return the path of the delay line's program, or None if it is not installed."""
    return installed(_NAME, "WATERFILL_DELAY")


# On a host with several CPUs the line and the sampler run on this one, hosts and routers on the
# others, where they also receive what the line sends (`topology`). A frame that is due then never
# waits for a host's system call, and a host never for the sampler's.
LINE_CPU = 0
_hosts: set[int] = set()


def hosts_cpus() -> set[int]:
    """Return the CPUs of hosts and routers. Before a delay line starts, these are all CPUs of the
    process.
    """
    return _hosts or os.sched_getaffinity(0)


def join_line_cpu() -> None:
    """Move the calling thread to the delay line's CPU, if the line has its own."""
    if _hosts:
        os.sched_setaffinity(0, {LINE_CPU})


@contextmanager
def on_hosts_cpus() -> Iterator[None]:
    """Run this context on the hosts' CPUs, so that processes started in it stay there."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, hosts_cpus())
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class DelayLine(Child):
    """The running delay line, in the namespace of the thread that started it."""

    error = refusal = DelayLineError

    def __init__(
        self, lines: Sequence[Document], *, mtu_bytes: int, seed: int, **more: Any
    ) -> None:
        """Start the delay line and wait until it is ready; raise DelayLineError if the start
        fails.
        """
        # 18: an Ethernet header and a VLAN tag.
        config = {"seed": seed, "frame_bytes": max(256, mtu_bytes + 18), "lines": list(lines)}
        super().__init__(_NAME, binary())
        allowed = os.sched_getaffinity(0)
        others = allowed - {LINE_CPU}
        # A container may lack that CPU; a second line shares it with the first.
        if others and (_hosts or LINE_CPU in allowed):
            os.sched_setaffinity(self._process.pid, {LINE_CPU})
            os.sched_setaffinity(0, others)  # and of everything started from here on
            _hosts.update(others)
        self._write(json.dumps(config | more))
        self._receive()

    def start(self, at_ns: int) -> None:
        """Set the run's time 0, from which scheduled changes count, on the clock that stamps
        packets.
        """
        self._write(f"start {at_ns}")
        self._receive()

    def stats(self) -> LineStats:
        """Return the delay line's counters so far: `lines` by name, `cpu_s` and `punctuality`."""
        self._write("stats")
        document = json.loads(self._receive())
        lines = {line["name"]: line for line in document["lines"]}
        return LineStats.read({**document, "lines": lines})

    def _receive(self) -> bytes:
        line = self._out.readline()
        if not line:
            self._raise_ended()
        return line
