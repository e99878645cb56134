"""Process of the command: its standard streams, and its handling of signals.

Ctrl-C, SIGTERM and SIGHUP end a run early, with what there is; wherever nothing listens, and at
the second signal, they end the process at once, after what was being written has been removed.
The exit code is 128 and the signal's number. Nothing is imported here that Python has not loaded
itself: a signal in the first milliseconds is to find the handler installed.
"""

from __future__ import annotations

import atexit
import io
import os
import sys

# `signal` imports `enum` and `functools`: 25 ms in which Ctrl-C would print a traceback.
_signal = sys.modules["_signal"]
_ENDING = tuple(
    getattr(_signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(_signal, name)
)
_SHOW_CURSOR = b"\x1b[?25h"
_SIGNALLED = 128
INTERRUPTED = 130

_received: list[int] = []


def begin() -> None:
    """Install the signal handlers, and open any missing standard stream."""
    for number in _ENDING:
        if _signal.getsignal(number) is not _signal.SIG_IGN:  # ignored: nohup, or in background
            _signal.signal(number, _end)
    # What is registered first is called last: then the interpreter would restore default actions.
    atexit.register(_ignore)
    _open_streams()


def finish() -> None:
    """Make signals end the process at once from now on, because the command's work is done."""
    for number in _ENDING:
        if _signal.getsignal(number) is _end:
            _signal.signal(number, lambda n, _, leave=os._exit: leave(_SIGNALLED + n))


def _ignore() -> None:
    for number in _ENDING:
        _signal.signal(number, _signal.SIG_IGN)


def exit_code(code: int) -> int:
    """Return `code`, or 128 plus the signal's number if a signal interrupted the command."""
    return _SIGNALLED + _received[0] if code == INTERRUPTED and _received else code


def _end(number: int, _: object) -> None:
    first = not _received
    _received.append(number)
    # Looked up, and its functions too, since the signal may come while it is being imported.
    interrupt = sys.modules.get("waterfill.runs.interrupt")
    listens = getattr(interrupt, "listens", None)
    if first and listens is not None and listens():
        interrupt.request()  # type: ignore[union-attr]
        return
    afterwards = getattr(interrupt, "afterwards", None)
    if afterwards is None or not afterwards(_leave):
        _leave()


def _leave() -> None:
    abandon = getattr(sys.modules.get("waterfill.runs.files"), "abandon", None)
    try:
        if abandon is not None:
            abandon()
        if "rich.progress" in sys.modules and os.isatty(2):
            os.write(2, _SHOW_CURSOR)  # a live display hides it
    finally:
        os._exit(_SIGNALLED + _received[0])


# --- streams -----------------------------------------------------------------------------------


class _Lossy(io.RawIOBase):
    """Raw standard error that drops unwritable text, so that the answer and files are not lost."""

    def __init__(self, number: int) -> None:
        self._number = number

    def fileno(self) -> int:
        return self._number

    def isatty(self) -> bool:
        return os.isatty(self._number)

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        view = memoryview(data)  # type: ignore[arg-type]
        size, left = view.nbytes, view.cast("B")
        try:
            while left:
                left = left[os.write(self._number, left) :]
        except OSError:
            pass
        return size


def _open_streams() -> None:
    """Open the standard streams that the caller closed, before other files take their numbers."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # Standard output for reading: writing to it fails, and is reported.
            os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_RDWR)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(io.FileIO(1, "w", closefd=False)), "utf-8", "backslashreplace"
        )
    if sys.stderr is sys.__stderr__:  # one that a caller has put there is the caller's
        encoding = getattr(sys.stderr, "encoding", "utf-8")
        sys.stderr = io.TextIOWrapper(
            _Lossy(2), encoding, "backslashreplace", line_buffering=True, write_through=True
        )
