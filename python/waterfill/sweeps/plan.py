"""The checked keywords of a sweep, and its plan: points, columns and workers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any, TypeAlias

from waterfill.errors import InputError, shown
from waterfill.runs import law_files
from waterfill.runs.laws import PythonLaw, check
from waterfill.sweeps import measure
from waterfill.sweeps.axes import Axis, Range, Value, assignment, grid_of, ranges_of, span
from waterfill.sweeps.cluster import ClusterPlace, need, place
from waterfill.sweeps.dataset import Type
from waterfill.sweeps.measure import Verdict
from waterfill.sweeps.points import MAX_POINTS, Base, Design, Point, Written
from waterfill.sweeps.refine import Refinement

# Columns before and after the measures.
_HEAD: tuple[tuple[str, Type], ...] = (("key", "string"), ("status", "string"), ("error", "string"))
_TAIL: tuple[tuple[str, Type], ...] = (
    ("wall_s", "double"), ("memory_bytes", "int64"), ("worker", "string"), ("overrides", "string"),
)  # fmt: skip
MIN_MEMORY_BYTES = 64_000_000

Grid: TypeAlias = "Mapping[str, Sequence[Value] | str] | Sequence[str]"
Ranges: TypeAlias = "Mapping[str, tuple[float, float] | str] | Sequence[str]"


@dataclass(frozen=True, kw_only=True)
class SweepSpec:
    """The keywords of `waterfill.sweep`, which documents them.

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
    laws: Mapping[str, PythonLaw] | None = None

    def __post_init__(self) -> None:
        self._check_types()
        if self.random and self.latin:
            raise InputError("command line", "latin", "not possible together with --random")
        for name, count in (
            ("random", self.random), ("latin", self.latin), ("seeds", self.seeds),
        ):  # fmt: skip
            if not 0 <= count <= MAX_POINTS:
                why = f"must be a number from 1 to {MAX_POINTS}, got {count}"
                raise InputError("command line", name, why)
        memory_bytes, min_mb = self.max_memory_bytes, MIN_MEMORY_BYTES / 1e6
        if memory_bytes and memory_bytes < MIN_MEMORY_BYTES:
            why = f"must be at least {min_mb:g} MB, got {memory_bytes / 1e6:g} MB"
            raise InputError("command line", "max-memory", why)
        if self.max_time_s < 0:
            why = f"must be above zero, got {self.max_time_s:g} s"
            raise InputError("command line", "max-time", why)
        if (self.refine is None) != (self.verdict is None):
            if self.verdict is None:
                why, advice = "needs a verdict", "add --verdict, such as 'stable<0.5'"
                raise InputError("command line", "refine", why, advice)
            why, advice = "needs a range", "add --refine, such as link.l.delay=1..90ms"
            raise InputError("command line", "verdict", why, advice)
        if self.refine is not None and not 1e-6 <= self.tolerance < 1:
            why = f"must be a share between 0.000001 and 1, got {self.tolerance:g}"
            raise InputError("command line", "tolerance", why)

    def _check_types(self) -> None:
        """Raise InputError for values of a wrong type, which only Python callers can pass."""
        for name in ("seeds", "random", "latin", "draw_seed"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral):
                raise InputError("sweep", name, f"must be a whole number, got {shown(value)}")
        if isinstance(self.sets, (str, Mapping)):
            message = f'must be a list of texts such as ["seed=3"], got {shown(self.sets)}'
            raise InputError("sweep", "sets", message)
        if self.laws is not None and not isinstance(self.laws, Mapping):
            raise InputError(
                "sweep", "laws", f"must be a dictionary by name, got {shown(self.laws)}"
            )
        for name, given in (("grid", self.grid), ("ranges", self.ranges)):
            if isinstance(given, str) or not isinstance(given, (Mapping, Sequence)):
                why = f'must be {{"KEY": VALUES}} or ["KEY=VALUES"], got {shown(given)}'
                raise InputError("sweep", name, why)


@dataclass(frozen=True)
class Plan:
    """A checked sweep, ready to run.

    `source` gives the points: the design, or a search for the boundary of the `verdict`. `first`
    are those to begin with.
    """

    spec: SweepSpec
    base: Base
    design: Design
    extra: Mapping[str, str]
    verdict: Verdict | None
    place: ClusterPlace
    source: Design | Refinement
    first: Sequence[Point]

    @property
    def folder(self) -> Path:
        """Output directory of the sweep."""
        output = self.spec.output
        return Path(f"{self.base.name}.sweep") if output is None else Path(output)

    def columns(self) -> list[tuple[str, Type]]:
        """Return the name and type of each column of the dataset, in order."""
        mine: list[tuple[str, Type]] = [(one.key, one.kind) for one in self.design.axes()]
        if self.design.seeds:
            mine.append(("seed", "int64"))
        measures = [*measure.MEANINGS, *self.extra]
        return [*_HEAD, *mine, *((name, "double") for name in measures), *_TAIL]

    def numbers(self) -> list[str]:
        """Return the names of the columns that a verdict, a table or a figure can show."""
        return measure.numbers(self.extra)

    def about(self) -> dict[str, Any]:
        """Return the description of the sweep that its dataset stores."""
        from waterfill._core import version

        return {
            "version": version(),
            "scenario": self.base.title or Path(self.base.source).name,
            "backend": self.base.on,
            "sets": list(self.base.sets),
            "axes": {one.key: one.unit for one in self.design.axes()},
            "draw": {
                "latin": self.design.latin, "samples": self.design.samples,
                "seed": self.design.draw_seed,
            },
            "meanings": {
                **measure.MEANINGS,
                **{name: path or measure.SERIES_COLUMNS[name] for name, path in self.extra.items()},
            },
        }  # fmt: skip


def plan(scenario: Written | str | os.PathLike[str], spec: SweepSpec) -> Plan:
    """Check a sweep and return its plan; raise InputError if the sweep is invalid."""
    need("distributed", "sweep")
    if spec.laws:
        from waterfill.network import protocols

        check(spec.laws, protocols.load(), "sweep")
    base = Base.read(scenario, spec.sets, spec.on, spec.laws)
    installed = law_files.mentioned(f"{base.text} {spec}")
    base = replace(base, installed=installed, jitter=spec.seeds > 1)
    extra, verdict = measure.read(spec.columns, spec.verdict)
    where = place(spec.cluster, spec.workers)
    design = _design(base, spec)
    source: Design | Refinement = design
    if design.span is not None and verdict is not None:
        source = Refinement(design, design.span, verdict, spec.tolerance)
    return Plan(spec, base, design, extra, verdict, where, source, list(source.first()))


def _design(base: Base, spec: SweepSpec) -> Design:
    """Return the design of the points; raise InputError for an invalid design or value."""
    protocols = _protocols(spec.protocols, base)

    def settled(one: Range) -> Range:
        return _settled(base, protocols[:1], one)

    design = Design(
        span=None if spec.refine is None else settled(span(spec.refine)),
        ranges=tuple(map(settled, ranges_of(spec.ranges))),
        grid=tuple(
            one if isinstance(one, Axis) else replace(one, span=settled(one.span)).axis()
            for one in grid_of(spec.grid)
        ),
        samples=spec.random or spec.latin,
        latin=bool(spec.latin),
        draw_seed=spec.draw_seed,
        protocols=tuple(protocols),
        identity=base.identity(),
    )
    first = design.check(base)
    return replace(design, seeds=tuple(first.seed + i for i in range(spec.seeds)))


def _protocols(given: str | Sequence[str] | None, base: Base) -> list[str]:
    if not given:
        return []
    from waterfill.analysis import compare

    names = given if isinstance(given, str) else ",".join(given)
    return compare.select(names, base.on, base.laws)


def _settled(base: Base, protocols: Sequence[str], span: Range) -> Range:
    """Return the range, restricted to whole numbers if the range's key takes only whole numbers."""
    protocol = [f"protocol={name}" for name in protocols]
    for found in (span, replace(span, whole=True)):
        number = found.at(0.381966)
        try:
            base.scenario([*protocol, assignment(span.key, found.value(number))])
        except InputError:
            continue
        return found
    return span  # wrong in both ways: the check of the design says why
