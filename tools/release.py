"""What a release states about itself: its version in every place, and the repository's address.

    .venv/bin/python -m tools.release check v0.3.0    # before a tag; exit 1 names what differs
    .venv/bin/python -m tools.release address         # writes the address, as the workflows do

The address is one variable, WATERFILL_REPOSITORY, such as https://github.com/OWNER/waterfill. The
workflows set it, so that a fork states its own. Without it, neither package nor site names one.
"""

from __future__ import annotations

import os
import re
import sys
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
VARIABLE = "WATERFILL_REPOSITORY"
# File: the pattern of its version. The first group is the version.
_VERSIONS = {
    "pyproject.toml": r'^version = "(\S+)"$',
    "Cargo.toml": r'^version = "(\S+)"$',
    "CITATION.cff": r"^version: (\S+)$",
}


def site_of(repository: str) -> str | None:
    """Return the address at which a repository's pages appear, or None if it is not on GitHub."""
    parts = urlsplit(repository)
    match = re.fullmatch(r"/([^/]+)/([^/]+)", parts.path)
    if parts.netloc != "github.com" or match is None:
        return None
    return f"https://{match[1].lower()}.github.io/{match[2]}/"


def urls_of(repository: str) -> dict[str, str]:
    """Return the `[project.urls]` of a package whose repository has an address."""
    pages = site_of(repository) or f"{repository}/blob/main/docs/README.md"
    return {
        "Repository": repository,
        "Documentation": pages,
        "Issues": f"{repository}/issues",
        "Changelog": f"{repository}/blob/main/CHANGELOG.md",
    }


def repository() -> str | None:
    """Return the repository's address from the environment, or None if it is not set.

    Raises ValueError if it is not an https address.
    """
    given = os.environ.get(VARIABLE, "").rstrip("/").removesuffix(".git")
    if given and not re.fullmatch(r"https://[^\s/\"]+/[^\s\"]+", given):
        raise ValueError(f"not an address: {VARIABLE}={given!r}; set https://HOST/OWNER/NAME")
    return given or None


def with_address(project: str, record: str, address: str) -> tuple[str, str]:
    """Return the texts of pyproject.toml and CITATION.cff with the repository's address.

    An address that they have already is replaced.
    """
    table = "".join(f'{name} = "{url}"\n' for name, url in urls_of(address).items())
    project = re.sub(r"^\[project\.urls\]\n(?:\w.*\n)*\n", "", project, flags=re.M)
    project = project.replace(
        "[project.scripts]\n", f"[project.urls]\n{table}\n[project.scripts]\n"
    )
    record = re.sub(r"^repository-code: .*\n", "", record, flags=re.M)
    record = re.sub(r"^(version: )", f"repository-code: {address}\n\\1", record, flags=re.M)
    return project, record


def problems(tag: str, root: Path = ROOT) -> list[str]:
    """Return one sentence for each place that does not fit a release tag such as `v0.3.0`."""
    if not re.fullmatch(r"v\d+\.\d+\.\d+", tag):
        return [f"not a release's tag: {tag!r}; type v and the version, as in v0.3.0"]
    wanted, found = tag[1:], []
    for path, pattern in _VERSIONS.items():
        match = re.search(pattern, _text(root, path), re.M)
        if match is None or match[1] != wanted:
            found.append(f"{path} has version {match and match[1]}; set {wanted}")
    changes = _text(root, "CHANGELOG.md")
    heading = re.search(rf"^## {re.escape(wanted)} \((.+)\)$", changes, re.M)
    if heading is None:
        return [*found, f"CHANGELOG.md has no section {wanted}; write ## {wanted} (1 January 2027)"]
    if re.search(r"^## Unreleased\n+(?!## )", changes, re.M):
        found.append(f"CHANGELOG.md has changes under Unreleased; move them to {wanted}")
    day = datetime.strptime(heading[1], "%d %B %Y").date().isoformat()
    if not re.search(rf"^date-released: {day}$", _text(root, "CITATION.cff"), re.M):
        found.append(f"CITATION.cff has another day than CHANGELOG.md; set date-released: {day}")
    return found


def _text(root: Path, path: str) -> str:
    return (root / path).read_text(encoding="utf-8")


def main() -> int:
    """Run `check TAG` or `address`; return the exit code."""
    match sys.argv[1:]:
        case ["check", tag]:
            found = problems(tag)
            print("\n".join(f"release: {one}" for one in found) or f"release: {tag} is consistent")
            return int(bool(found))
        case ["address"]:
            try:
                address = repository()
            except ValueError as error:
                print(f"release: {error}", file=sys.stderr)
                return 2
            if address is None:
                print(f"release: no address; set {VARIABLE}", file=sys.stderr)
                return 2
            paths = [ROOT / "pyproject.toml", ROOT / "CITATION.cff"]
            project, record = (path.read_text(encoding="utf-8") for path in paths)
            texts = with_address(project, record, address)
            for path, text in zip(paths, texts, strict=True):
                path.write_text(text, encoding="utf-8")
            return 0
        case _:
            print("release: unknown arguments; type check TAG, or address", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
