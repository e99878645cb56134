"""Measures the engine, compares with this host's history and adds a line to it: `make bench`.

    python bench/measure.py [CASE …] [--rounds N] [--history FILE] [--json]

Each figure of the history is a ratio: the speed of a case over that of a fixed piece of CPU work,
the calibration loop, measured before and after every round. README.md describes the file's format.

Exit codes: 0 done, 1 a case is more than 10 % slower than the median of its last five lines (a
paired comparison decides: `make bench BASE=COMMIT`), 2 wrong input (one line), 130
interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
HISTORY = ROOT / "bench" / "history.jsonl"

# The packet engine's; the fluid model's cases run when named, or with --all.
CASES = (
    *("window-10", "sack-10", "cubic-10", "maxnet-10", "xcp-10", "aecp-10"),
    *("window-10000", "sack-10000", "maxnet-10000"),
)
SLOWER = 0.10
REMEMBERED = 5

Document = dict[str, Any]


class Refused(Exception):
    """Input or installation that is not sufficient: one line."""


def run(command: Sequence[str], **options: Any) -> str:
    """Run a command and return its standard output; raise Refused if it fails."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, **options)
    except FileNotFoundError:
        raise Refused(f"needs {command[0]}, which is not installed") from None
    if done.returncode != 0:
        raise Refused(f"{' '.join(map(str, command))} failed with exit code {done.returncode}")
    return done.stdout


class Process(NamedTuple):
    """A finished process: exit code, standard output, CPU seconds, largest memory in bytes."""

    code: int
    text: str
    cpu_s: float
    peak_bytes: int


def watched(command: Sequence[str]) -> Process:
    """Run a command, as the operating system accounts for it; its standard error is discarded."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    with process.stdout as stdout:
        text = stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu_s = usage.ru_utime + usage.ru_stime
    return Process(process.returncode, text, cpu_s, usage.ru_maxrss * 1024)


def build(tree: Path = ROOT, target: Path | None = None) -> Path:
    """Build the bench of a source tree; return the path of its program."""
    folder = target or Path(os.environ.get("CARGO_TARGET_DIR", tree / "target"))
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--package", "waterfill-bench"]
    run(command, cwd=tree, env={**os.environ, "CARGO_TARGET_DIR": str(folder)})
    return folder / "release" / "waterfill-bench"


def host() -> str:
    """Return the factors on which a ratio still depends: the CPU's model and the number of CPUs."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].partition(":")[2].strip() if lines else model
    return f"{model}, {os.cpu_count()} CPUs"


def commit() -> str:
    """Return the commit that is checked out, with a + where files differ from it."""
    try:
        name = run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT).strip()
        # The history itself changes with every run.
        paths = ["--", ".", f":!{HISTORY.relative_to(ROOT)}"]
        changed = run(["git", "status", "--porcelain", "--untracked-files=no", *paths], cwd=ROOT)
    except Refused:
        return "unknown"
    return f"{name}+" if changed else name


def entry(document: Document) -> Document:
    """Return the line of the history for the bench's output."""
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": commit(),
        "host": host(),
        "calibration": document["calibration"],
        "ratios": {one["name"]: float(f"{one['ratio']:.4g}") for one in document["runs"]},
    }


def read(path: Path) -> list[Document]:
    """Return the lines of a history; none if there is no file. Raise Refused for a broken one."""
    if not path.exists():
        return []
    lines = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            line = json.loads(text)
            lines.append({"slower": [], **line, "ratios": dict(line["ratios"])})
        except (ValueError, KeyError, TypeError):
            raise Refused(f"{path}:{number}: must be a JSON object with ratios") from None
    return lines


def reference(history: Sequence[Document], line: Document) -> dict[str, float]:
    """Return the ratio that each case is held to: the median of its last five on this host.

    Ratios that were themselves too slow do not count: they would let the next slow run pass.
    """
    alike = [
        past
        for past in history
        if all(past.get(key) == line[key] for key in ("host", "calibration"))
    ]
    known: dict[str, float] = {}
    for case in line["ratios"]:
        ratios = [
            past["ratios"][case]
            for past in alike
            if case in past["ratios"] and case not in past["slower"]
        ]
        if ratios:
            known[case] = statistics.median(ratios[-REMEMBERED:])
    return known


def slower(line: Document, known: Mapping[str, float]) -> list[str]:
    """Return the cases whose ratio is more than 10 % below the reference."""
    return [
        case for case, ratio in line["ratios"].items() if ratio < (1 - SLOWER) * known.get(case, 0)
    ]


def table(document: Document, known: Mapping[str, float]) -> str:
    """Return the figures as text: a line per case."""
    rows = [
        f"{'case':16} {'M packets/s':>11} {'M PTS':>6} {'B/flow':>7}"
        f" {'ratio':>7} {'before':>7} {'change':>7}"
    ]
    for one in document["runs"]:
        before = known.get(one["name"])
        change = "–" if before is None else f"{one['ratio'] / before - 1:+.1%}"
        speeds = [
            "–" if key not in one else f"{one[key] / scale:.{digits}f}"
            for key, scale, digits in (
                ("bottleneck_packets_per_s", 1e6, 2),
                ("packet_transmissions_per_s", 1e6, 1),
                ("bytes_per_flow", 1, 0),
            )
        ]
        rows.append(
            f"{one['name']:16} {speeds[0]:>11} {speeds[1]:>6} {speeds[2]:>7} {one['ratio']:7.2f}"
            f" {'–' if before is None else f'{before:.2f}':>7} {change:>7}"
        )
    return "\n".join(rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, remember; return the exit code."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help="default: the packet engine's")
    parser.add_argument("--all", action="store_true", help="the fluid model's cases, too")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each case (default: 3)")
    parser.add_argument(
        "--history", type=Path, default=HISTORY, help="default: bench/history.jsonl"
    )
    parser.add_argument("--json", action="store_true", help="print the bench's JSON document")
    options = parser.parse_args(argv)
    history = read(options.history)
    chosen = [] if options.all else options.cases or CASES
    document = json.loads(run([str(build()), *chosen, "--rounds", str(options.rounds)]))
    line = entry(document)
    known = reference(history, line)
    found = slower(line, known)
    if found:
        line["slower"] = found
    with options.history.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(document, indent=1) if options.json else table(document, known))
    if found:
        print(f"bench: more than 10 % slower than before: {', '.join(found)}", file=sys.stderr)
    return 1 if found else 0


def command(one: Any) -> int:
    """Run a command of this folder; return its exit code, with refusals in one line."""
    try:
        return int(one())
    except (Refused, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(command(main))
