"""Sampling of kernel counters during a run, at two intervals on the run's clock.

Every `sample` it reads the counters of hosts, queues and the delay line; more often, the queue
lengths and the senders' RTTs. Counters only grow, so values between two samples are interpolated.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from waterfill.testbed import netlink
from waterfill.testbed.answer import (
    CoarseSamples,
    FineSamples,
    HostLoad,
    Samples,
    StreamSamples,
    StreamTotals,
    TcpTotals,
    Ticks,
)
from waterfill.testbed.daemon import Laws
from waterfill.testbed.delayline import DelayLine, hosts_cpus
from waterfill.testbed.plan import CLIENT_PORT, HTTP_PORT, Port, Stream
from waterfill.testbed.topology import Topology

MIN_FINE_S = 0.01
# Fine samples per coarse one, and the largest fraction of CPU time that they may take.
_FINE_PER_COARSE = 20
_MAX_CPU_SHARE = 0.05
# The fields of a sender's tcp_info that each sample keeps.
TCP_FIELDS = (
    "rtt_us", "cwnd_packets", "mss_bytes", "pacing_bytes_per_s", "total_retrans", "data_segs_out",
    "bytes_acked", "min_rtt_us", "busy_us", "rwnd_limited_us", "sndbuf_limited_us", "bytes_sent",
    "rto_us", "options", "unacked_packets",
)  # fmt: skip
# Counters of segments that a TCP socket dropped although they had arrived.
SOCKET_DROPS = ("RcvPruned", "OfoPruned", "TCPRcvQDrop", "TCPOFODrop", "TCPBacklogDrop")


class Sampler:
    """Collector of a run's samples. Times are in seconds since `start_s` (monotonic)."""

    def __init__(
        self, topology: Topology, line: DelayLine | None, laws: Laws | None = None, *,
        sample_s: float, start_s: float,
    ) -> None:  # fmt: skip
        self._topology, self._line, self._laws = topology, line, laws
        self._start_s = start_s
        self.fine_s = max(MIN_FINE_S, sample_s / _FINE_PER_COARSE)
        self._streams = [_Probe(stream, topology) for stream in topology.plan.streams]
        self._queues = topology.plan.shapers()
        self.coarse = CoarseSamples(
            time_s=[],
            queues=[[] for _ in self._queues],
            streams=[StreamSamples(received=[], tcp=[], payload=[]) for _ in self._streams],
            lost={hold.name: [] for hold in topology.plan.holds()},
        )
        self.fine = FineSamples(
            time_s=[], backlog=[[] for _ in self._queues], rtt_us=[[] for _ in self._streams]
        )
        self._fine_cost_s = 0.0

    def now_s(self) -> float:
        """Return the time since the start of the run (s)."""
        return time.monotonic() - self._start_s

    def take_fine(self) -> None:
        """Sample the queue lengths and the senders' RTTs."""
        began = time.thread_time()
        self.fine.time_s.append(self.now_s())
        for (port, _), rows in zip(self._queues, self.fine.backlog, strict=True):
            state = self._queue(port)
            rows.append((state.backlog_bytes, state.backlog_packets))
        for probe, rtts in zip(self._streams, self.fine.rtt_us, strict=True):
            info = probe.sender()
            rtts.append(None if info is None else info.rtt_us)
        cost_s = time.thread_time() - began
        self._fine_cost_s += 0.1 * (cost_s - self._fine_cost_s)
        self.fine_s = max(self.fine_s, self._fine_cost_s / _MAX_CPU_SHARE)

    def take(self) -> None:
        """Sample all counters of hosts, queues and the delay line."""
        rows = self.coarse
        rows.time_s.append(self.now_s())
        for (port, _), mine in zip(self._queues, rows.queues, strict=True):
            state = self._queue(port)
            mine.append((state.bytes, state.packets, state.drops))
        for probe, stream in zip(self._streams, rows.streams, strict=True):
            counters = probe.received()
            stream.received.append((self.now_s(), *counters))
            info = probe.sender()
            stream.tcp.append(None if info is None else [getattr(info, f) for f in TCP_FIELDS])
            stream.payload.append(probe.payload())
        if self._line is not None:
            lines = self._line.stats().lines
            for name, lost in rows.lost.items():
                lost.append(lines[name].lost)
        if self._laws is not None:
            self._laws.take(rows.time_s[-1])

    def finish(self) -> Samples:
        """Return all samples and the totals of the streams."""
        return Samples(
            coarse=self.coarse,
            fine=self.fine,
            fine_s=self.fine_s,
            laws=None if self._laws is None else self._laws.finish(self.now_s()),
            totals=[probe.totals() for probe in self._streams],
        )

    def _queue(self, port: Port) -> netlink.QueueState:
        return self._topology.routes[port.namespace].queue(self._topology.index(port))


class _Probe:
    """Probe of one stream's two hosts, whose namespaces carry no other stream."""

    def __init__(self, stream: Stream, topology: Topology) -> None:
        self._stream, self._topology = stream, topology
        self._diag = {}
        for number in (stream.source, stream.sink):
            with topology.namespace(number).entered():
                self._diag[number] = netlink.SockDiag()
        self._last: netlink.TcpInfo | None = None
        self._looks = self._full = 0

    def sender(self) -> netlink.TcpInfo | None:
        """Return the state of the sending TCP socket, or None if there is no such socket."""
        if self._stream.kind == "cbr":
            return None
        port = HTTP_PORT if self._stream.kind == "http" else CLIENT_PORT
        for info in self._diag[self._stream.source].sockets(self._topology.family):
            if info.sport == port:
                self._last = info
                self._looks += 1
                self._full += info.send_buffer_full
                return info
        return None

    def payload(self) -> int | None:
        """Return the payload (bytes) that the receiver has in order, or None without a socket."""
        if self._stream.kind == "cbr":
            return None
        port = HTTP_PORT if self._stream.kind == "http" else CLIENT_PORT
        for info in self._diag[self._stream.sink].sockets(self._topology.family):
            if info.dport == port:
                return info.bytes_received
        return None

    def received(self) -> tuple[int, int]:
        """Return the Ethernet bytes and frames that have reached the receiver."""
        counters = self._counters(self._stream.sink)
        return counters.rx_bytes, counters.rx_packets

    def totals(self) -> StreamTotals:
        """Return the stream's totals at its end: the sender's last tcp_info and both hosts'
        counters.
        """
        stream = self._stream
        with self._topology.namespace(stream.source).entered():
            snmp = _table("/proc/thread-self/net/snmp") | _table("/proc/thread-self/net/netstat")
            snmp |= _pairs("/proc/thread-self/net/snmp6")
        with self._topology.namespace(stream.sink).entered():
            sink = _table("/proc/thread-self/net/snmp") | _table("/proc/thread-self/net/netstat")
            sink |= _pairs("/proc/thread-self/net/snmp6")
        udp = "Udp" if self._topology.plan.ip_version == 4 else "Udp6"
        return StreamTotals(
            tcp=None if self._last is None else TcpTotals.read(self._last._asdict()),
            retransmissions=snmp.get("Tcp.RetransSegs", 0),
            timeouts=snmp.get("TcpExt.TCPTimeouts", 0),
            looks=self._looks,
            send_buffer_full=self._full,
            socket_drops=sum(
                table.get(f"TcpExt.{name}", 0) for table in (snmp, sink) for name in SOCKET_DROPS
            ),
            udp_sent=snmp.get(f"{udp}.OutDatagrams", 0),
            udp_received=sink.get(f"{udp}.InDatagrams", 0),
            udp_errors=sink.get(f"{udp}.InErrors", 0),
        )

    def _counters(self, number: int) -> netlink.Counters:
        index = self._topology.index(Port(number, "eth0", ""))
        return self._topology.routes[number].counters(index)


def _table(path: str) -> dict[str, int]:
    """Read the lines `Tcp: A B` and `Tcp: 1 2` of a file as {"Tcp.A": 1, "Tcp.B": 2}."""
    found: dict[str, int] = {}
    with open(path) as file:
        lines = file.read().splitlines()
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        section, *keys = names.split()
        pairs = zip(keys, values.split()[1:], strict=True)
        found |= {f"{section}{key}".replace(":", "."): int(value) for key, value in pairs}
    return found


def _pairs(path: str) -> dict[str, int]:
    """Read the line `Udp6InDatagrams 3` as {"Udp6.InDatagrams": 3}; empty without IPv6."""
    found: dict[str, int] = {}
    with suppress(OSError), open(path) as file:
        for line in file:
            name, value = line.split()
            found[name.replace("Udp6", "Udp6.", 1)] = int(value)
    return found


_TICKS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def host_load() -> HostLoad:
    """Return the host's counters so far: CPU time by kind (ticks) and packets dropped.

    `cpu_ticks` are of all CPUs, `hosts_ticks` of those that the run's hosts and routers use.
    """
    ticks: dict[str, list[int]] = {}
    with open("/proc/stat") as file:
        for line in file:
            name, *counts = line.split()
            if name.startswith("cpu"):
                ticks[name] = [int(word) for word in counts]
    hosts = [ticks[f"cpu{n}"] for n in hosts_cpus()]
    with open("/proc/net/softnet_stat") as file:
        softnet = [[int(word, 16) for word in line.split()] for line in file]
    of_hosts = map(sum, zip(*hosts, strict=True))
    return HostLoad(
        time_s=time.monotonic(),
        cpu_ticks=Ticks.read(dict(zip(_TICKS, ticks["cpu"], strict=False))),
        hosts_ticks=Ticks.read(dict(zip(_TICKS, of_hosts, strict=False))),
        softnet_dropped=sum(row[1] for row in softnet),
        softnet_squeezed=sum(row[2] for row in softnet),
        realtime_less_monotonic_s=time.time() - time.monotonic(),
    )


def host_drops(topology: Topology) -> dict[str, Any]:
    """Return the numbers of frames dropped or refused by interfaces, without zeros."""
    found = {}
    for cable in topology.plan.cables:
        for port in (cable.a, cable.b):
            counters = topology.routes[port.namespace].counters(topology.index(port))
            bad = sum((counters.rx_errors, counters.tx_errors, counters.rx_dropped))
            if bad:
                name = topology.plan.namespaces[port.namespace]
                found[f"{name} {port.name}"] = bad
    return found
