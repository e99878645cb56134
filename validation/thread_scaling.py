"""Estimate how fast N threads simulate one network with a CPU each: `make thread-scaling`.

    python -m validation.thread_scaling [--threads 2,4,16] [--rounds N] [SCENARIO …]

Each scenario of bench/scenarios, or those given, runs on one thread and on each number of threads,
on however few CPUs this host has. A run cannot be faster than its busiest thread's CPU time, which
is measured; that of one thread over it is the estimate. It holds the division's balance, packets
handed over, the reading of other threads' logs, and the spinning at barriers, of which there is
more the fewer CPUs there are. It leaves out what threads do to each other's caches and memory.
Two threads on two CPUs check it: there the wall times are measured too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from waterfill import _core
from waterfill.network import protocols, resolve
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import load

ROOT = Path(__file__).parents[1]
# Often enough that little of a thread's last milliseconds is missed.
SAMPLE_S = 0.002


@dataclass
class Cost:
    """Times of a run."""

    threads: int
    wall_s: float
    busiest_s: float
    """CPU time of the thread that used most."""
    total_s: float
    """CPU time of all threads."""


def cpu_times_s() -> dict[int, float]:
    """Return the CPU time of each thread of this process, by its id."""
    found = {}
    for name in os.listdir("/proc/self/task"):
        try:
            text = Path(f"/proc/self/task/{name}/schedstat").read_text()
        except OSError:  # it has ended
            continue
        found[int(name)] = int(text.split()[0]) / 1e9
    return found


def run(scenario: Scenario, threads: int) -> Cost:
    """Run a scenario on up to this number of threads."""
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
    """Return the medians of runs with the same number of threads."""
    walls, busiest, totals = zip(
        *((one.wall_s, one.busiest_s, one.total_s) for one in costs), strict=True
    )
    middle = statistics.median
    return Cost(costs[0].threads, middle(walls), middle(busiest), middle(totals))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row per scenario and number of threads."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", default="2,4,8,16,32,64", help="numbers of threads")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each, in turns")
    parser.add_argument("files", nargs="*", type=Path)
    chosen = parser.parse_args(arguments)
    numbers = [1, *map(int, chosen.threads.split(","))]
    load_average = os.getloadavg()[0]
    print(f"{len(os.sched_getaffinity(0))} CPUs, load average {load_average:.1f}")
    for path in chosen.files or sorted(ROOT.glob("bench/scenarios/*.toml")):
        scenario = load(path)
        rounds = [[run(scenario, number) for number in numbers] for _ in range(chosen.rounds)]
        costs = [median(turns) for turns in zip(*rounds, strict=True)]
        alone = costs[0]
        print(f"\n{path.name}\n\n| threads | wall s | CPU s | busiest thread s | faster, measured "
              "| faster, a CPU for each |\n|--:|--:|--:|--:|--:|--:|")  # fmt: skip
        for cost in costs:
            print(
                f"| {cost.threads} | {cost.wall_s:.2f} | {cost.total_s:.2f} "
                f"| {cost.busiest_s:.2f} | {alone.wall_s / cost.wall_s:.2f} "
                f"| {alone.busiest_s / cost.busiest_s:.2f} |"
            )
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
