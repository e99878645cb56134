"""Search by bisection for the value of a key at which a verdict changes.

A verdict compares a column with a threshold, as in `stable < 0.5`. With seeds it is that of the
column's mean over them. Where the 95 % interval of the mean includes the threshold, the value is
*undecided*: the search goes on by the mean, and its answer lists the value. The search ends when
the two values around the change differ by the tolerance, 1 % of the larger. That takes
2 + log2(first distance ÷ last) runs per seed: no search that relies on the verdict alone needs
fewer in the worst case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from waterfill.sweeps.axes import Axis, Range
from waterfill.sweeps.estimates import estimate
from waterfill.sweeps.measure import Verdict
from waterfill.sweeps.points import Design, Point


@dataclass
class Search:
    """State of one bisection, with the rows that it waits for.

    `low` and `high` are the values around the change; `at_low` is the verdict at `low`.
    """

    chosen: list[tuple[Axis, int]]
    low: float
    high: float
    at_low: bool | None = None
    state: str = "ends"
    runs: int = 0
    waiting: dict[float, dict[int | None, float | None]] = field(default_factory=dict)
    verdicts: dict[float, bool | None] = field(default_factory=dict)
    undecided: set[float] = field(default_factory=set)


@dataclass(frozen=True)
class Boundary:
    """The result of one search for the change of a verdict.

    `values` are the other axes' values, `low` and `high` the key's around the change, in the unit
    of the range; None for both where the verdict does not change, and `state` says so. `runs` is
    how many points the search used. `undecided` are the values at which the 95 % interval over the
    seeds includes the threshold.
    """

    values: Mapping[str, Any]
    low: float | None
    high: float | None
    state: str
    runs: int
    undecided: tuple[float, ...] = ()

    @property
    def middle(self) -> float | None:
        """The mean of the values on both sides of the change, or None if there is no change."""
        return None if self.low is None or self.high is None else (self.low + self.high) / 2


class Refinement:
    """A source of points for searches, which continue from the rows that they receive."""

    follows = True

    def __init__(self, design: Design, span: Range, verdict: Verdict, tolerance: float) -> None:
        self._design = design
        self._seeds: tuple[int | None, ...] = design.seeds or (None,)
        self._span = span
        self._verdict = verdict
        self._tolerance = tolerance
        self._searches = [Search(row, span.low, span.high) for row in design.rows()]
        self._of: dict[str, tuple[Search, float, int | None]] = {}

    @property
    def count(self) -> int:
        """Maximum number of points that the searches can need."""
        steps, low, high = 0, self._span.low, self._span.high
        while not self._close(low, high):
            low, steps = self._span.middle(low, high), steps + 1
            if steps > 64:
                break
        return len(self._searches) * len(self._seeds) * (2 + steps + 1)

    def first(self) -> Iterable[Point]:
        """Yield the points at both ends of each search's range."""
        for search in self._searches:
            yield from self._ask(search, search.low)
            yield from self._ask(search, search.high)

    def after(self, point: Point, row: Mapping[str, Any]) -> Iterable[Point]:
        """Return the points to run next once all seeds of the current value have ended, or no
        points before that.
        """
        search, value, seed = self._of[point.key]
        seeds = search.waiting.get(value)
        if seeds is None or seed in seeds:
            return []
        seeds[seed] = row.get(self._verdict.column) if row["status"] == "done" else None
        if len(seeds) < len(self._seeds):
            return []
        del search.waiting[value]
        found = [number for number in seeds.values() if number is not None]
        mean = estimate(found) if found else None
        search.verdicts[value] = None if mean is None else self._verdict.of(mean.mean)
        if mean is not None and mean.spans(self._verdict.limit):
            search.undecided.add(value)
        return self._step(search)

    def _step(self, search: Search) -> Iterable[Point]:
        if search.waiting:
            return []
        if search.state == "ends":
            low, high = search.verdicts[search.low], search.verdicts[search.high]
            search.at_low = low
            if low is None or high is None:
                search.state = "failed"
            elif low == high:
                search.state = f"always {self._verdict}" if low else f"never {self._verdict}"
            else:
                search.state = "searching"
        if search.state != "searching":
            return []
        middle = self._span.middle(search.low, search.high)
        if middle in search.verdicts:
            verdict = search.verdicts[middle]
            if verdict is None:
                search.state = "failed"
                return []
            if verdict == search.at_low:
                search.low = middle
            else:
                search.high = middle
        if self._close(search.low, search.high):
            search.state = "found"
            return []
        middle = self._span.middle(search.low, search.high)
        if middle in (search.low, search.high):  # as close as its digits can be
            search.state = "found"
            return []
        return self._ask(search, middle)

    def _close(self, low: float, high: float) -> bool:
        return high - low <= self._tolerance * max(abs(low), abs(high))

    def _ask(self, search: Search, value: float) -> list[Point]:
        """Return the points at a value of the searched key, one per seed."""
        search.waiting[value] = {}
        search.runs += len(self._seeds)
        points = []
        for seed in self._seeds:
            new = self._design.point([*search.chosen, (self._span.axis([value]), 0)], seed)
            self._of[new.key] = (search, value, seed)
            points.append(new)
        return points

    def boundaries(self) -> list[Boundary]:
        """Return the search results, one for each combination of the other axes' values."""
        answers = []
        for search in self._searches:
            found = search.state == "found"
            values = {one.key: one.numbers[i] for one, i in search.chosen}
            low, high = (search.low, search.high) if found else (None, None)
            state = "interrupted" if search.state in ("ends", "searching") else search.state
            undecided = tuple(sorted(search.undecided))
            answers.append(Boundary(values, low, high, state, search.runs, undecided))
        return answers
