"""Keywords of `waterfill.sweep`, stated once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TypeAlias

from waterfill.errors import InputError, shown
from waterfill.sweeps.axes import Value

MAX_POINTS = 10_000_000
MIN_MEMORY_BYTES = 64_000_000

Grid: TypeAlias = "Mapping[str, Sequence[Value] | str] | Sequence[str]"
Ranges: TypeAlias = "Mapping[str, tuple[float, float] | str] | Sequence[str]"


@dataclass(frozen=True, kw_only=True)
class SweepSpec:
    """The keywords of `waterfill.sweep`, which explains them.

    Raises InputError for a value that is wrong by itself, or together with another one.
    """

    grid: Grid = ()
    ranges: Ranges = ()
    random: int = 0
    latin: int = 0
    draw_seed: int = 1
    protocols: str | Sequence[str] | None = None
    seeds: int = 0
    sets: Iterable[str] = ()
    on: str = "sim"
    columns: Iterable[str] = ()
    refine: str | None = None
    verdict: str | None = None
    tolerance: float = 0.01
    output: str | os.PathLike[str] | None = None
    keep: bool = False
    max_time_s: float = 0.0
    max_memory_bytes: int = 0
    workers: int | None = None
    cluster: str | None = None
    lost_s: float = 60.0
    retry: bool = False
    quiet: bool = True

    def __post_init__(self) -> None:
        self._check_types()
        if self.random and self.latin:
            raise InputError("command line", "latin", "expected --random or --latin, got both")
        for name, count in (
            ("random", self.random), ("latin", self.latin), ("seeds", self.seeds),
        ):  # fmt: skip
            if not 0 <= count <= MAX_POINTS:
                why = f"expected a number from 1 to {MAX_POINTS}, got {count}"
                raise InputError("command line", name, why)
        memory_bytes, min_mb = self.max_memory_bytes, MIN_MEMORY_BYTES / 1e6
        if memory_bytes and memory_bytes < MIN_MEMORY_BYTES:
            why = f"expected at least {min_mb:g} MB, got {memory_bytes / 1e6:g} MB"
            raise InputError("command line", "max-memory", why)
        if self.max_time_s < 0:
            why = f"expected a time, got {self.max_time_s:g} s"
            raise InputError("command line", "max-time", why)
        if (self.refine is None) != (self.verdict is None):
            lacks, has = ("verdict", "refine") if self.verdict is None else ("refine", "verdict")
            raise InputError("command line", lacks, f"expected --{lacks} with --{has}, got none")
        if self.refine is not None and not 1e-6 <= self.tolerance < 1:
            why = f"expected a share between 0.000001 and 1, got {self.tolerance:g}"
            raise InputError("command line", "tolerance", why)

    def _check_types(self) -> None:
        """Raise InputError for what Python's callers give in another type than the command line."""
        for name in ("seeds", "random", "latin", "draw_seed"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral):
                raise InputError("sweep", name, f"expected a whole number, got {shown(value)}")
        if isinstance(self.sets, (str, Mapping)):
            message = f'expected a list of texts such as ["seed=3"], got {shown(self.sets)}'
            raise InputError("sweep", "sets", message)
        for name, given in (("grid", self.grid), ("ranges", self.ranges)):
            if isinstance(given, str) or not isinstance(given, (Mapping, Sequence)):
                why = f'expected {{"KEY": VALUES}} or ["KEY=VALUES"], got {shown(given)}'
                raise InputError("sweep", name, why)
