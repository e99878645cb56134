"""Plan of a scenario's testbed: namespaces, cables, queues, delays, addresses and routes. No I/O.

A node of the scenario is a router in a namespace of its own. Each end of each flow also has its own
namespace, behind a veth without a rate limit, even if the scenario's host is a link's end: a queue
in the sender's namespace would limit the sender (TCP small queues) and so differ from the
scenario's. A cable with delay or loss is cut in two, and the delay line carries frames between its
halves. The padding of a flow's RTT is on its sender's access cable.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from waterfill.contract import elements
from waterfill.contract.elements import FaultSpec, LossSpec
from waterfill.contract.network import BufferSpec, FlowSpec, LinkSpec, Network, TrafficSpec
from waterfill.network.graph import Graph
from waterfill.scenario.document import Scenario
from waterfill.testbed import cohabit

ETHERNET_BYTES = 14
HTTP_PORT, IPERF_PORT, CLIENT_PORT = 80, 5201, 5301
# How late a timer may fire before a queue loses rate: the depth of its token bucket.
_LATE_TIMER_S = 250e-6
# What a delay line holds beyond the frames of its delay: a queue's burst, a late iteration.
_SLACK_S, _SLACK_BYTES = 0.05, 1 << 20
# The largest socket buffer: TCP's windows end at 1 GB, of which the kernel's overhead takes half.
_MAX_WINDOW_BYTES = 256 << 20
# The namespace of the delay line's process is the first one.
WIRES = 0


@dataclass(frozen=True)
class Port:
    """One end of a cable: an interface in a namespace."""

    namespace: int
    name: str
    mac: str


@dataclass(frozen=True)
class Shaper:
    """The queue of one link direction, a token bucket. Bytes are IP bytes.

    The limit is the scenario's buffer plus one packet: it includes the packet in service, which
    waits in the bucket's queue for its tokens.
    """

    direction: int
    rate_bps: float
    burst_bytes: int
    limit: BufferSpec


@dataclass(frozen=True)
class Faults:
    """Random faults of a wire, in the terms of the delay line's configuration."""

    loss: float = 0.0
    loss_model: LossSpec | None = None
    """Loss model of the wire, used instead of `loss`."""
    reorder: float = 0.0
    reorder_extra_ns: int = 0
    duplicate: float = 0.0
    faults: tuple[FaultSpec, ...] = ()
    """Faults that affect frames or the wire itself."""

    @property
    def causes_retransmissions(self) -> bool:
        """True if a sender may retransmit packets that were neither dropped nor lost."""
        return self.reorder > 0 or self.duplicate > 0


@dataclass(frozen=True)
class DelayChange:
    """Delay and rate of a wire from a given time on. The rate counts IP bytes."""

    at_s: float
    delay_s: float
    rate_bps: float


@dataclass(frozen=True)
class Hold:
    """Treatment of a cable's frames in one direction by the delay line."""

    name: str
    delay_s: float
    faults: Faults
    hold_bytes: int
    direction: int | None
    """Index of the link direction that has these losses. None if the delay only pads an RTT."""
    changes: tuple[DelayChange, ...] = ()


@dataclass(frozen=True)
class Cable:
    """Two connected ports. The delay line connects them unless `there` and `back` are None."""

    a: Port
    b: Port
    shaper_a: Shaper | None = None
    shaper_b: Shaper | None = None
    there: Hold | None = None
    back: Hold | None = None


@dataclass(frozen=True)
class Pricing:
    """A link direction with the router of an explicit law. Rates count IP bytes."""

    direction: int
    port: Port
    protocol: str
    rate_bps: float
    target: float
    own_target: bool = False
    """True if the target is the link's own rather than the law's."""
    cohabit: tuple[str, ...] = ()
    """The daemon's options for `queue = "cohabit"`, set for only one of a link's laws."""


@dataclass(frozen=True)
class Route:
    """A namespace's route to an address: its interface and the neighbour's MAC address."""

    namespace: int
    destination: str
    interface: str
    neighbour: str


@dataclass(frozen=True)
class Stream:
    """One flow or one source of traffic, with its two hosts."""

    kind: Literal["iperf", "http", "cbr"]
    name: str
    group: str
    index: int
    protocol: str
    congestion: str
    sack: bool
    source: int
    sink: int
    source_address: str
    sink_address: str
    start_s: float
    stop_s: float
    size_bytes: int | None
    rate_bps: float | None
    """Rate of CBR traffic or demand of a flow (bit/s), counting whole packets."""
    base_rtt_s: float
    first_rtt_s: float
    """Base RTT at time 0 (s)."""
    start_rtt_s: float
    """Base RTT at the stream's start (s)."""
    window_bytes: int
    """Payload that each socket buffer can hold (bytes)."""
    initial_window_packets: int
    delayed_ack: bool
    paced: bool
    """True if the stream is paced although its law does not pace."""
    loaded: bool
    """True if a daemon loads the stream's law for the run."""
    ecn: bool


@dataclass
class Plan:
    """Plan of a testbed, for `topology` to build and `flows` to start. A namespace is a number; the
    delay line has number 0.
    """

    ip_version: int
    mtu_bytes: int
    seed: int
    namespaces: list[str] = field(default_factory=lambda: ["wires"])
    cables: list[Cable] = field(default_factory=list)
    routes: list[Route] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    pricings: list[Pricing] = field(default_factory=list)
    rto_min_s: float = 1.0
    base_rtt_windows_s: dict[str, float | None] = field(default_factory=dict)
    """Time (s) after which each law's hosts forget an RTT as the smallest; None for never."""
    offloads: bool = False
    """True if hosts may exchange frames longer than the MTU, which then hold several packets."""

    @property
    def address_bits(self) -> int:
        """Length of an IP address in bits."""
        return 32 if self.ip_version == 4 else 128

    def holds(self) -> list[Hold]:
        """Return the delay line's instructions in the order of the cables."""
        return [hold for c in self.cables for hold in (c.there, c.back) if hold is not None]

    def shapers(self) -> list[tuple[Port, Shaper]]:
        """Return all token buckets, each with its port."""
        pairs = [(p, s) for c in self.cables for p, s in ((c.a, c.shaper_a), (c.b, c.shaper_b))]
        return [(port, shaper) for port, shaper in pairs if shaper is not None]

    def hosts(self) -> set[int]:
        """Return the namespaces of all senders and receivers."""
        return {end for s in self.streams for end in (s.source, s.sink)}


@dataclass(frozen=True)
class Congestion:
    """A protocol's congestion control in the kernel: its name there, and its use of SACK and
    pacing.

    A `loaded` law is not the kernel's own: a daemon loads it for the run, on hosts and routers.
    """

    name: str
    sack: bool = True
    paced: bool = False
    loaded: bool = False


def of(
    scenario: Scenario,
    resolved: Network,
    congestion: Mapping[str, Congestion],
    targets: Mapping[str, float] | None = None,
) -> Plan:
    """Return the plan of a resolved scenario. `congestion` has each protocol's congestion control
    in the kernel.

    `targets` are the target utilizations of loaded laws, for links without one of their own.
    """
    return _Planner(scenario, resolved, congestion, targets or {}).plan


class _Planner:
    def __init__(
        self,
        scenario: Scenario,
        resolved: Network,
        congestion: Mapping[str, Congestion],
        targets: Mapping[str, float],
    ) -> None:
        self.scenario, self.resolved = scenario, resolved
        self.plan = Plan(
            ip_version=scenario.ip_version,
            mtu_bytes=resolved.packet_bytes,
            seed=resolved.seed,
            rto_min_s=resolved.rto_min_s,
            base_rtt_windows_s={f.protocol: f.base_rtt_window_s for f in resolved.flows},
        )
        self.directions = Graph(scenario).directions
        self._macs = 0
        self._hosts = 0
        self.nodes: dict[str, int] = {}
        # For each direction, the port where it leaves and the one where it arrives.
        self.ports: list[tuple[Port, Port]] = [None] * len(self.directions)  # type: ignore[list-item]
        for direction in self.directions:
            for node in (direction.start, direction.end):
                if node not in self.nodes:
                    self.nodes[node] = self._namespace(f"node {node}")
        for i, direction in enumerate(self.directions):
            if direction.back is None or i < direction.back:
                self._link(i)
        for entry, flow in zip(scenario.flow, resolved.flows, strict=True):
            for index in range(flow.count):
                self._flow(entry, flow, index, congestion[flow.protocol])
        for source in resolved.traffic:
            self._cbr(source)
        self._pricings(congestion, targets)

    def _namespace(self, name: str) -> int:
        self.plan.namespaces.append(name)
        return len(self.plan.namespaces) - 1

    def _port(self, namespace: int, name: str) -> Port:
        self._macs += 1
        mac = (0x02 << 40 | self._macs).to_bytes(6, "big").hex(":")
        return Port(namespace, name, mac)

    def _address(self) -> str:
        self._hosts += 1
        base = "10.0.0.0" if self.plan.ip_version == 4 else "fd00::"
        return str(ipaddress.ip_address(base) + self._hosts)

    def _link(self, i: int) -> None:
        direction = self.directions[i]
        back = direction.back
        a = self._port(self.nodes[direction.start], f"l{i}")
        b = self._port(self.nodes[direction.end], f"l{i}")
        self.ports[i] = (a, b)
        if back is not None:
            self.ports[back] = (b, a)
        there = self._held(i)
        returning = None if back is None else self._held(back)
        if there is None and returning is None:
            held: tuple[Hold | None, Hold | None] = (None, None)
        else:
            # The delay line carries both directions of a cable or none.
            nothing = Hold(f"{direction.name}:back", 0.0, Faults(), _SLACK_BYTES, None)
            at_once = Hold(direction.name, 0.0, Faults(), self._room(i), i)
            held = (there or at_once, returning or nothing)
        shaper_b = None if back is None else self._shaper(back)
        self.plan.cables.append(Cable(a, b, self._shaper(i), shaper_b, *held))

    def _held(self, i: int) -> Hold | None:
        direction = self.directions[i]
        link = self.resolved.links[i]
        late = link.reorder
        faults = Faults(
            loss=link.loss,
            loss_model=link.loss_model,
            reorder=0.0 if late is None else late.share,
            reorder_extra_ns=0 if late is None else round(late.delay_s * 1e9),
            duplicate=link.duplicate,
            faults=link.faults,
        )
        changes = _delay_changes(link)
        if link.delay_s == 0 and not changes and faults == Faults():
            return None
        return Hold(direction.name, link.delay_s, faults, self._room(i), i, changes)

    def _room(self, i: int) -> int:
        link = self.resolved.links[i]
        # Small packets need more memory than their bytes: slot alignment and the Ethernet header.
        holding = (elements.Hold, elements.Acks)
        releases_s = [f.effect.every_s for f in link.faults if isinstance(f.effect, holding)]
        held_s = max(_delays_s(link)) + max(releases_s, default=0.0) + _SLACK_S
        return round(1.25 * _most_bps(link) / 8 * held_s) + _SLACK_BYTES

    def _shaper(self, i: int) -> Shaper:
        link = self.resolved.links[i]
        packet = self.plan.mtu_bytes
        burst = max(2 * packet, round(_most_bps(link) / 8 * _LATE_TIMER_S))
        return Shaper(
            direction=i,
            rate_bps=link.rate_bps,
            burst_bytes=burst,
            limit=replace(
                link.buffer, size=link.buffer.size + (packet if link.buffer.unit == "bytes" else 1)
            ),
        )

    def _window(self, forward: Sequence[int], base_rtt_s: float) -> int:
        """Return a socket buffer size: four times the bytes that can be in flight or queued on a
        path.
        """
        rate_bps = min(_most_bps(self.resolved.links[i]) for i in forward)
        waiting = sum(self.resolved.links[i].buffer.as_bytes(self.plan.mtu_bytes) for i in forward)
        return max(1 << 20, 4 * round(rate_bps / 8 * max(base_rtt_s, 1e-3) + waiting))

    def _recovery_window(self, flow: FlowSpec, forward: Sequence[int], window: int) -> int:
        """Return the bytes that a recovery without SACK can leave unacknowledged, at least
        `window`.

        It repairs one lost packet per RTT and sends a window of new ones meanwhile, and what has
        arrived is acknowledged at its end. A path that holds w packets can lose w of them at once,
        so that is up to w² packets, or all that the path carries while the flow lasts.
        """
        path_packets = window / 4 / self.plan.mtu_bytes
        rate_bps = min(_most_bps(self.resolved.links[i]) for i in forward)
        lasts_s = min(flow.stop_s, self.resolved.duration_s) - flow.start_s
        most = min(path_packets**2 * self.plan.mtu_bytes, rate_bps / 8 * max(lasts_s, 0.0))
        if flow.size_bytes is not None:
            most = min(most, flow.size_bytes)
        return max(window, min(round(most), _MAX_WINDOW_BYTES))

    def _flow(self, entry: Any, flow: FlowSpec, index: int, law: Congestion) -> None:
        forward, reverse = flow.forward, flow.reverse
        least_s, start_s = flow.base_rtt_of_s(index), flow.start_of_s(index)
        links = [self.resolved.links[i] for i in (*forward, *reverse)]
        others_s = least_s - sum(min(_delays_s(link)) for link in links)
        most_s = others_s + sum(max(_delays_s(link)) for link in links)
        first_s, at_start_s = (
            others_s + sum(_delay_at_s(link, time_s) for link in links) for time_s in (0.0, start_s)
        )
        window = self._window(forward, most_s)
        buffer = window if law.sack else self._recovery_window(flow, forward, window)
        name = f"{flow.name}[{index}]" if flow.count > 1 else flow.name
        ends = self._ends(name, forward, reverse, flow.pad_of_s(index), window)
        size, demand = flow.size_bytes, flow.demand_bps
        self.plan.streams.append(
            Stream(
                kind="iperf" if size is None else "http",
                name=name, group=flow.name, index=index, protocol=flow.protocol,
                congestion=law.name, sack=law.sack, **ends,
                start_s=start_s, stop_s=flow.stop_s,
                size_bytes=size, rate_bps=demand, base_rtt_s=least_s,
                first_rtt_s=first_s, start_rtt_s=at_start_s,
                window_bytes=buffer, initial_window_packets=flow.initial_window_packets,
                delayed_ack=flow.delayed_ack, loaded=law.loaded,
                paced=flow.pacing is True and not law.paced,
                ecn=bool(entry.ecn),
            )
        )  # fmt: skip

    def _cbr(self, source: TrafficSpec) -> None:
        forward = source.path
        # iperf3 connects to the sink over TCP before it sends, which needs a route back.
        reverse = [self.directions[i].back for i in reversed(forward)]
        ends = self._ends(source.name, forward, [i for i in reverse if i is not None], 0.0, 0)
        self.plan.streams.append(
            Stream(
                kind="cbr", name=source.name, group=source.name, index=0,
                protocol="", congestion="reno", sack=True, **ends,
                start_s=source.start_s, stop_s=source.stop_s, size_bytes=None,
                rate_bps=source.rate_bps, base_rtt_s=0.0, first_rtt_s=0.0,
                start_rtt_s=0.0, window_bytes=1 << 20,
                initial_window_packets=10, delayed_ack=False, paced=False, loaded=False,
                ecn=False,
            )
        )  # fmt: skip

    def _pricings(self, congestion: Mapping[str, Congestion], targets: Mapping[str, float]) -> None:
        """Add a router for each link direction crossed by a loaded law's data, if the link allows
        that law.
        """
        crossed = {
            (i, flow.protocol)
            for flow in self.resolved.flows
            if congestion[flow.protocol].loaded
            for i in flow.forward
        }
        kept: list[tuple[int, str]] = []
        for i, protocol in sorted(crossed):
            routers = self.resolved.links[i].routers
            if routers is None or protocol in routers:
                kept.append((i, protocol))
        # The last program to be attached runs first: the module, and no router sees what it drops.
        last = dict(kept)
        for i, protocol in kept:
            link = self.resolved.links[i]
            self.plan.pricings.append(
                Pricing(
                    i, self.ports[i][0], protocol, link.rate_bps,
                    targets[protocol] if link.target is None else link.target,
                    own_target=link.target is not None,
                    cohabit=cohabit.arguments(link.queue) if last[i] == protocol else (),
                )
            )  # fmt: skip

    def _ends(
        self, name: str, forward: Sequence[int], reverse: Sequence[int], pad_s: float, window: int
    ) -> dict[str, Any]:
        source, sink = (self._namespace(f"{word} {name}") for word in ("source", "sink"))
        first, last = self.ports[forward[0]][0].namespace, self.ports[forward[-1]][1].namespace
        out, into = self._port(source, "eth0"), self._port(first, f"h{source}")
        hold = returning = None
        if pad_s > 0:
            limit_bytes = 2 * window + _SLACK_BYTES
            hold = Hold(f"rtt {name}", pad_s, Faults(), limit_bytes, None)
            returning = Hold(f"rtt {name}:back", pad_s, Faults(), limit_bytes, None)
        self.plan.cables.append(Cable(out, into, there=hold, back=returning))
        away, home = self._port(last, f"h{sink}"), self._port(sink, "eth0")
        self.plan.cables.append(Cable(away, home))
        source_address, sink_address = self._address(), self._address()
        self._route(sink_address, [(out, into), *(self.ports[i] for i in forward), (away, home)])
        self._route(source_address, [(home, away), *(self.ports[i] for i in reverse), (into, out)])
        return {
            "source": source, "sink": sink,
            "source_address": source_address, "sink_address": sink_address,
        }  # fmt: skip

    def _route(self, destination: str, hops: Sequence[tuple[Port, Port]]) -> None:
        for leaves, arrives in hops:
            self.plan.routes.append(Route(leaves.namespace, destination, leaves.name, arrives.mac))


def _delays_s(link: LinkSpec) -> list[float]:
    """Return all delays (s) that a link direction has during the run."""
    return [link.delay_s, *(c.delay_s for c in link.changes if c.delay_s is not None)]


def _delay_at_s(link: LinkSpec, time_s: float) -> float:
    """Return a link direction's delay (s) at a time (s)."""
    past = [c.delay_s for c in link.changes if c.delay_s is not None and c.at_s <= time_s]
    return past[-1] if past else link.delay_s


def _delay_changes(link: LinkSpec) -> tuple[DelayChange, ...]:
    """Return a link direction's delay and rate at each change, or an empty tuple if the delay never
    changes.
    """
    if all(change.delay_s is None for change in link.changes):
        return ()
    found, delay_s, rate_bps = [], link.delay_s, link.rate_bps
    for change in link.changes:
        delay_s = delay_s if change.delay_s is None else change.delay_s
        rate_bps = rate_bps if change.rate_bps is None else change.rate_bps
        found.append(DelayChange(change.at_s, delay_s, rate_bps))
    return tuple(found)


def _most_bps(link: LinkSpec) -> float:
    """Return the maximum rate (bit/s) of a link direction during the run."""
    return max([link.rate_bps, *(change.rate_bps or 0.0 for change in link.changes)])
