"""Causes that discard kept runs: a change of the code that they depend on, and any damage."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from known import ROOT
from waterfill.runs import backends, cache, files
from waterfill.runs.result import Result
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict

PACKAGE = ROOT / "python" / "waterfill"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A copy of the package with a core next to it."""
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


# --- damage ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def once() -> tuple[Scenario, Result]:
    """A run with traffic and transfers, so that its entry has every kind of file."""
    link = {"name": "l", "from": "a", "to": "b", "rate": "10 Mbit/s", "delay": "5 ms"}
    flow = {"name": "f", "path": ["l"], "size": "20 kB"}
    traffic = {"name": "t", "kind": "cbr", "rate": "1 Mbit/s", "path": ["l"]}
    document = {"duration": "1 s", "protocol": "maxnet", "link": [link], "flow": [flow]}
    checked = from_dict({**document, "traffic": [traffic]})
    return checked, backends.run(checked)


@pytest.fixture
def kept(once, tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(cache, "root", lambda: tmp_path / "waterfill")
    cache.store(*sim(once))
    return cache.entry(once[0], "sim")


def sim(once):
    return once[0], "sim", once[1]


FILES = (
    "summary.json", "scenario.toml", "flows.parquet", "links.parquet", "traffic.parquet",
    "transfers.parquet", "network.json", cache.MANIFEST,
)  # fmt: skip


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def replaced(make):
    def damage(path: Path) -> None:
        path.unlink()
        make(path)

    return damage


DAMAGE = {
    "deleted": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b" "),
    "bit flipped": flipped,
    "[]": lambda path: path.write_text("[]"),
    "{}": lambda path: path.write_text("{}"),
    "null": lambda path: path.write_text("null"),
    "deep": lambda path: path.write_text("[" * 30_000),
    "no text": lambda path: path.write_bytes(b"\xff\xfe\0"),
    "FIFO": replaced(os.mkfifo),
    "directory": replaced(Path.mkdir),
    "symlink loop": replaced(lambda path: path.symlink_to(path.name)),
    "symlink": replaced(lambda path: path.symlink_to("/dev/zero")),
    "device": replaced(lambda path: path.symlink_to("/dev/stdin")),
}


def equal(found: Result | None, result: Result) -> bool:
    tables = ("flows", "links", "traffic", "transfers")
    return (
        found is not None
        and found.to_json() == result.to_json()
        and found.network == result.network
        and all(getattr(found, name).equals(getattr(result, name)) for name in tables)
    )


def test_an_undamaged_entry_is_the_run(once, kept):
    assert {path.name for path in kept.iterdir()} == set(FILES)
    assert equal(cache.lookup(once[0], "sim"), once[1])


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_entry_is_a_miss_and_is_replaced(once, kept, damage):
    for name in FILES:
        damage(kept / name)
        assert cache.lookup(once[0], "sim") is None, name
        cache.store(*sim(once))
        assert equal(cache.lookup(once[0], "sim"), once[1]), name
    assert os.listdir(kept.parent) == [kept.name]


@pytest.mark.parametrize(
    "damage", [Path.mkdir, os.mkfifo, lambda path: path.write_text(""),
               lambda path: path.symlink_to(path.name)],
    ids=["directory", "FIFO", "file", "loop"],
)  # fmt: skip
def test_something_else_in_an_entrys_place_is_a_miss_and_is_replaced(once, kept, damage):
    shutil.rmtree(kept)
    damage(kept)
    assert cache.lookup(once[0], "sim") is None
    cache.store(*sim(once))
    assert equal(cache.lookup(once[0], "sim"), once[1])


def test_another_runs_entry_is_a_miss(once, kept):
    """Whole, with its checksums: but of another scenario, backend or key."""
    other = once[0].model_copy(update={"seed": 7})
    shutil.copytree(kept, cache.entry(other, "sim"))
    assert cache.lookup(other, "sim") is None
    shutil.copytree(kept, cache.entry(once[0], "fluid"))
    assert cache.lookup(once[0], "fluid") is None
    # With a manifest that agrees.
    cache.store(other, "sim", once[1])
    assert cache.lookup(other, "sim") is None


def rewritten(folder: Path, name: str, text: bytes) -> None:
    """Replace a file, with checksums that agree: by somebody who knows how entries are made."""
    (folder / name).write_bytes(text)
    manifest = json.loads((folder / cache.MANIFEST).read_text())
    sums = {name: (len(text), hashlib.sha256(text).hexdigest())}
    manifest["files"] = [[n, *sums.get(n, rest)] for n, *rest in manifest["files"]]
    manifest["sha256"] = cache._digest(manifest["files"])
    (folder / cache.MANIFEST).write_text(json.dumps(manifest))


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b"null", b"1e999", b'{"engine": 1}', b"\xff"])
@pytest.mark.parametrize("name", ["summary.json", "network.json", "flows.parquet"])
def test_hostile_content_with_right_checksums_is_a_miss(once, kept, name, text):
    rewritten(kept, name, text)
    assert cache.lookup(once[0], "sim") is None


@pytest.mark.parametrize(
    "manifest",
    [
        [], None, 1, {"format": 2}, {"format": 3, "key": ""}, {"sha256": None}, {"sha256": ""},
        {"files": None}, {"files": [["summary.json"]]}, {"files": [[1, 2, 3]]}, {"files": []},
        {"files": [["../x", 0, ""]]}, {"files": [["/dev/zero", 10**12, ""]]},
        {"files": [["summary.json", -1, ""]]}, {"files": [["summary.json", 10**30, ""]]},
        {"key": "other"},
    ],
)  # fmt: skip
def test_a_hostile_manifest_is_a_miss(once, kept, manifest):
    path = kept / cache.MANIFEST
    if isinstance(manifest, dict):
        stored = json.loads(path.read_text())
        if "files" in manifest:
            stored["sha256"] = cache._digest(manifest["files"])
        manifest = {**stored, **manifest}
    path.write_text(json.dumps(manifest))
    assert cache.lookup(once[0], "sim") is None


@pytest.mark.parametrize("name", FILES[:-1])
def test_a_manifest_that_lost_a_file_is_a_miss(once, kept, name):
    """Without the row of transfers.parquet the run was found, with no transfers."""
    path = kept / cache.MANIFEST
    manifest = json.loads(path.read_text())
    manifest["files"] = [row for row in manifest["files"] if row[0] != name]
    path.write_text(json.dumps(manifest))
    assert cache.lookup(once[0], "sim") is None


def test_an_entry_of_an_older_version_is_a_miss(once, kept):
    """An entry of a version that had no manifests."""
    (kept / cache.MANIFEST).unlink()
    assert cache.lookup(once[0], "sim") is None


def test_an_entry_that_is_removed_after_it_was_found_is_still_whole(once, kept):
    found = cache.lookup(once[0], "sim")
    shutil.rmtree(kept)
    assert equal(found, once[1])


# Ends without Python's exit, which Arrow's threads abort now and then (4 of 100 on a loaded host).
FILLER = """
import os, sys
from waterfill.runs import backends, cache
from waterfill.scenario.loading import from_toml
checked = from_toml(sys.stdin.read(), "s")
result = backends.run(checked)
for _ in range(5):
    cache.store(checked, "sim", result)
    found = cache.lookup(checked, "sim")
    assert found is None or found.flows.equals(result.flows)
os._exit(0)
"""


def test_two_processes_fill_one_entry(once, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    both = [
        subprocess.Popen([sys.executable, "-c", FILLER], stdin=subprocess.PIPE) for _ in range(2)
    ]
    for process in both:
        assert process.stdin is not None
        process.stdin.write(once[0].to_toml().encode())
        process.stdin.close()
    assert [process.wait() for process in both] == [0, 0]
    folder = cache.entry(once[0], "sim")
    assert cache.lookup(once[0], "sim") is not None
    assert os.listdir(folder.parent) == [folder.name]


def test_a_full_cache_disk_is_no_error(once, kept, monkeypatch):
    def full(path, write):
        raise files.WriteError(str(path), "", "cannot be written: no space left on device")

    monkeypatch.setattr(files, "write_atomically", full)
    shutil.rmtree(kept)
    cache.store(*sim(once))
    assert cache.lookup(once[0], "sim") is None
    assert os.listdir(kept.parent) == []
