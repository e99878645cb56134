"""Engine of a sweep, which distributes points to a cluster's workers and records their rows.

Only points that the dataset lacks are run. Points that take less than 0.2 s are sent in batches of
about that time. A point whose worker or process was killed is handed out again, five times at
most; the same holds for all points in progress when the scheduler is lost.
"""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from waterfill.errors import RunError, one_line
from waterfill.runs import cache, interrupt, law_files
from waterfill.runs.files import WriteError
from waterfill.runs.progress import SweepBar
from waterfill.sweeps.cluster import Cluster
from waterfill.sweeps.dataset import Dataset
from waterfill.sweeps.plan import Plan
from waterfill.sweeps.points import Point
from waterfill.sweeps.worker import CHILDREN, FAILED, LOST, run_batch, same

# Aim of a batch's time; most points of a batch; batches waiting at each worker's thread.
_BATCH_S = 0.2
_MAX_BATCH = 64
_AHEAD = 2
_TRIES = 5
_LOOK_S = 0.2
_COUNT_WORKERS_S = 1.0


@dataclass
class Outcome:
    """Outcome of a sweep: its points in the order of request, and a flag set by Ctrl-C.

    `unwritten` is why it ended early if its rows could not be recorded any more.
    """

    points: list[Point] = field(default_factory=list)
    interrupted: bool = False
    unwritten: WriteError | None = None


def run(plan: Plan, dataset: Dataset, bar: SweepBar) -> Outcome:
    """Run all points of a plan that the dataset lacks, and record each one when it ends.

    Workers are started only if there is a point to run. Ctrl-C ends the sweep early: what has
    ended is recorded. Raises RunError when the scheduler is lost for the plan's `lost_s`.
    """
    return _Sweep(plan, dataset, bar).run()


class _Sweep:
    def __init__(self, plan: Plan, dataset: Dataset, bar: SweepBar) -> None:
        self._plan = plan
        self._source = plan.source
        self._dataset = dataset
        self._bar = bar
        self._outcome = Outcome()
        self._known: dict[str, Point] = {}
        self._queue: deque[Point] = deque()
        self._tries: dict[str, int] = {}
        self._batches: dict[Any, list[Point]] = {}
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._text: Any = None
        self._mean_s: float | None = None

    def run(self) -> Outcome:
        recorded = self._add(self._plan.first)
        self._bar.planned(recorded, 0)
        if not self._queue:
            return self._outcome
        CHILDREN.open()
        try:
            with interrupt.listening(), Cluster(self._plan.place) as there:
                try:
                    self._loop(there)
                finally:
                    # First the children, so that the cluster's threads return at once.
                    CHILDREN.close()
        except KeyboardInterrupt:
            self._outcome.interrupted = True
        except WriteError as error:
            self._outcome.unwritten = error
        return self._outcome

    def _add(self, points: Iterable[Point]) -> int:
        """Queue new points; return the number of points that are already recorded."""
        recorded = 0
        waiting = deque(points)
        while waiting:
            point = waiting.popleft()
            if point.key in self._known:
                continue
            self._known[point.key] = point
            self._outcome.points.append(point)
            if self._dataset.status(point.key) is None:
                self._queue.append(point)
            else:
                recorded += 1
                if self._source.follows:
                    waiting.extend(self._source.after(point, self._dataset.row(point.key)))
        return recorded

    def _loop(self, cluster: Cluster) -> None:
        counted = -_COUNT_WORKERS_S
        threads = 0
        while self._queue or self._batches:
            interrupt.check()
            if not cluster.connected():
                self._reconnect(cluster)
            if time.monotonic() - counted >= _COUNT_WORKERS_S:
                threads, counted = cluster.threads(), time.monotonic()
                self._bar.planned(0, threads)
                if not threads:
                    self._bar.waiting(f"no workers yet: {cluster.where.title}")
            while self._queue and len(self._batches) < _AHEAD * max(1, threads):
                self._submit(cluster, threads)
            try:
                future = self._ended.get(timeout=_LOOK_S)
            except queue.Empty:
                pass
            else:
                self._take(future)
            self._bar.tick()

    def _submit(self, cluster: Cluster, threads: int) -> None:
        share = len(self._queue) // (_AHEAD * max(1, threads))
        size = 1
        if self._mean_s is not None:
            size = int(_BATCH_S / max(self._mean_s, 1e-4))
        size = max(1, min(size, share, _MAX_BATCH))
        batch = [self._queue.popleft() for _ in range(min(size, len(self._queue)))]
        client = cluster.client
        if self._text is None:
            base, identity = self._plan.base, self._plan.design.identity
            about = {"base": identity, "text": base.text, "source": base.place}
            if base.laws:
                about["laws"] = law_files.pack(base.laws)
            self._text = client.submit(same, about, key=f"scenario-{identity}", pure=False)
        limits = (self._plan.spec.max_time_s, self._plan.spec.max_memory_bytes)
        jobs = [self._job(point) for point in batch]
        future = client.submit(run_batch, self._text, jobs, limits, pure=False)
        self._batches[future] = batch
        future.add_done_callback(self._ended.put)

    def _job(self, point: Point) -> dict[str, Any]:
        plan = self._plan
        keep = (plan.folder / "runs" / point.key).absolute()
        return {
            "key": point.key,
            "base": plan.design.identity,
            "sets": [*plan.base.sets, *point.sets],
            "on": plan.base.on,
            "jitter": plan.base.jitter,
            "code": cache.version(),
            "columns": plan.extra,
            "keep": str(keep) if plan.spec.keep else None,
        }

    def _take(self, future: Any) -> None:
        """Record the rows of a finished batch, and queue points without a result again, up to a
        limit of tries.
        """
        batch = self._batches.pop(future, None)
        if batch is None:
            return
        error = None
        rows: dict[str, dict[str, Any]] = {}
        if future.status == "finished":
            rows = {row["key"]: row for row in future.result()}
        elif future.status == "error":
            error = one_line(str(future.exception()))
        else:
            self._text = None  # cancelled: the scheduler no longer has the scenario either
        again = []
        for point in batch:
            row = rows.get(point.key)
            if row is None or row["status"] == LOST:
                tries = self._tries[point.key] = self._tries.get(point.key, 0) + 1
                if row is None and error is None:
                    tries = 0  # not its own fault: it never ran
                if tries < _TRIES:
                    again.append(point)
                    continue
                why = error or f"its process was killed {tries} times"
                row = {"key": point.key, "status": FAILED, "error": why}
            self._record(point, row)
        self._queue.extendleft(reversed(again))

    def _record(self, point: Point, row: dict[str, Any]) -> None:
        wall_s = row.get("wall_s")
        if wall_s is not None:
            mean_s = self._mean_s
            self._mean_s = wall_s if mean_s is None else mean_s + 0.2 * (wall_s - mean_s)
        row = {**row, **point.values, "overrides": " ".join(point.sets)}
        if self._dataset.record(row):
            self._bar.row(point.sets, row)
        self._add(self._source.after(point, row))

    def _reconnect(self, cluster: Cluster) -> None:
        """Wait for the scheduler, then submit all points in progress again; raise RunError if the
        wait is too long.
        """
        title = cluster.where.title
        self._bar.waiting(f"lost the scheduler: {title}")
        lost_s = self._plan.spec.lost_s
        until = time.monotonic() + lost_s
        while not cluster.reconnect():
            interrupt.check()
            self._bar.tick()
            if time.monotonic() > until:
                raise RunError(
                    f"{title}: no scheduler for {lost_s:g} s; "
                    "the points that have ended are kept, the same command goes on"
                )
            time.sleep(_LOOK_S)
        self._text = None
        for batch in self._batches.values():
            self._queue.extendleft(reversed(batch))
        self._batches.clear()
