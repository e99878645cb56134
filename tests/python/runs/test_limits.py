"""What limits a flow, what its loss recovery costs, and warnings of results that show a fault."""

from __future__ import annotations

import pytest

import waterfill
from waterfill.analysis import hosts
from waterfill.analysis import tables as model
from waterfill.cli import tables
from waterfill.runs.result import percentile
from waterfill.sweeps import measure
from waterfill.sweeps.table import Estimate, Group, shown


def one(protocol: str, *, duration: str = "10 s", link: dict | None = None, **flow):
    scenario = waterfill.Scenario(
        "one", duration=duration, protocol=protocol, measure=["0 s", duration]
    )
    return scenario.link("l", "a", "b", "50 Mbit/s", "20 ms", **link or {}).flow(
        "f", "a", "b", **flow
    )


def flow_of(scenario, **options):
    (flow,) = scenario.run(**options).summary.flows
    return flow


class Timer:
    """A law that lets a packet go each millisecond, whatever its window."""

    def __init__(self, connection):
        self.packet_bytes = connection.packet_bytes
        self.window_bytes = connection.initial_window_bytes

    def on_ack(self, ack):
        self.window_bytes += ack.acked_bytes

    def limit(self):
        return self.window_bytes, 8e3 * self.packet_bytes


TIMER = {"timer": waterfill.PythonLaw(source=Timer, paced=True)}


def test_the_handshake_and_the_window_limit_a_fixed_window():
    flow = flow_of(one("window").params("window", packets=10))
    # A SYN and its answer take 40 ms and the time of two packets of 40 bytes.
    assert flow.limited_by.handshake == pytest.approx(0.0400128 / 10, rel=1e-6)
    assert flow.limited_by.window == pytest.approx(1 - 0.0400128 / 10, rel=1e-6)
    assert flow.limited_by.pacing == flow.limited_by.application == flow.limited_by.recovery == 0


@pytest.mark.parametrize("recovery", ["rack", "quic"])
def test_the_demand_is_a_limit_of_the_application(recovery):
    flow = flow_of(one("cubic", demand="5 Mbit/s", recovery=recovery))
    # Ten packets in flight are less than the 17 that the demand needs, for two RTTs.
    assert 0.98 < flow.limited_by.application < 0.99
    assert sum(flow.limited_by.values()) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(("recovery", "timeouts", "most"), [("rack", 2, 0.5), ("quic", 1, 0.55)])
def test_recovery_limits_during_an_outage(recovery, timeouts, most):
    """The link is down from 3 s to 6 s: from the last acknowledgement on, recovery is the limit.

    It lasts until a repetition arrives, at intervals that double: QUIC's next probe is at 8.2 s.
    """
    outage = {"event": [{"at": "3 s", "up": False}, {"at": "6 s", "up": True}]}
    flow = flow_of(one("sack", link=outage, recovery=recovery))
    assert flow.timeouts >= timeouts
    assert 0.3 <= flow.limited_by.recovery < most
    assert flow.limited_by.window > 0.4


def test_a_planted_pacing_bug_is_named():
    result = one("timer").run(laws=TIMER)
    (flow,) = result.summary.flows
    assert flow.rate_bps == pytest.approx(12e6, rel=0.02)  # less its first RTTs
    assert flow.limited_by.pacing > 0.9
    printed = "\n".join(text(part) for part in tables.run(result.summary))
    assert "pacing 9" in printed or "pacing 100 %" in printed
    (warning,) = result.summary.warnings
    assert (warning.flow, warning.kind) == ("f", "constant rate")
    assert warning.text.startswith("sends at a constant 12 Mbit/s, limited by pacing, 2")
    assert warning.text in printed


@pytest.mark.parametrize("protocol", ["maxnet", "rcp", "cubic", "bbr"])
def test_laws_that_use_the_path_are_not_warned_of(protocol):
    summary = one(protocol).run().summary
    assert not {w.kind for w in summary.warnings or ()} - {"long recovery", "not settled"}


def test_a_law_at_its_share_may_be_constant():
    """The same constant rate is no fault where it is the flow's share."""
    scenario = waterfill.Scenario("one", duration="10 s", protocol="timer")
    scenario = scenario.link("l", "a", "b", "12.5 Mbit/s", "20 ms").flow("f", "a", "b")
    assert scenario.run(laws=TIMER).summary.warnings is None


@pytest.mark.parametrize("recovery", ["rack", "quic"])
def test_the_loss_rate_is_that_of_the_packets_that_did_not_arrive(recovery):
    """Each lost packet is sent again, and copies that arrive again were not lost."""
    scenario = one("sack", duration="30 s", link={"loss": 0.01}, size="5 MB", recovery=recovery)
    result = scenario.run()
    (flow,), link = result.summary.flows, result.summary.links[0]
    assert flow.completed_s is not None
    lost = flow.retransmissions - flow.spurious_retransmissions
    assert lost == link.lost + link.drops > 10
    assert flow.loss_rate == lost / flow.packets_sent
    assert flow.resent_bytes == 1500 * flow.retransmissions


def test_packets_that_only_come_late_are_resent_in_vain():
    scenario = waterfill.Scenario("late", duration="10 s", protocol="cubic")
    scenario = scenario.link(
        "l", "a", "b", "50 Mbit/s", "20 ms", reorder={"share": 0.01, "delay": "60 ms"}
    )
    flow = flow_of(scenario.flow("f", "a", "b", recovery="rfc6675"))
    assert flow.spurious_retransmissions == flow.retransmissions > 10
    assert flow.loss_rate == 0


def test_time_outs_without_a_loss_are_warned_of():
    """A path that becomes 3 s longer: the timer fires although all packets arrive."""
    longer = {"event": [{"at": "5 s", "delay": "3 s"}]}
    summary = one("sack", duration="20 s", demand="10 Mbit/s", link=longer).run().summary
    (flow,) = summary.flows
    assert flow.timeouts > 0
    assert flow.loss_rate == 0
    assert "spurious time-outs" in [warning.kind for warning in summary.warnings]


def test_a_recovery_of_many_rtts_is_warned_of():
    """NewReno repairs one loss per RTT: forty losses take forty RTTs."""
    summary = (
        one("newreno", link={"buffer": "20 packets"}, initial_window="200 packets", duration="5 s")
        .run()
        .summary
    )
    (flow,) = summary.flows
    assert flow.longest_recovery.rtts > 10
    assert flow.longest_recovery.took_s > 10 * 0.04
    (warning,) = [w for w in summary.warnings if w.kind == "long recovery"]
    assert f"{flow.longest_recovery.rtts:.0f} RTTs" in warning.text


def prague_next_to_cubic(queue: str, *, laws=None, protocol="prague", fallback="off"):
    scenario = waterfill.Scenario("l4s", duration="20 s", measure=["5 s", "20 s"])
    scenario = scenario.params("prague", classic_fallback=fallback)
    scenario = scenario.link("l", "a", "b", "20 Mbit/s", "10 ms", buffer="200 packets", queue=queue)
    scenario = scenario.flow("p", "a", "b", protocol=protocol, ecn=True)
    return scenario.flow("c", "a", "b", protocol="cubic", ecn=True).run(laws=laws or {}).summary


@pytest.mark.parametrize("queue", ["codel", "pie", "red"])
def test_prague_in_a_classic_queue_is_warned_of(queue):
    """CUBIC gets a fraction of the rate, and the table says why."""
    summary = prague_next_to_cubic(queue)
    prague, cubic = summary.flows
    assert prague.rate_bps > 3 * cubic.rate_bps
    (warning,) = [one for one in summary.warnings if one.kind == "classic ECN"]
    assert warning.flow == "p"
    assert f"{queue} marks on l as RFC 3168 says" in warning.text
    assert warning.text.endswith('use dualpi2, or params.prague.classic_fallback = "on"')


@pytest.mark.parametrize("queue", ["dualpi2", "fq_codel"])
def test_prague_in_an_l4s_queue_or_apart_is_not_warned_of(queue):
    assert "classic ECN" not in [one.kind for one in prague_next_to_cubic(queue).warnings or ()]


@pytest.mark.parametrize("queue", ["codel", "pie", "red"])
def test_the_fall_back_shares_a_classic_queue(queue):
    summary = prague_next_to_cubic(queue, fallback="on")
    prague, cubic = summary.flows
    assert 0.5 < prague.rate_bps / cubic.rate_bps < 2
    assert "classic ECN" not in [one.kind for one in summary.warnings or ()]


def test_the_fall_back_leaves_an_l4s_queue_alone():
    rates = [
        [flow.rate_bps for flow in prague_next_to_cubic("dualpi2", fallback=fallback).flows]
        for fallback in ("off", "on")
    ]
    assert rates[0] == rates[1]


@pytest.mark.parametrize(("queue", "warned"), [("codel", ["w"]), ("dualpi2", [])])
def test_a_source_of_pragues_flows_in_a_classic_queue_is_warned_of(queue, warned):
    scenario = waterfill.Scenario("l4s", duration="2 s")
    scenario = scenario.link("l", "a", "b", "20 Mbit/s", "10 ms", buffer="200 packets", queue=queue)
    scenario = scenario.traffic("web", "a", "b", name="w", protocol="prague", ecn=True, load="90%")
    warnings = scenario.run().summary.warnings or ()
    assert [one.flow for one in warnings if one.kind == "classic ECN"] == warned


def test_an_own_law_for_l4s_in_a_classic_queue_is_warned_of():
    laws = {"mine": waterfill.PythonLaw(source=Timer, paced=True, ecn="l4s")}
    warnings = prague_next_to_cubic("codel", laws=laws, protocol="mine").warnings
    assert "mine expects L4S marks" in next(w for w in warnings if w.kind == "classic ECN").text


def test_a_constant_queue_has_its_mean_as_p99():
    """A window of 400 packets on a path of 166 holds 233 packets in the queue."""
    scenario = one("window", link={"buffer": "1000 packets"}).params("window", packets=400)
    (link, _) = scenario.set(measure=["5 s", "10 s"]).run().summary.links
    queue = link.queue_bytes
    assert queue.p99 == pytest.approx(queue.mean, rel=0.01)
    assert queue.mean <= queue.p99 <= queue.max


def test_names_that_readers_take_for_another_protocol_are_explained():
    notes = model.names(["cubic", "reno@sim", "bbr"])
    assert [note.split()[0] for note in notes] == ["reno", "bbr"]
    assert model.names(["cubic", "sack"]) == []


def test_a_sweep_has_columns_of_limits_and_losses():
    summary = one("window").params("window", packets=10).run().summary
    found = {name: value(summary) for name, (_, value) in measure.COLUMNS.items()}
    assert found["limited_window"] == pytest.approx(1 - found["limited_handshake"])
    assert found["loss_rate"] == found["resent_bytes"] == found["spurious_retransmissions"] == 0


def with_pages(*, long: bool):
    """A run of short flows that arrive by chance, with a long flow or alone."""
    scenario = one("cubic", link={"buffer": "20 packets"})
    if not long:
        scenario = waterfill.Scenario("pages", duration="10 s", protocol="cubic")
        scenario = scenario.link("l", "a", "b", "20 Mbit/s", "20 ms", buffer="20 packets")
    return scenario.traffic("web", "a", "b", name="pages", arrival_rate="40 /s").run()


@pytest.mark.parametrize("long", [False, True])
def test_figures_of_hosts_include_the_flows_of_traffic(long):
    result = with_pages(long=long)
    (pages,), flows = result.summary.traffic, result.summary.flows
    found = hosts.of_run(result.summary)
    assert pages.timeouts > 0
    assert pages.retransmissions > 100
    everyone = [pages, *flows]
    assert found.timeouts == sum(one.timeouts for one in everyone)
    assert found.resent_bytes == sum(one.resent_bytes for one in everyone)
    lost = sum(one.loss_rate * one.packets_sent for one in everyone)
    assert found.loss_rate == pytest.approx(lost / sum(one.packets_sent for one in everyone))
    shares = [one.limited_by.recovery for one in everyone]
    assert found.limited_by.recovery == pytest.approx(sum(shares) / len(shares))
    assert (found.rtt_p99_ms is None) is not long
    columns = measure.row(result, {})
    assert columns["timeouts"] == found.timeouts
    assert columns["limited_recovery"] == found.limited_by.recovery
    assert columns["completed"] == pages.flows_completed
    took_s = sorted(filter(None, result.transfers["completion_s"].to_pylist()))
    assert columns["completion_p99_ms"] == 1e3 * percentile(took_s, 99)
    slowdowns = sorted(filter(None, result.transfers["slowdown"].to_pylist()))
    assert columns["slowdown_p50"] == percentile(slowdowns, 50)
    assert columns["slowdown_p999"] == percentile(slowdowns, 999, of=1000)


def test_a_run_without_flows_has_no_figures_of_hosts():
    scenario = waterfill.Scenario("noise", duration="1 s").link("l", "a", "b", "5 Mbit/s", "1 ms")
    result = scenario.traffic("cbr", "a", "b", rate="1 Mbit/s").run()
    assert hosts.of_run(result.summary) is None
    assert measure.row(result, {})["loss_rate"] is None


def test_a_sweep_shows_losses_where_there_are_any():
    def group(**means):
        estimates = {name: Estimate(mean, None, 1) for name, mean in means.items()}
        return Group({}, estimates, 1, 0)

    columns = ["utilization", "loss_rate", "timeouts"]
    quiet, lossy = group(utilization=0.0, loss_rate=0.0), group(utilization=1.0, loss_rate=0.1)
    assert shown([quiet], columns) == ["utilization"]
    assert shown([quiet, lossy], columns) == ["utilization", "loss_rate"]


def text(part) -> str:
    from io import StringIO

    from rich.console import Console

    console = Console(file=StringIO(), width=80)
    console.print(part)
    return " ".join(console.file.getvalue().split())
