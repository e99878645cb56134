"""Impose a pattern of losses on one TCP connection of the running kernel, and record its sends.

Two network namespaces are joined by two TUN devices. This process carries the packets between them
over a modelled path: a link of 12 Mbit/s with an unlimited queue, and 20 ms in each direction. It
knows each data packet by its place in the order of transmissions, so a pattern names the packets
that are lost or late. The kernel does everything else, on its own clock.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import select
import socket
import struct
import time
from dataclasses import dataclass, field

from waterfill.testbed import isolate

PACKETS = 300
"""Number of data packets of the connection."""
ONE_WAY_NS = 20_000_000
SERVICE_NS = 1_000_000
END_NS = 60_000_000_000
_MTU = 1500
_MSS_BYTES = _MTU - 52
"""Payload of a packet with IPv4, TCP and timestamps."""
_BUFFER_BYTES = 8 << 20
_PORT = 7000
_ADDRESSES = ("10.9.0.1", "10.9.0.2")
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_SETTINGS = {
    "tcp_no_metrics_save": "1",
    "tcp_rmem": f"4096 {_BUFFER_BYTES} {_BUFFER_BYTES}",
    "tcp_wmem": f"4096 {_BUFFER_BYTES} {_BUFFER_BYTES}",
}


@dataclass(frozen=True)
class Pattern:
    """Fates of the packets of a connection. Times are counted from the SYN, in ms."""

    name: str
    lost: tuple[int, ...] = ()
    """Data packets that are lost, by their place in the order of transmissions, from 0."""
    late: tuple[int, ...] = ()
    """Data packets that arrive `late_ms` later than others, by the same numbers."""
    late_ms: int = 0
    acks_lost: int = 0
    """Every n-th acknowledgement is lost; 0 for none."""
    outage: tuple[int, int] | None = None
    """Start and end of an outage of both directions."""
    mute: tuple[int, int] | None = None
    """Start and end of an outage of the direction of acknowledgements."""
    differs: str = ""
    """Why the order of sends differs from the simulator's; empty if it is the same."""


class _End:
    """One end of the connection: a namespace with a TUN device."""

    def __init__(self, number: int) -> None:
        from pyroute2 import IPRoute

        self.space = isolate.Namespace()
        with self.space.entered():
            self.tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(self.tun, _TUNSETIFF, struct.pack("16sH22x", b"t", _IFF_TUN | _IFF_NO_PI))
            for name, value in _SETTINGS.items():
                with open(f"/proc/sys/net/ipv4/{name}", "w") as file:
                    file.write(value)
            with IPRoute() as routes:
                (index,) = routes.link_lookup(ifname="t")
                # Packets leave one by one, and each one is acknowledged.
                routes.link("set", index=index, state="up", mtu=_MTU, gso_max_segs=1)
                routes.addr("add", index=index, address=_ADDRESSES[number], prefixlen=32)
                routes.route("add", dst=f"{_ADDRESSES[1 - number]}/32", oif=index,
                             metrics={"attrs": [("RTAX_QUICKACK", 1)]})  # fmt: skip

    def socket(self) -> socket.socket:
        with self.space.entered():
            return socket.socket(socket.AF_INET, socket.SOCK_STREAM)


@dataclass
class Sends:
    """Data packets in the order of their transmission."""

    order: list[int] = field(default_factory=list)
    times_ms: list[float] = field(default_factory=list)


class _Path:
    """Carries packets between the two ends and decides their fates."""

    def __init__(self, pattern: Pattern, ends: tuple[_End, _End], sender: socket.socket) -> None:
        self.pattern, self.ends, self.sender = pattern, ends, sender
        self.unsent_bytes = PACKETS * _MSS_BYTES
        self.sends = Sends()
        self.transit: list[tuple[int, int, int, bytes]] = []
        self.started_ns: int | None = None
        self.free_ns = 0
        self.acks = self.carried = 0
        self.first_sequence: int | None = None
        self.acknowledged = 0

    def carry(self) -> None:
        """Carry packets until all data are acknowledged."""
        poll = select.poll()
        for end in self.ends:
            poll.register(end.tun, select.POLLIN)
        began_ns = time.monotonic_ns()
        while self.acknowledged < PACKETS and time.monotonic_ns() < began_ns + END_NS:
            wait_ms = 100.0
            if self.transit:
                wait_ms = max(0.0, (self.transit[0][0] - time.monotonic_ns()) / 1e6)
            poll.poll(wait_ms)
            for number, end in enumerate(self.ends):
                while (packet := _read(end.tun)) is not None:
                    self._enter(number, packet, time.monotonic_ns())
            while self.transit and self.transit[0][0] <= time.monotonic_ns():
                _, _, number, packet = heapq.heappop(self.transit)
                os.write(self.ends[number].tun, packet)
                if number == 0:
                    self._note_ack(packet)
                    self._write()

    def _write(self) -> None:
        """Write the data as soon as the connection is open."""
        if self.unsent_bytes:
            self.unsent_bytes -= self.sender.send(bytes(self.unsent_bytes))

    def _enter(self, source: int, packet: bytes, now_ns: int) -> None:
        if packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
            return
        if self.started_ns is None:
            self.started_ns = now_ns
        at_ms = (now_ns - self.started_ns) / 1e6
        arrives_ns: int | None
        if source == 0:
            arrives_ns = self._data(packet, now_ns, at_ms)
        else:
            arrives_ns = self._ack(packet, now_ns, at_ms)
        if arrives_ns is not None:
            self.carried += 1
            heapq.heappush(self.transit, (arrives_ns, self.carried, 1 - source, packet))

    def _data(self, packet: bytes, now_ns: int, at_ms: float) -> int | None:
        sequence, payload_bytes = _sequence(packet), _payload_bytes(packet)
        if payload_bytes == 0:  # the handshake
            self.first_sequence = sequence + 1 if _flags(packet) & 0x02 else self.first_sequence
            return now_ns + ONE_WAY_NS
        assert self.first_sequence is not None
        number = len(self.sends.order)
        self.sends.order.append(((sequence - self.first_sequence) & 0xFFFFFFFF) // _MSS_BYTES)
        self.sends.times_ms.append(at_ms)
        self.free_ns = max(self.free_ns, now_ns) + SERVICE_NS
        if number in self.pattern.lost or _within(self.pattern.outage, at_ms):
            return None
        late_ms = self.pattern.late_ms if number in self.pattern.late else 0
        return self.free_ns + ONE_WAY_NS + late_ms * 1_000_000

    def _ack(self, packet: bytes, now_ns: int, at_ms: float) -> int | None:
        if _flags(packet) & 0x02:
            return now_ns + ONE_WAY_NS
        self.acks += 1
        lost = self.pattern.acks_lost and self.acks % self.pattern.acks_lost == 0
        if lost or _within(self.pattern.outage, at_ms) or _within(self.pattern.mute, at_ms):
            return None
        return now_ns + ONE_WAY_NS

    def _note_ack(self, packet: bytes) -> None:
        (acknowledged,) = struct.unpack_from("!I", packet, _header(packet) + 8)
        if self.first_sequence is not None and not _flags(packet) & 0x02:
            payload_bytes = (acknowledged - self.first_sequence) & 0xFFFFFFFF
            self.acknowledged = max(self.acknowledged, payload_bytes // _MSS_BYTES)


def _header(packet: bytes) -> int:
    return (packet[0] & 15) * 4


def _sequence(packet: bytes) -> int:
    return int(struct.unpack_from("!I", packet, _header(packet) + 4)[0])


def _flags(packet: bytes) -> int:
    return packet[_header(packet) + 13]


def _payload_bytes(packet: bytes) -> int:
    ip = _header(packet)
    return len(packet) - ip - (packet[ip + 12] >> 4) * 4


def _within(span_ms: tuple[int, int] | None, at_ms: float) -> bool:
    return span_ms is not None and span_ms[0] <= at_ms < span_ms[1]


def _read(tun: int) -> bytes | None:
    try:
        return os.read(tun, 65536)
    except BlockingIOError:
        return None


def linux_sends(pattern: Pattern, law: str = "reno") -> Sends:
    """Return the sends of one connection of the running kernel under a pattern.

    Call it in a process tree of its own: it creates namespaces and takes a real-time priority, so
    that other work on the host delays no packet. Needs root.
    """
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    ends = (_End(0), _End(1))
    listener, sender = ends[1].socket(), ends[0].socket()
    listener.bind((_ADDRESSES[1], _PORT))
    listener.listen()
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, law.encode())
    sender.setblocking(False)
    path = _Path(pattern, ends, sender)
    sender.connect_ex((_ADDRESSES[1], _PORT))
    path.carry()
    return path.sends
