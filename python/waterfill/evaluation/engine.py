"""Runs of an evaluation's cells, with further seeds for the cells that need them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from waterfill.analysis import hosts
from waterfill.analysis.seeds import estimate
from waterfill.errors import InputError, shown
from waterfill.evaluation.plan import Cell, Plan, why
from waterfill.evaluation.schema import MAX_SEEDS
from waterfill.evaluation.verdict import (
    MET,
    CellVerdict,
    LimitVerdict,
    Use,
    is_decided,
    mean_use,
    of_cell,
)
from waterfill.papers.claims.schema import Claim
from waterfill.papers.claims.verdict import REFUSALS, judge_values, mean, measure
from waterfill.papers.jobs import Job, run_jobs
from waterfill.runs import window
from waterfill.runs.laws import LawError
from waterfill.runs.progress import Tick
from waterfill.runs.result import Result

# Numbers of seeds at which a cell is looked at again.
_ROUNDS = (3, 5, 7, MAX_SEEDS)

Planned: TypeAlias = Callable[[Mapping[str, str], int], None]
Progress: TypeAlias = Callable[[str, Tick], None]


class Interrupted(KeyboardInterrupt):
    """The user interrupted an evaluation before all its runs had ended."""


@dataclass(frozen=True)
class Sampling:
    """How many seeds each cell has: `seeds`, or as many as the relative `precision` needs."""

    seeds: int
    precision: float | None = None
    cached: bool = True
    planned: Planned | None = None
    progress: Progress | None = None


@dataclass
class _State:
    """Values of a cell's limits so far, as {role: {limit: {seed: value}}}, and the use of the path
    as {role: {seed: use}}.
    """

    cell: Cell
    values: dict[str, dict[str, dict[int, float | None]]] = field(default_factory=dict)
    uses: dict[str, dict[int, Use]] = field(default_factory=dict)
    seeds: int = 0
    refused: str | None = None

    def of(self, role: str, limit: str) -> list[float | None]:
        """Return a limit's values on the runs of a role, by seed."""
        found = self.values.get(role, {}).get(limit, {})
        return [found[seed] for seed in sorted(found)]

    def is_decided(self, precision: float) -> bool:
        return all(
            is_decided(
                claim, self.of("law", claim.id), self.of(claim.of or "", claim.id), precision
            )
            for claim in self.cell.claims
        )


def run_cells(plan: Plan, cells: Sequence[Cell], sampling: Sampling) -> list[CellVerdict]:
    """Run cells and judge them; raise Interrupted if the user ends the runs early, and LawError at
    the first error in a law's own code.
    """
    states = [_State(cell, refused=cell.not_evaluated) for cell in cells]
    running = [state for state in states if state.refused is None]
    rounds = [sampling.seeds]
    if sampling.precision is not None:
        rounds += [count for count in _ROUNDS if count > sampling.seeds]
    for count in rounds:
        _run(plan, running, count, sampling)
        running = [
            state
            for state in running
            if state.refused is None
            and sampling.precision is not None
            and not state.is_decided(sampling.precision)
        ]
        if not running:
            break
    return [_judged(plan, state) for state in states]


def _run(plan: Plan, states: Iterable[_State], count: int, sampling: Sampling) -> None:
    """Run all roles of the cells with seeds up to `count`, and keep the values of their limits."""
    jobs: dict[tuple[int, str, int], Job] = {}
    by_place = dict(enumerate(states))
    for place, state in by_place.items():
        for role, scenario in state.cell.scenarios.items():
            for step in range(state.seeds, count):
                seed = scenario.seed + step
                title = f"{state.cell.criterion} {state.cell.name} {role} seed {seed}"
                seeded = scenario.model_copy(update={"seed": seed})
                library = plan.subject.endpoint if role == "law" else None
                jobs[place, role, seed] = Job(
                    title, state.cell.criterion, seeded, laws=plan.subject.laws,
                    endpoints=state.cell.endpoints(library),
                )  # fmt: skip
        state.seeds = count
    missing = set(jobs)

    def keep(keys: Sequence[tuple[int, str, int]], result: Result) -> None:
        missing.difference_update(keys)
        for place, role, seed in keys:
            state = by_place[place]
            for claim in state.cell.claims:
                value = _measured(state.cell, claim.id, role, result)
                state.values.setdefault(role, {}).setdefault(claim.id, {})[seed] = value
            state.uses.setdefault(role, {})[seed] = use(result, state.cell.own)

    def refuse(keys: Sequence[tuple[int, str, int]], error: InputError) -> None:
        """Keep why a cell cannot run, which only its law decides: the scenario has been checked.

        An error in a law's own code ends the evaluation, because the other cells would have it too.
        """
        if isinstance(error, LawError):
            title = jobs[keys[0]].title
            raise LawError(error.file, error.key, f"{error.message} (in {title})") from error
        missing.difference_update(keys)
        for place, _, _ in keys:
            state = by_place[place]
            state.refused = state.refused or why(error)

    run_jobs(
        jobs, keep, cached=sampling.cached, planned=sampling.planned, progress=sampling.progress,
        refused=refuse,
    )  # fmt: skip
    if missing:
        raise Interrupted


def _measured(cell: Cell, limit: str, role: str, result: Result) -> float | None:
    claim = next(claim for claim in cell.claims if claim.id == limit)
    try:
        return measure(claim, {role: result}, run=role)
    except KeyError as error:
        file = str(cell.experiment.folder / f"{cell.criterion}.toml")
        message = f"unknown name {shown(error.args[0])}; use a name of the scenario"
        raise InputError(file, f"limit.{limit}.args", message) from None
    except REFUSALS as error:
        file = str(cell.experiment.folder / f"{cell.criterion}.toml")
        message = f"{claim.measure} cannot use these: {error}"
        raise InputError(file, f"limit.{limit}.args", message) from None


def use(result: Result, own: Iterable[str]) -> Use:
    """Return how the flows and sources named `own` use the path in one run."""
    names = set(own)
    summary = result.summary
    flows = [flow for flow in summary.flows if flow.group in names]
    sources = [one for one in hosts.sources_of_flows(summary) if one.name in names]
    together = hosts.figures(flows, sources) if flows or sources else None
    rate_bps = math.fsum((flow.rate_bps or 0.0) * flow.count for flow in flows)
    share_bps = math.fsum((flow.max_min_bps or 0.0) * flow.count for flow in flows)
    mine = {flow.name for flow in flows} | {source.name for source in sources}
    warnings: dict[str, str] = {}
    for one in summary.warnings or ():
        if one.flow in mine and one.kind not in window.KINDS:
            warnings.setdefault(one.kind, f"{one.flow}: {one.text}")
    return Use(
        share=rate_bps / share_bps if share_bps else None,
        rate_bps=rate_bps if flows else None,
        limited_by=together.limited_by if together else None,
        loss_rate=together.loss_rate if together else None,
        resent_bytes=together.resent_bytes if together else 0,
        timeouts=together.timeouts if together else 0,
        warnings=warnings,
    )


def _judged(plan: Plan, state: _State) -> CellVerdict:
    """Return the verdict on a cell from the values of its limits."""
    cell = state.cell
    if state.refused is not None:
        return CellVerdict(
            name=cell.name, values_=dict(cell.values), verdict="not evaluated", seeds=[],
            limits=[], reason=state.refused,
        )  # fmt: skip
    limits = [_judged_limit(plan, state, claim) for claim in cell.claims]
    for limit in limits:
        if limit.id in cell.about_law:
            limit.about = "law"
    verdict, reason = of_cell(limits)
    found = CellVerdict(
        name=cell.name, values_=dict(cell.values), verdict=verdict,
        seeds=sorted(state.uses.get("law", {})), limits=limits,
        use=mean_use(_by_seed(state, "law")), reference=mean_use(_by_seed(state, "reference")),
    )  # fmt: skip
    if reason is not None:
        found["reason"] = reason
    if plan.subject.endpoint is not None:
        found["endpoints"] = [f"{flow}={plan.subject.endpoint}" for flow in sorted(cell.own)]
    return found


def _judged_limit(plan: Plan, state: _State, claim: Claim) -> LimitVerdict:
    """Return the verdict on a limit from its values on all runs of the cell."""
    values = state.of("law", claim.id)
    judged = judge_values(state.cell.experiment, claim, values, state.of(claim.of or "", claim.id))
    names = {"reference": plan.subject.reference, "rival": str(state.cell.values.get("rival"))}
    return LimitVerdict(
        id=claim.id,
        statement=claim.statement,
        source=claim.source,
        measure=str(claim.measure),
        unit=str(claim.unit),
        relation=claim.relation,
        limit=judged.paper_value,
        tolerance=judged.tolerance,
        of=claim.of,
        factor=None if claim.of is None else claim.paper_value,
        verdict=MET[judged.verdict],
        value=judged.measured,
        interval=estimate([_finite(value) for value in values]).interval,
        values_=judged.values_,
        others={
            names.get(role, role): _finite(mean(state.of(role, claim.id)))
            for role in state.cell.scenarios
            if role != "law" and (role == claim.of or names.get(role) != plan.subject.law)
        },
    )


def _by_seed(state: _State, role: str) -> list[Use]:
    found = state.uses.get(role, {})
    return [found[seed] for seed in sorted(found)]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
