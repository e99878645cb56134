"""The order of claims in the table of `reproduce`."""

from __future__ import annotations

from waterfill.cli import claim_tables
from waterfill.papers.claims.verdict import Judged


def test_changed_verdicts_come_first_then_what_differs() -> None:
    pairs = [
        ("reproduced", "reproduced"),
        ("cannot be checked", "cannot be checked"),
        ("differs", "differs"),
        ("reproduced", "differs"),
    ]
    listed = [
        Judged.read({"id": str(i), "paper": "p", "experiment": "e", "verdict": v, "expect": e})
        for i, (v, e) in enumerate(pairs)
    ]
    assert [claim.id for claim in sorted(listed, key=claim_tables._place)] == ["3", "2", "1", "0"]
