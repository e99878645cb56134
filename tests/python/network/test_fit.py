"""Constants of laws that do not fit an RTT are named, and the proposed values work."""

from __future__ import annotations

import re
import warnings

import pytest

import waterfill
from waterfill.network.protocols import Misfit
from waterfill.runs import effective
from waterfill.scenario.loading import from_dict

FABRIC = {"rtt": "20 us", "rate": "10 Gbit/s", "duration": "20 ms"}
NEARER = {"rtt": "2 s", "rate": "10 Mbit/s", "duration": "200 s", "rto_min": "30 s"}
FAR = {"rtt": "10 s", "rate": "10 Mbit/s", "duration": "600 s", "rto_min": "30 s"}


def scenario(law, rtt, rate, duration, **keys):
    link = {"name": "l", "from": "a", "to": "b", "rate": rate, "delay": "1 us"}
    flow = {"name": "f", "path": ["l"], "count": 4, "rtt": rtt}
    base = {"protocol": law, "duration": duration, "sample": duration}
    return {**base, "link": [link], "flow": [flow], **keys}


def warned(document):
    """Return the result, the keys warned of, and the proposed parameters."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = waterfill.run(document)
    texts = [str(one.message) for one in caught if one.category is Misfit]
    pairs = [
        pair for text in texts for pair in re.findall(r"(\w+) = (\"[^\"]*\"|[0-9.e+-]+)", text)
    ]
    return result, texts, {name: value.strip('"') for name, value in pairs}


@pytest.mark.parametrize(
    ("law", "where", "text", "proposed"),
    [
        ("xcp", FAR, "max_interval: 1 s is shorter than the RTT of 10 s", {"max_interval": "10 s"}),
        ("ixcp", FAR, "max_interval: 1 s is shorter than the RTT of 10 s",
         {"max_interval": "10 s"}),
        ("vcp", NEARER, "t_rho: 200 ms is shorter than the RTT of 2 s",
         {"t_rho": "2 s", "t_d": "2 s", "t_q": "100 ms"}),
        ("abc", FAR, "window: 20 ms is short for an RTT of 10 s",
         {"window": "10 s", "delta": "10 s"}),
        ("aecp", NEARER, "alpha: 2 per second is 4 per RTT of 2 s",
         {"alpha": "0.25", "beta": "0.1", "t": "4 s"}),
    ],
)  # fmt: skip
def test_proposed_values_fill_the_link_fairly(law, where, text, proposed):
    before, texts, found = warned(scenario(law, **where))
    assert len(texts) == 1
    assert f"params.{law}.{text}" in texts[0]
    assert found == proposed
    changed = {name: float(value) if value[-1].isdigit() else value
               for name, value in found.items()}  # fmt: skip
    after, texts, _ = warned(scenario(law, **where, params={law: changed}))
    assert texts == []  # what a scenario sets itself is not checked
    jain = after.summary.jain_index
    assert jain is not None
    assert jain > 0.95 or law == "maxnet"
    link = after.summary.links[0]
    assert link.utilization is not None
    assert link.utilization > 0.88
    worse = before.summary.links[0]
    assert (
        worse.utilization or 0
    ) < link.utilization or worse.queue_bytes.max > 2 * link.queue_bytes.max


@pytest.mark.parametrize(
    ("law", "text"),
    [
        (
            "rcp",
            "first_rtt: 200 ms is above 10 RTT of 20 us, r_min = 24 kbit/s below 0.001 packets",
        ),
        ("jetmax", "interval: 100 ms is above 10 RTT of 20 us, x_min = 10 kbit/s below 0.001"),
        ("aecp", "t: 2 s is above 1000 RTT of 20 us, t_2 = 100 ms above 10 RTT, x_0 = 10 below"),
        ("maxnet", "t: 400 ms is above 1000 RTT of 20 us, dt_p = 1 ms above 0.25 RTT; without it,"),
        ("vcp", "t_rho: 200 ms is above 10 RTT of 20 us, t_d = 200 ms above 10 RTT, ai_rtt"),
        ("xcp", "min_interval: 1 ms is above 10 RTT of 20 us, first_interval = 50 ms above 10 RTT"),
    ],
)
def test_in_a_fabric_the_profile_fits(law, text):
    before, texts, _ = warned(scenario(law, **FABRIC))
    assert f"params.{law}.{text}" in texts[0]
    keys = [re.search(r"<dict>: (\w+)", one)[1] for one in texts[1:]]
    assert keys == ["rto_min", "syn_rto"]
    document = scenario(law, **FABRIC, profile="datacenter")
    del document["sample"]
    after, texts, _ = warned(document)
    assert texts == []
    assert after.network.sample_s == 20e-6
    assert after.network.rto_min_s == after.network.syn_rto_s == 500e-6
    assert after.summary.jain_index > 0.95
    link, worse = after.summary.links[0], before.summary.links[0]
    assert link.utilization > 0.85
    assert link.drops == 0
    assert worse.utilization < link.utilization or worse.queue_bytes.max > link.queue_bytes.max


def test_own_constants_of_a_fabric_are_checked_too():
    own = {"t": "10 ms", "t_0": "1 ms", "dt_p": "100 us"}
    _, texts, _ = warned(scenario("maxnet", **FABRIC, params={"maxnet": own}))
    assert "params.maxnet.dt_p: 100 us is above 0.25 RTT of 20 us; without it" in texts[0]
    assert 'profile = "datacenter" sets dt_p = 1.67 us' in texts[0]


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({}, "link.mark_at: no link marks packets, so dctcp sees drops only; set mark_at = "),
        ({"mark_at": "100 kB", "buffer": "50 kB"}, "link.l.buffer: 50 kB is below mark_at, 100 kB"),
    ],
)
def test_marks_of_a_fabric_are_checked(more, text):
    document = scenario("dctcp", **FABRIC)
    document["link"][0] |= more
    _, texts, _ = warned(document)
    assert text in texts[-1]


def test_a_limit_is_named():
    _, (text,), _ = warned(scenario("maxnet", **{**FAR, "duration": "30 s"}))
    assert text.endswith(
        'set t = "1.22 s" and t_0 = "408 ms", the longest that prices below 32 s allow'
    )


@pytest.mark.parametrize("law", ["maxnet", "xcp", "rcp", "aecp", "jetmax", "vcp", "abc", "cubic"])
@pytest.mark.parametrize("rtt", ["1 ms", "100 ms", "400 ms"])
def test_usual_rtts_are_not_warned_of(law, rtt):
    usual = {"rate": "10 Mbit/s", "duration": "2 s", "rto_min": "1 s"}
    assert warned(scenario(law, rtt=rtt, **usual))[1] == []


def test_flows_of_a_source_are_checked_and_check_warns(waterfill, tmp_path):
    (tmp_path / "s.toml").write_text(
        'protocol = "rcp"\nduration = "10 ms"\n[[link]]\nname = "l"\nfrom = "a"\nto = "b"\n'
        'rate = "1 Gbit/s"\ndelay = "5 us"\n[[traffic]]\nkind = "web"\npath = ["l"]\n'
        "arrival_rate = 1000\n"
    )
    grid = ("--grid", "link.l.delay=5us,6us", "--workers", "1", "-o", "out")
    for command in (("run", "s.toml"), ("check", "s.toml"), ("sweep", "s.toml", *grid)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            waterfill(*command)
        texts = [str(one.message) for one in caught if one.category is Misfit]
        assert len(set(texts)) == len(texts)
        assert any("sample: 100 ms is above a twen" in one for one in texts) == (
            command[0] != "run"
        )
        assert len([one for one in texts if "params.rcp.first_rtt: 200 ms" in one]) == 1


@pytest.mark.parametrize(("carriage", "listed"), [("option", True), ("csig", False)])
def test_the_unit_of_prices_is_listed_where_it_has_an_effect(carriage, listed):
    keys = {"profile": "datacenter", "params": {"maxnet": {"carriage": carriage}}}
    document = scenario("maxnet", **FABRIC, **keys)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = effective.document(from_dict(document))["constants"]
    keys = {row["key"] for row in found}
    assert ("params.maxnet.price_unit" in keys) == listed
    assert "params.maxnet.t" in keys
