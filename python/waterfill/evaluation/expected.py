"""Recorded verdicts: an expected.toml, and how an evaluation differs from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import tomli_w
from pydantic import Field

from waterfill.errors import InputError, shown
from waterfill.evaluation.verdict import EvaluationDocument, Verdict
from waterfill.papers.claims.loading import read_file
from waterfill.papers.claims.schema import Table, Text


class Options(Table):
    """Options of an evaluation that change its runs. `precision` is a share, None without auto."""

    against: list[str]
    recovery: str | None = None
    routers: str
    seeds: int | Literal["auto"]
    precision: float | None = None
    set: list[str]


class ExpectedFile(Table):
    """The content of an expected.toml: the verdict on each criterion, and the cells that fail.

    Files of former versions have no options.
    """

    suite: Text
    law: Text
    quick: bool
    options: Options | None = None
    verdicts: dict[str, Verdict]
    fails: dict[str, list[str]] = Field(default_factory=dict)


def text(document: EvaluationDocument) -> str:
    """Return an evaluation's verdicts as an expected.toml."""
    return tomli_w.dumps(_recorded(document).model_dump(exclude_none=True))


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
        options=options(document.against, document.options),
        verdicts={one.id: one.verdict for one in document.criteria},
        fails={name: cells for name, cells in fails.items() if cells},
    )


def options(against: Sequence[str], of_document: Mapping[str, Any]) -> Options:
    """Return the options of an evaluation from its rivals and its document's `options`."""
    own = {name: of_document[name] for name in Options.model_fields if name != "against"}
    return Options(against=list(against), **own)


def read(file: Path, suite: str, quick: bool, wanted: Options) -> ExpectedFile:
    """Read an expected.toml; raise InputError if it is wrong or of another suite or options."""
    found = read_file(file, ExpectedFile)
    if found.suite != suite:
        problem = f"must be {shown(suite)}, got {shown(found.suite)}"
        raise InputError(str(file), "suite", problem, "record the verdicts again with --record")
    if found.quick != quick:
        advice = "add --quick" if found.quick else "leave --quick out"
        raise InputError(str(file), "quick", f"is {str(found.quick).lower()}", advice)
    if found.options is not None and found.options != wanted:
        was, now = found.options, wanted
        other = [name for name in Options.model_fields if getattr(was, name) != getattr(now, name)]
        if "seeds" in other:  # auto alone has a precision
            other = [name for name in other if name != "precision"]
        problem = f"recorded with {_typed(was, other)}, this run has {_typed(now, other)}"
        advice = "type the options of the record, or record again with --record"
        raise InputError(str(file), "options", problem, advice)
    return found


def _typed(options: Options, names: Iterable[str]) -> str:
    """Return options as they are typed."""
    words = []
    for name in names:
        value = getattr(options, name)
        if value is None or value == []:
            words.append(f"no --{name}")
        elif name == "set":
            words += [f"--set {one}" for one in value]
        elif name == "against":
            words.append(f"--against {','.join(value)}")
        else:
            words.append(f"--{name} {f'{100 * value:g}%' if name == 'precision' else value}")
    return " ".join(words)


def notices(file: Path, expected: ExpectedFile, law: str) -> list[str]:
    """Return a line for each way in which a record may not fit an evaluation of `law`."""
    lines = []
    if expected.law != law:
        lines.append(f"{file}: recorded for {expected.law}, compared with {law}")
    if expected.options is None:
        lines.append(
            f"{file}: has no options, so they were not compared; record again with --record"
        )
    return lines


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
