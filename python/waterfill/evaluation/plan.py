"""Plan of an evaluation: the suite's criteria and a law become cells with concrete scenarios.

A cell is one combination of a criterion's grid values. It has a run of the law (`law`), the same
run with the first of `against` in the law's place (`reference`), and, where a flow of the scenario
is a `rival`, one with that rival in the law's place (`rival`). In a scenario file, "law" and
"rival" stand for protocols.

In a suite for queues, `queue = "queue"` of a link stands for the queue under test. Each of
`against` makes a run with that queue in its place, of which the first is the `reference`.
"""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from waterfill.errors import InputError, nearest, shown
from waterfill.evaluation import suites
from waterfill.evaluation.schema import SubjectKind, Value
from waterfill.evaluation.suites import Criterion, Suite
from waterfill.network import chance, protocols
from waterfill.papers.claims.experiment import Experiment
from waterfill.papers.claims.loading import grid_runs
from waterfill.papers.claims.schema import Claim, ExperimentRun
from waterfill.runs import backends
from waterfill.runs.endpoints import Endpoints, Library
from waterfill.runs.laws import PythonLaw, infos, summaries, used
from waterfill.scenario.document import COMMAND_LINE, Scenario
from waterfill.scenario.loading import from_dict

LAW, RIVAL, QUEUE = "law", "rival", "queue"
"""Placeholders for protocols and for a link's queue in a suite's scenarios."""
_OF_QUEUE = (["queue_params"], ["mark_at"], ["mark_to"], ["mark_max"])
STAND_IN = "cubic"
"""Protocol in the scenario files of flows whose hosts are endpoints."""
ROUTERS = ("all", "half", "none")


@dataclass(frozen=True)
class Subject:
    """The law or queue under test, its rivals, and the options that change all cells.

    `law` is the name of either, by `kind`. `recovery` is for flows of the law only. `routers` says
    which routers run an explicit law: all, every second one (the first of each two is silent), or
    none. `changed` overrides keys where the law itself runs, but not in the runs of other laws.
    With `endpoint`, the law is a library's code, and `law` its name.
    """

    law: str
    against: tuple[str, ...]
    laws: Mapping[str, PythonLaw] = field(default_factory=dict)
    recovery: str | None = None
    routers: str = "all"
    sets: tuple[str, ...] = ()
    quick: bool = False
    changed: tuple[str, ...] = ()
    kind: SubjectKind = "law"
    endpoint: Library | None = None

    @property
    def reference(self) -> str:
        """The law or queue that limits refer to."""
        return self.against[0]

    def is_explicit(self) -> bool:
        """Return True if routers take part in the law."""
        if self.endpoint is not None:
            return False
        return (
            self.kind == "law"
            and (infos(summaries(self.laws)) | protocols.load())[self.law].kind == "explicit"
        )


@dataclass(frozen=True)
class Cell:
    """One cell: its grid values, its scenarios by role, and its limits as claims.

    `own` are the names of the law's flows and sources of flows, or of all in a suite for queues. A
    cell with `not_evaluated` has no scenarios. `about_law` are the limits on the law's own use.
    """

    criterion: str
    name: str
    values: Mapping[str, Value]
    experiment: Experiment
    scenarios: Mapping[str, Scenario]
    own: frozenset[str]
    not_evaluated: str | None = None
    about_law: frozenset[str] = frozenset()

    @property
    def slug(self) -> str:
        """Name of the cell's file, without its ending."""
        return re.sub(r"[^A-Za-z0-9.]+", "-", self.name).strip("-") or "run"

    def endpoints(self, library: Library | None) -> Endpoints | None:
        """Return the endpoints of the law's flows, None without a library."""
        return None if library is None else Endpoints(dict.fromkeys(sorted(self.own), library))

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The cell's limits."""
        return self.experiment.claims


@dataclass(frozen=True)
class Plan:
    """Cells of the criteria of a suite for one law."""

    suite: Suite
    subject: Subject
    only: tuple[str, ...] = ()

    def criteria(self) -> list[Criterion]:
        """Return the criteria to evaluate, in the order of their sections: all, or those that
        `only` names by id or section.

        A criterion whose grid varies a key that `--set` fixes is not evaluated. Raises InputError
        for a name that is neither, and for a `--set` that would replace a law.
        """
        _check_sets(self.subject)
        return [
            _without_fixed_axes(one, self.subject.sets)
            for one in suites.select(self.suite, self.only).criteria
            if not (self.subject.quick and one.content.quick.skip)
        ]

    def cells(self, criterion: Criterion) -> list[Cell]:
        """Return the cells of a criterion, in the order of its grid; the rival varies slowest."""
        if criterion.content.not_evaluated is not None:
            return []
        axes = self.axes(criterion)
        return [
            self.cell(criterion, dict(zip(axes, values, strict=True)))
            for values in itertools.product(*axes.values())
        ]

    def axes(self, criterion: Criterion) -> dict[str, Sequence[Value]]:
        """Return the axes of a criterion's grid, the rival first where there is one."""
        content = criterion.content
        grid: dict[str, Sequence[Value]] = dict(content.grid)
        if self.subject.quick:
            grid |= content.quick.grid
        document = criterion.document
        placeholders = _protocols(document).values()
        has_rival = RIVAL in placeholders
        if self.subject.kind == "queue":
            if not any(link.get("queue") == QUEUE for link in _links(document)):
                problem, advice = "no link has the queue under test", 'write queue = "queue"'
                raise InputError(str(criterion.scenario), "link", problem, advice)
        elif LAW not in placeholders:
            problem, advice = "no flow has the protocol of the law under test", 'protocol = "law"'
            raise InputError(str(criterion.scenario), "flow", problem, f"write {advice}")
        for limit in content.limit if not has_rival else ():
            if limit.of == RIVAL:
                problem = f'no flow of {content.scenario} has protocol = "rival"'
                raise InputError(str(criterion.file), f"limit.{limit.id}.of", problem)
        return {RIVAL: self.subject.against, **grid} if has_rival else grid

    def cell(self, criterion: Criterion, values: Mapping[str, Value]) -> Cell:
        """Return the cell at these values, which need not be on the grid.

        A law that cannot run the scenario makes a cell that is not evaluated. Raises InputError if
        the scenario is wrong.
        """
        own = {key: value for key, value in values.items() if key != RIVAL}
        name = grid_runs({key: [value] for key, value in values.items()}, [])[0].name
        sets = [*criterion.content.set, *grid_runs({k: [v] for k, v in own.items()}, [])[0].set]
        if self.subject.quick:
            sets += criterion.content.quick.set
        rival = str(values[RIVAL]) if RIVAL in values else None
        build = _Builder(criterion, self.subject, name, sets, rival)
        scenarios = {"reference": build.scenario(self.subject.reference)}
        if rival is not None:
            scenarios["rival"] = build.scenario(rival)
        if self.subject.kind == "queue":
            scenarios |= {queue: build.scenario(queue) for queue in self.subject.against[1:]}
        reason = None
        try:
            scenarios = {"law": build.scenario(self.subject.law, is_subject=True), **scenarios}
        except InputError as error:
            if self.subject.kind == "queue" and error.file == COMMAND_LINE:
                raise
            scenarios, reason = {}, why(error)
        _check_args(criterion, scenarios.get("reference"))
        claims = [
            criterion.claims[limit.id]
            for limit in criterion.content.limit
            if all(values.get(axis) in only for axis, only in limit.where.items())
        ]
        cell = Cell(
            criterion.id, name, values, self._experiment(criterion, claims, scenarios), scenarios,
            build.own(), reason,
            frozenset(one.id for one in criterion.content.limit if one.about == "law"),
        )  # fmt: skip
        experiment = replace(cell.experiment, name=f"{criterion.id}/{cell.slug}")
        return replace(cell, experiment=experiment)

    def _experiment(
        self, criterion: Criterion, claims: Sequence[Claim], scenarios: Mapping[str, Scenario]
    ) -> Experiment:
        return Experiment(
            paper=self.suite.content.name,
            name=criterion.id,
            folder=criterion.file.parent,
            title=criterion.content.title,
            figures=(),
            claims=tuple(claims),
            runs=tuple(ExperimentRun(name=role) for role in scenarios),
            short_runs=(),
        )


@dataclass(frozen=True)
class _Builder:
    """Builder of a cell's scenarios, one for each law in the place of "law"."""

    criterion: Criterion
    subject: Subject
    name: str
    sets: Sequence[str]
    """Overrides of the suite."""
    rival: str | None

    def own(self) -> frozenset[str]:
        """Return the names of the flows and sources that run the law, for a queue of all."""
        found = _protocols(self.criterion.document)
        every = self.subject.kind == "queue"
        return frozenset(name for name, protocol in found.items() if every or protocol == LAW)

    def scenario(self, law: str, *, is_subject: bool = False) -> Scenario:
        """Return the scenario with `law` in place of "law" or "queue", with jitter by seed."""
        document = copy.deepcopy(dict(self.criterion.document))
        document["name"] = f"{self.criterion.id} {self.name}".strip('" ')
        if is_subject and self.subject.endpoint is not None:
            law = STAND_IN
            self._refuse_sources(document)
        of_queue = self.subject.kind == "queue"
        names = {RIVAL: self.rival} if of_queue else {LAW: law, RIVAL: self.rival}
        default = document.get("protocol")
        for table in _sources(document):
            placeholder = table.get("protocol", default)
            if is_subject and placeholder == LAW and self.subject.recovery and "kind" not in table:
                table["recovery"] = self.subject.recovery
        for table in (document, *_sources(document)):
            if table.get("protocol") in names:
                table["protocol"] = names[table["protocol"]]
        if is_subject and self.subject.is_explicit():
            for place, link in enumerate(_links(document)):
                if self.subject.routers == "none" or (
                    self.subject.routers == "half" and place % 2 == 0
                ):
                    link["routers"] = []
        for link in _links(document) if of_queue else ():
            if link.get("queue") == QUEUE:
                link["queue"] = law
        sets = [*self.sets, *self.subject.sets]
        if is_subject:
            sets += self.subject.changed
        elif of_queue:  # parameters of the queue under test do not fit others
            sets = [one for one in sets if _key(one).split(".")[2:3] not in _OF_QUEUE]
        scenario = chance.jittered(self._read(document, sets))
        backends.prepare(scenario, "sim", used(self.subject.laws, scenario))
        return scenario

    def _read(self, document: dict[str, Any], sets: Sequence[str]) -> Scenario:
        """Read a scenario; raise InputError, with the criterion's file for its own wrong key."""
        path = str(self.criterion.scenario)
        try:
            return from_dict(document, path, sets)
        except InputError as error:
            if error.file != COMMAND_LINE:
                raise
            try:
                from_dict(document, path, self.sets)
            except InputError as own:
                if own.file != COMMAND_LINE:
                    raise
                file = str(self.criterion.file)
                raise InputError(file, own.key, own.message) from None
            raise

    def _refuse_sources(self, document: Mapping[str, Any]) -> None:
        """Raise InputError if a source of flows runs the law, which an endpoint cannot do."""
        default = document.get("protocol")
        sources = document.get("traffic", ())
        if any(table.get("protocol", default) == LAW for table in sources):
            problem = "an endpoint cannot run a source of flows"
            raise InputError(str(self.criterion.scenario), "traffic", problem)


def why(error: InputError) -> str:
    """Return why a law cannot run a scenario, with the key that says so."""
    return f"{error.key}: {error.message}" if error.key else error.message


def _check_sets(subject: Subject) -> None:
    """Raise InputError if `--set` would replace a law that the evaluation chooses, or its recovery,
    so that the results would bear another law's name.
    """
    for key in map(_key, subject.sets):
        last = key.rpartition(".")[2]
        if last == QUEUE and subject.kind == "queue":
            problem = "the evaluation chooses the queue"
            raise InputError("evaluate", f"set {key}", problem, "name queues with --against")
        if last == "protocol":
            problem = "the evaluation chooses each flow's protocol"
            raise InputError("evaluate", f"set {key}", problem, "name laws with --against")
        if last == "recovery" and subject.recovery is not None:
            problem = f"--recovery {subject.recovery} sets the law's recovery"
            raise InputError("evaluate", f"set {key}", problem, "remove one of them")


# Arguments of measures that name entries of a scenario, by sections.
_NAMES = {
    ("link",): ("link", "links"),
    ("flow",): ("flow", "flows", "group", "groups", "giver", "shares_bps"),
    ("flow", "traffic"): ("source",),
}


def _check_args(criterion: Criterion, scenario: Scenario | None) -> None:
    """Raise InputError if a limit's argument names an entry that the scenario lacks."""
    for limit in criterion.content.limit if scenario is not None else ():
        for sections, arguments in _NAMES.items():
            entries = [entry for section in sections for entry in getattr(scenario, section)]
            known = [entry.name or entry.kind for entry in entries]
            for argument in arguments:
                given = limit.args.get(argument, ())
                for name in [given] if isinstance(given, str) else given:
                    # "l:rev" is a link's reverse direction, "f[0]" one flow of several.
                    if re.sub(r"(:rev|\[\d+\])$", "", name) not in known:
                        key = f"limit.{limit.id}.args.{argument}"
                        problem = f"unknown {sections[0]} {shown(name)}{nearest(name, known)}"
                        raise InputError(str(criterion.file), key, problem)


def _without_fixed_axes(criterion: Criterion, sets: Sequence[str]) -> Criterion:
    """Return a criterion, as not evaluated if `--set` gives one value to an axis of its grid."""
    axes = {key.strip() for axis in criterion.content.grid for key in axis.split(",")}
    fixed = [key for key in map(_key, sets) if key in axes]
    if not fixed:
        return criterion
    reason = f"--set gives {fixed[0]} one value, and the criterion varies it"
    update: dict[str, object] = {"not_evaluated": reason, "limit": [], "scenario": None, "grid": {}}
    return replace(criterion, content=criterion.content.model_copy(update=update))


def _key(override: str) -> str:
    return override.partition("=")[0].strip()


def _links(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [link for link in document.get("link", ()) if isinstance(link, dict)]


def _sources(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the tables of a scenario that may name a protocol."""
    for section in ("flow", "traffic"):
        yield from (table for table in document.get(section, ()) if isinstance(table, dict))


def _protocols(document: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the protocol or placeholder of each flow and source by its name."""
    default = document.get("protocol")
    return {
        str(table.get("name", table.get("kind"))): table.get("protocol", default)
        for table in _sources(document)
    }
