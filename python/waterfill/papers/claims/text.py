"""Judged claims as text: the paper's and the measured value, and a remark on the verdict."""

from __future__ import annotations

from collections.abc import Iterable

from waterfill.papers.claims.verdict import Judged


def remark(claim: Judged) -> str:
    """Return the remark on a verdict, such as the reason for a difference from the paper, or an
    empty text.

    For a random claim it adds the range of single runs, for a short version what it changed.
    """
    explained = claim.verdict != "reproduced" or claim.expect == "reproduced"
    record = claim.over_seeds
    parts = [claim.why] if explained and claim.why else []
    if record and record.least < record.most:
        unit = f" {_unit(claim)}".rstrip()
        span = f"{record.least:.4g} to {record.most:.4g}{unit}"
        parts.append(f"{record.runs} single runs, each with its own seed: {span}.")
    if claim.short:
        parts.append(f"Short version: {', '.join(claim.short)}.")
    return " ".join(parts)


SHORT_TITLE = "short version: shorter runs of fewer cases, not the paper's experiment"


def is_short(claims: Iterable[Judged]) -> bool:
    """Return True if any of these verdicts belongs to a short version."""
    return any(claim.short is not None for claim in claims)


def claim_cells(claim: Judged) -> tuple[str, str]:
    """Return the paper's value and the measured value of a claim as text."""
    return paper_value(claim).strip(), measured_value(claim).strip()


def paper_value(claim: Judged) -> str:
    """Return the paper's value with its relation, tolerance and unit, or a dash without a value."""
    if claim.paper_value is None:
        return "–"
    sign = "" if claim.relation == "=" else f"{claim.relation} "
    tolerance = f" ± {claim.tolerance:.3g}" if claim.tolerance else ""
    return f"{sign}{claim.paper_value:.4g}{tolerance} {_unit(claim)}"


def measured_value(claim: Judged) -> str:
    """Return the measured value with its unit; if there is no value, return "never" or a dash."""
    if claim.measured is None:
        return "never" if claim.verdict == "differs" else "–"
    return f"{claim.measured:.4g} {_unit(claim)}"


def _unit(claim: Judged) -> str:
    return "" if claim.unit in (None, "ratio") else str(claim.unit)
