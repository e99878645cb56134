"""Hash the results of every scenario in examples/ and papers/, to verify that a change preserves
them.

    .venv/bin/python tools/result_hashes.py before.json            # record
    .venv/bin/python tools/result_hashes.py after.json --against before.json

One hash covers summary.json less its version and `engine`'s times, and the decoded columns of
each time series (values, types and nulls; not the Parquet files, whose bytes depend on the library
that wrote them). The same code gives the same hashes on every host. A scenario that
a backend refuses is recorded as refused: a refusal that appears or goes is a change too, its
wording is not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
BACKENDS = ("sim", "fluid")


def scenarios() -> list[Path]:
    """Return every scenario file in examples/ and papers/, sorted by path."""
    found = [*ROOT.glob("examples/*.toml"), *ROOT.glob("papers/*/*/*.toml")]
    return sorted(path for path in found if path.name != "claims.toml")


def digest_of(case: tuple[Path, str]) -> str:
    """Run one scenario and return the SHA-256 of its results in hex, or `refused`."""
    import pyarrow as pa

    import waterfill
    from waterfill.contract.summary import CLOCKED

    path, backend = case
    try:
        result = waterfill.run(path, on=backend)
    except waterfill.InputError:
        return "refused"
    digest = hashlib.sha256()
    summary = json.loads(result.to_json())
    summary.pop("version", None)
    for key in CLOCKED:
        summary["engine"].pop(key, None)
    digest.update(json.dumps(summary, sort_keys=True).encode())
    for table in (result.flows, result.links, result.traffic):
        for name in table.column_names:
            column = table[name]
            if pa.types.is_dictionary(column.type):
                column = column.cast(pa.string())
            digest.update(f"{name} {column.type} {column.null_count}".encode())
            digest.update(repr(column.to_pylist()).encode())
    return digest.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description="hash the results of every committed scenario")
    parser.add_argument("output", type=Path, help="JSON file to write")
    parser.add_argument("--against", type=Path, help="hashes to compare with; exit 1 if any differ")
    parser.add_argument("--only", default="", help="only scenarios whose path contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="worker processes")
    options = parser.parse_args()

    cases = [(path, on) for path in scenarios() if options.only in str(path) for on in BACKENDS]
    with ProcessPoolExecutor(options.jobs) as pool:
        digests = dict(
            zip(
                (f"{path.relative_to(ROOT)} {on}" for path, on in cases),
                pool.map(digest_of, cases),
                strict=True,
            )
        )
    options.output.write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8")
    refused = sum(digest == "refused" for digest in digests.values())
    print(f"{len(digests)} runs hashed, {refused} of them refused by their backend")
    if options.against is None:
        return 0
    before = json.loads(options.against.read_text(encoding="utf-8"))
    changed = [case for case in digests if before.get(case) != digests[case]]
    for case in changed:
        print(f"changed: {case}", file=sys.stderr)
    print(f"{len(digests) - len(changed)} unchanged, {len(changed)} changed")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
