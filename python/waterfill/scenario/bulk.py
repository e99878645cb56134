"""Building many objects at once."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Suspend the collection of cycles while many objects are built; also a decorator.

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
