"""Prints the shape of the Python package: modules, levels, imports, cycles, lines, loose types.

    python tools/structure.py [--json] [PACKAGE]      # PACKAGE is python/waterfill by default

Reads the source only and imports none of it. An import anywhere is an edge, in a function or under
TYPE_CHECKING too. A module's level is the longest chain of imports below it, 1 for a module that
imports none of the package; the modules of a cycle share a level.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOOSE = ("Any", "Document")


@dataclass(frozen=True)
class Module:
    """One file of the package."""

    name: str
    path: Path
    tree: ast.Module
    lines: int
    is_package: bool


@dataclass(frozen=True)
class Private:
    """A name with a leading underscore that another module defines."""

    module: str
    line: int
    name: str


def modules(package: Path) -> dict[str, Module]:
    """Every module of a package, stubs included, by its dotted name; `package` is its folder."""
    found = {}
    for path in sorted([*package.rglob("*.py"), *package.rglob("*.pyi")]):
        parts = path.relative_to(package.parent).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        text = path.read_text(encoding="utf-8")
        found[name] = Module(name, path, ast.parse(text), text.count("\n"), is_package)
    return found


def imported(module: Module, known: Mapping[str, Module]) -> Iterator[tuple[str, str, int]]:
    """(module, name in it or "", line) for each import of one of `known`."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in known:
                    yield alias.name, "", node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.name.split(".")
                kept = len(parts) - node.level + module.is_package
                base = ".".join([*parts[:kept], *([node.module] if node.module else [])])
            for alias in node.names:
                if f"{base}.{alias.name}" in known:
                    yield f"{base}.{alias.name}", "", node.lineno
                elif base in known:
                    yield base, alias.name, node.lineno


def edges(known: Mapping[str, Module]) -> dict[str, set[str]]:
    """For each module the modules that it imports."""
    return {
        name: {target for target, _, _ in imported(module, known)} - {name}
        for name, module in known.items()
    }


def components(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """The strongly connected components (Tarjan), each after those that it imports."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph[node]):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            place = stack.index(node)
            found.append(sorted(stack[place:]))
            del stack[place:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """The groups of modules that import each other, directly or not."""
    return [group for group in components(graph) if len(group) > 1]


def levels(graph: Mapping[str, set[str]]) -> dict[str, int]:
    """Each module's level: one more than the highest level that it imports."""
    level: dict[str, int] = {}
    for group in components(graph):
        below = {target for name in group for target in graph[name]} - set(group)
        level.update(dict.fromkeys(group, 1 + max((level[t] for t in below), default=0)))
    return level


def privates(known: Mapping[str, Module]) -> list[Private]:
    """Every use of a private name of another module: imported, or as an attribute of a module."""
    found = []
    for name, module in known.items():
        aliases = set(_aliases(module, known))
        for _, own, line in imported(module, known):
            if _private(own):
                found.append(Private(name, line, own))
        for node in ast.walk(module.tree):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in aliases
                and _private(node.attr)
            ):
                found.append(Private(name, node.lineno, f"{node.value.id}.{node.attr}"))
    return found


def _aliases(module: Module, known: Mapping[str, Module]) -> Iterator[str]:
    """The local names that stand for a module of `known`."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (
                alias.asname for alias in node.names if alias.asname and alias.name in known
            )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if f"{node.module}.{alias.name}" in known:
                    yield alias.asname or alias.name


def _private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def subscripts(tree: ast.AST) -> int:
    """Number of subscripts that have a string as their key: `flow["rate_bps"]`."""
    return sum(
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
        for node in ast.walk(tree)
    )


def hints(tree: ast.AST) -> Iterator[ast.expr]:
    """Every annotation: of arguments, results, variables and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            yield node.returns
        elif (isinstance(node, ast.arg) and node.annotation is not None) or isinstance(
            node, ast.AnnAssign
        ):
            assert node.annotation is not None
            yield node.annotation


def loose(tree: ast.AST) -> dict[str, int]:
    """Number of annotations that contain each name of `LOOSE`."""
    counts = dict.fromkeys(LOOSE, 0)
    for annotation in hints(tree):
        for node in ast.walk(annotation):
            if isinstance(node, ast.Name) and node.id in counts:
                counts[node.id] += 1
    return counts


def longest_function(known: Mapping[str, Module]) -> tuple[int, str]:
    """The lines of the longest function, decorators included, and where it is."""
    found = [(0, "")]
    for name, module in known.items():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                found.append(((node.end_lineno or first) - first + 1, f"{name}.{node.name}"))
    return max(found)


def summary(package: Path) -> dict[str, object]:
    """All figures of a package, by name."""
    known = modules(package)
    graph = edges(known)
    counts = [loose(module.tree) for module in known.values()]
    lines, where = longest_function(known)
    longest = max(known.values(), key=lambda module: module.lines)
    return {
        "modules": len(known),
        "levels": max(levels(graph).values()),
        "import edges": sum(map(len, graph.values())),
        "cycles": [" <-> ".join(group) for group in cycles(graph)],
        "private names across modules": len(privates(known)),
        "lines": sum(module.lines for module in known.values()),
        "string subscripts": sum(subscripts(module.tree) for module in known.values()),
        **{f"{name} in annotations": sum(c[name] for c in counts) for name in LOOSE},
        "longest file": f"{longest.lines} {longest.name}",
        "longest function": f"{lines} {where}",
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; always 0."""
    parser = argparse.ArgumentParser(description="print the shape of the Python package")
    parser.add_argument("package", type=Path, nargs="?", default=ROOT / "python" / "waterfill")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    chosen = parser.parse_args(arguments)
    figures = summary(chosen.package.resolve())
    if chosen.json:
        print(json.dumps(figures, indent=2))
        return 0
    for name, value in figures.items():
        shown = ("; ".join(value) or "none") if isinstance(value, list) else value
        print(f"{name:30} {shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
