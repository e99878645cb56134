"""Kill a sweep's workers, point processes, scheduler and front end at random.

Whatever was killed (SIGKILL) is started again, as a person or a service manager would, the front
end with the same command. In the end the dataset must hold exactly the points of the sweep, each
once and with figures, and no process may be left.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import polars

from validation.study import Option, Options, Report, Study
from validation.sweep import scenario
from waterfill.errors import RunError

_PORT = 28786
_DURATION = "4 s"
_ADDRESS = f"tcp://127.0.0.1:{_PORT}"
_PAUSE_S = (1.0, 4.0)
_LIMIT_S = 1800.0


def children(pid: int) -> list[int]:
    """Return the child processes of a process and all its threads."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            found += [int(word) for word in path.read_text().split()]
    return found


class Processes:
    """The scheduler, two workers and the front end of a sweep, each restarted after it dies."""

    def __init__(self, front: list[str], log: Path) -> None:
        python = [sys.executable, "-m"]
        worker = [*python, "distributed.cli.dask_worker", _ADDRESS, "--no-nanny", "--no-dashboard"]
        worker += ["--nthreads", "1", "--death-timeout", "30", "--host", "127.0.0.1"]
        self._words = {
            "scheduler": [
                *(*python, "distributed.cli.dask_scheduler", "--host", "127.0.0.1"),
                *("--port", str(_PORT), "--no-dashboard", "--no-show"),
            ],
            "worker 1": worker,
            "worker 2": worker,
            "front end": front,
        }
        self._log = log
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def keep(self) -> bool:
        """Start the processes that are not running. Return False once the front end
        has finished.
        """
        for name, words in self._words.items():
            process = self.running.get(name)
            if process is not None and process.poll() is None:
                continue
            if name == "front end" and process is not None and process.returncode == 0:
                return False
            with self._log.open("ab") as log:
                self.running[name] = subprocess.Popen(words, stdout=log, stderr=log)
        return True

    def end(self) -> None:
        """Kill all processes that are still running."""
        for process in self.running.values():
            if process.poll() is None:
                process.kill()
            process.wait()


def work(given: Options) -> Report:
    """Run a sweep while killing its processes, and compare the dataset with the expected one."""
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = scenario.write(folder, _DURATION)
        front = scenario.command(path, given.points, folder / "out", "--cluster", _ADDRESS)
        processes = Processes(front, folder / "log")
        killed: Counter[str] = Counter()
        started = time.monotonic()
        pause = started + 10
        point_processes: set[int] = set()
        try:
            while processes.keep():
                time.sleep(0.1)
                for name in ("worker 1", "worker 2"):
                    point_processes.update(children(processes.running[name].pid))
                if time.monotonic() - started > _LIMIT_S:
                    print((folder / "log").read_text()[-2000:], file=sys.stderr)
                    raise RunError("did not end in time")
                if sum(killed.values()) >= given.kills or time.monotonic() < pause:
                    continue
                pause = time.monotonic() + chance.uniform(*_PAUSE_S)
                victim = chance.choice([*processes.running, "point"])
                pids = (
                    [pid for w in (1, 2) for pid in children(processes.running[f"worker {w}"].pid)]
                    if victim == "point"
                    else [processes.running[victim].pid]
                )
                if not pids:
                    continue
                os.kill(chance.choice(pids), signal.SIGKILL)
                killed[victim.partition(" ")[0]] += 1
        finally:
            processes.end()
        took_s = time.monotonic() - started
        rows = polars.read_parquet(folder / "out" / "points" / "part-*.parquet")
        keys, unique = len(rows), rows["key"].n_unique()
        delays = rows["link.l.delay"].n_unique()
        failed = rows.filter(polars.col("status") != "done")
        for line in failed.select("status", "error").rows()[:5]:
            print(*line, file=sys.stderr)
    time.sleep(2)
    left = [pid for pid in point_processes if Path(f"/proc/{pid}").exists()]
    what = ", ".join(f"{count} × {name}" for name, count in sorted(killed.items()))
    text = (
        f"seed {given.seed}: killed {what} in {took_s:.0f} s: {keys} rows, {unique} keys, {delays} "
        f"delays of {given.points}; {len(failed)} failed; {len(left)} processes left"
    )
    good = keys == unique == delays == given.points and not left and failed.is_empty()
    return Report(text, failed=() if good else ["the dataset or the processes are wrong"])


STUDY: Study[None, None] = Study(
    shows="a sweep whose workers, scheduler and front end are killed has each point once",
    minutes=2,
    options=(
        Option("--kills", 20, "number of processes to kill", low=1),
        Option("--points", 800, "number of points", low=1),
        Option("--seed", 1, "of the choices"),
    ),
    quick={"kills": 3, "points": 100},
    work=work,
)
