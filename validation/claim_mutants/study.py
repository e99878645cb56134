"""Judge the papers' claims under wrong laws, and list the claims that notice none.

Each mutant of mutants.toml is one experiment with a wrong parameter or a fault of one law. A claim
notices it if the claim is *reproduced* without the mutant and has another verdict with it. Faults
need a build of patched laws, which the study makes. The study fails if

- a mutant that no claim of its experiment notices is not in unnoticed.toml, or one there is
  noticed;
- a *reproduced* claim notices no mutant and has no `insensitive` in claims.toml, or has that key
  and notices one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from validation.claim_mutants import patched
from validation.claim_mutants.variants import Mutant, equivalent, mutants, table, unnoticed
from validation.study import Option, Options, Report, Study
from validation.tables import markdown
from waterfill.papers.claims import loading
from waterfill.papers.claims.experiment import Experiment
from waterfill.papers.claims.schema import Verdict
from waterfill.papers.claims.verdict import Judged
from waterfill.papers.reproduce import reproduce
from waterfill.runs.progress import ExperimentBars

# Verdicts by the claims' ids.
Verdicts: TypeAlias = Mapping[str, Verdict]
# Claims that the table names for each mutant.
_NAMED = 4


@dataclass(frozen=True)
class Row:
    """One mutant, with the ids of the claims that notice it."""

    mutant: Mutant
    noticed: tuple[str, ...]

    @property
    def explained(self) -> str | None:
        """Explanation on record of why no claim notices the mutant, or None."""
        return unnoticed().get(self.mutant.experiment, {}).get(self.mutant.name)

    @property
    def equivalent(self) -> bool:
        """True if the mutant changes no quantity of the experiment's claims, by the record."""
        return self.mutant.name in equivalent(self.mutant.experiment)


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
    path, how = experiment.path, table().experiment[experiment.path]
    short = how.short is not None
    variants = {
        mutant.name: mutant.applied(experiment, short=short)
        for mutant in listed
        if mutant.change.patch is None
    }
    with ExperimentBars(1 + len(listed)) as live:

        def done(one: Experiment, judged: list[Judged], _: object) -> None:
            live.done(one.path, [claim.verdict for claim in judged])

        found = reproduce(
            [experiment, *variants.values()],
            None,
            short=short,
            planned=live.planned,
            progress=live.show,
            done=done,
        )
        if found.interrupted:
            raise KeyboardInterrupt
        base = found.claims[path]
        right = _by_id(base)
        rows = []
        for mutant in listed:
            if mutant.change.patch is None:
                alike, wrong = right, _by_id(found.claims[variants[mutant.name].path])
            else:
                alike, wrong = _with_fault(experiment, mutant, right)
                live.done(f"{path} [{mutant.name}]", list(wrong.values()))
            rows.append(Row(mutant, _noticed(alike, wrong)))
    return Outcome(base, rows)


def _with_fault(
    experiment: Experiment, mutant: Mutant, right: Verdicts
) -> tuple[Verdicts, Verdicts]:
    """Return the verdicts without and with a fault of the patch, by claim.

    `right` are those of the version that the study takes. Those of a shorter one leave out claims
    that it judges otherwise.
    """
    path, how, fault = experiment.path, table().experiment[experiment.path], mutant.change.patch
    assert fault is not None
    if how.short_first is not None:
        brief = _by_id(reproduce([experiment], None, short=True).claims[path])
        alike = {name: one for name, one in brief.items() if one == right[name]}
        wrong = patched.verdicts(path, mutant.law, fault, short=True)
        if _noticed(alike, wrong):
            return alike, wrong
    return right, patched.verdicts(path, mutant.law, fault, short=how.short is not None)


def _by_id(claims: Sequence[Judged]) -> Verdicts:
    """Return the claims' verdicts by id."""
    return {claim.id: claim.verdict for claim in claims}


def _noticed(right: Verdicts, wrong: Verdicts) -> tuple[str, ...]:
    """Return the ids of the claims that are reproduced without a mutant and not with it."""
    return tuple(name for name, one in right.items() if one == "reproduced" != wrong[name])


def rows_table(found: Mapping[str, Outcome]) -> str:
    """Return the table experiment × mutant × claims that notice it."""
    lines = []
    for path, one in found.items():
        for row in one.rows:
            names = ", ".join(f"`{claim}`" for claim in row.noticed[:_NAMED])
            more = len(row.noticed) - _NAMED
            names += f" and {more} more" if more > 0 else ""
            kind = "equivalent" if row.equivalent else "none"
            lines.append([path, row.mutant.name, names or f"{kind}: {row.explained or '?'}"])
    return markdown("experiment|mutant|claims that notice it", lines)


def counts_table(found: Mapping[str, Outcome]) -> str:
    """Return the table of mutants and of reproduced claims by experiment."""
    each = {path: counts([one]) for path, one in found.items()}
    each["all"] = counts(found.values())
    keys = ("mutants", "noticed", "equivalent", "reproduced", "sensitive")
    lines = [[path, *(str(number[key]) for key in keys)] for path, number in each.items()]
    return markdown(
        "experiment|mutants:|noticed:|equivalent:|claims reproduced:|that notice one:", lines
    )


def counts(found: Iterable[Outcome]) -> dict[str, int]:
    """Return the numbers of mutants and of reproduced claims, all and those with a notice."""
    each = list(found)
    rows = [row for one in each for row in one.rows]
    reproduced = sum(claim.verdict == "reproduced" for one in each for claim in one.claims)
    return {
        "mutants": len(rows),
        "noticed": sum(bool(row.noticed) for row in rows),
        "equivalent": sum(row.equivalent for row in rows),
        "reproduced": reproduced,
        "sensitive": reproduced - sum(len(one.blind) for one in each),
    }


def complaints(found: Mapping[str, Outcome]) -> list[str]:
    """Return each mutant and each claim whose record is not what the runs show."""
    known = {experiment.path: experiment for experiment in loading.experiments()}
    wrong = []
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


def select(names: Sequence[str]) -> list[Experiment]:
    """Return the experiments that `names` select, or all."""
    known = loading.experiments()
    return loading.select(names, known) if names else known


def work(options: Options) -> Report:
    """Judge the chosen experiments under all their mutants."""
    found = {one.path: outcome(one, mutants(one.path)) for one in select(options.names)}
    text = f"{counts_table(found)}\n\n{rows_table(found)}"
    document = {
        "counts": counts(found.values()),
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
    minutes=80,
    options=(Option("names", (), "PAPER or PAPER/EXPERIMENT; default: all"),),
    quick={"names": ("tcp-maxnet-2006/one-flow",)},
    work=work,
)
