"""Scenario and command line shared by all checks of sweeps."""

from __future__ import annotations

import sys
from pathlib import Path

TEXT = """\
duration = "{duration}"
protocol = "maxnet"

[[link]]
name = "l"
from = "a"
to = "b"
rate = "100 Mbit/s"
delay = "2 ms"

[[flow]]
name = "f"
from = "a"
to = "b"
count = 4
"""


def write(folder: Path, duration: str) -> Path:
    """Write the scenario into a folder and return its path."""
    path = folder / "s.toml"
    path.write_text(TEXT.format(duration=duration), encoding="utf-8")
    return path


def command(scenario: Path, points: int, folder: Path, *more: str) -> list[str]:
    """Return the command line of a sweep over `points` delays that writes into a folder."""
    grid = f"link.l.delay=1..10 ms:{points}"
    return [
        *(sys.executable, "-m", "waterfill", "sweep", str(scenario), "--grid", grid),
        *("-o", str(folder), "--json", *more),
    ]
