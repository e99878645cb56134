"""MaxNet's price in a CSIG tag, in a fabric of 100 Gbit/s and 12 us."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

import waterfill

RATE, DELAY_S, PACKET = "100 Gbit/s", 3e-6, 1500
TRANSMISSION_S = PACKET * 8 / 100e9


def fabric(
    flows: int, size: str | None = None, fault: dict[str, Any] | None = None, **params: Any
) -> waterfill.Scenario:
    """Return hosts that send to one host over one link, without handshakes."""
    scenario = waterfill.Scenario(
        "tags",
        duration="4 ms",
        protocol="maxnet",
        profile="datacenter",
        handshake=False,
        ideal="one-way",
        sample="12 us",
    )
    faults = [] if fault is None else [fault]
    sized: dict[str, Any] = {} if size is None else {"size": size}
    scenario.link("last", "s", "d", RATE, "3 us", buffer="4 MB", fault=faults)
    for h in range(flows):
        scenario.link(f"h{h}", f"h{h}", "s", RATE, "3 us", buffer="4 MB")
        scenario.flow(f"f{h}", f"h{h}", "d", **sized)
    return scenario.params("maxnet", **params)


def deviation(result: waterfill.Result) -> float:
    """Return the standard deviation of the last link's utilization in means of 12 us."""
    links = result.links.to_pydict()
    rows = zip(links["link"], links["time_s"], links["utilization"], strict=True)
    used = [used for name, time_s, used in rows if name == "last" and time_s > 1.5e-3]
    return float(statistics.pstdev(used))


@pytest.mark.parametrize("flows", [2, 4])
def test_a_finer_unit_than_the_options_steadies_the_load(flows: int) -> None:
    option = deviation(fabric(flows, price_unit="0 s").run())
    assert deviation(fabric(flows, carriage="csig").run()) < option / 3
    assert deviation(fabric(flows, carriage="csig", code_bits=5).run()) > 1.5 * option


def test_an_incast_completes_as_with_an_option_of_fine_unit() -> None:
    """The start grant of the first data packet is in the tag."""
    option, tag, generous = (
        fabric(16, "60 kB", **given).run().summary
        for given in ({}, {"carriage": "csig"}, {"carriage": "csig", "promise": False})
    )
    lasts = [max(flow.completed_s or 9 for flow in found.flows) for found in (option, tag)]
    assert lasts[1] == pytest.approx(lasts[0], rel=0.01)
    queues = [found.links[0].queue_bytes.max for found in (option, tag, generous)]
    assert queues[1] == pytest.approx(queues[0], rel=0.02)
    assert queues[2] > 1.1 * queues[1], "without promises each flow is granted the whole link"


@pytest.mark.parametrize(("bits", "packets"), [(20, 11), (5, 10)])
def test_a_compact_tag_leaves_four_bytes_for_data(bits: int, packets: int) -> None:
    """14,560 bytes are ten payloads of 1,500 − 40 − 4 bytes."""
    result = fabric(1, "14560 B", carriage="csig", code_bits=bits).run()
    last_s = 0 if packets == 10 else (40 + 8 + 14_560 - 10 * 1452) * 8 / 100e9
    (ideal_s,) = result.transfers.column("ideal_s").to_pylist()
    # All full packets over the first link, and the last one over the second.
    assert ideal_s == pytest.approx(2 * DELAY_S + 11 * TRANSMISSION_S + last_s, rel=1e-9)
    (flow,) = result.summary.flows
    assert flow.completed_s is not None


@pytest.mark.parametrize("bits", [5, 20])
def test_a_router_can_misreport_a_tags_code(bits: int) -> None:
    fault = {"at": "1 ms", "kind": "lie", "value": "zero", "share": 1.0}
    used = fabric(2, fault=fault, carriage="csig", code_bits=bits).run().links.to_pydict()
    rows = zip(used["link"], used["time_s"], used["utilization"], strict=True)
    after = statistics.mean(used for name, time_s, used in rows if name == "last" and time_s > 2e-3)
    # Each flow sends a packet per RTT.
    assert after == pytest.approx(2 * TRANSMISSION_S / 12e-6, rel=0.1)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"code_bits": 7}, "5 or 20"),
        ({"code_max": "50 Gbit/s"}, 'set code_max = "100 Gbit/s"'),
        ({"arithmetic": "kernel"}, "carriage"),
    ],
)
def test_a_tag_that_cannot_be_is_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(waterfill.InputError, match=message):
        fabric(1, carriage="csig", **params).run()
