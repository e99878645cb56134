"""Verdicts of cells and criteria, from the verdicts on their limits.

A limit is a claim about the law, *met* if the claim is reproduced and *not met* if it differs. A
cell *meets* its
criterion if it meets all its limits. A criterion is

- *meets* if all its cells meet it,
- *fails* if none does,
- *mixed* if some do; the boundaries say where the verdict changes,
- *not evaluated* if no cell could be judged.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from waterfill.analysis.seeds import estimate
from waterfill.contract.record import Record
from waterfill.contract.summary import LimitedBy
from waterfill.papers.claims.schema import Claim, Relation
from waterfill.papers.claims.schema import Verdict as ClaimVerdict
from waterfill.papers.claims.verdict import absolute

Verdict: TypeAlias = Literal["meets", "fails", "mixed", "not evaluated"]
VERDICTS: tuple[Verdict, ...] = ("meets", "fails", "mixed", "not evaluated")
Met: TypeAlias = Literal["met", "not met", "no value"]
MET: Mapping[ClaimVerdict, Met] = {
    "reproduced": "met",
    "differs": "not met",
    "cannot be checked": "no value",
}
"""The verdict on a limit by that on its claim."""

NO_LIMIT = "no limit applies"
"""Reason of a cell in which no limit applies."""

# Part of the reference's share below which a law does not use the path, where that one does.
_USE = 0.5
_USED = 0.01


class Use(Record):
    """How a law's flows use the path in a cell: means over seeds, counts summed over seeds.

    `share` is their rate ÷ their max-min share. `limited_by` has the share of time of each limit.
    `warnings` are the runs' warnings by kind, each with the text of the first.
    """

    share: float | None
    rate_bps: float | None
    limited_by: LimitedBy | None
    loss_rate: float | None
    resent_bytes: float
    timeouts: float
    warnings: dict[str, str]


class LimitVerdict(Record):
    """Verdict on one limit in one cell, with values in `unit`.

    `value` is the mean of `values`, which has one value per seed, and `interval` its 95 % interval.
    A limit of another run has `of` and `factor`: `limit` is then the factor × that run's value.
    `others` has the mean value with each other law in the law's place. None is no value, or never
    reached. `about` is "law" for a limit on the law's own use of the path, next to others.
    """

    id: str
    statement: str
    source: str
    measure: str
    unit: str
    relation: Relation
    limit: float | None
    tolerance: float | None
    of: str | None
    factor: float | None
    verdict: Met
    value: float | None
    interval: list[float] | None
    values_: list[float | None]
    others: dict[str, float | None]
    about: str | None = None

    @property
    def score(self) -> float:
        """Distance from the limit as a share of it: positive if the limit is not met."""
        if self.verdict == "no value":
            return -math.inf
        if self.limit is None or self.value is None:
            return math.inf if self.verdict == "not met" else -math.inf
        return self._away(self.value, self.limit)

    def is_missed_by(self, value: float | None) -> bool:
        """Return True if another law's value does not meet this limit either."""
        return value is not None and self.limit is not None and self._away(value, self.limit) > 0

    def _away(self, value: float, limit: float) -> float:
        slack = self.tolerance or 0.0
        away = {"<": value - limit, ">": limit - value, "=": abs(value - limit)}[self.relation]
        return (away - slack) / max(abs(limit) + slack, 1e-12)


class CellVerdict(Record):
    """Verdict on one cell. `file` is the scenario of the law's run, relative to the output folder.

    `added` is true for cells between those of the grid, which the search for a boundary added.
    `endpoints` are the options `--endpoint` that repeat the cell.
    """

    name: str
    values_: dict[str, Any]
    verdict: Verdict
    seeds: list[int]
    limits: list[LimitVerdict]
    file: str = ""
    reason: str | None = None
    use: Use | None = None
    reference: Use | None = None
    added: bool = False
    endpoints: list[str] | None = None


class Boundary(Record):
    """The two neighbouring values of a numeric axis between which a verdict changes.

    `where` has the values of the other axes. `below` is the verdict at `low`.
    """

    axis: str
    low: Any
    high: Any
    below: Verdict
    above: Verdict
    where: dict[str, Any]


class CriterionVerdict(Record):
    """Verdict on one criterion, with its cells."""

    id: str
    section: str
    title: str
    question: str
    verdict: Verdict
    reason: str | None
    cells: list[CellVerdict]
    boundaries: list[Boundary]
    warnings: list[str]

    @property
    def deciding(self) -> tuple[CellVerdict, LimitVerdict] | None:
        """The cell and limit furthest above the limit, or closest to it if all are met."""
        found = [(cell, limit) for cell in self.cells for limit in cell.limits]
        known = [one for one in found if not one[0].added and one[1].verdict != "no value"]
        return max(known, key=lambda one: one[1].score) if known else None


class Change(Record):
    """Difference of a limit's value from the baseline's in one cell, in the limit's unit.

    `difference` is the mean over the seeds that both have, `interval` its 95 % interval.
    """

    criterion: str
    cell: str
    limit: str
    unit: str
    before: float | None
    after: float | None
    difference: float | None
    interval: list[float] | None
    verdict_before: Met
    verdict_after: Met


class Uncompared(Record):
    """A cell that is not compared with the baseline, because `law` was not evaluated in it."""

    criterion: str
    cell: str
    law: str
    reason: str


class VerdictChange(Record):
    """A criterion with another verdict, or with the same verdict and other verdicts on `cells`."""

    criterion: str
    section: str
    title: str
    before: Verdict
    after: Verdict
    cells: list[str]


class Sensitivity(Record):
    """Verdicts on the quick cells that change with one parameter, in its SI unit.

    `refused` says why the law cannot run with the value.
    """

    parameter: str
    unit: str
    default: float
    value: float
    refused: str | None
    changes: list[VerdictChange]


class Calibration(Record):
    """One comparison of a run with a formula. `tolerance` is a share of `expected`."""

    name: str
    formula: str
    source: str
    unit: str
    expected: float
    measured: float
    tolerance: float
    met: bool


class EvaluationDocument(Record):
    """The document of `evaluate --json`, and of verdicts.json.

    `changes` compares with the law `baseline`, in all cells of the grid except those in
    `uncompared`. `sensitivity` and `calibration` are there after the options of these names. In a
    suite for queues, `subject` is "queue", and `law` and `against` are names of queues. In one for
    laws, `recoveries` has the loss recovery of the law's flows and of the others', by name.
    `law_file` is the file of laws in Python, relative to the folder that holds the output's.
    """

    schema_version: int
    suite: str
    version: str
    title: str
    waterfill: str
    law: str
    against: list[str]
    options: dict[str, Any]
    criteria: list[CriterionVerdict]
    subject: str | None = None
    recoveries: dict[str, str] | None = None
    law_file: str | None = None
    baseline: str | None = None
    changes: list[Change] | None = None
    uncompared: list[Uncompared] | None = None
    sensitivity: list[Sensitivity] | None = None
    calibration: list[Calibration] | None = None


def of_cell(limits: Sequence[LimitVerdict]) -> tuple[Verdict, str | None]:
    """Return a cell's verdict, and the reason if the cell is not evaluated."""
    verdicts = {limit.verdict for limit in limits}
    if "not met" in verdicts:
        return "fails", None
    if "met" in verdicts:
        return "meets", None
    return "not evaluated", "no limit has a value in this cell" if limits else NO_LIMIT


def of_cells(cells: Iterable[CellVerdict]) -> tuple[Verdict, str | None]:
    """Return a criterion's verdict from the cells of its grid, and why it is not evaluated."""
    every = [cell for cell in cells if not cell.added]
    verdicts = {cell.verdict for cell in every} - {"not evaluated"}
    if not verdicts:
        reasons = dict.fromkeys(cell.reason for cell in every if cell.reason)
        return "not evaluated", "; ".join(reasons) or None
    if len(verdicts) == 2:
        return "mixed", None
    return ("meets" if "meets" in verdicts else "fails"), None


def is_decided(
    claim: Claim, values: Sequence[float | None], others: Sequence[float | None], precision: float
) -> bool:
    """Return True if further seeds would not change the verdict on a limit.

    That is so if half of the 95 % interval of the mean is at most `precision` × the mean, or if all
    values lie on one side of the limit and the mean is further from it than that half. A limit that
    refers to another run is compared seed by seed. Values that are not finite decide too: no mean
    exists, and further seeds cannot change that.
    """
    known = [value for value in values if value is not None and math.isfinite(value)]
    if len(known) < len(values) or not known:
        return True
    if len(known) < 2:
        return False
    mean = statistics.fmean(known)
    if _half(known) <= precision * abs(mean) and claim.of is None:
        return True
    apart: list[float] = []
    for place, value in enumerate(known):
        one = absolute(claim, others[place : place + 1])
        if one.paper_value is None or one.tolerance_in_unit is None:
            return True
        slack = one.tolerance_in_unit
        apart += {
            "<": [value - one.paper_value - slack],
            ">": [value - one.paper_value + slack],
            "=": [abs(value - one.paper_value) - slack],
        }[claim.relation]
    one_sided = all(x > 0 for x in apart) or all(x <= 0 for x in apart)
    if claim.of is not None and _half(apart) <= precision * abs(mean):
        return True
    return one_sided and abs(statistics.fmean(apart)) >= _half(apart)


def _half(values: Sequence[float]) -> float:
    """Return half of the 95 % interval of the mean."""
    interval = estimate(values).interval
    return math.inf if interval is None else (interval[1] - interval[0]) / 2


def unused(cell: CellVerdict, reference: str) -> str | None:
    """Return a warning if a cell's law uses less than half as much of the path as the reference."""
    mine, other = cell.use, cell.reference
    if mine is None or other is None or mine.share is None or other.share is None:
        return None
    if other.share < _USED or mine.share >= _USE * other.share:
        return None
    text = f"gets {mine.share:.0%} of its share"
    text += f", where {reference} in its place gets {other.share:.0%}"
    if mine.limited_by is not None:
        name, time = max(mine.limited_by.items(), key=lambda entry: entry[1])
        text += f", limited by {name} for {time:.0%} of the time"
    return text.replace("%", " %")


def mean_use(uses: Sequence[Use]) -> Use | None:
    """Return the use of the path over all seeds of a cell."""
    if not uses:
        return None
    limits = [use.limited_by for use in uses if use.limited_by is not None]
    warnings: dict[str, str] = {}
    for use in uses:
        warnings = use.warnings | warnings
    return Use(
        share=_mean(use.share for use in uses),
        rate_bps=_mean(use.rate_bps for use in uses),
        limited_by=LimitedBy.read(
            {key: statistics.fmean(one[key] for one in limits) for key in limits[0]}
        )
        if limits
        else None,
        loss_rate=_mean(use.loss_rate for use in uses),
        resent_bytes=sum(use.resent_bytes for use in uses),
        timeouts=sum(use.timeouts for use in uses),
        warnings=warnings,
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def counts(criteria: Iterable[CriterionVerdict]) -> Mapping[Verdict, int]:
    """Return the number of criteria with each verdict."""
    found = [criterion.verdict for criterion in criteria]
    return {verdict: found.count(verdict) for verdict in VERDICTS}
