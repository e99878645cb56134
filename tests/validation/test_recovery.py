"""The record of Linux's order of sends: its text, and how many patterns the simulator follows."""

from __future__ import annotations

from validation.recovery import study
from validation.recovery.path import PACKETS


def expanded(text: str) -> list[int]:
    found: list[int] = []
    for word in text.split():
        first, _, last = word.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def test_an_order_is_written_in_runs():
    assert study.short([0, 1, 2, 1, 3, 4, 2]) == "0-2 1 3-4 2"


def test_the_record_reads_as_it_was_written(tmp_path, monkeypatch):
    record = study.read()
    monkeypatch.setattr(study, "RECORD", tmp_path / "sends.json")
    study.write(record)
    assert study.read() == record


def test_the_simulator_follows_linux_in_at_least_15_of_20_patterns():
    """That it does so where `differs` is empty is a test of the crate."""
    record = study.read()
    patterns = [pattern for pattern in record if pattern.name != "no loss"]
    assert len({pattern.name for pattern in patterns}) == len(patterns) == 20
    assert sum(not pattern.differs for pattern in patterns) >= 15
    for order in record.values():
        assert set(expanded(order)) == set(range(PACKETS))
        assert study.short(expanded(order)) == order
