"""Check the licences of all installed Python packages that are pinned, as part of `make lint`.

Names each package whose licence is not known to permit what we publish under, and exits 1. A
package that is pinned but not installed here, as one for another platform, is only counted.
"""

from __future__ import annotations

import re
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# They permit use beside ours. No package is linked into a program or copied into the wheel.
PERMITTED = re.compile(
    r"MIT|BSD|0BSD|Apache|ISC|PSF|Python Software Foundation|MPL|Mozilla|Unlicense|Zlib|HPND|CNRI"
    r"|Public Domain|CC0|Historical Permission|matplotlib license",
    re.IGNORECASE,
)
# Package: why it is accepted. Tools of tests and builds, which nothing of ours contains.
ACCEPTED = {
    "atheris": "Apache-2.0, in its file LICENSE alone",
    "python-debian": "GPL-2.0-or-later: a part of reuse, which only reads our files",
}


def pinned(locks: list[Path]) -> set[str]:
    """Return the names of all packages in lock files."""
    names: set[str] = set()
    for lock in locks:
        for line in lock.read_text().splitlines():
            if match := re.match(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?==", line):
                names.add(re.sub(r"[-_.]+", "-", match[1]).lower())
    return names


def licence(name: str) -> str | None:
    """Return the licence that a package's metadata states, or None if the package is
    not installed.
    """
    try:
        about = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    said = [about[key].split("\n")[0] for key in ("License-Expression", "License") if key in about]
    said += [c for c in about.get_all("Classifier") or [] if c.startswith("License ::")]
    return "; ".join(part for part in said if part) or "none stated"


def main() -> int:
    """Check the licences of all installed packages that are pinned, and return the exit code."""
    names = sorted(pinned(sorted(ROOT.glob("requirements*.lock"))))
    found = {name: licence(name) for name in names}
    bad = {
        name: said
        for name, said in found.items()
        if said is not None and not PERMITTED.search(said) and name not in ACCEPTED
    }
    for name, said in bad.items():
        print(f"audit: {name}: licence not known to be permitted: {said}", file=sys.stderr)
    missing = sum(said is None for said in found.values())
    print(f"{len(found) - missing} Python packages checked, {missing} not installed here")
    return 1 if bad or missing == len(found) else 0


if __name__ == "__main__":
    sys.exit(main())
