"""Run fuzz targets with libFuzzer and maintain their corpora: `make fuzz`.

    python -m validation.fuzzing TARGET [--seconds 60] | minimise TARGET …
    python -m validation.fuzzing all [--share 1.0] [TARGET …] | page | sanitize
    python -m validation.fuzzing python [--plain] [TARGET …]

Targets are in fuzz/ (Rust) and validation/fuzz_python. `all` runs each target in Rust for its share
of executions, in slices, and goes on where it was stopped; a share of 0.1 is a tenth of that.
`python` runs targets of Python code in turn, with `--plain` without atheris. Executions and covered
edges over time are kept in out/fuzz/*.json, one file per target. `minimise` writes the smallest
corpus with the same coverage. `page` writes the table of docs/validation/fuzzing.md from these
files, `sanitize` runs all targets in Rust under sanitizers. An input that fails is kept in
out/fuzz/found, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
OUT = ROOT / "out/fuzz"
PAGE = ROOT / "docs/validation/fuzzing.md"
BEGIN, END = "<!-- table: make fuzz TARGET=page -->\n", "<!-- end of table -->\n"
SLICE_S = 60
MAX_BYTES = 200_000  # of a committed corpus

# What libFuzzer prints: "#4096	NEW    cov: 120 ft: 300 corp: 20/1Kb …".
_PROGRESS = re.compile(r"#(\d+)\t(\w+)\s+cov: (\d+) ft: (\d+)")
_EDGES = re.compile(r"INFO: Loaded \d+ modules?\s+\((\d+) inline 8-bit counters\)")
_KEPT = 200  # points of a curve
_FEW = 100_000  # executions of a target each of which is a whole run
_LONG = 300  # random inputs that such a target begins with


@dataclass(frozen=True)
class Program:
    """All fuzz targets in one language: a command with libFuzzer's options, and the targets'
    corpora.
    """

    command: tuple[str, ...]
    corpus: Path
    options: tuple[str, ...]
    long_inputs: bool = False
    """True if targets with few executions start from long inputs."""


PYTHON = Program(
    (sys.executable, "-m", "validation.fuzz_python"),
    ROOT / "validation/fuzz_python/corpus",
    ("-timeout=240", "-rss_limit_mb=4096", "-len_control=0"),
)


@cache
def rust() -> Program:
    """Build the program that contains all Rust fuzz targets."""
    built = subprocess.run([ROOT / "tools/fuzz.sh"], stdout=subprocess.PIPE, text=True, check=True)
    command = (str(ROOT / built.stdout.strip()),)
    return Program(command, ROOT / "fuzz/corpus", ("-timeout=20", "-rss_limit_mb=2048"), True)


@cache
def targets(program: Program) -> dict[str, dict[str, Any]]:
    """Return the largest input in bytes, the number of executions and the purpose of
    each target.
    """
    environment = {**os.environ, "FUZZ_TARGET": "list"}
    listed = subprocess.run(
        program.command, env=environment, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT
    )
    rows = (line.split("\t") for line in listed.stdout.splitlines())
    return {
        name: {"bytes": int(size), "share": int(share), "checks": checks}
        for name, size, share, checks in rows
    }


def escape(data: bytes) -> str:
    """Return an input as a corpus line, with the escapes of a Rust byte string."""
    special = {9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 39: "\\'", 92: "\\\\"}
    return "".join(special.get(b) or (chr(b) if 32 <= b < 127 else f"\\x{b:02x}") for b in data)


def unescape(line: str) -> bytes:
    """Return the input that a corpus line describes."""
    return line.encode("ascii").decode("unicode_escape").encode("latin-1")


def unpack(program: Program, name: str, long_bytes: int = 0) -> Path:
    """Write a target's committed corpus into its working folder and return the folder.

    With `long_bytes`, random inputs of that length join it.
    """
    folder = OUT / "corpus" / name
    folder.mkdir(parents=True, exist_ok=True)
    committed = program.corpus / f"{name}.txt"
    for line in committed.read_text().splitlines() if committed.exists() else ():
        data = unescape(line)
        (folder / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)
    for i in range(_LONG if long_bytes else 0):
        (folder / f"long-{i}").write_bytes(random.Random(i).randbytes(long_bytes))
    return folder


def read(name: str) -> dict[str, Any]:
    """Return the record of a target's runs, which is empty before the first run."""
    path = OUT / f"{name}.json"
    kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return {"target": name, "executions": 0, "seconds": 0.0, "curve": [], **kept}


def write(record: dict[str, Any]) -> None:
    """Write a target's record atomically, by renaming a temporary file."""
    path = OUT / f"{record['target']}.json"
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(record, indent=1) + "\n")
    beside.rename(path)


def thin(curve: list[list[int]]) -> list[list[int]]:
    """Return at most 200 points of a curve, chosen from those at which it rises."""
    rising = [p for i, p in enumerate(curve) if i in (0, len(curve) - 1) or p[1] > curve[i - 1][1]]
    if len(rising) <= _KEPT:
        return rising
    step = len(rising) / _KEPT
    return [rising[int(i * step)] for i in range(_KEPT - 1)] + [rising[-1]]


def run(program: Program, name: str, seconds: int, executions: int | None = None) -> bool:
    """Run a target for a time or a number of executions. Return True if all inputs passed."""
    about = targets(program)[name]
    # From short inputs, libFuzzer's own start, a target with few executions grows no long ones.
    few = program.long_inputs and about["share"] <= _FEW
    folder, found = unpack(program, name, about["bytes"] if few else 0), OUT / "found"
    found.mkdir(parents=True, exist_ok=True)
    kept = set(found.iterdir())
    record = read(name)
    before, covered = record["executions"], max((e for _, e in record["curve"]), default=0)
    command = [
        *program.command,
        *program.options,
        f"-max_len={about['bytes']}",
        f"-max_total_time={seconds}",
        f"-artifact_prefix={found}/{name}-",
        "-print_final_stats=1",
        *(["-len_control=0"] if few else []),
        *([f"-runs={executions}"] if executions is not None else []),
        str(folder),
    ]
    started = time.monotonic()
    last: list[str] = []
    done = 0
    environment = {**os.environ, "FUZZ_TARGET": name}
    with subprocess.Popen(
        command, env=environment, cwd=ROOT, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            last = [*last[-40:], line]
            if match := _EDGES.match(line):
                record["edges"] = int(match[1])
            if match := _PROGRESS.match(line):
                done = int(match[1])
                covered = max(covered, int(match[3]))
                record["curve"].append([before + done, covered])
            if match := re.match(r"stat::number_of_executed_units:\s*(\d+)", line):
                done = int(match[1])
    record["executions"] = before + done
    record["curve"] = thin([*record["curve"], [before + done, covered]])
    record["seconds"] = round(record["seconds"] + time.monotonic() - started, 1)
    record |= {"checks": about["checks"], "host": host(), "date": time.strftime("%Y-%m-%d")}
    write(record)
    print(f"{name}: {record['executions']:,} executions, {covered} edges", flush=True)
    new = sorted(str(path.relative_to(ROOT)) for path in set(found.iterdir()) - kept)
    if process.returncode != 0 or new:
        print("".join(last), *new, file=sys.stderr)
    return process.returncode == 0 and not new


def host() -> str:
    """Return the host's CPU and Rust compiler version."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    cpu = re.search(r"model name\s*: (.+)", text)
    compiler = subprocess.run(["rustc", "-V"], stdout=subprocess.PIPE, text=True, check=False)
    version = " ".join(compiler.stdout.split()[:2])
    return f"{cpu[1] if cpu else platform.machine()}, {version}"


def run_all(names: Iterable[str], share: float) -> bool:
    """Run the targets in turns, one time slice each, until each has had its number of
    executions.
    """
    known = targets(rust())
    chosen = list(names) or list(known)
    while True:
        open_ = {
            name: rest
            for name in chosen
            if (rest := round(known[name]["share"] * share) - read(name)["executions"]) > 0
        }
        if not open_:
            return True
        for name, rest in open_.items():
            if not run(rust(), name, SLICE_S, rest):
                return False


def minimise(program: Program, name: str) -> None:
    """Write the smallest corpus that has the same coverage as the working folder."""
    folder, longest = unpack(program, name), f"-max_len={targets(program)[name]['bytes']}"
    with tempfile.TemporaryDirectory() as small:
        subprocess.run(
            [*program.command, "-set_cover_merge=1", "-use_counters=0", longest, small, folder],
            env={**os.environ, "FUZZ_TARGET": name}, cwd=ROOT, stderr=subprocess.DEVNULL,
            check=True,
        )  # fmt: skip
        inputs = sorted((p.read_bytes() for p in Path(small).iterdir()), key=lambda d: (len(d), d))
    text, left_out = "", 0
    for data in inputs:
        line = escape(data) + "\n"
        if len(text) + len(line) <= MAX_BYTES:
            text += line
        else:
            left_out += 1
    (program.corpus / f"{name}.txt").write_text(text)
    print(f"{name}: {len(inputs) - left_out} inputs, {len(text):,} bytes; {left_out} left out")


def at(curve: Sequence[Sequence[int]], part: float) -> int:
    """Return the number of edges covered after a fraction of all executions."""
    return max((edges for done, edges in curve if done <= part * curve[-1][0]), default=0)


def row(record: dict[str, Any]) -> str:
    """Return a target's table row in docs/validation/fuzzing.md."""
    curve = record["curve"]
    edges = " | ".join(f"{at(curve, part):,}" for part in (0.1, 0.5, 1.0))
    return (
        f"| `{record['target']}` | {record['checks']} | {record['executions']:,} | {edges} "
        f"| {record['date']} |\n"
    )


def write_page() -> None:
    """Update docs/validation/fuzzing.md with the targets in out/fuzz/*.json, and keep the other
    rows.
    """
    text = PAGE.read_text()
    head, rest = text.split(BEGIN)
    table, tail = rest.split(END)
    lines = table.splitlines(keepends=True)
    rows = {line.split("|")[1].strip(" `"): line for line in lines[2:] if line.startswith("|")}
    for path in sorted(OUT.glob("*.json")):
        record = json.loads(path.read_text())
        rows[record["target"]] = row(record)
    body = "".join(rows[name] for name in sorted(rows))
    PAGE.write_text(head + BEGIN + "".join(lines[:2]) + body + "\n" + END + tail)


def main(arguments: Sequence[str]) -> int:
    """Run the requested targets and return the exit code."""
    what, *rest = arguments or [""]
    if what == "sanitize":
        return subprocess.run([ROOT / "tools/sanitize.sh", *rest], check=False).returncode
    if what == "page":
        write_page()
        return 0
    parser = argparse.ArgumentParser(prog="fuzz")
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--seconds", type=int, default=60, help="of one target")
    parser.add_argument("--share", type=float, default=1.0, help="of the executions of all")
    parser.add_argument("--plain", action="store_true", help="Python: inputs drawn at random")
    chosen = parser.parse_args(rest)
    if chosen.plain:
        os.environ["FUZZ_PLAIN"] = "1"
    known = dict.fromkeys(targets(PYTHON), PYTHON)
    names = chosen.targets if what in ("all", "minimise", "python") else [what]
    if what == "python" and not names:
        names = list(known)
    if not known.keys() >= set(names) or what == "all":
        known |= dict.fromkeys(targets(rust()), rust())
    for name in names:
        if name not in known:
            listed = ", ".join(["all", "python", "sanitize", "page", *known])
            print(f"fuzz: TARGET must be one of {listed}, got {name!r}", file=sys.stderr)
            return 2
    if what == "minimise":
        for name in names:
            minimise(known[name], name)
        return 0
    if what == "all":
        return 0 if run_all(names, chosen.share) else 1
    # Each runs, also where an earlier one has found something.
    passed = [run(known[name], name, chosen.seconds) for name in names]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
