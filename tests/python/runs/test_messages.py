"""The table of the messages that applications write."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import waterfill
from waterfill.errors import InputError


def _run(application: Mapping[str, Any], duration: str = "5 s") -> waterfill.Result:
    scenario = waterfill.Scenario("messages", duration=duration, protocol="sack")
    return (
        scenario.link("l", "a", "b", "10 Mbit/s", "5 ms")
        .flow("bulk", "a", "b")
        .flow("app", "a", "b", count=2, application=application)
        .run()
    )


_TICKS = {"kind": "ticks", "sizes": "3 kB", "interval": "100 ms"}


@pytest.fixture(scope="module")
def ticks() -> waterfill.Result:
    return _run(_TICKS)


def test_each_message_has_a_row_and_the_summary_counts_the_rows(ticks: waterfill.Result) -> None:
    table = ticks.messages
    assert table.column_names == [
        *("flow", "index", "written_s", "size_bytes", "completed_s", "completion_s"),
    ]
    for flow in ticks.summary.flows:
        rows = table.filter(pc.equal(table["flow"].cast("string"), flow.name)).to_pylist()
        if flow.messages is None:
            assert rows == []
            continue
        assert len(rows) == flow.messages.written
        assert sum(row["completed_s"] is not None for row in rows) == flow.messages.completed
        assert [row["index"] for row in rows] == list(range(len(rows)))
        assert {row["size_bytes"] for row in rows} == {3000}
        gaps = {round(b["written_s"] - a["written_s"], 9) for a, b in pairwise(rows)}
        assert gaps == {0.1}


def test_times_are_those_of_the_summary(ticks: waterfill.Result) -> None:
    """Of messages written in the measure window."""
    [start, end] = ticks.summary.measure_s
    for flow in ticks.summary.flows[1:]:
        assert flow.messages is not None
        took = [
            row["completion_s"] * 1e3
            for row in ticks.messages.to_pylist()
            if row["flow"] == flow.name and start <= row["written_s"] <= end
            if row["completion_s"] is not None
        ]
        assert len(took) == flow.messages.completion_ms.count > 5
        assert sum(took) / len(took) == pytest.approx(flow.messages.completion_ms.mean)


def test_the_file_has_the_same_table(ticks: waterfill.Result, tmp_path: Path) -> None:
    ticks.write(tmp_path / "out")
    stored = waterfill.load(tmp_path / "out")
    assert stored.messages.equals(ticks.messages)
    (tmp_path / "out" / "messages.parquet").unlink()
    with pytest.raises(InputError, match=r"messages\.parquet: no such file; run"):
        _ = waterfill.load(tmp_path / "out").messages


def test_a_run_without_applications_has_no_file(tmp_path: Path) -> None:
    scenario = waterfill.Scenario("one", duration="1 s", protocol="sack")
    result = scenario.link("l", "a", "b", "10 Mbit/s", "5 ms").flow("f", "a", "b").run()
    assert result.messages.num_rows == 0
    assert "messages.parquet" not in [path.name for path in result.write(tmp_path / "out")]
    assert waterfill.load(tmp_path / "out").messages.column_names == result.messages.column_names
