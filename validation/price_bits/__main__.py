"""`python -m validation.price_bits`: see the package's docstring."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from validation.price_bits import cases, report
from validation.price_bits.claims import claims


def main() -> int:
    """Run all cases; print claims and tables."""
    parser = argparse.ArgumentParser(prog="python -m validation.price_bits")
    parser.add_argument("laws", nargs="*", metavar="LAW", default=cases.LAWS)
    parser.add_argument("-o", "--output", type=Path, metavar="DIR")
    options = parser.parse_args()
    unknown = [law for law in options.laws if law not in cases.LAWS]
    if unknown:
        parser.error(f"{unknown[0]}: expected {', '.join(cases.LAWS)}")
    rows = cases.rows(cases.all_cases(options.laws))
    judged = claims(rows)
    print(report.claim_table(judged), report.margin_table(), report.row_table(rows), sep="\n\n")
    if options.output:
        report.write(options.output, rows, judged)
    return 0


if __name__ == "__main__":
    sys.exit(main())
