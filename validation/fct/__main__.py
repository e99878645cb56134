"""`python -m validation.fct`: see the package's docstring."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from validation.fct import cases, report
from waterfill.errors import InputError
from waterfill.runs.files import make_directory, write_text
from waterfill.runs.result import to_json


def main(arguments: Sequence[str] | None = None) -> int:
    """Run or read all cases; print the tables, and write them with -o."""
    parser = argparse.ArgumentParser(prog="python -m validation.fct")
    known = cases.laws()
    parser.add_argument("--laws", default=",".join(known), metavar="A,B")
    parser.add_argument("--fabric", choices=[fabric.name for fabric in cases.FABRICS])
    parser.add_argument("--seeds", type=int, default=len(cases.SEEDS), metavar="N")
    parser.add_argument("-o", "--output", type=Path, default=Path("out/fct"), metavar="DIR")
    options = parser.parse_args(arguments)
    laws = options.laws.split(",")
    unknown = [law for law in laws if law not in known]
    if unknown:
        parser.error(f"--laws: expected some of {', '.join(known)}, got {unknown[0]}")
    if options.seeds < 1:
        parser.error(f"--seeds: expected at least 1, got {options.seeds}")
    fabrics = [f for f in cases.FABRICS if options.fabric in (None, f.name)]
    chosen = cases.cases(laws, fabrics, cases.LOADS, range(1, options.seeds + 1))
    try:
        runs = make_directory(options.output / "runs")
        rows = []
        for number, (case, row) in enumerate(cases.run(chosen, runs), start=1):
            rows.append(row)
            print(f"{number} of {len(chosen)}: {case.name}", file=sys.stderr)
        text = report.tables(rows)
        write_text(options.output / "fct.md", text + "\n")
        write_text(options.output / "fct.json", to_json(rows) + "\n")
    except InputError as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        return 130
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
