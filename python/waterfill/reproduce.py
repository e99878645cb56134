"""Running papers' experiments: all runs of all experiments side by side, each one once.

Runs are independent, so the longest are begun first and the cores are kept busy until the end.
A run that is in the cache is not run again; one that was under way at a kill is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from waterfill import cache
from waterfill.claims import Experiment
from waterfill.compare import run_each
from waterfill.progress import Tick
from waterfill.results import Document, Result
from waterfill.scenario import Scenario


@dataclass
class Reproduction:
    """What became of the experiments: their claims as judged, and their figures."""

    claims: dict[str, list[Document]] = field(default_factory=dict)
    figures: dict[str, list[Path]] = field(default_factory=dict)
    interrupted: bool = False


def title(experiment: Experiment, run: str) -> str:
    """How a run is called in progress and messages."""
    return experiment.path if len(experiment.runs) == 1 else f"{experiment.path} {run}"


def reproduce(
    chosen: Sequence[Experiment],
    folder_of: Callable[[Experiment], Path] | None,
    *,
    short: bool = False,
    seed: int | None = None,
    cached: bool = True,
    planned: Callable[[Mapping[str, str], int], None] | None = None,
    progress: Callable[[str, Tick], None] | None = None,
    done: Callable[[Experiment, list[Document], list[Path]], None] | None = None,
) -> Reproduction:
    """Runs the experiments, judges their claims and writes data and figures (no folders: neither).

    `planned` is told the runs to come as {title: experiment}, and how many are there already;
    `progress` hears of each as (title, tick), from threads. `done` is called for each experiment
    once all its runs are there, in the order in which they finish. `seed` replaces every
    scenario's own. Ctrl-C leaves the experiments that are done.
    """
    sets = [] if seed is None else [f"seed={seed}"]
    wanted = {
        (experiment.path, name): scenario
        for experiment in chosen
        for name, scenario in experiment.scenarios(short, sets).items()
    }
    results: dict[tuple[str, str], Result] = {}
    for key, scenario in wanted.items():
        kept = cache.lookup(scenario, "sim") if cached else None
        if kept is not None:
            results[key] = kept
    found = Reproduction()

    def finish(experiments: Iterable[Experiment]) -> None:
        for experiment in experiments:
            if experiment.path in found.claims:
                continue
            names = [run.name for run in (experiment.short_runs if short else experiment.runs)]
            if all((experiment.path, name) in results for name in names):
                runs = {name: results.pop((experiment.path, name)) for name in names}
                judged = experiment.evaluate(runs, short)
                figures: list[Path] = []
                if folder_of is not None:
                    figures = experiment.write(runs, judged, folder_of(experiment))
                found.claims[experiment.path] = judged
                found.figures[experiment.path] = figures
                if done is not None:
                    done(experiment, judged, figures)

    titles = {title(e, name): (e.path, name) for e in chosen for name in e.scenarios(short, sets)}
    missing = {label: wanted[key] for label, key in titles.items() if key not in results}
    if planned is not None:
        planned({label: titles[label][0] for label in missing}, len(results))
    finish(chosen)
    by_path = {experiment.path: experiment for experiment in chosen}

    def keep(label: str, result: Result) -> None:
        if "interrupted_at_s" in result.summary:
            return
        if cached:
            cache.store(missing[label], "sim", result)
        results[titles[label]] = result
        finish([by_path[titles[label][0]]])

    run_each(_longest_first(missing), progress=progress, done=keep)
    found.interrupted = len(found.claims) < len(chosen)
    return found


def _longest_first(scenarios: Mapping[str, Scenario]) -> dict[str, Scenario]:
    """Largest amount of work first: seconds × bits a second of the links."""

    def work(scenario: Scenario) -> float:
        return scenario.duration * sum(link.rate for link in scenario.link)

    return dict(sorted(scenarios.items(), key=lambda item: work(item[1]), reverse=True))
