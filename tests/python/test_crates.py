"""Tests that no two modules of a Rust crate import each other, except a module and its parts, and
that no file of tests is left out of its program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from known import ROOT

CRATES = sorted(path.parent for path in ROOT.glob("crates/*/src"))
Name = tuple[str, ...]


def modules(source: Path) -> dict[Name, Path]:
    found = {}
    for path in sorted(source.rglob("*.rs")):
        *folders, last = path.relative_to(source).with_suffix("").parts
        name = (*folders,) if last in ("mod", "lib", "main") else (*folders, last)
        if not {"tests", "testing"} & set(name):
            found[name] = path
    return found


def expand(tree: str, prefix: str = "") -> Iterator[str]:
    """Yield every path of a `use` tree."""
    head, brace, rest = tree.strip().partition("{")
    if not brace:
        yield prefix + head.partition(" as ")[0].strip()
        return
    depth, part = 0, ""
    for character in rest.rpartition("}")[0] + ",":
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            if part.strip():
                yield from expand(part, prefix + head)
            part = ""
        else:
            part += character


def imports(module: Name, text: str) -> Iterator[Name]:
    """Yield the paths inside the crate that a module's code names, its unit tests left out."""
    body = re.split(r"#\[cfg\(test\)\]\s*mod tests", re.sub(r"//[^\n]*", "", text))[0]
    paths = [path for use in re.findall(r"\buse\s+([^;]+);", body) for path in expand(use)]
    for path in paths + re.findall(r"\b(?:crate|super)(?:::\w+)+", body):
        start, *rest = path.split("::")
        base = {"crate": (), "self": module, "super": module[:-1]}.get(start)
        while base and rest[:1] == ["super"]:
            base, rest = base[:-1], rest[1:]
        if base is not None:
            yield (*base, *rest)


def edges(source: Path) -> dict[str, set[str]]:
    known = modules(source)
    graph: dict[str, set[str]] = {"::".join(name): set() for name in known}
    for name, path in known.items():
        for target in imports(name, path.read_text(encoding="utf-8")):
            while target and target not in known:
                target = target[:-1]
            nested = target[: len(name)] == name or name[: len(target)] == target
            if target and not nested:
                graph["::".join(name)].add("::".join(target))
    return graph


@pytest.mark.parametrize("crate", CRATES, ids=lambda path: path.name)
def test_no_circle_of_imports(crate):
    graph = edges(crate / "src")
    assert any(graph.values()) or len(graph) < 3
    TopologicalSorter(graph).prepare()  # raises an error that lists a circle


def test_a_circle_is_found(tmp_path):
    (tmp_path / "a.rs").write_text("use crate::{b::{self, X as Y}, c};\n")
    (tmp_path / "b.rs").write_text("// crate::a\nfn f() { super::c::g() }\n")
    (tmp_path / "c.rs").write_text("use super::a;\n#[cfg(test)]\nmod tests { use crate::b; }\n")
    assert edges(tmp_path) == {"a": {"b", "c"}, "b": {"c"}, "c": {"a"}}
    with pytest.raises(CycleError):
        TopologicalSorter(edges(tmp_path)).prepare()


ALL_TESTS = sorted(ROOT.glob("crates/*/tests/all.rs"))


@pytest.mark.parametrize("program", ALL_TESTS, ids=lambda path: path.parts[-3])
def test_one_program_has_every_file_of_tests(program):
    # Cargo does not look for files that this program does not name, and they would never run.
    files = {path.stem for path in program.parent.glob("*.rs")} - {"all"}
    assert files <= set(re.findall(r"^mod (\w+);", program.read_text("utf-8"), re.MULTILINE))
