"""List of the Python fuzz targets, with their purposes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

Check = Callable[[bytes, Path], None]


@dataclass(frozen=True)
class Target:
    """A fuzz target: its function as `module:name`, its purpose, and the limits of one execution.

    `share` is the number of executions that a full run asks for.
    """

    where: str
    checks: str
    share: int = 1_000_000
    seconds: float = 10.0
    max_bytes: int = 256

    def load(self) -> Check:
        """Return the target's function, which takes an input and a folder for its files."""
        module, _, name = self.where.partition(":")
        found: Check = getattr(import_module(f"validation.fuzz_python.{module}"), name)
        return found


TARGETS: Mapping[str, Target] = {
    "scenario": Target("texts:scenario", "scenario files: read, checked, resolved, written again"),
    "set": Target("texts:assignments", "`--set` assignments on a scenario with every key"),
    "numbers": Target("texts:numbers", "quantities with units: read, written, read again"),
    "imports": Target("texts:imports", "every format of `import`, and the scenario it writes"),
    "tables": Target("texts:tables", "CSV of flows, traces of rates, distributions of sizes"),
    "claims": Target("texts:claims", "claims.toml with the scenarios of its runs"),
    "studio": Target("texts:studio", "links to the studio, drawn networks, their picture"),
    "run": Target("models:run", "scenarios run for 20 ms, packets and fluid", 10_000, 30.0),
    "theory": Target("models:theory", "`theory` of parameters and times", 10_000, 60.0, 64),
    "result": Target("folders:result", "directories of runs: read, tables, report", 100_000),
    "cache": Target("folders:cached", "entries of the cache: a hit or a miss", 100_000),
    "sweep": Target("folders:sweep", "directories of sweeps: dataset, journal, report", 100_000),
    "reports": Target("folders:reports", "claims.json and compare.json: their pages", 10_000, 30.0),
    "figures": Target("folders:figures", "figures of damaged runs (`plot`)", 10_000, 30.0),
}
