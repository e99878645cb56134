"""A small suite on a slow link, whose cells take milliseconds."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A copy of the suite."""
    return Path(shutil.copytree(Path(__file__).parent / "small", tmp_path / "small"))
