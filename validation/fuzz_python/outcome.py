"""Allowed outcomes of reading an input: a result, or a refusal in one sentence."""

from __future__ import annotations

import re
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from waterfill.errors import InputError, RunError

T = TypeVar("T")

MAX_MESSAGE = 1500
# What a message shows that was never written for a user: a class, an address, a panic.
_RAW = re.compile(
    r"\b[A-Z][a-zA-Z]*Error\b|Traceback|object at 0x|panicked|\bunwrap\b|<class '|NoneType"
)


class Finding(AssertionError):
    """Raised for a forbidden outcome. Each defect has a name, which stays the same between
    executions.
    """

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}")
        self.name = name


class OutOfTime(BaseException):
    """Raised in the main thread when an execution takes too long."""


def read(make: Callable[[], T], quoted: str = "") -> T | None:
    """Return the result of `make`, or None if it refuses the input. Raises Finding for any other
    outcome.

    `quoted` is text of the input, which a message may quote.
    """
    try:
        return make()
    except (InputError, RunError) as error:
        _check(str(error), quoted)
        return None
    except (Finding, OutOfTime):
        raise
    except MemoryError:
        raise Finding("memory", "more memory asked for than the limit") from None
    except BaseException as error:
        raise Finding(_name(error), f"{type(error).__name__}: {str(error)[:200]}") from error


def _check(message: str, quoted: str) -> None:
    if not message or len(message) > MAX_MESSAGE or "\n" in message:
        raise Finding("message is none, too long, or of several lines", message[:300])
    raw = _RAW.search(message)
    if raw is not None and raw[0] not in quoted:
        raise Finding(f"raw message: {raw[0]}", message[:300])


def _name(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "/waterfill/" in f.filename] or frames[-1:]
    where = f"{own[-1].filename.rpartition('/waterfill/')[2]}:{own[-1].name}" if own else "?"
    return f"{type(error).__name__} in {where}"


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise OutOfTime if the code in the context needs more than `seconds` of CPU time.

    Other programs' load does not count. Code that waits, such as for a lock, is ended after twenty
    times as long. Works only in the main thread.
    """

    def late(_signal: int, _frame: FrameType | None) -> None:
        raise OutOfTime

    timers = {
        signal.ITIMER_PROF: (signal.SIGPROF, seconds),
        signal.ITIMER_REAL: (signal.SIGALRM, 20 * seconds),
    }
    before = {number: signal.signal(number, late) for number, _ in timers.values()}
    for timer, (_, after_s) in timers.items():
        signal.setitimer(timer, after_s)
    try:
        yield
    finally:
        for timer in timers:
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
