"""Constants of laws that do not fit an RTT are named, and the proposed values work."""

from __future__ import annotations

import re
import warnings

import pytest

import waterfill
from waterfill.network.protocols import Misfit

FABRIC = {"rtt": "20 us", "rate": "10 Gbit/s", "duration": "200 ms", "rto_min": "1 ms"}
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
        ("rcp", FABRIC, "r_min: at 24 kbit/s a source sends one packet in 25000 RTTs of 20 us and",
         {"r_min": "60 Mbit/s"}),
        ("jetmax", FABRIC, "interval: 100 ms is 5000 RTTs of 20 us", {"interval": "2 ms"}),
        ("aecp", FABRIC, "x_0: 10/s is one packet in 5000 RTTs of 20 us", {"x_0": "50000"}),
        ("maxnet", FABRIC, "t: 400 ms is 20000 RTTs of 20 us", {"t": "2 ms", "t_0": "2 ms"}),
        ("maxnet2006", FABRIC, "t: 50 ms is 2500 RTTs of 20 us", {"t": "2 ms"}),
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
    least = 0.2 if law == "aecp" and where is FABRIC else 0.88
    assert link.utilization is not None
    assert link.utilization > least
    worse = before.summary.links[0]
    assert (
        worse.utilization or 0
    ) < link.utilization or worse.queue_bytes.max > 2 * link.queue_bytes.max


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
        with pytest.warns(Misfit, match="params.rcp.r_min: at 24 kbit/s") as caught:
            waterfill(*command)
        assert len(caught) == 1
