"""Sensitivity of verdicts: numeric parameters of the law changed by 20 %, on the quick cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from waterfill.evaluation.plan import Plan
from waterfill.evaluation.verdict import CriterionVerdict, Sensitivity, VerdictChange
from waterfill.network import protocols
from waterfill.network.protocols import ParamInfo
from waterfill.runs.laws import infos, summaries

CHANGE = 0.2
"""Share by which a parameter is changed, down and up."""

Judge: TypeAlias = Callable[[Plan], Sequence[CriterionVerdict]]

_SUFFIX = {"rate": " bit/s", "time": " s", "volume": " B", "packets": " packets"}
_WHOLE = ("packets", "count")


def of(plan: Plan, judge: Judge) -> list[Sensitivity]:
    """Return which verdicts change with each parameter, by `judge`, which judges a plan's cells.

    Parameters without a number or with the value zero are left out. Whole numbers change by one
    at least. A flow that runs the law as a rival has the changed parameter too.
    """
    quick = replace(plan, subject=replace(plan.subject, quick=True))
    before = judge(quick)
    found = []
    for param, default in _numbers(quick):
        for factor in (1 - CHANGE, 1 + CHANGE):
            value = changed(param, default, factor)
            text = (
                f"params.{plan.subject.law}.{param.name}={value:.12g}{_SUFFIX.get(param.unit, '')}"
            )
            subject = replace(quick.subject, changed=(text,))
            found.append(
                _compared(param, default, value, before, judge(replace(quick, subject=subject)))
            )
    return found


def _numbers(plan: Plan) -> Iterator[tuple[ParamInfo, float]]:
    """Yield the law's numeric parameters with their values in the suite's cells, in SI units."""
    law = plan.subject.law
    known = infos(summaries(plan.subject.laws)) | protocols.load()
    scenarios = (
        cell.scenarios["law"]
        for criterion in plan.criteria()
        for cell in plan.cells(criterion)
        if "law" in cell.scenarios
    )
    scenario = next(scenarios, None)
    given = {} if scenario is None else scenario.params.get(law, {})
    for param in known[law].params:
        value = param.parse(given[param.name]) if param.name in given else param.default
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value:
            yield param, float(value)


def changed(param: ParamInfo, value: float, factor: float) -> float:
    """Return a parameter's value × `factor`; a whole number changes by one at least."""
    if param.unit not in _WHOLE:
        return value * factor
    step = max(round(abs(value * factor - value)), 1)
    return value + step if factor > 1 else value - step


def _compared(
    param: ParamInfo,
    default: float,
    value: float,
    before: Sequence[CriterionVerdict],
    after: Sequence[CriterionVerdict],
) -> Sensitivity:
    """Return the verdicts that differ, or why the law refuses the value."""
    judged = [one for one in before if one.verdict != "not evaluated"]
    left = {one.id: one for one in after if one.verdict == "not evaluated"}
    refused = None
    if judged and all(one.id in left for one in judged):
        refused = left[judged[0].id].reason or "not evaluated"
    return Sensitivity(
        parameter=param.name,
        unit=param.unit,
        default=default,
        value=value,
        refused=refused,
        changes=[] if refused else list(_differences(before, after)),
    )


def _differences(
    before: Sequence[CriterionVerdict], after: Sequence[CriterionVerdict]
) -> Iterator[VerdictChange]:
    for old, new in zip(before, after, strict=True):
        was = {cell.name: cell.verdict for cell in old.cells}
        cells = [cell.name for cell in new.cells if was.get(cell.name) != cell.verdict]
        if cells or old.verdict != new.verdict:
            yield VerdictChange(
                criterion=new.id, section=new.section, title=new.title, before=old.verdict,
                after=new.verdict, cells=cells,
            )  # fmt: skip
