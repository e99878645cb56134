"""Run grids of readings and print their tables; the package's docstring has the usage."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Sequence
from pathlib import Path

import validation.readings as package
from validation.readings.grid import Cell, Grid, table
from waterfill.errors import InputError, nearest
from waterfill.papers.claims import loading
from waterfill.papers.claims.experiment import Experiment
from waterfill.papers.claims.verdict import Judged
from waterfill.papers.reproduce import reproduce
from waterfill.runs.files import make_directory, write_text
from waterfill.runs.progress import ExperimentBars
from waterfill.runs.result import Document, to_json

INTERRUPTED = 130  # the exit code of `waterfill reproduce` after Ctrl-C


def grids() -> list[Grid]:
    """Return the grids of all modules of the package, by module and in each module's order."""
    names = sorted(found.name for found in pkgutil.iter_modules(package.__path__))
    return [
        grid
        for name in names
        if name != "__main__"
        for grid in getattr(importlib.import_module(f"{package.__name__}.{name}"), "GRIDS", ())
    ]


def select(names: Sequence[str], known: Sequence[Grid]) -> list[Grid]:
    """Return the grids that a grid's or a paper's name gives, all without names.

    Raises InputError for a name that is neither.
    """
    words = {grid.name for grid in known} | {grid.paper for grid in known}
    for name in names:
        if name not in words:
            raise InputError("readings", name, f"unknown grid{nearest(name, words)}")
    return [grid for grid in known if not names or grid.name in names or grid.paper in names]


def judge(chosen: Sequence[Grid]) -> dict[str, list[Cell]] | None:
    """Return every cell of every grid, by grid, with its claims judged; None after Ctrl-C."""
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
        return None
    return {
        grid.name: [
            Cell(
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


def document(found: dict[str, list[Cell]]) -> Document:
    """Return {grid: {"paper", "question", "errata", "cells"}}."""
    return {
        name: {
            "paper": cells[0].grid.paper,
            "question": cells[0].grid.question,
            "errata": list(cells[0].grid.errata),
            "cells": [cell.document() for cell in cells],
        }
        for name, cells in found.items()
    }


def text(found: dict[str, list[Cell]]) -> str:
    """Return all tables in Markdown, one section per grid."""
    return "\n\n".join(
        f"## {name}\n\n{cells[0].grid.question}\n\n{table(cells)}" for name, cells in found.items()
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, 2 for a wrong argument, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m validation.readings", description=package.__doc__
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", metavar="GRID", help="grid or paper; default: all")
    parser.add_argument("--list", action="store_true", help="list the grids, run nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("-o", metavar="DIR", type=Path, help="write DIR/readings.json, readings.md")
    options = parser.parse_args(arguments)
    try:
        chosen = select(options.names, grids())
        if options.list:
            for grid in chosen:
                print(f"{grid.name}\t{len(grid.cells())} cells\t{grid.question}")
            return 0
        folder = None if options.o is None else make_directory(options.o)
        found = judge(chosen)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    if found is None:
        print("interrupted; the runs that ended are kept", file=sys.stderr)
        return INTERRUPTED
    if folder is not None:
        write_text(folder / "readings.json", to_json(document(found)) + "\n")
        write_text(folder / "readings.md", text(found) + "\n")
    print(to_json(document(found)) if options.json else text(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
