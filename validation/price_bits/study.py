"""Study of price bits, described in the package's docstring."""

from __future__ import annotations

from collections.abc import Mapping

from validation.price_bits import cases, report
from validation.price_bits.cases import PriceCase, PriceRow
from validation.price_bits.claims import claims
from validation.study import Option, Study, StudyRun


def text(found: Mapping[PriceCase, PriceRow]) -> str:
    """Return the claims, gain margins and measurements as text."""
    parts = (report.claim_table(claims(found)), report.margin_table(), report.row_table(found))
    return "\n\n".join(parts)


STUDY = Study(
    shows="the cost of 5, 7 and 20 bits of a law's signal in load, queue and shares",
    minutes=2,
    options=(Option("laws", cases.LAWS, "default: all", cases.LAWS),),
    cases=lambda options: cases.all_cases(options.laws),
    runs=lambda case: {"": StudyRun(cases.scenario(case))},
    measure=lambda case, results: cases.measure(case, results[""]),
    table=text,
    figure=report.draw,
)
