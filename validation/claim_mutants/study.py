"""Judge the papers' claims under wrong laws, and list the claims that notice none.

Each mutant of mutants.toml is one experiment with a wrong parameter of one law. A claim notices it
if the claim is *reproduced* without the mutant and has another verdict with it. The study fails if

- less than 90 % of the mutants are noticed by a claim of their experiment, or a mutant that no
  claim notices is without an explanation in mutants.toml;
- a *reproduced* claim notices no mutant and has no `insensitive` in claims.toml, or has that key
  and notices one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from validation.claim_mutants.variants import Mutant, mutants, table
from validation.study import Option, Options, Report, Study
from validation.tables import markdown
from waterfill.papers.claims import loading
from waterfill.papers.claims.experiment import Experiment
from waterfill.papers.claims.verdict import Judged
from waterfill.papers.reproduce import reproduce
from waterfill.runs.progress import ExperimentBars

# Fraction of the mutants that a claim of their experiment must notice.
NOTICED = 0.9


@dataclass(frozen=True)
class Row:
    """One mutant, with the ids of the claims that notice it."""

    mutant: Mutant
    noticed: tuple[str, ...]

    @property
    def explained(self) -> str | None:
        """Explanation on record of why no claim notices the mutant, or None."""
        return table().experiment[self.mutant.experiment].unnoticed.get(self.mutant.name)


@dataclass(frozen=True)
class Outcome:
    """Verdicts of one experiment without a mutant, and a row for each mutant."""

    claims: Sequence[Judged]
    rows: Sequence[Row]

    @property
    def sensitive(self) -> set[str]:
        """Ids of the claims that notice at least one mutant."""
        return {claim for row in self.rows for claim in row.noticed}

    @property
    def blind(self) -> list[Judged]:
        """Reproduced claims that notice no mutant."""
        reproduced = [claim for claim in self.claims if claim.verdict == "reproduced"]
        return [claim for claim in reproduced if claim.id not in self.sensitive]


def outcome(experiment: Experiment, listed: Sequence[Mutant]) -> Outcome:
    """Run an experiment without and with each of its mutants."""
    variants = {mutant.name: mutant.applied(experiment) for mutant in listed}
    with ExperimentBars(1 + len(variants)) as live:

        def done(one: Experiment, judged: list[Judged], _: object) -> None:
            live.done(one.path, [claim.verdict for claim in judged])

        found = reproduce(
            [experiment, *variants.values()],
            None,
            planned=live.planned,
            progress=live.show,
            done=done,
        )
    if found.interrupted:
        raise KeyboardInterrupt
    base = found.claims[experiment.path]
    return Outcome(
        base,
        [
            Row(mutant, _noticed(base, found.claims[variants[mutant.name].path]))
            for mutant in listed
        ],
    )


def _noticed(base: Sequence[Judged], wrong: Sequence[Judged]) -> tuple[str, ...]:
    """Return the ids of the claims that are reproduced without a mutant and not with it."""
    return tuple(
        one.id
        for one, other in zip(base, wrong, strict=True)
        if one.verdict == "reproduced" != other.verdict
    )


def rows_table(found: Mapping[str, Outcome]) -> str:
    """Return the table experiment × mutant × claims that noticed it."""
    lines = []
    for path, one in found.items():
        for row in one.rows:
            names = ", ".join(f"`{claim}`" for claim in row.noticed[:4])
            more = f" and {len(row.noticed) - 4} more" if len(row.noticed) > 4 else ""
            lines.append([path, row.mutant.name, names + more or f"none: {row.explained or '?'}"])
    return markdown("experiment|mutant|claims that notice it", lines)


def blind_table(found: Mapping[str, Outcome]) -> str:
    """Return the table of reproduced claims that notice no mutant, with the reason on record."""
    why = {
        f"{experiment.path}/{claim.id}": claim.insensitive
        for experiment in loading.experiments()
        for claim in experiment.claims
    }
    lines = [
        [claim.path, claim.statement, why[claim.path] or "?"]
        for one in found.values()
        for claim in one.blind
    ]
    return markdown("claim|statement|why it notices none", lines)


def counts(found: Mapping[str, Outcome]) -> dict[str, int]:
    """Return the numbers of mutants and of reproduced claims, all and those with a notice."""
    rows = [row for one in found.values() for row in one.rows]
    reproduced = sum(c.verdict == "reproduced" for one in found.values() for c in one.claims)
    return {
        "mutants": len(rows),
        "noticed": sum(bool(row.noticed) for row in rows),
        "reproduced": reproduced,
        "sensitive": reproduced - sum(len(one.blind) for one in found.values()),
    }


def complaints(found: Mapping[str, Outcome]) -> list[str]:
    """Return what is wrong: too few mutants noticed, a reason missing, or a wrong record."""
    known = {experiment.path: experiment for experiment in loading.experiments()}
    wrong = []
    number = counts(found)
    if number["noticed"] < math.ceil(NOTICED * number["mutants"]):
        wrong.append(f"{number['noticed']} of {number['mutants']} mutants are noticed")
    for path, one in found.items():
        for row in one.rows:
            if not row.noticed and row.explained is None:
                wrong.append(f"{path}: no claim notices {row.mutant.name}, no explanation")
            if row.noticed and row.explained is not None:
                wrong.append(f"{path}: {row.noticed[0]} notices {row.mutant.name}, on record none")
        blind = {claim.id for claim in one.blind}
        for claim in known[path].claims:
            if claim.id in blind and claim.insensitive is None:
                wrong.append(f"{path}/{claim.id} notices no mutant")
            if claim.id in one.sensitive and claim.insensitive is not None:
                wrong.append(f"{path}/{claim.id} notices a mutant, on record none")
    return wrong


def work(options: Options) -> Report:
    """Judge the chosen experiments under all their mutants."""
    known = loading.experiments()
    chosen = loading.select(options.names, known) if options.names else known
    found = {one.path: outcome(one, mutants(one.path)) for one in chosen}
    number = counts(found)
    text = "\n\n".join(
        [
            f"{number['noticed']} of {number['mutants']} mutants are noticed by a claim of their "
            f"experiment; {number['sensitive']} of {number['reproduced']} reproduced claims notice "
            "a mutant.",
            rows_table(found),
            blind_table(found),
        ]
    )
    document = {
        "counts": number,
        "experiments": {
            path: {
                "mutants": {row.mutant.name: list(row.noticed) for row in one.rows},
                "blind": [claim.id for claim in one.blind],
            }
            for path, one in found.items()
        },
    }
    return Report(text, document, complaints(found))


STUDY: Study[None, None] = Study(
    shows="the papers' claims notice wrong laws",
    minutes=60,
    options=(Option("names", (), "PAPER or PAPER/EXPERIMENT; default: all"),),
    quick={"names": ("tcp-maxnet-2006/one-flow",)},
    work=work,
)
