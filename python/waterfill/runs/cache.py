"""Keeps the results of runs, keyed by the content of scenario and code.

A run is a function of its scenario (with the seed), the backend and the code. The key is a hash of
all three, so an entry is never stale, only unused. Entries are folders in the user's cache
folder (on Linux `$XDG_CACHE_HOME/waterfill`, else `~/.cache/waterfill`), grouped by version of the
code; the two versions used last are kept. Entries appear atomically; leftovers of killed processes
are removed.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from waterfill import _core
from waterfill.runs.result import Result, to_json
from waterfill.runs.stored import StoredResult

if TYPE_CHECKING:
    from waterfill.scenario.document import Scenario

# The code that resolves a scenario and runs it on sim or fluid. Runs on Linux are not kept.
PACKAGES = ("contract", "scenario", "network", "runs")

_VERSIONS_KEPT = 2


def root() -> Path:
    """Return the folder of all entries."""
    return platformdirs.user_cache_path("waterfill", appauthor=False)


def code_hash(core: Path, package: Path) -> str:
    """Hash the code that a run's bytes depend on: the core extension and the `PACKAGES`.

    A file counts with its path and its content, so that one added, moved or removed counts too.
    """
    digest = hashlib.sha256(core.read_bytes())
    for path in sorted(path for name in PACKAGES for path in (package / name).rglob("*.py")):
        name = path.relative_to(package).as_posix()
        digest.update(b"\0" + name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def version() -> str:
    """The `code_hash` of this installation."""
    return code_hash(Path(_core.__file__ or ""), Path(__file__).parents[1])


def entry(scenario: Scenario, backend: str) -> Path:
    """Return the folder of a run, whether it exists or not."""
    text = f"{backend}\n{scenario.to_toml()}"
    return root() / version() / hashlib.sha256(text.encode()).hexdigest()[:32]


def lookup(scenario: Scenario, backend: str) -> Result | None:
    """Return the run if it is kept, else None."""
    folder = entry(scenario, backend)
    if not (folder / "summary.json").exists():
        return None
    try:
        return StoredResult(folder)
    except (OSError, ValueError):
        return None  # another process is removing it


def store(scenario: Scenario, backend: str, result: Result) -> None:
    """Keep a completed run; do nothing where the cache cannot be written."""
    folder = entry(scenario, backend)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _forget_old_versions()
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=folder.parent))
    except OSError:
        return
    try:
        result.write(part)
        network = to_json(result.network.to_dict(), indent=None)
        (part / "network.json").write_text(network, encoding="utf-8")
        part.rename(folder)
    except OSError:
        pass  # the disk is full or read-only, or another process was first
    finally:
        shutil.rmtree(part, ignore_errors=True)


@cache
def _forget_old_versions() -> None:
    versions = [path for path in root().iterdir() if path.is_dir() and path.name != version()]
    versions.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for old in versions[_VERSIONS_KEPT - 1 :]:
        shutil.rmtree(old, ignore_errors=True)
    for part in (root() / version()).glob(".part-*"):
        shutil.rmtree(part, ignore_errors=True)
