"""A short replay of the fuzz targets in Python: the committed inputs, and drawn ones."""

from __future__ import annotations

import random
import re
import time

import pytest

from known import ROOT
from validation.fuzz_python import __main__ as fuzz
from validation.fuzz_python import mutate, outcome
from validation.fuzz_python.choices import Choices
from validation.fuzz_python.targets import TARGETS
from waterfill.errors import InputError

# Drawn inputs beside the committed ones: together a few seconds of one core.
DRAWN = {
    "scenario": 100, "set": 60, "numbers": 2000, "imports": 150, "tables": 300, "claims": 100,
    "studio": 60, "run": 60, "theory": 4, "result": 12, "cache": 40, "sweep": 20, "reports": 3,
    "figures": 2,
}  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_is_found(name, tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz, "OUT", tmp_path)
    run = fuzz.replay(name, DRAWN[name])
    kept = "\n".join(path.read_text() for path in tmp_path.rglob("*.txt"))
    assert not run.found, kept
    assert fuzz.corpus(name)  # a lost file would replay nothing
    assert run.executions == DRAWN[name] + len(fuzz.corpus(name))


def test_every_kind_of_finding_is_found(tmp_path, monkeypatch):
    def refuse(message):
        raise InputError("s.toml", "key", message)

    for wrong in (
        lambda: {}["a"],
        lambda: refuse("KeyError happened"),
        lambda: refuse("expected an <object at 0x7f>"),
        lambda: (_ for _ in ()).throw(MemoryError()),
        lambda: [1].index(2),
    ):
        with pytest.raises(outcome.Finding):
            outcome.read(wrong)
    assert outcome.read(lambda: refuse("expected a rate, got 1")) is None
    assert outcome.read(lambda: refuse("got ValueError"), "a file with ValueError in it") is None
    monkeypatch.setattr(fuzz, "OUT", tmp_path)
    run = fuzz.FuzzRun("numbers", tmp_path)
    run._check = lambda data, folder: outcome.read(lambda: 1 / len(data))
    run.one(b"")
    run.one(b"")
    run.one(b"1")
    assert list(run.found.values()) == [2]
    (found,) = tmp_path.glob("found/*.bin")
    assert found.read_bytes() == b""


def test_time_is_limited():
    def forever():
        with outcome.within(0.05):
            while True:
                pass

    with pytest.raises(outcome.OutOfTime):
        forever()


def test_time_that_other_programs_take_does_not_count_and_waiting_is_limited():
    with outcome.within(0.05):
        time.sleep(0.2)
    with pytest.raises(outcome.OutOfTime), outcome.within(0.01):
        time.sleep(5)


def test_mutations_change_a_document_and_leave_the_original():
    given = {"a": {"b": [1, 2, {"c": "1 ms"}]}, "d": "x"}
    before = str(given)
    chance = random.Random(1)
    changed = [mutate.document(given, Choices(chance.randbytes(20))) for _ in range(200)]
    assert str(given) == before
    assert len({str(one) for one in changed}) > 100


def test_the_page_names_every_target():
    page = (ROOT / "docs/validation/fuzzing.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `([a-z]+)` \|", page, re.MULTILINE))
    assert set(TARGETS) <= named
