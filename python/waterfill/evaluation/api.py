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
from waterfill.evaluation import calibration, changes, expected, output, suites
from waterfill.evaluation import sensitivity as parameters
from waterfill.evaluation.boundary import Bracket, brackets, refine
from waterfill.evaluation.engine import Planned, Progress, Sampling, run_cells
from waterfill.evaluation.plan import ROUTERS, Cell, Plan, Subject
from waterfill.evaluation.suites import Criterion
from waterfill.evaluation.text import titled
from waterfill.evaluation.verdict import (
    CellVerdict,
    CriterionVerdict,
    EvaluationDocument,
    of_cells,
    unused,
)
from waterfill.network import protocols
from waterfill.runs import law_files
from waterfill.runs.directory import Stage
from waterfill.runs.endpoints import Library
from waterfill.runs.laws import PythonLaw, infos, summaries
from waterfill.scenario.document import RECOVERIES
from waterfill.scenario.links import QUEUES

DEFAULT_SUITE = "rfc9743"
QUEUE_SUITE = "rfc7928"
PRECISION = 0.05
_COMMAND_LINE = "command line"


@dataclass(frozen=True)
class Evaluation:
    """A law's verdicts as a document, with the plan and the cells they are from, by criterion.

    With a record, `differences` has one line for each criterion that differs from it, and `notices`
    says where the record does not fit.
    """

    document: EvaluationDocument
    plan: Plan
    cells: Mapping[str, Sequence[Cell]]
    differences: Sequence[str] | None = None
    notices: Sequence[str] = ()

    def write(self, folder: str | Path) -> None:
        """Write the documents and the cells' scenarios to a folder; raise WriteError on failure."""
        with Stage(folder) as stage:
            output.write(self.document, self.cells, stage, self.differences)


def evaluate(
    law: str | Library,
    *,
    suite: str | Path = DEFAULT_SUITE,
    against: Sequence[str] | None = None,
    laws: Mapping[str, PythonLaw] | None = None,
    recovery: str | None = None,
    routers: str = "all",
    seeds: int | None = None,
    precision: float = PRECISION,
    quick: bool = False,
    only: Sequence[str] = (),
    set: Iterable[str] = (),
    baseline: str | None = None,
    sensitivity: bool = False,
    calibrate: bool = False,
    expect: str | Path | None = None,
    cached: bool = True,
    planned: Planned | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Run a law, or a library's endpoints, through the criteria of a suite; return its verdicts.

    In a suite for queues, `law`, `against` and `baseline` are names of queues such as "pie".
    `against` are the rivals, of which the first is the reference; the default is the suite's.
    `laws` are laws in Python by name. `recovery` is the loss recovery of the law's flows, `routers`
    says which routers run an explicit law: all, half or none. Each cell has `seeds` seeds; without
    them, the suite's number and then more, up to ten, until half of the 95 % interval is at most
    `precision` × the mean or the verdict is clear. `only` names criteria by their ids or sections.
    `set` overrides keys of all scenarios. With `baseline`, the name of another law, the document
    lists what differs from it. With `sensitivity` it lists the verdicts on the quick cells that
    change with each parameter ± 20 %, and with `calibrate` it compares short runs of this version
    with formulas. `expect` is a file of recorded verdicts to compare with. `planned` and `progress`
    are those of `papers.jobs.run_jobs`. Raises InputError for wrong input before any run, and
    `engine.Interrupted` after Ctrl-C.
    """
    plan = _plan(law, suite, against, laws, recovery, routers, quick, set, baseline)
    if plan.subject.kind == "queue":
        _check_of_laws(sensitivity=sensitivity)
        baseline = None if baseline is None else known_queues([baseline])[0]
    plan = replace(plan, only=tuple(only))
    if plan.subject.endpoint is not None:
        _refuse_for_endpoint(recovery=recovery, baseline=baseline, sensitivity=sensitivity)
    sampling = _sampling(plan, seeds, precision, cached)
    sampling = replace(sampling, planned=planned, progress=progress)
    wanted = None if expect is None else _expected(plan, sampling, Path(expect))
    cells, found = _judged(plan, sampling)
    document = _document(plan, sampling, found)
    if baseline is not None:
        _, before = _judged(with_law(plan, baseline), sampling, search=False)
        document["baseline"] = baseline
        document["changes"] = changes.between(before, found)
        document["uncompared"] = changes.uncompared(baseline, before, plan.subject.law, found)
    if sensitivity:
        once = replace(sampling, seeds=1, precision=None)
        document["sensitivity"] = parameters.of(
            plan, lambda changed: _judged(changed, once, search=False)[1]
        )
    if calibrate:
        document["calibration"] = calibration.calibrate()
    if expect is None or wanted is None:
        return Evaluation(document, plan, cells)
    differences = expected.differences(wanted, document)
    return Evaluation(
        document, plan, cells, differences, expected.notices(Path(expect), wanted, plan.subject.law)
    )


def _refuse_for_endpoint(**options: object) -> None:
    """Raise InputError for an option that changes a law, or compares with one."""
    for name, value in options.items():
        if value:
            problem = "not possible with a library's endpoints"
            raise InputError(_COMMAND_LINE, name, problem, "remove one of them")


def _expected(plan: Plan, sampling: Sampling, file: Path) -> expected.ExpectedFile:
    """Read recorded verdicts; raise InputError if they are of another suite or other options."""
    if plan.only:
        raise InputError(_COMMAND_LINE, "expect", "not possible with --only", "remove one of them")
    subject = plan.subject
    wanted = expected.options(subject.against, _options(plan, sampling))
    content = plan.suite.content
    return expected.read(file, f"{content.name} {content.version}", subject.quick, wanted)


def _sampling(plan: Plan, seeds: int | None, precision: float, cached: bool) -> Sampling:
    """Return how many seeds cells have; raise InputError for a wrong number or precision."""
    if seeds is not None and not 1 <= seeds <= MOST:
        raise InputError(_COMMAND_LINE, "seeds", f"must be auto or 1 to {MOST}, got {seeds}")
    if not 0 < precision < 1:
        problem = f"must be above 0 % and below 100 %, got {100 * precision:g} %"
        raise InputError(_COMMAND_LINE, "precision", problem)
    if seeds is None and plan.subject.quick:
        seeds = 1
    if seeds is None:
        return Sampling(plan.suite.content.seeds, precision, cached)
    return Sampling(seeds, None, cached)


def _judged(
    plan: Plan, sampling: Sampling, *, search: bool = True
) -> tuple[dict[str, list[Cell]], list[CriterionVerdict]]:
    """Run all cells of a plan, and with `search` those that narrow boundaries down; return the
    cells by criterion, and the verdicts.
    """
    criteria = plan.criteria()
    cells = {criterion.id: plan.cells(criterion) for criterion in criteria}
    judged = iter(run_cells(plan, [cell for own in cells.values() for cell in own], sampling))
    verdicts = {name: [next(judged) for _ in own] for name, own in cells.items()}
    found = {
        criterion.id: brackets(criterion, plan.axes(criterion), verdicts[criterion.id])
        for criterion in criteria
        if cells[criterion.id]
    }
    if search and not plan.subject.quick:
        for cell, verdict in refine(plan, [one for own in found.values() for one in own], sampling):
            cells[cell.criterion].append(cell)
            verdicts[cell.criterion].append(verdict)
    return cells, [
        _criterion(plan, one, cells[one.id], verdicts[one.id], found.get(one.id, []))
        for one in criteria
    ]


def _criterion(
    plan: Plan,
    criterion: Criterion,
    cells: Sequence[Cell],
    verdicts: list[CellVerdict],
    found: Sequence[Bracket],
) -> CriterionVerdict:
    """Return the verdict on a criterion from those on its cells."""
    for cell, judged in zip(cells, verdicts, strict=True):
        if cell.scenarios:
            judged["file"] = f"cells/{criterion.id}/{cell.slug}.toml"
    verdict, reason = of_cells(verdicts)
    content = criterion.content
    return CriterionVerdict(
        id=criterion.id,
        section=content.section,
        title=content.title,
        question=content.question,
        verdict=verdict,
        reason=content.not_evaluated or reason,
        cells=verdicts,
        boundaries=[bracket.boundary() for bracket in found],
        warnings=_warnings(verdicts, plan.subject.reference),
    )


def _plan(
    law: str | Library,
    suite: str | Path,
    against: Sequence[str] | None,
    laws: Mapping[str, PythonLaw] | None,
    recovery: str | None,
    routers: str,
    quick: bool,
    sets: Iterable[str],
    baseline: str | None,
) -> Plan:
    """Return the plan of an evaluation; raise InputError for a wrong option."""
    chosen = suites.load(suite)
    rivals = tuple(against) if against else tuple(chosen.content.against)
    for name, word, known in (("recovery", recovery, RECOVERIES), ("routers", routers, ROUTERS)):
        if word is not None and word not in known:
            close = nearest(word, known)
            raise InputError(_COMMAND_LINE, name, f"unknown value {shown(word)}{close}")
    library = law if isinstance(law, Library) else None
    name = law if isinstance(law, str) else law.name
    if chosen.content.subject == "queue":
        name, *queues = known_queues([name, *rivals])
        _check_of_laws(law=laws, endpoint=library, recovery=recovery, routers=routers != "all")
        subject = Subject(name, tuple(queues), sets=tuple(sets), quick=quick, kind="queue")
        return Plan(chosen, subject)
    named = [one for one in (law, baseline) if isinstance(one, str)]
    own, rivals = known_laws(named, rivals, laws or {})
    subject = Subject(name, rivals, own, recovery, routers, tuple(sets), quick, endpoint=library)
    if routers != "all" and not subject.is_explicit():
        problem = f"no effect on {subject.law}, in which routers take no part"
        raise InputError(_COMMAND_LINE, "routers", problem, "remove it")
    return Plan(chosen, subject)


def check_subject(
    suite: str | Path, law: str | None, queue: str | None, laws: Mapping[str, PythonLaw]
) -> str | None:
    """Return the name of the law or queue to evaluate, or None if neither is given.

    Raises InputError if both are given, if the suite is for the other one, or for an unknown name.
    """
    if law is not None and queue is not None:
        problem = f"takes a law or --queue, got {law} and --queue {queue}"
        raise InputError("", "", f"evaluate {problem}", "remove one of them")
    of_suite = suites.load(suite).content.subject
    if queue is not None and of_suite == "law":
        problem = f"evaluates a law, got --queue {queue}"
        raise InputError("evaluate", f"suite {suite}", problem, f"use --suite {QUEUE_SUITE}")
    if of_suite == "queue":
        named = queue or law
        if named is None:
            raise InputError("evaluate", "", "no queue given", "type --queue NAME")
        known_queues([named])
        return named
    if law is not None:
        known_laws([law], (), laws)
    return law


def _check_of_laws(**options: object) -> None:
    """Raise InputError for an option that only laws have."""
    for name, value in options.items():
        if value:
            problem = "no effect in a suite for queues"
            raise InputError(_COMMAND_LINE, name, problem, "remove it")


def known_queues(names: Sequence[str]) -> list[str]:
    """Return queues by their names in scenarios; "fifo" is another name of droptail.

    Raises InputError for an unknown name.
    """
    found = ["droptail" if name == "fifo" else name for name in names]
    for name in found:
        if name not in QUEUES:
            problem = f"unknown queue {shown(name)}{nearest(name, QUEUES)}"
            raise InputError("evaluate", "queue", problem)
    return found


def known_laws(
    names: Sequence[str], rivals: Sequence[str], laws: Mapping[str, PythonLaw]
) -> tuple[dict[str, PythonLaw], tuple[str, ...]]:
    """Return the laws in Python, with those of installed packages that are named, and the rivals.

    In `rivals`, `explicit` and `all` stand for several. Raises InputError for a name that is no
    law, a rival named twice, and a group in `names`.
    """
    own = law_files.with_installed(laws, (*names, *rivals))
    for one in names:
        if compare.select(one, "sim", own) != [one]:
            problem = f"takes one law, got {one}"
            raise InputError("", "", f"evaluate {problem}", "for two versions: --baseline")
    return own, tuple(compare.select(",".join(rivals), "sim", own)) if rivals else ()


def _warnings(cells: Sequence[CellVerdict], reference: str) -> list[str]:
    """Return a criterion's warnings: cells that are met without using the path, and anomalies."""
    found = []
    slow = [(cell, text) for cell in cells if (text := unused(cell, reference)) is not None]
    if slow:
        cell, text = min(slow, key=lambda one: (one[0].use and one[0].use.share) or 0.0)
        met = "meets it, but " if cell.verdict == "meets" else ""
        found.append(f"{_in(cell, len(slow), len(cells))}{met}{text}")
    kinds: dict[str, list[tuple[CellVerdict, str]]] = {}
    for cell in cells:
        for kind, line in cell.use.warnings.items() if cell.use else ():
            kinds.setdefault(kind, []).append((cell, line))
    for own in kinds.values():
        found.append(f"{_in(own[0][0], len(own), len(cells))}{own[0][1]}")
    return found


def _in(cell: CellVerdict, count: int, of: int) -> str:
    """Return the place of a warning: the cell's name, and the number of cells if there are more."""
    if of == 1:
        return ""
    name = titled(cell)
    return f"{name}: " if count == 1 else f"{name} and {count - 1} more of {of} cells: "


def _document(
    plan: Plan, sampling: Sampling, criteria: list[CriterionVerdict]
) -> EvaluationDocument:
    from waterfill._core import version

    subject, content = plan.subject, plan.suite.content
    document = EvaluationDocument(
        schema_version=SCHEMA_VERSION,
        suite=content.name,
        version=content.version,
        title=content.title,
        waterfill=version(),
        law=subject.law,
        against=list(subject.against),
        options=_options(plan, sampling),
        criteria=criteria,
    )
    if subject.kind != "law":
        document["subject"] = subject.kind
    elif subject.endpoint is None:
        document["recoveries"] = _recoveries(subject)
    return document


def _recoveries(subject: Subject) -> dict[str, str]:
    """Return the loss recovery of the law's flows and of those of the others, by name."""
    known = infos(summaries(subject.laws)) | protocols.load()
    found = {name: known[name].recovery for name in (*subject.against, subject.law)}
    return found | ({subject.law: subject.recovery} if subject.recovery else {})


def _options(plan: Plan, sampling: Sampling) -> dict[str, Any]:
    """Return the options of an evaluation, as its document has them."""
    subject = plan.subject
    return {
        "recovery": subject.recovery,
        "routers": subject.routers,
        "quick": subject.quick,
        "seeds": sampling.seeds if sampling.precision is None else "auto",
        "precision": sampling.precision,
        "set": list(subject.sets),
    }


def with_law(plan: Plan, law: str) -> Plan:
    """Return the plan of the same cells for another law."""
    return replace(plan, subject=replace(plan.subject, law=law))
