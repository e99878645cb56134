"""The dataset: each row once, after any end of the process that writes it."""

from __future__ import annotations

import json
import os

import pyarrow.parquet as pq
import pytest

from waterfill.errors import InputError
from waterfill.sweeps import dataset as module
from waterfill.sweeps.dataset import Dataset, read

COLUMNS = [("key", "string"), ("status", "string"), ("error", "string"), ("x", "double")]


def dataset(folder, identity="i", columns=COLUMNS):
    return Dataset(folder, columns, identity, {"scenario": "s.toml"})


def row(key, status="done", x=1.0):
    return {"key": key, "status": status, "error": None, "x": x}


def test_rows_come_back_in_the_order_asked_for(tmp_path):
    with dataset(tmp_path) as data:
        assert data.record(row("b", x=2.0))
        assert data.record(row("a"))
        assert not data.record(row("a", x=9.0))
        assert data.table(["a", "c", "b"])["x"].to_pylist() == [1.0, 2.0]
        data.flush()
    assert (tmp_path / "journal.jsonl").read_bytes() == b""


def test_a_killed_writer_loses_nothing(tmp_path):
    data = dataset(tmp_path).__enter__()
    data.record(row("a"))
    journal = (tmp_path / "journal.jsonl").read_bytes()
    assert json.loads(journal)["key"] == "a"
    data.flush()
    data.__exit__()
    # As if it had been killed after the file was in place, and within the next line.
    (tmp_path / "journal.jsonl").write_bytes(journal + b'{"key": "b", "sta')
    with dataset(tmp_path) as again:
        assert again.status("a") == "done"
        assert again.status("b") is None
        again.record(row("b"))
    assert sorted(read(tmp_path)["key"].to_pylist()) == ["a", "b"]


def test_a_journal_without_a_file_becomes_one(tmp_path):
    with dataset(tmp_path):
        pass
    (tmp_path / "journal.jsonl").write_text(json.dumps(row("a")) + "\n")
    with dataset(tmp_path) as data:
        assert data.status("a") == "done"
        assert len(data.parts()) == 1


def test_rows_are_on_the_disk_once(tmp_path):
    with dataset(tmp_path) as data:
        for i in range(25):
            data.record(row(f"{i}"))
        lines = (tmp_path / "journal.jsonl").read_text().splitlines()
        assert [json.loads(line)["key"] for line in lines] == [f"{i}" for i in range(25)]
        assert not data.parts()
        data.flush()
    assert (tmp_path / "journal.jsonl").read_bytes() == b""
    assert [path.name for path in data.parts()] == ["part-00001.parquet"]


def test_a_large_journal_becomes_one_file_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_BATCH_ROWS", 4)
    with dataset(tmp_path) as data:
        for i in range(10):
            data.record(row(f"{i}"))
        data.flush()
    assert len(data.parts()) == 1
    assert read(tmp_path)["key"].to_pylist() == [f"{i}" for i in range(10)]


def test_a_killed_sweep_is_read_from_its_journal(tmp_path):
    with dataset(tmp_path) as data:
        data.record(row("a"))
        data.flush()
    line = json.dumps(row("a")) + "\n" + json.dumps(row("b", x=2.0)) + "\n"
    (tmp_path / "journal.jsonl").write_text(line + '{"key": "c", "sta')
    assert read(tmp_path)["key"].to_pylist() == ["a", "b"]
    assert (tmp_path / "journal.jsonl").read_text().startswith(line)


def test_files_of_the_version_that_wrote_several_are_gone_on_with(tmp_path):
    with dataset(tmp_path) as data:
        data.record(row("a"))
        data.flush()
    with dataset(tmp_path) as data:
        data.record(row("b"))
        data.flush()
        assert data.status("a") == "done"
    assert len(data.parts()) == 2
    assert read(tmp_path)["key"].to_pylist() == ["a", "b"]


def test_one_writer_at_a_time(tmp_path):
    with dataset(tmp_path), pytest.raises(InputError, match="another command is writing"):
        dataset(tmp_path).__enter__()
    with dataset(tmp_path):
        pass


def test_another_sweep_is_refused(tmp_path):
    with dataset(tmp_path) as data:
        data.record(row("a"))
    with pytest.raises(InputError, match="another scenario"):
        dataset(tmp_path, identity="j").__enter__()
    with pytest.raises(InputError, match="other axes"):
        dataset(tmp_path, columns=[*COLUMNS, ("y", "double")]).__enter__()
    assert read(tmp_path).num_rows == 1


def test_failures_are_forgotten_on_demand(tmp_path):
    with dataset(tmp_path) as data:
        data.record(row("a"))
        data.record(row("b", "failed"))
        data.record(row("c", "timeout"))
    with dataset(tmp_path) as data:
        assert data.forget(["failed", "timeout"]) == 2
        assert data.status("b") is None
        assert data.record(row("b"))
    assert sorted(read(tmp_path)["key"].to_pylist()) == ["a", "b"]


def test_a_file_without_rows_has_none_to_forget(tmp_path):
    with dataset(tmp_path) as data:
        data.record(row("a", "failed"))
        data.flush()
        (part,) = data.parts()
        pq.write_table(pq.read_table(part).slice(0, 0), part)
        assert data.forget(["failed"]) == 1
        assert not data.parts()


def test_files_hold_what_the_sweep_was(tmp_path):
    with dataset(tmp_path) as data:
        data.record(row("a"))
        data.flush()
    metadata = pq.read_schema(next((tmp_path / "points").iterdir())).metadata
    assert json.loads(metadata[b"waterfill.sweep"]) == {"scenario": "s.toml"}


@pytest.mark.parametrize(
    "line",
    ["1", "null", "[]", "{}", '{"key": "b"}', '{"key": "b", "status": null}', "[" * 5000,
     '{"key": 1, "status": "done"}', '{"key": "b", "status": "done", "x": "a"}',
     '{"key": "b", "status": "done", "x": {"y": 1}}',
     f'{{"key": "b", "status": "done", "x": {9**99}}}'],
)  # fmt: skip
def test_line_of_the_journal_that_is_no_row(tmp_path, line):
    with dataset(tmp_path) as data:
        data.record(row("a"))
        data.flush()
    (tmp_path / "journal.jsonl").write_text(line + "\n")
    with dataset(tmp_path) as data:
        assert data.table()["key"].to_pylist() == ["a"]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"nothing" * 99])
def test_damaged_file_of_rows_is_one_sentence(tmp_path, content):
    with dataset(tmp_path) as data:
        data.record(row("a"))
        data.flush()
    (part,) = data.parts()
    part.write_bytes(content)
    with pytest.raises(InputError, match="not rows of a sweep"):
        dataset(tmp_path).__enter__()


def test_rows_without_a_key_are_refused(tmp_path):
    with dataset(tmp_path) as data:
        data.record(row("a"))
        data.flush()
    (part,) = data.parts()
    pq.write_table(pq.read_table(part).drop_columns(["key"]), part)
    with pytest.raises(InputError, match="not rows of a sweep"):
        dataset(tmp_path).__enter__()


@pytest.mark.parametrize("text", ["null", "[]", "{", "[" * 5000])
def test_document_of_another_kind(tmp_path, text):
    with dataset(tmp_path):
        pass
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(InputError, match="not the JSON document of a sweep"):
        dataset(tmp_path).__enter__()


@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_no_file_behind_a_link_is_opened_and_no_pipe_waited_for(tmp_path, kind):
    folder, other = tmp_path / "sweep", tmp_path / "other"
    folder.mkdir()
    other.write_text("mine")
    if kind == "link":
        (folder / "journal.jsonl").symlink_to(other)
    else:
        os.mkfifo(folder / "journal.jsonl")
    with pytest.raises(InputError, match=r"not a (regular )?file"):
        dataset(folder).__enter__()
    assert other.read_text() == "mine"


def test_rows_are_not_written_through_a_link(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "points").symlink_to(tmp_path / "other")
    with pytest.raises(InputError, match="a symbolic link, not a directory"):
        dataset(tmp_path).__enter__()


def test_a_document_that_is_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "sweep.json")
    with pytest.raises(InputError, match="not the JSON document of a sweep"):
        dataset(tmp_path).__enter__()


def test_a_sweep_is_not_written_over_a_run(tmp_path):
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(InputError, match="holds another result"):
        dataset(tmp_path).__enter__()
