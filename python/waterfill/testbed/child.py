"""Child programs of the testbed, which read commands from standard input and end with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE

from waterfill.errors import InputError, shown

_END_S = 5.0
# The exit code for wrong input.
_REFUSED = 2


def installed(name: str, variable: str) -> str | None:
    """Find a program by environment variable, next to this Python, or on PATH; return None if
    missing. Raises InputError if the variable names no program.
    """
    given = os.environ.get(variable)
    for path in (given, str(Path(sys.executable).parent / name)):
        if path and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
        if path and path == given:
            problem, advice = (
                f"no program at {shown(path)}",
                f"type the path of {name}, or unset it",
            )
            raise InputError("environment", variable, problem, advice)
    return shutil.which(name)


class Child:
    """A running program, in the namespace of the thread that started it.

    It raises `error` if the program does not start or ends early, `refusal` for wrong input.
    """

    error: type[RuntimeError]
    refusal: type[RuntimeError]

    def __init__(self, name: str, path: str | None, arguments: Sequence[str] = ()) -> None:
        if path is None:
            raise self.error(f"{name} is not installed")
        self._name = name
        self._process = subprocess.Popen([path, *arguments], stdin=PIPE, stdout=PIPE, stderr=PIPE)
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._in, self._out, self._err = (pipe for pipe in pipes if pipe is not None)

    @property
    def pid(self) -> int:
        """Process ID of the program."""
        return self._process.pid

    def close(self) -> None:
        """End the program, which then undoes its work."""
        self._in.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        self.kill()

    def kill(self) -> None:
        """Kill the program and close its pipes."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._in, self._out, self._err):
            with suppress(BrokenPipeError):
                pipe.close()

    def _write(self, line: str) -> None:
        try:
            self._in.write(line.encode() + b"\n")
            self._in.flush()
        except BrokenPipeError:
            self._raise_ended()

    def _raise_ended(self) -> None:
        self._process.wait(_END_S)
        said = self._err.read().decode(errors="replace").strip()
        self.kill()
        code = self._process.returncode
        error = self.refusal if code == _REFUSED else self.error
        raise error(said.splitlines()[-1] if said else f"{self._name} ended with {code}")
