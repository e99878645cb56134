"""`python -m validation.topologies`: see the package's docstring."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from validation.topologies import cases, reasons, report, running
from waterfill.errors import InputError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing and print the tables; exit code 1 if an exception has no reason."""
    parser = argparse.ArgumentParser(prog="python -m validation.topologies")
    parser.add_argument("--laws", help="laws, by commas; default: all of the fluid backend")
    parser.add_argument("--only", default="", help="networks whose name contains this")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    chosen = parser.parse_args(arguments)
    known = cases.laws()
    laws = chosen.laws.split(",") if chosen.laws else known
    unknown = [law for law in laws if law not in known]
    if unknown:
        parser.error(f"--laws: expected some of {', '.join(known)}, got {unknown[0]}")
    found = [name for group in cases.GROUPS for name in cases.names(group) if chosen.only in name]
    if not found:
        print("topologies: expected the package topohub and a network of it", file=sys.stderr)
        return 2
    rows: list[report.Explained] = []
    for name in found:
        for law in laws:
            try:
                record = finished(chosen.output, name, law)
            except InputError as error:
                print(f"{name} {law}: {error}", file=sys.stderr)
                return 2
            rows.append((record, reasons.explain(chosen.output, record)))
    rows.sort(key=lambda row: laws.index(row[0].law))
    (chosen.output / "exceptions.csv").write_text(report.exceptions(rows) + "\n", encoding="utf-8")
    print(report.summary(rows), report.evidence(rows), sep="\n\n")
    unexplained = [x for _, each in rows for x in each if x.reason == reasons.UNEXPLAINED]
    return 1 if unexplained else 0


def finished(folder: Path, name: str, law: str) -> running.Record:
    """Return the run of a law on a network; run it first if it is not there."""
    record = running.load(folder, name, law)
    if record is None:
        record = running.run(cases.build(name, law, running.ENDS_S[-1]))
        running.save(folder, record)
        worst = abs(record.errors).max()
        print(f"{name} {law}: {worst:.2%}, {record.took_s:.1f} s", file=sys.stderr)
    return record


if __name__ == "__main__":
    sys.exit(main())
