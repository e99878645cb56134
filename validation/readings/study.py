"""Study of readings, described in the package's docstring."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from pathlib import Path

import validation.readings as package
from validation.readings.grid import Grid, GridCell, table
from validation.study import Option, Options, Report, Study
from waterfill.errors import InputError, nearest
from waterfill.papers.claims import loading
from waterfill.papers.claims.experiment import Experiment
from waterfill.papers.claims.verdict import Judged
from waterfill.papers.reproduce import reproduce
from waterfill.runs.progress import ExperimentBars
from waterfill.runs.result import Document


def grids() -> list[Grid]:
    """Return the grids of all modules in this package, in order of module names."""
    names = sorted(found.name for found in pkgutil.iter_modules(package.__path__))
    return [
        grid
        for name in names
        if name != "study"
        for grid in getattr(importlib.import_module(f"{package.__name__}.{name}"), "GRIDS", ())
    ]


def select(names: Sequence[str], known: Sequence[Grid]) -> list[Grid]:
    """Return the grids selected by names of grids or papers, or all grids if no names are given.

    Raises InputError for a name that is neither.
    """
    words = {grid.name for grid in known} | {grid.paper for grid in known}
    for name in names:
        if name not in words:
            raise InputError("readings", name, f"unknown grid{nearest(name, words)}")
    return [grid for grid in known if not names or grid.name in names or grid.paper in names]


def judge(chosen: Sequence[Grid]) -> dict[str, list[GridCell]]:
    """Run the chosen grids, and return the cells of each grid with their claims judged."""
    known = {experiment.path: experiment for experiment in loading.experiments()}
    variants = {grid.name: grid.variants(known) for grid in chosen}
    wanted = {
        experiment.path: experiment for listed in variants.values() for _, experiment in listed
    }
    with ExperimentBars(len(wanted)) as live:

        def done(experiment: Experiment, judged: list[Judged], _: list[Path]) -> None:
            live.done(experiment.path, [claim.verdict for claim in judged])

        found = reproduce(
            list(wanted.values()), None, planned=live.planned, progress=live.show, done=done
        )
    if found.interrupted:
        raise KeyboardInterrupt
    return {
        grid.name: [
            GridCell(
                grid,
                cell,
                [
                    claim
                    for other, experiment in variants[grid.name]
                    if other == cell
                    for claim in found.claims[experiment.path]
                ],
            )
            for cell in grid.cells()
        ]
        for grid in chosen
    }


def document(found: dict[str, list[GridCell]]) -> Document:
    """Return the results as a document: {grid: {"paper", "question", "errata", "cells"}}."""
    return {
        name: {
            "paper": cells[0].grid.paper,
            "question": cells[0].grid.question,
            "errata": list(cells[0].grid.errata),
            "cells": [cell.document() for cell in cells],
        }
        for name, cells in found.items()
    }


def text(found: dict[str, list[GridCell]]) -> str:
    """Return the tables of all grids in Markdown, one section per grid."""
    return "\n\n".join(
        f"## {name}\n\n{cells[0].grid.question}\n\n{table(cells)}" for name, cells in found.items()
    )


def work(options: Options) -> Report:
    """Run the chosen grids, or list them."""
    chosen = select(options.grids, grids())
    if options.list:
        lines = [f"{grid.name}\t{len(grid.cells())} cells\t{grid.question}" for grid in chosen]
        return Report("\n".join(lines), [grid.name for grid in chosen])
    found = judge(chosen)
    return Report(text(found), document(found))


STUDY: Study[None, None] = Study(
    shows="the papers' claims under every reading of what the papers leave open",
    minutes=60,
    options=(
        Option("grids", (), "grids or papers; default: all"),
        Option("--list", False, "list the grids, run nothing"),
    ),
    work=work,
)
