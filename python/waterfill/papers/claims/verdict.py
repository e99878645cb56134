"""A claim's value from its runs, and the verdict on it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from waterfill.papers.claims.schema import UNITS, VERDICTS, Claim, Verdict
from waterfill.papers.measures.registry import MEASURES
from waterfill.runs.result import Document, Result


def edges(relation: str, value: float, slack: float) -> tuple[float, ...]:
    """Where a verdict changes: the value less or plus the tolerance, as the relation has it."""
    return {
        "=": (value - slack, value + slack),
        "<": (value + slack,),
        ">": (value - slack,),
    }[relation]


def verdict(claim: Claim, measured: float | None, recorded: bool = True) -> Verdict:
    """The verdict on a value in `unit`: infinite means never, None not measured.

    `recorded` is whether what is on record of single runs is of these; of short ones it is not.
    """
    slack = claim.tolerance_in_unit
    if measured is None or claim.paper_value is None or slack is None:
        return "cannot be checked"
    record = claim.over_seeds if recorded else None
    around = edges(claim.relation, claim.paper_value, slack)
    if record and record.parted_by(around) and record.holds(measured):
        return "cannot be checked"
    holds = {
        "=": abs(measured - claim.paper_value) <= slack,
        "<": measured < claim.paper_value + slack,
        ">": measured > claim.paper_value - slack,
    }
    return "reproduced" if holds[claim.relation] else "differs"


def measured(claim: Claim, runs: Mapping[str, Result], short: bool = False) -> float | None:
    """What the runs measure, in `unit`; None when they cannot."""
    if claim.measure is None or claim.unit is None:
        return None
    measure = MEASURES[claim.measure]
    args = claim.args | (claim.short_args if short else {})
    if measure.of == "nothing":
        value = measure.function(**args)
    elif measure.of == "runs":
        value = measure.function(runs, **args)
    else:
        value = measure.function(runs[claim.run or next(iter(runs))], **args)
    return None if value is None else value / UNITS[claim.unit][1]


def finite(value: float | None) -> float | None:
    """The value where JSON has it; None for infinity."""
    return value if value is not None and math.isfinite(value) else None


def document(claims: Sequence[Document]) -> Document:
    """The document of `reproduce --json`: the claims, and how many have each verdict."""
    counts = Counter(claim["verdict"] for claim in claims)
    return {"claims": list(claims), "counts": {verdict: counts[verdict] for verdict in VERDICTS}}
