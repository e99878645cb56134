"""Grid of readings of a paper: its cells, and the judged claims of each cell."""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from validation.tables import markdown
from waterfill.errors import InputError, nearest
from waterfill.papers.claims.experiment import Experiment
from waterfill.papers.claims.schema import VERDICTS, Claim, ExperimentRun
from waterfill.papers.claims.verdict import Judged
from waterfill.runs.result import Document


@dataclass(frozen=True)
class Change:
    """A reading's change to all runs that `run` and `experiment` match (shell patterns).

    `sets` are overrides as in `waterfill run --set`; `scenario` replaces the scenario file, by its
    path in the experiment's folder. `args` and `measure` replace arguments and the measure of the
    claims that `claim` and `experiment` match: where one looks.
    """

    sets: tuple[str, ...] = ()
    run: str = "*"
    experiment: str = "*"
    scenario: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    measure: str | None = None
    claim: str = "*"

    def judged(self, experiment: str, claim: Claim) -> Claim:
        """Return a claim with the change applied, or unchanged if the patterns do not match."""
        if not fnmatch.fnmatchcase(experiment, self.experiment):
            return claim
        if not fnmatch.fnmatchcase(claim.id, self.claim):
            return claim
        measure = claim.measure if self.measure is None else self.measure
        return claim.model_copy(update={"measure": measure, "args": {**claim.args, **self.args}})

    def applied(self, experiment: str, run: ExperimentRun) -> ExperimentRun:
        """Return a run with the change applied, or unchanged if the patterns do not match."""
        if not fnmatch.fnmatchcase(experiment, self.experiment):
            return run
        if not fnmatch.fnmatchcase(run.name, self.run):
            return run
        scenario = run.scenario if self.scenario is None else self.scenario
        return run.model_copy(update={"scenario": scenario, "set": [*run.set, *self.sets]})


def options(
    key: str, *values: str, as_is: str | None = None, run: str = "*"
) -> dict[str, tuple[Change, ...]]:
    """Return one reading for each value of a key. `as_is` is the experiments' present value."""
    return {
        value: () if value == as_is else (Change((f"{key}={value}",), run=run),) for value in values
    }


@dataclass(frozen=True)
class Grid:
    """Readings of one paper's open questions, and the experiments that judge them.

    `axes` is {question: {reading: changes}}. `adopted` names the reading of each axis that the
    experiments have without changes; None if it is none of the axis's options.
    """

    name: str
    question: str
    experiments: tuple[str, ...]
    axes: Mapping[str, Mapping[str, Sequence[Change]]]
    adopted: Mapping[str, str | None]
    errata: tuple[str, ...] = ()
    seeds: int | None = None
    """Number of runs per scenario with different seeds, or None for the experiment's own number."""

    @property
    def paper(self) -> str:
        """Name of the paper whose experiments the grid runs."""
        return self.experiments[0].partition("/")[0]

    def cells(self) -> list[dict[str, str]]:
        """Return every combination of one reading per axis, as {question: reading}."""
        return [
            dict(zip(self.axes, readings, strict=True))
            for readings in itertools.product(*self.axes.values())
        ]

    def is_adopted(self, cell: Mapping[str, str]) -> bool:
        """Return True if a cell has only the readings that the experiments use unchanged."""
        return all(self.adopted.get(axis) == reading for axis, reading in cell.items())

    def variants(self, known: Mapping[str, Experiment]) -> list[tuple[dict[str, str], Experiment]]:
        """Return (cell, changed experiment) for every cell and experiment, each under a distinct
        name.

        Raises InputError for an unknown experiment.
        """
        found = []
        for cell in self.cells():
            changes = [change for axis, name in cell.items() for change in self.axes[axis][name]]
            for path in self.experiments:
                if path not in known:
                    message = f"unknown experiment {path}{nearest(path, known)}"
                    raise InputError("readings", self.name, message)
                name = f"{self.name}: {title(cell)}"
                read = _changed(known[path], changes, name)
                seeds = read.seeds if self.seeds is None else self.seeds
                found.append((cell, replace(read, seeds=seeds)))
        return found


def title(cell: Mapping[str, str]) -> str:
    """Return a cell's name, such as "period=packet, table=shared"."""
    return ", ".join(f"{axis}={reading}" for axis, reading in cell.items())


def _changed(experiment: Experiment, changes: Iterable[Change], name: str) -> Experiment:
    runs, claims = experiment.runs, experiment.claims
    for change in changes:
        runs = tuple(change.applied(experiment.path, run) for run in runs)
        claims = tuple(change.judged(experiment.path, claim) for claim in claims)
    return replace(experiment, name=f"{experiment.name} [{name}]", runs=runs, claims=claims)


@dataclass(frozen=True)
class GridCell:
    """One cell of a grid, with the judged claims of its experiments."""

    grid: Grid
    readings: Mapping[str, str]
    claims: Sequence[Judged]

    @property
    def counts(self) -> dict[str, int]:
        """Number of claims with each verdict."""
        return {
            verdict: sum(claim.verdict == verdict for claim in self.claims) for verdict in VERDICTS
        }

    @property
    def changed(self) -> list[Judged]:
        """Claims whose verdict differs from the recorded one."""
        return [claim for claim in self.claims if claim.verdict != claim.expect]

    def document(self) -> Document:
        """Return the cell as an entry of the `--json` output."""
        return {
            "readings": dict(self.readings),
            "adopted": self.grid.is_adopted(self.readings),
            "counts": self.counts,
            "claims": [
                {
                    "claim": _own_path(claim),
                    "measured": claim.measured,
                    "paper_value": claim.paper_value,
                    "unit": claim.unit,
                    "verdict": claim.verdict,
                    "expect": claim.expect,
                }
                for claim in self.claims
            ],
        }


def _own_path(claim: Judged) -> str:
    """Return a claim's path without the cell's name."""
    return f"{claim.paper}/{claim.experiment.split(' [')[0]}/{claim.id}"


def table(cells: Sequence[GridCell]) -> str:
    """Return the Markdown table of a grid, with one row per cell and its changed verdicts."""
    lines = []
    for cell in cells:
        star = " (adopted)" if cell.grid.is_adopted(cell.readings) else ""
        readings = [*cell.readings.values()]
        readings[0] += star
        counts = [str(count) for count in cell.counts.values()]
        changed = "; ".join(
            f"{verdict}: {_named(claim for claim in cell.changed if claim.verdict == verdict)}"
            for verdict in VERDICTS
            if any(claim.verdict == verdict for claim in cell.changed)
        )
        still = _named(claim for claim in cell.claims if claim.verdict == claim.expect == "differs")
        lines.append([*readings, *counts, changed or "–", still or "–"])
    verdicts = "reproduced:|differs:|cannot be checked:|verdicts that change|differs as before"
    return markdown("|".join([*cells[0].grid.axes, verdicts]), lines)


def _named(claims: Iterable[Judged]) -> str:
    """Return a list of claims and values, such as "experiment/claim 1.2 s, experiment/other 3"."""
    return ", ".join(
        f"{'/'.join(_own_path(claim).split('/')[1:])} {_value(claim)}" for claim in claims
    )


def _value(claim: Judged) -> str:
    if claim.measured is None:
        return "never"
    unit = "" if claim.unit in (None, "ratio") else f" {claim.unit}"
    return f"{claim.measured:.4g}{unit}"
