"""Compare runs on several threads with runs on one, byte for byte: `make threads`.

    python -m validation.threads [--threads 2,3] [--seconds S] [SCENARIO …]

Every scenario of examples/ and papers/, or those given, runs on one thread and on each number of
threads. Summaries (without wall times) and all columns of the series have to be the same bytes.
`--seconds` ends runs at that simulated time. A scenario whose network cannot be divided is listed
with one thread. Exits with 1 if a byte differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from waterfill import _core
from waterfill.network import protocols, resolve
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import load

ROOT = Path(__file__).parents[1]


def scenarios() -> list[Path]:
    """Return the scenario files of examples/ and papers/."""
    return [*sorted(ROOT.glob("examples/*.toml")), *sorted(ROOT.glob("papers/*/*/scenario.toml"))]


def run(scenario: Scenario, threads: int, seconds: float) -> tuple[str, int, float]:
    """Return the hash of all that a run gives, the threads that it used, and its wall time."""
    resolved = resolve.to_core(scenario, protocols.load(), "sim")
    simulation = _core.Simulation(resolved)
    used = simulation.set_threads(threads) if threads > 1 else 1
    started = time.perf_counter()
    simulation.advance(min(seconds, scenario.duration))
    took_s = time.perf_counter() - started
    summary = simulation.summary()
    summary["engine"]["wall_s"] = 0.0
    digest = hashlib.sha256(json.dumps(summary).encode())
    for which in ("flows", "links", "traffic"):
        for name, (kind, column) in simulation.series(which).items():
            digest.update(f"{name} {kind}".encode() + bytes(column))
    return digest.hexdigest(), used, took_s


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row per scenario and number of threads; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", default="2,3", help="numbers of threads to compare with one")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="simulated time")
    parser.add_argument("files", nargs="*", type=Path)
    chosen = parser.parse_args(arguments)
    differ = divided = 0
    for path in chosen.files or scenarios():
        scenario = load(path)
        one, _, alone_s = run(scenario, 1, chosen.seconds)
        for threads in map(int, chosen.threads.split(",")):
            several, used, took_s = run(scenario, threads, chosen.seconds)
            same = several == one
            differ += not same
            divided += used > 1
            name = path.resolve().relative_to(ROOT).as_posix()
            verdict = "same bytes" if same else "DIFFERENT"
            print(f"{name:60} {used} threads  {alone_s:7.2f} s → {took_s:7.2f} s  {verdict}")
            sys.stdout.flush()
    print(f"{divided} runs on several threads, {differ} with other bytes")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
