"""The summary document, the tables over the core's buffers, and the files of `-o DIR`."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import synthetic
from waterfill.contract.summary import CLOCKED, FlowSummary, Summary
from waterfill.errors import InputError
from waterfill.runs import files, result


@pytest.fixture
def run() -> result.Result:
    return synthetic.result(
        {"a": [1e6, math.nan, 3e6], "b": [4e6, 5e6, 6e6]},
        {"link": {"utilization": [0.1, 0.2, 0.3], "queue_bytes": [0.0, 1.0, 2.0]}},
    )


def test_summary_has_the_contracts_keys_in_reading_order(run):
    assert list(run.summary) == [
        "schema_version",
        "scenario",
        "backend",
        "version",
        "seed",
        "duration_s",
        "measure_s",
        "params",
        "flows",
        "links",
        "traffic",
        "groups",
        "jain_index",
        "engine",
        "jain_index_of_shares",
    ]
    flow = run.summary["flows"][0]
    assert list(flow)[:4] == ["name", "group", "index", "protocol"]
    assert flow["max_min_bps"] == 2e6
    assert set(synthetic.flow_summary("a", "a", 0, 1.0)) < set(flow)


def test_speed_is_packet_transmissions_per_second_of_wall_time(run):
    # synthetic: 1 packet over 1 link in 0.1 s
    assert run.summary["engine"]["packet_transmissions_per_s"] == 10.0


def test_unequal_shares_that_are_met_are_fair(run):
    flow = run.summary.flows[0]
    flows = [FlowSummary.read({**flow, "rate_bps": x, "max_min_bps": y, "count": n})
             for x, y, n in ((9e6, 10e6, 1), (0.9e6, 1e6, 2), (None, 1e6, 1))]  # fmt: skip
    summary = Summary.read({**run.summary, "flows": flows})
    assert result.fairness(summary) == pytest.approx(1.0)
    summary.flows[0].rate_bps = 18e6
    assert result.fairness(summary) == pytest.approx((1.8 + 2 * 0.9) ** 2 / 3 / (1.8**2 + 2 * 0.81))


def test_jain_index_by_hand():
    assert result.jain_index([5.0, 5.0, 5.0]) == pytest.approx(1.0)
    assert result.jain_index([1.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert result.jain_index([1.0, 3.0]) == pytest.approx(16 / 20)
    assert result.jain_index([2.0, None]) == pytest.approx(1.0)
    assert result.jain_index([]) is None
    assert result.jain_index([None, 0.0]) is None


@given(st.lists(st.floats(min_value=0, max_value=1e300), min_size=1, max_size=50))
def test_jain_index_is_between_one_flow_and_all(rates):
    index = result.jain_index(rates)
    if index is not None:
        assert 1 / len(rates) - 1e-9 <= index <= 1 + 1e-9


def test_tables_are_the_cores_buffers(run):
    values = synthetic.column([1.0, 2.0])
    table = result.to_table({"time_s": values}, "flow", [])
    assert table["time_s"].chunk(0).buffers()[1].address == pa.py_buffer(values[1]).address


def test_nan_is_null_and_names_are_a_dictionary(run):
    assert run.flows["flow"].to_pylist() == ["a", "b", "a", "b", "a", "b"]
    assert run.flows["rate_bps"].to_pylist() == [1e6, 4e6, None, 5e6, 3e6, 6e6]
    assert pa.types.is_dictionary(run.flows.schema.field("flow").type)
    assert run.flows["time_s"].to_pylist() == pytest.approx([0.1, 0.1, 0.2, 0.2, 0.3, 0.3])


@given(st.lists(st.floats(width=64, allow_infinity=False), max_size=70))
def test_any_column_survives_the_passage(values):
    table = result.to_table({"x": synthetic.column(values)}, "flow", [])
    assert table["x"].to_pylist() == [None if math.isnan(v) else v for v in values]


def test_integer_columns_keep_their_width():
    columns = {"drops": synthetic.counts([2**63, 1]), "link": synthetic.indexes([1, 0])}
    table = result.to_table(columns, "link", ["one", "two"])
    assert table["drops"].to_pylist() == [2**63, 1]
    assert table["link"].to_pylist() == ["two", "one"]


class Exported:
    """A table behind nothing but Arrow's C stream interface."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def values_at(array: pa.Array) -> int:
    """The address of an array's values."""
    return array.buffers()[1].address


def test_arrow_readers_take_the_cores_buffers(run):
    # time_s has no nulls, rate_bps has one.
    read = pa.table(Exported(run.flows))
    for name in ("time_s", "rate_bps"):
        assert values_at(read[name].chunk(0)) == values_at(run.flows[name].chunk(0))


def test_polars_takes_columns_without_a_copy(run):
    frame = pl.DataFrame(Exported(run.flows))
    for name in ("time_s", "rate_bps"):
        ours = run.flows[name].chunk(0)
        assert values_at(frame[name].to_arrow()) == values_at(ours)


def test_pandas_takes_columns_without_a_copy_as_arrow_types(run):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = run.flows.to_pandas(types_mapper=pd.ArrowDtype)
    for name in ("time_s", "rate_bps"):
        taken = pa.table({name: frame[name].array})[name]
        assert values_at(taken.chunk(0)) == values_at(run.flows[name].chunk(0))


def test_numpy_and_pandas_share_a_column_without_nulls_and_copy_one_with(run):
    # What `to_pandas()` does by default, column by column.
    ours = run.flows["time_s"].chunk(0)
    assert ours.to_numpy(zero_copy_only=True).ctypes.data == values_at(ours)
    with pytest.raises(pa.ArrowInvalid):
        run.flows["rate_bps"].chunk(0).to_numpy(zero_copy_only=True)


def test_polars_reads_the_tables(run):
    frame = pl.from_arrow(run.flows)
    assert frame.filter(pl.col("flow") == "b")["rate_bps"].to_list() == [4e6, 5e6, 6e6]


def test_samples_of_one_name(run):
    assert run.samples("flows", "b")["rate_bps"].to_pylist() == [4e6, 5e6, 6e6]
    with pytest.raises(KeyError):
        run.samples("links", "no such link")


def test_json_never_has_nan_or_infinity():
    text = result.to_json({"x": [math.nan, {"y": math.inf}, (1.5, "→")]})
    assert json.loads(text) == {"x": [None, {"y": None}, [1.5, "→"]]}


def test_write_leaves_the_files_and_nothing_else(run, tmp_path: Path):
    folder = tmp_path / "new" / "folder"
    written = run.write(folder)
    names = {"summary.json", "scenario.toml", "flows.parquet", "links.parquet"}
    assert {path.name for path in written} == names == set(os.listdir(folder))
    assert json.loads((folder / "summary.json").read_text()) == json.loads(run.to_json())
    assert (folder / "scenario.toml").read_text() == 'name = "x"\n'


def test_parquet_carries_the_run(run, tmp_path: Path):
    run.write(tmp_path)
    read = pq.read_table(tmp_path / "flows.parquet")
    assert read.equals(run.flows)
    metadata = {key.decode(): value.decode() for key, value in read.schema.metadata.items()}
    summary = json.loads(metadata["waterfill.summary"])
    assert summary["params"] == run.summary["params"]
    assert summary["measure_s"] == run.summary["measure_s"]
    assert "flows" not in summary
    assert metadata["waterfill.seed"] == "7"
    assert metadata["waterfill.version"]
    assert not {*CLOCKED} & {*summary["engine"]}  # else two runs of one seed would differ


def test_writing_twice_gives_the_same_bytes(run, tmp_path: Path):
    run.write(tmp_path / "a")
    run.summary["engine"]["wall_s"] = 99.0
    run.write(tmp_path / "b")
    for name in ("flows.parquet", "links.parquet", "scenario.toml"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_failed_write_leaves_the_old_file(tmp_path: Path):
    path = tmp_path / "x.json"
    path.write_text("old")

    def half(part: Path) -> None:
        part.write_text("ne")
        raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match=r"x\.json: cannot be written: no space left on device"):
        files.write_atomically(path, half)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x.json"]


def test_a_file_in_the_way_of_a_directory(tmp_path: Path):
    file = tmp_path / "file"
    file.write_text("")
    for folder in (file, file / "below"):
        with pytest.raises(InputError, match="a file, not a directory"):
            files.make_directory(folder)


def test_a_directory_that_cannot_be_written():
    with pytest.raises(InputError, match="cannot write into the directory"):
        files.make_directory("/proc/waterfill")


def test_json_escapes_what_a_terminal_interprets():
    from waterfill.runs.result import to_json

    text = to_json({"name": "\x9b\x85\u202e\u2028é"})
    assert "\\u009b\\u0085\\u202e\\u2028é" in text
