"""Verdicts by sentence: the papers' own statements, each counted once.

A claim with `beyond` is no statement of its paper, and is left out. Claims of one paper with the
same `sentence` count as one, and a claim without the key as a sentence of its own. A claim with
`insensitive` would notice no wrong law; a reproduced sentence of such claims alone counts apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from waterfill.papers.claims.schema import VERDICTS, Verdict
from waterfill.papers.claims.verdict import Statement

# The verdict that comes first here among a sentence's claims is the sentence's.
_WORST_FIRST: tuple[Verdict, ...] = ("differs", "cannot be checked", "reproduced")


def by_sentence(claims: Iterable[tuple[Statement, Verdict]]) -> dict[Verdict, int]:
    """Return the number of the papers' sentences with each verdict.

    A sentence is reproduced if all its claims are, and differs if one of them does.
    """
    verdicts: dict[tuple[str, str], set[Verdict]] = {}
    for claim, verdict in claims:
        if claim.beyond is None:
            verdicts.setdefault(_sentence(claim), set()).add(verdict)
    counts = Counter(next(v for v in _WORST_FIRST if v in found) for found in verdicts.values())
    return {verdict: counts[verdict] for verdict in VERDICTS}


def sensitive(claims: Iterable[tuple[Statement, Verdict]]) -> int:
    """Return the number of reproduced sentences with a claim that notices a wrong law."""
    known = list(claims)
    noticing = {
        _sentence(claim) for claim, _ in known if claim.beyond is None and claim.insensitive is None
    }
    return by_sentence(one for one in known if _sentence(one[0]) in noticing)["reproduced"]


def _sentence(claim: Statement) -> tuple[str, str]:
    """Return the paper, and the sentence that a claim counts for."""
    return claim.paper, claim.sentence or f"{claim.experiment}/{claim.id}"


def tally(claims: Iterable[tuple[Statement, Verdict]]) -> str:
    """Return a text with the number of sentences by verdict, and of claims beyond the papers."""
    known = list(claims)
    counts, beyond = by_sentence(known), sum(claim.beyond is not None for claim, _ in known)
    reproduced, differ, unchecked = (counts[verdict] for verdict in VERDICTS)
    total, noticing = reproduced + differ + unchecked, sensitive(known)
    share = f" ({100 * reproduced / total:.0f} %)" if total else ""
    return (
        f"of {total} sentence{'s' * (total != 1)}, {reproduced} reproduced{share}, "
        f"{differ} differ{'s' * (differ == 1)}, {unchecked} cannot be checked; "
        f"{noticing} of the {reproduced} would notice a wrong law; "
        f"{beyond} claim{'s' * (beyond != 1)} beyond the papers"
    )
