"""Measurement of a claim on its runs, and the verdict on it.

For a random scenario an experiment runs with several seeds, and a claim's value is the mean over
them. A paper prints the value of one run, without its seed. If single runs of one scenario fall on
both sides of a tolerance boundary, the printed value says nothing about the scenario. Such a claim
records the range of single runs (`over_seeds`), and its verdict is *cannot be checked* if

- a tolerance boundary lies within the recorded range, and
- the measured value does too: a value outside the record is judged by itself.

Tolerances are set before the runs; the record never widens one. The study `seeds` measures the
records again and fails if they are wrong.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from waterfill.contract.record import Record
from waterfill.errors import InputError, shown
from waterfill.papers.claims.experiment import Experiment
from waterfill.papers.claims.schema import (
    UNITS,
    Claim,
    ExperimentRun,
    Relation,
    Verdict,
    boundaries,
)
from waterfill.papers.measures.registry import MEASURES
from waterfill.runs.result import Result

# Errors of a measure whose arguments fit its types, but not each other or the run.
REFUSALS = (ArithmeticError, ValueError, IndexError)


class SeedRange(Record):
    """Recorded range of a claim's value over single runs with different seeds."""

    runs: int
    least: float
    most: float


class Statement(Record):
    """Properties of a claim that are known before the run. Values are in `unit`."""

    id: str
    paper: str
    experiment: str
    source: str
    statement: str
    relation: Relation
    paper_value: float | None
    tolerance: float | None
    unit: str | None
    over_seeds: SeedRange | None
    expect: Verdict
    why: str | None
    sentence: str | None = None
    beyond: str | None = None
    insensitive: str | None = None

    @property
    def path(self) -> str:
        """Path PAPER/EXPERIMENT/CLAIM of the claim."""
        return f"{self.paper}/{self.experiment}/{self.id}"

    @property
    def boundaries(self) -> tuple[float, ...]:
        """Measured values at which the verdict changes; an empty tuple if the paper gives no
        value.
        """
        if self.paper_value is None or self.tolerance is None:
            return ()
        return boundaries(self.relation, self.paper_value, self.tolerance)


class Judged(Statement):
    """A claim with its verdict, as an entry of `reproduce --json` and of claims.json.

    `measured` is the mean of `values`, which has one value per seed. None is not measured, or never
    reached if the verdict is *differs*. `short` lists what a short version changed, as
    "duration=15 s" or "3 of 6 runs"; None if it changed nothing, and for the full experiment.
    """

    measured: float | None
    values_: list[float | None]
    verdict: Verdict
    short: list[str] | None = None


def judge(
    experiment: Experiment, samples: Sequence[Mapping[str, Result]], short: bool = False
) -> list[Judged]:
    """Judge the claims of an experiment, in the order of the file.

    Each sample holds all runs by name, one sample per seed. Raises InputError if a claim names a
    flow or link that its run does not have.
    """
    wanted = [claim for claim in experiment.claims if claim.short or not short]
    return [_judge_one(experiment, claim, samples, short) for claim in wanted]


def _judge_one(
    experiment: Experiment, claim: Claim, samples: Sequence[Mapping[str, Result]], short: bool
) -> Judged:
    try:
        values = [measure(claim, runs, short) for runs in samples]
        others = [measure(claim, runs, short, claim.of) for runs in samples if claim.of]
    except KeyError as error:
        file, key = str(experiment.folder / "claims.toml"), f"claim.{claim.id}.args"
        message = f"unknown name {shown(error.args[0])}; use a name of its run"
        raise InputError(file, key, message) from None
    except REFUSALS as error:
        file, key = str(experiment.folder / "claims.toml"), f"claim.{claim.id}.args"
        raise InputError(file, key, f"{claim.measure} cannot use these: {error}") from None
    changed = _shortened(experiment, claim) if short else []
    return judge_values(experiment, claim, values, others, changed)


def judge_values(
    experiment: Experiment,
    claim: Claim,
    values: Sequence[float | None],
    others: Sequence[float | None] = (),
    changed: Sequence[str] = (),
) -> Judged:
    """Judge a claim by its values in `unit`, one per seed.

    `others` are the values of the run that the claim's `of` names, and `changed` what a short
    version changed.
    """
    claim = absolute(claim, others)
    value = mean(values)
    return Judged(
        **state(experiment, claim),
        measured=_finite(value),
        values_=[_finite(each) for each in values],
        verdict=verdict(claim, value, recorded=not changed),
        short=list(changed) or None,
    )


def absolute(claim: Claim, others: Sequence[float | None]) -> Claim:
    """Return a claim whose value is a factor as a claim with the value in `unit`: the factor × the
    mean of `others`, which are the values of the run that `of` names.
    """
    if claim.of is None or claim.paper_value is None:
        return claim
    other = mean(others)
    known = other is not None and math.isfinite(other)
    value = claim.paper_value * other if known and other is not None else None
    return claim.model_copy(update={"paper_value": value, "of": None})


def _shortened(experiment: Experiment, claim: Claim) -> list[str]:
    """Return the short version's changes for a measured claim: "key=value" pairs, omitted runs, and
    seeds.

    Only the runs that the claim's measure reads count; without a measure nothing does.
    """
    if claim.measure is None:
        return []
    of = MEASURES[claim.measure].of
    full = {run.name: run.set for run in experiment.runs}
    there: Sequence[ExperimentRun] = experiment.short_runs if of != "nothing" else ()
    if of == "run":
        there = [run for run in there if run.name == (claim.run or there[0].name)]
    keys = [key for run in there for key in run.set if key not in full.get(run.name, ())]
    args = [
        f"{name}={value}"
        for name, value in claim.short_args.items()
        if name not in claim.args or claim.args[name] != value
    ]
    fewer = of == "runs" and len(there) < len(full)
    cases = [f"{len(there)} of {len(full)} runs"] if fewer else []
    seeds = [f"1 of {experiment.seeds} seeds"] if there and experiment.seeds > 1 else []
    return [*dict.fromkeys(keys), *args, *cases, *seeds]


def state(experiment: Experiment, claim: Claim) -> Statement:
    """Return the properties of a claim that are known before the run."""
    record = claim.over_seeds
    keys = ("sentence", "beyond", "insensitive")
    optional = {key: getattr(claim, key) for key in keys}
    return Statement(
        id=claim.id,
        paper=experiment.paper,
        experiment=experiment.name,
        source=claim.source,
        statement=claim.statement,
        relation=claim.relation,
        paper_value=claim.paper_value,
        tolerance=claim.tolerance_in_unit,
        unit=claim.unit,
        over_seeds=None if record is None else SeedRange.read(record.model_dump()),
        expect=claim.expect,
        why=claim.why,
        **{key: text for key, text in optional.items() if text is not None},
    )


def measure(
    claim: Claim, runs: Mapping[str, Result], short: bool = False, run: str | None = None
) -> float | None:
    """Return a claim's value on one sample, in `unit`: None if not measurable, infinity if never
    reached. A measure of one run reads `run`, by default the claim's own.
    """
    if claim.measure is None or claim.unit is None:
        return None
    chosen = MEASURES[claim.measure]
    args = claim.args | (claim.short_args if short else {})
    for name, product in claim.in_force.items():
        laws = runs[claim.run or next(iter(runs))].summary.params
        factors = [key.split(".") for key in product.split(" * ")]
        args[name] = math.prod(laws[law][param] for law, param in factors)
    if chosen.of == "nothing":
        value = chosen.function(**args)
    elif chosen.of == "runs":
        value = chosen.function(runs, **args)
    else:
        value = chosen.function(runs[run or claim.run or next(iter(runs))], **args)
    return None if value is None else value / UNITS[claim.unit][1]


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean over seeds, which may be infinite, or None if a value is missing."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known and len(known) == len(values) else None


def verdict(claim: Claim, measured: float | None, recorded: bool = True) -> Verdict:
    """Return the verdict on a value in `unit`. Infinity means never reached; None means not
    measured.

    `recorded` is whether `over_seeds` applies: the record is of full-length runs, not short ones.
    """
    tolerance = claim.tolerance_in_unit
    if measured is None or claim.paper_value is None or tolerance is None:
        return "cannot be checked"
    record = claim.over_seeds if recorded else None
    around = boundaries(claim.relation, claim.paper_value, tolerance)
    if record and record.spans(around) and record.contains(measured):
        return "cannot be checked"
    holds = {
        "=": abs(measured - claim.paper_value) <= tolerance,
        "<": measured < claim.paper_value + tolerance,
        ">": measured > claim.paper_value - tolerance,
    }
    return "reproduced" if holds[claim.relation] else "differs"


def _finite(value: float | None) -> float | None:
    """Return a value, or None in place of NaN and infinity, which JSON lacks."""
    return value if value is not None and math.isfinite(value) else None
