"""Counts of verdicts by sentence."""

from __future__ import annotations

from waterfill.papers.claims import loading
from waterfill.papers.claims.sentences import by_sentence, sensitive, tally
from waterfill.papers.claims.verdict import Statement


def statement(name: str, **keys: str) -> Statement:
    known = {"id": name, "paper": "p", "experiment": "e", **keys}
    return Statement.read(known)


def test_a_sentence_counts_once_with_its_worst_verdict():
    one, two = statement("a", sentence="s"), statement("b", sentence="s")
    single = statement("c")
    for first, second, expected in (
        ("reproduced", "reproduced", (2, 0, 0)),
        ("reproduced", "cannot be checked", (1, 0, 1)),
        ("differs", "cannot be checked", (1, 1, 0)),
    ):
        found = by_sentence([(one, first), (two, second), (single, "reproduced")])
        assert tuple(found.values()) == expected


def test_sentences_of_two_papers_and_claims_of_two_experiments_are_apart():
    claims = [
        statement("a", sentence="s"),
        statement("a", sentence="s", paper="q"),
        statement("b"),
        statement("b", experiment="f"),
    ]
    assert by_sentence((claim, "reproduced") for claim in claims)["reproduced"] == 4


def test_claims_beyond_the_paper_do_not_count():
    claims = [(statement("a", beyond="ours"), "differs"), (statement("b"), "reproduced")]
    assert tally(claims) == (
        "of 1 sentence, 1 reproduced (100 %), 0 differ, 0 cannot be checked; "
        "1 of the 1 would notice a wrong law; 1 claim beyond the papers"
    )


def test_a_reproduced_sentence_is_sensitive_if_one_of_its_claims_is():
    one, two = statement("a", sentence="s", insensitive="w"), statement("b", sentence="s")
    ours = statement("c", sentence="t", beyond="ours")
    for claims, expected in (
        ([one], 0),
        ([one, two], 1),
        ([one, statement("d")], 1),
        ([ours], 0),
    ):
        assert sensitive((claim, "reproduced") for claim in claims) == expected
    assert sensitive([(one, "reproduced"), (two, "differs")]) == 0


def test_a_sentence_of_the_papers_has_several_claims():
    # A name that only one claim has is a typing error.
    for paper in {e.paper for e in loading.experiments()}:
        names = [c.sentence for e in loading.experiments() if e.paper == paper for c in e.claims]
        assert [name for name in names if name and names.count(name) == 1] == []
