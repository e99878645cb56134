"""Execution on a worker: batches of points in child processes, with limits of time and memory.

A worker's thread holds one child for as long as it has points. A child that a limit or a signal
ended is replaced.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]

TIMEOUT, LOST, FAILED, MEMORY = "timeout", "lost", "failed", "memory"

# A point whose process was killed from outside is run again; the time between two looks at whether
# the point is still wanted.
_LOOK_S = 0.2
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_OUT_OF_MEMORY = "memory allocation of"


@dataclass(frozen=True)
class Limits:
    """Limits of one point: wall time (s) and writable memory of its process (bytes). 0 means no
    limit.
    """

    time_s: float = 0.0
    memory_bytes: int = 0


class Child:
    """One child process that runs points. Not safe for use from several threads."""

    def __init__(self, memory_bytes: int) -> None:
        self.memory_bytes = memory_bytes
        self._bases: set[str] = set()
        self._ready = False
        self._errors = os.fdopen(_nameless(), "r+b")
        # A session of its own: Ctrl-C is for the front end alone.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "waterfill.sweeps.child", str(memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Process ID of the child."""
        return self._process.pid

    def run(
        self, base: Mapping[str, str], job: Mapping[str, Any], limits: Limits,
        wanted: Callable[[], bool],
    ) -> Row:  # fmt: skip
        """Run a point and return its row. The row's status shows if the child has ended."""
        started = time.monotonic()
        try:
            if not self._ready:  # its start is no part of a point's time
                early = self._answer(started, Limits(), wanted)
                if early is None or early:
                    return early or self._ended(time.monotonic() - started, limits)
                self._ready = True
                started = time.monotonic()
            if base["base"] not in self._bases:
                self._send(base)
                self._bases.add(base["base"])
            self._send(job)
            answer = self._answer(started, limits, wanted)
        except (BrokenPipeError, json.JSONDecodeError):
            answer = None
        if answer is not None:
            return answer
        return self._ended(time.monotonic() - started, limits)

    def _send(self, document: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(document).encode() + b"\n")
        self._process.stdin.flush()

    def _answer(self, started: float, limits: Limits, wanted: Callable[[], bool]) -> Row | None:
        assert self._process.stdout is not None
        pipe = self._process.stdout
        text = b""
        while not text.endswith(b"\n"):
            left_s = limits.time_s - (time.monotonic() - started) if limits.time_s else _LOOK_S
            if left_s <= 0:
                self.close()
                why = f"exceeded its time of {limits.time_s:g} s"
                return {"status": TIMEOUT, "error": why, "wall_s": time.monotonic() - started}
            if not select.select([pipe], [], [], min(left_s, _LOOK_S))[0]:
                if not wanted():
                    self.close()
                    return {"status": LOST, "error": "no longer wanted"}
                continue
            some = os.read(pipe.fileno(), 1 << 16)
            if not some:
                return None
            text += some
        answer: Row = json.loads(text)
        return answer

    def _ended(self, wall_s: float, limits: Limits) -> Row:
        """Return the row of a point whose process ended without a result."""
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        last = lines[-1] if lines else ""
        self.close()
        if limits.memory_bytes and (
            any(_OUT_OF_MEMORY in line for line in lines) or "MemoryError" in last
        ):
            why = f"exceeded its memory of {limits.memory_bytes / 1e6:g} MB"
            return {"status": MEMORY, "error": why, "wall_s": wall_s}
        if -code in _FROM_OUTSIDE:
            return {"status": LOST, "error": "its process was killed", "wall_s": wall_s}
        name = signal.Signals(-code).name if code < 0 else f"code {code}"
        why = f"its process ended by {name}" + (f": {last}" if last else "")
        return {"status": FAILED, "error": why, "wall_s": wall_s}

    @property
    def alive(self) -> bool:
        """True if the child process is still running."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End the child process. Its pipes stay open for the thread that uses them."""
        if self._process.poll() is None:
            self._process.kill()

    def close(self) -> None:
        """End the child process, wait for it, and close its pipes."""
        self.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            with contextlib.suppress(OSError):  # what was not yet sent
                if pipe is not None:
                    pipe.close()


def _nameless() -> int:
    """Return the descriptor of a new file without a name."""
    descriptor, name = tempfile.mkstemp(prefix="waterfill-")
    os.unlink(name)
    return descriptor


class Children:
    """The child processes of a worker, one for each point in progress."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._busy: set[Child] = set()
        self._closed = False

    def run(
        self, base: Mapping[str, str], jobs: Sequence[Mapping[str, Any]], limits: Limits,
        wanted: Callable[[], bool],
    ) -> list[Row]:  # fmt: skip
        """Run points one after the other; return their rows. Stop early once the points are
        unwanted.
        """
        rows: list[Row] = []
        for job in jobs:
            if not wanted():
                break
            child = self._take(limits.memory_bytes)
            if child is None:
                break
            row = child.run(base, job, limits, wanted)
            self._give(child)
            where = f"{socket.gethostname()}:{child.pid}"
            rows.append({**row, "key": job["key"], "worker": where})
        return rows

    def _take(self, memory_bytes: int) -> Child | None:
        with self._lock:
            if self._closed:
                return None
            while self._idle:
                child = self._idle.pop()
                if child.memory_bytes == memory_bytes and child.alive:
                    break
                child.close()
            else:
                child = Child(memory_bytes)
            self._busy.add(child)
            return child

    def _give(self, child: Child) -> None:
        with self._lock:
            self._busy.discard(child)
            if child.alive and not self._closed:
                self._idle.append(child)
            else:
                child.close()

    def close(self) -> None:
        """End all child processes, including those with a point in progress."""
        with self._lock:
            self._closed = True
            for child in self._busy:
                child.kill()
            for child in self._idle:
                child.close()
            self._idle.clear()

    def open(self) -> None:
        """Allow new child processes after `close`."""
        with self._lock:
            self._closed = False


CHILDREN = Children()
"""The child processes of this worker process."""

atexit.register(CHILDREN.close)


def run_batch(
    base: Mapping[str, str], jobs: Sequence[Mapping[str, Any]], limits: tuple[float, int]
) -> list[Row]:
    """Run a batch of points on a Dask worker. This is the Dask task of a sweep."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def wanted() -> bool:
        # A task that its client gave up is cancelled here, or forgotten.
        task = worker.state.tasks.get(key)
        return task is not None and task.state != "cancelled" and worker.status.name != "closed"

    return CHILDREN.run(base, jobs, Limits(*limits), wanted)


def same(value: Any) -> Any:
    """Return the argument. As a Dask task, this function sends the scenario's text to each worker
    once.
    """
    return value
