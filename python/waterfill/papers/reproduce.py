"""Concurrent execution of papers' experiments.

An experiment is judged and written as soon as its last run ends.
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
from waterfill.papers.jobs import Job, run_jobs
from waterfill.runs import interrupt
from waterfill.runs.files import WriteError
from waterfill.runs.laws import PythonLaw
from waterfill.runs.progress import Tick
from waterfill.runs.result import Result

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
    laws: Mapping[str, PythonLaw] | None = None,
) -> Reproduction:
    """Run experiments, judge their claims, and write data and figures to their folders.

    Without `folder_of` nothing is written. `seed` replaces every scenario's own; an experiment of
    several seeds derives them from it. `planned` is called once with the runs to do, as
    {title: experiment}, and the number of cached runs; `progress` for each report of a run, from
    threads; `done` for each experiment, in the order in which they finish. Figures have the style
    `look`. `laws` are laws in Python that the scenarios may name. After Ctrl-C the result has the
    experiments that have finished.
    """
    samples = {experiment.path: experiment.samples(short, seed) for experiment in chosen}
    by_path = {experiment.path: experiment for experiment in chosen}
    wanted: dict[_Key, Job] = {}
    for path, listed in samples.items():
        for place, sample in enumerate(listed):
            for name, scenario in sample.items():
                label = title(by_path[path], name, scenario.seed if len(listed) > 1 else None)
                on = by_path[path].backend(name)
                wanted[path, place, name] = Job(label, path, scenario, on, laws or {})
    results: dict[_Key, Result] = {}
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

    def keep(keys: Sequence[_Key], result: Result) -> None:
        results.update(dict.fromkeys(keys, result))
        # Judging and drawing do not look for Ctrl-C, which may end them at once.
        with interrupt.listening(False):
            finish([by_path[path] for path in dict.fromkeys(key[0] for key in keys)])

    run_jobs(wanted, keep, cached=cached, planned=planned, progress=progress)
    found.interrupted = len(found.claims) < len(chosen)
    return found
