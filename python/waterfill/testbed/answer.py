"""Answer of a run's process tree: plan, samples and checks of the host, sent as JSON."""

from __future__ import annotations

from typing import Any

from waterfill.contract.record import Record


class StreamEntry(Record):
    """JSON form of a `plan.Stream`, without keys that the front end does not read."""

    name: str
    group: str
    index: int
    protocol: str
    kind: str
    loaded: bool
    start_s: float
    stop_s: float
    size_bytes: int | None
    rate_bps: float | None
    base_rtt_s: float
    first_rtt_s: float


class ShaperEntry(Record):
    """JSON form of a `plan.Shaper`."""

    direction: int


class HoldEntry(Record):
    """JSON form of a `plan.Hold`. `faults` holds the fields of its `plan.Faults`."""

    name: str
    direction: int | None
    faults: dict[str, Any]


class PricingEntry(Record):
    """JSON form of a `plan.Pricing`."""

    protocol: str
    direction: int
    target: float


class PlanEntry(Record):
    """JSON form of a `plan.Plan`."""

    namespaces: list[str]
    streams: list[StreamEntry]
    shapers: list[ShaperEntry]
    holds: list[HoldEntry]
    pricings: list[PricingEntry]


class StreamSamples(Record):
    """Samples of one stream: data received (time, bytes, frames), the sender's `TCP_FIELDS`, and
    payload.
    """

    received: list[tuple[float, int, int]]
    tcp: list[list[float] | None]
    payload: list[int | None]


class CoarseSamples(Record):
    """Counters at each sample: bytes, packets and drops of queues, and frames lost by each hold."""

    time_s: list[float]
    queues: list[list[tuple[int, int, int]]]
    streams: list[StreamSamples]
    lost: dict[str, list[int]]


class FineSamples(Record):
    """Frequent samples of each queue's backlog (bytes, packets) and of each sender's RTT."""

    time_s: list[float]
    backlog: list[list[tuple[int, int]]]
    rtt_us: list[list[float | None]]


class TcpTotals(Record):
    """Totals of a sender, from its last `netlink.TcpInfo`."""

    busy_us: int
    rwnd_limited_us: int
    sndbuf_limited_us: int
    data_segs_out: int
    mss_bytes: int


class StreamTotals(Record):
    """Final counters of a stream's two hosts.

    `looks` counts how often the sender was looked at, `send_buffer_full` how often its buffer was
    full of data sent.
    """

    tcp: TcpTotals | None
    retransmissions: int
    timeouts: int
    looks: int
    send_buffer_full: int
    socket_drops: int
    udp_sent: int
    udp_received: int
    udp_errors: int


class ConnectionState(Record):
    """A connection of a loaded law, as its daemon reports it. `signal` is the law's own signal."""

    local: str
    remote: str
    law: str
    mode: str
    fallback_reason: str | None
    signal: float


class ModuleState(Record):
    """Counters of a link's cohabitation module. Further keys belong to its controller."""

    marked: int
    dropped: int


class RouterState(Record):
    """State of a law on a device, as its daemon reports it. Further keys belong to the law."""

    device: str
    law: str
    cohabit: ModuleState | None = None


class DaemonStatus(Record):
    """A daemon's answer to the `status` command."""

    flows: list[ConnectionState]
    links: list[RouterState]


class LinkChanged(Record):
    """A router daemon's answer to a change of a link: the time of the change (monotonic) and any
    error.
    """

    at_s: float
    error: str | None = None


class LawSample(Record):
    """The daemons' answers at one time, by stream and by link direction and law."""

    time_s: float
    flows: dict[str, ConnectionState]
    links: dict[str, dict[str, RouterState]]


class Samples(Record):
    """All samples of a run."""

    coarse: CoarseSamples
    fine: FineSamples
    fine_s: float
    laws: list[LawSample] | None = None
    totals: list[StreamTotals]


class Ticks(Record):
    """CPU time by kind, in clock ticks."""

    user: int
    nice: int
    system: int
    idle: int
    iowait: int
    irq: int
    softirq: int
    steal: int


class HostLoad(Record):
    """Counters of the host: CPU time of all CPUs, and of the CPUs of the run's hosts and
    routers.
    """

    time_s: float
    cpu_ticks: Ticks
    hosts_ticks: Ticks
    softnet_dropped: int
    softnet_squeezed: int
    realtime_less_monotonic_s: float


class Lateness(Record):
    """Lateness of frames in the delay line (ns)."""

    abs_p99: float


class LineEntry(Record):
    """Counters of one line of the delay line."""

    name: str
    late_ns: Lateness | None
    ring_drops: int
    overflow: int
    lost: int


class LineStats(Record):
    """Counters of the delay line."""

    lines: dict[str, LineEntry]
    cpu_s: float
    punctuality: Any


class ChangeMade(Record):
    """A change of a link: its planned time, its lateness, and any error of the daemon."""

    at_s: float
    late_s: float
    error: str | None = None


class Answer(Record):
    """The whole answer of a run's process tree."""

    plan: PlanEntry
    samples: Samples
    troubles: list[str | None]
    transfers: list[tuple[float, int] | None]
    base_rtts_s: list[float | None]
    facts: dict[str, Any]
    machine: list[HostLoad]
    changes: list[ChangeMade]
    host_drops: dict[str, Any]
    delay_line: LineStats | None
    interrupted_at_s: float | None
