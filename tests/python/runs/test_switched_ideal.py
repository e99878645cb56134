"""Ideal times where switches choose among equal routes of different rates."""

import pytest

import waterfill


def fabric(choice: str) -> dict:
    """Return two leaves and two spines of 100 Gbit/s, of which one has links of 10 Gbit/s."""
    return {
        "duration": "2 ms", "profile": "datacenter", "handshake": False, "protocol": "window",
        "params": {"window": {"packets": 200}}, "ecmp": choice,
        "fabric": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts": 8,
                   "host_rate": "100 Gbit/s", "uplink_rate": "100 Gbit/s", "delay": "1 us"},
        "link": [{"name": f"l{leaf}-s1", "rate": "10 Gbit/s"} for leaf in (0, 1)],
        "flow": [
            {"name": f"f{i}", "from": f"h{i}", "to": f"h{i + 8}", "size": "200 kB",
             "start": f"{200 * i} us"}
            for i in range(8)
        ],
    }  # fmt: skip


@pytest.mark.parametrize("choice", ["hash", "flowlet", "spray"])
def test_the_ideal_is_that_of_the_fastest_route(choice):
    keys = {"flowlet_gap": "20 us"} if choice == "flowlet" else {}
    table = waterfill.run(fabric(choice) | keys).transfers
    slowdowns = table["slowdown"].to_pylist()
    # 137 packets of 12 kbit at 100 Gbit/s, 4 us of delay, and the last packet at three more links.
    ideal_s = set(table["ideal_s"].to_pylist())
    assert len(ideal_s) == 1
    assert min(ideal_s) == pytest.approx(136 * 0.12e-6 + 4e-6 + 4 * 0.12e-6, rel=0.02)
    assert min(slowdowns) >= 0.99
    if choice == "hash":
        slow = [one for one in slowdowns if one > 5]
        assert 0 < len(slow) < 8  # a flow through the slow spine takes ten times as long
