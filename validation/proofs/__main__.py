"""`python -m validation.proofs`: prove every theorem, or those whose names contain one of the
arguments.

A line a theorem: what it says, for what, the result and the seconds. Results of the same headers
and the same proofs are kept in `-o DIR`, so that a run resumes. Exits 1 if a theorem fails or z3
does not decide it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from validation.proofs import codecs, contracts, differential, equilibrium, kernels, ranges, source
from validation.proofs.c_source import clang, digest
from validation.proofs.integers import Integers

HERE = Path(__file__).resolve().parent
INPUTS = 60
PROVED = "proved"
Theorem = tuple[str, Callable[[], str]]


def _obligations(domain: Integers) -> str:
    """Return `proved` and how many operations there were, or what is not proved."""
    for one in domain.obligations:
        if one.proved not in ("intervals", "query"):
            return f"FAILS: {one.where}: {one.what}: {one.proved}"
    return f"{PROVED}, {len(domain.obligations)} operations"


def _plain(proof: Callable[[], bool]) -> Callable[[], str]:
    return lambda: PROVED if proof() else "FAILS, or is not decided"


def _compared(header: str) -> str:
    done, differences = differential.compare(header, INPUTS)
    return f"FAILS: {differences[0]}" if differences else f"{PROVED}, {done} inputs"


def _network(links: int, flows: int) -> str:
    answer, count = equilibrium.prove(links, flows)
    return f"{PROVED}, {count} networks" if answer == PROVED else f"FAILS: {answer}"


def theorems() -> Iterator[Theorem]:
    """Yield every theorem's line and its proof."""
    for header in differential.HEADERS:
        yield f"tree: {header} compiled and as proved: the same", lambda h=header: _compared(h)  # type: ignore[misc]
    for links, flows in equilibrium.SIZES:
        line = f"equilibrium: max-min is the only one: {links} links, {flows} flows"
        yield line, lambda n=links, m=flows: _network(n, m)  # type: ignore[misc]
    for statement, scope, proof in source.theorems():
        yield f"source: {statement} ({scope})", _plain(proof)
    for statement, scope, proof in codecs.theorems():
        yield f"codec: {statement}" + (f" ({scope})" if scope else ""), _plain(proof)
    for name, statement, body in contracts.theorems():
        yield f"shared: {name}: {statement}", lambda b=body: _obligations(b())  # type: ignore[misc]
    for law in ranges.LAWS:
        for function in kernels.functions(ranges.LAWS[law]):
            yield (
                f"kernel: {law}: {function}() over its ranges",
                lambda n=law, f=function: _obligations(kernels.prove(n, f)),  # type: ignore[misc]
            )
            if function in kernels.STARTS:
                yield (
                    f"kernel: {law}: {function}() of zeros",
                    lambda n=law, f=function: _obligations(kernels.prove(n, f, True)),  # type: ignore[misc]
                )


def _version() -> str:
    """Return a hash of headers and proofs."""
    total = hashlib.sha256(digest().encode())
    for path in sorted(HERE.glob("*.py")):
        total.update(path.read_bytes())
    return total.hexdigest()


class _Kept:
    """Proved theorems of this version, in a file; other versions' are dropped."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "proofs.json"
        self.version = _version()
        self.lines: dict[str, tuple[str, float]] = {}
        try:
            read = json.loads(self.path.read_text())
            if read["version"] == self.version:
                self.lines = {line: (str(a), float(b)) for line, (a, b) in read["proved"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass  # nothing to resume

    def add(self, line: str, result: str, seconds: float) -> None:
        """Keep a result, beside the file and then in its place."""
        self.lines[line] = (result, seconds)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(f".{os.getpid()}")
        beside.write_text(json.dumps({"version": self.version, "proved": self.lines}, indent=1))
        beside.replace(self.path)


def main() -> int:
    """Prove; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m validation.proofs", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="only theorems with this in their line"
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("out/proofs"), metavar="DIR")
    options = parser.parse_args()
    if clang() is None:
        print("proofs: needs clang, for the syntax tree of the C headers", file=sys.stderr)
        return 1
    kept = _Kept(options.output)
    failed = count = 0
    for line, proof in theorems():
        if options.names and not any(name in line for name in options.names):
            continue
        count += 1
        if line in kept.lines:
            result, seconds = kept.lines[line]
        else:
            start = time.monotonic()
            try:
                result = proof()
            except AssertionError as error:
                result = f"FAILS: {error}"
            seconds = time.monotonic() - start
            if result.startswith(PROVED):
                kept.add(line, result, seconds)
        failed += not result.startswith(PROVED)
        print(f"{line}: {result}, {seconds:.1f} s", flush=True)
    print(f"{count} theorems, {failed} not proved")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
