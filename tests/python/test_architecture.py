"""ARCHITECTURE.md is one page and true: it lists every package in dependency order."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from known import ROOT

TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PACKAGES = re.findall(r"^\| `((?:crates|python)/[\w/-]+|validation)` \|", TEXT, re.MULTILINE)
CRATES = sorted(path.parent for path in (ROOT / "crates").glob("*/Cargo.toml"))
PYTHON = ROOT / "python" / "waterfill"


def imports(path: Path) -> Iterator[str]:
    """Our own modules that a Python file imports, as dotted names."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("waterfill"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.startswith("waterfill"))


def uses() -> dict[str, set[str]]:
    """The packages that each package uses, from its Cargo.toml or its imports."""
    found = {}
    for crate in CRATES:
        manifest = (crate / "Cargo.toml").read_text(encoding="utf-8")
        depends = manifest.partition("\n[dependencies]")[2].partition("\n[")[0]
        names = set(re.findall(r"^(waterfill-\w+)", depends, re.MULTILINE))
        found[f"crates/{crate.name}"] = {f"crates/{name}" for name in names}
    folders = {path.parent for path in PYTHON.glob("*/__init__.py")}
    for folder in [*sorted(folders), ROOT / "validation"]:
        names = {name for path in folder.rglob("*.py") for name in imports(path)}
        parts = {name.split(".")[1] for name in names if "." in name}
        own = str(folder.relative_to(ROOT))
        found[own] = {f"python/waterfill/{part}" for part in parts if PYTHON / part in folders} - {
            own
        }
    return found


def test_it_is_one_page():
    lines = TEXT.splitlines()
    assert len(lines) <= 80
    assert [line for line in lines if len(line) > 160] == []


def test_every_package_is_listed_below_those_it_uses():
    used = uses()
    assert sorted(PACKAGES) == sorted(used)
    wrong = [
        (package, other)
        for place, package in enumerate(PACKAGES)
        for other in used[package]
        if other not in PACKAGES[:place]
    ]
    assert wrong == []


def test_every_file_and_folder_that_it_names_exists():
    named = {
        name
        for name in re.findall(r"`([\w./-]+)`", TEXT)
        if re.search(r"\.(?:rs|py|pyi|c|h|md)$", name) or "/" in name
    }
    assert len(named) > 40
    missing = []
    for name in sorted(named):
        folders = [ROOT, ROOT / "crates", PYTHON, ROOT / "validation"]
        if not any(next(folder.glob(f"**/{name}"), None) for folder in folders[1:]) and not (
            (ROOT / name).exists()
        ):
            missing.append(name)
    assert missing == []
