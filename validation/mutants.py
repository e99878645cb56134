"""Which mutants of a law its tests catch, by cargo-mutants.

    make mutants LAW=xcp                      # every mutant of the files under protocols/xcp; hours
    make mutants LAW="xcp aecp" SHARD=0/10    # every tenth of two laws

Results are kept in out/mutants. The same call again skips what was caught before, so that an
interrupted one continues. Without LAW, the table of all results that are there.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAWS = ROOT / "crates" / "waterfill-laws" / "src" / "protocols"
OUT = ROOT / "out" / "mutants"
# A mutant that does not end is caught. The tests take seconds; a busy host may need a minute.
MIN_TIMEOUT_S = 60


def names() -> list[str]:
    """Return the laws that have mutants: files and folders of the crate's protocols."""
    found = {path.stem for path in LAWS.iterdir()} | {f"tcp/{p.stem}" for p in LAWS.glob("tcp/*")}
    return sorted(found - {"mod", "tcp/mod"})


def run(laws: Sequence[str], shard: str | None, jobs: int) -> int:
    """Test the mutants of laws that were not caught before; return the exit code."""
    if shutil.which("cargo-mutants") is None:
        print("mutants: needs cargo-mutants: cargo install --locked cargo-mutants", file=sys.stderr)
        return 2
    for law in laws:
        if law not in names():
            expected = ", ".join(names())
            print(f"mutants: LAW={law}: expected one of {expected}", file=sys.stderr)
            return 2
    parts = [*laws, *([shard] if shard else [])]
    folder = OUT / "-".join(part.replace("/", "-") for part in parts)
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        *("cargo", "mutants", "--package", "waterfill-laws", "--output", str(folder)),
        *(part for law in laws for part in ("--file", _files(law))),
        *("--exclude", "**/tests.rs", "--exclude", "**/tests/**"),
        *("--iterate", "--jobs", str(jobs), "--minimum-test-timeout", str(MIN_TIMEOUT_S)),
        *("--cargo-test-arg=--lib", "--cargo-test-arg=--tests"),
        *(("--shard", shard, "--sharding", "round-robin") if shard else ()),
    ]
    code = subprocess.run(command, cwd=ROOT).returncode
    # 2: some were missed, 3: some ran into the time limit. Both are results.
    return 0 if code in (0, 2, 3) else code


def _files(law: str) -> str:
    path = f"{LAWS.relative_to(ROOT)}/{law}"
    return f"{path}.rs" if (ROOT / f"{path}.rs").exists() else f"{path}/**"


def results() -> dict[str, dict[str, set[str]]]:
    """Return the mutants of each law by their result: caught, missed, unviable.

    What one call caught stays caught. A mutant that did not end in time counts as caught.
    """
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for name in ("missed", "unviable", "timeout", "caught"):
        for line in _lines(name):
            law = line.removeprefix(f"{LAWS.relative_to(ROOT)}/").split("/")[0].split(".")[0]
            found[law]["caught" if name == "timeout" else name].add(line)
    for by_result in found.values():
        by_result["missed"] -= by_result["caught"]
    return dict(sorted(found.items()))


def _lines(name: str) -> Iterator[str]:
    for file in OUT.glob(f"*/mutants.out*/*{name}.txt"):
        yield from file.read_text().splitlines()


def table() -> str:
    """Return all results as a Markdown table, with the mutants that were missed below it."""
    rows: list[tuple[str, int, int]] = []
    missed: list[str] = []
    for law, found in results().items():
        rows.append((law, len(found["caught"]), len(found["caught"]) + len(found["missed"])))
        missed += [f"- `{line}`" for line in sorted(found["missed"])]
    if not rows:
        return "no results in out/mutants: make mutants LAW=maxnet SHARD=0/20"
    rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    shown = [f"| {law} | {n} | {of} | {n / of:.0%} |" if of else f"| {law} | 0 | 0 | – |"
             for law, n, of in rows]  # fmt: skip
    head = ["| law | caught | viable | share |", "|---|---|---|---|"]
    return "\n".join([*head, *shown, "", "Missed:", "", *missed])


def main() -> int:
    """Run the laws that are named, then print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("law", nargs="*")
    parser.add_argument("--shard", metavar="K/N")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    code = run(given.law, given.shard, given.jobs) if given.law else 0
    if not code:
        print(table())
    return code


if __name__ == "__main__":
    sys.exit(main())
