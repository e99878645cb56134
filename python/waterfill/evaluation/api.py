"""`waterfill.evaluate`: a law's verdicts on the criteria of a suite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from waterfill.analysis import compare
from waterfill.analysis.seeds import MAX_SEEDS as MOST
from waterfill.contract.summary import SCHEMA_VERSION
from waterfill.errors import InputError, nearest, shown
from waterfill.evaluation import suites
from waterfill.evaluation.engine import MAX_SEEDS, Planned, Progress, Sampling, run_cells
from waterfill.evaluation.plan import ROUTERS, Cell, Plan, Subject
from waterfill.evaluation.verdict import (
    CellVerdict,
    CriterionVerdict,
    EvaluationDocument,
    of_cells,
    unused,
)
from waterfill.runs import law_files
from waterfill.runs.laws import PythonLaw
from waterfill.scenario.document import RECOVERIES

DEFAULT_SUITE = "rfc9743"
PRECISION = 0.05
_COMMAND_LINE = "command line"


@dataclass(frozen=True)
class Evaluation:
    """A law's verdicts as a document, with the plan and the cells they are from, by criterion."""

    document: EvaluationDocument
    plan: Plan
    cells: Mapping[str, Sequence[Cell]]


def evaluate(
    law: str,
    *,
    suite: str | Path = DEFAULT_SUITE,
    against: Sequence[str] | None = None,
    laws: Mapping[str, PythonLaw] | None = None,
    recovery: str | None = None,
    routers: str = "all",
    seeds: int | None = None,
    precision: float = PRECISION,
    quick: bool = False,
    set: Iterable[str] = (),
    cached: bool = True,
    planned: Planned | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Run a law through the criteria of a suite, and return its verdicts.

    `against` are the rivals, of which the first is the reference; the default is the suite's.
    `laws` are laws in Python by name. `recovery` is the loss recovery of the law's flows, `routers`
    says which routers run an explicit law: all, half or none. Each cell has `seeds` seeds; without
    them, the suite's number and then more, up to ten, until half of the 95 % interval is at most
    `precision` × the mean or the verdict is clear. `set` overrides keys of all scenarios. `planned`
    and `progress` are those of `papers.jobs.run_jobs`. Raises InputError for wrong input before any
    run, and `engine.Interrupted` after Ctrl-C.
    """
    plan = _plan(law, suite, against, laws, recovery, routers, quick, set)
    if seeds is not None and not 1 <= seeds <= MOST:
        raise InputError(_COMMAND_LINE, "seeds", f"must be auto or at least 1, got {seeds}")
    if not 0 < precision < 1:
        problem = f"must be above 0 % and below 100 %, got {100 * precision:g} %"
        raise InputError(_COMMAND_LINE, "precision", problem)
    if seeds is None and quick:
        seeds = 1
    start = min(plan.suite.content.seeds, MAX_SEEDS) if seeds is None else seeds
    sampling = Sampling(start, None if seeds else precision, cached, planned, progress)
    criteria = plan.criteria()
    cells = {criterion.id: plan.cells(criterion) for criterion in criteria}
    judged = iter(run_cells(plan, [cell for own in cells.values() for cell in own], sampling))
    found: list[CriterionVerdict] = []
    for criterion in criteria:
        own = [next(judged) for _ in cells[criterion.id]]
        for cell, of_cell in zip(cells[criterion.id], own, strict=True):
            of_cell["file"] = f"cells/{criterion.id}/{cell.slug}.toml"
        verdict, reason = of_cells(own)
        found.append(
            CriterionVerdict(
                id=criterion.id,
                section=criterion.content.section,
                title=criterion.content.title,
                question=criterion.content.question,
                verdict=verdict,
                reason=criterion.content.not_evaluated or reason,
                cells=own,
                boundaries=[],
                warnings=_warnings(own, plan.subject.reference),
            )
        )
    return Evaluation(_document(plan, sampling, found), plan, cells)


def _plan(
    law: str,
    suite: str | Path,
    against: Sequence[str] | None,
    laws: Mapping[str, PythonLaw] | None,
    recovery: str | None,
    routers: str,
    quick: bool,
    sets: Iterable[str],
) -> Plan:
    """Return the plan of an evaluation; raise InputError for a wrong option."""
    chosen = suites.load(suite)
    rivals = tuple(against) if against else tuple(chosen.content.against)
    for name, word, known in (("recovery", recovery, RECOVERIES), ("routers", routers, ROUTERS)):
        if word is not None and word not in known:
            close = nearest(word, known)
            raise InputError(_COMMAND_LINE, name, f"unknown value {shown(word)}{close}")
    own = law_files.with_installed(laws or {}, (law, *rivals))
    compare.select(law, "sim", own)
    compare.select(",".join(rivals), "sim", own)
    subject = Subject(law, rivals, own, recovery, routers, tuple(sets), quick)
    if routers != "all" and not subject.is_explicit():
        problem = f"no effect on {law}, in which routers take no part"
        raise InputError(_COMMAND_LINE, "routers", problem, "remove it")
    return Plan(chosen, subject)


def _warnings(cells: Sequence[CellVerdict], reference: str) -> list[str]:
    """Return a criterion's warnings: cells that are met without using the path, and anomalies."""
    found = []
    slow = [(cell, text) for cell in cells if (text := unused(cell, reference)) is not None]
    if slow:
        cell, text = min(slow, key=lambda one: (one[0].use and one[0].use.share) or 0.0)
        met = "meets it, but " if cell.verdict == "meets" else ""
        found.append(f"{_in(cell, len(slow), len(cells))}{met}{text}")
    kinds: dict[str, list[CellVerdict]] = {}
    for cell in cells:
        for kind in cell.use.warnings if cell.use else ():
            kinds.setdefault(kind, []).append(cell)
    found += [f"{_in(own[0], len(own), len(cells))}{kind}" for kind, own in kinds.items()]
    return found


def _in(cell: CellVerdict, count: int, of: int) -> str:
    """Return the place of a warning: the cell's name, and the number of cells if there are more."""
    if of == 1:
        return ""
    return f"{cell.name}: " if count == 1 else f"{cell.name} and {count - 1} more of {of} cells: "


def _document(
    plan: Plan, sampling: Sampling, criteria: list[CriterionVerdict]
) -> EvaluationDocument:
    from waterfill._core import version

    subject, content = plan.subject, plan.suite.content
    options: dict[str, Any] = {
        "recovery": subject.recovery,
        "routers": subject.routers,
        "quick": subject.quick,
        "seeds": sampling.seeds if sampling.precision is None else "auto",
        "precision": sampling.precision,
        "set": list(subject.sets),
    }
    return EvaluationDocument(
        schema_version=SCHEMA_VERSION,
        suite=content.name,
        version=content.version,
        title=content.title,
        waterfill=version(),
        law=subject.law,
        against=list(subject.against),
        options=options,
        criteria=criteria,
    )


def with_law(plan: Plan, law: str) -> Plan:
    """Return the plan of the same cells for another law."""
    return replace(plan, subject=replace(plan.subject, law=law))
