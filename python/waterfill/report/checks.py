"""Checks of the documents that a page is built from, because anyone may have written them.

A document is compared with the types of `waterfill.contract`, so that a page is made of what it
says or not at all: each failure is one sentence that names the file, the key and the problem.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from waterfill.analysis.documents import Difference, Estimate
from waterfill.contract import shapes, versions
from waterfill.contract.record import Record, hints
from waterfill.contract.summary import Summary
from waterfill.errors import InputError, shown
from waterfill.papers.claims.verdict import Judged
from waterfill.runs.files import read_text
from waterfill.runs.stored import SUMMARY, StoredResult, load_run

Read = TypeVar("Read", bound=Record)


class Comparison(Record):
    """The document of `compare --json`, with only the keys that its page needs."""

    runs: dict[str, Any]
    seeds: list[int] | None = None
    over_seeds: dict[str, dict[str, Estimate]] | None = None
    differences_over_seeds: list[Difference] | None = None


class SweepDraw(Record):
    """Ranges of a sweep with randomly drawn points, with only the keys that its page needs."""

    samples: int = 0


class Sweep(Record):
    """The document of a sweep, with only the keys that its page needs."""

    columns: list[list[str]]
    axes: dict[str, str]
    meanings: dict[str, str]
    scenario: str
    backend: str
    version: str
    sets: list[str]
    draw: SweepDraw | None = None


class _Claims(Record):
    claims: list[Judged]


def comparison(path: Path) -> Comparison:
    """Read compare.json; raise InputError unless the file names runs in folders next to it."""
    found = document(path, Comparison)
    if not found.runs:
        raise InputError(str(path), "runs", "must name at least one run")
    for name in found.runs:
        if not name or Path(name).name != name or name in (".", ".."):
            message = f"must be names of folders next to it, got {shown(name)}"
            raise InputError(str(path), "runs", message)
    over_seeds = found.over_seeds or {}
    missing = [name for name in over_seeds if name not in found.runs]
    spans = [one.interval for mine in over_seeds.values() for one in mine.values()]
    if any(span is not None and len(span) != 2 for span in spans):
        raise InputError(str(path), "over_seeds", "must be intervals of two numbers")
    if missing or ("over_seeds" in found) != ("seeds" in found):
        raise InputError(
            str(path), "over_seeds", "does not belong to the runs and seeds of this file"
        )
    return found


def sweep(path: Path) -> Sweep:
    """Read sweep.json; raise InputError unless the file describes a sweep's points."""
    found = document(path, Sweep)
    if any(len(column) != 2 for column in found.columns):
        raise InputError(str(path), "columns", "must be pairs of name and type")
    return found


def claims(path: Path) -> list[Judged]:
    """Read the claims of a claims.json; raise InputError unless the file has the form that
    `reproduce` writes.
    """
    found = document(path, _Claims).claims
    extra = {name for claim in found for name in claim} - hints(Judged).keys()
    if extra:
        message = f"unknown key {shown(min(extra))}"
        raise InputError(str(path), "claims", message)
    ranges = [claim.over_seeds for claim in found if claim.over_seeds is not None]
    if any(one.least > one.most for one in ranges):
        raise InputError(str(path), "claims", "expected ranges from least to most")
    return found


def run(folder: Path) -> StoredResult:
    """Read a run's directory; raise InputError unless its summary is valid output of `run -o`."""
    document(folder / SUMMARY, Summary)
    found = load_run(folder)
    summary, path = found.summary, str(folder / SUMMARY)
    window, duration_s = summary.measure_s, summary.duration_s
    if duration_s <= 0:
        raise InputError(path, "duration_s", f"must be above zero, got {duration_s:g} s")
    if len(window) != 2 or not 0 <= window[0] <= window[1] <= duration_s:
        raise InputError(path, "measure_s", f"must be two times in the run, got {shown(window)}")
    network = found.network
    wanted = sum(flow.count for flow in network.flows)
    counted = sum(flow.count for flow in summary.flows)
    if wanted != counted:
        message = f"has {counted} flows, but scenario.toml has {wanted}"
        raise InputError(path, "flows", message)
    names = [link.name for link in network.links]
    if names != [link.name for link in summary.links]:
        raise InputError(path, "links", "differ from the links of scenario.toml")
    return found


def document(path: Path, shape: type[Read]) -> Read:
    """Read a JSON document as a record of the given class; raise InputError if the document does
    not fit.
    """
    try:
        text = read_text(path)
        found = json.loads(text)
        if "\\ud" in text.lower():
            # An escape may be half of a character, which no page can hold: raises ValueError.
            json.dumps(found, ensure_ascii=False).encode("utf-8")
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise InputError(str(path), "", f"not a JSON document: {reason}") from None
    versions.check(found, str(path))
    wrong = shapes.wrong(found, shape)
    if wrong is not None:
        key, problem = wrong
        raise InputError(str(path), key, problem)
    return shape.read(found)
