"""Tests that the stub describes the Rust core."""

from __future__ import annotations

import subprocess
import sys


def test_stub_agrees_with_the_built_core():
    command = [sys.executable, "-m", "mypy.stubtest", "waterfill._core"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
