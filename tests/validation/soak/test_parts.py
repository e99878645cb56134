"""The parts of a soak that need no kernel programs: course, payload, objects, the kernel's log."""

from __future__ import annotations

import hashlib
import socket
from dataclasses import replace

import pytest

from validation.soak import objects, traffic, watch
from validation.soak import study as main
from validation.soak.objects import Id, Object
from validation.soak.study import Course, planned
from validation.soak.traffic import Host, Load


def test_an_hour_has_a_reload_a_minute_and_a_kill_instead_every_five():
    events = planned(main.HOUR)
    assert [at for at, _ in events] == [60.0 * n for n in range(1, 60)]
    assert [at for at, kind in events if kind == "kill"] == [300.0 * n for n in range(1, 12)]
    assert {kind for _, kind in planned(main.SHORT)} == {"reload", "kill"}
    assert planned(Course(5, 10, 10, 1)) == []


def test_a_payload_has_its_size_and_differs_between_flows_and_places():
    whole = b"".join(traffic.payload(1, 200_000))
    assert len(whole) == 200_000
    assert whole[:60_000] != whole[65_536:125_536]
    assert whole != b"".join(traffic.payload(2, 200_000))
    assert b"".join(traffic.payload(1, 0)) == b""


def test_what_uses_an_object_of_the_run_is_the_runs():
    def one(kind, number, *uses):
        return Object(Id(kind, number), "", frozenset(uses))

    shared = Id("map", 1)
    known = [
        one("map", 1),
        one("map", 2),
        one("program", 3, shared, Id("map", 2)),
        one("program", 4, shared, Id("map", 99)),
        one("link", 5, Id("program", 3)),
        one("map", 6),
        one("program", 7, Id("map", 6)),
    ]
    found = objects.component({o.id: o for o in known}, [shared, Id("map", 98)])
    assert found == {Id("map", 1), Id("map", 2), Id("program", 3), Id("program", 4), Id("link", 5)}


def test_sockets_are_counted_from_tcps_line():
    text = "sockets: used 9\nTCP: inuse 3 orphan 0 tw 12 alloc 5 mem 1\nUDP: inuse 1 mem 0\n"
    assert watch.sockstat(text)["tw"] == 12
    with pytest.raises(ValueError, match="no line for TCP"):
        watch.sockstat("UDP: inuse 1 mem 0\n")


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ("6,100,5,-;wire: renamed from x\n", None),
        ("4,100,5,-;sched: RT throttling activated\n", None),
        ("4,100,5,-;WARNING: CPU: 0 PID: 1 at net/x.c:3\n", "WARNING: CPU: 0 PID: 1 at net/x.c:3"),
        ("3,100,5,-;tcp: broken\n", "tcp: broken"),
        ("11,100,5,-;user's error\n", "user's error"),
        (" continuation", None),
        ("30,1,1,-;systemd\n", None),
    ],
)
def test_errors_and_reported_bugs_of_the_kernel_are_serious(record, text):
    assert watch.serious(record) == text


# --- the traffic on the loopback device -----------------------------------------------------------


def law():
    with socket.socket() as one:
        name = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return name.split(b"\0")[0].decode()


@pytest.fixture
def host(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setattr(traffic, "PORT", free.getsockname()[1])
    load = Load(1, long_flows=2, long_bytes=(300_000, 400_000), short_bytes=(1, 50_000))
    one = Host("127.0.0.1", "127.0.0.1", law(), load)
    yield one
    one.close()


def drain(host):
    host.arriving = False
    for _ in range(500):
        host.serve(0.05)
        if host.now().open == 0:
            return
    raise AssertionError("flows do not end")


def test_flows_of_both_directions_arrive_and_are_proven(host):
    host.arriving = True
    host.arrive()
    host.serve(0.1)
    drain(host)
    totals = host.now()
    assert totals.opened == totals.delivered > 3
    assert totals.delivered_bytes > 600_000
    assert (totals.wrong, totals.failed, totals.stuck, totals.unselected) == (0, 0, 0, 0)


def test_bytes_that_change_on_the_way_are_noticed(host, monkeypatch):
    def serve(one):
        header = yield from one.exactly(17)
        kind, size = header[:1], int.from_bytes(header[9:], "big")
        if kind == b"p":
            yield from one.take(size)
            yield from one.send(bytes(32))
        else:
            # A digest that is right for bytes that are not the flow's.
            yield from one.send(bytes(size))
            yield from one.send(hashlib.sha256(bytes(size)).digest())
        return True

    monkeypatch.setattr(traffic, "_serve", serve)
    host.arrive()
    drain(host)
    totals = host.now()
    assert totals.wrong == totals.opened > 3
    assert totals.delivered == totals.delivered_bytes == 0


def test_a_server_that_closes_early_is_a_failure(host, monkeypatch):
    def serve(one):
        yield from one.exactly(17)
        return True

    monkeypatch.setattr(traffic, "_serve", serve)
    host.arrive()
    drain(host)
    totals = host.now()
    assert totals.failed == totals.opened > 3
    assert totals.errors != []


@pytest.mark.parametrize("limit", ["stall", "deadline"])
def test_a_flow_without_progress_or_past_its_deadline_is_stuck_and_reset(host, monkeypatch, limit):
    host.arrive()
    host.reset_stuck()
    opened = host.now().opened
    assert host.now().stuck == 0
    assert host.now().open >= opened > 3
    if limit == "stall":
        monkeypatch.setattr(traffic, "STALL_S", -1.0)
    else:
        host._load = replace(host._load, deadline_s=-1.0)
    host.reset_stuck()
    assert host.now().stuck >= opened
    assert host.now().open == 0
    assert "stuck client" in host.now().errors[0]
