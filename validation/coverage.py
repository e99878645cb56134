"""Line coverage of the laws and the engines by the Rust tests, counted by cargo-llvm-cov.

The tests of four crates run as in `make test`, with the same profile, but with counters: optimised,
with overflow checks. Code under `#[cfg(test)]` is not counted. Lines that are not run are named for
each file below 95 %. The study fails if a crate is below 95 %, or if a test fails.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from validation.study import ROOT, Option, Options, Report, Study, tool
from validation.tables import markdown
from waterfill.errors import RunError

# The laws, and the engines with what they share.
CRATES = ("waterfill-laws", "waterfill-network", "waterfill-sim", "waterfill-fluid")
LEAST = 0.95

Lines = dict[int, int]  # line → how often it ran


def llvm(rustc: str) -> dict[str, str]:
    """Return the paths of the system's LLVM tools by environment variable, for hosts without
    rustup's llvm-tools.
    """
    found = re.search(r"^LLVM version: (\d+)", rustc, re.MULTILINE)
    folder = Path(f"/usr/lib/llvm-{found[1] if found else 0}/bin")
    programs = {"LLVM_COV": folder / "llvm-cov", "LLVM_PROFDATA": folder / "llvm-profdata"}
    return {name: str(path) for name, path in programs.items() if path.exists()}


def run() -> str:
    """Run the tests with coverage counters and return the counts in lcov's format."""
    rustc = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    # The seed is that of make test: the same cases on every run.
    environment = {"PROPTEST_RNG_SEED": "1", **llvm(rustc), **os.environ}
    packages = [part for crate in CRATES for part in ("--package", crate)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lcov.info"
        command = ["cargo", "llvm-cov", "--locked", "--lib", "--tests", "--quiet", *packages]
        command += ["--no-fail-fast", "--lcov", "--output-path", str(file)]
        if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
            raise RunError("cargo llvm-cov failed, for the reason above")
        return file.read_text()


def counted(lcov: str) -> dict[str, Lines]:
    """Return each line's number of executions, by file. Repeated entries of a file are added up."""
    files: dict[str, Lines] = {}
    lines: Lines = {}
    for record in lcov.splitlines():
        kind, _, rest = record.partition(":")
        if kind == "SF":
            path = Path(rest)
            name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
            lines = files.setdefault(str(name), {})
        elif kind == "DA":
            number, count = (int(part) for part in rest.split(",")[:2])
            lines[number] = lines.get(number, 0) + count
    return files


def test_code(text: str) -> tuple[set[int], set[str]]:
    """Return the line numbers under `#[cfg(test)]` in a file, and the modules declared there."""
    lines, modules = set(), set()
    until: str | None = None  # the line that ends the item
    opened = False
    for number, line in enumerate(text.splitlines(), 1):
        if until is None and line.strip() == "#[cfg(test)]":
            until, opened = line[: len(line) - len(line.lstrip())] + "}", False
        if until is None:
            continue
        lines.add(number)
        if declared := re.fullmatch(r"\s*(?:pub(?:\(\w+\))? )?mod (\w+);", line):
            modules.add(declared[1])
        opened = opened or line.endswith("{")
        if line == until or (not opened and line.endswith(";")):
            until = None
    return lines, modules


def without_tests(files: Mapping[str, Lines], root: Path = ROOT) -> dict[str, Lines]:
    """Return the counts without test code."""
    shown: dict[str, Lines] = {}
    dropped: set[Path] = set()
    for source in sorted(
        {p for crate in CRATES for p in (root / "crates" / crate).rglob("src/**/*.rs")}
    ):
        lines, modules = test_code(source.read_text())
        own = source.stem in ("mod", "lib")
        inside = source.parent if own else source.with_suffix("")
        dropped |= {inside / module for module in modules}
        name = str(source.relative_to(root))
        if name in files:
            shown[name] = {n: count for n, count in files[name].items() if n not in lines}

    def is_test(name: str) -> bool:
        path = (root / name).with_suffix("")
        return any(path == module or module in path.parents for module in dropped)

    return {name: lines for name, lines in shown.items() if not is_test(name)}


def crate_of(name: str) -> str:
    """Return the crate of a file path of the form `crates/CRATE/src/…`."""
    return name.split("/")[1]


def law_of(name: str) -> str | None:
    """Return the law that a file belongs to, or None. Each TCP is a law of its own."""
    parts = name.partition("/src/protocols/")[2].removesuffix(".rs").split("/")
    if not parts[0] or parts[0] == "mod":
        return None
    return "/".join(parts[:2]) if parts[0] == "tcp" and len(parts) > 1 else parts[0]


def share(lines: Iterable[int]) -> tuple[int, int, float]:
    """Return the number of executed lines, the number of all lines, and their ratio."""
    counts = list(lines)
    ran = sum(1 for count in counts if count)
    return ran, len(counts), ran / len(counts) if counts else 1.0


def groups(files: Mapping[str, Lines], by: Mapping[str, str | None]) -> dict[str, list[int]]:
    """Return the execution counts of all lines in each group of files."""
    found: dict[str, list[int]] = defaultdict(list)
    for name, lines in files.items():
        group = by[name]
        if group is not None:
            found[group] += lines.values()
    return dict(found)


def ranges(lines: Lines) -> str:
    """Return the lines that did not run as ranges, such as `3-5, 9`."""
    found: list[list[int]] = []
    open_range = False
    for number in sorted(lines):
        if lines[number]:
            open_range = False
        elif open_range:
            found[-1][1] = number
        else:
            found.append([number, number])
            open_range = True
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def table(title: str, rows: Mapping[str, Iterable[int]]) -> str:
    """Return a Markdown table of lines, lines that did not run, and coverage."""
    shares = {name: share(lines) for name, lines in rows.items()}
    shown = (
        [n, f"{of:,}", f"{of - ran:,}", f"{part:.1%}"] for n, (ran, of, part) in shares.items()
    )
    return markdown(f"{title}|lines|not run|share", shown)


def report(files: Mapping[str, Lines], every_line: bool) -> tuple[str, bool]:
    """Return the coverage tables, and True if each crate reaches the required 95 %."""
    crates = groups(files, {name: crate_of(name) for name in files})
    crates = {crate: crates.get(crate, []) for crate in CRATES}
    laws = groups(files, {name: law_of(name) for name in files})
    engine = [count for crate in CRATES[1:] for count in crates[crate]]
    text = [
        *(table("file", {name: lines.values() for name, lines in sorted(files.items())}), ""),
        *(table("law", dict(sorted(laws.items()))), ""),
        table("crate", {**crates, "engine: the last three": engine}),
    ]
    below = [
        f"{name}: not run: {ranges(lines)}"
        for name, lines in sorted(files.items())
        if share(lines.values())[2] < (1 if every_line else LEAST)
    ]
    text += ["", *below] if below else []
    low = [name for name, lines in crates.items() if not lines or share(lines)[2] < LEAST]
    if low:
        text += ["", f"coverage: below {LEAST:.0%}: {', '.join(low)}"]
    return "\n".join(text), not low


def work(options: Options) -> Report:
    """Measure the coverage and return the tables."""
    files = without_tests(counted(run()))
    text, reached = report(files, options.lines)
    return Report(text, files, () if reached else [f"a crate is below {LEAST:.0%}"])


STUDY: Study[None, None] = Study(
    shows="the tests run at least 95 % of the lines of laws and engines",
    minutes=15,
    needs=(tool("cargo-llvm-cov", "cargo install --locked cargo-llvm-cov"),),
    options=(Option("--lines", False, "name the lines that are not run of every file"),),
    work=work,
)
