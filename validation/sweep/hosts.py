"""Run a sweep over two network namespaces, with the scheduler in one and a worker in each.

The front end runs in the namespace without the scheduler. The answer is the number of points that
each worker ran. The namespaces are removed in the end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import polars

from validation.study import ROOT_USER, Option, Options, Report, Study, tool
from validation.sweep import scenario
from waterfill.errors import RunError

_NETWORK = "192.0.2"  # reserved for documentation
_PORT = 8786


def ip(words: str) -> None:
    """Run the `ip` command with the given arguments."""
    subprocess.run(["ip", *words.split()], check=True)


def work(given: Options) -> Report:
    """Run the sweep and check that both hosts ran points and that no point is missing."""
    names = [f"wfsweep{os.getpid()}{side}" for side in "ab"]
    running: list[subprocess.Popen[bytes]] = []

    def start(name: str, module: str, *more: str) -> None:
        words = ["ip", "netns", "exec", name, sys.executable, "-m", module, *more]
        running.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=log))

    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "log", "wb") as log:
        try:
            for name in names:
                ip(f"netns add {name}")
            # Names of devices have at most 15 characters.
            ip(f"link add eth0 netns {names[0]} type veth peer name eth0 netns {names[1]}")
            for number, name in enumerate(names, 1):
                ip(f"-n {name} address add {_NETWORK}.{number}/24 dev eth0")
                ip(f"-n {name} link set eth0 up")
                ip(f"-n {name} link set lo up")
            address = f"tcp://{_NETWORK}.1:{_PORT}"
            scheduler = ("--host", f"{_NETWORK}.1", "--port", str(_PORT), "--no-dashboard")
            start(names[0], "distributed.cli.dask_scheduler", *scheduler, "--no-show")
            time.sleep(3)
            for number, name in enumerate(names, 1):
                mine = ("--host", f"{_NETWORK}.{number}", "--nthreads", "1", "--no-dashboard")
                start(name, "distributed.cli.dask_worker", address, *mine, "--no-nanny")
            path = scenario.write(Path(folder), "2 s")
            out = Path(folder) / "out"
            words = scenario.command(path, given.points, out, "--cluster", address)
            started = time.monotonic()
            front = ["ip", "netns", "exec", names[1], *words]
            ran = subprocess.run(front, capture_output=True, text=True, timeout=600)
            took_s = time.monotonic() - started
            if ran.returncode:
                print((Path(folder) / "log").read_text()[-2000:], file=sys.stderr)
                raise RunError(ran.stderr)
            rows = polars.read_parquet(out / "points" / "part-*.parquet")
            where = Counter(rows["worker"].to_list())
        finally:
            for process in reversed(running):
                process.terminate()
                process.wait()
            for name in names:
                subprocess.run(["ip", "netns", "delete", name], check=False)
    done = rows.filter(rows["status"] == "done")["key"].n_unique()
    counts = " and ".join(map(str, sorted(where.values())))
    text = f"{done} of {given.points} points in {took_s:.1f} s; the workers ran {counts}"
    good = done == len(rows) == given.points and len(where) == 2
    return Report(text, failed=() if good else ["points are missing, or a host ran none"])


STUDY: Study[None, None] = Study(
    shows="a sweep over two network namespaces runs each point once",
    minutes=1,
    needs=(ROOT_USER, tool("ip", "apt-get install iproute2")),
    options=(Option("--points", 40, "number of points", low=2),),
    work=work,
)
