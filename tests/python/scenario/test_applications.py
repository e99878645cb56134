"""Applications of flows: keys, messages, playback, shares, refusals."""

from __future__ import annotations

import math

import pytest

import waterfill
from waterfill import InputError
from waterfill.analysis import tables as model
from waterfill.cli import tables
from waterfill.contract.elements import Constant, Exponential, OnOff, Ticks
from waterfill.network import resolve
from waterfill.runs import backends

TICKS = {"kind": "ticks", "sizes": "100 B", "interval": "20 ms"}
VIDEO = {"kind": "video", "bit_rate": "5 Mbit/s", "segment": "4 s", "buffer": "20 s"}
PAGES = {"kind": "request-response", "sizes": "14.6 kB", "think": "1 s"}
BURSTS = {"kind": "onoff", "rate": "2 Mbit/s", "on": "1 s", "off": "3 s"}


def one(application, rate="20 Mbit/s", duration="30 s", protocol="cubic", **flow):
    """Return a scenario with one flow over an RTT of 40 ms."""
    scenario = waterfill.Scenario(
        "one", duration=duration, protocol=protocol, measure=["0 s", duration]
    )
    link = scenario.link("l", "a", "b", rate, "20 ms")
    return link.flow("f", "a", "b", application=application, **flow)


def flow_of(scenario):
    (flow,) = scenario.run().summary.flows
    return flow


def test_ticks_arrive_after_half_an_rtt_and_their_own_transmission():
    flow = flow_of(one(TICKS))
    # From 40.03 ms on one each 20 ms: the last is written at 29.98 s and acknowledged in time.
    assert flow.messages.written == 1498
    assert flow.messages.completed in (1496, 1497)
    # 140 bytes at 20 Mbit/s take 56 us.
    assert flow.messages.completion_ms.mean == pytest.approx(20.056, rel=1e-6)
    assert flow.rate_bps == pytest.approx(8 * 140 / 0.02, rel=0.005)
    assert flow.goodput_bps == pytest.approx(8 * 100 / 0.02, rel=0.005)
    assert flow.limited_by.application > 0.99


@pytest.mark.parametrize("recovery", ["rack", "quic"])
def test_responses_follow_one_another_with_the_client_s_pause(recovery):
    flow = flow_of(one(PAGES, recovery=recovery))
    # Ten packets of 1500 bytes take 6 ms, within the initial window.
    assert flow.messages.completion_ms.p50 == pytest.approx(26, rel=1 / 64)
    # A cycle is a response, the way back and a pause: 46 ms and 1 s.
    assert flow.messages.written == math.ceil((30 - 0.04) / 1.046)
    assert flow.messages.completed == flow.messages.written


def test_a_video_waits_for_its_buffer_and_stalls_on_a_slow_link():
    flow = flow_of(one(VIDEO, duration="60 s"))
    # Five segments of 4 s fit into 20 s of buffer; then one each 4 s.
    assert flow.playback.stalls == 0
    assert flow.messages.written == pytest.approx(5 + (60 - flow.playback.startup_s) / 4, abs=2)
    assert flow.playback.played_s == pytest.approx(60 - 0.04 - flow.playback.startup_s, abs=0.01)
    assert flow.rate_bps == pytest.approx(5e6 * 1500 / 1460, rel=0.35)
    slow = flow_of(one(VIDEO, rate="4 Mbit/s", duration="60 s"))
    # It plays 4 Mbit/s of 5, less headers: about 22 % of the time it stands still.
    assert slow.playback.stalls > 5
    share = slow.playback.stalled_s / (slow.playback.stalled_s + slow.playback.played_s)
    assert share == pytest.approx(1 - 4 / 5 * 1460 / 1500, abs=0.05)
    assert slow.limited_by.application < 0.1 < flow.limited_by.application


def test_on_periods_send_at_their_rate_for_their_share_of_the_time():
    flow = flow_of(one(BURSTS, duration="40 s"))
    assert flow.rate_bps == pytest.approx(0.5e6, rel=0.01)
    assert (flow.messages.written, flow.messages.completed) == (10, 10)
    assert flow.messages.completion_ms.p50 == pytest.approx(1000 + 20, rel=0.02)
    assert flow.limited_by.application > 0.99


def test_random_applications_repeat_by_the_seed_and_differ_between_flows():
    think = {"distribution": "exponential", "mean": "500 ms"}
    scenario = one({**PAGES, "think": think}, count=2)
    first, second = scenario.run().summary.flows
    assert first.messages.completed != second.messages.completed
    again = scenario.run().summary.flows[0].messages.completed
    other = scenario.run(seed=2).summary.flows[0].messages.completed
    assert again == first.messages.completed != other
    assert first.messages.completed == pytest.approx(30 / (0.5 + 0.046), rel=0.35)


def test_several_threads_give_the_same_result():
    def messages(threads):
        scenario = waterfill.Scenario("two", duration="10 s", protocol="sack")
        scenario = scenario.link("l", "a", "b", "20 Mbit/s", "20 ms")
        scenario = scenario.link("m", "b", "c", "10 Mbit/s", "20 ms")
        scenario = scenario.flow("f", "a", "c", application=VIDEO)
        scenario = scenario.flow("g", "c", "a", application=PAGES)
        return [flow.messages for flow in scenario.run(threads=threads).summary.flows]

    assert messages(2) == messages(1)


def test_the_core_gets_distributions_and_the_mean_rate():
    def resolved(application):
        return resolve.to_core(one(application).checked(), backends.known("sim")).flows[0]

    ticks = resolved(TICKS)
    assert ticks.application == Ticks(sizes_bytes=Constant(mean=100.0), interval_s=0.02)
    assert ticks.demand_bps == 8 * 140 / 0.02
    off = {"distribution": "exponential", "mean": "3 s"}
    bursts = resolved({**BURSTS, "off": off})
    wanted = OnOff(rate_bps=2e6, on_s=Constant(mean=1.0), off_s=Exponential(mean=3.0))
    assert (bursts.application, bursts.demand_bps) == (wanted, 0.5e6)
    # 2.5 MB a segment are 1713 packets.
    assert resolved(VIDEO).demand_bps == 8 * (2.5e6 + 1713 * 40) / 4
    assert resolved(PAGES).demand_bps is None


def test_the_share_is_the_mean_rate():
    flows = one(BURSTS).flow("bulk", "a", "b").run().summary.flows
    assert [flow.max_min_bps for flow in flows] == [0.5e6, 19.5e6]


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        ({"application": {"kind": "ticks", "sizes": "1 kB"}},
         'flow.f.application.interval: missing; write a value such as "15 ms"'),
        ({"application": {**TICKS, "rate": "1 Mbit/s"}},
         'flow.f.application.rate: not allowed with kind = "ticks"'),
        ({"application": {**TICKS, "intervall": "1 s"}},
         "flow.f.application.intervall: unknown key, did you mean \"interval\"?"),
        ({"application": {**VIDEO, "startup": 6}},
         "flow.f.application.buffer: must have space for the segments at startup, 6 of 4 s, got"),
        ({"application": TICKS, "size": "1 MB"},
         "flow.f.size: not allowed with an application, which writes the data"),
        ({"application": TICKS, "demand": "1 Mbit/s"}, "flow.f.demand: not allowed with an appl"),
        ({"application": {**PAGES, "think": "0 s"}}, "flow.f.application.think: must be"),
        ({"application": {"kind": "browser"}}, "flow.f.application.kind: must be "),
    ],
)  # fmt: skip
def test_wrong_keys_are_refused(flow, message):
    application = flow.pop("application")
    with pytest.raises(InputError) as error:
        one(application, **flow).run()
    assert message in str(error.value)


@pytest.mark.parametrize("backend", ["fluid", "linux"])
def test_other_backends_refuse_applications(backend):
    scenario = one(TICKS, protocol="maxnet")
    with pytest.raises(InputError, match=f'kind = "ticks" is not supported by the {backend}'):
        scenario.check(on=backend)


def test_tables_show_messages_and_playback():
    scenario = one(VIDEO, duration="20 s").flow("bulk", "a", "b")
    result = scenario.run()
    (shown,) = model.with_application(result.summary.flows)
    cells = {c.name: c.cell(shown, "page").text for c in model.APPLICATIONS}
    assert cells["application of"] == "f"
    assert cells["completed"] == str(shown.messages.completed)
    assert (cells["stalls"], cells["stalled"]) == ("0", "0")
    headings = [
        [column.header for column in part.columns]
        for part in tables.run(result.summary)
        if hasattr(part, "columns")
    ]
    assert any(heading[0] == "application of" for heading in headings)
    plain = tables.run(one(None).run().summary)
    assert all(
        part.columns[0].header != "application of" for part in plain if hasattr(part, "columns")
    )
