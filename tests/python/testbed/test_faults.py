"""Faults of headers and wires on the running kernel: what is refused, and that they act."""

import pytest

import waterfill
from waterfill.errors import InputError
from waterfill.scenario.loading import from_toml
from waterfill.testbed import checks

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
    hold = '[[link.fault]]\nkind = "hold"\nevery = "100 ms"\ndirection = "reverse"\nat = "1 s"'
    rows = waterfill.run(scenario_of(hold), on="linux").flows.to_pydict()
    rtts = dict(zip(rows["time_s"], rows["rtt_s"], strict=True))
    # 10 ms, at most 24 ms of queue, and on average half of 100 ms.
    assert rtts[1.0] < 0.04 < rtts[3.0]


@pytest.mark.parametrize(
    ("link", "flow", "message"),
    [
        (
            '[[link.fault]]\nkind = "restart"\nat = "1 s"',
            "",
            "link.l.fault[0].kind: expected another on linux, where the daemon carries",
        ),
        (
            '[[link.fault]]\nkind = "clock"\nat = "1 s"\nstep = "1 s"',
            "",
            "link.l.fault[0].kind: expected another on linux, whose laws read CLOCK_MONOTONIC",
        ),
        ("", '[[flow.fault]]\nkind = "lie"', "flow.f.fault: expected none on the linux backend"),
    ],
)
def test_what_the_kernel_cannot_do_is_refused(link, flow, message):
    with pytest.raises(InputError) as error:
        waterfill.run(scenario_of(link, flow), on="linux")
    assert message in str(error.value)
