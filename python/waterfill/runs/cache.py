"""Cache of run results, keyed by a hash of the scenario, the backend and the code.

A run is a function of its scenario (with the seed), the backend and the code. The key is a hash of
all three, so an entry is never stale, only unused. Entries are folders in the user's cache
folder (on Linux `$XDG_CACHE_HOME/waterfill`, else `~/.cache/waterfill`), grouped by version of the
code; the two versions used last are kept. Entries appear atomically; leftovers of killed processes
are removed.

An entry lists its files with their SHA-256, and that of the list. It is read whole and checked
before any of it counts: whatever is wrong with an entry, it is as if it was not there, and the next
run replaces it.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

from waterfill import _core
from waterfill.errors import InputError
from waterfill.runs import files
from waterfill.runs.directory import next_to, swap
from waterfill.runs.result import Result, to_json
from waterfill.runs.stored import NETWORK, StoredResult

if TYPE_CHECKING:
    from waterfill.scenario.document import Scenario

# The code that resolves a scenario and runs it on sim or fluid. No command keeps runs on Linux.
PACKAGES = ("contract", "scenario", "network", "runs")

MANIFEST = "entry.json"
_FORMAT = 3
_VERSIONS_KEPT = 2
_DAY_S = 86_400
# Larger runs are not kept, and nobody is made to read more than that.
_MAX_BYTES = 1 << 30
_MAX_MANIFEST_BYTES = 1 << 16

# What reading an entry raises that is not there, damaged, hostile, or just being removed.
_NOT_THERE = (
    OSError, ValueError, LookupError, TypeError, AttributeError, MemoryError, RecursionError,
)  # fmt: skip


def root() -> Path:
    """Return the folder that holds all cache entries."""
    return platformdirs.user_cache_path("waterfill", appauthor=False)


def code_hash(core: Path, package: Path) -> str:
    """Hash the code that determines a run's results: the core extension and the `PACKAGES`.

    A file counts with its path and its content, so that one added, moved or removed counts too.
    """
    digest = hashlib.sha256(core.read_bytes())
    for path in sorted(path for name in PACKAGES for path in (package / name).rglob("*.py")):
        name = path.relative_to(package).as_posix()
        digest.update(b"\0" + name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def version() -> str:
    """Return the `code_hash` of this installation."""
    return code_hash(Path(_core.__file__ or ""), Path(__file__).parents[1])


def entry(scenario: Scenario, backend: str, context: str = "") -> Path:
    """Return the path of a run's cache folder, which may not exist.

    `context` names what else the run depends on: on linux the kernel and the daemon.
    """
    text = f"{backend}{context}\n{scenario.to_toml()}"
    return root() / version() / hashlib.sha256(text.encode()).hexdigest()[:32]


def lookup(scenario: Scenario, backend: str, context: str = "") -> Result | None:
    """Return the cached result of a run, or None if the cache entry is missing or damaged."""
    folder = entry(scenario, backend, context)
    try:
        found = StoredResult(folder, _read(folder))
        found.check()
    except _NOT_THERE:
        return None
    if found.scenario_toml != scenario.to_toml() or found.summary.backend != backend:
        return None
    return found


def _read(folder: Path) -> dict[str, bytes]:
    """Return the contents of a cache entry's files by name; raise an exception if the entry is
    damaged.
    """
    text = files.read_text(folder / MANIFEST, _MAX_MANIFEST_BYTES)
    manifest = json.loads(text)
    if manifest["format"] != _FORMAT or manifest["key"] != folder.name:
        raise ValueError("another entry's manifest")
    if to_json(manifest, indent=None) != text:
        raise ValueError("a damaged manifest")
    if _digest(manifest["files"]) != manifest["sha256"]:
        raise ValueError("a list of other files")
    found = {}
    for name, size, digest in manifest["files"]:
        if name != os.path.basename(name):
            raise ValueError("a file of another folder")
        with files.open_regular(folder / name, _MAX_BYTES) as file:
            found[name] = file.read()
        if len(found[name]) != size or hashlib.sha256(found[name]).hexdigest() != digest:
            raise ValueError("a damaged file")
    return found


def store(scenario: Scenario, backend: str, result: Result, context: str = "") -> None:
    """Store a completed run in the cache; do nothing if the cache cannot be written."""
    folder = entry(scenario, backend, context)
    # The disk is full or read-only, or another process was first.
    with suppress(OSError, InputError):
        folder.parent.mkdir(parents=True, exist_ok=True)
        _forget_old_versions()
        with next_to(folder) as part:
            result.write_into(part)
            network = to_json(result.network.to_dict(), indent=None)
            files.write_text(part / NETWORK, network)
            manifest = _manifest(folder.name, part)
            if sum(size for _, size, _ in manifest["files"]) <= _MAX_BYTES:
                files.write_text(part / MANIFEST, to_json(manifest, indent=None))
            swap(part, folder)


def _manifest(key: str, folder: Path) -> Mapping[str, Any]:
    """Return the manifest of a cache entry, with the name, size and SHA-256 of each file."""
    listed = []
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        listed.append((path.name, len(content), hashlib.sha256(content).hexdigest()))
    return {"format": _FORMAT, "key": key, "files": listed, "sha256": _digest(listed)}


def _digest(listed: Any) -> str:
    """Return the SHA-256 of a manifest's list of files, which detects rows lost from the list."""
    return hashlib.sha256(to_json(listed, indent=None).encode()).hexdigest()


@cache
def _forget_old_versions() -> None:
    versions = [path for path in root().iterdir() if path.is_dir() and path.name != version()]
    versions.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for old in versions[_VERSIONS_KEPT - 1 :]:
        files.remove(old)
    for path in (root() / version()).iterdir():  # of a process that was killed long ago
        if path.name.startswith(".") and time.time() - path.lstat().st_mtime > _DAY_S:
            files.remove(path)
