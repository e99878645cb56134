"""Assessments of the explicit laws by RFC 9743: a page, and a section on each law's page.

They are made from recorded verdicts, one file a law, which this writes again:
`waterfill evaluate LAW --seeds 1 --record validation/evaluate/explicit/LAW.toml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from waterfill.evaluation import suites
from waterfill.evaluation.expected import ExpectedFile
from waterfill.papers.claims.loading import read_file

ROOT = Path(__file__).resolve().parents[1]
RECORDS = Path("validation/evaluate/explicit")
PAGE = Path("docs/validation/evaluate-explicit.md")

_SIGNS = {"meets": "✓", "fails": "✗", "not evaluated": "–"}
_BEGIN = "<!-- table: made by make docs from validation/evaluate/explicit -->\n\n"
_END = "\n\n<!-- end -->"


def records(root: Path = ROOT) -> dict[str, ExpectedFile]:
    """Return the recorded verdicts by law."""
    return {
        path.stem: read_file(path, ExpectedFile) for path in sorted((root / RECORDS).glob("*.toml"))
    }


def page(found: Mapping[str, ExpectedFile], text: str) -> str:
    """Return the page with a table of all verdicts in place of the one in `text`."""
    criteria = suites.load("rfc9743").criteria
    judged = [
        one for one in criteria
        if any(file.verdicts.get(one.id, "not evaluated") != "not evaluated"
               for file in found.values())
    ]  # fmt: skip
    heads = ["criterion", *found]
    lines = [f"| {' | '.join(heads)} |", "|---|" + ":-:|" * len(found)]
    lines += [
        f"| {one.content.section} {one.content.title} | "
        + " | ".join(_sign(file, one.id) for file in found.values())
        + " |"
        for one in judged
    ]
    met = [sum(verdict == "meets" for verdict in file.verdicts.values()) for file in found.values()]
    lines.append(f"| **meets**, of {len(judged)} | {' | '.join(map(str, met))} |")
    head, _, rest = text.partition(_BEGIN)
    return f"{head}{_BEGIN}{chr(10).join(lines)}{_END}{rest.partition(_END)[2]}"


def _sign(file: ExpectedFile, criterion: str) -> str:
    verdict = file.verdicts.get(criterion, "not evaluated")
    return _SIGNS.get(verdict) or str(len(file.fails.get(criterion, ())))


def section(file: ExpectedFile) -> str:
    """Return the section of a law's page."""
    titles = {
        one.id: f"{one.content.title} ({one.content.section})"
        for one in suites.load("rfc9743").criteria
    }
    by = {
        verdict: [titles[name] for name, one in file.verdicts.items() if one == verdict]
        for verdict in ("meets", "fails", "mixed", "not evaluated")
    }
    judged = sum(len(names) for verdict, names in by.items() if verdict != "not evaluated")
    text = (
        f"By [the criteria of RFC 9743](../../validation/evaluate-explicit.md), with all routers "
        f"running the law, it meets {len(by['meets'])} of {judged}."
    )
    if by["fails"]:
        text += f" It fails in all cells of {', '.join(by['fails'])}."
    if by["mixed"]:
        text += f" It fails in some cells of {', '.join(by['mixed'])}."
    return f"### Assessment by RFC 9743\n\n{text}\n"
