"""Concurrent runs of many scenarios, on threads.

The core computes without the interpreter's lock, so threads suffice. A law in Python takes that
lock for each packet: two runs at once take 1.6 times as long as one after the other, so such runs
share one thread. Runs share nothing: their results do not depend on how many run at once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from waterfill.errors import InputError
from waterfill.runs import backends, interrupt
from waterfill.runs.endpoints import Endpoints
from waterfill.runs.laws import PythonLaw
from waterfill.runs.progress import Tick
from waterfill.runs.result import Result
from waterfill.scenario.document import Scenario

# How often the runs' end is waited for, in between looks at whether they are to end early.
_LOOK_S = 0.1


def run_each(
    scenarios: Mapping[str, Scenario],
    on: str | Mapping[str, str] = "sim",
    progress: Callable[[str, Tick], None] | None = None,
    threads: int | None = None,
    done: Callable[[str, Result], None] | None = None,
    laws: Mapping[str, Mapping[str, PythonLaw]] | None = None,
    refused: Callable[[str, InputError], None] | None = None,
    endpoints: Mapping[str, Endpoints] | None = None,
) -> dict[str, Result]:
    """Run all scenarios on `threads` threads, or one per CPU; return the results in order.

    `on` is a backend, or {name: backend}; with one that measures the host, runs go one by one.
    `progress` is called as (name, tick), from the threads. With `done`, each result is passed to it
    as (name, result), from this thread, when its run ends, and left out of the answer. `laws` and
    `endpoints` are those of the runs that have some, by the run's name. With `refused`, the error
    of a run with wrong input is passed to it as (name, error), and the other runs go on. Ctrl-C
    ends the runs in progress early, as in `backends.run`, and skips those not started. Raises
    InputError as `backends.run` does; the other runs are then abandoned.
    """
    places = dict.fromkeys(scenarios, on) if isinstance(on, str) else on
    if any(backends.backend(place).measures_host for place in set(places.values())):
        threads = 1
    over = threading.Event()

    def one(name: str) -> Result:
        def report(tick: Tick) -> None:
            if over.is_set():
                raise KeyboardInterrupt  # only the main thread gets Ctrl-C; this passes it on
            if progress is not None:
                progress(name, tick)

        own = (laws or {}).get(name)
        return backends.run(
            scenarios[name], on=places[name], progress=report, laws=own,
            endpoints=(endpoints or {}).get(name),
        )  # fmt: skip

    results: dict[str, Result] = {}
    keep = done or results.__setitem__
    count = max(1, min(len(scenarios), threads or cpus()))
    in_python = {name for name in scenarios if (laws or {}).get(name)}
    apart = count > 1 and bool(in_python)
    with ThreadPoolExecutor(count - apart) as pool, ThreadPoolExecutor(1) as single:
        started: dict[Future[Result], str] = {
            (single if apart and name in in_python else pool).submit(one, name): name
            for name in scenarios
        }
        try:
            with interrupt.listening():
                while started:
                    interrupt.check()
                    ended, _ = wait(started, _LOOK_S, FIRST_COMPLETED)
                    for future in ended:
                        error, name = future.exception(), started.pop(future)
                        if refused is not None and isinstance(error, InputError):
                            refused(name, error)
                        else:
                            keep(name, future.result())
        except KeyboardInterrupt:
            pass
        finally:
            # Runs are still in progress only if the user or an error ended the loop.
            over.set()
            for future in started:
                future.cancel()
    for future, name in started.items():
        # A run that was interrupted before it had anything raises KeyboardInterrupt.
        if not future.cancelled() and not isinstance(future.exception(), KeyboardInterrupt):
            keep(name, future.result())
    return {name: results[name] for name in scenarios if name in results}


def cpus() -> int:
    """Return the number of CPUs that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1
