"""Fast creation of many objects."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Suspend cyclic garbage collection while many objects are built. Also usable as a decorator.

    Each collection visits every object built so far, none of which is garbage: with 100,000 flows
    that is a third of the time.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
