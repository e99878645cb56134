"""Two workers against one, in pairs, and the overhead per point.

    python -m validation.sweep.scale [--pairs 5] [--points 24] [--many 10000]

Each pair runs the whole command twice, from the start of the interpreter to the figure: once with
one worker, once with two. The points are CPU-bound, of some seconds each. Both CPUs should be idle:
the load before each pair is printed, and a loop on one CPU beside one on two says what the host
gives at all.

The overhead is that of `--many` short points with one worker: wall time less the points' own, and
the front end's CPU time, both per point.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import waterfill
from validation.sweep import scenario

# Simulated time of a point of some two seconds.
_LONG = "900 s"
_SHORT = "60 ms"
_LOOP = "x = 0\nfor i in range(20_000_000): x += i"


def pair(path: Path, folder: Path, points: int) -> tuple[float, float]:
    """Return the wall times (s) with one and with two workers."""
    times = []
    for workers in (1, 2):
        mine = folder / f"{time.time_ns()}"
        words = scenario.command(path, points, mine, "--workers", str(workers))
        started = time.perf_counter()
        subprocess.run(words, check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return times[0], times[1]


def host() -> float:
    """Return how much more two processes compute than one on this host, now: 2 when idle."""
    times = []
    for count in (1, 2):
        started = time.perf_counter()
        running = [subprocess.Popen([sys.executable, "-c", _LOOP]) for _ in range(count)]
        for process in running:
            process.wait()
        times.append(time.perf_counter() - started)
    return 2 * times[0] / times[1]


def overhead(folder: Path, points: int) -> tuple[float, float, float]:
    """Return wall time less the points' own, the front end's CPU time, and the points', in ms."""
    path = scenario.write(folder, _SHORT)
    wall, cpu = time.perf_counter(), time.process_time()
    grid = {"link.l.delay": f"1..10 ms:{points}"}
    done = waterfill.sweep(path, grid=grid, workers=1, output=folder / "many")
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if len(done) != points or done.failed:
        raise SystemExit(f"expected {points} points, got {len(done)} with {done.failed} failed")
    own = sum(done.table["wall_s"].to_pylist())
    return 1e3 * (wall - own) / points, 1e3 * cpu / points, 1e3 * own / points


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="validation.sweep.scale")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--points", type=int, default=24)
    parser.add_argument("--many", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.many:
            more, cpu, own = overhead(folder, given.many)
            print(
                f"{given.many} points of {own:.2f} ms: {more:.2f} ms of wall time beside, "
                f"{cpu:.2f} ms of the front end's CPU time each; load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
        path = scenario.write(folder, _LONG)
        ratios = []
        for _ in range(given.pairs):
            load, gives = os.getloadavg()[0], host()
            one, two = pair(path, folder, given.points)
            ratios.append(one / two)
            print(
                f"1 worker {one:.1f} s, 2 workers {two:.1f} s: {one / two:.2f} ×; "
                f"two loops {gives:.2f} ×; load {load:.1f}",
                flush=True,
            )
    if ratios:
        print(f"median {statistics.median(ratios):.2f} ×")
    return 0


if __name__ == "__main__":
    sys.exit(main())
