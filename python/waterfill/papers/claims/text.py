"""A judged claim as text: its two values and what is to be said about its verdict."""

from __future__ import annotations

from waterfill.runs.result import Document


def remark(claim: Document) -> str:
    """What is to be said about a verdict: why it is not the paper's, or why it might not be.

    And where single runs lie, when chance has a part in it.
    """
    told = claim["verdict"] != "reproduced" or claim["expect"] == "reproduced"
    record = claim["over_seeds"]
    parts = [claim["why"]] if told and claim["why"] else []
    if record and record["least"] < record["most"]:
        unit = f" {_unit(claim)}".rstrip()
        lie = f"{record['least']:.4g} to {record['most']:.4g}{unit}"
        parts.append(f"{record['runs']} single runs, each with its own seed: {lie}.")
    return " ".join(parts)


def claim_cells(claim: Document) -> tuple[str, str]:
    """The paper's value and the measured one, as text."""
    return paper_value(claim).strip(), measured_value(claim).strip()


def paper_value(claim: Document) -> str:
    """The paper's value with its relation, tolerance and unit; a dash without one."""
    if claim["paper_value"] is None:
        return "–"
    sign = "" if claim["relation"] == "=" else f"{claim['relation']} "
    slack = f" ± {claim['tolerance']:.3g}" if claim["tolerance"] else ""
    return f"{sign}{claim['paper_value']:.4g}{slack} {_unit(claim)}"


def measured_value(claim: Document) -> str:
    """The measured value with its unit; "never" or a dash without one."""
    if claim["measured"] is None:
        return "never" if claim["verdict"] == "differs" else "–"
    return f"{claim['measured']:.4g} {_unit(claim)}"


def _unit(claim: Document) -> str:
    return "" if claim["unit"] in (None, "ratio") else str(claim["unit"])
