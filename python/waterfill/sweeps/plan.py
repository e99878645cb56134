"""A checked sweep: its points, its columns, where it runs and where it writes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waterfill.sweeps import measure
from waterfill.sweeps.cluster import Place, need, place
from waterfill.sweeps.dataset import Type
from waterfill.sweeps.measure import Verdict
from waterfill.sweeps.points import Base, Design, Written
from waterfill.sweeps.refine import Refinement
from waterfill.sweeps.spec import SweepSpec

# Columns before and after the measures.
_HEAD: tuple[tuple[str, Type], ...] = (("key", "string"), ("status", "string"), ("error", "string"))
_TAIL: tuple[tuple[str, Type], ...] = (
    ("wall_s", "double"), ("memory_bytes", "int64"), ("worker", "string"), ("overrides", "string"),
)  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """A checked sweep. `verdict` is that of a search for its boundary, else None."""

    spec: SweepSpec
    base: Base
    design: Design
    extra: Mapping[str, str]
    verdict: Verdict | None
    place: Place

    @property
    def folder(self) -> Path:
        """Output directory."""
        output = self.spec.output
        return Path(f"{self.base.name}.sweep") if output is None else Path(output)

    def source(self) -> Design | Refinement:
        """Return the points: those of the design, or of a search for the verdict's boundary."""
        if self.design.span is None or self.verdict is None:
            return self.design
        return Refinement(self.design, self.design.span, self.verdict, self.spec.tolerance)

    def columns(self) -> list[tuple[str, Type]]:
        """Return name and type of the dataset's columns, in order."""
        mine: list[tuple[str, Type]] = [(one.key, one.kind) for one in self.design.axes()]
        if self.design.seeds:
            mine.append(("seed", "int64"))
        measures = [*measure.COLUMNS, *self.extra]
        return [*_HEAD, *mine, *((name, "double") for name in measures), *_TAIL]

    def numbers(self) -> list[str]:
        """Return the names of the columns that a verdict, a table or a figure can show."""
        return measure.numbers(self.extra)

    def about(self) -> dict[str, Any]:
        """Return the dataset's description of itself."""
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
                **{name: meaning for name, (meaning, _) in measure.COLUMNS.items()},
                **{name: path or measure.SERIES_COLUMNS[name] for name, path in self.extra.items()},
            },
        }  # fmt: skip


def plan(scenario: Written | str | os.PathLike[str], spec: SweepSpec) -> Plan:
    """Check a sweep and return its plan; raise InputError."""
    need("distributed", "sweep")
    base = Base.read(scenario, spec.sets, spec.on)
    extra, verdict = measure.read(spec.columns, spec.verdict)
    where = place(spec.cluster, spec.workers)
    return Plan(spec, base, Design.read(base, spec), extra, verdict, where)
