"""Repeat the papers' experiments with other seeds, and compare the verdicts.

Every experiment runs once per seed, from seed 1 on. An experiment that takes means over several
seeds (`seeds` in its claims.toml) runs that many times per seed. A claim with the same value for
all seeds is not random. For the others the table shows

- spread / tolerance: the largest value less the smallest, over the tolerance;
- margin / spread: the smallest distance of a value from a tolerance boundary, over the spread.
  Below 1, another seed may well change the verdict;
- single runs: their range, for a claim whose values are means.

The study fails if a verdict depends on the seed, if single runs fall on both sides of a tolerance
boundary and the claim has no `over_seeds`, or if that record is wrong.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from validation.study import Option, Options, Report, Study
from validation.tables import markdown
from waterfill.papers.claims import loading
from waterfill.papers.claims.experiment import Experiment
from waterfill.papers.claims.schema import OverSeeds
from waterfill.papers.claims.verdict import Judged, Statement
from waterfill.papers.reproduce import Reproduction, reproduce
from waterfill.runs.progress import ExperimentBars

SEEDS = 5

# The extremes of another sample are random: they may differ by this fraction of the recorded range.
_RANGE_TOLERANCE = 0.5

_UNRECORDED = "on both sides of a tolerance boundary, and no over_seeds on record says so"

_HEAD = (
    "claim|paper|tolerance|minimum|maximum|spread / tolerance|margin / spread|single runs|verdict"
)


@dataclass(frozen=True)
class SeedRow:
    """Results of one claim over all seeds. A measured value is None if it could not be measured.

    `singles` are the values of all runs, if the measured values are means.
    """

    claim: Statement
    measured: tuple[float | None, ...]
    verdicts: tuple[str, ...]
    singles: tuple[float | None, ...] = ()

    @property
    def same(self) -> bool:
        """True if the verdict is the same for all seeds."""
        return len(set(self.verdicts)) == 1

    @property
    def random(self) -> bool:
        """True if the measured value depends on the seed."""
        return len(set(self.measured)) > 1

    @property
    def spread(self) -> float | None:
        """Difference between the largest and smallest value, in the claim's unit, or None if a
        value is missing.
        """
        values = [value for value in self.measured if value is not None]
        return max(values) - min(values) if len(values) == len(self.measured) else None

    @property
    def spread_over_tolerance(self) -> float | None:
        """Ratio of the spread to the claim's tolerance, or None if either is missing."""
        if self.spread is None or not self.claim.tolerance:
            return None
        return self.spread / float(self.claim.tolerance)

    @property
    def margin(self) -> float | None:
        """Smallest distance of a value from a tolerance boundary, as a multiple of the spread.

        None if verdicts change, if nothing is random, or if there is no boundary.
        """
        boundaries = self.claim.boundaries
        if not self.same or not self.spread or not boundaries:
            return None
        values = [measured for measured in self.measured if measured is not None]
        smallest = min(abs(value - boundary) for value in values for boundary in boundaries)
        return float(smallest) / self.spread

    @property
    def single_runs(self) -> OverSeeds | None:
        """Range of the values of single runs, or None if the claim has no range."""
        values = [value for value in self.singles if value is not None]
        if len(self.singles) == len(self.measured) or len(values) < max(2, len(self.singles)):
            return None
        return OverSeeds(runs=len(values), least=min(values), most=max(values))

    @property
    def complaint(self) -> str | None:
        """Description of a problem with the verdicts or the recorded range, or None."""
        if not self.same:
            return _tally(self.verdicts)
        found, record = self.single_runs, self.claim.over_seeds
        if found is None:
            return None
        span = f"single runs are from {found.least:.4g} to {found.most:.4g}"
        if record is None:
            return f"{span}, {_UNRECORDED}" if found.spans(self.claim.boundaries) else None
        tolerance = _RANGE_TOLERANCE * (record.most - record.least)
        off = [found.least - record.least, found.most - record.most]
        # Fewer runs than the record's need not reach as far.
        off = off if found.runs >= record.runs else [min(off[0], 0.0), max(off[1], 0.0)]
        if max(map(abs, off)) <= tolerance:
            return None
        return f"{span}, on record is {record.least:.4g} to {record.most:.4g}"


def rows(judged: Sequence[Mapping[str, Sequence[Judged]]]) -> list[SeedRow]:
    """Return one row per claim, from each seed's results {experiment: judged claims}."""
    return [
        SeedRow(
            claim,
            tuple(seed[path][number].measured for seed in judged),
            tuple(seed[path][number].verdict for seed in judged),
            tuple(value for seed in judged for value in seed[path][number].values_),
        )
        for path, listed in judged[0].items()
        for number, claim in enumerate(listed)
    ]


def table(found: Iterable[SeedRow]) -> str:
    """Return a Markdown table of the claims that depend on the seed: first those with a complaint,
    then by increasing margin.
    """

    def order(row: SeedRow) -> tuple[bool, float]:
        return row.complaint is None, math.inf if row.margin is None else row.margin

    lines = []
    for row in sorted((row for row in found if row.random), key=order):
        claim = row.claim
        values = [value for value in row.measured if value is not None]
        sign = "" if claim.relation == "=" else f"{claim.relation} "
        unit = "" if claim.unit in (None, "ratio") else f" {claim.unit}"
        paper = "–" if claim.paper_value is None else f"{sign}{claim.paper_value:.4g}{unit}"
        verdict = row.verdicts[0] if row.same else f"**{_tally(row.verdicts)}**"
        never = " (or never)" if row.spread is None and values else ""
        single = row.single_runs
        lines.append(
            [claim.path, paper, _number(claim.tolerance), _number(min(values, default=None)),
             _number(max(values, default=None)) + never, _number(row.spread_over_tolerance),
             _number(row.margin),
             "–" if single is None else f"{single.least:.4g} to {single.most:.4g}", verdict]
        )  # fmt: skip
    return markdown(_HEAD, lines)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _tally(verdicts: Sequence[str]) -> str:
    return ", ".join(f"{verdicts.count(one)} {one}" for one in dict.fromkeys(verdicts))


def summary(found: Sequence[SeedRow], seeds: Sequence[int]) -> str:
    """Return a sentence that counts the claims and those whose value or verdict depends on the
    seed.
    """
    random = sum(row.random for row in found)
    changed = sum(not row.same for row in found)
    return (
        f"{len(found)} claims, seeds {seeds[0]} to {seeds[-1]}: {random} of them have a value "
        f"that depends on the seed, {changed} a verdict that does"
    )


def complaints(found: Sequence[SeedRow]) -> list[str]:
    """Return all complaints, each with the path of its claim."""
    return [f"{row.claim.path}: {row.complaint}" for row in found if row.complaint is not None]


def judge(
    chosen: Sequence[Experiment], seeds: Sequence[int], short: bool = False
) -> list[dict[str, list[Judged]]]:
    """Run the experiments with each seed, and return {experiment: judged claims} for each seed."""
    found = []
    for seed in seeds:
        print(f"seed {seed}", file=sys.stderr, flush=True)
        one = _judge_one(chosen, seed, short)
        if one.interrupted:
            raise KeyboardInterrupt
        found.append({experiment.path: one.claims[experiment.path] for experiment in chosen})
    return found


def _judge_one(chosen: Sequence[Experiment], seed: int, short: bool) -> Reproduction:
    with ExperimentBars(len(chosen)) as live:

        def done(experiment: Experiment, judged: list[Judged], _: list[Path]) -> None:
            live.done(experiment.path, [claim.verdict for claim in judged])

        return reproduce(
            chosen,
            None,
            short=short,
            seed=seed,
            planned=live.planned,
            progress=live.show,
            done=done,
        )


def work(options: Options) -> Report:
    """Judge the chosen experiments with every seed."""
    known = loading.experiments()
    chosen = loading.select(options.names, known) if options.names else known
    seeds = range(1, options.seeds + 1)
    found = rows(judge(chosen, seeds, options.short))
    text = f"{table(found)}\n\n{summary(found, seeds)}"
    return Report(text, {"seeds": [*seeds], "claims": found}, complaints(found))


STUDY: Study[None, None] = Study(
    shows="the papers' verdicts do not depend on the seed",
    minutes=75,
    options=(
        Option("names", (), "PAPER or PAPER/EXPERIMENT; default: all"),
        Option("--seeds", SEEDS, "use seeds 1 to this one", low=2),
        Option("--short", False, "shorter runs of fewer points"),
    ),
    quick={"seeds": 2, "short": True},
    work=work,
)
