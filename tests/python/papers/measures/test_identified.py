"""Parameters that the measures read off a run are those that the run was given."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import waterfill
from waterfill.papers.measures import identified
from waterfill.runs.result import Result

SCENARIO = """
name = "a second flow joins"
protocol = "{law}"
duration = "{duration}"
sample = "{sample}"
flow = [
    {{ name = "f", path = ["l"], rtt = "60 ms" }},
    {{ name = "g", path = ["l"], rtt = "60 ms", start = "8 s" }},
]
[[link]]
name = "l"
from = "a"
to = "b"
rate = "{rate}"
delay = "5 ms"
buffer = "2 bdp"
[params.{law}]
{params}
"""


# Samples must resolve what an equation describes: several RTTs for windows, much less for a source.
SETTINGS = {
    "aecp": {"rate": "500 Mbit/s", "sample": "20 ms", "duration": "20 s"},
    "maxnet2006": {"rate": "50 Mbit/s", "sample": "5 ms", "duration": "12 s"},
    "sack": {"rate": "50 Mbit/s", "sample": "500 ms", "duration": "120 s"},
    "vcp": {"rate": "50 Mbit/s", "sample": "1 s", "duration": "60 s"},
}
OTHERS = {"rate": "50 Mbit/s", "sample": "20 ms", "duration": "20 s"}


@cache
def run(law: str, params: str = "") -> Result:
    settings = SETTINGS.get(law, OTHERS)
    text = SCENARIO.format(law=law, params=params, **settings)
    return waterfill.Scenario.from_toml(text).run()


WINDOW = {"start_s": 8.0, "stop_s": 120.0}
JOINING = {"flow": "f", "start_s": 8.0, "stop_s": 10.0}
FLOW = {"flow": "f", **WINDOW}
LINK = {"link": "l", **WINDOW}
# AECP overshoots when a flow joins; T is that of small deviations.
CALM = {"link": "l", "start_s": 14.0, "stop_s": 120.0}
QUEUE = {"packet_bytes": 1500.0, "q_0": 100.0}


@pytest.mark.parametrize(
    ("law", "params", "measure", "args", "expected", "tolerance"),
    [
        ("maxnet", "", "maxnet_alpha", FLOW | {"x_max_bps": 1e15}, 0.66, 0.01),
        ("maxnet", "alpha = 0.4", "maxnet_alpha", FLOW | {"x_max_bps": 1e15}, 0.4, 0.01),
        ("maxnet", "", "maxnet_t", FLOW | {"alpha": 0.66}, 0.4, 0.02),
        ("maxnet", 't = "300 ms"', "maxnet_t", FLOW | {"alpha": 0.66}, 0.3, 0.02),
        ("maxnet", "", "maxnet_eta", JOINING | {"alpha": 0.66, "t_s": 0.4}, 0.0396, 0.25),
        ("maxnet", "eta = 0.03", "maxnet_eta", JOINING | {"alpha": 0.66, "t_s": 0.4}, 0.0198, 0.25),
        ("xcp", "", "xcp_gamma", LINK | {"protocol": "xcp"}, 0.1, 0.03),
        ("xcp", "gamma = 0.3", "xcp_gamma", LINK | {"protocol": "xcp"}, 0.3, 0.03),
        ("aecp", "", "aecp_beta", LINK | QUEUE, 1.0, 0.05),
        ("aecp", "beta = 0.5", "aecp_beta", LINK | QUEUE, 0.5, 0.05),
        ("aecp", "", "aecp_t", CALM | QUEUE, 2.0, 0.2),
        ("aecp", 't = "4 s"', "aecp_t", CALM | QUEUE, 4.0, 0.2),
        ("aecp", "", "aecp_alpha", FLOW, 2.0, 0.25),
        ("aecp", "alpha = 1", "aecp_alpha", FLOW, 1.0, 0.25),
        ("sack", "", "window_cut", FLOW, 0.5, 0.1),
        ("sack", "decrease = 0.7", "window_cut", FLOW, 0.7, 0.1),
        ("sack", "", "window_growth", FLOW | {"packet_bytes": 1500.0}, 1.0, 0.1),
        ("sack", "increase = 2", "window_growth", FLOW | {"packet_bytes": 1500.0}, 2.0, 0.1),
        ("vcp", "", "vcp_gamma", LINK, 0.98, 0.03),
        ("vcp", "gamma = 0.8", "vcp_gamma", LINK, 0.8, 0.03),
    ],
)
def test_the_run_s_parameter_is_found(
    law: str, params: str, measure: str, args: dict[str, Any], expected: float, tolerance: float
):
    found = getattr(identified, measure)(run(law, params), **args)
    assert found == pytest.approx(expected, rel=tolerance)


def test_an_average_makes_prices_less_rough():
    on, off = (
        identified.price_roughness(run("maxnet2006", params), **FLOW, link="l")
        for params in ("", "average = false")
    )
    assert on is not None
    assert off is not None
    assert on < 0.9 * off


def test_a_window_without_samples_has_no_parameter():
    late = {"start_s": 130.0, "stop_s": 140.0}
    maxnet, aecp, sack = run("maxnet"), run("aecp"), run("sack")
    assert identified.maxnet_alpha(maxnet, flow="f", x_max_bps=1e15, **late) is None
    assert identified.aecp_alpha(aecp, flow="f", **late) is None
    assert identified.window_cut(sack, flow="f", **late) is None
    assert identified.xcp_gamma(maxnet, link="l", protocol="xcp", **WINDOW) is None
