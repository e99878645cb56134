"""Mutants of an experiment: its runs with one wrong parameter, or one fault, of one law."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from waterfill.contract.network import ParamValue
from waterfill.errors import InputError
from waterfill.papers.claims.experiment import Experiment
from waterfill.papers.claims.schema import ExperimentRun
from waterfill.runs import backends
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import read_toml

TABLE = Path(__file__).with_name("mutants.toml")
# The law's name in the table for parameters of the queue that protects explicit flows.
QUEUE = "cohabit"


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Change(_Table):
    """A wrong law: factors of parameters in force, new values, and flags to invert.

    Or a fault that wrong-law.patch adds to the law's code, as `patched.verdicts` takes it.
    """

    scale: dict[str, float] = {}
    set: dict[str, bool | int | float | str] = {}
    flip: list[str] = []
    patch: str | None = None


class Own(Change):
    """A mutant of a single experiment, with the law that it changes."""

    law: str


class Exercised(_Table):
    """Laws that an experiment exercises.

    `not` has mutants that cannot matter there, and `own` further ones. `short` says why the study
    takes the experiment's short version. `short_first` says why it takes that first for faults of
    the patch, and the full version only if no claim of the short one notices.
    """

    laws: list[str]
    irrelevant: dict[str, str] = Field(default={}, alias="not")
    own: dict[str, Own] = {}
    short: str | None = None
    short_first: str | None = None


class MutantTable(_Table):
    """The content of mutants.toml."""

    law: dict[str, dict[str, Change]]
    experiment: dict[str, Exercised]


@dataclass(frozen=True)
class Mutant:
    """One wrong law of one experiment. `name` begins with the law's name."""

    experiment: str
    name: str
    law: str
    change: Change

    def applied(self, experiment: Experiment, *, short: bool = False) -> Experiment:
        """Return the experiment with the mutant in each run that uses the law.

        With a fault of the patch its runs stay as they are. Raises InputError if no run changes, or
        none uses the law.
        """
        scenarios = experiment.scenarios(short)
        before = experiment.short_runs if short else experiment.runs
        runs = tuple(
            run.model_copy(update={"set": [*run.set, *self._sets(run, scenarios[run.name])]})
            for run in before
        )
        patched = self.change.patch is not None
        used = patched and any(uses(self.law, scenario) for scenario in scenarios.values())
        if runs == before and not used:
            raise InputError(str(TABLE), self.experiment, f"{self.name} changes no run")
        changed = replace(experiment, name=f"{experiment.name} [{self.name}]")
        return replace(changed, short_runs=runs) if short else replace(changed, runs=runs)

    def _sets(self, run: ExperimentRun, scenario: Scenario) -> Iterator[str]:
        """Overrides of one run, as in `waterfill run --set`."""
        if not uses(self.law, scenario):
            return
        if self.law == QUEUE:
            for link in scenario.link:
                if link.queue == QUEUE:
                    key = f"link.{link.name}.queue_params"
                    yield from (f"{key}.{name}={_toml(v)}" for name, v in self.change.set.items())
            return
        known = backends.known(run.on)[self.law]
        in_force = scenario.params.get(self.law, {})

        def value(name: str) -> ParamValue | None:
            info = known.param(name)
            return info.parse(in_force[name]) if name in in_force else info.default

        for name, factor in self.change.scale.items():
            old = value(name)
            assert isinstance(old, (int, float)), name
            yield f"params.{self.law}.{name}={_written(known.param(name).unit, old * factor)}"
        for name, new in self.change.set.items():
            yield f"params.{self.law}.{name}={_toml(new)}"
        for name in self.change.flip:
            yield f"params.{self.law}.{name}={_toml(not value(name))}"


def uses(law: str, scenario: Scenario) -> bool:
    """Return True if a scenario uses a law, or for `QUEUE` that queue."""
    if law == QUEUE:
        return any(link.queue == QUEUE for link in scenario.link)
    return law in scenario.protocols()


def _written(unit: str, number: float) -> str:
    """Return a number in its SI unit as a scenario has it."""
    if unit == "count":
        return str(round(number))
    return f"{number!r}" + {"time": " s", "rate": " bit/s", "volume": " B"}.get(unit, "")


def _toml(value: ParamValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def table() -> MutantTable:
    """Return the checked content of mutants.toml."""
    return MutantTable.model_validate(read_toml(TABLE.read_text(encoding="utf-8")))


@cache
def _unnoticed() -> dict[str, dict[str, dict[str, str]]]:
    found: dict[str, dict[str, dict[str, str]]] = read_toml(
        TABLE.with_name("unnoticed.toml").read_text(encoding="utf-8")
    )
    return found


def unnoticed() -> dict[str, dict[str, str]]:
    """Return {experiment: {mutant: why no claim notices it}}, the record in unnoticed.toml."""
    return {path: {**one.get("none", {}), **equivalent(path)} for path, one in _unnoticed().items()}


def equivalent(path: str) -> dict[str, str]:
    """Return {mutant: why} of an experiment's mutants that change no quantity of its claims."""
    return _unnoticed().get(path, {}).get("equivalent", {})


def mutants(path: str) -> list[Mutant]:
    """Return the relevant mutants of an experiment, in the order of the table."""
    exercised = table().experiment[path]
    listed = [
        Mutant(path, f"{law} {name}", law, change)
        for law in exercised.laws
        for name, change in table().law[law].items()
    ]
    own = [Mutant(path, name, one.law, one) for name, one in exercised.own.items()]
    return [one for one in listed if reason(one, exercised.irrelevant) is None] + own


def reason(mutant: Mutant, irrelevant: Mapping[str, str]) -> str | None:
    """Return why a mutant cannot matter to its experiment, or None if it can."""
    for pattern, why in irrelevant.items():
        if fnmatch.fnmatchcase(mutant.name, pattern):
            return why
    return None
