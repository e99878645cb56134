"""The progress of a run, shown on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from rich.table import Column
    from typing_extensions import Self


# Short enough for title, time and speed beside it in 80 columns.
BAR_CHARS = 12


@dataclass(frozen=True)
class Tick:
    """One report of a run.

    `packet_hops` counts a packet once per link that forwarded it; 0 where it is unknown.
    """

    now_s: float
    duration_s: float
    packet_hops: int
    wall_s: float

    @property
    def packets_per_s(self) -> float:
        """Packet hops per second of wall time."""
        return self.packet_hops / self.wall_s if self.wall_s > 0 else 0.0


Report = Callable[[Tick], None]


def title_column() -> Column:
    """Return the column of titles: it takes what the others leave, and cuts at its end."""
    from rich.table import Column

    return Column(ratio=1, no_wrap=True, overflow="ellipsis")


def whole_column() -> Column:
    """Return a column whose text is never cut or wrapped."""
    from rich.table import Column

    return Column(no_wrap=True)


class Bars:
    """One progress bar per run; a context manager, safe to use from several threads.

    On a terminal each bar shows simulated time, packets/s and time left, and disappears at the end.
    Other outputs show no bars. Both get one closing line per title in `titles`; runs with other
    titles leave none.
    """

    def __init__(self, titles: Iterable[str]) -> None:
        self._titles = list(titles)
        self._last: dict[str, Tick] = {}
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self._progress = Progress(
                TextColumn("{task.description}", markup=False, table_column=title_column()),
                BarColumn(bar_width=BAR_CHARS),
                TextColumn("{task.fields[state]}", markup=False, table_column=whole_column()),
                TimeRemainingColumn(table_column=whole_column()),
                TextColumn("left", table_column=whole_column()),
                console=Console(stderr=True),
                transient=True,
                expand=True,
            )
            for title in self._titles:
                self._tasks[title] = self._progress.add_task(title, total=None, state="")
            self._progress.start()
        return self

    def show(self, title: str, tick: Tick) -> None:
        """Show one report of the run of that title."""
        self._last[title] = tick
        if self._progress is not None:
            state = (
                f"{tick.now_s:.3g} of {tick.duration_s:g} s, "
                f"{tick.packets_per_s / 1e6:.2f} M packets/s"
            )
            if title not in self._tasks:
                self._tasks[title] = self._progress.add_task(title, total=None, state="")
            self._progress.update(
                self._tasks[title], completed=tick.now_s, total=tick.duration_s, state=state
            )
            if tick.now_s >= tick.duration_s and title not in self._titles:
                self._progress.remove_task(self._tasks.pop(title))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
        for title in self._titles:
            if title in self._last:
                print(closing_line(title, self._last[title]), file=sys.stderr, flush=True)


class Bar(Bars):
    """The progress bar of one run; call it with each `Tick`."""

    def __init__(self, title: str) -> None:
        super().__init__([title])
        self._title = title

    def __call__(self, tick: Tick) -> None:
        """Show one report."""
        self.show(self._title, tick)


def closing_line(title: str, tick: Tick) -> str:
    """Return the closing line of a run: simulated time, wall time, packets and their rate."""
    if tick.packet_hops == 0:  # a run in real time does not count packets
        return f"{title}: ran {tick.now_s:.3g} s in {tick.wall_s:.1f} s"
    return (
        f"{title}: simulated {tick.now_s:g} s in {tick.wall_s:.1f} s, "
        f"{tick.packet_hops / 1e6:.2f} M packets forwarded, "
        f"{tick.packets_per_s / 1e6:.2f} M packets/s"
    )
