"""The progress of `reproduce`: runs in progress and finished experiments.

A terminal shows one bar per run in progress with the totals below; finished experiments scroll by
above. Other outputs get plain lines, one when a run starts and one when it ends.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from waterfill.runs.progress import BAR_CHARS, Tick, closing_line, title_column, whole_column

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from typing_extensions import Self


class LiveList:
    """Runs in progress and finished experiments; a context manager.

    `show` may be called from any thread, the other methods from the main one only.
    """

    def __init__(self, experiments: int) -> None:
        self._experiments = experiments
        self._experiments_done = 0
        self._runs = 0
        self._runs_done = 0
        self._lock = threading.Lock()
        self._running: dict[str, TaskID | None] = {}
        self._progress: Progress | None = None
        self._total: TaskID | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._progress = Progress(
                TextColumn("{task.description}", markup=False, table_column=title_column()),
                BarColumn(bar_width=BAR_CHARS),
                TextColumn("{task.fields[state]}", markup=False, table_column=whole_column()),
                TimeElapsedColumn(table_column=whole_column()),
                console=Console(stderr=True, highlight=False),
                transient=True,
                expand=True,
            )
            self._progress.start()
        return self

    def planned(self, runs: Mapping[str, str], kept: int) -> None:
        """Set the planned runs, {run: experiment}, and the number of runs that were cached."""
        self._runs = len(runs)
        parts = [_count(self._experiments, "experiment"), f"{_count(len(runs), 'run')} to do"]
        if kept:
            parts.append(f"{kept} from the cache")
        if self._experiments > 1:
            self._print(", ".join(parts))
        if self._progress is not None and self._runs > 1:
            self._total = self._progress.add_task("all", total=self._runs, state="")
            self._count_up()

    def show(self, run: str, tick: Tick) -> None:
        """Show one report of a run; the first starts it, one at its duration ends it."""
        ended = tick.now_s >= tick.duration_s
        with self._lock:
            if run not in self._running:
                self._start(run)
            task = self._running[run]
            if self._progress is not None and task is not None:
                state = f"{tick.now_s:.3g} of {tick.duration_s:g} s"
                self._progress.update(
                    task, completed=tick.now_s, total=tick.duration_s, state=state
                )
            if ended:
                self._end(run, tick)

    def done(self, path: str, verdicts: Iterable[str]) -> None:
        """Report a finished experiment and its claims' verdicts."""
        with self._lock:
            self._experiments_done += 1
            if self._experiments > 1:
                counts = Counter(verdicts).items()
                tally = ", ".join(f"{number} {verdict}" for verdict, number in counts)
                place = f"{self._experiments_done} of {self._experiments} experiments"
                self._print(f"finished {path}: {tally} ({place})")
            self._count_up()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def _start(self, run: str) -> None:
        if self._progress is None:
            self._running[run] = None
            if self._runs > 1:
                self._print(f"started {run}")
            return
        self._running[run] = self._progress.add_task(run, total=None, state="")

    def _end(self, run: str, tick: Tick) -> None:
        task = self._running[run]
        self._runs_done += 1
        if self._progress is not None and task is not None:
            self._progress.remove_task(task)
            self._running[run] = None
        if self._progress is None or self._experiments == 1:
            place = f" ({self._runs_done} of {self._runs} runs)" if self._runs > 1 else ""
            self._print(closing_line(run, tick) + place)
        self._count_up()

    def _count_up(self) -> None:
        if self._progress is None or self._total is None:
            return
        state = f"{self._runs_done} of {self._runs} runs"
        if self._experiments > 1:
            state += f", {self._experiments_done} of {self._experiments} experiments"
        self._progress.update(self._total, completed=self._runs_done, state=state)

    def _print(self, line: str) -> None:
        if self._progress is not None:
            self._progress.console.print(line, markup=False, emoji=False)
        else:
            print(line, file=sys.stderr, flush=True)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
