"""Measure the speed of a run on N threads, and predict it for more threads than the host has CPUs.

The two networks of bench/networks.py, or the scenarios given, run on one thread and on each number
of threads. Where the host has a CPU for each thread, the wall time is measured. For any number of
threads the parts are also simulated in turn on one thread, window by window, and their CPU time is
measured. The busiest part's time bounds the speed from above. The prediction adds up the slowest
part of each window, and the barrier at its end. Two threads on two CPUs check it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from validation.study import IDLE, ROOT, Option, Options, Report, Study
from validation.tables import markdown
from waterfill import _core
from waterfill.network import protocols, resolve
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import load

# Time of a barrier (s) as in the rule of `run --threads`: its part that does not grow with threads,
# and that of each thread.
BARRIER_S = 0.2e-6
BARRIER_PER_THREAD_S = 0.1e-6


@dataclass
class Cost:
    """Times of a run with one number of threads (s)."""

    threads: int
    wall_s: float
    """Measured wall time; NaN if the host has fewer CPUs."""
    busiest_s: float
    """Time of the busiest part."""
    total_s: float
    """Time of all parts."""
    predicted_s: float
    """Sum over windows of the slowest part's time and the barrier's."""
    windows: int


def built(scenario: Scenario, threads: int) -> tuple[_core.Simulation, int]:
    """Return the simulation of a scenario and the number of threads that it uses."""
    simulation = _core.Simulation(resolve.to_core(scenario, protocols.load(), "sim"))
    return simulation, simulation.set_threads(threads) if threads > 1 else 1


def wall_s(scenario: Scenario, threads: int) -> float:
    """Return the wall time (s) of a run on up to `threads` threads."""
    simulation, _ = built(scenario, threads)
    started = time.perf_counter()
    simulation.advance(scenario.duration)
    return time.perf_counter() - started


def measure(scenario: Scenario, threads: int) -> Cost:
    """Return the times of a run with up to `threads` threads."""
    measured = threads <= len(os.sched_getaffinity(0))
    wall = wall_s(scenario, threads) if measured else float("nan")
    simulation, used = built(scenario, threads)
    turns = simulation.run_in_turns(time.thread_time)
    if turns is None:
        started = time.thread_time()
        simulation.advance(scenario.duration)
        alone_s = time.thread_time() - started
        return Cost(used, wall, alone_s, alone_s, alone_s, 0)
    parts_s, slowest_s, windows = turns
    barrier_s = BARRIER_S + BARRIER_PER_THREAD_S * used
    predicted_s = slowest_s + windows * barrier_s
    return Cost(used, wall, max(parts_s), sum(parts_s), predicted_s, windows)


def best(costs: Sequence[Cost]) -> Cost:
    """Return the shortest times of runs with the same number of threads."""
    columns = ((c.wall_s, c.busiest_s, c.total_s, c.predicted_s) for c in costs)
    wall, busiest, total, predicted = map(min, zip(*columns, strict=True))
    return Cost(costs[0].threads, wall, busiest, total, predicted, costs[0].windows)


def table(costs: Sequence[Cost]) -> str:
    """Return a table with a row per number of threads, beginning with one thread."""
    alone_s = costs[0].busiest_s
    rows = []
    for cost in costs:
        times = (cost.wall_s, cost.total_s, cost.busiest_s, cost.predicted_s)
        cells = ["—" if x != x else f"{x:.2f}" for x in (*times, *(alone_s / x for x in times))]
        del cells[5]  # the total has no ratio
        rows.append([cost.threads, *cells, cost.windows])
    head = (
        "threads:|wall s:|all parts s:|busiest part s:|predicted s:"
        "|faster, measured:|faster, busiest part:|faster, predicted:|windows:"
    )
    return markdown(head, rows)


def work(options: Options) -> Report:
    """Measure every network with each number of threads in turn."""
    parts = [f"{len(os.sched_getaffinity(0))} CPUs, load average {os.getloadavg()[0]:.1f}"]
    if not options.files:
        subprocess.run([sys.executable, ROOT / "bench" / "networks.py"], check=True)
    for path in map(Path, options.files or sorted(ROOT.glob("out/bench/*.toml"))):
        scenario = load(path)
        numbers = (1, *options.threads)
        rounds = [[measure(scenario, n) for n in numbers] for _ in range(options.rounds)]
        costs = [best(turns) for turns in zip(*rounds, strict=True)]
        parts.append(f"{path.name}\n\n{table(costs)}")
    return Report("\n\n".join(parts))


STUDY: Study[None, None] = Study(
    shows="the speed of a run on 1 to 64 threads, and a prediction with a CPU for each",
    minutes=5,
    needs=(IDLE,),
    options=(
        Option("files", (), "scenarios; default: those of bench/networks.py"),
        Option("--threads", (2, 4, 8, 16, 32, 64), "numbers of threads", low=2),
        Option("--rounds", 3, "runs of each, in turns", low=1),
    ),
    quick={"threads": (2,), "rounds": 1},
    work=work,
)
