"""How modules may depend on each other, read from their source by tools/structure.py."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from known import ROOT
from waterfill.runs import backends, cache
from waterfill.runs.backend import Backend

# Each may import from itself and from those before it.
ORDER = (
    "errors",
    "contract",
    "_core",
    "scenario",
    "network",
    "formats",
    "runs",
    "analysis",
    "builder",
    "theory",
    "papers",
    "sweeps",
    "report",
    "testbed",
    "studio",
    "cli",
    "__main__",
)


@pytest.fixture(scope="module")
def structure() -> ModuleType:
    spec = importlib.util.spec_from_file_location("structure", ROOT / "tools" / "structure.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["structure"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def shipped(structure):
    return structure.modules(ROOT / "python" / "waterfill")


@pytest.fixture(scope="module")
def everything(structure, shipped):
    return {**shipped, **structure.modules(ROOT / "validation")}


def package(name: str) -> str:
    """The part of waterfill that a module belongs to; "" for the public interface."""
    return name.removeprefix("waterfill").removeprefix(".").partition(".")[0]


def test_no_import_cycle(structure, everything):
    assert structure.cycles(structure.edges(everything)) == []


def test_packages_import_only_from_those_before_them(structure, shipped):
    wrong = [
        f"{name} imports {target}"
        for name, targets in structure.edges(shipped).items()
        for target in targets
        if package(name) and ORDER.index(package(target)) > ORDER.index(package(name))
    ]
    assert wrong == []


def test_nothing_shipped_imports_the_public_interface(structure, shipped):
    importers = [
        name for name, targets in structure.edges(shipped).items() if "waterfill" in targets
    ]
    assert importers == []


def test_nothing_shipped_knows_the_validation(shipped):
    named = [
        name
        for name, module in shipped.items()
        if re.search(r"^\s*(from|import) validation", module.path.read_text(), re.MULTILINE)
    ]
    assert named == []


def test_no_private_name_of_another_module(structure, everything):
    assert structure.privates(everything) == []


def test_no_import_for_its_side_effect(everything):
    silenced = [
        f"{module.path.name}: {line}"
        for module in everything.values()
        for line in module.path.read_text().splitlines()
        if "noqa" in line
    ]
    assert silenced == []


def test_modules_named_as_text_are_the_backends_and_the_public_interface(shipped):
    users = {
        name for name, module in shipped.items() if "import_module(" in module.path.read_text()
    }
    assert users == {"waterfill", "waterfill.runs.backends", "waterfill.runs.result"}
    for name in backends.BACKENDS:
        assert isinstance(backends.backend(name), Backend)


def test_kept_runs_depend_on_all_that_resolves_and_runs_a_scenario(structure, shipped):
    graph = structure.edges(shipped)
    needed, seen = ["waterfill.runs.backends", "waterfill.runs.engine"], set()
    while needed:
        name = needed.pop()
        if name not in seen:
            seen.add(name)
            needed += graph[name]
    # Errors are worded in `errors`; the core counts as what it is compiled to.
    assert {package(name) for name in seen} == {*cache.PACKAGES, "errors", "_core"}


# --- the tool itself ----------------------------------------------------------------------------


def build(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / "p" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "p"


def test_imports_in_functions_and_for_type_checkers_are_edges(structure, tmp_path):
    known = structure.modules(
        build(
            tmp_path,
            {
                "__init__.py": "",
                "a.py": "def f():\n    from p import b\n",
                "b.py": "from typing import *\nif TYPE_CHECKING:\n    from . import c\n",
                "c.py": "import p.a\n",
                "d/__init__.py": "from ..c import thing\n",
                "d/e.py": "from p.d import x\nimport os\n",
            },
        )
    )
    graph = structure.edges(known)
    assert graph["p.a"] == {"p.b"}
    assert graph["p.b"] == {"p.c"}
    assert graph["p.d"] == {"p.c"}
    assert graph["p.d.e"] == {"p.d"}
    assert structure.cycles(graph) == [["p.a", "p.b", "p.c"]]
    level = structure.levels(graph)
    assert (level["p.a"], level["p.c"], level["p.d"], level["p.d.e"]) == (1, 1, 2, 3)


def test_private_names_of_others_are_found(structure, tmp_path):
    known = structure.modules(
        build(
            tmp_path,
            {
                "a.py": "_X = 1\n",
                "b.py": "from p.a import _X\nfrom p import a\nprint(a._X, self._x, __name__)\n",
                "c.py": "import p.a as other\nprint(other._X)\n",
            },
        )
    )
    found = [(use.module, use.name) for use in structure.privates(known)]
    assert found == [("p.b", "_X"), ("p.b", "a._X"), ("p.c", "other._X")]


def test_counts(structure, tmp_path):
    folder = build(
        tmp_path,
        {
            "a.py": 'def f(x: Any, y: "int", **z: dict[str, Any]) -> Document:\n'
            '    w: Document = x["a"]["b"]\n    return x[0] + x[k] + w["c"]\n'
        },
    )
    figures = structure.summary(folder)
    assert figures["string subscripts"] == 3
    assert figures["Any in annotations"] == figures["Document in annotations"] == 2
    assert figures["longest function"] == "3 p.a.f"
    assert structure.main([str(folder)]) == 0
