"""RCP, VCP and XCP against their authors' code: the network, rows, phases, and a run of each."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from validation import ns2_peers
from validation.ns2_peers import AUTHORS, PEERS, READINGS, PeerCase, PeerRow
from waterfill.runs import backends

ROW = PeerRow("vcp", AUTHORS, 64, (45.0, 47.0), 46.4, (600.0, 25e3), 0.0, (0.02, 0.4))


def test_every_peer_has_a_source_and_a_reading_of_its_code():
    assert set(PEERS) == set(ns2_peers.SOURCES) == set(READINGS)
    for protocol, numbers in PEERS.items():
        assert AUTHORS in READINGS[protocol]
        assert set(numbers) <= set(ns2_peers.FLOWS)
        assert all(0 < rate <= 55.0 for rate in numbers.values()), "max-min is 55 Mbit/s"


def test_starts_are_random_within_a_tenth_of_a_second():
    def starts(seed):
        flows = ns2_peers.scenario("rcp", 20, seed, {}).flow
        return [flow.start for flow in flows]

    assert starts(1) == starts(1) != starts(2)
    assert len(set(starts(1))) == 21
    assert all(0 <= start < 0.1 for start in starts(1))


def test_a_scaled_network_keeps_the_intervals_between_packets():
    whole = ns2_peers.scenario("rcp", 256, 1, {})
    quarter = ns2_peers.scenario("rcp", 64, 1, {}, scale=0.25)
    assert [link.rate for link in whole.link] == [155e6, 100e6]
    assert [link.rate for link in quarter.link] == [38.75e6, 25e6]


def test_vcp_balances_up_to_a_number_of_flows():
    """12 500 packets/s · 0.125 · t_d²/0.08 s."""
    assert ns2_peers.vcp_flows_at_most(100e6, 0.08, 0.2) == pytest.approx(781.25)
    assert ns2_peers.vcp_flows_at_most(100e6, 0.08, 0.1) == pytest.approx(195.3, abs=0.1)


def test_a_row_agrees_within_the_tolerance_and_is_judged_for_the_authors_reading_only():
    assert ROW.rate_mbps == 46.0
    assert ROW.off == pytest.approx(-0.4 / 46.4)
    assert ROW.agrees is True
    assert replace(ROW, rates_mbps=(40.0,)).agrees is False
    assert replace(ROW, reading="paper", rates_mbps=(40.0,)).agrees is None
    assert replace(ROW, peer_mbps=None).agrees is None
    assert replace(ROW, flows=256, rates_mbps=(40.0,)).agrees is None, "the buffer decides"


def test_counts_are_averaged_around_the_fullest_millisecond():
    """A cycle of 20.5 ms with eight of ten packets in one millisecond."""
    sent = np.zeros(2050)
    for cycle in range(100):
        start = int(cycle * 20.5)
        sent[start + 3] += 8
        sent[start + 13] += 2
    found = ns2_peers._around_peaks(sent, 20.5)
    assert found[10] == pytest.approx(8.0)
    assert sum(found[:10]) + sum(found[11:]) == pytest.approx(2.0, abs=2.0)
    phases = ns2_peers.Phases("r", 10, 20.5, tuple(found))
    assert phases.crowd == pytest.approx(0.8)
    assert phases.even == pytest.approx(10 / 20.5)


def test_flows_that_send_less_than_a_packet_per_update_gather():
    """Gathering: with T = 10 ms most flows send within 3 ms of a 21 ms cycle, with 1 ms few."""
    gathered, spread = (
        ns2_peers.phases(reading, backends.run(ns2_peers.phase_scenario(reading, flows=32)))
        for reading in ("written at arrival", "written at arrival, T = 1 ms")
    )
    assert gathered.cycle_ms == pytest.approx(21.0, rel=0.03)
    assert gathered.crowd > 0.5
    assert spread.crowd < 0.35
    assert "within 3 ms" in ns2_peers.phase_table([gathered, spread])


def test_a_case_has_a_run_per_seed():
    asked = SimpleNamespace(protocols=("rcp", "xcp"), flows=(4,), seeds=2, duration=4.0)
    cases = ns2_peers.cases(asked)
    assert len(cases) == len(READINGS["rcp"]) + len(READINGS["xcp"])
    runs = ns2_peers.runs(cases[0])
    results = {seed: backends.run(run.scenario) for seed, run in runs.items()}
    row = ns2_peers.measure(cases[0], results)
    assert (row.peer_mbps, len(row.rates_mbps)) == (54.9, 2)


def test_only_runs_of_the_peers_length_are_judged():
    far = replace(ROW, rates_mbps=(40.0,))
    cases = [PeerCase("vcp", AUTHORS, 64, 3, seconds) for seconds in (60.0, 4.0)]
    assert ns2_peers.failed(dict.fromkeys(cases, far)) == ["vcp, 64 flows: -13.8% off"]
