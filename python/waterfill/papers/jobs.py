"""Concurrent execution of many runs, of which equal ones run once and cached ones not at all.

Runs are independent, so the longest start first and all CPUs are busy until the end.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from waterfill.errors import InputError
from waterfill.runs import cache
from waterfill.runs.endpoints import Endpoints
from waterfill.runs.law_files import identity
from waterfill.runs.laws import PythonLaw, used
from waterfill.runs.pool import run_each
from waterfill.runs.progress import Tick
from waterfill.runs.result import Result
from waterfill.scenario.document import Scenario

_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True)
class Job:
    """One run: its title for progress and messages, its group, scenario, backend, laws, and
    endpoints.

    `group` is a text that `planned` gets, such as the path of the run's experiment. `laws` may hold
    more laws in Python than the scenario uses.
    """

    title: str
    group: str
    scenario: Scenario
    on: str = "sim"
    laws: Mapping[str, PythonLaw] = field(default_factory=dict)
    endpoints: Endpoints | None = None

    def own_laws(self) -> dict[str, PythonLaw]:
        """Return the laws in Python that the scenario uses."""
        return used(self.laws, self.scenario)


def run_jobs(
    jobs: Mapping[_Key, Job],
    done: Callable[[Sequence[_Key], Result], None],
    *,
    cached: bool = True,
    planned: Callable[[Mapping[str, str], int], None] | None = None,
    progress: Callable[[str, Tick], None] | None = None,
    refused: Callable[[Sequence[_Key], InputError], None] | None = None,
) -> None:
    """Run jobs and pass each result to `done` with the keys of all jobs that it answers.

    `planned` is called once, with {title: group} of the runs to do and the number of jobs that the
    cache answers. Interrupted runs are not passed on. Raises InputError as `runs.backends.run`, or
    passes it to `refused` with the keys of the jobs.
    """
    contexts = {key: _context(job) for key, job in jobs.items()}
    kept: dict[_Key, Result] = {}
    for key, job in jobs.items() if cached else ():
        found = cache.lookup(job.scenario, job.on, contexts[key])
        if found is not None:
            kept[key] = found
    equal: dict[tuple[str, str, str], list[_Key]] = {}
    for key, job in jobs.items():
        if key not in kept:
            what = (job.on, contexts[key], job.scenario.to_toml())
            equal.setdefault(what, []).append(key)
    first = {jobs[keys[0]].title: keys for keys in equal.values()}
    if planned is not None:
        planned({title: jobs[keys[0]].group for title, keys in first.items()}, len(kept))
    for key in list(kept):
        done([key], kept.pop(key))

    def keep(title: str, result: Result) -> None:
        if "interrupted_at_s" in result.summary:
            return
        keys = first[title]
        if cached:
            job = jobs[keys[0]]
            cache.store(job.scenario, job.on, result, contexts[keys[0]])
        done(keys, result)

    missing = {title: jobs[keys[0]] for title, keys in first.items()}
    order = sorted(missing, key=lambda title: _work(missing[title].scenario), reverse=True)
    run_each(
        {title: missing[title].scenario for title in order},
        {title: missing[title].on for title in order},
        progress=progress,
        done=keep,
        laws={title: own for title in order if (own := missing[title].own_laws())},
        endpoints={title: its for title in order if (its := missing[title].endpoints)},
        refused=None if refused is None else lambda title, error: refused(first[title], error),
    )


def _context(job: Job) -> str:
    """Return the part of a cache entry's key that laws in Python and endpoints decide."""
    own = job.own_laws()
    laws = f" {identity(own)}" if own else ""
    return laws if job.endpoints is None else f"{laws} {job.endpoints.identity()}"


def _work(scenario: Scenario) -> float:
    """Return an estimate of a run's work: duration (s) × total rate of links (bit/s)."""
    return scenario.duration * sum(link.capacity for link in scenario.link)
