"""`make build` builds again when the daemon's requirements have changed, and only then."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from known import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the daemon is for Linux")

# In place of the real ones: what set-up leaves, and a line for each build.
SETUP = '#!/bin/sh\nmkdir -p .venv && touch ".venv/.$1"\n'
BUILD = "#!/bin/sh\necho built >>builds\n"
# A clang that accepts every program, which is all that tools/daemon.sh asks of one.
CLANG = "#!/bin/sh\nexit 0\n"


@pytest.fixture
def tree(tmp_path):
    """The Makefile on a tree with nothing to compile."""
    for folder in ("tools", "crates", "bench"):
        (tmp_path / folder).mkdir()
    for name in ("Cargo.toml", "Cargo.lock", "pyproject.toml", "requirements.lock"):
        (tmp_path / name).touch()
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copy(ROOT / "tools/daemon.sh", tmp_path / "tools")
    for name, text in (("tools/setup.sh", SETUP), ("tools/build.sh", BUILD), ("clang", CLANG)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def test_an_installed_clang_is_noticed(tree):
    def builds_after(clang: str) -> int:
        subprocess.run(
            ["make", "--silent", "build"], cwd=tree, env={**os.environ, "CLANG": clang}, check=True
        )
        return len((tree / "builds").read_text().splitlines())

    missing, present = str(tree / "no-clang"), str(tree / "clang")
    assert builds_after(missing) == 1
    assert "clang" in (tree / ".venv/.daemon").read_text()
    assert builds_after(missing) == 1
    assert builds_after(present) == 2
    assert "clang" not in (tree / ".venv/.daemon").read_text()
    assert builds_after(present) == 2
    assert builds_after(missing) == 3
