"""Less common elements of a network: queue disciplines, faults and random sizes.

They are apart from `network`, and loaded when a scenario has one: building these classes would
take a tenth of the time in which a command starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from waterfill.contract.droptail import Droptail, Level

# --- distributions ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """Distribution with a constant value."""

    distribution: Literal["constant"] = "constant"
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential:
    """Exponential distribution."""

    distribution: Literal["exponential"] = "exponential"
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pareto:
    """Pareto distribution, conditioned on not exceeding `max` if one is given."""

    distribution: Literal["pareto"] = "pareto"
    mean: float
    shape: float
    max: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Empirical:
    """Cumulative distribution, linear between points (value, probability up to the value)."""

    distribution: Literal["empirical"] = "empirical"
    points: tuple[tuple[float, float], ...]


DistributionSpec: TypeAlias = Constant | Exponential | Pareto | Empirical

# --- applications --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OnOff:
    """Application that writes at a rate, of full packets on the wire, in on periods."""

    kind: Literal["onoff"] = "onoff"
    rate_bps: float
    on_s: DistributionSpec
    off_s: DistributionSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestResponse:
    """Responses that a client requests one after another, with pauses or without."""

    kind: Literal["request-response"] = "request-response"
    sizes_bytes: DistributionSpec
    think_s: DistributionSpec | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Video:
    """Segments of a video, requested while the client's buffer has space for another one."""

    kind: Literal["video"] = "video"
    bit_rate_bps: float
    segment_s: float
    buffer_s: float
    startup_segments: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticks:
    """A message at each interval."""

    kind: Literal["ticks"] = "ticks"
    sizes_bytes: DistributionSpec
    interval_s: float


ApplicationSpec: TypeAlias = OnOff | RequestResponse | Video | Ticks

# --- queues -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Red:
    """Random early detection (RED) or CHOKe, which has the same parameters."""

    kind: Literal["red", "choke"]
    min_threshold: Level
    max_threshold: Level
    max_p: float
    weight: float
    gentle: bool
    ecn: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CodelSpec:
    """Parameters of controlled delay (CoDel), for a single queue or for each of many queues."""

    target_s: float
    interval_s: float
    ecn: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Codel(CodelSpec):
    """Controlled-delay queue (CoDel)."""

    kind: Literal["codel"] = "codel"


@dataclass(frozen=True, slots=True, kw_only=True)
class FqCodel:
    """Queue with controlled delay for each flow (FQ-CoDel)."""

    kind: Literal["fq_codel"] = "fq_codel"
    codel: CodelSpec
    quantum_bytes: int
    flows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PieSpec:
    """Parameters of PIE (RFC 8033), for a single queue or for each of many queues."""

    target_s: float
    update_s: float
    alpha_hz: float
    beta_hz: float
    max_burst_s: float
    ecn: bool
    mark_below: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pie(PieSpec):
    """Queue with a proportional integral controller (PIE)."""

    kind: Literal["pie"] = "pie"


@dataclass(frozen=True, slots=True, kw_only=True)
class FqPie:
    """Queue with PIE for each flow (FQ-PIE)."""

    kind: Literal["fq_pie"] = "fq_pie"
    pie: PieSpec
    quantum_bytes: int
    flows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DualPi2:
    """Dual queue for classic and L4S packets (DualPI2, RFC 9332)."""

    kind: Literal["dualpi2"] = "dualpi2"
    target_s: float
    rtt_max_s: float
    coupling: float
    ramp_start_s: float
    ramp_range_s: float
    ramp_packets: int
    classic_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Off:
    """Cohabitation controller that counts flows and drops nothing."""

    kind: Literal["off"] = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class EachInterval:
    """Cohabitation schedule that applies the factor of xcp-tcp-2008 once per control interval."""

    kind: Literal["interval"] = "interval"


@dataclass(frozen=True, slots=True, kw_only=True)
class EachPacket:
    """Cohabitation schedule that applies the factor of xcp-tcp-2008 for each packet of a class."""

    kind: Literal["packet"] = "packet"
    packets: Literal["all", "explicit", "tcp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EachPeriod:
    """Cohabitation schedule that applies the factor of xcp-tcp-2008 once per fixed period."""

    kind: Literal["period"] = "period"
    period_s: float


Update: TypeAlias = EachInterval | EachPacket | EachPeriod


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """Cohabitation controller of xcp-tcp-2008, which multiplies the drop probability by one of two
    fixed factors.
    """

    kind: Literal["paper"] = "paper"
    initial: float
    decrease: float
    increase: float
    threshold: float
    update: Update


@dataclass(frozen=True, slots=True, kw_only=True)
class Improved:
    """Improved cohabitation controller: a factor that follows the error, and a limit on bursts."""

    kind: Literal["improved"] = "improved"
    aim: float
    integral: float
    proportional: float
    depth_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Separate:
    """Cohabitation with one queue per class."""

    kind: Literal["separate"] = "separate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """Flow counter that remembers every flow."""

    kind: Literal["exact"] = "exact"
    period_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sred:
    """Flow counter with SRED's zombie list."""

    kind: Literal["sred"] = "sred"
    size: int
    replace: float
    delta: float
    shared: bool
    trials: Literal["class", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nred:
    """Flow counter with NRED's Bloom filter."""

    kind: Literal["nred"] = "nred"
    levels: int
    bins: int
    period_s: float
    hash: Literal["flow", "pair"]


Controller: TypeAlias = Off | Paper | Improved | Separate
Estimator: TypeAlias = Exact | Sred | Nred


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohabit:
    """First-in, first-out queue that protects explicit flows from TCP."""

    kind: Literal["cohabit"] = "cohabit"
    controller: Controller
    estimator: Estimator
    inspect: float
    interval_s: float
    interval_of_law: bool
    count_drops: Literal["never", "module", "router"]
    explicit_weight: float
    ecn: bool


QueueSpec: TypeAlias = Droptail | Red | Codel | FqCodel | Pie | FqPie | DualPi2 | Cohabit

# --- faults -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Independent:
    """Independent loss of each packet, with probability `p`."""

    kind: Literal["independent"] = "independent"
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GilbertElliott:
    """Loss in bursts, as a Markov chain of a good and a bad state."""

    kind: Literal["gilbert-elliott"] = "gilbert-elliott"
    p: float
    r: float
    loss_good: float
    loss_bad: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Periodic:
    """Loss of every n-th data packet."""

    kind: Literal["periodic"] = "periodic"
    every: int


LossSpec: TypeAlias = Independent | GilbertElliott | Periodic


@dataclass(frozen=True, slots=True, kw_only=True)
class ReorderSpec:
    """Reordering in which a fraction of the packets arrives `delay_s` late."""

    share: float
    delay_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """Fault that removes the protocol's header from packets."""

    kind: Literal["strip"] = "strip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrupt:
    """Fault that inverts one random bit of a packet's header."""

    kind: Literal["corrupt"] = "corrupt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lie:
    """Fault in which a router replaces the congestion signal."""

    kind: Literal["lie"] = "lie"
    value: Literal["zero", "max", "random"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Fault that holds packets and releases them together every `every_s`."""

    kind: Literal["hold"] = "hold"
    every_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Acks:
    """Effect that holds acknowledgements and releases them together every `every_s`. Of `thinning`
    successive ones of a flow, released together, only the last is delivered.
    """

    kind: Literal["acks"] = "acks"
    every_s: float
    thinning: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSpec:
    """A fault of a link direction, which affects a fraction of its packets."""

    from_s: float
    until_s: float
    share: float
    effect: Strip | Corrupt | Lie | Hold | Acks


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverLie:
    """Fault in which the receiver reports the best signal that its protocol can express."""

    kind: Literal["lie"] = "lie"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignore:
    """Fault in which the source keeps its rate and window."""

    kind: Literal["ignore"] = "ignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockStep:
    """Fault in which the source's clock jumps."""

    kind: Literal["clock"] = "clock"
    step_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFaultSpec:
    """A fault of one of a flow's hosts."""

    from_s: float
    until_s: float
    effect: ReceiverLie | Ignore | ClockStep


@dataclass(frozen=True, slots=True, kw_only=True)
class ShaperSpec:
    """A token bucket in front of a transmitter of `line_bps`. A zero timer adds tokens
    continuously.
    """

    line_bps: float
    depth_bytes: float
    timer_s: float
