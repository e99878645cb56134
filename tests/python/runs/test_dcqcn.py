"""DCQCN against a second program of its algorithm, whose timers are events, and its fixed point."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable

import numpy as np
import pytest

import waterfill

RATE_BPS, DELAY_S = 10e9, 5e-6
# Not the hosts' rate: rounding would order departures and arrivals of the same time.
LAST_BPS = 9.7e9
PACKET, ACK, MARK_AT = 1500, 41, 30_000
G, R_AI, R_HAI, R_MIN = 1 / 256, 40e6, 400e6, 100e6
CNP_S, ALPHA_S, TIMER_S, BYTES, RECOVERY = 50e-6, 55e-6, 55e-6, 100_000, 5


class Clock:
    """A list of events."""

    def __init__(self) -> None:
        self.now = 0.0
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.numbers = itertools.count()

    def after(self, delay: float, event: Callable[[], None]) -> None:
        heapq.heappush(self.events, (self.now + delay, next(self.numbers), event))

    def run(self, until: Callable[[], bool]) -> None:
        while self.events and not until():
            self.now, _, event = heapq.heappop(self.events)
            event()


Arrive = Callable[[bool], None]


class Link:
    """A transmitter with a queue, which marks packets that find more than a threshold waiting."""

    def __init__(self, clock: Clock, rate_bps: float = RATE_BPS, marks: bool = False) -> None:
        self.clock, self.rate_bps, self.marks, self.busy = clock, rate_bps, marks, False
        self.waiting = deque[tuple[int, bool, Arrive]]()
        self.queued = self.longest = 0

    def enqueue(self, size: int, marked: bool, arrive: Arrive) -> None:
        marked |= self.marks and self.queued > MARK_AT
        self.waiting.append((size, marked, arrive))
        self.queued += size
        self.longest = max(self.longest, self.queued)
        if not self.busy:
            self.start()

    def start(self) -> None:
        self.busy = bool(self.waiting)
        if self.busy:
            size, marked, arrive = self.waiting.popleft()
            self.queued -= size
            sends_s = size * 8 / self.rate_bps
            self.clock.after(sends_s, self.start)
            self.clock.after(sends_s + DELAY_S, lambda: arrive(marked))


class Incast:
    """Hosts that send to one host over one switch, with the links back for acknowledgements."""

    def __init__(self, count: int, packets: int, stagger_s: float) -> None:
        self.clock, self.packets = Clock(), packets
        self.last, self.back = Link(self.clock, LAST_BPS, marks=True), Link(self.clock, LAST_BPS)
        self.hosts = [Host(self, h * stagger_s) for h in range(count)]
        self.clock.run(lambda: all(host.received == packets for host in self.hosts))


class Host:
    """A sender and its receiver."""

    def __init__(self, net: Incast, start_s: float) -> None:
        self.net, self.own, self.way_back = net, Link(net.clock), Link(net.clock)
        self.rate = self.target = RATE_BPS
        self.alpha, self.steps, self.bytes = 1.0, [0, 0], 0
        self.timers = self.sent = self.received = 0
        self.last_cnp, self.completed, self.limited = -math.inf, 0.0, False
        back = lambda _: self.acknowledge(40, lambda _: self.transmit())  # noqa: E731
        net.clock.after(start_s, lambda: self.send(40, back))

    def send(self, size: int, arrive: Arrive) -> None:
        self.own.enqueue(size, False, lambda _: self.net.last.enqueue(size, False, arrive))

    def acknowledge(self, size: int, arrive: Arrive) -> None:
        self.net.back.enqueue(size, False, lambda _: self.way_back.enqueue(size, False, arrive))

    def transmit(self) -> None:
        if self.sent < self.net.packets:
            self.sent += 1
            self.send(PACKET, self.receive)
            self.net.clock.after(PACKET * 8 / self.rate, self.transmit)
            self.bytes += PACKET * self.limited
            if self.bytes >= BYTES:
                self.bytes -= BYTES
                self.step(1)

    def receive(self, marked: bool) -> None:
        now = self.net.clock.now
        self.received += 1
        self.completed = now
        notifies = marked and now >= self.last_cnp + CNP_S
        if notifies:
            self.last_cnp = now
        self.acknowledge(ACK, lambda _: self.cut() if notifies else None)

    def cut(self) -> None:
        self.target, self.rate = self.rate, max(self.rate * (1 - self.alpha / 2), R_MIN)
        self.alpha = (1 - G) * self.alpha + G
        self.steps, self.bytes, self.limited = [0, 0], 0, True
        self.timers += 1
        self.after_alpha(self.timers)
        self.after_timer(self.timers)

    def after_alpha(self, since: int) -> None:
        def fall() -> None:
            if since == self.timers:
                self.alpha *= 1 - G
                self.after_alpha(since)

        self.net.clock.after(ALPHA_S, fall)

    def after_timer(self, since: int) -> None:
        def rise() -> None:
            if since == self.timers:
                self.after_timer(since)
                self.step(0)

        self.net.clock.after(TIMER_S, rise)

    def step(self, by: int) -> None:
        self.steps[by] += 1
        if min(self.steps) > RECOVERY:
            self.target += R_HAI
        elif max(self.steps) > RECOVERY:
            self.target += R_AI
        self.target = min(self.target, RATE_BPS)
        self.rate = (self.rate + self.target) / 2


def simulated(count: int, packets: int, stagger_ns: int) -> waterfill.Result:
    scenario = waterfill.Scenario(
        "incast",
        duration="40 ms",
        protocol="dcqcn",
        sample="1 ms",
        rto_min="20 ms",
        syn_rto="20 ms",
    )
    scenario.link("last", "s", "d", "9.7 Gbit/s", "5 us", buffer="1 GB", mark_at=f"{MARK_AT} B")
    for h in range(count):
        scenario.link(f"h{h}", f"h{h}", "s", "10 Gbit/s", "5 us", buffer="1 GB")
        start, size = f"{stagger_ns * h} ns", f"{packets * (PACKET - 40)} B"
        scenario.flow(f"f{h}", f"h{h}", "d", size=size, start=start)
    return scenario.params("dcqcn", byte_counter=f"{BYTES} B").run()


@pytest.mark.parametrize(
    ("count", "stagger_ns", "tolerance"),
    [
        (1, 70, 1e-4),
        *((2, stagger_ns, 1e-6) for stagger_ns in (70, 333, 1000, 5000)),
        *((3, stagger_ns, 1e-6) for stagger_ns in (70, 130, 1000)),
        *((8, stagger_ns, 1e-6) for stagger_ns in (130, 5000)),
    ],
)
def test_incasts_complete_as_in_a_second_program(
    count: int, stagger_ns: int, tolerance: float
) -> None:
    # With some other starts two packets meet within a rounding error, whose order decides the rest.
    packets = 8000 // count
    model = Incast(count, packets, stagger_ns * 1e-9)
    found = simulated(count, packets, stagger_ns).summary
    completed = [flow.completed_s for flow in found.flows]
    assert completed == pytest.approx([host.completed for host in model.hosts], rel=tolerance)
    (link,) = (link for link in found.links if link.name == "last")
    assert link.queue_bytes.max == model.last.longest


def marking(excess: Callable[[float], float]) -> float:
    """Return the probability of a mark at which an excess of cuts over increases is zero."""
    low, high = 1e-6, 0.3
    for _ in range(50):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if excess(middle) > 0 else (middle, high)
    return low


def fluid_excess(p: float, flow: float) -> float:
    """`[ecn-or-delay-2016]` Return the fluid model's cuts less increases of a rate (packets/s)."""
    step, counter = R_AI / (8 * PACKET), 10e6 / PACKET
    alpha, cut = (1 - (1 - p) ** (time_s * flow) for time_s in (ALPHA_S, CNP_S))
    lengths = (counter, TIMER_S * flow)
    rates = [flow * p / ((1 - p) ** -length - 1) for length in lengths]
    steps = zip(rates, lengths, strict=True)
    adds = step * sum(rate * (1 - p) ** (RECOVERY * length) for rate, length in steps)
    return flow * alpha * cut / (2 * CNP_S) - adds * CNP_S / cut / 2 * sum(rates)


def interval_excess(p: float, flow: float) -> float:
    """Return cuts less increases between CNPs: N and then the time to a mark."""
    numbers = np.arange(1, 40 / p)
    weights = p * (1 - p) ** (numbers - 1)
    interval_s = CNP_S + numbers / flow
    falls = (weights * (1 - G) ** np.floor(interval_s / ALPHA_S)).sum()
    steps = np.floor(interval_s / TIMER_S).astype(int)
    gains, target = np.zeros(steps.max() + 1), 0.0
    for step in range(RECOVERY + 1, len(gains)):
        target += R_AI / (8 * PACKET)
        gains[step] = (gains[step - 1] + target) / 2
    alpha = G / (1 - (1 - G) * falls)
    return float(alpha * flow / 2 * (weights * 0.5**steps).sum() - (weights * gains[steps]).sum())


@pytest.mark.parametrize("count", [2, 8])
def test_flows_rest_at_the_fixed_point(count: int) -> None:
    # The paper's slope, K_min 5 kB, K_max 200 kB and P_max 1 %, without its step to 1 at K_max.
    rate, kmin, kmax, pmax = 40e9, 5e3, 1.955e6, 0.1
    scenario = waterfill.Scenario(
        "fixed point",
        duration="100 ms",
        protocol="dcqcn",
        sample="1 ms",
        rto_min="9 ms",
        syn_rto="9 ms",
    )
    marks = {"mark_at": f"{kmin:.0f} B", "mark_to": f"{kmax:.0f} B", "mark_max": pmax}
    scenario.link("last", "s", "d", "40 Gbit/s", "1 us", buffer="1 GB", **marks)
    for h in range(count):
        scenario.link(f"h{h}", f"h{h}", "s", "40 Gbit/s", "1 us", buffer="1 GB")
        scenario.flow(f"f{h}", f"h{h}", "d", start=f"{100 * h} us")
    found = scenario.run().summary
    (link,) = (link for link in found.links if link.name == "last")
    rates = [flow.rate_bps or 0.0 for flow in found.flows]
    assert link.utilization > 0.995
    assert sum(rates) ** 2 / (count * sum(one * one for one in rates)) > 0.99
    flow = rate / (8 * PACKET) / count
    fixed, fluid = (marking(lambda p, of=of: of(p, flow)) for of in (interval_excess, fluid_excess))
    begin, end = found.measure_s
    shares = link.marks * 8 * PACKET / (link.utilization * rate * (end - begin))
    assert shares == pytest.approx(fixed, rel=0.1)
    assert link.queue_bytes.mean == pytest.approx(kmin + fixed * (kmax - kmin) / pmax, rel=0.2)
    # The fluid model lets a CNP follow the last one at once, so it needs fewer marks.
    assert 0.7 < fluid / fixed < 0.85
