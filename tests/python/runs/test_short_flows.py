"""MaxNet hosts start short flows next to others with TCP's first window, not the slowest rate."""

from __future__ import annotations

from waterfill.runs import backends
from waterfill.scenario.loading import from_dict

STAGGER_S = 0.0131  # 100 kB each: 61 % of the link


def completions_s(protocol, arithmetic=None):
    """Return the sorted completion times of 200 flows of 100 kB on 100 Mbit/s, RTT 20 ms."""
    document = {
        "name": "short flows",
        "protocol": protocol,
        "duration": "5 s",
        "link": [
            {"name": "l", "from": "a", "to": "b", "rate": "100 Mbit/s", "delay": "10 ms",
             "buffer": "1 MB"}
        ],
        "flow": [
            {"name": "s", "from": "a", "to": "b", "path": ["l"], "count": 200, "size": "100 kB",
             "stagger": f"{1e3 * STAGGER_S} ms", "access_rate": "1 Gbit/s"}
        ],
    }  # fmt: skip
    if arithmetic:
        document["params"] = {protocol: {"arithmetic": arithmetic}}
    flows = backends.run(from_dict(document, "test")).summary["flows"]
    return sorted(flow["completed_s"] - STAGGER_S * i for i, flow in enumerate(flows))


# A burst in the last millisecond leaves no start rate to grant. With a packet per 200 ms, a host's
# slowest rate, a twentieth of the flows took 0.4 s and more.
def test_a_host_that_is_granted_nothing_is_no_slower_than_cubic():
    found, cubic = completions_s("maxnet", "kernel-host"), completions_s("cubic")
    assert found[100] <= cubic[100]
    assert found[190] <= cubic[190] + 0.1e6 * 8 / (0.9 - 0.61) / 100e6
