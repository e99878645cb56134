"""One experiment of a paper: its runs, its claims judged, what is written of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waterfill.analysis import plots
from waterfill.errors import InputError, shown
from waterfill.papers.claims import chance
from waterfill.papers.claims.schema import Claim, Figure, Run
from waterfill.papers.claims.verdict import document, finite, measured, verdict
from waterfill.papers.figures import PLOTS
from waterfill.runs.result import Document, Result, make_directory, to_json, write_text
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import load as load_scenario


@dataclass(frozen=True)
class Experiment:
    """One experiment of a paper: its folder and what it claims."""

    paper: str
    name: str
    folder: Path
    title: str
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]
    runs: tuple[Run, ...]
    short_runs: tuple[Run, ...]
    seeds: int = 1

    @property
    def path(self) -> str:
        """PAPER/EXPERIMENT, as the command line names it."""
        return f"{self.paper}/{self.name}"

    def scenarios(self, short: bool = False, sets: Iterable[str] = ()) -> dict[str, Scenario]:
        """The scenarios of its runs by their names, `sets` after their own overrides.

        Raises InputError when one of them is wrong.
        """
        chosen = self.short_runs if short else self.runs
        return {
            run.name: load_scenario(self.folder / run.scenario, [*run.set, *sets]) for run in chosen
        }

    def samples(self, short: bool = False, seed: int | None = None) -> list[dict[str, Scenario]]:
        """Its scenarios once for each of its `seeds`; short versions have one.

        `seed` replaces every scenario's own. Raises InputError when one of them is wrong.
        """
        base = self.scenarios(short, [] if seed is None else [f"seed={seed}"])
        if short or self.seeds == 1:
            return [base]
        each = {name: chance.seeds(scenario.seed, self.seeds) for name, scenario in base.items()}
        return [
            {
                name: scenario.model_copy(update={"seed": each[name][place]})
                for name, scenario in base.items()
            }
            for place in range(self.seeds)
        ]

    def evaluate(self, *samples: Mapping[str, Result], short: bool = False) -> list[Document]:
        """One document a claim, in the file's order: the entries of `reproduce --json`.

        Each sample is all runs by their names, one sample a seed. Raises InputError when a claim
        names a flow or link that its run does not have.
        """
        wanted = [claim for claim in self.claims if claim.short or not short]
        return [self._document(claim, samples, short) for claim in wanted]

    def _document(
        self, claim: Claim, samples: Sequence[Mapping[str, Result]], short: bool
    ) -> Document:
        try:
            values = [measured(claim, runs, short) for runs in samples]
        except KeyError as error:
            file, key = str(self.folder / "claims.toml"), f"claim.{claim.id}.args"
            message = f"expected a name of its run, got {shown(error.args[0])}"
            raise InputError(file, key, message) from None
        value = chance.mean(values)
        return self.statement(claim) | {
            "measured": finite(value),
            "values": [finite(each) for each in values],
            "verdict": verdict(claim, value, recorded=not short),
        }

    def statement(self, claim: Claim) -> Document:
        """What is known of a claim before the run."""
        return {
            "id": claim.id,
            "paper": self.paper,
            "experiment": self.name,
            "source": claim.source,
            "statement": claim.statement,
            "relation": claim.relation,
            "paper_value": claim.paper_value,
            "tolerance": claim.tolerance_in_unit,
            "unit": claim.unit,
            "over_seeds": claim.over_seeds.model_dump() if claim.over_seeds else None,
            "expect": claim.expect,
            "why": claim.why,
        }

    def write(
        self, samples: Sequence[Mapping[str, Result]], claims: Sequence[Document], folder: Path
    ) -> list[Path]:
        """Writes the runs, claims.json and the figures; returns the figures' paths.

        One run is written into `folder` itself, several into folders of their names, with the
        seed after the first sample. Figures show the first sample.
        """
        runs = samples[0]
        for place, sample in enumerate(samples):
            for name, result in sample.items():
                label = f"{name} seed {result.summary['seed']}" if place else name
                alone = len(runs) == len(samples) == 1
                result.write(folder if alone else folder / label.replace("/", "-"))
        write_text(make_directory(folder) / "claims.json", to_json(document(claims)) + "\n")
        figures = []
        for figure in self.figures:
            figures += plots.save(self._draw(figure, runs), folder / figure.name)
        return figures

    def _draw(self, figure: Figure, runs: Mapping[str, Result]) -> Any:
        plot = PLOTS[figure.plot]
        if plot.of == "runs":
            return plot.function(runs, **figure.args)
        if plot.of == "nothing":
            return plot.function(**figure.args)
        return plot.function(runs[figure.run or next(iter(runs))], **figure.args)


def claim_list(chosen: Iterable[Experiment]) -> Document:
    """The document of `reproduce --list --json`: the claims, nothing measured."""
    return {"claims": [e.statement(claim) for e in chosen for claim in e.claims]}
