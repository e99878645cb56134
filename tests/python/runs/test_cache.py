"""What discards kept runs: the code that they depend on, and nothing else."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from known import ROOT
from waterfill.runs import cache

PACKAGE = ROOT / "python" / "waterfill"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A copy of the package with a core beside it."""
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(PACKAGE, tmp_path / "waterfill", ignore=ignored)
    (tmp_path / "core.so").write_bytes(b"core")
    return tmp_path


def version(installed: Path) -> str:
    return cache.code_hash(installed / "core.so", installed / "waterfill")


@pytest.mark.parametrize("name", ["scenario/units.py", "network/resolve.py", "runs/engine.py"])
def test_an_edit_of_what_runs_depend_on_discards_them(installed, name):
    before = version(installed)
    path = installed / "waterfill" / name
    path.write_text(path.read_text() + "\n# another line\n")
    assert version(installed) != before


def test_another_core_discards_runs(installed):
    before = version(installed)
    (installed / "core.so").write_bytes(b"other")
    assert version(installed) != before


@pytest.mark.parametrize("package", cache.PACKAGES)
def test_a_file_added_moved_or_removed_discards_runs(installed, package):
    folder = installed / "waterfill" / package
    seen = [version(installed)]
    (folder / "deeper").mkdir()
    (folder / "deeper" / "extra.py").write_text("X = 1\n")
    seen.append(version(installed))
    (folder / "deeper" / "extra.py").rename(folder / "extra.py")
    seen.append(version(installed))
    (folder / "__init__.py").unlink()
    seen.append(version(installed))
    assert len(set(seen)) == 4


@pytest.mark.parametrize(
    "name", ["cli/commands.py", "papers/output.py", "analysis/compare.py", "testbed/backend.py"]
)
def test_an_edit_of_anything_else_keeps_runs(installed, name):
    before = version(installed)
    path = installed / "waterfill" / name
    path.write_text(path.read_text() + "\n# another line\n")
    (installed / "waterfill" / "cli" / "new.py").write_text("X = 1\n")
    assert version(installed) == before


def test_the_version_is_of_this_installation():
    from waterfill import _core

    assert cache.version() == cache.code_hash(Path(_core.__file__), PACKAGE)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system has another folder")
def test_runs_are_kept_where_linux_users_expect_them(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert cache.root() == tmp_path / "elsewhere/waterfill"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.root() == tmp_path / ".cache/waterfill"
