"""Copies of the crates in another folder, for studies that build a changed source."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from validation.study import ROOT

# What a build of a crate reads.
PARTS = ("Cargo.toml", "Cargo.lock", "crates", "bench", "fuzz")


def sources() -> list[str]:
    """Return the paths of the build's inputs, relative to the checkout, sorted."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *PARTS]
    files = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    return sorted(name for name in set(files.stdout.split("\0")) if (ROOT / name).is_file())


def copy(to: Path) -> None:
    """Replace the inputs in folder `to` by those of the checkout, keeping earlier build results."""
    for part in PARTS:
        path = to / part
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for name in sources():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, to / name)
