"""The summary of a run as a document for `run --json`, and the part that the core provides.

The core's part is `waterfill_network::summary` in Rust. Times are in seconds and rates in bit/s
unless a key says otherwise; None stands where there was nothing to measure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from waterfill.contract.network import ParamValue
from waterfill.contract.record import Record

SCHEMA_VERSION = 1
"""Version of the names, units and meanings in results. 0.2.0 and before wrote none."""
SCHEMA_VERSION_KEY = "waterfill.schema_version"
"""Key of the schema version in the metadata of Parquet files."""


class Spread(Record):
    """Queue length over time: mean, 99th percentile and maximum."""

    mean: float
    p99: float
    max: float


class Rtts(Record):
    """RTTs in milliseconds. `base` is the propagation delay plus the added access delay."""

    base: float
    mean: float | None
    p50: float | None
    p99: float | None


class Times(Record):
    """Completion times of `count` flows, in milliseconds."""

    count: int
    mean: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    max: float | None


class LimitedBy(Record):
    """What limits a flow: the share of its time for each limit. The sum is 1."""

    window: float
    pacing: float
    application: float
    recovery: float
    handshake: float


class LongestRecovery(Record):
    """Duration of the loss recovery that took the most RTTs, in seconds and in smoothed RTTs."""

    took_s: float
    rtts: float


class Messages(Record):
    """Messages of a flow's application: how many it has written, how many have arrived, and the
    completion times of those written in the measure window.
    """

    written: int
    completed: int
    completion_ms: Times


class Playback(Record):
    """Playback of a flow's video: time to the first picture, time played, and stalls."""

    startup_s: float | None
    played_s: float
    stalls: int
    stalled_s: float


class CoreFlow(Record):
    """Statistics of one flow, or of `count` identical flows in large fluid runs.

    Keys with a default are those of the packet simulator, `resent_bytes` also of the fluid model;
    results of 0.2.0 and before lack them.
    """

    name: str
    group: str
    index: int
    protocol: str
    start_s: float
    stop_s: float
    active_s: list[float] | None
    rate_bps: float | None
    goodput_bps: float | None
    rtt_ms: Rtts
    packets_sent: int
    retransmissions: int
    timeouts: int
    completed_s: float | None
    resent_bytes: int | None = None
    spurious_retransmissions: int | None = None
    limited_by: LimitedBy | None = None
    longest_recovery: LongestRecovery | None = None
    messages: Messages | None = None
    playback: Playback | None = None
    count: int = 1


class FlowSummary(CoreFlow):
    """Statistics of one flow, with its time-averaged max-min share and its loss rate: the part of
    its packets that did not arrive, None if it sent none.
    """

    max_min_bps: float | None
    loss_rate: float | None = None


class LinkSummary(Record):
    """Statistics of one link direction. `paused_s` is the time in which a pause kept it from
    sending; links that cannot be paused lack the keys with a default.
    """

    name: str
    utilization: float
    queue_bytes: Spread
    queue_packets: Spread
    drops: int
    marks: int
    lost: int
    paused_s: float | None = None
    pause_frames: int | None = None


class Deadlock(Record):
    """Paused links that wait for each other for ever, and the time of the sample that found it."""

    at_s: float
    links: list[str]


class SwitchSummary(Record):
    """Bytes in all output queues of a switch with a shared buffer: mean and maximum."""

    name: str
    buffer_bytes: int
    used_mean_bytes: float
    used_max_bytes: int


class TrafficSummary(Record):
    """Statistics of one traffic source. Keys with a default belong to sources of flows."""

    name: str
    kind: str
    rate_bps: float | None
    packets_sent: int
    packets_received: int
    protocol: str = ""
    goodput_bps: float | None = None
    flows_started: int | None = None
    flows_completed: int | None = None
    flows_open_max: int | None = None
    flow_completion_ms: Times | None = None
    limited_by: LimitedBy | None = None
    loss_rate: float | None = None
    retransmissions: int = 0
    resent_bytes: int | None = None
    spurious_retransmissions: int | None = None
    timeouts: int = 0
    longest_recovery: LongestRecovery | None = None


class EngineSummary(Record):
    """Work done by an engine. `step_s` and later keys are the fluid model's."""

    packet_hops: int
    wall_s: float
    events: int | None = None
    step_s: float = 0.0
    steps: int = 0
    classes: int = 0
    delay_added_s: float = 0.0


class Engine(EngineSummary):
    """Work done by an engine, with its speed in the packet simulator."""

    packet_transmissions_per_s: float | None = None


CLOCKED = ("wall_s", "packet_transmissions_per_s")
"""Keys of `engine` that differ between two runs with the same seed."""


class CoreSummary(Record):
    """Statistics of a run, as an engine of the core returns them."""

    flows: list[CoreFlow]
    links: list[LinkSummary]
    traffic: list[TrafficSummary]
    engine: EngineSummary
    switches: list[SwitchSummary] | None = None
    deadlock: Deadlock | None = None


class GroupSummary(Record):
    """Completion times of a group of flows with a `size`."""

    name: str
    flows: int
    completed: int
    flow_completion_ms: Times


class FlowWarning(Record):
    """A result that shows a fault of a flow's law or host, or a window that is not settled."""

    flow: str
    kind: str
    text: str


class Decimation(Record):
    """Sampling interval of a run whose series would have exceeded their budget."""

    sample_s: float
    asked_s: float
    budget_bytes: int


class StepCheck(Record):
    """Comparison of a fluid run with a run of half the time step."""

    step_s: float
    half_step_s: float | None
    largest_change: float | None
    ok: bool


class Check(Record):
    """One check of a run on linux, which shows if the measurement can be trusted."""

    name: str
    ok: bool
    found: Any
    wanted: str


class LawParamEntry(Record):
    """A parameter of a law in Python. `default`, `min` and `max` are in the SI unit."""

    name: str
    unit: str
    default: ParamValue
    choices: list[str]
    min: float | None
    max: float | None
    doc: str


class LawSummary(Record):
    """A law in Python: its header fields, target utilization, parameters and signals' units.

    Results of 0.2.0 and before have only the first two.
    """

    header: list[str]
    target: float
    kind: str = "explicit"
    header_bytes: int = 16
    paced: bool = True
    about: str = ""
    params: list[LawParamEntry] | None = None
    signals: Mapping[str, str] | None = None
    recovery: str = "rfc6675"


class Summary(Record):
    """The document of `run --json`. Keys with a default are present only if they apply.

    `schema_version` is that of the keys and columns, `version` that of the Waterfill that ran it;
    results of 0.2.0 and before lack both. `laws` are those in Python. `jain_index` is that of the
    rates, `jain_index_of_shares` that of rate ÷ max-min share.
    """

    schema_version: int = 0
    scenario: str
    backend: str
    version: str = ""
    seed: int
    duration_s: float
    measure_s: list[float]
    params: Mapping[str, Mapping[str, ParamValue | None]]
    flows: list[FlowSummary]
    links: list[LinkSummary]
    traffic: list[TrafficSummary]
    groups: list[GroupSummary]
    jain_index: float | None
    engine: Engine
    jain_index_of_shares: float | None = None
    switches: list[SwitchSummary] | None = None
    deadlock: Deadlock | None = None
    laws: Mapping[str, LawSummary] | None = None
    warnings: list[FlowWarning] | None = None
    interrupted_at_s: float | None = None
    check_step: StepCheck | None = None
    decimated: Decimation | None = None
    checks: list[Check] | None = None
    testbed: dict[str, Any] | None = None

    @property
    def end_s(self) -> float:
        """Time at which the run ended (s): its duration unless it was interrupted."""
        return self.duration_s if self.interrupted_at_s is None else self.interrupted_at_s


REQUIRED = tuple(sorted(Summary.__required_keys__))
"""Keys that every summary has."""


class KernelParam(Record):
    """A parameter in the kernel: its member of `struct law_params`, and the member's scale.

    `min` and `max`, in SI units, are None where only the type limits the number. `supported` says
    which values the C code supports, where it does not support all.
    """

    member: str | None
    scale: float
    min: float | None
    max: float | None
    supported: str | None


class ParamEntry(Record):
    """A parameter of a protocol in the core's list of protocols."""

    name: str
    unit: str
    default: ParamValue
    choices: list[str] | None
    doc: str
    source: str
    kernel: KernelParam | None


class SignalEntry(Record):
    """A signal of a protocol in the core's list of protocols."""

    name: str
    unit: str
    doc: str


class KernelMember(Record):
    """A member of a law's `struct law_params`: its name and its size in bytes."""

    name: str
    bytes: int


class KernelEntry(Record):
    """C code of a law: its number, the wire sizes of its values, and its parameters."""

    number: int
    forward_bytes: int
    echo_bytes: int
    members: list[KernelMember]


class BaseRttEntry(Record):
    """A law's use of the smallest RTT: the time (s) after which its hosts forget an RTT, None for
    never, and whether a smallest RTT below the path's limits the rate.
    """

    window_s: float | None
    limits_rate: bool


class ProtocolEntry(Record):
    """A protocol in the core's list of protocols."""

    name: str
    kind: str
    backends: list[str]
    paced: bool
    recovery: str
    window_validation: str | None
    base_rtt: BaseRttEntry | None
    header_bytes: int
    echo_bytes: int
    summary: str
    params: list[ParamEntry]
    kernel: KernelEntry | None
    signals: list[SignalEntry]
