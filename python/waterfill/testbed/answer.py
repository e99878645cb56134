"""The process tree's answer to a run: plan, samples, checks of the host; sent as JSON."""

from __future__ import annotations

from typing import Any

from waterfill.contract.record import Record


class StreamEntry(Record):
    """A `plan.Stream`; keys that nothing reads from the answer are left out here and below."""

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
    """A `plan.Shaper`."""

    direction: int


class HoldEntry(Record):
    """A `plan.Hold`; `faults` are the fields of its `plan.Faults`."""

    name: str
    direction: int | None
    faults: dict[str, Any]


class PricingEntry(Record):
    """A `plan.Pricing`."""

    protocol: str
    direction: int
    target: float


class PlanEntry(Record):
    """Parts of the built testbed."""

    namespaces: list[str]
    streams: list[StreamEntry]
    shapers: list[ShaperEntry]
    holds: list[HoldEntry]
    pricings: list[PricingEntry]


class StreamSamples(Record):
    """One stream: time, bytes and frames received; the sender's `TCP_FIELDS`; payload."""

    received: list[tuple[float, int, int]]
    tcp: list[list[float] | None]
    payload: list[int | None]


class CoarseSamples(Record):
    """Counters at each sample: bytes, packets and drops by queue; frames lost by hold."""

    time_s: list[float]
    queues: list[list[tuple[int, int, int]]]
    streams: list[StreamSamples]
    lost: dict[str, list[int]]


class FineSamples(Record):
    """Bytes and packets that wait in each queue, and each sender's RTT."""

    time_s: list[float]
    backlog: list[list[tuple[int, int]]]
    rtt_us: list[list[float | None]]


class TcpTotals(Record):
    """A sender's last `netlink.TcpInfo`."""

    busy_us: int
    rwnd_limited_us: int
    sndbuf_limited_us: int
    data_segs_out: int
    mss_bytes: int


class StreamTotals(Record):
    """Counters of a stream's two hosts at the end.

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
    """A connection of a loaded law, as its daemon reports it; `signal` is the law's own."""

    local: str
    remote: str
    law: str
    mode: str
    fallback_reason: str | None
    signal: float


class ModuleState(Record):
    """The counters of a link's cohabitation module; further keys are its controller's."""

    marked: int
    dropped: int


class RouterState(Record):
    """A law's state on a device, as its daemon reports it; further keys are the law's."""

    device: str
    law: str
    cohabit: ModuleState | None = None


class DaemonStatus(Record):
    """A daemon's answer to `status`."""

    flows: list[ConnectionState]
    links: list[RouterState]


class LinkChanged(Record):
    """A router daemon's answer to a change of its link: when it was done (monotonic), the error."""

    at_s: float
    error: str | None = None


class LawSample(Record):
    """The daemons' answers at a time: by stream, and by link direction and law."""

    time_s: float
    flows: dict[str, ConnectionState]
    links: dict[str, dict[str, RouterState]]


class Samples(Record):
    """The samples of a run."""

    coarse: CoarseSamples
    fine: FineSamples
    fine_s: float
    laws: list[LawSample] | None = None
    totals: list[StreamTotals]


class Ticks(Record):
    """CPU time by kind."""

    user: int
    nice: int
    system: int
    idle: int
    iowait: int
    irq: int
    softirq: int
    steal: int


class HostLoad(Record):
    """The host's counters: CPU time of all CPUs, and of those of the run's hosts and routers."""

    time_s: float
    cpu_ticks: Ticks
    hosts_ticks: Ticks
    softnet_dropped: int
    softnet_squeezed: int
    realtime_less_monotonic_s: float


class Lateness(Record):
    """Lateness of frames."""

    abs_p99: float


class LineEntry(Record):
    """The counters of one line of the delay line."""

    name: str
    late_ns: Lateness | None
    ring_drops: int
    overflow: int
    lost: int


class LineStats(Record):
    """The counters of the delay line."""

    lines: dict[str, LineEntry]
    cpu_s: float
    punctuality: Any


class ChangeMade(Record):
    """A change of a link: when it was due, how late it was made, and the daemon's error if any."""

    at_s: float
    late_s: float
    error: str | None = None


class Answer(Record):
    """The whole answer."""

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
