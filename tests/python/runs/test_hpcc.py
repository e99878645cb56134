"""HPCC against a second program of its algorithm: when an incast completes, and its queue."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

import waterfill

RATE_BPS, DELAY_S = 10e9, 5e-6
PACKET, ACK, PACKETS = 1500, 40, 200
HEADER = 40 + 42
PAYLOAD = PACKET - HEADER
STAGGER_S = 70e-9  # so that no two packets arrive at once
RTT_S = 4 * DELAY_S + 2 * PACKET * 8 / RATE_BPS
BDP = RATE_BPS * RTT_S / 8
ETA, MAX_STAGE, FLOWS = 0.95, 5, 100


class Clock:
    """A list of events."""

    def __init__(self) -> None:
        self.now = 0.0
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.numbers = itertools.count()

    def at(self, time: float, event: Callable[[], None]) -> None:
        heapq.heappush(self.events, (time, next(self.numbers), event))

    def run(self) -> None:
        while self.events:
            self.now, _, event = heapq.heappop(self.events)
            event()


@dataclass
class Packet:
    """A packet and the records of the links that it has crossed: time, bytes sent, bytes queued."""

    size: int
    arrive: Callable[[Packet], None]
    hops: list[tuple[float, int, int]] = field(default_factory=list)


class Link:
    """A transmitter with a queue. It writes a record into each packet when it starts to send it."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.waiting, self.busy = clock, deque[Packet](), False
        self.sent = self.queued = self.longest = 0

    def enqueue(self, packet: Packet) -> None:
        self.waiting.append(packet)
        self.queued += packet.size
        self.longest = max(self.longest, self.queued)
        if not self.busy:
            self.start()

    def start(self) -> None:
        self.busy = bool(self.waiting)
        if not self.busy:
            return
        packet = self.waiting.popleft()
        self.queued -= packet.size
        self.sent += packet.size
        packet.hops.append((self.clock.now, self.sent, self.queued))
        done = self.clock.now + packet.size * 8 / RATE_BPS
        self.clock.at(done, self.start)
        self.clock.at(done + DELAY_S, lambda: packet.arrive(packet))


class Incast:
    """Hosts that send to one host over one switch, with the links back for acknowledgements."""

    def __init__(self, count: int) -> None:
        self.clock = Clock()
        self.last, self.back = Link(self.clock), Link(self.clock)
        self.senders = [Sender(self, h * STAGGER_S) for h in range(count)]
        self.clock.run()


class Sender:
    """A host with the law of HPCC, lines 2 to 27 of the draft."""

    def __init__(self, net: Incast, start: float) -> None:
        self.net, self.own, self.way_back = net, Link(net.clock), Link(net.clock)
        self.window = self.reference = BDP
        self.load, self.stage, self.until = 1.0, 0, -1
        self.last: list[tuple[float, int, int]] = []
        self.sent = self.acked = self.received = 0
        self.ready = self.timer = self.completed = 0.0
        net.clock.at(start, lambda: self.send(ACK))

    def send(self, size: int) -> None:
        def to_last(packet: Packet) -> None:
            packet.arrive = self.receive
            self.net.last.enqueue(packet)

        self.own.enqueue(Packet(size, to_last))

    def receive(self, packet: Packet) -> None:
        if packet.size == PACKET:
            self.received += 1
            self.completed = self.net.clock.now
        records = packet.hops

        def to_sender(ack: Packet) -> None:
            ack.arrive = lambda _: self.on_ack(records)
            self.way_back.enqueue(ack)

        self.net.back.enqueue(Packet(ACK, to_sender))

    def on_ack(self, records: list[tuple[float, int, int]]) -> None:
        if self.last:
            self.acked += 1
            self.react(records)
        else:
            self.ready = self.net.clock.now
        self.last = records
        self.transmit()

    def react(self, records: list[tuple[float, int, int]]) -> None:
        loads = [
            (
                min(now[2], last[2]) / BDP + (now[1] - last[1]) * 8 / (now[0] - last[0]) / RATE_BPS,
                now[0] - last[0],
            )
            for now, last in zip(records, self.last, strict=True)
        ]
        load, lasted = max(loads, key=lambda one: one[0])
        weight = min(lasted / RTT_S, 1.0)
        self.load = (1 - weight) * self.load + weight * load
        scales = self.load >= ETA or self.stage >= MAX_STAGE
        window = self.reference / (self.load / ETA) if scales else self.reference
        self.window = min(window + BDP * (1 - ETA) / FLOWS, BDP)
        if self.acked > self.until:
            self.until = self.sent
            self.reference = self.window
            self.stage = 0 if scales else self.stage + 1

    def transmit(self) -> None:
        now = self.net.clock.now
        while self.sent < PACKETS and self.sent - self.acked < math.ceil(self.window / PACKET):
            if self.ready > now:
                if self.timer != self.ready:
                    self.timer = self.ready
                    self.net.clock.at(self.ready, self.transmit)
                return
            self.sent += 1
            self.send(PACKET)
            self.ready = max(self.ready, now) + PACKET * RTT_S / self.window


def simulated(count: int) -> waterfill.Result:
    scenario = waterfill.Scenario(
        "incast",
        duration="8 ms",
        protocol="hpcc",
        sample="200 us",
        rto_min="2 ms",
        syn_rto="2 ms",
    )
    scenario.link("last", "s", "d", "10 Gbit/s", "5 us", buffer="1 GB")
    for h in range(count):
        scenario.link(f"h{h}", f"h{h}", "s", "10 Gbit/s", "5 us", buffer="1 GB")
        scenario.flow(f"f{h}", f"h{h}", "d", size=f"{PACKETS * PAYLOAD} B", start=f"{70 * h} ns")
    return scenario.params("hpcc", base_rtt=f"{RTT_S * 1e6:.1f} us").run()


@pytest.mark.parametrize(("count", "tolerance"), [(1, 1e-6), (4, 0.01), (8, 0.01)])
def test_an_incast_completes_as_in_a_second_program(count, tolerance):
    # Several flows depend on the order of packets that arrive within a rounding error.
    model, found = Incast(count), simulated(count).summary
    expected = max(sender.completed for sender in model.senders)
    last = max(flow.completed_s for flow in found.flows)
    assert last == pytest.approx(expected, rel=tolerance)
    (link,) = (link for link in found.links if link.name == "last")
    assert link.queue_bytes.max == pytest.approx(model.last.longest, abs=PACKET)
