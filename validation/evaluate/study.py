"""Evaluate laws whose verdicts are known, in the suite of RFC 9743 with `--quick`.

A known answer is a criterion's verdict that the literature gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from validation.evaluate.laws import LAWS
from validation.study import Options, Report, Study
from validation.tables import markdown
from waterfill.evaluation.api import evaluate
from waterfill.runs.laws import PythonLaw


class KnownAnswer(NamedTuple):
    """A law, the reference, a criterion, and its verdict with a source."""

    law: str
    against: str
    criterion: str
    verdict: str
    source: str
    sets: tuple[str, ...] = ()


DEFAULT_MODE = ("params.copa.competitive=false",)
KNOWN = (
    KnownAnswer("bbr", "cubic", "5.1.3-loss", "mixed", "RFC 9743 section 5.1.3"),
    KnownAnswer("bbr", "cubic", "5.1.2-bufferbloat", "meets", "the draft of BBRv1, section 1"),
    KnownAnswer("sack", "cubic", "5.1.2-bufferbloat", "mixed", "RFC 9743 section 5.1.2"),
    KnownAnswer("cubic", "cubic", "5.1.2-bufferbloat", "mixed", "RFC 9743 section 5.1.2"),
    KnownAnswer("sack", "cubic", "7.1-aqm", "meets", "RFC 8290 section 1"),
    KnownAnswer("cubic", "cubic", "7.1-aqm", "meets", "RFC 8290 section 1"),
    KnownAnswer("highspeed", "sack", "5.2.1-large-bdp", "fails", "RFC 9743 section 5.2.1"),
    KnownAnswer("copa", "cubic", "5.1.1-collapse", "fails", "copa-2018 section 2.1"),
    KnownAnswer("copa", "cubic", "5.2-starvation", "fails", "copa-2018 section 2.2", DEFAULT_MODE),
)  # fmt: skip


def verdicts(
    law: str,
    against: str,
    criteria: Iterable[str] = (),
    sets: Iterable[str] = (),
    suite: str = "rfc9743",
    laws: Mapping[str, PythonLaw] | None = None,
) -> dict[str, str]:
    """Return the quick verdicts of a law on some criteria of a suite (default: all), by name.

    `laws` has the law if it is neither built-in nor in `laws.py`.
    """
    own = laws or ({law: LAWS[law]} if law in LAWS else {})
    found = evaluate(
        law, suite=suite, against=[against], laws=own, quick=True, only=tuple(criteria), set=sets
    )
    return {criterion.id: criterion.verdict for criterion in found.document.criteria}


def known() -> tuple[str, list[str]]:
    """Return the table of known answers, and those that did not come out."""
    rows, failed = [], []
    for one in KNOWN:
        found = verdicts(one.law, one.against, [one.criterion], one.sets)[one.criterion]
        law = " ".join((f"`{one.law}`", *(f"`{text}`" for text in one.sets)))
        rows.append([law, one.criterion, one.verdict, found, one.source])
        if found != one.verdict:
            failed.append(f"{one.law}: {one.criterion} {found} instead of {one.verdict}")
    return markdown("law|criterion|known|found|source", rows), failed


def work(options: Options) -> Report:
    """Evaluate all known answers."""
    table, failed = known()
    return Report(table, failed=failed)


STUDY: Study[None, None] = Study(
    shows="the suite of RFC 9743 gives the known answers",
    minutes=1,
    work=work,
)
