"""Compare MaxNet on the running kernel with its requirements.

The cells are in `maxnet_cells`, what no scenario can express in `maxnet_special`. A run on linux
that failed its checks is marked in the table, and repeated by the next call. DIR/<cell>.png and
.svg have the curves of all backends, DIR/fig14.png and .svg rates over loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from validation import study
from validation.study import DAEMON, Option, Options, Study, StudyRun, failed_checks, on_linux
from validation.tables import markdown
from validation.testbed import maxnet_cells, maxnet_plots, maxnet_special
from validation.testbed.maxnet_cells import Goal, MaxnetCell, Of
from validation.testbed.maxnet_special import SPECIALS
from waterfill.errors import RunError
from waterfill.papers.measures import flows as flow_measures
from waterfill.papers.measures.registry import MEASURES
from waterfill.papers.measures.signals import sampled
from waterfill.runs.result import Document, Result

# The size of each unit in SI.
_UNITS = {"": 1.0, "%": 0.01, "ms": 1e-3, "ns": 1e-9, "Mbit/s": 1e6}


# --- measures beyond `waterfill.papers.measures` ------------------------------------------------


def drops_over(result: Result, *, link: str, start_s: float, stop_s: float) -> float | None:
    """Return the number of packets that a link's queue dropped in a time window."""
    _, drops = sampled(result, "links", link, "drops", start_s, stop_s)
    return float(drops.sum()) if len(drops) else None


def unequal(result: Result, *, flows: list[str], start_s: float, stop_s: float) -> float | None:
    """Return the largest relative deviation of some flows' mean rates from their common mean."""
    rates = [flow_measures.rate_over(result, flow=f, start_s=start_s, stop_s=stop_s) for f in flows]
    known = np.array([rate for rate in rates if rate is not None])
    if len(known) < len(flows) or not known.mean():
        return None
    return float(np.abs(known / known.mean() - 1).max())


_OWN: Mapping[str, Callable[..., float | None]] = {"drops_over": drops_over, "unequal": unequal}


def measured(result: Result, name: str, args: Mapping[str, object]) -> float | None:
    """Return a measure of a run in SI units, by the name of the measure."""
    own = _OWN.get(name)
    function: Callable[..., float | None] = own or MEASURES[name].function
    return function(result, **args)


# --- runs and goals -----------------------------------------------------------------------------


Runs = Mapping[str, Result]


class MaxnetCase(NamedTuple):
    """A MaxNet experiment by name, with a factor on its times."""

    name: str
    times: float

    @property
    def cell(self) -> MaxnetCell:
        """Scenario and goals of the experiment, with scaled times."""
        return _cells()[self.name].shorter(self.times)


@cache
def _cells() -> dict[str, MaxnetCell]:
    return {cell.name: cell for cell in maxnet_cells.cells()}


def runs(case: MaxnetCase) -> dict[str, StudyRun]:
    """Return an experiment's runs by backend, and other experiments' runs that its
    goals refer to.
    """
    found: dict[str, StudyRun] = {
        on: StudyRun(case.cell.scenario(on), on) for on in case.cell.backends
    }
    for goal in case.cell.goals:
        for of in (goal.what, goal.to):
            if isinstance(of, Of) and of.cell:
                other = case._replace(name=of.cell).cell
                found[_key(of)] = StudyRun(other.scenario(of.backend), of.backend)
    return found


def _key(of: Of) -> str:
    return f"{of.cell} {of.backend}" if of.cell else of.backend


def value(case: MaxnetCase, of: Of, runs: Runs) -> float | None:
    """Return a measure of a run, or None if the law or the backend does not provide it."""
    where = case._replace(name=of.cell).cell if of.cell else case.cell
    return measured(runs[_key(of)], of.measure, where.arguments(of))


def verdict(case: MaxnetCase, goal: Goal, runs: Runs) -> Document:
    """Return the measured value, reference and verdict of a goal. The verdict is None
    if unknown.
    """
    got = value(case, goal.what, runs)
    reference = value(case, goal.to, runs) if isinstance(goal.to, Of) else goal.to
    return {"goal": goal.name, "unit": goal.unit, "kind": goal.kind, "measured": got,
            "reference": reference, "within": goal.within, "scale": goal.scale,
            "ok": met(goal, got, reference)}  # fmt: skip


def document(found: Mapping[MaxnetCase, Runs]) -> Document:
    """Return the verdicts of every experiment, and the checks that failed in the run on linux."""
    return {
        case.name: {
            "title": case.cell.title, "differs": case.cell.differs, "times": case.times,
            "checks_failed": failed_checks(runs["linux"]),
            "goals": [verdict(case, goal, runs) for goal in case.cell.goals],
        }
        for case, runs in found.items()
    }  # fmt: skip


def draw(found: Mapping[MaxnetCase, Runs], stem: Path) -> None:
    """Draw the curves of each experiment, and every law's rates against the loss probability."""
    points: dict[str, list[tuple[float, str, float]]] = {}
    losses = {maxnet_cells.loss_name(loss): loss for loss in maxnet_cells.LOSSES}
    for case, runs in found.items():
        mine: dict[str, Result] = {on: runs[on] for on in case.cell.backends}
        maxnet_plots.save(
            maxnet_plots.curves(case.cell.title, case.cell.panels, mine), stem.with_name(case.name)
        )
        for on, run in mine.items() if case.name in losses else ():
            for flow in run.summary["flows"]:
                point = (losses[case.name], on, flow["rate_bps"] or 0.0)
                points.setdefault(flow["name"], []).append(point)
    if points:
        maxnet_plots.save(maxnet_plots.losses(points), stem.with_name("fig14"))


def met(goal: Goal, got: float | None, reference: float | None) -> bool | None:
    """Return True if a goal is met, or None without a reference or a measured value."""
    if goal.kind == "shown" or got is None or reference is None or not math.isfinite(got):
        return None
    wanted = reference * goal.scale
    if goal.kind == "near":
        return abs(got - wanted) <= goal.within * wanted
    return got >= wanted if goal.kind == "least" else got <= wanted


# --- the table --------------------------------------------------------------------------------


def table(document: Document) -> str:
    """Return all goals as Markdown, with one heading per experiment and one row per goal."""
    lines = []
    for name, cell in document.items():
        lines += [f"## {name}: {cell['title']}", ""]
        notes = [cell["differs"]] if cell["differs"] else []
        if cell["times"] != 1:
            notes.append(f"a trial, of {cell['times']:g} times the length")
        if cell["checks_failed"]:
            notes.append(f"invalid, failed checks: {', '.join(cell['checks_failed'])}")
        lines += [f"{'; '.join(notes)}.", ""] if notes else []
        lines += [markdown("|measured:|required|met", map(_row, cell["goals"])), ""]
    return "\n".join(lines)


def _row(goal: Document) -> list[str]:
    verdict = {True: "yes", False: "**no**", None: ""}[goal["ok"]]
    return [goal["goal"], _shown(goal, "measured"), _asked(goal), verdict]


def _shown(goal: Document, key: str, scale: float = 1.0) -> str:
    value = goal[key]
    if value is None:
        return "–"
    return f"{value * scale / _UNITS[goal['unit']]:.4g} {goal['unit']}".strip()


def _asked(goal: Document) -> str:
    if goal["kind"] == "shown":
        return ""
    reference = _shown(goal, "reference", goal["scale"])
    if goal["kind"] != "near":
        return f"at {goal['kind']} {reference}"
    off = ""
    if goal["measured"] is not None and goal["reference"]:
        off = f" ({goal['measured'] / (goal['reference'] * goal['scale']) - 1:+.1%})"
    return f"{reference} ± {goal['within']:.1%}{off}"


# --- the studies ------------------------------------------------------------------------------


def special(case: MaxnetCase) -> list[Document]:
    """Return the goals of a special experiment, which no scenario can express."""
    lacking = maxnet_special.missing(case.name)
    if lacking is not None:
        raise RunError(f"{case.name} needs {lacking}")
    return maxnet_special.run(case.name, case.times)


def special_document(found: Mapping[MaxnetCase, list[Document]]) -> Document:
    """Return the verdicts of all special experiments."""
    return {
        case.name: {
            "title": SPECIALS[case.name][0], "differs": "", "times": case.times,
            "checks_failed": [], "goals": goals,
        }
        for case, goals in found.items()
    }  # fmt: skip


def _named(names: Mapping[str, Any], options: Options) -> list[MaxnetCase]:
    return [MaxnetCase(name, options.times) for name in names]


def failed(document: Document) -> list[str]:
    """Return the missed goals and the runs that failed a check."""
    wrong = [f"{name}: failed checks: {', '.join(cell['checks_failed'])}"
             for name, cell in document.items() if cell["checks_failed"]]  # fmt: skip
    return wrong + [
        f"{name}: {goal['goal']}: missed"
        for name, cell in document.items() for goal in cell["goals"] if goal["ok"] is False
    ]  # fmt: skip


_OPTIONS = (
    study.only("fig1[01]*"),
    Option("--times", 1.0, "factor on all times: below 1 for a trial", low=0.01),
)
STUDY = Study(
    shows="MaxNet on the kernel meets its requirements, next to the simulator and the fluid model",
    minutes=25,
    needs=(on_linux(), DAEMON),
    options=_OPTIONS,
    quick={"only": "fig10-100M"},
    cases=lambda options: _named(_cells(), options),
    runs=runs,
    measure=lambda _, results: results,
    valid=study.passed_checks,
    table=lambda found: table(document(found)),
    document=document,
    figure=draw,
    failed=lambda found: failed(document(found)),
)
SPECIAL = Study(
    shows="MaxNet on the kernel at 10 Gbit/s, with 500 flows, through crashes and hostile paths",
    minutes=20,
    needs=(on_linux(http=True), DAEMON),
    options=_OPTIONS,
    quick={"only": "stripped"},
    cases=lambda options: _named(SPECIALS, options),
    measure=special,
    code=study.linux_code,
    table=lambda found: table(special_document(found)),
    document=special_document,
    failed=lambda found: failed(special_document(found)),
)
