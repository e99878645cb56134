"""Measure the speed of two workers against one, and the overhead per point.

Each pair runs the whole command twice, from the start of the interpreter to the figure: once with
one worker, once with two. The points are CPU-bound, of some seconds each. Both CPUs should be idle:
the load before each pair is printed, and a loop on one CPU beside one on two says what the host
gives at all.

The overhead is that of `--many` short points with one worker: wall time less the points' own, and
the front end's CPU time, both per point.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import waterfill
from validation.study import IDLE, Option, Options, Report, Study
from validation.sweep import scenario
from waterfill.errors import RunError

# Simulated time of a point of some two seconds.
_LONG = "900 s"
_SHORT = "60 ms"
_LOOP = "x = 0\nfor i in range(20_000_000): x += i"


def pair(path: Path, folder: Path, points: int) -> tuple[float, float]:
    """Return the wall times (s) of a sweep with one and with two workers."""
    times = []
    for workers in (1, 2):
        mine = folder / f"{time.time_ns()}"
        words = scenario.command(path, points, mine, "--workers", str(workers))
        started = time.perf_counter()
        subprocess.run(words, check=True, capture_output=True)
        times.append(time.perf_counter() - started)
    return times[0], times[1]


def host() -> float:
    """Return the speed of two processes relative to one on this host. It is about 2 with two idle
    CPUs.
    """
    times = []
    for count in (1, 2):
        started = time.perf_counter()
        running = [subprocess.Popen([sys.executable, "-c", _LOOP]) for _ in range(count)]
        for process in running:
            process.wait()
        times.append(time.perf_counter() - started)
    return 2 * times[0] / times[1]


def overhead(folder: Path, points: int) -> tuple[float, float, float]:
    """Return three times per point in ms: overhead of wall time, the front end's CPU time, and run
    time.
    """
    path = scenario.write(folder, _SHORT)
    wall, cpu = time.perf_counter(), time.process_time()
    grid = {"link.l.delay": f"1..10 ms:{points}"}
    done = waterfill.sweep(path, grid=grid, workers=1, output=folder / "many")
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if len(done) != points or done.failed:
        raise RunError(f"{len(done)} of {points} points ended, {done.failed} of them failed")
    own = sum(done.table["wall_s"].to_pylist())
    return 1e3 * (wall - own) / points, 1e3 * cpu / points, 1e3 * own / points


def work(given: Options) -> Report:
    """Measure the overhead per point, and then pairs of sweeps with one and two workers."""
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        print(line, file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.many:
            more, cpu, own = overhead(folder, given.many)
            say(f"{given.many} points of {own:.2f} ms: {more:.2f} ms of wall time beside, "
                f"{cpu:.2f} ms of the front end's CPU time each; "
                f"load {os.getloadavg()[0]:.1f}")  # fmt: skip
        path = scenario.write(folder, _LONG)
        ratios = []
        for _ in range(given.pairs):
            load, gives = os.getloadavg()[0], host()
            one, two = pair(path, folder, given.points)
            ratios.append(one / two)
            say(f"1 worker {one:.1f} s, 2 workers {two:.1f} s: {one / two:.2f} ×; "
                f"two loops {gives:.2f} ×; load {load:.1f}")  # fmt: skip
    lines += [f"median {statistics.median(ratios):.2f} ×"] if ratios else []
    return Report("\n".join(lines))


STUDY: Study[None, None] = Study(
    shows="two workers are nearly twice as fast as one, and a point costs little more than its run",
    minutes=15,
    needs=(IDLE,),
    options=(
        Option("--pairs", 5, "number of comparisons", low=0),
        Option("--points", 24, "points of each sweep", low=2),
        Option("--many", 10_000, "short points, for the overhead; 0: none", low=0),
    ),
    quick={"pairs": 1, "points": 2, "many": 100},
    work=work,
)
