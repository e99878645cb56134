"""Suites of criteria: found by name or folder, read and checked."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from waterfill.contract.record import Record
from waterfill.errors import InputError, nearest, shown
from waterfill.evaluation.schema import CriterionFile, Limit, SuiteFile
from waterfill.papers.claims.loading import checked_claim, read_file
from waterfill.papers.claims.schema import Claim
from waterfill.papers.measures.registry import MEASURES
from waterfill.scenario.loading import read_toml

FILE = "suite.toml"
_ROLES = ("law", "reference", "rival")


@dataclass(frozen=True)
class Criterion:
    """One criterion of a suite: its file's content, and its limits as claims by their ids."""

    id: str
    file: Path
    content: CriterionFile
    claims: Mapping[str, Claim]

    @property
    def scenario(self) -> Path:
        """Path of the criterion's scenario file."""
        return self.file.parent / "scenarios" / (self.content.scenario or "")

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """Content of the scenario file, which callers must not change."""
        path = self.scenario
        try:
            return read_toml(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(str(path), "", f"not a scenario file: {error}") from None


@dataclass(frozen=True)
class Suite:
    """A named and versioned set of criteria, sorted by section."""

    folder: Path
    content: SuiteFile
    criteria: tuple[Criterion, ...]

    @property
    def label(self) -> str:
        """Name and version, as reports cite them."""
        return f"{self.content.name}-suite {self.content.version}"


def suites_folder() -> Path:
    """Return the folder of the suites: a folder of the wheel, or `suites/` in a checkout."""
    return (Path(__file__).resolve().parent / "suites").resolve()


def names() -> list[str]:
    """Return the names of the suites that Waterfill comes with."""
    return sorted(file.parent.name for file in suites_folder().glob(f"*/{FILE}"))


def load(name: str | Path) -> Suite:
    """Read a suite by its name or its folder; raise InputError if a file is missing or wrong."""
    folder = suites_folder() / name if str(name) in names() else Path(name)
    if not (folder / FILE).is_file():
        if folder.is_dir():
            raise InputError(str(folder), "", f"no suite: it has no {FILE}")
        close = nearest(str(name), names())
        raise InputError("evaluate", "suite", f"unknown suite {shown(str(name))}{close}")
    content = read_file(folder / FILE, SuiteFile)
    files = sorted(file for file in folder.glob("*.toml") if file.name != FILE)
    criteria = sorted(map(_criterion, files), key=lambda one: _place(one.content.section))
    if not criteria:
        raise InputError(str(folder), "", "the suite has no criterion; add a CRITERION.toml")
    return Suite(folder, content, tuple(criteria))


def select(suite: Suite, only: Collection[str]) -> Suite:
    """Return a suite with the criteria that `only` names by id, title or section, which has those
    below it, or with all if it is empty; raise InputError for another name.
    """
    for name in only:
        if not any(_named(one, name) for one in suite.criteria):
            names = {part for one in suite.criteria for part in (one.id, one.content.title.lower())}
            close = nearest(name, names)
            if name[:1].isdigit() or close.startswith(";"):  # a section, or too many to list
                close = "; --list prints all"
            raise InputError("command line", "only", f"unknown criterion {shown(name)}{close}")
    if not only:
        return suite
    kept = [one for one in suite.criteria if any(_named(one, name) for name in only)]
    return replace(suite, criteria=tuple(kept))


def _named(one: Criterion, name: str) -> bool:
    """Return True if a criterion has this id, title or section, or its section is below it."""
    section = one.content.section
    titles = (one.id, one.content.title.lower())
    return name.lower() in titles or section == name or section.startswith(f"{name}.")


class LimitEntry(Record):
    """A limit of a suite, as `evaluate --list --json` prints it: in `unit`, or a factor of the same
    measure on the run that `of` names. A criterion that is not evaluated has the reason instead.
    """

    section: str
    criterion: str
    title: str
    cells: int
    scenario: str | None = None
    id: str | None = None
    measure: str | None = None
    statement: str | None = None
    limit: float | None = None
    unit: str | None = None
    of: str | None = None
    source: str | None = None
    not_evaluated: str | None = None


def entries(suite: Suite) -> list[LimitEntry]:
    """Return the limits of a suite. `cells` is the number of grid points for each rival."""
    found = []
    for criterion in suite.criteria:
        content = criterion.content
        entry = LimitEntry(
            section=content.section, criterion=criterion.id, title=content.title,
            cells=math.prod(map(len, content.grid.values())),
        )  # fmt: skip
        if content.not_evaluated is not None:
            found.append(
                LimitEntry.read({**entry, "cells": 0, "not_evaluated": content.not_evaluated})
            )
        for limit in content.limit:
            keys = ("id", "measure", "limit", "unit", "of", "source")
            mine = {key: getattr(limit, key) for key in keys}
            mine |= {"scenario": content.scenario, "statement": limit.statement or limit.text()}
            found.append(LimitEntry.read({**entry, **mine}))
    return found


def _criterion(file: Path) -> Criterion:
    content = read_file(file, CriterionFile)
    claims: dict[str, Claim] = {}
    for name, count in Counter(limit.id for limit in content.limit).items():
        if count > 1:
            raise InputError(str(file), f"limit.{name}", "must be unique, got the name twice")
    for limit in content.limit:
        claims[limit.id] = _claim(limit, content, file)
    found = Criterion(file.stem, file, content, claims)
    if content.scenario is not None and not found.scenario.is_file():
        problem = f"no such file in scenarios/, got {shown(content.scenario)}"
        raise InputError(str(file), "scenario", problem)
    return found


def _claim(limit: Limit, content: CriterionFile, file: Path) -> Claim:
    key = f"limit.{limit.id}"
    if limit.measure in MEASURES and MEASURES[limit.measure].of != "run":
        problem = f"must be a measure of one run, got {shown(limit.measure)}"
        raise InputError(str(file), f"{key}.measure", problem)
    for axis in limit.where:
        if axis not in content.grid and axis != "rival":
            why = f"unknown axis{nearest(axis, [*content.grid, 'rival'])}"
            raise InputError(str(file), f"{key}.where.{axis}", why)
        known = [*content.grid.get(axis, ()), *content.quick.grid.get(axis, ())]
        for value in limit.where[axis] if axis in content.grid else ():
            if value not in known:
                problem = f"no value of the grid, got {shown(str(value))}"
                raise InputError(str(file), f"{key}.where.{axis}", problem)
    return checked_claim(limit.claim(), _ROLES, str(file), key)


def _place(section: str) -> tuple[int, ...]:
    """Return a section's numbers, so that 5.2 comes before 5.10."""
    return tuple(int(number) for number in re.findall(r"\d+", section))
