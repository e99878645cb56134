"""Time series of chosen links, at an interval of their own."""

from __future__ import annotations

import numpy as np
import pytest

from waterfill import run
from waterfill.analysis import plots
from waterfill.analysis.series import rate_series
from waterfill.errors import InputError
from waterfill.network import protocols, resolve
from waterfill.network.resolve import to_core
from waterfill.scenario.loading import from_toml

BASE = """
duration = "105 ms"
protocol = "dctcp"
sample = "10 ms"
rto_min = "5 ms"
syn_rto = "5 ms"
ecmp = "hash"
[fabric]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts = 2
host_rate = "1 Gbit/s"
delay = "10 us"
[link_defaults]
buffer = "100 kB"
mark_at = "30 kB"
[[flow]]
name = "f"
from = "h0"
to = "h2"
[[flow]]
name = "g"
from = "h1"
to = "h2"
start = "20 ms"
"""
CHOSEN = 'series={links = ["h2-*", "l0-s1"], step = "1 ms"}'


def test_only_the_chosen_links_have_series_and_the_summary_has_all():
    every, some = run(from_toml(BASE)), run(from_toml(BASE, sets=[CHOSEN]))
    assert some.links["link"].unique().to_pylist() == [
        "h2-l1", "h2-l1:rev", "l0-s1", "l0-s1:rev",
    ]  # fmt: skip
    assert some.summary.links == every.summary.links
    assert some.summary.flows == every.summary.flows
    assert some.flows.equals(every.flows)
    assert every.links.num_rows == 11 * 16
    assert some.links.num_rows == 105 * 4


def test_samples_of_links_are_parts_of_longer_ones():
    every, some = run(from_toml(BASE)), run(from_toml(BASE, sets=[CHOSEN]))
    for column, combine in (("queue_bytes", np.mean), ("queue_max_bytes", max), ("marks", sum)):
        coarse = every.samples("links", "h2-l1:rev")[column].to_numpy()
        fine = some.samples("links", "h2-l1:rev")[column].to_numpy()
        parts = [fine[i : i + 10] for i in range(0, 105, 10)]
        assert coarse == pytest.approx([combine(part) for part in parts])
        assert fine.any()


def test_rates_keep_the_interval_of_the_flows():
    every, some = run(from_toml(BASE)), run(from_toml(BASE, sets=[CHOSEN]))
    wanted, found = rate_series(every, "g"), rate_series(some, "g")
    assert np.array_equal(wanted[0], found[0])
    assert np.array_equal(wanted[1], found[1])
    assert found[1].any()


def test_a_step_alone_samples_all_links():
    scenario = from_toml(BASE, sets=["series.step=5 ms"])
    assert run(scenario).links.num_rows == 21 * 16


def test_the_budget_counts_the_chosen_links():
    def size(*sets: str) -> int:
        network = to_core(from_toml(BASE, sets=sets), protocols.load())
        return resolve.sample_bytes(network, protocols.load(), "sim")

    # Two flows, 16 directions or 4.
    assert (size() - size('series={links = ["h2-*", "l0-s1"]}')) * 4 == (size() - size(
        'series={links = ["*:rev"]}'
    )) * 6  # fmt: skip
    assert size(CHOSEN) - size('series={links = ["h2-l1:rev"]}') > 0


def test_the_fluid_model_keeps_the_chosen_links():
    sets = [
        "protocol=maxnet",
        "ecmp=pair",
        "profile=datacenter",
        "link_defaults={}",
        'series.links=["h2-*:rev"]',
    ]
    found = run(from_toml(BASE, sets=sets), on="fluid")
    assert found.links["link"].unique().to_pylist() == ["h2-l1:rev"]
    assert len(found.summary.links) == 16


def test_a_figure_of_another_link_is_refused():
    some = run(from_toml(BASE, sets=[CHOSEN]))
    assert plots.queues(some, links=["h2-l1:rev"]) is not None
    with pytest.raises(InputError, match=r"series\.links: chooses no time series of link .h0-l0."):
        plots.queues(some, links=["h0-l0"])
    with pytest.raises(KeyError):
        some.samples("links", "h9-l0")


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (
            'series.links=["h0-*", "h0-l1"]',
            'series.links[1]: no link has a name like "h0-l1", did you mean "h0-l0"?',
        ),
        ("series.links=[]", "series.links: must have at least 1 entry, got []"),
        ('series={link = ["h0-*"]}', 'series.link: unknown key, did you mean "links"?'),
        (
            "series.step=3 ms",
            'series.step: must divide sample, 10 ms, got 3 ms; write sample = "9 ms"',
        ),
        ("series.step=1 ps", "series.step: the run has more than 10000000 samples, got 1 ps"),
        ("series=3", 'series: must be a volume such as "1 GB", got 3'),
    ],
)
def test_a_wrong_choice_says_what_to_write(sets, message):
    with pytest.raises(InputError) as error:
        from_toml(BASE, sets=[sets])
    assert message in str(error.value)


def test_a_step_on_fluid_is_refused():
    sets = ["protocol=maxnet", "ecmp=pair", "link_defaults={}", "series.step=1 ms"]
    with pytest.raises(InputError, match=r"series\.step: .* not supported by the fluid backend"):
        run(from_toml(BASE, sets=sets), on="fluid")


@pytest.mark.parametrize("given", ['{links = ["h2-*"], step = "1 ms", size = "1 MB"}', "1 MB"])
def test_the_key_survives_being_written(given):
    scenario = from_toml(BASE, sets=[f"series={given}"])
    again = from_toml(scenario.to_toml())
    assert again.series == scenario.series
