"""The study of mutants: how one is applied, which are tried, and the table."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from validation import mutants
from validation.mutants import Mutant, MutationCase, MutationRow

SOURCE = "fn a() -> u32 {\n    b + 1\n}\n"


def mutant(number: int, file: str = "crates/waterfill-laws/src/protocols/rcp.rs") -> Mutant:
    return Mutant(f"{file}:{number}: replace + with -", file, (2, 7), (2, 8), "-")


def test_a_mutant_changes_one_place() -> None:
    assert mutant(1).applied(SOURCE) == "fn a() -> u32 {\n    b - /* mutant */ 1\n}\n"


def test_laws_take_turns_and_a_shard_is_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "listed", lambda law: [mutant(n) for n in range(10)])
    monkeypatch.setattr(mutants, "digest", lambda file: "")
    asked = SimpleNamespace(laws=("rcp", "xcp"), shard=(0, 5))
    cases = mutants.cases(asked)
    assert [case.law for case in cases] == ["rcp", "xcp", "rcp", "xcp"]
    assert cases == mutants.cases(asked)
    assert mutants._shard("3/10") == (3, 10)
    with pytest.raises(ValueError, match="K from 0 to N-1"):
        mutants._shard("10/10")


def test_the_share_is_of_what_compiles_and_what_is_missed_is_named() -> None:
    results = ["caught", "caught", "missed", "unviable"]
    found = {
        MutationCase("rcp", mutant(n), ""): MutationRow(one, "", 1.0)
        for n, one in enumerate(results)
    }
    text = mutants.table(found)
    assert "| rcp | 4 | 3 | 2 | 66.7% |" in text
    assert text.endswith(":2: replace + with -`")
    assert mutants.STUDY.valid is not None
    assert not mutants.STUDY.valid(MutationRow("missed", "", 1.0))
