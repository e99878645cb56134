"""Front end of a run, which starts the process tree, follows its output, and ensures its end."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from waterfill.errors import RunError
from waterfill.runs import interrupt
from waterfill.runs.progress import Report, Tick
from waterfill.runs.result import Document
from waterfill.testbed.answer import Answer

# How long after `stop` the tree may take to return its results so far.
_STOP_S = 10.0
# How often it is looked whether the run is to end early.
_LOOK_S = 0.1


class Refusal(RunError):
    """Error for a daemon's refusal of a scenario. The text is the daemon's message."""


def run(job: Document, duration_s: float, progress: Report | None) -> Answer:
    """Run a job in its own process tree and return its answer.

    Ctrl-C ends it early with the results so far; a second one kills it. Raises RunError, and
    Refusal if the input is wrong.
    """
    command = [sys.executable, "-m", "waterfill.testbed.inside"]
    began = time.monotonic()
    # Its own session: Ctrl-C reaches this process only, which then stops the tree.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, cwd="/",
        env=_environment(Path(__file__).parents[2]),
    ) as process:  # fmt: skip
        running = False

        def ticked(tick: Tick) -> None:
            nonlocal running
            running = True
            if progress is not None:
                progress(tick)

        try:
            _send(process, json.dumps(job))
            try:
                with interrupt.listening():
                    return _follow(process, began, duration_s, ticked)
            except KeyboardInterrupt:
                if not running:
                    raise  # while the network was being built: there is nothing yet
                _send(process, "stop")
                return _follow(process, began, duration_s, None, time.monotonic() + _STOP_S)
        finally:
            # The init is killed with its parent, and the tree with its init.
            process.kill()


def _environment(package_root: Path) -> dict[str, str]:
    paths = [str(package_root), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}


def _follow(
    process: subprocess.Popen[str],
    began: float,
    duration_s: float,
    progress: Report | None,
    until: float | None = None,
) -> Answer:
    """Return the process tree's answer. Without `until`, stop when the run is interrupted."""
    for line in _lines(_pipe(process.stdout).fileno(), until):
        message: dict[str, Any] = json.loads(line)
        if "result" in message:
            return Answer.read(message["result"])
        if "refused" in message:
            raise Refusal(message["refused"])
        if "error" in message:
            if os.environ.get("WATERFILL_DEBUG"):
                print(message["traceback"], file=sys.stderr)
            raise RunError(f"linux: {message['error']}")
        if progress is not None:
            progress(Tick(message["progress"], duration_s, 0, time.monotonic() - began))
    process.wait(_STOP_S)
    said = _pipe(process.stderr).read().strip()
    why = said.splitlines()[-1] if said else f"exit code {process.returncode}"
    raise RunError(f"linux: the testbed ended early: {why}")


def _lines(descriptor: int, until: float | None) -> Iterator[bytes]:
    """Yield the lines of a pipe. An interrupt is raised only between lines."""
    text = bytearray()
    while True:
        if until is None:
            if not text:
                interrupt.check()
        elif time.monotonic() > until:
            raise RunError(f"linux: the testbed did not stop within {_STOP_S:g} s")
        if not select.select([descriptor], [], [], _LOOK_S)[0]:
            continue
        some = os.read(descriptor, 1 << 16)
        if not some:
            return
        *ended, rest = some.split(b"\n")
        for piece in ended:
            yield bytes(text + piece)
            text.clear()
        text += rest


def _send(process: subprocess.Popen[str], line: str) -> None:
    try:
        pipe = _pipe(process.stdin)
        pipe.write(line + "\n")
        pipe.flush()
    except BrokenPipeError:
        return  # it has ended; its output says why


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
