"""Slowdowns by size, distributions, and where `run` and `compare` show them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import waterfill as package
from waterfill.analysis import compare, plots, transfers

FABRIC = """
name = "three hosts"
duration = "400 ms"
sample = "50 ms"
protocol = "maxnet"
rto_min = "5 ms"
params.maxnet.t = "20 ms"
[[traffic]]
name = "search"
kind = "web"
pattern = "all-to-all"
load = "30 %"
sizes = {distribution = "web-search", mean = "30 kB"}
stop = "300 ms"
""" + "".join(
    f'[[link]]\nname = "{h}-s"\nfrom = "{h}"\nto = "s"\nrate = "200 Mbit/s"\ndelay = "50 us"\n'
    'buffer = "100 packets"\n'
    for h in "abc"
)


def table(sizes, slowdowns):
    """Transfers of 1 s at least; None is an unfinished one."""
    return pa.table(
        {
            "size_bytes": pa.array(sizes, pa.uint64()),
            "slowdown": pa.array(slowdowns, pa.float64()),
            "completion_s": pa.array(slowdowns, pa.float64()),
        }
    )


def test_bins_are_above_one_edge_and_up_to_the_next():
    rows = transfers.by_size(table([10, 100, 101, 5000], [1.0, 3.0, 4.0, None]), (100, 1000))
    assert [(r["above_bytes"], r["to_bytes"], r["flows"], r["unfinished"]) for r in rows] == [
        (0, 100, 2, 0), (100, 1000, 1, 0), (1000, None, 1, 1), (0, None, 4, 1)
    ]  # fmt: skip
    high = dict.fromkeys(("p90", "p95", "p99", "p999"), 3.0)
    assert rows[0]["slowdown"] == {"mean": 2.0, "p50": 1.0} | high
    assert set(rows[2]["slowdown"].values()) == {None}
    assert rows[3]["completion_s"]["mean"] == pytest.approx(8 / 3)


def test_one_bin_needs_no_sum():
    assert len(transfers.by_size(table([10, 20], [1.0, 2.0]))) == 1
    assert transfers.by_size(table([], [])) == []


def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed():
    spread = transfers.spread(np.arange(1.0, 201.0))
    assert (spread["p50"], spread["p90"], spread["p95"], spread["p99"]) == (100, 180, 190, 198)
    assert transfers.spread(np.arange(1.0, 2001.0))["p999"] == 1998


def test_edges_are_deciles_of_the_flows_or_their_sizes():
    of = table(np.repeat([5, 10, 20, 30], [1, 9, 5, 5]), np.ones(20))
    assert transfers.edges(of) == list(transfers.EDGES_BYTES)
    assert transfers.edges(of, "deciles") == [10, 20]  # the last bin reaches to 30
    assert transfers.edges(of, "sizes") == [5, 10, 20]
    assert transfers.edges(of, (7.0, 9.0)) == [7, 9]
    assert [row.flows for row in transfers.by_size(of, transfers.edges(of, "sizes"))] == [
        1, 9, 5, 5, 20
    ]  # fmt: skip


def test_a_distribution_ends_below_one_by_the_unfinished():
    found = transfers.cdf(table([1, 2, 3, 4], [3.0, None, 1.0, 2.0]))
    assert found["slowdown"].to_pylist() == [1.0, 2.0, 3.0]
    assert found["share"].to_pylist() == [0.25, 0.5, 0.75]
    assert transfers.cdf(table([], []), "completion_s").num_rows == 0


def test_the_figure_has_a_line_for_each_and_medians_below_the_tail():
    slow = np.linspace(1, 9, 500)
    sizes = np.arange(1, 501)
    figure = plots.slowdowns({"one": table(sizes, slow), "two": table(sizes, 2 * slow)})
    share, middle, tails = figure.axes
    assert [line.get_label() for line in share.lines] == ["one", "two"]
    assert "flows: 500 of each" in figure.sheet.note
    assert share.lines[0].get_xdata()[-1] == 9
    for axis in (middle, tails):
        assert len(axis.lines) == 2
        assert len(axis.lines[0].get_ydata()) == 10
    assert (middle.lines[1].get_ydata() < tails.lines[1].get_ydata()).all()
    more = plots.slowdowns({"one": table(sizes, slow), "two": table(sizes[1:], slow[1:])})
    assert "flows: 500 of one and 499 of two" in more.sheet.note
    plots.slowdowns({"none": table([1], [None])})


@pytest.fixture(scope="module")
def scenario(tmp_path_factory):
    path = tmp_path_factory.mktemp("fabric") / "S.toml"
    path.write_text(FABRIC)
    return path


@pytest.mark.filterwarnings("ignore::waterfill.network.protocols.Misfit")
def test_run_prints_slowdowns_by_size_and_draws_them(waterfill, scenario, tmp_path):
    done = waterfill("run", str(scenario), "-o", str(tmp_path / "out"))
    assert done.code == 0, done.err
    assert "flows by size" in done.out
    assert "to 10 kB" in done.out
    assert (tmp_path / "out" / "transfers.png").stat().st_size > 10_000
    assert (tmp_path / "out" / "transfers.svg").exists()


@pytest.mark.filterwarnings("ignore::waterfill.network.protocols.Misfit")
@pytest.mark.usefixtures("undrawn")
def test_compare_has_the_completion_times_of_sources_alone(waterfill, scenario, tmp_path):
    out = tmp_path / "out"
    command = ("compare", str(scenario), "--protocols", "xcp,cubic", "-o", str(out))
    done = waterfill(*command)
    assert done.code == 0, done.err
    assert "slowdown: completion time" in done.out
    assert (out / "transfers.png").exists()
    for name, run in json.loads((out / "compare.json").read_text())["runs"].items():
        mine = run["compare"]["transfers"]
        found = package.load(out / name).transfers
        assert mine["flows"] == found.num_rows > 100
        assert mine == json.loads(json.dumps(transfers.overall(found)))
        assert 1 <= mine["slowdown"]["p50"] < mine["slowdown"]["p99"]


def test_a_comparison_without_sizes_has_none():
    link = {"name": "l", "from": "a", "to": "b", "rate": "5 Mbit/s", "delay": "5 ms"}
    run = {"duration": "1 s", "protocol": "maxnet", "link": [link],
           "flow": [{"name": "f", "from": "a", "to": "b"}]}  # fmt: skip
    document = compare.of({"maxnet": package.run(run)}).document()
    assert document["runs"]["maxnet"]["compare"]["transfers"] is None


@pytest.mark.parametrize("command", ["run", "compare"])
def test_no_completed_flow_leaves_the_axes_of_its_figure_linear(waterfill, command):
    Path("s.toml").write_text(
        'duration = "1 s"\nprotocol = "cubic"\n[[link]]\nname = "l"\nfrom = "a"\nto = "b"\n'
        'rate = "1 Mbit/s"\n[[flow]]\nname = "f"\nfrom = "a"\nto = "b"\nsize = "10 MB"\n'
    )
    more = ("--protocols", "cubic,reno") if command == "compare" else ()
    answer = waterfill(command, "s.toml", *more, "-o", "out")
    assert (answer.code, "cannot be written" in answer.err) == (0, False)
    assert Path("out/transfers.png").stat().st_size > 0


def test_large_rates_have_no_decimals(waterfill):
    Path("s.toml").write_text(
        'duration = "10 ms"\nprotocol = "cubic"\n[[link]]\nname = "l"\nfrom = "a"\nto = "b"\n'
        'rate = "400 Gbit/s"\n[[flow]]\nname = "f"\nfrom = "a"\nto = "b"\nsize = "50 MB"\n'
    )
    shown = waterfill("run", "s.toml").out
    assert " 400 " in shown
    assert "Gbit/s" in shown
    assert "…" not in shown


@pytest.mark.usefixtures("undrawn")
def test_tables_and_pages_say_which_rates_the_ideal_has(waterfill, tmp_path):
    (tmp_path / "s.toml").write_text(
        'duration = "2 s"\nprotocol = "cubic"\n[[link]]\nname = "l"\nfrom = "a"\nto = "b"\n'
        'rate = "1 Mbit/s"\ndelay = "5 ms"\nevent = [{at = "100 ms", rate = "50 Mbit/s"}]\n'
        '[[flow]]\nname = "f"\nfrom = "a"\nto = "b"\nsize = "500 kB"\n'
    )
    ran = waterfill("run", "s.toml", "-o", "out")
    assert pq.read_table("out/transfers.parquet")["slowdown"].to_pylist()[0] < 1
    note = "with the rates and delays of the run's start"
    assert note in " ".join(ran.out.split())
    assert waterfill("report", "out").code == 0
    assert note in (tmp_path / "out/report.html").read_text().replace("&#39;", "'")
