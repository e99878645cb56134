"""Measure the fraction of a law's mutants that its tests catch. cargo-mutants lists the mutants.

A mutant is compiled in a copy of the crate, without optimisation and incrementally. It meets the
tests of its law first, then those of all laws, then the crate's others; the first that fails ends
it. A result counts for the source file that it was measured of. Two calls may run at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import itertools
import json
import os
import resource
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from validation import tree
from validation.study import ROOT, Option, Options, Study, tool
from validation.tables import markdown
from waterfill.errors import RunError

PACKAGE = "waterfill-laws"
LAWS = Path("crates") / PACKAGE / "src" / "protocols"
OUT = ROOT / "out" / "mutants"
# Tests of what every law states: src/contract.rs.
CONTRACT = "contract::"
# Reads the source and no behaviour: it would catch a mutant whose comment is gone.
NOT_RUN = {"equation_tags"}
# A test program that takes more is stopped: the mutant does not end. The unchanged laws take 1 s of
# CPU for their own tests and about 20 s for all. Time on the clock would depend on the host's load.
CPU_S = {"own": 20, CONTRACT: 20, "lib": 120, "tests": 120}
MEMORY_BYTES = 4 << 30


@dataclass(frozen=True)
class Mutant:
    """A replacement of one span of a file, from `start` to `end` as (line, column) from 1."""

    name: str
    file: str
    start: tuple[int, int]
    end: tuple[int, int]
    text: str

    @classmethod
    def of(cls, listed: dict[str, Any]) -> Mutant:
        """Create a mutant from an entry of `cargo mutants --list --json`."""
        start, end = (
            (p["line"], p["column"]) for p in (listed["span"][k] for k in ("start", "end"))
        )
        return cls(listed["name"], listed["file"], start, end, listed["replacement"])

    def applied(self, source: str) -> str:
        """Return the source text with the mutant applied."""
        lines = source.splitlines(keepends=True)
        first, last = (
            sum(len(line) for line in lines[: line - 1]) + column - 1
            for line, column in (self.start, self.end)
        )
        return f"{source[:first]}{self.text} /* mutant */{source[last:]}"


def names() -> list[str]:
    """Return the names of all laws with mutants: the files and folders of the crate's protocols."""
    laws = ROOT / LAWS
    found = {path.stem for path in laws.iterdir()} | {f"tcp/{p.stem}" for p in laws.glob("tcp/*")}
    return sorted(found - {"mod", "tcp", "tcp/mod"})


def listed(law: str) -> list[Mutant]:
    """Return all mutants of a law that cargo-mutants lists, in source order."""
    path = LAWS / law
    files = f"{path}.rs" if (ROOT / f"{path}.rs").exists() else f"{path}/**"
    excluded = ("--exclude", "**/tests.rs", "--exclude", "**/tests/**")
    command = ("cargo", "mutants", "--list", "--json", "--package", PACKAGE, "--file", files)
    done = subprocess.run([*command, *excluded], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    found = [Mutant.of(entry) for entry in json.loads(done.stdout)]
    return sorted(found, key=lambda mutant: (mutant.file, mutant.start, mutant.name))


# ------------------------------------------------------------------------------------ trials


class Tree:
    """A copy of the crates, in which mutants are compiled."""

    def __init__(self, jobs: int) -> None:
        self.root, self.lock = _free_tree()
        self.env = os.environ | {
            "CARGO_BUILD_JOBS": str(jobs),
            "RUST_TEST_THREADS": str(jobs),
            "CARGO_INCREMENTAL": "1",
            "CARGO_TARGET_DIR": str(self.root / "target"),
            "CARGO_PROFILE_DEV_DEBUG": "none",
            "CFLAGS": "-O1",  # the laws' C does not change
            "RUSTFLAGS": "--cap-lints=allow",
            "PROPTEST_CASES": "50",
        }
        self.env.pop("MAKEFLAGS", None)

    def copy(self) -> None:
        """Copy the build's inputs from the checkout, keeping earlier build results."""
        tree.copy(self.root)
        # An interrupted call may have left a build of a mutant, which is newer than this copy.
        (self.root / "crates" / PACKAGE / "src" / "lib.rs").touch()

    def built(
        self, *which: str, command: Sequence[str] = ("test", "--no-run")
    ) -> dict[str, str] | None:
        """Build tests. Return their programs by name, or None if the build fails."""
        fast = ("--config", f"profile.dev.package.{PACKAGE}.opt-level=0")
        cargo = ("cargo", *fast, *command, "--locked", "--package", PACKAGE, *which)
        done = subprocess.run(
            [*cargo, "--message-format=json"], cwd=self.root, env=self.env, capture_output=True
        )
        if done.returncode:
            return None
        messages = (json.loads(line) for line in done.stdout.splitlines() if line[:1] == b"{")
        return {m["target"]["name"]: m["executable"] for m in messages if m.get("executable")}

    def passes(self, program: str, arguments: Sequence[str], cpu_s: int) -> bool:
        """Return True if a test program succeeds within its limits of CPU time and memory."""
        done = subprocess.run(
            [program, "--quiet", *arguments],
            cwd=self.root / "crates" / PACKAGE,
            env=self.env,
            preexec_fn=lambda: limit(cpu_s),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return done.returncode == 0

    @contextlib.contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        """Apply a mutant to the tree's source while the context is open."""
        path = self.root / mutant.file
        source = path.read_text()
        path.write_text(mutant.applied(source))
        try:
            yield
        finally:
            path.write_text(source)


def limit(cpu_s: int) -> None:
    """Set this process's limits of CPU time and memory."""
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def _free_tree() -> tuple[Path, IO[str]]:
    """Return an unused folder for a copy of the crates, and its lock."""
    for number in itertools.count():
        root = OUT / f"tree-{number}"
        lock = root.with_suffix(".lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            continue
        root.mkdir(exist_ok=True)
        return root, lock
    raise AssertionError("unreachable")


class Trials:
    """Trials of mutants in a tree whose unchanged tests pass."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        for stage in ("lib", "tests"):
            if not self._passes(stage, []):
                raise RunError(f"the unchanged laws fail their tests ({stage})")

    def _passes(self, stage: str, arguments: Sequence[str]) -> bool:
        programs = self.tree.built("--tests" if stage == "tests" else "--lib")
        if programs is None:
            raise ValueError("not compiled")
        library = PACKAGE.replace("-", "_")
        others = programs.keys() - NOT_RUN - {library}
        chosen = sorted(others) if stage == "tests" else [library]
        return all(self.tree.passes(programs[name], arguments, CPU_S[stage]) for name in chosen)

    def tried(self, law: str, mutant: Mutant) -> tuple[str, str]:
        """Try a mutant. Return its result and the tests that caught it."""
        own = f"protocols::{law.replace('/', '::')}::"
        # The order: first what catches most for its time.
        stages = (
            ("own", (own,)),
            (CONTRACT, (CONTRACT,)),
            ("lib", ("--skip", own, "--skip", CONTRACT)),
            ("tests", ()),
        )
        with self.tree.mutated(mutant):
            try:
                for stage, arguments in stages:
                    if not self._passes(stage, arguments):
                        return "caught", stage
                return "missed", ""
            except ValueError:
                return "unviable", ""


# ------------------------------------------------------------------------------------ the study


@functools.cache
def trials() -> Trials:
    """Return this process's trials, in a tree that no other process uses."""
    OUT.mkdir(parents=True, exist_ok=True)
    tree = Tree(1)
    tree.copy()
    return Trials(tree)


class MutationCase(NamedTuple):
    """A mutant of a law, with a digest of the source file that it changes."""

    law: str
    mutant: Mutant
    source: str

    @property
    def name(self) -> str:
        """Name of the mutant in messages."""
        return self.mutant.name


class MutationRow(NamedTuple):
    """Result of a mutant (caught, missed or unviable), and the tests that caught it."""

    result: str
    test: str
    seconds: float


def digest(file: str) -> str:
    """Return a digest of a source file."""
    return hashlib.sha256((ROOT / file).read_bytes()).hexdigest()[:16]


def cases(options: Options) -> list[MutationCase]:
    """Return the mutants of the chosen laws that belong to the chosen shard.

    Laws take turns, and a law's mutants have a random order, which is always the same: what an
    interrupted call has tried is a fair sample.
    """
    first, step = options.shard
    found: list[tuple[float, MutationCase]] = []
    for law in options.laws or names():
        mine = sorted(
            listed(law)[first::step], key=lambda one: hashlib.sha256(one.name.encode()).digest()
        )
        found += [
            ((i + 0.5) / len(mine), MutationCase(law, one, digest(one.file)))
            for i, one in enumerate(mine)
        ]
    return [case for _, case in sorted(found, key=lambda entry: entry[0])]


def measure(case: MutationCase) -> MutationRow:
    """Try a mutant and return its result."""
    began = time.monotonic()
    result, test = trials().tried(case.law, case.mutant)
    return MutationRow(result, test, round(time.monotonic() - began, 2))


def table(found: Mapping[MutationCase, MutationRow]) -> str:
    """Return the results as a Markdown table, followed by the missed mutants."""
    laws = dict.fromkeys(case.law for case in found)
    counts = {law: Counter(r.result for c, r in found.items() if c.law == law) for law in laws}
    counts["all"] = sum(counts.values(), Counter[str]())
    rows = (_row(law, count) for law, count in counts.items())
    missed = [f"- `{case.name}`" for case, row in found.items() if row.result == "missed"]
    shown = markdown("law|tried|viable|caught|share", rows)
    return "\n".join([shown, "", "Missed:", "", *sorted(missed)])


def _row(law: str, count: Counter[str]) -> list[object]:
    viable = count["caught"] + count["missed"]
    share = f"{count['caught'] / viable:.1%}" if viable else "–"
    return [law, count.total(), viable, count["caught"], share]


def _shard(text: str) -> tuple[int, int]:
    first, _, step = text.partition("/")
    if not (first.isdecimal() and step.isdecimal() and int(first) < int(step)):
        raise ValueError("K/N with K from 0 to N-1")
    return int(first), int(step)


STUDY = Study(
    shows="the tests of a law catch its mutants, which cargo-mutants lists",
    minutes=240,
    needs=(tool("cargo-mutants", "cargo install --locked cargo-mutants"),),
    options=(
        Option("laws", (), "default: all", names),
        Option("--shard", (0, 1), "K/N: every Nth mutant from K on", type=_shard),
    ),
    quick={"laws": ("rcp",), "shard": (0, 40)},
    cases=cases,
    measure=measure,
    row=MutationRow,
    # A test that was added since may catch what was missed.
    valid=lambda row: row.result != "missed",
    line=lambda case, row: f"{row.result:8} {row.test:10} {row.seconds:5.1f} s  {case.name}",
    table=table,
)
