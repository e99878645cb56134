"""The core computes without the interpreter's lock: other threads of Python run meanwhile."""

from __future__ import annotations

import sys
import threading

import pytest

from waterfill import _core
from waterfill.network import protocols, resolve
from waterfill.scenario.loading import from_dict

SCENARIO = {
    "duration": "1000 s",
    "protocol": "maxnet",
    "link": [{"name": "l", "from": "a", "to": "b", "rate": "100 Mbit/s", "delay": "5 ms"}],
    "flow": [{"name": "f", "path": ["l"]}],
}


@pytest.fixture
def only_released_locks():
    """Forbid threads to take the lock from another: it is passed on only where it is released."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("engine", [_core.Simulation, _core.Fluid])
def test_another_thread_runs_while_the_core_advances(only_released_locks, engine):
    run = engine(resolve.to_core(from_dict(SCENARIO), protocols.load()))
    go, turns = threading.Lock(), []
    go.acquire()
    other = threading.Thread(target=lambda: (go.acquire(), turns.append(1)))
    other.start()
    try:
        go.release()  # the other may run as soon as it gets the interpreter's lock
        assert turns == []
        for second in range(1, 1001):
            run.advance(second)
            if turns:
                break
        assert turns == [1], "1,000 calls never released the lock"
    finally:
        sys.setswitchinterval(0.005)
        other.join()
