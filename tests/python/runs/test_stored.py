"""Runs that leave their process: pickled, and read back from the directory that they wrote."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import waterfill
from waterfill.errors import InputError, RunError
from waterfill.report import write
from waterfill.runs import backends
from waterfill.runs.result import Result
from waterfill.runs.stored import load, load_run
from waterfill.scenario.distributions import PartError
from waterfill.testbed.daemon import DaemonRefusal
from waterfill.testbed.delayline import DelayLineError
from waterfill.testbed.front import Refusal

SCENARIO = {
    "name": "small", "duration": "1 s", "protocol": "maxnet",
    "link": [{"name": "l", "from": "a", "to": "b", "rate": "10 Mbit/s", "delay": "5 ms"}],
    "flow": [{"name": "f", "path": ["l"], "count": 2}],
}  # fmt: skip
WEB = {"kind": "web", "name": "w", "path": ["l"], "arrival_rate": "20 /s"}


@pytest.fixture(scope="module")
def run() -> Result:
    return backends.run({**SCENARIO, "traffic": [WEB]})


@pytest.fixture
def folder(run: Result, tmp_path: Path) -> Path:
    run.write(tmp_path / "out")
    return tmp_path / "out"


def same(one: Result, other: Result) -> bool:
    return (
        json.loads(one.to_json()) == json.loads(other.to_json())
        and one.scenario_toml == other.scenario_toml
        and one.network == other.network
        and all(getattr(one, w).equals(getattr(other, w)) for w in ("flows", "links", "traffic"))
    )


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_a_result_pickles_whole(run, protocol):
    copy = pickle.loads(pickle.dumps(run, protocol))
    assert same(copy, run)
    assert copy.samples("flows", "f[1]").num_rows > 0
    assert same(pickle.loads(pickle.dumps(copy)), run)


def test_buffers_of_a_pickle_go_out_of_band(run):
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(run, 5, buffer_callback=buffers.append)
    assert sum(buffer.raw().nbytes for buffer in buffers) >= run.flows.nbytes
    assert same(pickle.loads(head, buffers=buffers), run)


def test_a_directory_is_read_as_the_run_that_wrote_it(run, folder):
    assert same(load(folder), run)
    assert same(pickle.loads(pickle.dumps(load_run(folder))), run)


def test_a_run_without_traffic_has_the_same_columns_when_read(tmp_path):
    quiet = backends.run(SCENARIO)
    quiet.write(tmp_path)
    assert not (tmp_path / "traffic.parquet").exists()
    assert load(tmp_path).traffic.equals(quiet.traffic)


def test_one_name_reads_scenarios_and_runs(run, folder):
    scenario = waterfill.load(folder / "scenario.toml", ["seed=4"])
    assert scenario.seed == 4
    assert waterfill.load(folder).summary["seed"] == 1
    with pytest.raises(InputError, match="the directory of a run; --set overrides"):
        waterfill.load(folder, ["seed=4"])


def test_reading_simulates_nothing_and_waits_with_the_tables(folder):
    code = (
        "import sys, waterfill\n"
        f"found = waterfill.load({str(folder)!r})\n"
        "assert found.summary['flows'][0]['rate_bps'] > 0\n"
        "assert 'waterfill.runs.engine' not in sys.modules\n"
        "assert 'flows' not in vars(found)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def without_a_key(folder: Path) -> None:
    path = folder / "summary.json"
    document = json.loads(path.read_text())
    del document["groups"]
    path.write_text(json.dumps(document))


def of_another_run(folder: Path) -> None:
    backends.run({**SCENARIO, "traffic": [WEB], "seed": 2}).write(folder.parent / "other")
    (folder.parent / "other" / "links.parquet").rename(folder / "links.parquet")


def cut(name: str, size: int):
    def change(folder: Path) -> None:
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[:size])

    return change


def without_metadata(folder: Path) -> None:
    table = pq.read_table(folder / "flows.parquet").replace_schema_metadata(None)
    pq.write_table(table, folder / "flows.parquet")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (cut("summary.json", 40), r"summary\.json: not a whole file as `run -o` writes it"),
        (without_a_key, r"summary\.json: groups: missing, .* older version .*; run scenario\.toml"),
        (cut("flows.parquet", 100), r"flows\.parquet: not a whole file"),
        (without_metadata, r"flows\.parquet: not a whole file"),
        (of_another_run, r"links\.parquet: series of another run than summary\.json"),
        (lambda f: (f / "traffic.parquet").unlink(), r"traffic\.parquet: no such file"),
        (lambda f: (f / "scenario.toml").unlink(), r"scenario\.toml: cannot be read"),
        (
            lambda f: (f / "summary.json").unlink(),
            r"out: not the directory of a run: it has no summary\.json",
        ),
    ],
)
def test_a_directory_that_is_not_whole_is_one_sentence(folder, change, message):
    change(folder)
    with pytest.raises(InputError, match=message) as caught:
        load(folder)
    assert "\n" not in str(caught.value)


def test_damage_behind_the_footer_is_a_sentence_when_read(folder):
    path = folder / "flows.parquet"
    data = bytearray(path.read_bytes())
    data[4:200] = bytes(196)
    path.write_bytes(data)
    found = load(folder)
    with pytest.raises(InputError, match=r"flows\.parquet: not a whole file"):
        _ = found.flows


def test_several_runs_and_none_are_named(folder):
    with pytest.raises(
        InputError, match=r"holds several runs; type one of their directories: .*out"
    ):
        load(folder.parent)
    with pytest.raises(InputError, match="no such directory"):
        load_run(folder / "nothing")
    with pytest.raises(InputError, match="no such file"):
        load(folder / "nothing")


# --- figures again --------------------------------------------------------------------------------


def test_figures_are_drawn_again_to_the_same_bytes(waterfill, folder, tmp_path):
    waterfill("run", str(folder / "scenario.toml"), "-o", "run")
    first = (tmp_path / "run" / "figure.png").read_bytes()
    (tmp_path / "run" / "figure.png").unlink()
    ran = waterfill("plot", "run")
    assert (ran.code, ran.out) == (0, "written to run/figure.png\nwritten to run/figure.svg\n")
    assert (tmp_path / "run" / "figure.png").read_bytes() == first
    assert waterfill("plot", "run", "--kind", "rates", "-o", "elsewhere").code == 0
    assert (tmp_path / "elsewhere" / "rates.svg").exists()


def test_the_figure_of_a_comparison_is_drawn_again(waterfill, folder, tmp_path):
    scenario = str(folder / "scenario.toml")
    waterfill("compare", scenario, "--protocols", "maxnet,rcp", "-o", "all")
    first = (tmp_path / "all" / "compare.png").read_bytes()
    (tmp_path / "all" / "compare.png").unlink()
    assert waterfill("plot", "all").code == 0
    assert (tmp_path / "all" / "compare.png").read_bytes() == first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "nothing: no such directory"),
        (["all", "--kind", "rates"], 'kind: not possible for a comparison, got "rates"'),
        (["all/maxnet", "--kind", "rate"], 'kind: unknown figure "rate", did you mean "rates"?'),
        (["half"], "half/compare.json: not a whole file as `compare -o` writes it"),
    ],
)
def test_wrong_input_of_plot(waterfill, folder, tmp_path, arguments, message):
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "compare.json").write_text('{"runs": {"maxnet": {}}}')
    folder.rename(tmp_path / "all" / "maxnet")
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "compare.json").write_text('{"runs"')
    ran = waterfill("plot", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("\n") == 1


def test_a_second_run_in_a_directory_leaves_no_rows_of_the_first(run, folder):
    (folder / "transfers.png").write_bytes(b"a figure of the first run")
    (folder / "notes.txt").write_text("the user's own")
    quiet = backends.run(SCENARIO)
    quiet.write(folder)
    assert same(load(folder), quiet)
    assert load(folder).transfers.num_rows == 0
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "summary.json", "scenario.toml", "flows.parquet", "links.parquet", "notes.txt"
    }  # fmt: skip


@pytest.mark.parametrize("name", ["traffic.parquet", "transfers.parquet"])
def test_rows_of_another_run_are_refused(run, folder, tmp_path, name):
    other = tmp_path / "other"
    backends.run(SCENARIO).write(other)
    (other / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(InputError, match="series of another run"):
        load(other)


@pytest.mark.parametrize(
    "error",
    [InputError("s.toml", "seed", "is wrong"), RunError("no kernel"), PartError("mean", "is wrong"),
     DaemonRefusal("no kernel"), DelayLineError("ended"), Refusal("wrong")],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_errors_leave_their_process(error):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert copy.__dict__ == error.__dict__


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"engine": None}, "engine: must be an object, got null"),
        ({"flows": {}}, "flows: must be a list, got {}"),
        ({"flows": [None]}, "flows[0]: must be an object, got null"),
        ({"duration_s": "1 s"}, 'duration_s: must be a number, got "1 s"'),
        ({"links": [{"name": 3}]}, "links[0].name: must be text, got 3"),
    ],
)
def test_summary_of_another_shape(folder, change, message):
    path = folder / "summary.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError) as caught:
        load_run(folder)
    assert str(caught.value) == f"{path}: {message}"


def test_summary_nested_deeply(folder):
    (folder / "summary.json").write_text("[" * 100_000)
    with pytest.raises(InputError, match="not a whole file"):
        load_run(folder)


@pytest.mark.parametrize("text", [b"null", b"[]", b'{"engine": 1}', b"[" * 100_000])
def test_series_with_the_summary_of_nothing(folder, text):
    path = folder / "flows.parquet"
    table = pq.read_table(path).replace_schema_metadata({b"waterfill.summary": text})
    pq.write_table(table, path)
    with pytest.raises(InputError, match=r"flows\.parquet: (no such|not a whole|series|must be)"):
        load_run(folder)


@pytest.mark.parametrize(
    ("name", "column"),
    [("flows", "rate_bps"), ("links", "link"), ("traffic", "time_s"), ("transfers", "slowdown")],
)
def test_series_without_a_column_or_of_another_type(folder, name, column):
    path = folder / f"{name}.parquet"
    table = pq.read_table(path)
    pq.write_table(table.drop_columns([column]), path)
    with pytest.raises(InputError, match=f"not a whole file .*: no column {column}"):
        load_run(folder)
    place = table.column_names.index(column)
    odd = pa.array([[1.0]] * table.num_rows)
    pq.write_table(table.set_column(place, column, odd), path)
    with pytest.raises(
        InputError, match=rf'not a whole file .*: a column "{column}" of type list<'
    ):
        load_run(folder)


def test_names_that_are_not_in_a_dictionary(folder):
    path = folder / "links.parquet"
    table = pq.read_table(path)
    names = table["link"].cast(pa.string())
    pq.write_table(table.set_column(1, "link", names), path)
    with pytest.raises(InputError, match='a column "link" of type string'):
        load_run(folder)


@pytest.mark.parametrize("kind", ["fifo", "device"])
@pytest.mark.parametrize(
    "name", ["summary.json", "scenario.toml", "flows.parquet", "links.parquet", "traffic.parquet"]
)
def test_a_file_of_another_kind_is_refused_and_not_waited_for(folder, name, kind):
    (folder / name).unlink()
    if kind == "fifo":
        os.mkfifo(folder / name)
    else:
        (folder / name).symlink_to("/dev/zero")
    with pytest.raises(InputError, match="not a regular file"):
        load_run(folder)


def test_a_directory_whose_name_is_not_utf_8(run, tmp_path):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))
    run.write(folder)
    assert same(run, load_run(folder))


def test_the_page_of_a_directory_whose_name_is_not_utf_8(run, tmp_path):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    run.write(folder)
    (page,) = write.write(folder)
    assert "\ufffd/scenario.toml" in page.read_text(encoding="utf-8")
