"""The delay line's process: start it, read its statistics, end it by closing its pipe."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from waterfill.runs.result import Document
from waterfill.testbed.answer import LineStats

_NAME = "waterfill-delay"
_READY_S = 10.0


class DelayLineError(RuntimeError):
    """The delay line did not start, or it ended early."""


def binary() -> str | None:
    """Find the program: WATERFILL_DELAY, next to this Python, or on PATH; None if nowhere."""
    named = os.environ.get("WATERFILL_DELAY")
    beside = Path(sys.executable).parent / _NAME
    for path in (named, str(beside)):
        if path and os.access(path, os.X_OK):
            return path
    return shutil.which(_NAME)


# On a host with several CPUs the line and the sampler run on this one, hosts and routers on the
# others, where they also receive what the line sends (`topology`). A frame that is due then never
# waits for a host's system call, and a host never for the sampler's.
LINE_CPU = 0
_hosts: set[int] = set()


def hosts_cpus() -> set[int]:
    """Return the CPUs of hosts and routers: all of them until there is a delay line."""
    return _hosts or os.sched_getaffinity(0)


def join_line_cpu() -> None:
    """Move the calling thread to the delay line's CPU, if the line has its own."""
    if _hosts:
        os.sched_setaffinity(0, {LINE_CPU})


@contextmanager
def on_hosts_cpus() -> Iterator[None]:
    """Run on the hosts' CPUs inside the context, so that processes started there stay there."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, hosts_cpus())
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class DelayLine:
    """The running process, in the namespace of the thread that starts it."""

    def __init__(
        self, lines: Sequence[Document], *, mtu_bytes: int, seed: int, **more: Any
    ) -> None:
        """Start the process and wait until it is ready; raise DelayLineError if it fails."""
        path = binary()
        if path is None:
            raise DelayLineError(f"{_NAME} is not installed")
        # 18: an Ethernet header and a VLAN tag.
        config = {"seed": seed, "frame_bytes": max(256, mtu_bytes + 18), "lines": list(lines)}
        self._process = subprocess.Popen(
            [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        allowed = os.sched_getaffinity(0)
        others = allowed - {LINE_CPU}
        # A container may lack that CPU; a second line shares it with the first.
        if others and (_hosts or LINE_CPU in allowed):
            os.sched_setaffinity(self._process.pid, {LINE_CPU})
            os.sched_setaffinity(0, others)  # and of everything started from here on
            _hosts.update(others)
        self._send(json.dumps(config | more))
        self._receive()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def start(self, at_ns: int) -> None:
        """Set the run's time 0, on the clock that stamps packets: changes count from there."""
        self._send(f"start {at_ns}")
        self._receive()

    def stats(self) -> LineStats:
        """Return the counters so far: `lines` by name, `cpu_s`, `punctuality`."""
        self._send("stats")
        document = json.loads(self._receive())
        lines = {line["name"]: line for line in document["lines"]}
        return LineStats.read({**document, "lines": lines})

    def close(self) -> None:
        """End the process."""
        self._pipe(self._process.stdin).close()
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, line: str) -> None:
        try:
            pipe = self._pipe(self._process.stdin)
            pipe.write(line + "\n")
            pipe.flush()
        except BrokenPipeError:
            self._raise_ended()

    def _receive(self) -> str:
        line = self._pipe(self._process.stdout).readline()
        if not line:
            self._raise_ended()
        return line

    def _raise_ended(self) -> None:
        self._process.wait(_READY_S)
        said = self._pipe(self._process.stderr).read().strip()
        raise DelayLineError(said or f"{_NAME} ended with {self._process.returncode}")

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe
