"""Tests of links that follow time on the running kernel: refusals, and changes of the rate."""

import pytest

import waterfill
from waterfill.errors import InputError
from waterfill.scenario.loading import from_toml
from waterfill.testbed import checks, daemon

LACKS = checks.missing()
pytestmark = pytest.mark.skipif(LACKS is not None, reason=f"the testbed needs {LACKS}")

BASE = """
duration = "4 s"
protocol = "PROTOCOL"
sample = "500 ms"
measure = ["1 s", "4 s"]
[[link]]
name = "l"
from = "a"
to = "b"
rate = "20 Mbit/s"
delay = "2 ms"
buffer = "20 packets"
KEYS
[[flow]]
name = "f"
from = "a"
to = "b"
"""


def needs_daemon():
    if "maxnet2006" not in daemon.laws():
        pytest.skip("needs waterfilld with maxnet2006 (make build)")


def check_of(result, name):
    [check] = [check for check in result.summary["checks"] if check["name"] == name]
    return check


def scenario_of(keys, protocol="cubic"):
    return from_toml(BASE.replace("KEYS", keys).replace("PROTOCOL", protocol), "S.toml")


def test_the_bucket_follows_a_trace():
    points = (
        '[["0 s", "20 Mbit/s"], ["2 s", "5 Mbit/s"], ["3 s", "10 Mbit/s"], ["9 s", "1 Mbit/s"]]'
    )
    result = waterfill.run(scenario_of(f"rate_trace = {{points = {points}}}"), on="linux")
    [flow] = result.summary["flows"]
    # Over 3 s: 20, 5 and 10 Mbit/s. A bucket that stayed as it was would pass 1.7 times as much.
    assert flow["max_min_bps"] == pytest.approx(35e6 / 3)
    assert 0.5 * 35e6 / 3 < flow["rate_bps"] < 1.1 * 35e6 / 3
    [link] = [link for link in result.summary["links"] if link["name"] == "l"]
    assert link["utilization"] == pytest.approx(flow["rate_bps"] / (35e6 / 3), abs=0.1)


def test_a_link_that_is_down_drops_and_a_delay_that_changes_is_kept():
    events = (
        '[[link.event]]\nat = "1 s"\nup = false\n[[link.event]]\nat = "1.5 s"\nup = true\n'
        '[[link.event]]\nat = "2.5 s"\ndelay = "60 ms"'
    )
    result = waterfill.run(scenario_of(events), on="linux")
    assert check_of(result, "link changes")["found"]["changes"] == 4
    assert check_of(result, "link changes")["found"]["errors"] == []
    [flow] = result.summary["flows"]
    rows = result.flows.to_pydict()
    rates = dict(zip(rows["time_s"], rows["rate_bps"], strict=True))
    assert rates[1.5] < 1e6 < rates[1.0]
    assert flow["timeouts"] > 0
    rtts = dict(zip(rows["time_s"], rows["rtt_s"], strict=True))
    assert rtts[4.0] > 0.12


def test_a_laws_router_has_the_rate_of_its_link():
    """A second half of the run at a fifth of the rate.

    A router that kept its own rate would fill the buffer and drop; one that knows the rate has a
    queue that drains.
    """
    needs_daemon()
    events = (
        '[[link.event]]\nat = "2 s"\nrate = "4 Mbit/s"\n'
        '[[link.event]]\nat = "3.9 s"\nrate = "5 Mbit/s"'
    )
    keys = events.replace("[[link.event]]", "target = 0.5\n[[link.event]]", 1)
    result = waterfill.run(scenario_of(keys, "maxnet2006"), on="linux")
    # Two directions and one router: MaxNet's data cross the link forwards.
    found = check_of(result, "link changes")["found"]
    assert found["changes"] == 6
    assert found["errors"] == []
    rows = result.links.to_pydict()
    last = [u for t, n, u in zip(rows["time_s"], rows["link"], rows["utilization"], strict=True)
            if n == "l" and t in (3.0, 3.5)]  # fmt: skip
    assert max(last) < 0.8  # all of the link, if the router aimed at half of 20 Mbit/s


@pytest.mark.parametrize(
    ("keys", "protocol", "message"),
    [
        (
            '[[link.event]]\nat = "1 s"\nup = false\n[[link.event]]\nat = "1.005 s"\nup = true',
            "cubic",
            "link.l.event: changes must be at least 10 ms apart on linux, got 5 ms",
        ),
        (
            'queue = "cohabit"\n[[link.event]]\nat = "1 s"\nrate = "1 Mbit/s"',
            "cubic",
            "link.l.event: not possible on linux with cohabit",
        ),
        (
            'rate_trace = {points = [["0 s", "1 Mbit/s"], ["1 s", "0 bit/s"], ["2 s", "0 bit/s"]]}',
            "cubic",
            "link.l.rate_trace: rates must be above zero on linux",
        ),
    ],
)
def test_what_the_testbed_lacks_is_refused(keys, protocol, message):
    with pytest.raises(InputError) as refused:
        waterfill.run(scenario_of(keys, protocol), on="linux")
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
