"""Laws of delays and rates in a fabric: windows below a packet, and queues at rest."""

from __future__ import annotations

import numpy as np
import pytest

import waterfill
from waterfill.contract.summary import LinkSummary

BDP = 100e9 * 12e-6 / 8


class Shared:
    """Flows without end over one link of 100 Gbit/s at 12 us, with the profile's constants."""

    def __init__(
        self,
        protocol: str,
        count: int,
        *,
        slower: int = 1,
        window: int | None = None,
        **params: object,
    ) -> None:
        rate = f"{100 / slower} Gbit/s"
        link = {"rate": rate, "delay": "3 us", "buffer": "1 GB"}
        first = {} if window is None else {"initial_window": window}
        starts = (f"{h * 1000 / count:.3f} us" for h in range(count))
        document = {
            "name": "shared",
            "duration": "12 ms",
            "profile": "datacenter",
            "protocol": protocol,
            "link": [
                {"name": "last", "from": "s", "to": "d", **link},
                *({"name": f"h{h}", "from": f"h{h}", "to": "s", **link} for h in range(count)),
            ],
            "flow": [
                {"name": f"f{h}", "from": f"h{h}", "to": "d", "start": start, **first}
                for h, start in enumerate(starts)
            ],
            "params": {protocol: params},
        }
        self.result = waterfill.run(document)
        summary = self.result.summary
        self.link: LinkSummary = next(link for link in summary.links if link.name == "last")
        rates = np.array([flow.rate_bps for flow in summary.flows])
        self.jain = rates.sum() ** 2 / (count * (rates**2).sum())

    def rtt_s(self) -> float:
        """Return the mean of the flows' RTTs."""
        return float(np.mean([flow.rtt_ms.mean for flow in self.result.summary.flows])) / 1e3

    def deviation(self) -> float:
        """Return the standard deviation of the link's utilization in means of 12 us, after 8 ms."""
        links = self.result.links.to_pydict()
        rows = zip(links["link"], links["time_s"], links["utilization"], strict=True)
        return float(
            np.std([value for name, time_s, value in rows if name == "last" and time_s > 8e-3])
        )


def test_paced_flows_of_maxnet_have_rates_between_whole_packets():
    window, paced = (Shared("maxnet", 64, paced=paced) for paced in (False, True))
    assert window.link.utilization < 0.8 < 0.83 < paced.link.utilization < 0.95
    assert paced.deviation() < 0.04 < 0.1 < window.deviation()
    assert paced.jain > 0.999


def test_paced_flows_of_maxnet_send_less_than_a_packet_per_rtt():
    window, paced = (Shared("maxnet", 256, paced=paced) for paced in (False, True))
    # A packet per RTT of each is 2.6 times the link, so the queue grows until RTTs are as long.
    assert window.link.queue_bytes.mean > 40e6
    assert paced.link.queue_bytes.mean < 2e6


@pytest.mark.parametrize("count", [2, 16, 64])
def test_flows_of_swift_keep_the_delay_of_their_windows(count):
    shared = Shared("swift", count, window=10)
    assert shared.link.utilization > 0.999
    assert shared.jain > 0.98
    rtt_s = shared.rtt_s()
    window = rtt_s * 100e9 / 12_000 / count
    a = 100e-6 / (1 / 0.1**0.5 - 1 / 100**0.5)
    target_s = 27e-6 + min(max(a / window**0.5 - a / 100**0.5, 0), 100e-6)
    assert rtt_s == pytest.approx(target_s, rel=0.05)


def test_swift_shares_a_link_among_windows_below_a_packet():
    # At 127 us, 10 Gbit/s carry 106 packets.
    shared = Shared("swift", 300, slower=10, window=1)
    assert shared.link.utilization > 0.98
    assert shared.rtt_s() < 150e-6
    assert shared.jain > 0.8  # each has sent eleven packets in the measurement window


def test_flows_of_theta_powertcp_queue_their_increases():
    shared = Shared("theta_powertcp", 16, window=10)
    assert shared.link.utilization > 0.999
    assert shared.jain > 0.99
    assert shared.link.queue_bytes.mean == pytest.approx(16 / 100 * BDP, rel=0.1)
