"""The models of a scenario: every key with its unit, its default and its own check.

docs/scenario.toml is the commented reference; docs/scenario.schema.json is generated from these
models. Fields are in SI units (bit/s, seconds, bytes). `validation` checks keys against each other;
`waterfill.network.resolve` checks routes and what depends on the protocols.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, get_args

import tomli_w
from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    PrivateAttr,
    ValidationInfo,
    WithJsonSchema,
)

from waterfill.errors import InputError, shown
from waterfill.scenario import distributions, links, traces
from waterfill.scenario.collective import Collective, flow_name, messages
from waterfill.scenario.distributions import Distribution
from waterfill.scenario.fabric import Fabric
from waterfill.scenario.sampling import SeriesKeys, SizeOrTable
from waterfill.scenario.switch import Switch
from waterfill.scenario.table import Name, Table
from waterfill.scenario.units import (
    FREQUENCY,
    PACKETS,
    RATE,
    SPAN,
    STEP,
    TIME,
    VOLUME,
    WINDOW,
    Buffer,
    Quantity,
    number,
    packets,
    whole,
)

MAX_FLOWS = 10**7
MAX_SAMPLES = 10**7
COMMAND_LINE = "command line"
NO_DEFAULT_FLOW = "every flow names its own protocol; remove `protocol` from those to change"

FOLLOWS_PROFILE = ("sample", "rto_min", "syn_rto")
"""Keys of a run whose default depends on `profile`."""
# Linux's tcp_rtt_estimator: the variance term is at least TCP_RTO_MIN.
LINUX_RTTVAR_MIN_S = 0.2


@dataclass(frozen=True)
class PacingTime:
    """A pacing quantum given as a time at the pacing rate (s)."""

    time_s: float


def _quantum(value: object) -> int | PacingTime:
    if isinstance(value, PacingTime):
        return value
    if isinstance(value, str) and SPAN.matches(value):
        return PacingTime(SPAN.parse(value))
    if isinstance(value, str) and not PACKETS.matches(value):
        raise ValueError(
            f'must be a number of packets such as "10 packets" or a time such as "1 ms", got '
            f"{shown(value)}"
        )
    return packets(value)


def _quantum_text(value: int | PacingTime) -> int | str:
    return value if isinstance(value, int) else SPAN.format(value.time_s)


_QUANTUM_SCHEMA = WithJsonSchema({
    "anyOf": [
        {"type": "integer", "minimum": 1},
        {"type": "string", "pattern": PACKETS.ecma_pattern, "examples": ["10 packets"]},
        {"type": "string", "pattern": SPAN.ecma_pattern, "examples": ["1 ms"]},
    ]
})  # fmt: skip
_PacingQuantum = Annotated[
    int | PacingTime, PlainValidator(_quantum), PlainSerializer(_quantum_text), _QUANTUM_SCHEMA
]


def _arrivals(value: object) -> float:
    most = 1e9
    if isinstance(value, str):
        return replace(FREQUENCY, at_most=most).parse(value)
    return number(value, above=0, maximum=most)


Recovery = Literal["reno", "newreno", "rfc3517", "rfc6675", "rack", "quic"]
RECOVERIES: tuple[str, ...] = get_args(Recovery)
"""Methods of loss recovery."""
# A load written as a number above this is a percentage without its sign.
_MAX_BARE_LOAD = 10


def _load(value: object) -> float:
    percent = value.strip() if isinstance(value, str) else ""
    if percent.endswith("%"):
        try:
            value = float(percent[:-1]) / 100
        except ValueError:
            raise ValueError(f'must be a load such as "60 %", got {shown(value)}') from None
    if isinstance(value, str):
        raise ValueError(f'must be a load such as "60 %", got {shown(value)}')
    share = number(value, above=0, maximum=100)
    if not percent and share > _MAX_BARE_LOAD:
        message = f"{shown(value)} is a load of {100 * share:g} %"
        raise ValueError(f'{message}; did you mean "{share:g} %"?')
    return share


def _written_load(share: float) -> float | str:
    return share if share <= _MAX_BARE_LOAD else f"{100 * share!r} %"


def _sizes(value: object, info: ValidationInfo) -> Distribution:
    return distributions.parse(value, _SIZE, (info.context or {}).get("folder"))


def _spans(value: object, info: ValidationInfo) -> Distribution:
    return distributions.parse(value, _PERIOD, (info.context or {}).get("folder"))


def _trace(value: object, info: ValidationInfo) -> traces.Trace:
    return traces.parse(value, (info.context or {}).get("folder"))


def _delay_trace(value: object, info: ValidationInfo) -> traces.DelayTrace:
    return traces.parse_delays(value, (info.context or {}).get("folder"))


def _queue_params(value: Any, info: ValidationInfo) -> Any:
    if "queue" in info.data:  # else it is wrong itself, and says so
        links.read_queue(info.data["queue"], value)
    return value


def _as_written(read: Callable[[object], object]) -> BeforeValidator:
    """Return a validator that checks a table by parsing it and keeps it as written."""

    def check(value: Any) -> Any:
        read(value)
        return value

    return BeforeValidator(check)


_Trace = Annotated[
    traces.Trace,
    PlainValidator(_trace),
    PlainSerializer(traces.Trace.written),
    WithJsonSchema(traces.json_schema()),
]
_DelayTrace = Annotated[
    traces.DelayTrace,
    PlainValidator(_delay_trace),
    PlainSerializer(traces.DelayTrace.written),
    WithJsonSchema(traces.json_schema(delays=True)),
]
_ARRIVALS_SCHEMA = WithJsonSchema(
    {
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0},
            {
                "type": "string",
                "pattern": FREQUENCY.ecma_pattern,
                "examples": [FREQUENCY.example],
            },
        ]
    }
)
_LOAD_SCHEMA = WithJsonSchema(
    {
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0},
            {"type": "string", "pattern": r"^\s*[0-9.]+\s*%\s*$", "examples": ["60 %"]},
        ]
    }
)
Probability = Annotated[
    float, Field(ge=0, le=1), BeforeValidator(lambda v: number(v, minimum=0, maximum=1))
]
_SIZE = replace(VOLUME, example="30 kB", zero=False)
_PERIOD = replace(SPAN, example="500 ms")
_Sizes = Annotated[
    Distribution,
    PlainValidator(_sizes),
    PlainSerializer(lambda d: d.written(_SIZE)),
    WithJsonSchema(distributions.json_schema(_SIZE)),
]
_Spans = Annotated[
    Distribution,
    PlainValidator(_spans),
    PlainSerializer(lambda d: d.written(_PERIOD)),
    WithJsonSchema(distributions.json_schema(_PERIOD)),
]
# Larger than the series of every scenario of the examples, papers and benchmarks.
_SERIES_BYTES = 1e9
_PACKET_BYTES = replace(VOLUME, name="a size", example="1500 B", zero=False, whole=True)


class _EventRate(Quantity):
    """A rate above zero. The error for a zero rate suggests `up = false`."""

    def parse(self, value: object) -> float:
        if value is not None and self.or_zero()._number(value) == 0:
            raise ValueError(f"must be above zero, got {shown(value)}; write up = false to fail it")
        return super().parse(value)


_EVENT_RATE = _EventRate(RATE.name, RATE.example, RATE.units)


REVERSIBLE = ("rate", "delay", "buffer")
"""Keys of a link whose value in the reverse direction has a key of its own: `rate_reverse` …"""


class LinkEvent(Table):
    """One [[link.event]]: changes of a link at a given time, in both directions."""

    at: Annotated[float, replace(SPAN, example="10 s")]
    """Time of the event (s), within the run and after the previous event."""
    rate: Annotated[float, _EVENT_RATE] | None = None
    """Rate after the event (bit/s), also for the rest of a packet in transmission."""
    rate_reverse: Annotated[float, _EVENT_RATE] | None = None
    """Rate of the reverse direction after the event (bit/s); default: `rate`."""
    delay: Annotated[float, TIME] | None = None
    """Propagation delay (s) of packets sent after the event. Packets stay in order."""
    delay_reverse: Annotated[float, TIME] | None = None
    """Propagation delay (s) in the reverse direction after the event; default: `delay`."""
    up: bool | None = None
    """True if the link is up after the event. A link that is down drops its queue and arrivals."""

    @property
    def backward(self) -> LinkEvent:
        """Copy of the event with the rate and delay of the reverse direction."""
        rate = self.rate if self.rate_reverse is None else self.rate_reverse
        delay = self.delay if self.delay_reverse is None else self.delay_reverse
        return self.model_copy(update={"rate": rate, "delay": delay})


class LinkFault(Table):
    """One [[link.fault]]: a fault of a link's router or wire."""

    at: Annotated[float, replace(TIME, example="10 s")] = 0.0
    """Start of the fault (s)."""
    until: Annotated[float, replace(SPAN, example="20 s")] | None = None
    """End of the fault (s); default: the end of the run."""
    kind: Literal["restart", "clock", "strip", "corrupt", "lie", "hold"]
    """Kind of fault. restart: the router's laws restart. clock: the laws' clock jumps. strip:
    packets lose their protocol header. corrupt: one bit of the header is inverted. lie: the
    header's signal is replaced. hold: the former name of the link's `ack_aggregation`, for all
    packets of a direction.
    """
    direction: Literal["forward", "reverse", "both"] = "forward"
    """Direction of the link that the fault affects."""
    share: Probability | None = None
    """Fraction of affected packets (kind = strip, corrupt or lie); default: all."""
    value: Literal["zero", "max", "random"] | None = None
    """Replacement signal (kind = lie): one that grants nothing, the field's maximum, or random."""
    every: Annotated[float, replace(SPAN, example="20 ms")] | None = None
    """Time between two releases of held packets (s) (kind = hold)."""
    step: Annotated[float, STEP] | None = None
    """Size of the clock jump (s) (kind = clock); may be negative."""


class FlowFault(Table):
    """One [[flow.fault]]: a fault of a flow's hosts."""

    at: Annotated[float, replace(TIME, example="10 s")] = 0.0
    """Start of the fault (s)."""
    until: Annotated[float, replace(SPAN, example="20 s")] | None = None
    """End of the fault (s); default: the end of the run."""
    kind: Literal["lie", "ignore", "clock"]
    """Kind of fault. lie: the receiver reports no congestion. ignore: the source keeps its rate and
    window. clock: the source's clock jumps."""
    step: Annotated[float, STEP] | None = None
    """Size of the clock jump (s) (kind = clock); may be negative."""


class FlowRoute(Table):
    """One [[flow.route]]: the route of a flow from a given time on."""

    at: Annotated[float, replace(SPAN, example="15 s")]
    """Time of the change (s). Packets in flight finish on the old route."""
    path: Annotated[list[str], Field(min_length=1)]
    """Links of the new path, each in either direction, or NAME:rev."""
    return_path: list[str] | None = None
    """Links of the acknowledgements; default: the reverse path if any, or the shortest route."""


class Application(Table):
    """The application of a flow, which writes its data in messages."""

    kind: Literal["onoff", "request-response", "video", "ticks"]
    """Kind of application. onoff: data at a rate in periods. request-response: one response after
    another on request. video: segments into the client's buffer. ticks: a message at each
    interval."""
    rate: Annotated[float, RATE] | None = None
    """Rate of packets in the on periods (bit/s) (kind = onoff)."""
    on: _Spans | None = None
    """Lengths of the on periods (s) (kind = onoff)."""
    off: _Spans | None = None
    """Lengths of the off periods (s) (kind = onoff)."""
    sizes: _Sizes | None = None
    """Payload of the messages (bytes) (kind = request-response or ticks)."""
    think: _Spans | None = None
    """Pauses of the client between a response and its next request (s) (kind = request-response);
    default: none."""
    bit_rate: Annotated[float, RATE] | None = None
    """Payload of a second of video (bit/s) (kind = video)."""
    segment: Annotated[float, replace(SPAN, example="4 s")] | None = None
    """Duration of a segment of the video (s) (kind = video)."""
    buffer: Annotated[float, replace(SPAN, example="30 s")] | None = None
    """Size of the client's buffer in time of video (s) (kind = video)."""
    startup: (
        Annotated[int, Field(ge=1), BeforeValidator(lambda v: whole(v, minimum=1, maximum=10**6))]
        | None
    ) = None
    """Number of segments in the buffer when playback begins (kind = video); default: 1."""
    interval: Annotated[float, replace(SPAN, example="15 ms")] | None = None
    """Time between two messages (s) (kind = ticks)."""


class AckFrequency(Table):
    """Acknowledgements that a QUIC sender asks its receiver for (draft-ietf-quic-ack-frequency)."""

    threshold: Annotated[
        int, Field(ge=0, le=10**6), BeforeValidator(lambda v: whole(v, maximum=10**6))
    ] = 1
    """Packets that may stay without an acknowledgement: 9 asks for one per ten packets."""
    max_delay: Annotated[float, replace(SPAN, example="25 ms", at_most=16.383)] = 0.025
    """Maximum delay of an acknowledgement (s)."""
    reordering: Annotated[
        int, Field(ge=0, le=10**6), BeforeValidator(lambda v: whole(v, maximum=10**6))
    ] = 1
    """Reordering (packets) at which the receiver acknowledges at once; 0 for never."""


class Link(Table):
    """One [[link]]: a queue and a delay between two nodes."""

    name: Name
    """Name of the link, used in paths and results."""
    from_: str = Field(alias="from", min_length=1)
    """Node at which the link starts."""
    to: str = Field(min_length=1)
    """Node at which the link ends."""
    rate: Annotated[float, RATE]
    """Rate of the transmitter (bit/s). The capacity, unless there is a shaper or policer."""
    rate_reverse: Annotated[float, RATE] | None = None
    """Rate of the reverse direction's transmitter (bit/s); default: `rate`."""
    delay: Annotated[float, TIME] = 0.0
    """One-way propagation delay (s)."""
    delay_reverse: Annotated[float, TIME] | None = None
    """One-way propagation delay (s) of the reverse direction; default: `delay`."""
    buffer: Buffer = Buffer(1.0, "bdp")
    """Buffer size, excluding the packet in service; 1 bdp = rate × largest base RTT."""
    buffer_reverse: Buffer | None = None
    """Buffer size of the reverse direction; default: `buffer`, where 1 bdp uses its own rate."""
    duplex: bool = True
    """True if the link has a reverse direction, reported as NAME:rev. It is identical except for
    loss, faults and the keys that end in `_reverse`.
    """
    loss: Probability = 0.0
    """Probability of independent random loss in the forward direction."""
    loss_reverse: Probability = 0.0
    """Probability of independent random loss in the reverse direction."""
    target: (
        Annotated[
            float, Field(gt=0, le=1), BeforeValidator(lambda v: number(v, above=0, maximum=1))
        ]
        | None
    ) = None
    """Target utilization; default: the smallest target of the protocols on the link."""
    routers: list[str] | None = None
    """Protocols with a router law on the link, in both directions; default: all that use it."""
    queue: links.QueueName = "droptail"
    """Queue discipline of the link."""
    queue_params: (
        Annotated[
            dict[str, Any], BeforeValidator(_queue_params), WithJsonSchema(links.queue_schema())
        ]
        | None
    ) = None
    """Parameters of the queue discipline."""
    mark_at: (
        Annotated[Buffer, BeforeValidator(links.level), WithJsonSchema(dict(links.LEVEL_SCHEMA))]
        | None
    ) = None
    """Queue length above which a drop-tail queue marks ECN-capable packets."""
    mark_to: (
        Annotated[Buffer, BeforeValidator(links.level), WithJsonSchema(dict(links.LEVEL_SCHEMA))]
        | None
    ) = None
    """Queue length above which each ECN-capable packet is marked. From `mark_at` to there the
    probability grows from 0 to `mark_max`; default: `mark_at`."""
    mark_max: Probability | None = None
    """Probability of a mark at `mark_to`; default: 1."""
    loss_model: (
        Annotated[dict[str, Any], _as_written(links.read_loss), WithJsonSchema(links.loss_schema())]
        | None
    ) = None
    """Loss model of the forward direction, used instead of `loss`."""
    reorder: (
        Annotated[Any, _as_written(links.read_late), WithJsonSchema(links.late_schema())] | None
    ) = None
    """Fraction of packets that arrive late in the forward direction; default: none."""
    duplicate: Probability = 0.0
    """Fraction of packets that arrive twice in the forward direction."""
    shaper: (
        Annotated[
            dict[str, Any], _as_written(links.read_shaper), WithJsonSchema(links.shaper_schema())
        ]
        | None
    ) = None
    """Token bucket in front of the transmitter, in both directions; default: none."""
    policer: (
        Annotated[
            dict[str, Any], _as_written(links.read_shaper), WithJsonSchema(links.shaper_schema())
        ]
        | None
    ) = None
    """Token bucket that drops packets without tokens, in both directions; default: none."""
    ack_aggregation: (
        Annotated[
            Any,
            _as_written(links.read_aggregation),
            WithJsonSchema(links.aggregation_schema()),
        ]
        | None
    ) = None
    """Time between two releases of held acknowledgements, in both directions; default: none are
    held."""
    ack_thinning: (
        Annotated[
            int,
            Field(ge=2, lt=2**31),
            BeforeValidator(lambda v: whole(v, minimum=2, maximum=2**31 - 1)),
        ]
        | None
    ) = None
    """Number of successive acknowledgements of a flow, released together, of which only the last
    passes; default: all pass."""
    event: list[LinkEvent] | None = None
    """Changes of rate, delay and state at given times, in both directions; default: none."""
    fault: list[LinkFault] | None = None
    """Faults of the link's router or wire; default: none."""
    rate_trace: _Trace | None = None
    """Rate over time in the forward direction, as a file or as points; default: constant."""
    rate_trace_reverse: _Trace | None = None
    """Rate over time in the reverse direction; default: constant."""
    delay_trace: _DelayTrace | None = None
    """Propagation delay over time, in both directions, instead of `delay`; default: constant."""
    delay_trace_reverse: _DelayTrace | None = None
    """Propagation delay over time in the reverse direction; default: `delay_trace`."""

    @property
    def capacity(self) -> float:
        """Average rate (bit/s) at which the link passes data."""
        bucket = self.shaper or self.policer
        return self.rate if bucket is None else links.read_shaper(bucket)["rate"]

    @property
    def backward(self) -> Link:
        """Copy of the link with the rate, delay, buffer and events of its reverse direction."""
        own = {name: getattr(self, f"{name}_reverse") for name in REVERSIBLE}
        changes = {name: value for name, value in own.items() if value is not None}
        if self.delay_trace_reverse is not None:
            changes["delay_trace"] = self.delay_trace_reverse
        if self.event is not None:
            changes["event"] = [event.backward for event in self.event]
        return self.model_copy(update=changes) if changes else self

    @property
    def first_delay(self) -> float:
        """Propagation delay (s) at the start."""
        return self.delay if self.delay_trace is None else self.delay_trace.points[0][1]

    @property
    def min_delay(self) -> float:
        """The smallest propagation delay (s) that the link has at any time."""
        if self.delay_trace is not None:
            return min(delay for _, delay in self.delay_trace.points)
        if self.event is None:
            return self.delay
        later = (event.delay for event in self.event if event.delay is not None)
        return min((self.delay, *later))


class _Routed(Table):
    from_: str | None = Field(alias="from", default=None, min_length=1)
    """Sending host; optional when path is given."""
    to: str | None = Field(default=None, min_length=1)
    """Receiving host; optional when path is given."""
    path: list[str] | None = None
    """Links of the path, each in either direction, or NAME:rev; default: the shortest route."""
    start: Annotated[float, TIME] = 0.0
    """Start time of the flow or traffic (s)."""
    stop: Annotated[float, TIME] | None = None
    """Stop time of the flow or traffic (s); default: the end of the run."""
    return_path: list[str] | None = None
    """Links of the acknowledgements; default: the reverse path if any, or the shortest route."""
    protocol: str | None = None
    """Protocol of the flows; default: the scenario's."""
    rtt: Annotated[float, replace(SPAN, example="80 ms")] | None = None
    """Base RTT of the flows (s), reached by extra delay at the source's access link."""
    pacing: bool | None = None
    """True to pace the flows; default: as the protocol requires."""
    pacing_quantum: _PacingQuantum | None = None
    """Packets that leave at once when pacing allows one, as a number or as a time at the pacing
    rate, which gives at least two packets and at most 64 KiB; default: 1.
    """
    ecn: bool | None = None
    """True if the flows' packets are ECN-capable, so that routers mark instead of dropping them."""
    ecn_feedback: Literal["classic", "dctcp", "accecn", "accecn-ace"] | None = None
    """How the receiver reports marks: per RTT (RFC 3168), per packet (RFC 8257) or counted
    (RFC 9768), with the AccECN option or without it (accecn-ace); default: as the protocol
    requires."""
    ecn_codepoint: Literal["ect0", "ect1"] | None = None
    """ECN field of packets that routers may mark; default: as the protocol requires."""
    recovery: Recovery | None = None
    """Method of loss recovery; default: the protocol's."""
    handshake: bool | None = None
    """False if the first window leaves at the start, at the rate of the host's own link; default:
    the scenario's."""
    ack_frequency: AckFrequency | None = None
    """Acknowledgements that the sender asks for, with recovery = "quic"; default: RFC 9000's."""
    window_validation: Literal["off", "rfc5681", "rfc2861", "rfc7661"] | None = None
    """Rule for a congestion window that the application does not use; default: the protocol's."""
    access_rate: Annotated[float, RATE] | None = None
    """Rate of each source host's own link to its first router (bit/s); default: no limit."""


class Flow(_Routed):
    """One [[flow]]: one congestion-controlled flow, or `count` equal ones."""

    name: Name
    """Name of the flow, or of the group when count is above 1."""
    count: Annotated[
        int,
        Field(ge=1, le=MAX_FLOWS),
        BeforeValidator(lambda v: whole(v, minimum=1, maximum=MAX_FLOWS)),
    ] = 1
    """Number of flows in the group."""
    stagger: Annotated[float, TIME] = 0.0
    """Interval (s) between starts: flow i starts at start + i × stagger."""
    after: Annotated[list[str], Field(min_length=1)] | None = None
    """Names of flows with a size. This flow starts `start` after all of them have completed."""
    after_count: (
        Annotated[
            int, Field(ge=1), BeforeValidator(lambda v: whole(v, minimum=1, maximum=MAX_FLOWS))
        ]
        | None
    ) = None
    """Number of entries of `after` that must have completed; default: all."""
    continues: str | None = None
    """Flow of `after` whose connection this flow goes on to use, with its law's state and RTTs and
    without a handshake; default: a new connection."""
    start_jitter: Annotated[float, TIME] = 0.0
    """Upper bound of the random delay (s) that the seed determines for each flow's start."""
    rtt_jitter: Annotated[float, TIME] = 0.0
    """Upper bound of the random addition (s) that the seed determines for each flow's base RTT."""
    size: Annotated[float, replace(VOLUME, zero=False, whole=True)] | None = None
    """Payload to send (bytes); default: unlimited."""
    weight: Annotated[float, Field(gt=0), BeforeValidator(lambda v: number(v, above=0))] = 1.0
    """Weight of the flow's bandwidth share relative to other flows."""
    demand: Annotated[float, RATE] | None = None
    """Maximum rate at which the application sends (bit/s); default: unlimited."""
    demand_trace: _Trace | None = None
    """Demand over time, as a file or as points, instead of `demand`; zero pauses the application.
    Times count from the start of the run."""
    application: Application | None = None
    """Application that writes the data, such as a video; default: one that always has some."""
    claimed_rtt: Annotated[float, replace(SPAN, example="10 s")] | None = None
    """RTT (s) in the packets' header instead of the measured RTT, for protocols whose header has
    one (xcp, pxcp, ixcp, rcp)."""
    base_rtt_window: Annotated[float, WINDOW] | None = None
    """Time (s) after which the hosts forget an RTT as the smallest, or "unlimited"; default: the
    scenario's."""
    initial_window: Annotated[int, BeforeValidator(packets), PACKETS.described()] | None = None
    """Initial window (packets); one packet after the loss of more than one SYN. Explicit laws may
    choose their own. Default: 10; of hpcc, powertcp, theta_powertcp, dcqcn and swift the rate
    of the host's link × base RTT."""
    delayed_ack: bool | None = None
    """True if the receiver acknowledges every second packet; default: true with recovery "quic",
    otherwise false."""
    route: Annotated[list[FlowRoute], Field(min_length=1)] | None = None
    """Changes of the flow's route at given times, such as handovers; default: none."""
    fault: list[FlowFault] | None = None
    """Faults of the flow's hosts; default: none."""


class Traffic(_Routed):
    """One [[traffic]]: packets without congestion control, or flows that arrive at random."""

    name: Name | None = None
    """Name of the source; default: its kind, with an index if several have the same kind."""
    kind: Literal["cbr", "poisson", "onoff", "web"]
    """Kind of traffic. cbr: a packet every packet_size / rate. onoff: cbr in random periods.
    poisson: packets at a mean rate, or flows at an arrival_rate. web: flows."""
    count: (
        Annotated[
            int,
            Field(ge=1, le=MAX_FLOWS),
            BeforeValidator(lambda v: whole(v, minimum=1, maximum=MAX_FLOWS)),
        ]
        | None
    ) = None
    """Number of equal sources of packets, each with the entry's rate and its own random stream;
    default: 1.
    """
    rate: Annotated[float, RATE] | None = None
    """Offered rate of packets (bit/s). For onoff, this is the rate while the source is on."""
    on: Annotated[float, replace(SPAN, example="500 ms")] | None = None
    """Mean length of the on periods of an onoff source (s)."""
    off: Annotated[float, replace(SPAN, example="500 ms")] | None = None
    """Mean length of the off periods of an onoff source (s)."""
    distribution: Literal["exponential", "pareto", "constant"] | None = None
    """Distribution of on and off periods; default: exponential."""
    shape: Annotated[float, Field(gt=1), BeforeValidator(lambda v: number(v, above=1))] | None = (
        None
    )
    """Tail index of Pareto periods; default: 1.5."""
    pattern: Literal["all-to-all", "permutation", "incast"] | None = None
    """Pattern of `hosts` pairs between which flows run, instead of from and to."""
    hosts: Annotated[list[str], Field(min_length=2)] | None = None
    """Hosts of the pattern; default: the nodes with one link, or all nodes if there are none."""
    fan_in: (
        Annotated[
            int, Field(ge=1), BeforeValidator(lambda v: whole(v, minimum=1, maximum=MAX_FLOWS))
        ]
        | None
    ) = None
    """Number of flows that each incast arrival starts, each from another host; default: one from
    every other host.
    """
    arrival_rate: Annotated[float, BeforeValidator(_arrivals), _ARRIVALS_SCHEMA] | None = None
    """Mean number of arrivals per second: of flows, or of an incast's groups of flows."""
    at: Annotated[list[Annotated[float, TIME]], Field(min_length=1, max_length=10**5)] | None = None
    """Times of the arrivals (s), in their order, instead of arrival_rate: of flows, or of an
    incast's groups of flows."""
    every: Annotated[float, replace(SPAN, example="1 ms")] | None = None
    """Time between two arrivals (s), the first at `start`, instead of arrival_rate."""
    load: (
        Annotated[float, BeforeValidator(_load), PlainSerializer(_written_load), _LOAD_SCHEMA]
        | None
    ) = None
    """Mean payload rate as a fraction of the capacity of the path or of the pattern's hosts,
    instead of arrival_rate.
    """
    sizes: _Sizes | None = None
    """Payload of the flows (bytes); default: Pareto, shape 1.35, mean 30 packets."""
    initial_window: Annotated[int, BeforeValidator(packets), PACKETS.described()] | None = None
    """Initial window of the flows (packets); default: as for flows."""
    delayed_ack: bool | None = None
    """True if the flows' receivers acknowledge every second packet; default: as for flows."""
    base_rtt_window: Annotated[float, WINDOW] | None = None
    """Time (s) after which the flows' hosts forget an RTT as the smallest, or "unlimited"; default:
    the scenario's."""

    @property
    def starts_flows(self) -> bool:
        """True if this entry starts flows rather than single packets."""
        return self.kind == "web" or (self.kind == "poisson" and self.rate is None)


class Scenario(Table):
    """A complete, checked scenario. `waterfill.scenario.loading` builds one."""

    name: str = "scenario"
    """Title of the scenario."""
    duration: Annotated[float, replace(SPAN, example="60 s")]
    """Simulated time (s)."""
    protocol: str | None = None
    """Protocol of the flows that do not name one."""
    packet_size: Annotated[float, replace(_PACKET_BYTES, at_most=65535.0)] = 1500.0
    """Size of a full packet (bytes), including 40 B of TCP/IP headers and the protocol's header."""
    ack_size: Annotated[
        float, replace(_PACKET_BYTES, name="a size", example="40 B", at_most=65535.0)
    ] = 40.0
    """Size of an acknowledgement (bytes)."""
    seed: Annotated[int, Field(ge=0, lt=2**63), BeforeValidator(whole)] = 1
    """Seed of every random stream."""
    measure: Annotated[list[Annotated[float, TIME]], Field(min_length=2, max_length=2)] | None = (
        None
    )
    """Time window [from, to] (s) of the summary; default: the last third of the run, or the active
    time of finite flows."""
    profile: Literal["wan", "datacenter"] = "wan"
    """Scale of the constants that the scenario does not set, of laws, hosts and links. datacenter:
    they follow from the largest base RTT and the rates of the links."""
    sample: Annotated[float, replace(SPAN, example="100 ms")] = 0.1
    """Sampling interval of the time series (s)."""
    series: Annotated[SeriesKeys, SizeOrTable()] | None = None
    """Links with time series and their sampling interval, or only the maximum size of all series.
    Default: all links, at each `sample`."""
    rto_min: Annotated[float, replace(SPAN, example="1 s")] = 1.0
    """Minimum retransmission timeout (s)."""
    syn_rto: Annotated[float, replace(SPAN, example="1 s")] = 1.0
    """Retransmission timeout of a SYN (s), and of data before the first RTT sample."""
    handshake: bool = True
    """True if data waits for the answer to a SYN. false: the flow's first window leaves at its
    start, as in RDMA, and its first packet asks explicit laws' routers for a start rate."""
    ideal: Literal["handshake", "one-way", "rtt"] | None = None
    """What the times of a slowdown contain next to the data's way to the receiver. handshake: the
    exchange before the data. one-way: nothing. rtt: the last acknowledgement's way back, on an
    empty network. Default: handshake for flows that have one, otherwise one-way."""
    rttvar_min: Annotated[float, TIME] | None = None
    """Minimum of the retransmission timeout's variance term (s); default: 200 ms, or `rto_min` if
    that is smaller."""
    base_rtt_window: Annotated[float, WINDOW] | None = None
    """Time (s) after which hosts forget an RTT as the smallest, or "unlimited"; default: the law's.
    Laws that do not use the smallest RTT ignore it, and a run says so if all do."""
    ip_version: Literal[4, 6] = 4
    """Version of the Internet Protocol on linux; other backends ignore it."""
    step: Annotated[float, replace(SPAN, example="1 ms")] | None = None
    """Time step of the fluid backend (s); default: a twentieth of the shortest RTT."""
    check_step: bool = False
    """True to halve the fluid backend's step until the rates change by less than 1 %."""
    fabric: Fabric | None = None
    """Network of a data center by rule, whose links a [[link]] of the same name changes."""
    ecmp: Literal["pair", "hash", "flowlet", "spray"] | None = None
    """Choice between equal shortest routes. pair: the seed draws one for each pair of hosts. hash:
    each switch chooses by a hash of the flow, with a seed of its own; flowlet: also anew after a
    pause of the flow; spray: for each packet. Default: pair in a fabric and for a pattern of hosts;
    otherwise such a flow needs a path."""
    flowlet_gap: Annotated[float, replace(SPAN, example="100 us")] | None = None
    """Pause (s) after which a flow's next packet may take another route, for ecmp = "flowlet"."""
    switch: Switch | None = None
    """Buffers that the output queues of each switch share; default: each link has its own."""
    nic: Literal["queue", "pull"] | None = None
    """Hosts, which are nodes with links to one other node. queue: their packets wait in the queue
    of their link, which may drop them. pull: flows keep their packets until the link is free, and
    take turns. Default: pull with [switch], otherwise queue."""
    link_defaults: dict[str, Any] = {}
    """Values of the keys of [[link]] that a link does not set itself."""
    link: list[Link]
    """Links of the network."""
    flow: list[Flow] = []
    """Flows of the scenario; optional if there is traffic."""
    traffic: list[Traffic] = []
    """Traffic in addition to the flows."""
    collective: list[Collective] = []
    """Collective operations, whose messages become flows."""
    params: dict[str, dict[str, Any]] = {}
    """Parameters of the protocols: params.PROTOCOL.NAME."""

    _source: str = PrivateAttr(default="<scenario>")
    _set_keys: Mapping[str, str] = PrivateAttr(default_factory=dict)
    _keys: dict[str, list[str]] = PrivateAttr(default_factory=dict)

    @property
    def source(self) -> str:
        """File of the scenario, or the name that messages use instead."""
        return self._source

    def switches(self, entry: Flow | Traffic) -> bool:
        """Return True if switches choose the links of an entry's packets."""
        return self.ecmp not in (None, "pair") and entry.path is None and entry.return_path is None

    @property
    def measure_s(self) -> tuple[float, float]:
        """Time window of the summary (s): `measure`, or its default.

        A run shortens the default for finite flows to the end of its last flow.
        """
        if self.measure is not None:
            return (self.measure[0], self.measure[1])
        if self.measures_flows:
            starts = (flow.start for flow in self.flow if flow.after is None)
            return (min(starts, default=0.0), self.duration)
        return (2 * self.duration / 3, self.duration)

    @property
    def rttvar_min_s(self) -> float:
        """Minimum of the timeout's variance term (s): `rttvar_min`, or its default."""
        return min(LINUX_RTTVAR_MIN_S, self.rto_min) if self.rttvar_min is None else self.rttvar_min

    @property
    def series_bytes(self) -> int:
        """Maximum size of the time series (bytes): `series.size`, or its default."""
        size = self.series.size if self.series is not None else None
        return int(_SERIES_BYTES if size is None else size)

    @property
    def samples_of_links(self) -> int:
        """Number of samples of links per sample of flows: `sample` ÷ `series.step`, rounded."""
        step_s = self.series.step if self.series is not None else None
        return 1 if step_s is None else max(1, round(self.sample / step_s))

    @property
    def sample_s(self) -> float:
        """Sampling interval of flows (s): `sample`, or the multiple of `series.step` next to it."""
        if self.series is None or self.series.step is None:
            return self.sample
        return round(self.samples_of_links * self.series.step, 12)

    @property
    def measures_flows(self) -> bool:
        """True if the summary covers the time in which flows are active: each is finite."""
        finite = bool(self.flow) and all(flow.size is not None for flow in self.flow)
        return self.measure is None and finite and not any(t.starts_flows for t in self.traffic)

    @property
    def set_keys(self) -> tuple[str, ...]:
        """Keys that the command line has set."""
        return tuple(key for key, place in self._set_keys.items() if place == COMMAND_LINE)

    def protocols(self) -> set[str]:
        """Return the names of the protocols that flows run or that links list as `routers`."""
        names = {entry.protocol or self.protocol for entry in self._sources()}
        names.update(name for link in self.link for name in link.routers or ())
        return {name for name in names if name is not None}

    @property
    def uses_default(self) -> bool:
        """True if a flow or a source of flows runs the default protocol."""
        return any(entry.protocol is None for entry in self._sources())

    def _sources(self) -> Iterator[Flow | Traffic]:
        yield from self.flow
        yield from (entry for entry in self.traffic if entry.starts_flows)

    def set_origin(self, source: str, set_keys: Mapping[str, str]) -> None:
        """Set the file that messages name, and the place of each key that was set elsewhere, such
        as the command line.
        """
        self._source, self._set_keys = source, dict(set_keys)

    def key(self, section: str, index: int) -> str:
        """Return the key path of one entry, such as `flow.long`."""
        return self.keys(section)[index]

    def keys(self, section: str) -> list[str]:
        """Return the key paths of all entries of a section, in order."""
        if section not in self._keys:
            entries = getattr(self, section)
            # Only traffic may be without a name.
            names = labels(entries) if section == "traffic" else [entry.name for entry in entries]
            self._keys[section] = [f"{section}.{name}" for name in names]
        return self._keys[section]

    def traffic_name(self, index: int) -> str:
        """Return the name of a [[traffic]] entry in results: its own name or its kind, with an
        index if needed.
        """
        entry = self.traffic[index]
        label = self.key("traffic", index).partition(".")[2]
        return f"{entry.kind}[{index}]" if label == str(index) and not entry.name else label

    def error(self, key: str, problem: str, advice: str = "") -> InputError:
        """Return an InputError that names the file, or the place that set `key`.

        The key of a message's flow becomes that of its collective.
        """
        key, problem = self._of_collective(key, problem)
        return InputError(file_of(key, self._source, self._set_keys), key, problem, advice)

    def _of_collective(self, key: str, problem: str) -> tuple[str, str]:
        section, _, path = key.partition(".")
        flow, _, rest = path.partition(".")
        for one in self.collective if section == "flow" else ():
            if flow.startswith(f"{one.name}-") and flow in {
                flow_name(one, m) for m in messages(one)
            }:
                given = {"from": "hosts", "to": "hosts", "count": "size"}.get(rest, rest)
                named = f".{given}" if given in Collective.model_fields else ""
                return f"collective.{one.name}{named}", f"message {flow}: {problem}"
        return key, problem

    def core_error(self, error: ValueError) -> InputError:
        """Convert an error of the core, whose text is `KEY: PROBLEM`, to an InputError."""
        key, _, message = str(error).partition(": ")
        return (
            self.error(key, message) if message and " " not in key else self.error("", str(error))
        )

    def to_toml(self) -> str:
        """Return the scenario as TOML, with all defaults and all overrides applied.

        A default window that ends with the run's flows is left out.
        """
        run = self
        if not self.measures_flows:
            run = self.model_copy(update={"measure": list(self.measure_s)})
        document = run.model_dump(by_alias=True, exclude_none=True)
        if self.profile != "wan":  # what it decides is no default of the file
            for key in set(FOLLOWS_PROFILE) - self.model_fields_set:
                document.pop(key, None)
            for link, written in zip(self.link, document["link"], strict=True):
                if "buffer" not in link.model_fields_set:
                    del written["buffer"]
        messages_of = {flow_name(one, sent) for one in self.collective for sent in messages(one)}
        document["flow"] = [flow for flow in document["flow"] if flow["name"] not in messages_of]
        for section in ("flow", "traffic", "collective", "params", "link_defaults"):
            if not document[section]:
                del document[section]
        return tomli_w.dumps(document)


SECTIONS: dict[str, type[Table]] = {
    "link": Link, "flow": Flow, "traffic": Traffic, "collective": Collective,
}  # fmt: skip
TABLES: dict[str, type[Table]] = {"fabric": Fabric, "series": SeriesKeys, "switch": Switch}
"""Sections that are one table."""
ENTRIES: dict[tuple[str, str], type[Table]] = {
    ("link", "event"): LinkEvent,
    ("link", "fault"): LinkFault,
    ("flow", "route"): FlowRoute,
    ("flow", "fault"): FlowFault,
    ("flow", "application"): Application,
    ("flow", "ack_frequency"): AckFrequency,
    ("traffic", "ack_frequency"): AckFrequency,
}
"""Tables inside the entries of a section, such as `[[link.event]]`."""


def labels(entries: Sequence[Any]) -> list[str]:
    """Return the labels of a section's entries in key paths: name, kind or index."""

    def get(entry: Any, key: str) -> str | None:
        value = entry.get(key) if isinstance(entry, dict) else getattr(entry, key, None)
        return value if isinstance(value, str) and value else None

    names = [get(entry, "name") for entry in entries]
    kinds = [
        None if name else get(entry, "kind") for name, entry in zip(names, entries, strict=True)
    ]
    # A kind names an entry if no other entry has it as its name or, unnamed, as its kind.
    uses = Counter(name or kind for name, kind in zip(names, kinds, strict=True))
    return [
        name or (kind if kind and uses[kind] == 1 else str(index))
        for index, (name, kind) in enumerate(zip(names, kinds, strict=True))
    ]


def file_of(key: str, source: str, set_keys: Mapping[str, str]) -> str:
    """Return the source that messages about a key name: the scenario's file, or the place that set
    the key, such as the command line.
    """
    # seed.x=3 makes seed a table, and the message about it names the key seed.
    for own, place in set_keys.items():
        if f"{key}.".startswith((f"{own}.", f"{own}[")) or own.startswith(f"{key}."):
            return place
    return source
