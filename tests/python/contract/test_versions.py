"""Results of other versions: former names of columns are read, newer results are refused."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import waterfill
from waterfill.analysis import compare, run_charts
from waterfill.contract import versions
from waterfill.contract.summary import SCHEMA_VERSION, SCHEMA_VERSION_KEY
from waterfill.network import protocols
from waterfill.papers.measures import links, signals
from waterfill.report.write import write
from waterfill.runs import backends
from waterfill.runs.result import Result
from waterfill.runs.stored import load_run

SCENARIO = {
    "name": "small", "duration": "1 s", "protocol": "maxnet",
    "link": [{"name": "l", "from": "a", "to": "b", "rate": "10 Mbit/s", "delay": "5 ms"}],
    "flow": [{"name": "f", "path": ["l"], "size": "100 kB"}],
}  # fmt: skip
NEWER = SCHEMA_VERSION + 1
WINDOW = {"start_s": 0.0, "stop_s": 1.0}


@pytest.fixture(scope="module")
def run() -> Result:
    return backends.run(SCENARIO)


@pytest.fixture
def folder(run: Result, tmp_path: Path) -> Path:
    run.write(tmp_path / "out")
    return tmp_path / "out"


def rewrite(path: Path, edit: Callable[[pa.Table], pa.Table]) -> None:
    """Replace a Parquet file by an edited copy."""
    table = pq.read_table(path)
    edited = edit(table)
    metadata = edited.schema.metadata or table.schema.metadata
    pq.write_table(edited.replace_schema_metadata(metadata), path)


def with_metadata(path: Path, **changed: str | None) -> None:
    """Set or remove entries in the metadata of a Parquet file."""

    def edit(table: pa.Table) -> pa.Table:
        new = {b"waterfill." + key.encode(): value for key, value in changed.items()}
        kept = {k: v for k, v in {**table.schema.metadata, **new}.items() if v is not None}
        return table.replace_schema_metadata(kept)

    rewrite(path, edit)


def former(column: str) -> str:
    """The name of 0.2.0 of a column."""
    signal = protocols.signals().get(column)
    return column if signal is None else f"{signal.law}.{signal.name}"


@pytest.fixture
def older(folder: Path) -> Path:
    """A run as 0.2.0 wrote it: names with dots, and no schema version."""
    summary = json.loads((folder / "summary.json").read_text())
    del summary["schema_version"]
    (folder / "summary.json").write_text(json.dumps(summary))
    for path in folder.glob("*.parquet"):
        inside = json.loads(pq.read_schema(path).metadata[b"waterfill.summary"])
        del inside["schema_version"]
        with_metadata(path, schema_version=None, summary=json.dumps(inside))
        rewrite(path, lambda table: table.rename_columns([*map(former, table.column_names)]))
    assert "maxnet.price" in pq.read_schema(folder / "links.parquet").names
    return folder


HINT = re.escape("'maxnet.price' is now 'maxnet_price', 'maxnet.xi' is now 'maxnet_xi'")


def test_no_column_has_a_dot(run):
    for table in (run.flows, run.links, run.traffic, run.transfers):
        assert [name for name in table.column_names if "." in name] == []
    assert "maxnet_price" in run.links.column_names


def test_an_older_run_is_read_by_the_new_names(run, older):
    with pytest.warns(versions.RenamedColumn, match=HINT):
        links = load_run(older).links
    assert links.equals(run.links)
    with pytest.warns(versions.RenamedColumn, match=HINT):
        assert load_run(older).flows.equals(run.flows)


def test_an_older_run_is_plotted_and_reported_with_one_hint(older):
    found = []
    for use in (
        lambda: waterfill.plot(waterfill.load(older)),
        lambda: write(older),
    ):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("default")
            use()
        found.append([str(one.message) for one in heard])
    assert all(re.fullmatch(HINT, message) for messages in found for message in messages)
    assert list(map(len, found)) == [1, 1]
    assert "maxnet price" in (older / "report.html").read_text()


def test_a_former_name_that_a_user_types_is_mapped(run):
    of_link = {"which": "links", "name": "l", **WINDOW}
    wanted = signals.price_mean(run, column="maxnet_price", **of_link)
    assert wanted is not None
    with pytest.warns(versions.RenamedColumn, match="'maxnet.price' is now 'maxnet_price'"):
        assert signals.price_mean(run, column="maxnet.price", **of_link) == wanted
    last = links.last_sample(run, link="l", column="maxnet_price")
    with pytest.warns(versions.RenamedColumn):
        assert links.last_sample(run, link="l", column="maxnet.price") == last


def test_two_names_of_one_column_are_refused(older):
    path = older / "links.parquet"
    rewrite(path, lambda table: table.append_column("maxnet_price", table["maxnet.price"]))
    with pytest.raises(waterfill.InputError, match="two columns of one name"):
        load_run(older)


def test_every_signal_has_a_chart_of_the_same_key_as_before(run):
    keys = {chart.key for chart in run_charts.RunCharts(run, run_charts.PRINT).signals()}
    assert keys == {"links-maxnet-price", "flows-maxnet-price", "flows-maxnet-xi"}


def newer(path: Path) -> None:
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "schema_version": NEWER}))


TEXT = "a newer Waterfill wrote it: must be at most 1, got 2; upgrade Waterfill"


def test_a_newer_run_is_refused(waterfill, folder):
    newer(folder / "summary.json")
    for words in (("plot", str(folder)), ("report", str(folder))):
        ran = waterfill(*words)
        assert (ran.code, ran.err) == (2, f"{folder / 'summary.json'}: schema_version: {TEXT}\n")


@pytest.mark.parametrize("name", ["flows", "links", "transfers"])
def test_a_newer_table_is_refused(folder, name):
    with_metadata(folder / f"{name}.parquet", schema_version=str(NEWER))
    with pytest.raises(waterfill.InputError, match=f"{name}.parquet: schema_version: {TEXT}"):
        load_run(folder)


@pytest.mark.parametrize("value", [True, "1", 1.5, None])
def test_a_version_that_is_no_whole_number_is_refused(folder, value):
    document = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps({**document, "schema_version": value}))
    with pytest.raises(waterfill.InputError, match="schema_version: must be a whole number, got"):
        load_run(folder)


@pytest.mark.usefixtures("undrawn")
def test_a_newer_comparison_is_refused(run, tmp_path):
    comparison = compare.of({"maxnet": run})
    comparison.write(comparison.document(), tmp_path / "c")
    newer(tmp_path / "c" / "compare.json")
    for read in (compare.load_comparison, write):
        with pytest.raises(waterfill.InputError, match=f"compare.json: schema_version: {TEXT}"):
            read(tmp_path / "c")


def test_a_newer_sweep_is_refused(run, tmp_path):
    (tmp_path / "s.toml").write_text(run.scenario_toml)
    given = {"grid": {"flow.f.size": ["50 kB"]}, "output": tmp_path / "sweep"}
    done = waterfill.sweep(tmp_path / "s.toml", **given)
    (part,) = (tmp_path / "sweep" / "points").glob("*.parquet")
    assert pq.read_schema(part).metadata[SCHEMA_VERSION_KEY.encode()] == b"1"
    assert done.table.schema.metadata[SCHEMA_VERSION_KEY.encode()] == b"1"
    again = waterfill.sweep(tmp_path / "s.toml", **given)
    assert again.table.equals(done.table)
    with_metadata(part, schema_version=str(NEWER))
    with pytest.raises(waterfill.InputError, match=f"part-.*: schema_version: {TEXT}"):
        waterfill.sweep(tmp_path / "s.toml", **given)
    newer(tmp_path / "sweep" / "sweep.json")
    for read in (
        lambda: waterfill.sweep(tmp_path / "s.toml", **given),
        lambda: write(part.parents[1]),
    ):
        with pytest.raises(waterfill.InputError, match=f"sweep.json: schema_version: {TEXT}"):
            read()
