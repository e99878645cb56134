"""Progress on standard error: bars on a terminal, plain lines on other outputs."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from waterfill.errors import one_line

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from typing_extensions import Self

# Short enough for title, time and speed beside it in 80 columns.
_BAR_CHARS = 12
# Failures of a sweep that have a line of their own.
MAX_FAILURES = 20
_MAX_PAUSE_S = 60.0


@dataclass(frozen=True)
class Tick:
    """One progress report of a run.

    `packet_hops` counts a packet once per link that forwarded it; 0 where it is unknown. `steps`
    are the time steps of the fluid model, which has no packets.
    """

    now_s: float
    duration_s: float
    packet_hops: int
    wall_s: float
    steps: int = 0

    @property
    def ended(self) -> bool:
        """True if the run has ended."""
        return self.now_s >= self.duration_s

    @property
    def speed(self) -> str:
        """Packet hops, or steps of the fluid model, per second of wall time as text."""
        unit = "steps/s" if self.steps else "packets/s"
        return f"{_millions((self.steps or self.packet_hops) / max(self.wall_s, 1e-9))} {unit}"

    @property
    def times(self) -> str:
        """Simulated time and duration as text."""
        return f"{self.now_s:.3g} of {self.duration_s:g} s"


Report = Callable[[Tick], None]


class _Pauses:
    """Times at which a line of progress is due: after 1 s, 2 s, 4 s … and each minute from then
    on.
    """

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._pause_s = 1.0

    def due(self) -> bool:
        """Return whether a line is due, and if so, wait for the next one."""
        now = time.monotonic()
        if now - self._last < self._pause_s:
            return False
        self._last, self._pause_s = now, min(2 * self._pause_s, _MAX_PAUSE_S)
        return True


class _Display:
    """Named progress bars on a terminal's standard error. A thread-safe context manager.

    A bar has a title, its state as text and, at its end, the time `left` or `elapsed`. Bars
    disappear at the end. Other outputs have no bars.
    """

    def __init__(self, clock: Literal["left", "elapsed", ""] = "") -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._progress: Progress | None = None
        self._bars: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        if not sys.stderr.isatty():
            return self
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.table import Column

        # The title takes what the other columns leave, and is cut at its end.
        title = Column(ratio=1, no_wrap=True, overflow="ellipsis")
        whole = Column(no_wrap=True)
        clocks: dict[str, list[Any]] = {
            "left": [
                TimeRemainingColumn(table_column=whole),
                TextColumn("left", table_column=whole),
            ],
            "elapsed": [TimeElapsedColumn()],
        }
        self._progress = Progress(
            TextColumn("{task.description}", markup=False, table_column=title),
            BarColumn(bar_width=_BAR_CHARS),
            TextColumn("{task.fields[state]}", markup=False, table_column=whole),
            *clocks.get(self._clock, []),
            console=Console(stderr=True, highlight=False),
            transient=True,
            expand=True,
        )
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def _move(
        self, title: str, state: str = "", done: float = 0.0, total: float | None = None
    ) -> None:
        """Update a progress bar. The first call adds the bar."""
        if self._progress is None:
            return
        with self._lock:
            if title not in self._bars:
                self._bars[title] = self._progress.add_task(title, total=total, state=state)
        self._progress.update(self._bars[title], completed=done, total=total, state=state)

    def _remove(self, title: str) -> None:
        with self._lock:
            if self._progress is not None and title in self._bars:
                self._progress.remove_task(self._bars.pop(title))

    def _print(self, line: str) -> None:
        """Print a line, above the progress bars if there are any."""
        if self._progress is not None:
            self._progress.console.print(line, markup=False, emoji=False, soft_wrap=True)
        else:
            print(line, file=sys.stderr, flush=True)


class Bars(_Display):
    """Progress bars, one per run, with simulated time, packets/s and time left.

    Each title in `titles` gets a closing line; runs with other titles leave none.
    """

    def __init__(self, titles: Iterable[str]) -> None:
        super().__init__("left")
        self._titles = list(titles)
        self._last: dict[str, Tick] = {}

    def __enter__(self) -> Self:
        super().__enter__()
        for title in self._titles:
            self._move(title)
        return self

    def show(self, title: str, tick: Tick) -> None:
        """Update the progress bar of the run with this title."""
        self._last[title] = tick
        state = f"{tick.times}, {tick.speed}"
        self._move(title, state, tick.now_s, tick.duration_s)
        if tick.ended and title not in self._titles:
            self._remove(title)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        for title in self._titles:
            if title in self._last:
                self._print(closing_line(title, self._last[title]))


class Bar(Bars):
    """The progress bar of one run. Call the bar with each `Tick`."""

    def __init__(self, title: str) -> None:
        super().__init__([title])
        self._title = title

    def __call__(self, tick: Tick) -> None:
        """Update the progress bar from a run's report."""
        self.show(self._title, tick)


def closing_line(title: str, tick: Tick) -> str:
    """Return the closing line of a run: simulated time, wall time, packets or steps, and speed."""
    if tick.steps:
        done = f"{tick.steps:,} steps"
    elif tick.packet_hops == 0:  # a run in real time does not count packets
        return f"{title}: ran {tick.now_s:.3g} s in {tick.wall_s:.1f} s"
    else:
        done = f"{_millions(tick.packet_hops)} packets forwarded"
    return f"{title}: simulated {tick.now_s:g} s in {tick.wall_s:.1f} s, {done}, {tick.speed}"


def _millions(number: float) -> str:
    return f"{number / 1e6:.2f} M"


class ExperimentBars(_Display):
    """Progress display of `reproduce`: one bar per run in progress, and totals below.

    Finished experiments scroll by above the bars. Other outputs get a line when a run starts and
    one when it ends, or with `lines` false, the number of runs now and then. `show` may be called
    from any thread, the other methods from the main one.
    """

    def __init__(self, experiments: int, *, lines: bool = True) -> None:
        super().__init__("elapsed")
        self._experiments = experiments
        self._lines = lines
        self._experiments_done = 0
        self._runs = 0
        self._runs_done = 0
        self._started: set[str] = set()
        self._pauses = _Pauses()

    def planned(self, runs: Mapping[str, str], kept: int) -> None:
        """Add planned runs, as {run: experiment}, and give the number of cached runs."""
        self._runs = self._runs_done + len(runs)
        parts = [_count(self._experiments, "experiment")] if self._lines else []
        parts.append(f"{_count(len(runs), 'run')} to do")
        if kept:
            parts.append(f"{kept} from the cache")
        if self._experiments > 1 or not self._lines:
            self._print(", ".join(parts))
        self._count_up()

    def show(self, run: str, tick: Tick) -> None:
        """Show a progress report of a run. The first report adds the run's bar; the last report
        removes the bar.
        """
        with self._lock:
            if run not in self._started:
                self._started.add(run)
                if self._progress is None and self._runs > 1 and self._lines:
                    self._print(f"started {run}")
            self._move(run, tick.times, tick.now_s, tick.duration_s)
            if tick.ended:
                self._remove(run)
                self._runs_done += 1
                if self._lines and (self._progress is None or self._experiments == 1):
                    place = f" ({self._runs_done} of {self._runs} runs)" if self._runs > 1 else ""
                    self._print(closing_line(run, tick) + place)
                self._count_up()

    def done(self, path: str, verdicts: Iterable[str]) -> None:
        """Report a finished experiment and the verdicts on its claims."""
        with self._lock:
            self._experiments_done += 1
            if self._experiments > 1:
                counts = Counter(verdicts).items()
                tally = ", ".join(f"{number} {verdict}" for verdict, number in counts)
                place = f"{self._experiments_done} of {self._experiments} experiments"
                self._print(f"finished {path}: {tally} ({place})")
            self._count_up()

    def _count_up(self) -> None:
        if self._runs <= 1:
            return
        state = f"{self._runs_done} of {self._runs} runs"
        if self._experiments > 1:
            state += f", {self._experiments_done} of {self._experiments} experiments"
        self._move("all", state, self._runs_done, self._runs)
        if self._progress is None and not self._lines and self._pauses.due():
            self._print(state)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class SweepBar(_Display):
    """Progress display of a sweep: points done, rate, time left, and a line per failure.

    A terminal shows one bar. Other outputs get a line after 1 s, 2 s, 4 s … and each minute from
    then on. With `quiet` nothing is shown. `expected` is the number of points.
    """

    def __init__(
        self, title: str, expected: int, *, at_most: bool = False, quiet: bool = False
    ) -> None:
        super().__init__()
        self._title = one_line(title)
        self._expected = expected
        self._bound = "at most " if at_most else ""
        self._quiet = quiet
        self._done = self._failed = self._before = self._threads = 0
        self._started = time.monotonic()
        self._pauses = _Pauses()
        self._said = ""

    def __enter__(self) -> Self:
        self._started, self._pauses = time.monotonic(), _Pauses()
        return self if self._quiet else super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._say(self.line(closing=True))

    def planned(self, recorded: int, threads: int) -> None:
        """Add to the number of recorded points, and set the number of points that run
        concurrently.
        """
        self._before += recorded
        self._threads = threads
        if recorded:
            self._say(f"{recorded} points are recorded already")
        self.tick()

    def row(self, sets: Sequence[str], row: Mapping[str, Any]) -> None:
        """Count a finished point with these settings, and print a line for each of the first failed
        points.
        """
        self._said = ""
        self._done += 1
        if row["status"] == "done":
            return
        self._failed += 1
        if self._quiet:
            return
        if self._failed <= MAX_FAILURES:
            named = " ".join(sets) or "the scenario"
            self._print(f"{row['status']}: {named}: {one_line(row['error'] or '')}")
        if self._failed == MAX_FAILURES:
            self._print("more failures are in the dataset: its columns status and error")

    def waiting(self, why: str) -> None:
        """Print the reason why no point is running, unless it was the last reason printed."""
        if why != self._said:
            self._said = why
            self._say(why)

    def tick(self) -> None:
        """Update the progress bar, or print a line if one is due."""
        if self._progress is not None:
            self._move(self._title, self.line(), self._before + self._done, self._expected)
            return
        if self._pauses.due():
            self._say(self.line())

    def line(self, *, closing: bool = False) -> str:
        """Return the sweep's progress as one line of text."""
        took_s = max(time.monotonic() - self._started, 1e-9)
        done, rate = self._before + self._done, self._done / took_s
        parts = [f"{done} of {self._bound}{self._expected} points"]
        if self._failed:
            parts.append(f"{self._failed} failed")
        if self._done:
            parts.append(f"{rate:.3g} points/s")
        if closing:
            return ", ".join([*parts, span(took_s)])
        if self._done and done < self._expected:
            parts.append(f"{span((self._expected - done) / rate)} left")
        if self._threads:
            parts.append(f"{self._threads} at once")
        return ", ".join(parts)

    def _say(self, text: str) -> None:
        if not self._quiet:
            self._print(f"{self._title}: {text}")


def span(time_s: float) -> str:
    """Return a duration in readable units: 8.0 s, 5 min 20 s, 3 h 5 min."""
    if time_s < 9.95:
        return f"{time_s:.1f} s"
    whole = round(time_s)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
