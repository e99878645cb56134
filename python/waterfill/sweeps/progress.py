"""The progress of a sweep on standard error: points done, rate, time left, failures.

A terminal shows one line that changes; other outputs get a plain line now and then: after 1 s, 2 s,
4 s … and each minute from then on. Each failure has a line of its own, the first few of them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from waterfill.errors import one_line
from waterfill.runs.progress import BAR_CHARS, whole_column
from waterfill.sweeps.points import Point

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from typing_extensions import Self

MAX_FAILURES = 20
_MAX_PAUSE_S = 60.0


class Display:
    """Shows a sweep's progress; a context manager. `expected` is the number of points."""

    def __init__(self, title: str, expected: int, at_most: bool = False) -> None:
        self._title = one_line(title)
        self._expected = expected
        self._bound = "at most " if at_most else ""
        self._done = self._failed = self._before = self._threads = 0
        self._started: float | None = None
        self._pause_s = 1.0
        self._shown = 0.0
        self._said = ""
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._started = self._shown = time.monotonic()
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn

            self._progress = Progress(
                TextColumn("{task.description}", markup=False, table_column=whole_column()),
                BarColumn(bar_width=BAR_CHARS),
                TextColumn("{task.fields[state]}", markup=False, table_column=whole_column()),
                console=Console(stderr=True, highlight=False),
                transient=True,
            )
            self._task = self._progress.add_task(self._title, total=self._expected, state="")
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
        self._print(self.line(closing=True))

    def planned(self, recorded: int, threads: int) -> None:
        """Take the number of points that are recorded already, and of those that run at once."""
        self._before += recorded
        self._threads = threads
        if recorded:
            self._print(f"{self._title}: {recorded} points are recorded already")
        self.tick()

    def row(self, point: Point, row: Mapping[str, Any]) -> None:
        """Count a point that has ended; print a line if it failed."""
        self._said = ""
        self._done += 1
        if row["status"] == "done":
            return
        self._failed += 1
        if self._failed <= MAX_FAILURES:
            sets = " ".join(point.sets) or "the scenario"
            self._print(f"{row['status']}: {sets}: {one_line(row['error'] or '')}")
        if self._failed == MAX_FAILURES:
            self._print("more failures are in the dataset: its columns status and error")

    def waiting(self, why: str) -> None:
        """Say once why nothing runs."""
        if why != self._said:
            self._said = why
            self._print(f"{self._title}: {why}")

    def tick(self) -> None:
        """Bring the line up to date."""
        if self._progress is not None and self._task is not None:
            done = self._before + self._done
            self._progress.update(self._task, completed=done, state=self.line(title=False))
            return
        now = time.monotonic()
        if now - self._shown >= self._pause_s:
            self._shown, self._pause_s = now, min(2 * self._pause_s, _MAX_PAUSE_S)
            self._print(self.line())

    def line(self, title: bool = True, closing: bool = False) -> str:
        """Return the state in one line."""
        started = time.monotonic() if self._started is None else self._started
        took_s = max(time.monotonic() - started, 1e-9)
        done, rate = self._before + self._done, self._done / took_s
        parts = [f"{done} of {self._bound}{self._expected} points"]
        if self._failed:
            parts.append(f"{self._failed} failed")
        if self._done:
            parts.append(f"{rate:.3g} points/s")
        if closing:
            parts.append(f"{span(took_s)}")
        else:
            if self._done and done < self._expected:
                parts.append(f"{span((self._expected - done) / rate)} left")
            if self._threads:
                parts.append(f"{self._threads} at once")
        text = ", ".join(parts)
        return f"{self._title}: {text}" if title else text

    def _print(self, line: str) -> None:
        if self._progress is not None:
            self._progress.console.print(line, markup=False, emoji=False, soft_wrap=True)
        else:
            print(line, file=sys.stderr, flush=True)


def span(time_s: float) -> str:
    """Return a time as people read it: 8 s, 5 min 20 s, 3 h 5 min."""
    if time_s < 9.95:
        return f"{time_s:.1f} s"
    whole = round(time_s)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class Silent:
    """Shows nothing."""

    def planned(self, recorded: int, threads: int) -> None:
        """Do nothing."""

    def row(self, point: Point, row: Mapping[str, Any]) -> None:
        """Do nothing."""

    def waiting(self, why: str) -> None:
        """Do nothing."""

    def tick(self) -> None:
        """Do nothing."""
