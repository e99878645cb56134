"""A judged claim as text: its two values, and a remark on its verdict."""

from __future__ import annotations

from collections.abc import Iterable

from waterfill.papers.claims.verdict import Judged


def remark(claim: Judged) -> str:
    """Return the reason why a verdict differs from the paper or is in doubt; empty if neither.

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
    """Return whether any of these verdicts is of a short version."""
    return any(claim.short is not None for claim in claims)


def claim_cells(claim: Judged) -> tuple[str, str]:
    """Return the paper's value and the measured one as text."""
    return paper_value(claim).strip(), measured_value(claim).strip()


def paper_value(claim: Judged) -> str:
    """Return the paper's value with relation, tolerance and unit; a dash without one."""
    if claim.paper_value is None:
        return "–"
    sign = "" if claim.relation == "=" else f"{claim.relation} "
    tolerance = f" ± {claim.tolerance:.3g}" if claim.tolerance else ""
    return f"{sign}{claim.paper_value:.4g}{tolerance} {_unit(claim)}"


def measured_value(claim: Judged) -> str:
    """Return the measured value with its unit; "never" or a dash without one."""
    if claim.measured is None:
        return "never" if claim.verdict == "differs" else "–"
    return f"{claim.measured:.4g} {_unit(claim)}"


def _unit(claim: Judged) -> str:
    return "" if claim.unit in (None, "ratio") else str(claim.unit)
