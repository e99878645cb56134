"""Abstract of an evaluation, in the form that RFC 9743 §3.2 requires of a specification.

An abstract has to say whether the law is considered safe for use on the Internet, and where it is
not recommended. Both are stated here as far as the verdicts carry, because a consensus is not
something that a program can state.
"""

from __future__ import annotations

from collections.abc import Sequence

from waterfill.evaluation.text import boundaries, failing
from waterfill.evaluation.verdict import CriterionVerdict, EvaluationDocument

_OTHERS = ("5.1.1", "5.1.3", "5.2", "7.2", "7.6")
_MOST = 3


def paragraphs(document: EvaluationDocument) -> list[str]:
    """Return the abstract's paragraphs: safety for others, limits of use, what was not evaluated.

    Only the suite `rfc9743` has a paragraph on safety, for other suites count differently.
    """
    judged = [one for one in document.criteria if one.verdict != "not evaluated"]
    left = len(document.criteria) - len(judged)
    harm = [one for one in judged if _concerns_others(one)]
    found = [_safety(document.law, harm)] if document.suite == "rfc9743" and harm else []
    own = [one for one in judged if not found or one not in harm]
    found.append(_use(document.law, own, "other criteria" if found else "criteria"))
    if left:
        found.append(
            f"{_criteria(left)} of {len(document.criteria)} could not be evaluated and say nothing "
            f"about {document.law}; the reasons are listed."
        )
    own_recovery, reference = (
        (document.recoveries or {}).get(name) for name in (document.law, document.against[0])
    )
    if own_recovery != reference:
        found.append(
            f"Flows of {document.law} find losses by {own_recovery}, those of "
            f"{document.against[0]} by {reference}: with --recovery {reference} only the laws "
            "differ."
        )
    if document.options.get("quick"):
        found.append(
            "This is a quick evaluation: it has fewer and shorter cells, and one seed. With "
            "another seed, a verdict near its limit may be another one."
        )
    return found


def _concerns_others(one: CriterionVerdict) -> bool:
    """Return True for criteria on collapse, loss, other flows, circuit breakers, misbehavior,
    unless only limits on the law's own use are not met.
    """
    if not any(one.section == own or one.section.startswith(f"{own}.") for own in _OTHERS):
        return False
    missed = [limit for cell in one.cells for limit in cell.limits if limit.verdict == "not met"]
    return not missed or any(limit.about != "law" for limit in missed)


def _safety(law: str, harm: Sequence[CriterionVerdict]) -> str:
    missed = [one for one in harm if one.verdict != "meets"]
    sections = "§5.1.1, 5.1.3, 5.2, 7.2 and 7.6"
    if not missed:
        return (
            f"Safety: {law} meets all {_criteria(len(harm))} on congestion collapse, loss and harm "
            f"to other flows ({sections}). Nothing here speaks against its use on the Internet. "
            "A statement that it is safe needs experience with deployment and the IETF's consensus."
        )
    return (
        f"Safety: {law} does not meet {_criteria(len(missed))} of {len(harm)} on congestion "
        f"collapse, loss and harm to other flows ({sections}). These results alone do not support "
        f"a statement that it is safe for use on the Internet: {_listed(missed)}."
    )


def _use(law: str, own: Sequence[CriterionVerdict], criteria: str) -> str:
    missed = [one for one in own if one.verdict != "meets"]
    if not own:
        return f"No criterion on the performance of {law} was evaluated."
    if not missed:
        return (
            f"Use: {law} meets all {len(own)} {criteria}, so these results name no environment "
            "in which it is not recommended."
        )
    return (
        f"Use: {law} meets {len(own) - len(missed)} of {len(own)} {criteria}. It is not "
        f"recommended in the environments of these: {_listed(missed)}."
    )


def _listed(criteria: Sequence[CriterionVerdict]) -> str:
    """Return criteria that are not met, each with its boundary or with the cells that fail."""
    return "; ".join(f"{one.title} (§{one.section}), {_where(one)}" for one in criteria)


def _where(one: CriterionVerdict) -> str:
    if one.verdict == "fails":
        return "not met in any cell"
    found = boundaries(one)
    if found and len(found) <= _MOST:
        return "; ".join(found)
    return f"not met in some cells ({failing(one, _MOST)})"


def _criteria(count: int) -> str:
    return "1 criterion" if count == 1 else f"{count} criteria"
