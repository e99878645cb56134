"""Changes between two versions of a law, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence

from waterfill.analysis.seeds import estimate
from waterfill.evaluation.verdict import (
    NO_LIMIT,
    CellVerdict,
    Change,
    CriterionVerdict,
    LimitVerdict,
    Uncompared,
)


def between(before: Sequence[CriterionVerdict], after: Sequence[CriterionVerdict]) -> list[Change]:
    """Return the limits whose verdict changed, or whose value changed beyond its 95 % interval.

    Values are compared seed by seed. With a single seed any difference counts.
    """
    found = []
    for old, new in zip(before, after, strict=True):
        cells = {cell.name: cell for cell in old.cells}
        for cell in new.cells:
            if cell.added or cell.name not in cells:
                continue
            limits = {limit.id: limit for limit in cells[cell.name].limits}
            found += [
                _change(new.id, cell.name, limits[limit.id], limit)
                for limit in cell.limits
                if limit.id in limits
            ]
    return [change for change in found if _counts(change)]


def uncompared(
    baseline: str, before: Sequence[CriterionVerdict], law: str, after: Sequence[CriterionVerdict]
) -> list[Uncompared]:
    """Return the cells of the grid in which `baseline` or `law` was not evaluated."""
    found = []
    for old, new in zip(before, after, strict=True):
        cells = {cell.name: cell for cell in new.cells}
        for cell in old.cells:
            for name, one in ((baseline, cell), (law, cells[cell.name])):
                if _is_left_out(one):
                    reason = one.reason or "no reason is known"
                    found.append(
                        Uncompared(criterion=new.id, cell=cell.name, law=name, reason=reason)
                    )
                    break
    return found


def _is_left_out(cell: CellVerdict) -> bool:
    return cell.verdict == "not evaluated" and not cell.limits and cell.reason != NO_LIMIT


def _change(criterion: str, cell: str, old: LimitVerdict, new: LimitVerdict) -> Change:
    pairs = zip(old.values_, new.values_, strict=False)  # by seed, from the first
    apart = estimate([None if a is None or b is None else b - a for a, b in pairs])
    return Change(
        criterion=criterion,
        cell=cell,
        limit=new.id,
        unit=new.unit,
        before=old.value,
        after=new.value,
        difference=apart.mean,
        interval=apart.interval,
        verdict_before=old.verdict,
        verdict_after=new.verdict,
    )


def _counts(change: Change) -> bool:
    """Return True if a change is one of the verdict, or larger than chance."""
    if change.verdict_before != change.verdict_after:
        return True
    if change.difference is None:
        return change.before != change.after
    if change.interval is None:
        return change.difference != 0
    return not change.interval[0] <= 0 <= change.interval[1]
