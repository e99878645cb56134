"""Concurrent execution of papers' experiments, in which equal scenarios run only once.

Runs are independent, so the longest start first and all CPUs are busy until the end. Runs in the
cache are not repeated. An experiment is judged and written as soon as its last run ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from waterfill.analysis.looks import SCREEN, Look
from waterfill.papers import output
from waterfill.papers.claims.experiment import Experiment
from waterfill.papers.claims.verdict import Judged, judge
from waterfill.runs import cache, interrupt
from waterfill.runs.files import WriteError
from waterfill.runs.pool import run_each
from waterfill.runs.progress import Tick
from waterfill.runs.result import Result
from waterfill.scenario.document import Scenario

# Experiment, place of the seed among the experiment's own, run.
_Key: TypeAlias = tuple[str, int, str]


@dataclass
class Reproduction:
    """Finished experiments by path, with their judged claims and the paths of their figures.

    `unwritten` says why files of some of them could not be written.
    """

    claims: dict[str, list[Judged]] = field(default_factory=dict)
    figures: dict[str, list[Path]] = field(default_factory=dict)
    unwritten: list[WriteError] = field(default_factory=list)
    interrupted: bool = False


def title(experiment: Experiment, run: str, seed: int | None = None) -> str:
    """Return the name of a run for progress and messages, with its seed if there are several."""
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
    done: Callable[[Experiment, list[Judged], list[Path]], None] | None = None,
    look: Look = SCREEN,
) -> Reproduction:
    """Run experiments, judge their claims, and write data and figures to their folders.

    Without `folder_of` nothing is written. `seed` replaces every scenario's own; an experiment of
    several seeds derives them from it. `planned` is called once with the runs to do, as
    {title: experiment}, and the number of cached runs; `progress` for each report of a run, from
    threads; `done` for each experiment, in the order in which they finish. Figures have the style
    `look`. After Ctrl-C the result has the experiments that have finished.
    """
    samples = {experiment.path: experiment.samples(short, seed) for experiment in chosen}
    wanted: dict[_Key, Scenario] = {
        (path, place, name): scenario
        for path, listed in samples.items()
        for place, sample in enumerate(listed)
        for name, scenario in sample.items()
    }
    by_path = {experiment.path: experiment for experiment in chosen}
    places = {key: by_path[key[0]].backend(key[2]) for key in wanted}
    results = _cached(wanted, places) if cached else {}
    titles = {
        title(by_path[key[0]], key[2], scenario.seed if len(samples[key[0]]) > 1 else None): key
        for key, scenario in wanted.items()
    }
    first = _equal(
        {key: (places[key], wanted[key]) for key in titles.values() if key not in results}
    )
    missing = {label: wanted[key] for label, key in titles.items() if key in first}
    if planned is not None:
        planned({label: titles[label][0] for label in missing}, len(results))
    found = Reproduction()

    def finish(experiments: Iterable[Experiment]) -> None:
        """Judge and write the experiments for which all runs are complete."""
        for experiment in experiments:
            own = [key for key in wanted if key[0] == experiment.path]
            if experiment.path in found.claims or not all(key in results for key in own):
                continue
            runs: list[dict[str, Result]] = [{} for _ in samples[experiment.path]]
            for key in own:
                runs[key[1]][key[2]] = results.pop(key)
            judged = judge(experiment, runs, short)
            figures: list[Path] = []
            if folder_of is not None:
                folder = folder_of(experiment)
                figures, refused = output.write(experiment, runs, judged, folder, look)
                found.unwritten += refused
            found.claims[experiment.path] = judged
            found.figures[experiment.path] = figures
            if done is not None:
                done(experiment, judged, figures)

    def keep(label: str, result: Result) -> None:
        if "interrupted_at_s" in result.summary:
            return
        if cached:
            cache.store(missing[label], places[titles[label]], result)
        same = first[titles[label]]
        results.update(dict.fromkeys(same, result))
        # Judging and drawing do not look for Ctrl-C, which may end them at once.
        with interrupt.listening(False):
            finish([by_path[path] for path in dict.fromkeys(key[0] for key in same)])

    finish(chosen)
    on = {label: places[titles[label]] for label in missing}
    run_each(_longest_first(missing), on, progress=progress, done=keep)
    found.interrupted = len(found.claims) < len(chosen)
    return found


def _cached(wanted: Mapping[_Key, Scenario], places: Mapping[_Key, str]) -> dict[_Key, Result]:
    """Return the results of the runs that are in the cache."""
    found = {key: cache.lookup(scenario, places[key]) for key, scenario in wanted.items()}
    return {key: result for key, result in found.items() if result is not None}


def _equal(wanted: Mapping[_Key, tuple[str, Scenario]]) -> dict[_Key, list[_Key]]:
    """Group runs of equal scenarios on the same backend under the first of them, so that each runs
    once.
    """
    equal: dict[tuple[str, str], list[_Key]] = {}
    for key, (place, scenario) in wanted.items():
        equal.setdefault((place, scenario.to_toml()), []).append(key)
    return {keys[0]: keys for keys in equal.values()}


def _longest_first(scenarios: Mapping[str, Scenario]) -> dict[str, Scenario]:
    """Sort scenarios by work, largest first: duration (s) × total rate of links (bit/s)."""

    def work(scenario: Scenario) -> float:
        return scenario.duration * sum(link.capacity for link in scenario.link)

    return dict(sorted(scenarios.items(), key=lambda item: work(item[1]), reverse=True))
