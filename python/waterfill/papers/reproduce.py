"""Running papers' experiments: all runs of all experiments side by side, each one once.

Runs are independent, so the longest are begun first and the cores are kept busy until the end.
A run that is in the cache is not run again; one that was under way at a kill is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from waterfill.papers.claims.experiment import Experiment
from waterfill.runs import cache
from waterfill.runs.pool import run_each
from waterfill.runs.progress import Tick
from waterfill.runs.result import Document, Result
from waterfill.scenario.document import Scenario

# Experiment, place of the seed among the experiment's own, run.
_Key: TypeAlias = tuple[str, int, str]


@dataclass
class Reproduction:
    """What became of the experiments: their claims as judged, and their figures."""

    claims: dict[str, list[Document]] = field(default_factory=dict)
    figures: dict[str, list[Path]] = field(default_factory=dict)
    interrupted: bool = False


def title(experiment: Experiment, run: str, seed: int | None = None) -> str:
    """How a run is called in progress and messages; with its seed where there are several."""
    name = experiment.path if len(experiment.runs) == 1 else f"{experiment.path} {run}"
    return name if seed is None else f"{name} seed {seed}"


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
    scenario's own; an experiment of several seeds makes them from it. Ctrl-C leaves the
    experiments that are done.
    """
    samples = {experiment.path: experiment.samples(short, seed) for experiment in chosen}
    wanted = {
        (path, place, name): scenario
        for path, listed in samples.items()
        for place, sample in enumerate(listed)
        for name, scenario in sample.items()
    }
    results: dict[_Key, Result] = {}
    for key, scenario in wanted.items():
        kept = cache.lookup(scenario, "sim") if cached else None
        if kept is not None:
            results[key] = kept
    found = Reproduction()

    def finish(experiments: Iterable[Experiment]) -> None:
        for experiment in experiments:
            if experiment.path in found.claims:
                continue
            own = [key for key in wanted if key[0] == experiment.path]
            if all(key in results for key in own):
                runs: list[dict[str, Result]] = [{} for _ in samples[experiment.path]]
                for key in own:
                    runs[key[1]][key[2]] = results.pop(key)
                judged = experiment.evaluate(*runs, short=short)
                figures: list[Path] = []
                if folder_of is not None:
                    figures = experiment.write(runs, judged, folder_of(experiment))
                found.claims[experiment.path] = judged
                found.figures[experiment.path] = figures
                if done is not None:
                    done(experiment, judged, figures)

    by_path = {experiment.path: experiment for experiment in chosen}
    titles = {
        title(by_path[key[0]], key[2], scenario.seed if len(samples[key[0]]) > 1 else None): key
        for key, scenario in wanted.items()
    }
    missing = {label: wanted[key] for label, key in titles.items() if key not in results}
    if planned is not None:
        planned({label: titles[label][0] for label in missing}, len(results))
    finish(chosen)

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
