"""Which lines of the laws and the engines the Rust tests run: `make coverage`.

    python -m validation.coverage            # build with counters, run the tests, print the tables
    python -m validation.coverage --lines    # name the lines that are not run of every file

The tests of four crates run as in `make test`, with the same profile, but with counters in these
crates: optimised, with overflow checks. Code under `#[cfg(test)]` is not counted. Lines that are
not run are named for each file below 95 %. Exits 1 if a crate is below 95 %, or if a test fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The laws, and the engines with what they share.
CRATES = ("waterfill-laws", "waterfill-network", "waterfill-sim", "waterfill-fluid")
LEAST = 0.95
TARGET = ROOT / "target" / "coverage"

Lines = dict[int, int]  # line → how often it ran


@dataclass(frozen=True)
class Tools:
    """LLVM's programs that read what rustc's counters write."""

    profdata: str
    cov: str


def tools() -> Tools | None:
    """Return LLVM's programs, of rustc's own version or newer; None if they are not installed."""
    about = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    host, major = (_first(rf"^{key}: ([^.\n]*)", about) for key in ("host", "LLVM version"))
    root = subprocess.run(
        ["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True
    ).stdout.strip()
    folder = f"{root}/lib/rustlib/{host}/bin"
    for pattern in (f"{folder}/{{}}", f"{{}}-{major}", f"/usr/lib/llvm-{major}/bin/{{}}", "{}"):
        found = Tools(pattern.format("llvm-profdata"), pattern.format("llvm-cov"))
        if all(_major(tool) >= int(major) for tool in (found.profdata, found.cov)):
            return found
    print(
        f"coverage: needs llvm-profdata and llvm-cov of LLVM {major} or newer:"
        f" 'rustup component add llvm-tools', or the system's llvm-{major}",
        file=sys.stderr,
    )
    return None


def _first(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else ""


def _major(tool: str) -> int:
    """Return a tool's version of LLVM; 0 if there is no such tool."""
    if shutil.which(tool) is None:
        return 0
    said = subprocess.run([tool, "--version"], capture_output=True, text=True)
    return int(_first(r"version (\d+)", said.stdout + said.stderr) or 0)


def run(found: Tools, folder: Path) -> str | None:
    """Run the tests with counters; return what was counted in lcov's format, None if they fail."""
    raw = folder / "raw"
    environment = {
        "PROPTEST_RNG_SEED": "1",  # as in make test: the same cases on every run
        **os.environ,
        "CARGO_TARGET_DIR": str(TARGET),
        "RUSTC_WORKSPACE_WRAPPER": str(ROOT / "tools" / "rustc_coverage.sh"),
        "LLVM_PROFILE_FILE": str(raw / "%m_%p.profraw"),
    }
    packages = [part for crate in CRATES for part in ("--package", crate)]
    command = ["cargo", "test", "--locked", "--lib", "--tests", *packages]
    message = ["--no-run", "--message-format=json"]
    built = subprocess.run(
        [*command, *message], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    if built.returncode:
        return None
    programs = executables(built.stdout.splitlines())
    shutil.rmtree(raw, ignore_errors=True)  # of programs that ran during the build
    if subprocess.run(
        [*command, "--no-fail-fast", "--quiet"], cwd=ROOT, env=environment
    ).returncode:
        return None
    merged = folder / "merged.profdata"
    profiles = folder / "profiles.txt"
    profiles.write_text("".join(f"{path}\n" for path in sorted(raw.iterdir())))
    subprocess.run(
        [found.profdata, "merge", "-sparse", f"--input-files={profiles}", f"-o={merged}"],
        check=True,
    )
    objects = [part for program in programs[1:] for part in ("--object", program)]
    sources = [str(ROOT / "crates" / crate / "src") for crate in CRATES]
    export = [found.cov, "export", "--format=lcov", f"--instr-profile={merged}", "--skip-functions"]
    return subprocess.run(
        [*export, programs[0], *objects, "--sources", *sources],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def executables(messages: Iterable[str]) -> list[str]:
    """Return the test programs that a build of cargo reports, in its order, each once."""
    found = [json.loads(line) for line in messages if line.startswith("{")]
    return list(dict.fromkeys(m["executable"] for m in found if m.get("executable")))


def counted(lcov: str) -> dict[str, Lines]:
    """Return how often each line ran, by file; a file that is named twice is added up."""
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
    """Return a file's lines under `#[cfg(test)]`, and the modules declared there."""
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
    """Return what was counted without the code that only tests have."""
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
    """Return the crate of a file: `crates/CRATE/src/…`."""
    return name.split("/")[1]


def law_of(name: str) -> str | None:
    """Return the law of a file, None if it is of none: TCPs have one each."""
    parts = name.partition("/src/protocols/")[2].removesuffix(".rs").split("/")
    if not parts[0] or parts[0] == "mod":
        return None
    return "/".join(parts[:2]) if parts[0] == "tcp" and len(parts) > 1 else parts[0]


def share(lines: Iterable[int]) -> tuple[int, int, float]:
    """Return how many lines ran, of how many, and their share."""
    counts = list(lines)
    ran = sum(1 for count in counts if count)
    return ran, len(counts), ran / len(counts) if counts else 1.0


def groups(files: Mapping[str, Lines], by: Mapping[str, str | None]) -> dict[str, list[int]]:
    """Return the counts of all lines of each group of files."""
    found: dict[str, list[int]] = defaultdict(list)
    for name, lines in files.items():
        group = by[name]
        if group is not None:
            found[group] += lines.values()
    return dict(found)


def ranges(lines: Lines) -> str:
    """Return the lines that did not run, as ranges over lines without code."""
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


def table(title: str, rows: Mapping[str, Iterable[int]]) -> list[str]:
    """Return rows of a Markdown table: lines that ran, of how many, share."""
    shown = [f"| {title} | lines | not run | share |", "|---|---|---|---|"]
    for name, lines in rows.items():
        ran, of, part = share(lines)
        shown.append(f"| {name} | {of:,} | {of - ran:,} | {part:.1%} |")
    return shown


def report(files: Mapping[str, Lines], every_line: bool) -> tuple[str, bool]:
    """Return the tables, and whether each crate reaches 95 %."""
    crates = groups(files, {name: crate_of(name) for name in files})
    crates = {crate: crates.get(crate, []) for crate in CRATES}
    laws = groups(files, {name: law_of(name) for name in files})
    engine = [count for crate in CRATES[1:] for count in crates[crate]]
    text = table("file", {name: lines.values() for name, lines in sorted(files.items())})
    text += ["", *table("law", dict(sorted(laws.items()))), ""]
    text += table("crate", {**crates, "engine: the last three": engine})
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return 0, 1 below 95 % or if a test fails, 2 if a tool is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--lines", action="store_true", help="name the lines of every file")
    given = parser.parse_args(arguments)
    found = tools()
    if found is None:
        return 2
    with tempfile.TemporaryDirectory(prefix="waterfill-coverage-") as folder:
        lcov = run(found, Path(folder))
    if lcov is None:
        print("coverage: the build or a test failed, so nothing is counted", file=sys.stderr)
        return 1
    text, reached = report(without_tests(counted(lcov)), given.lines)
    print(text)
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
