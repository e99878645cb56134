"""A small suite on a slow link, whose cells take milliseconds."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the suite; runs are cached below the test's folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Path(shutil.copytree(Path(__file__).parent / "small", tmp_path / "small"))
