"""Tests beyond the linters of imports: the public interface, imports by text, kept runs."""

from __future__ import annotations

import re

import grimp

from known import ROOT
from waterfill.runs import backends, cache
from waterfill.runs.backend import Backend

SHIPPED = {
    ".".join(path.relative_to(ROOT / "python").with_suffix("").parts): path.read_text("utf-8")
    for path in sorted((ROOT / "python" / "waterfill").rglob("*.py"))
}
VALIDATION = [path.read_text("utf-8") for path in (ROOT / "validation").rglob("*.py")]


def package(name: str) -> str:
    """The part of waterfill that a module belongs to; "" for the public interface."""
    return name.removeprefix("waterfill").removeprefix(".").partition(".")[0]


def test_nothing_shipped_imports_the_public_interface():
    parts = {package(name) for name in SHIPPED} | {"_core"}
    imported = {
        (name, word)
        for name, text in SHIPPED.items()
        for names in re.findall(r"^ *from waterfill import (.+)$", text, re.MULTILINE)
        for word in re.findall(r"\w+", names.replace(" as ", "."))
    }
    assert [pair for pair in imported if pair[1] not in parts] == []


def test_no_import_for_its_side_effect():
    texts = [*SHIPPED.values(), *VALIDATION]
    assert [line for text in texts for line in text.splitlines() if "noqa" in line] == []


def test_modules_named_as_text_are_the_backends_and_the_public_interface():
    users = {name for name, text in SHIPPED.items() if "import_module(" in text}
    assert users == {"waterfill.__init__", "waterfill.runs.backends"}
    for name in backends.BACKENDS:
        assert isinstance(backends.backend(name), Backend)


def test_kept_runs_depend_on_all_that_resolves_and_runs_a_scenario():
    graph = grimp.build_graph("waterfill", cache_dir=None)
    for target in graph.find_modules_directly_imported_by("waterfill"):
        graph.remove_import(importer="waterfill", imported=target)  # loaded when they are used
    starts = {"waterfill.runs.backends", "waterfill.runs.engine"}
    needed = starts.union(*(graph.find_upstream_modules(name) for name in starts))
    # Errors are worded in `errors`; the core counts as what it is compiled to.
    assert {package(name) for name in needed - {"waterfill"}} == {*cache.PACKAGES, "errors"}
