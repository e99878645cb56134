"""The resolved network for the engines, in SI units and with routes as link-direction indexes.

Every class here is a struct or a variant of the crate `waterfill-network`, with the same fields;
the core refuses a field that either side lacks. `network.resolve` builds them from a scenario.
Queues other than drop-tail, faults and distributions are in `elements`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from waterfill.contract.elements import (
        ApplicationSpec,
        Constant,
        DistributionSpec,
        Exponential,
        FaultSpec,
        HostFaultSpec,
        LossSpec,
        Pareto,
        QueueSpec,
        ReorderSpec,
        ShaperSpec,
    )

ParamValue: TypeAlias = float | str | bool
"""A parameter's value in SI units (bit/s, s, bytes, plain number), a word or a flag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkChange:
    """Changes of a link direction at a given time. None leaves a value unchanged; a zero rate holds
    the queue.

    `restart` starts the laws of its router anew; `clock_step_s` moves the clock that they see.
    """

    at_s: float
    rate_bps: float | None = None
    delay_s: float | None = None
    up: bool | None = None
    restart: bool = False
    clock_step_s: float | None = None


@dataclass(frozen=True, slots=True)
class BufferSpec:
    """Maximum backlog of a link, excluding the packet in service."""

    unit: Literal["bytes", "packets"]
    size: int

    def as_bytes(self, packet_bytes: int) -> int:
        """Return the buffer size in bytes, for packets of `packet_bytes`."""
        return self.size if self.unit == "bytes" else self.size * packet_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSpec:
    """One link direction. `routers` has the protocols whose router laws run on the link, or is None
    for all.

    `rate_bps` is the capacity that router laws see, with a shaper or a policer the bucket's rate.
    Rate and delay are those at the start; `changes` are in order of time.
    """

    name: str
    rate_bps: float
    shaper: ShaperSpec | None
    delay_s: float
    buffer: BufferSpec
    queue: QueueSpec
    loss: float
    loss_model: LossSpec | None
    reorder: ReorderSpec | None
    duplicate: float
    target: float | None
    routers: tuple[str, ...] | None
    changes: tuple[LinkChange, ...] = ()
    faults: tuple[FaultSpec, ...] = ()
    policer: ShaperSpec | None = None
    pull: bool = False
    """True if the hosts at its start keep the packets of flows until the transmitter is free."""


class DemandSpec(NamedTuple):
    """Rate (bit/s) at which an application writes data from a time (s) on."""

    at_s: float
    rate_bps: float


class RouteChangeSpec(NamedTuple):
    """Route of a group's flows from a time (s) on. Packets in flight finish on the old route."""

    at_s: float
    forward: tuple[int, ...]
    reverse: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AckFrequencySpec:
    """Contents of QUIC's ACK_FREQUENCY frame."""

    threshold: int
    max_delay_s: float
    reordering: int


class FlowSpec(NamedTuple):  # built in a fifth of a dataclass's time; there may be 10⁵ of them
    """A group of `count` flows that differ only in their start times and access delays.

    The fields have the order of the core's struct. `start_jitter_s` and `pad_jitter_s` have one
    time per flow, or none at all.
    """

    name: str
    count: int  # type: ignore[assignment]  # hides the method of tuples
    protocol: str
    forward: tuple[int, ...]
    reverse: tuple[int, ...]
    start_s: float
    stagger_s: float
    start_jitter_s: tuple[float, ...]
    stop_s: float
    size_bytes: int | None
    pad_s: float
    pad_jitter_s: tuple[float, ...]
    access_bps: float | None
    base_rtt_s: float
    weight: float
    demand_bps: float | None
    initial_window_packets: int
    pacing: bool | None
    delayed_ack: bool
    ecn: bool | None
    claimed_rtt_s: float | None
    base_rtt_window_s: float | None
    faults: tuple[HostFaultSpec, ...] = ()
    recovery: str | None = None
    window_validation: str | None = None
    pacing_quantum_packets: int = 1
    pacing_quantum_s: float | None = None
    ecn_feedback: str | None = None
    ecn_codepoint: str | None = None
    after: tuple[int, ...] = ()
    """Indexes of the groups that have completed before this one starts."""
    after_count: int | None = None
    """Number of groups of `after` that must have completed; None for all."""
    continues: int | None = None
    """Group of `after` whose connections this one goes on to use; None for new connections."""
    demands: tuple[DemandSpec, ...] = ()
    """Demands over time, instead of `demand_bps`; the first is that of time 0."""
    application: ApplicationSpec | None = None
    """Application that writes the data; `demand_bps` is then its mean rate, for shares only."""
    routes: tuple[RouteChangeSpec, ...] = ()
    """Later routes, in order of time."""
    ack_frequency: AckFrequencySpec | None = None
    """Acknowledgements that a QUIC sender asks for."""
    handshake: bool = True
    """False if the first window leaves at the start, without waiting for the answer to a SYN."""
    switched: bool = False
    """True if switches choose each packet's links; `forward` and `reverse` are then one route."""

    @property
    def ways(self) -> list[RouteChangeSpec]:
        """All routes that the flows ever take, each with its first time, in order of time."""
        return [RouteChangeSpec(0.0, self.forward, self.reverse), *self.routes]

    @property
    def packets_per_ack(self) -> int:
        """Number of packets for which there is one acknowledgement, without losses and marks."""
        if self.ack_frequency is not None:
            return self.ack_frequency.threshold + 1
        return 2 if self.delayed_ack else 1

    @property
    def limit_bps(self) -> float:
        """Maximum sending rate of one flow (bit/s): the smaller of its largest demand and its
        access rate, or inf without both.
        """
        demand_bps = max(d.rate_bps for d in self.demands) if self.demands else self.demand_bps
        return min((r for r in (demand_bps, self.access_bps) if r is not None), default=inf)

    @property
    def limits(self) -> tuple[DemandSpec, ...]:
        """Maximum sending rate of one flow over time, or nothing if it is constant."""
        access_bps = inf if self.access_bps is None else self.access_bps
        return tuple(DemandSpec(d.at_s, min(d.rate_bps, access_bps)) for d in self.demands)

    def written_at_s(self, opened_s: float, volume_bits: float) -> float:
        """Return the time (s) at which an application with `demands` that starts at `opened_s`
        begins to write what follows a volume, or inf if it writes no more.
        """
        left_bits = volume_bits
        ends = [*(demand.at_s for demand in self.demands[1:]), inf]
        for (at_s, rate_bps), end_s in zip(self.demands, ends, strict=True):
            from_s = max(at_s, opened_s)
            if end_s <= from_s or rate_bps == 0:
                continue
            if left_bits < rate_bps * (end_s - from_s):
                return from_s + left_bits / rate_bps
            left_bits -= rate_bps * (end_s - from_s)
        return inf

    def start_of_s(self, index: int) -> float:
        """Return the time (s) at which a flow of the group sends its SYN."""
        start_s = self.start_s + index * self.stagger_s
        return start_s + self.start_jitter_s[index] if self.start_jitter_s else start_s

    def pad_of_s(self, index: int) -> float:
        """Return a flow's one-way access delay (s)."""
        return self.pad_s + self.pad_jitter_s[index] if self.pad_jitter_s else self.pad_s

    def base_rtt_of_s(self, index: int) -> float:
        """Return a flow's base RTT (s)."""
        own_s = 2 * self.pad_jitter_s[index] if self.pad_jitter_s else 0.0
        return self.base_rtt_s + own_s

    @property
    def differ(self) -> bool:
        """True if the flows of the group have their own start times or delays."""
        return self.stagger_s > 0 or bool(self.start_jitter_s) or bool(self.pad_jitter_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodSpec:
    """Distributions of an on–off source's alternating on and off periods."""

    on_s: Constant | Exponential | Pareto
    off_s: Constant | Exponential | Pareto


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteSpec:
    """A route of a traffic source's flows, with its added access delay and base RTT."""

    forward: tuple[int, ...]
    reverse: tuple[int, ...]
    pad_s: float
    base_rtt_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalSpec:
    """Flows that arrive as a Poisson process or at given times. Count, size and times of `flow` are
    ignored.

    An arrival draws one group of `routes`, and a different route in it for each of `fan_in` flows.
    Without routes all flows take that of `flow`.
    """

    arrivals_per_s: float
    sizes_bytes: DistributionSpec
    flow: FlowSpec
    routes: tuple[tuple[RouteSpec, ...], ...] = ()
    fan_in: int = 1
    at_s: tuple[float, ...] = ()
    """Times of the arrivals, instead of a Poisson process."""
    pairs: tuple[tuple[tuple[int, int], ...], ...] = ()
    """Groups of pairs of nodes between which switches choose the routes. `routes` then has one
    group, of routes that together cross each link which the flows may cross."""

    @property
    def ways(self) -> list[RouteSpec]:
        """Return all routes that the flows may take, in the core's order; with `pairs`, some."""
        if self.routes:
            return [route for group in self.routes for route in group]
        flow = self.flow
        return [RouteSpec(forward=flow.forward, reverse=flow.reverse, pad_s=flow.pad_s,
                          base_rtt_s=flow.base_rtt_s)]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficSpec:
    """A source of uncontrolled packets or of finite flows."""

    name: str
    kind: Literal["cbr", "poisson", "onoff", "web"]
    path: tuple[int, ...]
    rate_bps: float | None
    access_bps: float | None
    start_s: float
    stop_s: float
    packet_bytes: int
    periods: PeriodSpec | None
    flows: ArrivalSpec | None
    switched: bool = False
    """True if switches choose the links of a source's packets; `path` is then one route."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchingSpec:
    """Switches that choose each packet's next link. `nodes` has the numbers of the nodes at which
    each link direction begins and ends.
    """

    choice: Literal["hash", "flowlet", "spray"]
    gap_s: float | None
    nodes: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesSpec:
    """Links with time series, by index, and their samples per sample of flows."""

    links: tuple[int, ...]
    per_sample: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSpec:
    """Input of a switch that pauses its inputs: a link direction that ends there, and the one that
    carries the pause frames. The headroom takes what arrives after the decision to pause.
    """

    link: int
    back: int
    headroom_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PfcSpec:
    """Pauses of a switch's inputs: at `xoff_bytes` of an input, or at the dynamic threshold."""

    xoff_bytes: int | None
    inputs: tuple[InputSpec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchSpec:
    """A switch: `outputs` are the link directions that leave it and share its buffer. A packet
    joins a queue that is shorter than `alpha` times the free part of the buffer. With `pfc`, this
    is the threshold of an input instead.
    """

    name: str
    buffer_bytes: int
    alpha: float
    outputs: tuple[int, ...]
    pfc: PfcSpec | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The resolved network of a scenario.

    A duplex link is two entries of `links`, the reverse after the forward.
    """

    name: str
    seed: int
    duration_s: float
    measure_s: tuple[float, float]
    sample_s: float
    packet_bytes: int
    ack_bytes: int
    rto_min_s: float
    syn_rto_s: float
    rttvar_min_s: float
    params: Mapping[str, Mapping[str, ParamValue]]
    links: tuple[LinkSpec, ...]
    flows: tuple[FlowSpec, ...]
    traffic: tuple[TrafficSpec, ...]
    switching: SwitchingSpec | None = None
    series: SeriesSpec | None = None
    switches: tuple[SwitchSpec, ...] = ()

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Network:
        """Read a network from the output of `to_dict`; raise ValueError if the document does not
        fit these classes.
        """
        return _adapter().validate_python(document)

    def to_dict(self) -> dict[str, Any]:
        """Return the network as plain dictionaries and lists, for JSON."""
        document: dict[str, Any] = plain(self)
        return document

    @property
    def sampled_links(self) -> Sequence[int]:
        """Indexes of the links with time series."""
        return range(len(self.links)) if self.series is None else self.series.links

    @property
    def sample_of_links_s(self) -> float:
        """Sampling interval of links (s)."""
        return self.sample_s / (1 if self.series is None else self.series.per_sample)

    @property
    def has_transfers(self) -> bool:
        """True if any flow has a finite size, including the flows that traffic sources start."""
        return bool(self.arriving) or any(flow.size_bytes is not None for flow in self.flows)

    @property
    def has_switched(self) -> bool:
        """True if switches choose the links of any flow's packets."""
        return any(flow.switched for flow in self.flows)

    @property
    def has_messages(self) -> bool:
        """True if any flow has an application."""
        return any(flow.application is not None for flow in self.flows)

    @property
    def arriving(self) -> list[FlowSpec]:
        """Common properties of the flows of each traffic source that starts flows, in order."""
        return [source.flows.flow for source in self.traffic if source.flows is not None]

    @property
    def protocols(self) -> list[str]:
        """Names of the protocols that flows and sources of flows run, each once."""
        return list(dict.fromkeys(flow.protocol for flow in [*self.flows, *self.arriving]))


def plain(value: Any) -> Any:
    """Convert instances of this module's classes to dictionaries, tuples and plain values."""
    if isinstance(value, (FlowSpec, DemandSpec, RouteChangeSpec)):
        return {name: plain(item) for name, item in value._asdict().items()}
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return tuple(map(plain, value)) if isinstance(value, tuple) else value


@cache
def _adapter() -> TypeAdapter[Network]:
    from pydantic import TypeAdapter

    from waterfill.contract import elements

    adapter = TypeAdapter(Network)
    # Annotations here name classes of `elements`.
    adapter.rebuild(_types_namespace=vars(elements))
    return adapter
