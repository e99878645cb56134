"""Sweeps on this host: points, limits, failures, going on, readers, boundaries."""

from __future__ import annotations

import inspect
import json
import os
import re
import signal
import threading

import polars
import pytest

import waterfill
from waterfill.cli import sweep_table
from waterfill.errors import InputError
from waterfill.runs.progress import SweepBar
from waterfill.sweeps import estimates, figure, measure, table, worker
from waterfill.sweeps.axes import span
from waterfill.sweeps.measure import Verdict
from waterfill.sweeps.plan import SweepSpec
from waterfill.sweeps.points import Design
from waterfill.sweeps.refine import Refinement

SMALL = """
duration = "60 ms"
protocol = "maxnet"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "2 ms"
[[flow]]
name = "f"
from = "a"
to = "b"
"""
NO_COLUMNS: dict[str, str] = {}


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def job(key="k", sets=(), **more):
    from waterfill.runs import cache

    given = {"key": key, "base": "b", "sets": list(sets), "on": "sim", "jitter": False,
             "code": cache.version(), "columns": {}, "keep": None}  # fmt: skip
    return given | more


def run_here(*jobs, limits=None, wanted=lambda: True):
    """Points in a child of this process, without a cluster."""
    children = worker.Children()
    base = {"base": "b", "text": SMALL, "source": "small.toml"}
    try:
        return children.run(base, jobs, limits or worker.Limits(), wanted)
    finally:
        children.close()


LONG = ["duration=10000 s", "link.l.rate=10 Gbit/s"]


def test_a_sweep_runs_each_point_once_and_goes_on(small):
    design = {"grid": {"link.l.delay": ["1 ms", "2 ms"]}, "seeds": 2, "workers": 2}
    first = waterfill.sweep(small, protocols="maxnet,cubic", **design)
    assert len(first) == first.expected == 8
    assert first.failed == 0
    assert first.table["link.l.delay"].to_pylist() == [0.001, 0.001, 0.002, 0.002] * 2
    assert first.table["protocol"].to_pylist() == ["maxnet"] * 4 + ["cubic"] * 4
    assert first.table["seed"].to_pylist() == [1, 2] * 4
    assert len(set(first.table["key"].to_pylist())) == 8
    # Readers take the rows, and the files.
    frame = polars.DataFrame(first)
    assert frame["key"].to_list() == first.table["key"].to_pylist()
    duckdb = pytest.importorskip("duckdb")
    found = duckdb.sql(f"select count(*), max(rate_bps) from '{first.points}'").fetchall()
    assert found == [(8, frame["rate_bps"].max())]
    # The figures are those of a run with these overrides.
    sets = ["link.l.delay=2 ms", "protocol=cubic", "seed=2"]
    ran = waterfill.run(waterfill.load(small, sets))
    mine = first.table.slice(7, 1).to_pylist()[0]
    assert mine["rate_bps"] == ran.summary["flows"][0]["rate_bps"]

    design["grid"] = {"link.l.delay": ["2 ms", "3 ms"]}
    second = waterfill.sweep(small, protocols="maxnet,cubic", **design)
    assert len(second) == 8
    kept = second.table.slice(0, 2)["wall_s"].to_pylist()
    assert kept == first.table.slice(2, 2)["wall_s"].to_pylist()
    everything = polars.read_parquet(second.points)
    assert everything["key"].n_unique() == len(everything) == 12


def test_a_scenario_in_python_has_the_rows_of_its_file(small):
    grid = {"link.l.rate": ["5 Mbit/s", "10 Mbit/s"]}
    of_file = waterfill.sweep(small, grid=grid, output="file", workers=1)
    written = waterfill.Scenario.from_toml(SMALL)
    of_python = waterfill.sweep(written, grid=grid, workers=1)
    assert of_python.plan.folder.name == "scenario.sweep"
    own = {"key", "wall_s", "memory_bytes", "worker"}
    same = [name for name in of_file.table.column_names if name not in own]
    assert of_python.table.select(same).equals(of_file.table.select(same))
    assert of_python.table["status"].to_pylist() == ["done", "done"]
    with pytest.raises(InputError, match="<scenario>: duration"):
        waterfill.sweep(waterfill.Scenario("none"), grid=grid)


def test_a_failed_point_is_a_row_and_the_others_run(small):
    # Each value is right by itself; the shorter run with the later window is not.
    grid = {"duration": ["80 ms", "60 ms"], "measure": [["0 ms", "60 ms"], ["0 ms", "80 ms"]]}
    done = waterfill.sweep(small, grid=grid, workers=1)
    assert done.table["status"].to_pylist() == ["done", "done", "done", "failed"]
    assert done.failed == 1
    assert "measure" in done.table["error"][3].as_py()
    again = waterfill.sweep(small, grid=grid, workers=1, retry=True)
    assert again.table["status"].to_pylist() == ["done", "done", "done", "failed"]
    assert polars.read_parquet(again.points)["key"].n_unique() == 4


def test_a_point_that_exceeds_its_time_or_memory_leaves_its_worker():
    slow, after = run_here(job("slow", LONG), job("after"), limits=worker.Limits(0.7, 0))
    assert (slow["status"], slow["error"]) == ("timeout", "exceeded its time of 0.7 s")
    assert after["status"] == "done"
    big = ["flow.f.count=3000000"]
    limits = worker.Limits(0, 400_000_000)
    large, after = run_here(job("large", big), job("after"), limits=limits)
    assert large["status"] == "memory"
    assert "of memory are free" in large["error"]
    assert after["status"] == "done"


def test_a_killed_child_is_lost_and_a_point_no_longer_wanted_ends():
    (row,) = run_here(job("k", LONG), wanted=lambda: False) or [{"status": "lost"}]
    assert row["status"] == "lost"
    looks = iter([True, False])
    (row,) = run_here(job("k", LONG), wanted=lambda: next(looks, False))
    assert (row["status"], row["error"]) == ("lost", "no longer wanted")

    child = worker.Child(0)
    threading.Timer(0.6, os.kill, (child.pid, signal.SIGKILL)).start()
    base = {"base": "b", "text": SMALL, "source": "small.toml"}
    row = child.run(base, job("k", LONG), worker.Limits(), lambda: True)
    assert (row["status"], row["error"]) == ("lost", "its process was killed")


def test_a_point_of_another_version_fails():
    (row,) = run_here(job(code="other"))
    assert row["status"] == "failed"
    assert "another version" in row["error"]


def interrupt(*_):
    """Press Ctrl-C when the first row has arrived."""
    raise KeyboardInterrupt


def test_ctrl_c_keeps_what_has_ended(small):
    grid = {"flow.f.count": [1, 2, 3, 4]}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SweepBar, "row", interrupt)
        begun = waterfill.sweep(small, grid=grid, workers=1)
    assert begun.interrupted
    assert 1 <= len(begun) < 4
    ended = waterfill.sweep(small, grid=grid, workers=1)
    assert len(ended) == 4
    walls = dict(zip(*(ended.table[name].to_pylist() for name in ("key", "wall_s")), strict=True))
    assert walls[begun.table["key"][0].as_py()] == begun.table["wall_s"][0].as_py()
    assert polars.read_parquet(ended.points)["key"].n_unique() == 4


# --- the command --------------------------------------------------------------------------------


def test_the_command_prints_a_table_and_writes_a_figure(waterfill, small):
    words = ["sweep", str(small), "--grid", "flow.f.count=1..4:2", "--seeds", "2", "-o", "d"]
    ran = waterfill(*words, "--workers", "1", "--column", "events=engine.events")
    assert ran.code == 0, ran.err
    assert "4 of 4 points" in ran.out
    assert "±: half of the 95 % interval" in ran.out
    assert "Jitter by seed" in ran.out
    assert "small: 4 of 4 points" in ran.err
    assert (small.parent / "d" / "figure.png").stat().st_size > 10_000
    again = waterfill(*words, "--resume", "--column", "events=engine.events", "--json")
    assert again.code == 0
    assert [g["values"] for g in again.document["groups"]] == [
        {"flow.f.count": 1.0},
        {"flow.f.count": 4.0},
    ]
    assert all(g["points"] == 2 for g in again.document["groups"])
    # The table has the units of `run`, the document SI units.
    for group in again.document["groups"]:
        for name, size in (("utilization", 0.01), ("queue_p99_bytes", 1e3)):
            assert f" {table.number(group['columns'][name]['mean'] / size)} " in ran.out
    assert "4 points are recorded already" in again.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--grid", "link.k.rate=1 Mbit/s"], "link.k.rate: unknown [[link]]"),
        (["--grid", "link.l.rate=1 ms"], "must be a rate"),
        (["--random", "3"], "no range to draw from"),
        (["link.l.delay=1..2 ms"], "needs --random N or --latin N"),
        (["--refine", "link.l.delay=1..2 ms"], "refine: needs a verdict; add --verdict, such as"),
        (["--protocols", "none"], "unknown protocol"),
        (["--on", "linux"], "must be sim or fluid"),
        (["--workers", "0"], "must be 1 to 4096"),
        (["--max-memory", "1 MB"], "must be at least 64 MB"),
        (["--cluster", "http://x"], "must be tcp://HOST:PORT"),
        (["--cluster", "none.toml"], "no such file"),
        (["--column", "a b"], "unknown column"),
        (["--show", "nothing"], "unknown column"),
        (["--resume"], "no sweep to resume here"),
        ([], "sweep: nothing to vary; add --grid KEY=A,B"),
        (["--tolerance", "0", "--refine", "link.l.delay=1..2 ms", "--verdict", "drops>0"], "share"),
    ],
)
def test_wrong_input_is_one_line_and_leaves_nothing(waterfill, small, words, said):
    ran = waterfill("sweep", str(small), *words)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert [path.name for path in small.parent.iterdir()] == ["small.toml"]


def test_another_scenario_in_the_directory_is_refused(waterfill, small):
    words = ("sweep", str(small), "-o", "d", "--seeds", "2")
    assert waterfill(*words, "--workers", "1").code == 0
    small.write_text(SMALL.replace("2 ms", "3 ms"))
    ran = waterfill(*words)
    assert ran.code == 2
    assert "another scenario" in ran.err
    assert json.loads((small.parent / "d" / "sweep.json").read_text())["scenario"] == "small.toml"


# --- figures and boundaries ---------------------------------------------------------------------


def test_intervals_over_seeds():
    found = estimates.estimate([1.0, 2.0, 3.0])
    assert found.mean == 2
    assert found.half == pytest.approx(4.302653 / 3**0.5, rel=1e-6)  # t(2), standard deviation 1
    assert estimates.estimate([1.0]).half is None


def test_numbers_have_prefixes_from_ten_thousand():
    texts = [table.number(x) for x in (0.00123456, 9999.0, 16_500.0, 2e7, 1e9)]
    assert texts == ["0.001235", "9999", "16.5k", "20M", "1G"]


def test_a_chart_over_buffers_in_bdp_has_a_numeric_axis_and_the_unit_of_its_column():
    varying = figure.Varying([], ["protocol", "link.l.buffer"], {"link.l.buffer": ""}, drawn=False)
    rates = [("reno", "4 bdp", 2e6), ("reno", "0.5 bdp", 5e6), ("bbr", "4 bdp", 9e6)]
    rows = [
        table.Group(
            {"protocol": protocol, "link.l.buffer": buffer},
            {"long": estimates.Estimate(rate, 3e6, 5)},
            count=5,
            failed=0,
        )
        for protocol, buffer, rate in rates
    ]
    (chart,) = figure.charts(rows, varying, "long", path="flows.long.rate_bps")
    assert (chart.x_label, chart.y_label) == ("link.l.buffer (bdp)", "long (Mbit/s)")
    reno, bbr = chart.lines
    assert (reno.name, bbr.name) == ("reno", "bbr")
    assert (list(reno.x), list(reno.y)) == ([0.5, 4.0], [5.0, 2.0])
    assert list(reno.low) == [2.0, 0.0]  # a rate of 2 ± 3 Mbit/s is not below zero


def test_a_column_of_a_path():
    summary = {"links": [{"name": "a.b", "queue_bytes": {"p99": 7}}, {"name": "a", "drops": 1}]}
    assert measure.at(summary, "links.a.b.queue_bytes.p99") == 7
    assert measure.at(summary, "links.a.drops") == 1
    with pytest.raises(InputError, match="no such entry"):
        measure.at(summary, "links.c.drops")
    with pytest.raises(InputError, match="number"):
        measure.at(summary, "links.a")


def answered(search, truth):
    """Run a search against a function of the axis' value; return how many runs it took."""
    waiting, runs = list(search.first()), 0
    while waiting:
        point = waiting.pop()
        runs += 1
        value = next(v for k, v in point.values.items() if k not in ("y", "seed"))
        row = {"status": "done", "drops": truth(value, point.values)}
        waiting += search.after(point, row)
    return runs


def test_a_search_finds_the_boundary_with_few_runs():
    verdict = Verdict.parse("drops > 0.5", ["drops"])
    search = Refinement(Design(), span("x=1..1000:log"), verdict, 0.01)
    runs = answered(search, lambda x, _: float(x > 70))
    (found,) = search.boundaries()
    assert found.low <= 70 < found.high
    assert found.high - found.low <= 0.01 * found.high
    # ln(1000) / ln(1 / 0.99) = 687 parts: 10 halvings.
    assert runs == found.runs == 12
    assert runs <= search.count


def test_a_search_for_each_combination_and_all_its_seeds():
    from waterfill.sweeps.axes import grid

    verdict = Verdict.parse("drops>=0.5", ["drops"])
    design = Design((grid("y=10,500,5000"),), seeds=(1, 2, 3))
    search = Refinement(design, span("x=1..1000"), verdict, 0.01)
    answered(search, lambda x, at: float(x > at["y"] + 0.1 * (at["seed"] - 2)))
    first, second, third = search.boundaries()
    assert first.low <= 10 < first.high
    assert second.low <= 500 < second.high
    assert (third.low, third.state) == (None, "never drops >= 0.5")
    assert third.runs == 6


def test_a_search_names_values_that_its_seeds_do_not_decide():
    verdict = Verdict.parse("drops>0.5", ["drops"])
    search = Refinement(Design(seeds=(1, 2, 3)), span("x=1..2"), verdict, 0.01)
    # Means 0.6 at x = 1 and 5 at x = 2, half-intervals 0.25 and 2.5: only x = 1 is open.
    answered(search, lambda x, at: {1.0: 0.6, 2.0: 5.0}[x] * (1 + (at["seed"] - 2) / 6))
    (found,) = search.boundaries()
    assert (found.state, found.undecided) == ("always drops > 0.5", (1.0,))


def test_a_boundary_in_packets(small):
    done = waterfill.sweep(
        small, sets=["protocol=reno", "duration=300 ms"], workers=1, tolerance=0.05,
        refine="link.l.buffer=2..200 packets:log", verdict="drops>0", output="d",
    )  # fmt: skip
    (found,) = done.boundaries
    assert found.state == "found"
    drops = dict(zip(done.table["link.l.buffer"].to_pylist(), done.table["drops"].to_pylist(),
                     strict=True))  # fmt: skip
    assert (drops[found.low] > 0) != (drops[found.high] > 0)
    assert found.high - found.low <= 0.05 * found.high
    assert figure.draw(done, "drops") is not None
    assert "link.l.buffer where the verdict" in str(sweep_table.tables(done, ["drops"])[-1])


def test_lost_points_are_tried_again_and_then_fail(small, monkeypatch):
    calls: list[str] = []

    def lost(self, base, jobs, limits, wanted):
        calls.extend(job["key"] for job in jobs)
        return [{"key": job["key"], "status": "lost", "error": "killed"} for job in jobs]

    monkeypatch.setattr(worker.Children, "run", lost)
    done = waterfill.sweep(small, workers=1)
    assert done.table["status"].to_pylist() == ["failed"]
    assert "killed 5 times" in done.table["error"][0].as_py()
    assert len(calls) == 5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"scenario": 3}, "sweep: scenario: must be the path of a scenario file or a waterfill."),
        ({"scenario": {"duration": "1 s"}}, "got a dict"),
        ({"seeds": "two"}, 'sweep: seeds: must be a whole number, got "two"'),
        ({"sets": {"seed": 3}}, "sweep: sets: must be a list of texts"),
        ({"sets": "seed=3"}, "sweep: sets: must be a list of texts"),
    ],
)
def test_wrong_types_from_python_are_one_line(small, given, said):
    with pytest.raises(InputError, match=re.escape(said)):
        waterfill.sweep(**{"scenario": small, **given})


def test_an_unknown_argument_names_sweep(small):
    with pytest.raises(TypeError, match=r"sweep\(\) got an unexpected keyword argument 'seed'"):
        waterfill.sweep(small, seed=3)


def test_the_keywords_are_those_of_the_specification():
    keywords = inspect.signature(waterfill.sweep).parameters
    assert keywords["tolerance"].default == SweepSpec().tolerance == 0.01
    assert list(keywords) == ["scenario", *SweepSpec.__dataclass_fields__]
