"""The delay line's process: started with a run's lines, asked for statistics, ended by its pipe."""

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

_NAME = "waterfill-delay"
_READY_S = 10.0


class DelayLineError(RuntimeError):
    """It did not start, or it ended before its time."""


def binary() -> str | None:
    """Where the program is: WATERFILL_DELAY, beside this Python, or on PATH; None if nowhere."""
    named = os.environ.get("WATERFILL_DELAY")
    beside = Path(sys.executable).parent / _NAME
    for path in (named, str(beside)):
        if path and os.access(path, os.X_OK):
            return path
    return shutil.which(_NAME)


# Where there are several processors the line has this one, beside whoever samples; hosts and
# routers have the others, and receive there what it sends (`topology`). So a frame whose time has
# come waits for no host's system call, and no host for the sampler's.
LINE_CPU = 0
_hosts: set[int] = set()


def hosts_cpus() -> set[int]:
    """The processors that hosts and routers have: all until there is a line."""
    return _hosts or os.sched_getaffinity(0)


def be_beside() -> None:
    """The calling thread runs where the line does, if that has a processor of its own."""
    if _hosts:
        os.sched_setaffinity(0, {LINE_CPU})


@contextmanager
def among_hosts() -> Iterator[None]:
    """What is started here belongs to the hosts, though its starter is beside the line."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, hosts_cpus())
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class DelayLine:
    """The running process; in the namespace of the thread that starts it."""

    def __init__(
        self, lines: Sequence[Document], *, mtu_bytes: int, seed: int, **more: Any
    ) -> None:
        """Starts it and waits until it listens. Raises DelayLineError when it does not."""
        path = binary()
        if path is None:
            raise DelayLineError(f"{_NAME} is not installed")
        # 18: an Ethernet header, and a tag that a frame might carry.
        config = {"seed": seed, "frame_bytes": max(256, mtu_bytes + 18), "lines": list(lines)}
        self._process = subprocess.Popen(
            [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        allowed = os.sched_getaffinity(0)
        others = allowed - {LINE_CPU}
        # A container may not have that processor; a second line shares it with the first.
        if others and (_hosts or LINE_CPU in allowed):
            os.sched_setaffinity(self._process.pid, {LINE_CPU})
            os.sched_setaffinity(0, others)  # and so of all that is started from here on
            _hosts.update(others)
        self._say(json.dumps(config | more))
        self._hear()

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def stats(self) -> Document:
        """What it has done so far: `lines` by name, `cpu_s`, `punctuality`."""
        self._say("stats")
        document = json.loads(self._hear())
        document["lines"] = {line["name"]: line for line in document["lines"]}
        return dict(document)

    def close(self) -> None:
        """Ends it."""
        self._pipe(self._process.stdin).close()
        try:
            self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _say(self, line: str) -> None:
        try:
            pipe = self._pipe(self._process.stdin)
            pipe.write(line + "\n")
            pipe.flush()
        except BrokenPipeError:
            self._gone()

    def _hear(self) -> str:
        line = self._pipe(self._process.stdout).readline()
        if not line:
            self._gone()
        return line

    def _gone(self) -> None:
        self._process.wait(_READY_S)
        said = self._pipe(self._process.stderr).read().strip()
        raise DelayLineError(said or f"{_NAME} ended with {self._process.returncode}")

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe
