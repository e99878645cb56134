"""The summary's types have the keys of the documents that the core returns."""

from __future__ import annotations

from dataclasses import replace

import pytest

import synthetic
from waterfill import _core
from waterfill.contract import summary
from waterfill.contract.elements import Constant, Video
from waterfill.contract.network import ArrivalSpec, TrafficSpec


def network():
    flow = synthetic.flow_spec("f", 1, 1.0)._replace(stop_s=1.0)
    cbr = TrafficSpec(
        name="cbr", kind="cbr", path=(0,), rate_bps=1e6, access_bps=None, start_s=0.0,
        stop_s=1.0, packet_bytes=1500, periods=None, flows=None,
    )  # fmt: skip
    arrivals = ArrivalSpec(arrivals_per_s=9.0, sizes_bytes=Constant(mean=3e4), flow=flow)
    web = replace(cbr, name="web", kind="web", rate_bps=None, flows=arrivals)
    return synthetic.network(["l"], [flow]), replace(
        synthetic.network(["l"], [flow]), traffic=(cbr, web)
    )


@pytest.fixture(scope="module")
def simulated():
    simulation = _core.Simulation(network()[1])
    simulation.advance(1.0)
    return simulation.summary()


@pytest.fixture(scope="module")
def flowing():
    crowd = synthetic.flow_spec("crowd", 1, 1.0)._replace(count=10_001)
    fluid = _core.Fluid(replace(network()[0], flows=(crowd,)))
    fluid.advance(0.1)
    return fluid.summary()


def required(kind) -> set[str]:
    return set(kind.__required_keys__)


def all_keys(kind) -> set[str]:
    return required(kind) | set(kind.__optional_keys__)


def test_flows(simulated, flowing):
    hosts = {"resent_bytes", "spurious_retransmissions", "limited_by"}
    assert set(simulated["flows"][0]) == required(summary.CoreFlow) | hosts
    others = {"longest_recovery", "messages", "playback", "count"}
    assert hosts | others == summary.CoreFlow.__optional_keys__
    assert set(simulated["flows"][0]["limited_by"]) == required(summary.LimitedBy)
    assert set(flowing["flows"][0]) == required(summary.CoreFlow) | {"resent_bytes", "count"}
    assert set(simulated["flows"][0]["rtt_ms"]) == required(summary.Rtts)


def test_applications():
    video = Video(bit_rate_bps=1e5, segment_s=0.1, buffer_s=1.0, startup_segments=1)
    flow = synthetic.flow_spec("f", 1, 1.0)._replace(stop_s=1.0, application=video)
    simulation = _core.Simulation(synthetic.network(["l"], [flow]))
    simulation.advance(1.0)
    (found,) = simulation.summary()["flows"]
    assert set(found["messages"]) == all_keys(summary.Messages)
    assert set(found["messages"]["completion_ms"]) == all_keys(summary.Times)
    assert set(found["playback"]) == all_keys(summary.Playback)


def test_links(simulated, flowing):
    for document in (simulated, flowing):
        (link,) = document["links"]
        assert set(link) == required(summary.LinkSummary)
        assert set(link["queue_bytes"]) == set(link["queue_packets"]) == required(summary.Spread)


def test_traffic(simulated):
    cbr, web = simulated["traffic"]
    assert set(cbr) == required(summary.TrafficSummary)
    # Added to results: the loss rate. Only where one happened: a recovery.
    lacking = {"loss_rate", "longest_recovery"}
    assert set(web) | lacking == all_keys(summary.TrafficSummary)
    assert "loss_rate" not in web
    assert set(web["limited_by"]) == required(summary.LimitedBy)
    assert set(web["flow_completion_ms"]) == required(summary.Times)


def test_the_engines(simulated, flowing):
    assert set(simulated) == set(flowing) == required(summary.CoreSummary)
    assert set(simulated["engine"]) == {"packet_hops", "events", "wall_s"}
    assert set(flowing["engine"]) == all_keys(summary.EngineSummary)


def test_protocols():
    for entry in _core.protocols():
        assert set(entry) == required(summary.ProtocolEntry)
        for param in entry["params"]:
            assert set(param) == required(summary.ParamEntry)
            assert param["kernel"] is None or set(param["kernel"]) == required(summary.KernelParam)
        kernel = entry["kernel"]
        assert kernel is None or set(kernel) == required(summary.KernelEntry)
        for signal in entry["signals"]:
            assert set(signal) == required(summary.SignalEntry)
