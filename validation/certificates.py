"""Certificates of every law: `make certificates`.

Logs the steps of each law on the simulator and the fluid model, and, as root with `waterfilld` and
bpftool, of laws' routers in the kernel (`kernel_steps`) and of their hosts (`host_steps`), and
checks them with `waterfill verify`'s equations. Prints a table. Exit code 1: a step was wrong.
`--keep` keeps the kernel's logs, for `make certificate-mutants STEPS=…`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from validation import host_steps, kernel_steps
from waterfill import run, verify
from waterfill.runs.steps import FILE_NAME, StepLog


def scenario(law: str) -> dict[str, Any]:
    """Two bottlenecks, a long flow and two short ones, one of which starts late and weighs two."""
    return {
        "duration": "20 s",
        "protocol": law,
        "link": [
            {"name": "one", "from": "a", "to": "b", "rate": "20 Mbit/s", "delay": "4 ms"},
            {"name": "two", "from": "b", "to": "c", "rate": "15 Mbit/s", "delay": "9 ms"},
        ],
        "flow": [
            {"name": "long", "path": ["one", "two"]},
            {"name": "first", "path": ["one"]},
            {"name": "second", "path": ["two"], "start": "2 s", "weight": 2},
        ],
    }


def logged(law: str, backend: str, rows: int, folder: Path) -> Path:
    """Run a law and return the log of its first steps."""
    file = folder / FILE_NAME
    run(scenario(law), on=backend, steps=StepLog(file, rows))
    return file


# ------------------------------------------------------------------ the table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000, help="steps of each law and backend")
    parser.add_argument("--kernel-steps", type=int, default=300_000, help="of each router")
    parser.add_argument("--host-seconds", type=float, default=10, help="of traffic for each law")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the kernel's logs there")
    given = parser.parse_args(arguments)
    wrong = False
    print("| law | backend | steps | result |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="waterfill-certificates-") as name:
        folder = Path(name)
        for law in verify.laws():
            for backend in ("sim", "fluid"):
                wrong |= show(law, backend, [logged(law, backend, given.rows, folder)])
        missing = kernel_steps.lacking()
        for law in kernel_steps.ROUTERS:
            if missing is None:
                logs = kernel_steps.recorded(law, given.kernel_steps, folder)
                wrong |= show(law, "linux", logs)
            else:
                print(f"| {law} | linux | 0 | not run: needs {missing} |")
        wrong |= hosts(given.host_seconds, folder)
        if given.keep is not None:
            given.keep.mkdir(parents=True, exist_ok=True)
            for log in folder.glob("*.steps"):
                shutil.copy(log, given.keep)
    return int(wrong)


def hosts(seconds: float, folder: Path) -> bool:
    """Check the hosts of laws in the kernel; return whether one is wrong."""
    missing = host_steps.lacking()
    if missing is not None:
        for law in host_steps.laws():
            print(f"| {law} | linux hosts | 0 | not run: needs {missing} |")
        return False
    wrong = False
    with host_steps.network() as over:
        for law in host_steps.laws():
            logs = host_steps.recorded(law, seconds, folder, over)
            wrong |= show(law, "linux hosts", logs)
    return wrong


def show(law: str, backend: str, files: Sequence[Path]) -> bool:
    """Check a law's logs and print their line; return whether one is wrong."""
    verdicts = [verify.verify(file) for file in files]
    rows, dropped = sum(v.rows for v in verdicts), sum(v.dropped for v in verdicts)
    first = next((v.wrong for v in verdicts if v.wrong is not None), None)
    result = "accepted" if first is None else str(first)
    if backend.startswith("linux"):
        calls: Counter[str] = Counter()
        for verdict in verdicts:
            calls.update({call: n for (_, _, call), n in verdict.counts.items()})
        result += ": " + ", ".join(f"{n} {call}" for call, n in calls.most_common())
        result += f"; {dropped} lost" if dropped else ""
    print(f"| {law} | {backend} | {rows} | {result} |", flush=True)
    return first is not None


if __name__ == "__main__":
    sys.exit(main())
