"""Tests of links whose two directions differ: each key, from file to core and tables."""

import pytest

import waterfill
from waterfill.contract.summary import LinkSummary
from waterfill.errors import InputError
from waterfill.network import graph, protocols, resolve, shares
from waterfill.report import topology
from waterfill.runs import effective
from waterfill.scenario.loading import from_toml
from waterfill.studio import controls
from waterfill.studio import topology as drawing

BASE = """
duration = "4 s"
protocol = "reno"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "8 ms"
KEYS
[[flow]]
name = "there"
from = "a"
to = "b"
[[flow]]
name = "back"
from = "b"
to = "a"
"""
ASYMMETRIC = """
rate_reverse = "40 Mbit/s"
delay_reverse = "2 ms"
"""


def scenario_of(keys):
    return from_toml(BASE.replace("KEYS", keys), "S.toml")


def links_of(keys):
    return resolve.to_core(scenario_of(keys), protocols.load()).links


def test_rate_and_delay_of_each_direction():
    scenario = scenario_of(ASYMMETRIC)
    network = resolve.to_core(scenario, protocols.load())
    assert [(x.name, x.rate_bps, x.delay_s) for x in network.links] == [
        ("l", 10e6, 8e-3), ("l:rev", 40e6, 2e-3)
    ]  # fmt: skip
    assert [flow.base_rtt_s for flow in network.flows] == pytest.approx([10e-3, 10e-3])
    # 1 bdp is of the direction's own rate and the largest base RTT of the link.
    assert [x.buffer.size for x in network.links] == [12_500, 50_000]
    directions = graph.Graph(scenario).directions
    assert [(d.link.capacity, d.link.min_delay) for d in directions] == [(10e6, 8e-3), (40e6, 2e-3)]


@pytest.mark.parametrize(
    ("keys", "sizes"),
    [
        ("", ["bytes 20000", "bytes 20000"]),
        ('buffer_reverse = "7 packets"', ["bytes 20000", "packets 7"]),
        ('buffer = "3 kB"', ["bytes 3000", "bytes 3000"]),
        ('buffer = "3 kB"\nbuffer_reverse = "2 bdp"', ["bytes 3000", "bytes 40000"]),
    ],
)
def test_buffer_of_each_direction(keys, sizes):
    assert [f"{x.buffer.unit} {x.buffer.size}" for x in links_of(keys)] == sizes


def test_run_and_fair_shares_have_each_directions_rate():
    scenario = scenario_of(ASYMMETRIC)
    (found,) = shares.document(scenario)["intervals"]
    assert [flow["rate_bps"] for flow in found["flows"]] == [10e6, 40e6]
    result = waterfill.run(scenario)
    rates = {flow["name"]: flow["rate_bps"] for flow in result.summary["flows"]}
    assert 7e6 < rates["there"] <= 10e6  # acknowledgements of `back` take the rest
    assert 15e6 < rates["back"] <= 40e6  # its acknowledgements queue behind `there`
    there, back = result.summary["flows"]
    assert there["rtt_ms"]["base"] == back["rtt_ms"]["base"] == pytest.approx(10)


def test_tables_and_pictures_show_both_directions():
    scenario = scenario_of(ASYMMETRIC)
    links = effective.document(scenario)["links"]
    shown = [(link["name"], link["rate_bps"], link["delay_s"]) for link in links]
    assert shown == [("l", 10e6, 8e-3), ("l:rev", 40e6, 2e-3)]
    assert "→ 10 Mbit/s · 8 ms" in drawing.draw(scenario)
    assert "← 40 Mbit/s · 2 ms" in drawing.draw(scenario)
    loads = [LinkSummary.read({"name": name, "utilization": 0.5}) for name in ("l", "l:rev")]
    arrows = topology.picture(scenario, loads).arrows
    assert [arrow.text.split(",")[0] for arrow in arrows] == ["l: 10 Mbit/s", "l:rev: 40 Mbit/s"]


def test_the_studio_has_sliders_for_both_directions():
    keys = [slider.key for slider in controls.of_link(scenario_of(ASYMMETRIC), "l")]
    assert keys[3:] == ["link.l.rate_reverse", "link.l.delay_reverse"]
    assert len(controls.of_link(scenario_of(""), "l")) == 3


def test_events_of_each_direction():
    forward, back = links_of(
        """
rate_reverse = "40 Mbit/s"
event = [
  {at = "1 s", rate = "5 Mbit/s", rate_reverse = "20 Mbit/s", delay = "6 ms"},
  {at = "2 s", rate_reverse = "30 Mbit/s", delay_reverse = "1 ms"},
  {at = "3 s", up = false},
]
"""
    )
    assert [(c.at_s, c.rate_bps, c.delay_s, c.up) for c in forward.changes] == [
        (1.0, 5e6, 6e-3, None), (3.0, None, None, False)
    ]  # fmt: skip
    assert [(c.at_s, c.rate_bps, c.delay_s, c.up) for c in back.changes] == [
        (1.0, 20e6, 6e-3, None), (2.0, 30e6, 1e-3, None), (3.0, None, None, False)
    ]  # fmt: skip


def test_base_rtt_has_the_smallest_delay_of_each_direction():
    network = resolve.to_core(
        scenario_of('event = [{at = "1 s", delay = "9 ms", delay_reverse = "1 ms"}]'),
        protocols.load(),
    )
    assert network.flows[0].base_rtt_s == pytest.approx(9e-3)


@pytest.mark.parametrize(
    ("keys", "key", "message"),
    [
        ('rate_reverse = "1 Mbit/s"', "rate_reverse", "not allowed with duplex = false"),
        ('delay_reverse = "0 s"', "delay_reverse", "not allowed with duplex = false"),
        ('buffer_reverse = "1 MB"', "buffer_reverse", "not allowed with duplex = false"),
        ("loss_reverse = 0.1", "loss_reverse", "not allowed with duplex = false"),
        (
            'event = [{at = "1 s", rate_reverse = "1 Mbit/s"}]',
            "event[0].rate_reverse",
            "not allowed with duplex = false",
        ),
    ],
)
def test_a_link_of_one_direction_has_no_reverse(keys, key, message):
    with pytest.raises(InputError) as refused:
        scenario_of(f"duplex = false\n{keys}")
    assert (refused.value.key, refused.value.message) == (f"link.l.{key}", message)


@pytest.mark.parametrize(
    ("keys", "key", "message"),
    [
        (
            'rate_reverse = "1 Mbit/s"\nevent = [{at = "1 s", rate = "2 Mbit/s"}]',
            "event[0].rate_reverse",
            "missing; the link has a rate_reverse, so an event sets both",
        ),
        (
            'rate_reverse = "1 Mbit/s"\nshaper = {rate = "2 Mbit/s", depth = "9 kB"}',
            "shaper.rate",
            "must be below the link's 1 Mbit/s, got 2 Mbit/s",
        ),
        (
            'rate_reverse = "1e-300 bit/s"',
            "rate_reverse",
            "a packet would take more than",
        ),
        (
            'event = [{at = "1 s", rate_reverse = "1e-300 bit/s"}]',
            "event[0].rate_reverse",
            "a packet would take more than",
        ),
        (
            'rate_trace_reverse = {points = [["0 s", "1 Mbit/s"], ["1 s", "1 Mbit/s"]]}\n'
            'event = [{at = "1 s", rate_reverse = "1 Mbit/s"}]',
            "event[0].rate_reverse",
            "not allowed on a link with a rate_trace",
        ),
    ],
)
def test_contradictions(keys, key, message):
    with pytest.raises(InputError) as refused:
        scenario_of(keys)
    assert refused.value.key == f"link.l.{key}"
    assert message in refused.value.message


def test_the_builder_has_the_keys_with_units():
    one = waterfill.Scenario("s", duration_s=1, protocol="reno").link(
        "l", "a", "b", "1 Mbit/s", rate_reverse_bps=2e6, delay_reverse_s=0.5,
        buffer_reverse_bdp=2,
    ).flow("f", "a", "b")  # fmt: skip
    link = one.checked().link[0]
    assert (link.rate_reverse, link.delay_reverse) == (2e6, 0.5)
    assert link.buffer_reverse.format() == "2 bdp"
    assert from_toml(one.checked().to_toml(), "x").link[0] == link
