"""Jitter of runs over several seeds, and the hint at a run that lacks chance."""

from __future__ import annotations

import pytest

from waterfill.network import chance, protocols
from waterfill.scenario.loading import from_toml

TWO = """
name = "two"
duration = "4 s"
protocol = "cubic"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "20 Mbit/s"
delay = "10 ms"
[[flow]]
name = "f"
path = ["l"]
rtt = "20 ms"
[[flow]]
name = "g"
path = ["l"]
rtt = "80 ms"
"""


def test_flows_that_state_no_jitter_get_one_rtt_and_one_percent():
    given = TWO + 'start_jitter = "0 s"\n[[flow]]\nname = "h"\npath = ["l"]\nsize = "1 MB"\n'
    f, g, h = chance.jittered(from_toml(given, "s.toml")).flow
    assert (f.start_jitter, f.rtt_jitter) == pytest.approx((0.02, 0.0002))
    assert (g.start_jitter, g.rtt_jitter) == (0, 0)  # stated
    assert (h.start_jitter, h.rtt_jitter) == pytest.approx((0, 0.0002))  # has a size
    late = from_toml(TWO + 'start = "3.96 s"\n', "s.toml")
    assert chance.jittered(late).flow[1].start_jitter == pytest.approx(0.02)  # not 0.08


@pytest.mark.parametrize(
    ("change", "decides"),
    [
        (("", ""), True),
        (('protocol = "cubic"', 'protocol = "maxnet"'), False),
        (('rtt = "80 ms"', 'rtt = "80 ms"\nrtt_jitter = "1 ms"'), False),
        (('delay = "10 ms"', 'delay = "10 ms"\nloss = 0.001'), False),
        (('delay = "10 ms"', 'delay = "10 ms"\nqueue = "red"'), False),
        (('delay = "10 ms"', 'delay = "10 ms"\nqueue = "codel"'), True),
        (('name = "g"', 'name = "g"\nprotocol = "maxnet"'), False),
    ],
)
def test_phase_decides_where_tcps_compete_and_nothing_is_random(change, decides):
    scenario = from_toml(TWO.replace(*change) if change[0] else TWO, "s.toml")
    assert chance.decided_by_phase(scenario, protocols.load()) is decides


def test_seeds_show_the_spread_that_one_run_hides(waterfill, tmp_path):
    (tmp_path / "s.toml").write_text(TWO)
    alone = waterfill("compare", "s.toml", "--protocols", "cubic")
    assert "hint: nothing in two is random" in alone.err
    assert "--seeds 5" in alone.err
    ran = waterfill("compare", "s.toml", "--protocols", "cubic", "--seeds", "3", "--json")
    assert "hint:" not in ran.err
    shares = ran.document["over_seeds"]["cubic"]["jain_index"]["values"]
    assert len(set(shares)) == 3


def test_a_sweep_jitters_the_points_of_several_seeds(waterfill, tmp_path):
    (tmp_path / "s.toml").write_text(TWO)
    words = ("sweep", "s.toml", "--grid", "link.l.delay=10 ms", "--workers", "1")
    ran = waterfill(*words, "--seeds", "2", "-o", "several", "--column", "first=flows.f.rate_bps")
    assert ran.code == 0, ran.err
    assert "±" in ran.out
    assert "Jitter by seed" in " ".join(ran.out.split())
    # A result without jitter is of other runs.
    assert waterfill(*words, "--seeds", "1", "-o", "one").code == 0
    assert waterfill(*words, "--seeds", "2", "--resume", "-o", "one").code == 2
