"""One experiment of a paper: its claims, and the scenarios of its runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from waterfill.papers.claims.schema import Claim, ExperimentRun, Figure
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import load as load_scenario


@dataclass(frozen=True)
class Experiment:
    """One experiment of a paper, as its claims.toml describes it."""

    paper: str
    name: str
    folder: Path
    title: str
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]
    runs: tuple[ExperimentRun, ...]
    short_runs: tuple[ExperimentRun, ...]
    seeds: int = 1

    @property
    def path(self) -> str:
        """Path PAPER/EXPERIMENT of the experiment, as on the command line."""
        return f"{self.paper}/{self.name}"

    def scenarios(self, short: bool = False, sets: Iterable[str] = ()) -> dict[str, Scenario]:
        """Load the scenarios of the experiment's runs by name, with `sets` as further overrides.

        Raises InputError if one of them is wrong.
        """
        chosen = self.short_runs if short else self.runs
        return {
            run.name: load_scenario(self.folder / run.scenario, [*run.set, *sets]) for run in chosen
        }

    def backend(self, run: str) -> str:
        """Return the backend of a run."""
        return {each.name: each.on for each in (*self.short_runs, *self.runs)}[run]

    def samples(self, short: bool = False, seed: int | None = None) -> list[dict[str, Scenario]]:
        """Load the scenarios of the experiment's runs once per seed, or once for a short version.

        `seed` replaces every scenario's own. Raises InputError if a scenario is wrong.
        """
        base = self.scenarios(short, [] if seed is None else [f"seed={seed}"])
        if short or self.seeds == 1:
            return [base]
        each = {name: seeds(scenario.seed, self.seeds) for name, scenario in base.items()}
        return [
            {
                name: scenario.model_copy(update={"seed": each[name][place]})
                for name, scenario in base.items()
            }
            for place in range(self.seeds)
        ]


def seeds(seed: int, count: int) -> list[int]:
    """Return the seeds of an experiment's runs: 1 to n for seed 1, n + 1 to 2n for seed 2, and so
    on.

    So two seeds have no run in common. Those of seed 0 are at the end of the range.
    """
    return [((seed - 1) * count + 1 + place) % 2**63 for place in range(count)]
