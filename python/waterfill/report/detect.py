"""Detection of a directory's contents, by the files that Waterfill writes into it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from waterfill.analysis import compare
from waterfill.errors import InputError
from waterfill.evaluation import output
from waterfill.runs.directory import recover
from waterfill.runs.stored import SUMMARY
from waterfill.sweeps import dataset

ResultKind: TypeAlias = Literal["run", "comparison", "sweep", "reproduction", "evaluation"]

CLAIMS = "claims.json"


def results(directory: Path) -> list[Path]:
    """Return the directory if it holds a result, or else its subdirectories that hold one.

    Raises InputError if there is none.
    """
    try:
        kind(directory)
    except InputError as error:
        below = sorted(path for path in directory.glob("*/") if not path.name.startswith("."))
        found = [path for path in below if _holds_result(path)]
        if not found:
            raise error from None
        return found
    return [directory]


def _holds_result(directory: Path) -> bool:
    try:
        kind(directory)
    except InputError:
        return False
    return True


def kind(directory: Path) -> ResultKind:
    """Return the kind of a directory's contents; raise InputError if the directory has no results
    of Waterfill.

    A reproduction is one experiment, whose claims.json is in the directory beside its runs, or
    several in folders PAPER/EXPERIMENT.
    """
    recover(directory)
    if not directory.is_dir():
        problem = "not a directory" if directory.exists() else "no such directory"
        raise InputError(str(directory), "", problem)
    if compare.is_comparison(directory):
        return "comparison"
    if (directory / output.DOCUMENT).is_file():
        return "evaluation"
    if (directory / dataset.DOCUMENT).is_file():
        return "sweep"
    if (directory / CLAIMS).is_file() or any(directory.glob(f"*/*/{CLAIMS}")):
        return "reproduction"
    if (directory / SUMMARY).is_file():
        return "run"
    advice = "name a directory that run -o, compare -o, sweep -o, evaluate -o or reproduce wrote"
    raise InputError(str(directory), "", "no results here", advice)
