"""The budget of time series: networks that would exceed it are sampled less often, with a note."""

from __future__ import annotations

from pathlib import Path

import pytest

from waterfill import run
from waterfill.analysis import tables
from waterfill.network import protocols, resolve
from waterfill.network.resolve import to_core
from waterfill.runs.result import Result
from waterfill.scenario.loading import from_toml, load

ROOT = Path(__file__).parents[3]
BASE = """
duration = "1 s"
protocol = "maxnet"
sample = "10 ms"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "5 ms"
[[flow]]
name = "f"
from = "a"
to = "b"
count = 3
"""
CBR = '[[traffic]]\nkind = "cbr"\npath = ["l"]\nrate = "1 Mbit/s"\n'


def size(result: Result) -> int:
    series = (result.flows, result.links, result.traffic)
    return sum(resolve.NUMBER_BYTES * table.num_rows * table.num_columns for table in series)


@pytest.mark.parametrize(
    "text",
    [
        BASE,
        BASE + CBR,
        BASE + '[[flow]]\nname = "g"\nprotocol = "xcp"\nfrom = "a"\nto = "b"\n',
        BASE.replace("[[flow]]", 'queue = "cohabit"\nrouters = ["rcp"]\n[[flow]]'),
        BASE.replace("[[flow]]", '[[link.event]]\nat = "1 ms"\nrate = "9 Mbit/s"\n[[flow]]'),
    ],
)
def test_the_size_of_a_sample_is_the_series(text):
    scenario = from_toml(text)
    each = resolve.sample_bytes(to_core(scenario, protocols.load()), protocols.load(), "sim")
    assert size(run(scenario)) == 100 * each


@pytest.mark.parametrize("on", ["sim", "fluid"])
def test_series_above_the_budget_are_sampled_less_often(on):
    all_of_it = run(from_toml(BASE), on=on)
    whole = size(all_of_it)
    assert all_of_it.summary.decimated is None
    limit = whole // 4 - 1
    kept = run(from_toml(BASE, sets=[f"series={limit} B"]), on=on)
    assert kept.summary["decimated"] == {
        "sample_s": 0.05, "asked_s": 0.01, "budget_bytes": limit,
    }  # fmt: skip
    assert whole // 5 == size(kept) <= limit
    assert kept.summary.flows == all_of_it.summary.flows
    if on == "sim":  # the fluid model rounds its drops in each sample
        assert kept.links["drops"].to_numpy().sum() == all_of_it.links["drops"].to_numpy().sum()
    # The mean of the samples that a longer one covers.
    fine = all_of_it.samples("flows", "f[0]")["rate_bps"].to_numpy().reshape(-1, 5)
    coarse = kept.samples("flows", "f[0]")["rate_bps"].to_numpy()
    assert coarse == pytest.approx(fine.mean(axis=1))
    note = tables.decimated(kept.summary.decimated)
    assert note.startswith("samples: every 50 ms instead of 10 ms, so that the series need at most")


def test_the_table_says_that_samples_are_left_out(waterfill, tmp_path):
    (tmp_path / "s.toml").write_text(BASE)
    ran = waterfill("run", "s.toml", "--set", "series=10 kB")
    assert ran.code == 0
    assert (
        "samples: every 40 ms instead of 10 ms, so that the series need at most 10 kB"
        in " ".join(ran.out.split())
    )
    assert "samples:" not in waterfill("run", "s.toml").out


def test_a_budget_below_one_sample_leaves_one():
    result = run(from_toml(BASE, sets=["series=1 B"]))
    assert result.links["time_s"].unique().to_pylist() == [1.0]


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("examples/*.toml")) + sorted(ROOT.glob("papers/*/*/*.toml"))
)
def test_no_scenario_of_ours_exceeds_the_default(path):
    if path.name == "claims.toml":
        return
    scenario = load(path)
    network = to_core(scenario, protocols.load())
    assert resolve.decimation(scenario, network) is None
