"""Evaluate laws whose verdicts are known, and laws with a planted fault, in the suite of RFC 9743.

A known answer is a criterion's verdict that the literature gives. A fault is *found* if a criterion
that the healthy law meets is not met by the law with the fault, and *named* if the criterion made
for this fault is among these. A healthy variant must have none. Both use `--quick`.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from validation.evaluate.laws import BASE, FAULTS, HEALTHY, LAWS
from validation.study import Option, Options, Report, Study
from validation.tables import markdown
from waterfill.evaluation.api import evaluate
from waterfill.evaluation.suites import suites_folder


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
    criteria: Iterable[str] | None = None,
    sets: Iterable[str] = (),
    suite: str = "rfc9743",
) -> dict[str, str]:
    """Return the quick verdicts of a law on some criteria of a suite (default: all), by name."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / suite
        shutil.copytree(suites_folder() / suite, folder)
        if criteria is not None:
            kept = {*criteria, "suite"}
            for file in folder.glob("*.toml"):
                if file.stem not in kept:
                    file.unlink()
        own = {law: LAWS[law]} if law in LAWS else {}
        found = evaluate(law, suite=folder, against=[against], laws=own, quick=True, set=sets)
    return {criterion.id: criterion.verdict for criterion in found.document.criteria}


def worse(verdict: Mapping[str, str], base: Mapping[str, str]) -> list[str]:
    """Return the criteria on which a law is worse than another: fails before mixed before meets."""
    order = ("fails", "mixed", "meets")
    return [
        criterion
        for criterion, one in verdict.items()
        if one in order and base[criterion] in order
        if order.index(one) < order.index(base[criterion])
    ]


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


def planted(names: Sequence[str]) -> tuple[str, list[str]]:
    """Return the table of laws with and without a fault, and what was not as it should be."""
    base = verdicts(BASE, "cubic")
    rows, failed = [], []
    for name in names:
        found = [] if name == BASE else worse(verdicts(name, "cubic"), base)
        source, expected = FAULTS.get(name, (HEALTHY.get(name), None))
        said = (source.__doc__ or "").removeprefix("Fault: ").splitlines()[0].rstrip(".")
        rows.append([f"`{name}`", said, expected or "–", ", ".join(found) or "–"])
        if expected is None and found:
            failed.append(f"{name} is healthy, but is worse in {', '.join(found)}")
        elif expected is not None and not any(one.startswith(expected) for one in found):
            failed.append(f"{name}: {expected} did not find the fault")
    return markdown("law|what it does|criterion for it|worse than `healthy` in", rows), failed


def work(options: Options) -> Report:
    """Evaluate all known answers and the chosen laws."""
    first, missed = known()
    second, wrong = planted(options.laws)
    return Report(f"{first}\n\n{second}", failed=[*missed, *wrong])


STUDY: Study[None, None] = Study(
    shows="the suite of RFC 9743 gives the known answers, and finds and names planted faults",
    minutes=4,
    options=(Option("laws", tuple(LAWS), "laws of validation/evaluate/laws.py", tuple(LAWS)),),
    quick={"laws": ("no-timeout", "no-restart")},
    work=work,
)
