"""Requests to end this process's runs early. A run checks for them between its slices.

A run that can end early with what there is calls `check` often, inside `listening`. Whoever handles
signals (the command does, in `cli/signals.py`) calls `request`. Without such a handler nothing
is requested, and Python raises KeyboardInterrupt as ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class _State:
    requested: bool = False
    listens: bool = False
    # Commits in progress, and what to do after the last of them.
    critical: int = 0
    after: list[Callable[[], None]] = field(default_factory=list)


_state = _State()


def request() -> None:
    """Ask the runs in progress to end early."""
    _state.requested = True


def requested() -> bool:
    """Return True if the runs in progress were asked to end."""
    return _state.requested


def check() -> None:
    """Raise KeyboardInterrupt if the runs in progress were asked to end."""
    if _state.requested:
        raise KeyboardInterrupt


def listens() -> bool:
    """Return True if a run in progress checks for requests to end."""
    return _state.listens


@contextmanager
def listening(heard: bool = True) -> Iterator[None]:
    """Declare that the code in this context calls `check`, or does not if `heard` is False.

    Signals are handled on the main thread: on others this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, _state.listens = _state.listens, heard
    try:
        yield
    finally:
        _state.listens = before


@contextmanager
def undisturbed() -> Iterator[None]:
    """Postpone interrupts until the code in this context has finished.

    For moments only: renames of files that belong together.
    """
    _state.critical += 1
    try:
        yield
    finally:
        _state.critical -= 1
        if not _state.critical:
            while _state.after:
                _state.after.pop()()


def afterwards(action: Callable[[], None]) -> bool:
    """Postpone `action` while code is `undisturbed`; return True if the action was postponed."""
    if _state.critical:
        _state.after.append(action)
        return True
    return False


def reset() -> None:
    """Forget earlier interrupts; for tests."""
    _state.requested = False
