"""The downloads' plan and table, and the judgement of events; a server and clients on loopback."""

from __future__ import annotations

import os
import signal
import socket

import pytest

from validation.testbed import events, fct
from validation.testbed.events import EventCase
from validation.testbed.fct import FctCase


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_a_plan_has_the_load(load):
    planned = fct.plan(load, 25.0)
    bits = 8 * sum(size for _, size in planned) / (1448 / 1500)
    assert bits / (25.0 * fct.RATE_BPS) == pytest.approx(load, rel=0.05)
    assert planned == sorted(planned) == fct.plan(load, 25.0)
    sizes = [size for _, size in planned]
    parts = [size * sizes.count(size) / sum(sizes) for _, size, _, _ in fct.SIZES]
    assert parts == pytest.approx([share for *_, share, _ in fct.SIZES], abs=0.03)


def test_without_load_the_sizes_alternate():
    sizes = [size for _, size in fct.plan(0.0, 25.0)]
    assert len(sizes) == sum(count for *_, count in fct.SIZES)
    assert len(set(sizes[:4])) == len(set(sizes[-25:])) == 4


def test_equal_shares_by_hand(monkeypatch):
    """At 1 byte per µs: two share for 10 ms, three for 15, two for 10, and 85 kB remain."""
    monkeypatch.setattr(fct, "plan", lambda *_: [(0.0, 10_000), (0.0, 100_000), (0.01, 10_000)])
    found = fct.equal_shares(0.5, 1.0, 8e6 * 1500 / 1448)
    assert found[10_000] == pytest.approx([0.065, 0.065])
    assert found[100_000] == pytest.approx([0.16])
    alone = fct.equal_shares(0.0, 1.0, 8e6 * 1500 / 1448)
    assert alone[100_000] == pytest.approx([0.14])


def test_simulated_downloads_next_to_others_take_longer_than_their_equal_share():
    found = fct.simulated(0.6, 1.0)
    ideal = fct.equal_shares(0.6, 1.0, 90e6)
    assert {size: len(times) for size, times in found.items()} == {
        size: len(times) for size, times in ideal.items()
    }
    # Half an RTT less, because there is no request; at most three RTTs more.
    for share in (0.5, 0.95):
        more_s = fct.percentile(found[100_000], share) - fct.percentile(ideal[100_000], share)
        assert -0.02 < more_s < 0.06


def test_downloads_over_loopback_are_complete():
    listener = socket.create_server(("127.0.0.1", 0))
    server = os.fork()
    if server == 0:
        try:
            fct.serve(listener)
        finally:
            os._exit(1)
    try:
        clients = fct.Clients(listener.getsockname(), socket.AF_INET)
        assert fct.download(clients, FctCase("cubic", 0.3, 0.2)) == 0
    finally:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)
        listener.close()
    counts = [len(clients.took_s[size]) for _, size, _, _ in fct.SIZES]
    assert sum(counts) == len(fct.plan(0.3, 0.2))


def measured(p95_s):
    times = [0.1] * 90 + [p95_s] * 10
    return {"took_s": {name: times for name, *_ in fct.SIZES}, "late": 0, "fallbacks": 0,
            "host_load": 1.0}  # fmt: skip


def test_a_slower_tail_than_cubics_fails():
    mine, cubic = FctCase("maxnet", 0.6, 1.0), FctCase("cubic", 0.6, 1.0)
    assert fct.failed({mine: measured(0.2), cubic: measured(0.3)}) == []
    (line,) = fct.failed({mine: measured(0.4), cubic: measured(0.3)})
    assert line == "maxnet at 60%: p95 of 100 kB 400 ms, 300"
    assert "100 / 400 / 400" in fct.table({mine: measured(0.4)})


def samples(left, rate_bps=10e6):
    """Return samples of two flows; `left` gives the second flow's reason at a time."""
    times = [0.25 * n for n in range(round((12 + events.AFTER_S) / 0.25) + 1)]
    return [{"at_s": at, "bytes": [round(at * rate_bps / 8)] * 2, "left": ["", left(at)]}
            for at in times]  # fmt: skip


def test_an_event_that_all_survive_and_one_that_ends_the_law():
    case = EventCase("link down for 2 s", 2.0)
    kept = events.judged(case, samples(lambda _: ""))
    assert (kept["under"], kept["law_s"], kept["law_back"], kept["back_s"]) == (1.0, 0.0, True, 1.0)
    back = events.judged(case, samples(lambda at: "loss" if 11 <= at < 17 else ""))
    assert back["law_s"] == pytest.approx(4.75)
    assert (back["law_back"], back["reasons"]) == (True, {"loss": 24})
    assert back["under"] == pytest.approx(1 - 24 / (2 * 169))
    lost = events.judged(case, samples(lambda at: "loss" if at >= 11 else ""))
    assert not lost["law_back"]
    assert "| not |" in events.table({case: lost | {"host_load": 1.0}})
