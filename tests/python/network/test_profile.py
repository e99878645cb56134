"""The data-center profile: where its values apply, where they do not, and what `check` shows."""

from __future__ import annotations

import json

import pytest

import waterfill
from waterfill.network import constants, protocols, resolve
from waterfill.scenario.loading import from_dict, from_toml

LINKS = [
    {"name": name, "from": name[0], "to": name[1], "rate": rate, "delay": "3 us"}
    for name, rate in (("ab", "100 Gbit/s"), ("bc", "400 Gbit/s"))
]
FILE = {"duration": "10 ms", "protocol": "maxnet", "profile": "datacenter", "link": LINKS,
        "flow": [{"name": "f", "from": "a", "to": "c"}]}  # fmt: skip


def resolved(backend="sim", **keys):
    return resolve.to_core(from_dict({**FILE, **keys}), protocols.load(), backend)


def test_values_follow_the_rtt_and_the_links():
    # The RTT is 12 us, and the fastest link has 400 Gbit/s.
    network = resolved()
    assert network.sample_s == 12e-6
    assert network.rto_min_s == network.syn_rto_s == 300e-6
    # 25 and 2/3 bdp of each link's own rate.
    assert [link.buffer.size for link in network.links[::2]] == [3_750_000, 15_000_000]
    assert [link.queue.mark_at.bytes for link in network.links[::2]] == [100_000, 400_000]
    maxnet = network.params["maxnet"]
    assert maxnet["dt_p"] == 1e-6
    assert maxnet["t"] == 28.8e-6
    assert maxnet["dt_min"] == 30e-9
    assert maxnet["promise"] is True
    assert maxnet["x_max"] == 4e15


def test_keys_of_the_scenario_win():
    own = {"sample": "1 ms", "rto_min": "2 ms", "syn_rto": "3 ms"}
    links = [link | {"buffer": "1 MB", "mark_at": "50 kB"} for link in LINKS]
    params = {"maxnet": {"dt_p": "2 us"}}
    network = resolved(**own, link=links, params=params)
    assert (network.sample_s, network.rto_min_s, network.syn_rto_s) == (1e-3, 2e-3, 3e-3)
    assert {link.buffer.size for link in network.links} == {1_000_000}
    assert {link.queue.mark_at.bytes for link in network.links} == {50_000}
    assert network.params["maxnet"]["dt_p"] == 2e-6
    assert network.params["maxnet"]["t"] == 28.8e-6


def test_the_wide_area_is_the_default():
    wan = resolved(profile="wan")
    assert (wan.sample_s, wan.rto_min_s, wan.syn_rto_s) == (0.1, 1.0, 1.0)
    assert wan.params == {}
    assert {link.queue.mark_at for link in wan.links} == {None}


def test_a_written_scenario_resolves_to_the_same_network():
    scenario = from_dict(FILE)
    again = from_toml(scenario.to_toml())
    known = protocols.load()
    assert resolve.to_core(again, known) == resolve.to_core(scenario, known)


def test_backends_say_what_they_lack():
    assert {link.queue.mark_at for link in resolved("fluid").links} == {None}
    with pytest.raises(waterfill.InputError, match='profile: "datacenter" is not supported by the'):
        resolved("linux")
    with pytest.raises(waterfill.InputError, match="syn_rto"):
        resolved("linux", profile="wan", syn_rto="1 ms")


def test_a_network_without_delay_has_no_scale():
    links = [link | {"delay": "0 s"} for link in LINKS]
    with pytest.raises(
        waterfill.InputError, match='profile: "datacenter" needs a flow with a base'
    ):
        resolved(link=links)


def test_a_code_must_reach_the_fastest_link():
    params = {"maxnet": {"code_bits": 20, "code_max": "251 Gbit/s"}}
    with pytest.raises(waterfill.InputError) as caught:
        resolved(params=params)
    assert str(caught.value).endswith(
        "params.maxnet.code_max: must be at least the rate of the fastest link, 400 Gbit/s, got "
        '251 Gbit/s; set code_max = "400 Gbit/s"'
    )
    assert resolved(params={"maxnet": {"code_bits": 20}}).params["maxnet"]["code_max"] == 800e9


def test_every_constant_with_a_dimension_has_a_rule():
    """A parameter that is a time or a rate has a row, and a row has a parameter."""
    for law in protocols.load().values():
        rows = {one.name for one in constants.LAWS.get(law.name, ())}
        own = {param.name for param in law.params}
        assert rows <= own, law.name
        dimension = {p.name for p in law.params if p.unit in ("time", "rate")}
        # Both are 0, which stands for a mode.
        assert dimension - rows <= {"load_average", "element_until"}, law.name


@pytest.mark.parametrize("where", ["table", "json"])
def test_check_shows_the_constants_in_force(waterfill, tmp_path, where):
    (tmp_path / "s.toml").write_text(
        from_dict({**FILE, "params": {"maxnet": {"dt_p": "2 us"}}}).to_toml()
    )
    if where == "table":
        text = waterfill("check", "s.toml").out
        assert "RTT" in text
        assert "params.maxnet.dt_p" in text
        return
    document = json.loads(waterfill("check", "s.toml", "--json").out)
    rows = {row["key"]: row for row in document["constants"]}
    assert rows["params.maxnet.dt_p"]["value"] == "2 us"
    assert rows["params.maxnet.dt_p"]["from"] == "set"
    assert rows["params.maxnet.t"] | {"ground": ""} == {
        "key": "params.maxnet.t", "value": "28.8 us", "from": "datacenter", "rule": "2.4 RTT",
        "ground": "", "misfit": None,
    }  # fmt: skip
    assert rows["link.*.buffer"]["value"] == "15 MB, 3.75 MB"
