"""Tests of faults of headers and wires on the running kernel: refusals and effects."""

import pytest

import waterfill
from waterfill.errors import InputError
from waterfill.scenario.loading import from_toml
from waterfill.testbed import checks, daemon

LACKS = checks.missing()
pytestmark = pytest.mark.skipif(LACKS is not None, reason=f"the testbed needs {LACKS}")

BASE = """
duration = "3 s"
protocol = "cubic"
sample = "500 ms"
measure = ["1 s", "3 s"]
[[link]]
name = "l"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "5 ms"
buffer = "20 packets"
LINK
[[flow]]
name = "f"
from = "a"
to = "b"
FLOW
"""


def scenario_of(link="", flow=""):
    return from_toml(BASE.replace("LINK", link).replace("FLOW", flow), "S.toml")


def test_held_acknowledgements_lengthen_the_rtt():
    hold = 'ack_aggregation = {every = "100 ms", at = "1 s"}'
    rows = waterfill.run(scenario_of(hold), on="linux").flows.to_pydict()
    rtts = dict(zip(rows["time_s"], rows["rtt_s"], strict=True))
    # 10 ms, at most 24 ms of queue, and on average half of 100 ms.
    assert rtts[1.0] < 0.04 < rtts[3.0]


def test_a_restart_loses_the_price():
    if "maxnet" not in daemon.laws():
        pytest.skip("needs waterfilld (make build)")
    restart = '[[link.fault]]\nkind = "restart"\nat = "2 s"'
    text = BASE.replace("LINK", restart).replace("FLOW", "count = 2").replace("500 ms", "100 ms")
    result = waterfill.run(from_toml(text.replace("cubic", "maxnet"), "S.toml"), on="linux")
    rows = result.links.to_pydict()
    prices = {
        round(time_s, 1): price
        for time_s, name, price in zip(
            *(rows[k] for k in ("time_s", "link", "maxnet_price")), strict=True
        )
        if name == "l" and price is not None
    }
    before = min(price for time_s, price in prices.items() if 1.5 < time_s < 2.0)
    after = min(price for time_s, price in prices.items() if 2.0 < time_s < 2.6)
    # Two flows have T ln 2 = 0.28 s more than the price with which a router begins.
    assert after < before - 0.1
    [check] = [one for one in result.summary["checks"] if one["name"] == "link changes"]
    assert check["found"]["errors"] == []


@pytest.mark.parametrize(
    ("link", "flow", "message"),
    [
        (
            '[[link.fault]]\nkind = "clock"\nat = "1 s"\nstep = "1 s"',
            "",
            "link.l.fault[0].kind: not possible on linux, whose laws read CLOCK_MONOTONIC",
        ),
        ("", '[[flow.fault]]\nkind = "lie"', "flow.f.fault: not supported by the linux backend"),
    ],
)
def test_what_the_kernel_cannot_do_is_refused(link, flow, message):
    with pytest.raises(InputError) as error:
        waterfill.run(scenario_of(link, flow), on="linux")
    assert message in str(error.value)
