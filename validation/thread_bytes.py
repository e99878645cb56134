"""Compare the bytes of whole runs on several threads with those of one thread.

Every scenario of examples/ and papers/ and the two networks of bench/ run to their end. Where the
host has a CPU for each thread, the run has as many threads. Otherwise the same parts run in turn on
one thread, window by window, which gives the same bytes and needs no idle host.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from validation.study import ROOT, Option, Options, Study, only
from validation.tables import markdown
from validation.targets.cases import Source, committed
from validation.targets.study import code
from waterfill import _core
from waterfill.contract.network import Network
from waterfill.errors import InputError
from waterfill.network import protocols, resolve


@dataclass(frozen=True)
class Case:
    """A scenario and the numbers of threads to compare with one thread."""

    source: Source
    threads: tuple[int, ...]

    @property
    def name(self) -> str:
        """Path of the scenario."""
        return self.source.path


@dataclass(frozen=True)
class Run:
    """Hash of a run, the number of parts that its network has, and the number of its events.

    `asked` is the number of threads asked for. A network of few nodes has fewer parts.
    """

    asked: int
    parts: int
    digest: str
    events: int


def cases(options: Options) -> list[Case]:
    """Return a case for each scenario that the simulator runs."""
    subprocess.run([sys.executable, ROOT / "bench" / "networks.py"], check=True)
    bench = [
        Source(f"bench/{path.name}", "sim", path.read_text(encoding="utf-8"))
        for path in sorted(ROOT.glob("out/bench/*.toml"))
    ]
    sources = [source for source in committed() if source.on == "sim"]
    return [Case(source, options.threads) for source in [*bench, *sources]]


def measure(case: Case) -> list[Run]:
    """Run a case on one thread and on each number of threads; return nothing if it is refused."""
    scenario = case.source.scenario
    try:
        network = resolve.to_core(scenario, protocols.load(), "sim")
    except InputError:
        return []
    found: list[Run] = []
    for asked in (1, *case.threads):
        run = whole(network, scenario.duration, asked, {run.parts for run in found})
        if run is not None:
            found.append(run)
    return found


def whole(network: Network, until_s: float, asked: int, known: set[int]) -> Run | None:
    """Simulate a network to its end on up to `asked` threads; None if it has as many parts as a
    known run.
    """
    simulation = _core.Simulation(network)
    parts = simulation.set_threads(asked) if asked > 1 else 1
    if parts in known:
        return None
    if parts > 1 and len(os.sched_getaffinity(0)) < parts:
        simulation.run_in_turns(time.thread_time)
    else:
        simulation.advance(until_s)
    return Run(asked, parts, simulation.digest(), simulation.progress()["events"])


def differing(runs: Sequence[Run]) -> list[str]:
    """Return the numbers of parts whose bytes are not those of one thread."""
    return [str(run.parts) for run in runs if run.digest != runs[0].digest]


def line(case: Case, runs: Sequence[Run]) -> str:
    """Return the line of progress for a case."""
    if not runs:
        return f"{case.name}: not for the simulator"
    wrong = ", ".join(differing(runs))
    parts = ", ".join(str(run.parts) for run in runs)
    return f"{case.name}: {parts} parts {'differ: ' + wrong if wrong else 'equal'}"


def table(found: Mapping[Case, Sequence[Run]]) -> str:
    """Return a table with a row per scenario: events, hash on one thread, parts compared."""
    rows = [
        [case.name, runs[0].events, runs[0].digest[:8],
         ", ".join(str(run.parts) for run in runs[1:]) or "–", ", ".join(differing(runs)) or "none"]
        for case, runs in found.items()
        if runs
    ]  # fmt: skip
    divided = sum(row[3] != "–" for row in rows)
    head = "scenario|events:|hash|parts compared with one:|differ"
    return f"{markdown(head, rows)}\n\n{len(rows)} scenarios, {divided} of them can be divided"


def failed(found: Mapping[Case, Sequence[Run]]) -> list[str]:
    """Return a sentence for each case whose bytes depend on threads."""
    return [line(case, runs) for case, runs in found.items() if differing(runs)]


STUDY: Study[Case, list[Run]] = Study(
    shows="whole runs give the same bytes on several threads as on one",
    minutes=40,
    options=(
        Option("--threads", (2, 3, 8), "numbers of threads to compare with one", low=2),
        only("papers/*"),
    ),
    quick={"threads": (2,), "only": "examples/*"},
    cases=cases,
    measure=measure,
    row=list[Run],
    line=line,
    table=table,
    failed=failed,
    code=code,
)
