"""Tests that the stub describes the Rust core."""

from __future__ import annotations

import subprocess
import sys

# mypy would check all of the package and its imports, which is what `make lint` does.
SETTINGS = """
[mypy]
follow_imports = skip
[mypy-waterfill.contract.*]
follow_imports = normal
"""


def test_stub_agrees_with_the_built_core(tmp_path):
    (tmp_path / "mypy.ini").write_text(SETTINGS)
    command = [sys.executable, "-m", "mypy.stubtest", "waterfill._core"]
    command += ["--mypy-config-file", str(tmp_path / "mypy.ini")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
