"""Recorded verdicts: an expected.toml, and how an evaluation differs from it."""

from __future__ import annotations

from pathlib import Path

import tomli_w
from pydantic import Field

from waterfill.errors import InputError, shown
from waterfill.evaluation.verdict import EvaluationDocument, Verdict
from waterfill.papers.claims.loading import read_file
from waterfill.papers.claims.schema import Table, Text


class ExpectedFile(Table):
    """The content of an expected.toml: the verdict on each criterion, and the cells that fail."""

    suite: Text
    law: Text
    quick: bool
    verdicts: dict[str, Verdict]
    fails: dict[str, list[str]] = Field(default_factory=dict)


def text(document: EvaluationDocument) -> str:
    """Return an evaluation's verdicts as an expected.toml."""
    return tomli_w.dumps(_recorded(document).model_dump())


def _recorded(document: EvaluationDocument) -> ExpectedFile:
    grid = {one.id: [cell for cell in one.cells if not cell.added] for one in document.criteria}
    fails = {
        name: [cell.name for cell in cells if cell.verdict == "fails"]
        for name, cells in grid.items()
    }
    return ExpectedFile(
        suite=f"{document.suite} {document.version}",
        law=document.law,
        quick=document.options["quick"],
        verdicts={one.id: one.verdict for one in document.criteria},
        fails={name: cells for name, cells in fails.items() if cells},
    )


def read(file: Path, suite: str, quick: bool) -> ExpectedFile:
    """Read an expected.toml; raise InputError if it is wrong or of another suite or `--quick`."""
    found = read_file(file, ExpectedFile)
    if found.suite != suite:
        problem = f"must be {shown(suite)}, got {shown(found.suite)}"
        raise InputError(str(file), "suite", problem, "record the verdicts again with --record")
    if found.quick != quick:
        advice = "add --quick" if found.quick else "leave --quick out"
        raise InputError(str(file), "quick", f"is {str(found.quick).lower()}", advice)
    return found


def differences(expected: ExpectedFile, document: EvaluationDocument) -> list[str]:
    """Return one line for each criterion whose verdict or failing cells differ from the record."""
    found = _recorded(document)
    lines = []
    for name in dict.fromkeys([*expected.verdicts, *found.verdicts]):
        was, now = expected.verdicts.get(name), found.verdicts.get(name)
        if was != now:
            lines.append(f"{name}: {now or 'not in the suite'}, expected {was or 'nothing'}")
            continue
        before, after = expected.fails.get(name, []), found.fails.get(name, [])
        new = [cell for cell in after if cell not in before]
        gone = [cell for cell in before if cell not in after]
        parts = [f"fails in {', '.join(new)}"] if new else []
        parts += [f"no longer fails in {', '.join(gone)}"] if gone else []
        if parts:
            lines.append(f"{name}: {'; '.join(parts)}")
    return lines
