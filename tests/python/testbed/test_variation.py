"""Links that follow time on the running kernel: what is refused, and that the rate changes."""

import pytest

import waterfill
from waterfill.errors import InputError
from waterfill.scenario.loading import from_toml
from waterfill.testbed import checks

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


@pytest.mark.parametrize(
    ("keys", "protocol", "message"),
    [
        (
            '[[link.event]]\nat = "1 s"\nup = false',
            "cubic",
            "link.l.event[0].up: expected none on ",
        ),
        ('[[link.event]]\nat = "1 s"\ndelay = "1 s"', "cubic", "link.l.event[0].delay: expected "),
        (
            'rate_trace = {points = [["0 s", "1 Mbit/s"], ["1 s", "0 bit/s"], ["2 s", "0 bit/s"]]}',
            "cubic",
            "link.l.rate_trace: expected rates above zero on linux",
        ),
    ],
)
def test_what_the_testbed_lacks_is_refused(keys, protocol, message):
    with pytest.raises(InputError) as refused:
        waterfill.run(scenario_of(keys, protocol), on="linux")
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
