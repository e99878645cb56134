"""Estimate the speed of a simulation on N threads, if each thread had a CPU.

The two networks of bench/networks.py, or the scenarios given, run on one thread and on each number
of threads, on however few CPUs this host has. A run cannot be faster than its busiest thread's CPU
time, which is measured; that of one thread over it is the estimate. It holds the division's
balance, packets handed over, and the spinning at barriers, of which there is more the fewer CPUs
there are. It leaves out what threads do to each other's caches and memory.
Two threads on two CPUs check it: there the wall times are measured too.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
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

# Often enough that little of a thread's last milliseconds is missed.
SAMPLE_S = 0.002


@dataclass
class Cost:
    """Wall and CPU times of a run."""

    threads: int
    wall_s: float
    busiest_s: float
    """CPU time of the busiest thread, in seconds."""
    total_s: float
    """CPU time of all threads, in seconds."""


def cpu_times_s() -> dict[int, float]:
    """Return the CPU time (s) of each thread of this process, by thread id."""
    found = {}
    for name in os.listdir("/proc/self/task"):
        try:
            text = Path(f"/proc/self/task/{name}/schedstat").read_text()
        except OSError:  # it has ended
            continue
        found[int(name)] = int(text.split()[0]) / 1e9
    return found


def run(scenario: Scenario, threads: int) -> Cost:
    """Run a scenario on up to `threads` threads and return its times."""
    resolved = resolve.to_core(scenario, protocols.load(), "sim")
    simulation = _core.Simulation(resolved)
    used = simulation.set_threads(threads) if threads > 1 else 1
    before, own = cpu_times_s(), {}
    ended = threading.Event()
    watcher = 0

    def watch() -> None:
        nonlocal watcher
        watcher = threading.get_native_id()
        while not ended.wait(SAMPLE_S):
            own.update(cpu_times_s())

    sampling = threading.Thread(target=watch)
    sampling.start()
    started = time.perf_counter()
    simulation.advance(scenario.duration)
    wall_s = time.perf_counter() - started
    own.update(cpu_times_s())
    ended.set()
    sampling.join()
    spent = [cpu_s - before.get(id, 0.0) for id, cpu_s in own.items() if id != watcher]
    return Cost(used, wall_s, max(spent), sum(spent))


def median(costs: Sequence[Cost]) -> Cost:
    """Return the median times of runs with the same number of threads."""
    walls, busiest, totals = zip(
        *((one.wall_s, one.busiest_s, one.total_s) for one in costs), strict=True
    )
    middle = statistics.median
    return Cost(costs[0].threads, middle(walls), middle(busiest), middle(totals))


def table(costs: Sequence[Cost]) -> str:
    """Return a table with a row per number of threads, beginning with one thread."""
    alone = costs[0]
    faster = ((alone.wall_s / cost.wall_s, alone.busiest_s / cost.busiest_s) for cost in costs)
    rows = (
        [cost.threads, *(f"{x:.2f}" for x in (cost.wall_s, cost.total_s, cost.busiest_s, *ratios))]
        for cost, ratios in zip(costs, faster, strict=True)
    )
    head = "threads:|wall s:|CPU s:|busiest thread s:|faster, measured:|faster, a CPU for each:"
    return markdown(head, rows)


def work(options: Options) -> Report:
    """Measure every network with each number of threads in turn."""
    parts = [f"{len(os.sched_getaffinity(0))} CPUs, load average {os.getloadavg()[0]:.1f}"]
    if not options.files:
        subprocess.run([sys.executable, ROOT / "bench" / "networks.py"], check=True)
    for path in map(Path, options.files or sorted(ROOT.glob("out/bench/*.toml"))):
        scenario = load(path)
        numbers = (1, *options.threads)
        rounds = [[run(scenario, number) for number in numbers] for _ in range(options.rounds)]
        costs = [median(turns) for turns in zip(*rounds, strict=True)]
        parts.append(f"{path.name}\n\n{table(costs)}")
    return Report("\n\n".join(parts))


STUDY: Study[None, None] = Study(
    shows="the speed of a run on 1 to 64 threads, and an estimate with a CPU for each",
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
