"""Compares the engine's speed with another commit's, in pairs: `make bench BASE=COMMIT`.

    python bench/compare.py BASE [CASE …] [--pairs N]

Builds the bench of both, runs them in turn (base, this, this, base, …) and compares CPU seconds of
the whole process pair by pair: a host that becomes slower meanwhile slows both down.

Exit codes: 0 done, 1 a case is more than 10 % slower, 2 wrong input (one line), 130 interrupted.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from measure import CASES, ROOT, SLOWER, Refused, build, command, run, watched

OUT = ROOT / "target" / "bench"


class Timed(NamedTuple):
    """One run: CPU seconds of the process, less its calibration; packets over all links."""

    cpu_s: float
    hops: float


class Pair(NamedTuple):
    """One run of either program."""

    base: Timed
    this: Timed

    @property
    def speed(self) -> float:
        """Return this program's packets per second of CPU time over the base's."""
        return (self.this.hops / self.this.cpu_s) / (self.base.hops / self.base.cpu_s)


def made_now(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
    """Give a file the present time, because cargo skips files older than its last build."""
    return tarfile.data_filter(member.replace(mtime=time.time(), deep=False), path)


def base_program(base: str) -> tuple[str, Path]:
    """Build the bench of a commit; return the commit's short name and the program's path."""
    try:
        name = run(["git", "rev-parse", "--short=12", "--verify", f"{base}^{{commit}}"], cwd=ROOT,
                   stderr=subprocess.DEVNULL).strip()  # fmt: skip
    except Refused:
        raise Refused(f"BASE: must be a commit, got {base!r}") from None
    program = OUT / f"waterfill-bench-{name}"
    if not program.exists():
        tree = OUT / "tree"
        run(["rm", "-rf", str(tree)])
        archive = subprocess.run(
            ["git", "archive", name], cwd=ROOT, stdout=subprocess.PIPE, check=True
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(tree, filter=made_now)
        # One folder for every base: its dependencies are compiled once.
        build(tree, OUT / "build").rename(program)
    return name, program


def timed(program: Path, case: str) -> Timed | None:
    """Run one case; None if the program does not have it."""
    process = watched([str(program), case])
    runs = json.loads(process.text)["runs"] if process.code == 0 else []
    if not runs:
        return None
    # Programs of before November 2026 state the hops as a speed.
    hops = runs[0].get("packet_hops") or runs[0]["packet_hops_per_s"] * runs[0]["wall_s"]
    calibration_s = runs[0].get("calibration_cpu_s", 0.0)
    return Timed(process.cpu_s - calibration_s, hops)


def pairs(base: Path, this: Path, case: str, count: int) -> list[Pair]:
    """Run a case in pairs, each program first in every other; empty if one lacks the case."""
    found = []
    for i in range(count):
        order = [base, this] if i % 2 == 0 else [this, base]
        runs = {program: timed(program, case) for program in order}
        one, other = runs[base], runs[this]
        if one is None or other is None:
            return []
        found.append(Pair(one, other))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Compare and print a line per case; return the exit code."""
    parser = argparse.ArgumentParser(prog="bench-compare", description=__doc__.splitlines()[0])
    parser.add_argument("base", metavar="BASE", help="the commit to compare with")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="default: the packet engine's")
    parser.add_argument("--pairs", type=int, default=5, help="runs of either (default: 5)")
    options = parser.parse_args(argv)
    if options.pairs < 1:
        raise Refused("--pairs: must be at least 1")
    this = build()
    name, base = base_program(options.base)
    print(f"{'case':16} {'speed over ' + name:>24} {'pairs from':>10} {'to':>6}")
    late = []
    for case in options.cases or CASES:
        found = pairs(base, this, case, options.pairs)
        if not found:
            print(f"{case:16} {'not in both':>24}")
            continue
        speeds = [pair.speed for pair in found]
        middle = statistics.median(speeds)
        # The same packets, or the two did different work.
        same = all(round(pair.base.hops) == round(pair.this.hops) for pair in found)
        note = "" if same else "  different packets: compared per packet"
        print(f"{case:16} {middle:24.3f} {min(speeds):10.3f} {max(speeds):6.3f}{note}", flush=True)
        if middle < 1 - SLOWER:
            late.append(case)
    if late:
        print(f"bench: more than 10 % slower than {name}: {', '.join(late)}", file=sys.stderr)
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(command(main))
