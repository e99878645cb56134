"""Parts of the network that most scenarios have not: queue disciplines, faults, random sizes.

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
    """Always the same value."""

    distribution: Literal["constant"] = "constant"
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential:
    """An exponential distribution."""

    distribution: Literal["exponential"] = "exponential"
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pareto:
    """A Pareto distribution, conditioned on not exceeding `max` where there is one."""

    distribution: Literal["pareto"] = "pareto"
    mean: float
    shape: float
    max: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Empirical:
    """A cumulative distribution, linear between points (value, probability up to it)."""

    distribution: Literal["empirical"] = "empirical"
    points: tuple[tuple[float, float], ...]


DistributionSpec: TypeAlias = Constant | Exponential | Pareto | Empirical

# --- queues -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Red:
    """Random early detection, and CHOKe, which has the same parameters."""

    kind: Literal["red", "choke"]
    min_threshold: Level
    max_threshold: Level
    max_p: float
    weight: float
    gentle: bool
    ecn: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CodelSpec:
    """Controlled delay: the parameters, for one queue or for each of many."""

    target_s: float
    interval_s: float
    ecn: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Codel(CodelSpec):
    """Controlled delay."""

    kind: Literal["codel"] = "codel"


@dataclass(frozen=True, slots=True, kw_only=True)
class FqCodel:
    """Controlled delay per flow."""

    kind: Literal["fq_codel"] = "fq_codel"
    codel: CodelSpec
    quantum_bytes: int
    flows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Off:
    """Controller that counts flows and drops nothing."""

    kind: Literal["off"] = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class EachInterval:
    """Application of the factor once per control interval."""

    kind: Literal["interval"] = "interval"


@dataclass(frozen=True, slots=True, kw_only=True)
class EachPacket:
    """Application of the factor for each packet of a class."""

    kind: Literal["packet"] = "packet"
    packets: Literal["all", "explicit", "tcp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EachPeriod:
    """Application of the factor once per period of time."""

    kind: Literal["period"] = "period"
    period_s: float


Update: TypeAlias = EachInterval | EachPacket | EachPeriod


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """The paper's controller: two fixed factors."""

    kind: Literal["paper"] = "paper"
    initial: float
    decrease: float
    increase: float
    threshold: float
    update: Update


@dataclass(frozen=True, slots=True, kw_only=True)
class Improved:
    """The improved controller: a factor that follows the error, and a limit on bursts."""

    kind: Literal["improved"] = "improved"
    aim: float
    integral: float
    proportional: float
    depth_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Separate:
    """One queue per class."""

    kind: Literal["separate"] = "separate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """Remembers every flow."""

    kind: Literal["exact"] = "exact"
    period_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sred:
    """SRED's zombie list."""

    kind: Literal["sred"] = "sred"
    size: int
    replace: float
    delta: float
    shared: bool
    trials: Literal["class", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nred:
    """NRED's Bloom filter."""

    kind: Literal["nred"] = "nred"
    levels: int
    bins: int
    period_s: float
    hash: Literal["flow", "pair"]


Controller: TypeAlias = Off | Paper | Improved | Separate
Estimator: TypeAlias = Exact | Sred | Nred


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohabit:
    """First in, first out, with explicit flows protected from TCP."""

    kind: Literal["cohabit"] = "cohabit"
    controller: Controller
    estimator: Estimator
    inspect: float
    interval_s: float
    interval_of_law: bool
    count_drops: Literal["never", "module", "router"]
    explicit_weight: float
    ecn: bool


QueueSpec: TypeAlias = Droptail | Red | Codel | FqCodel | Cohabit

# --- faults -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Independent:
    """Independent loss of each packet."""

    kind: Literal["independent"] = "independent"
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GilbertElliott:
    """Losses come in bursts: a chain of two states."""

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
    """A share of the packets arrives `delay_s` late."""

    share: float
    delay_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """Packets lose the header of their protocol."""

    kind: Literal["strip"] = "strip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrupt:
    """Inversion of one random bit of a packet's header."""

    kind: Literal["corrupt"] = "corrupt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lie:
    """A router replaces the congestion signal."""

    kind: Literal["lie"] = "lie"
    value: Literal["zero", "max", "random"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Holding of packets until a release, every `every_s`."""

    kind: Literal["hold"] = "hold"
    every_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSpec:
    """A fault of a link direction, which befalls a share of its packets."""

    from_s: float
    until_s: float
    share: float
    effect: Strip | Corrupt | Lie | Hold


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverLie:
    """The receiver reports the best that its protocol can express."""

    kind: Literal["lie"] = "lie"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignore:
    """The source keeps its rate and window."""

    kind: Literal["ignore"] = "ignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockStep:
    """The source's clock jumps."""

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
    """A token bucket in front of a transmitter of `line_bps`; a zero timer adds continuously."""

    line_bps: float
    depth_bytes: float
    timer_s: float
