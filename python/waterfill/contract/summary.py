"""The summary of a run as a document: what `run --json` prints, and the core's part of it.

The core's part is `waterfill_network::summary` in Rust. Times are in seconds and rates in bit/s
unless a key says otherwise; None stands where there was nothing to measure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from waterfill.contract.network import ParamValue


class Spread(TypedDict):
    """A queue's length over time: mean, 99th percentile, largest."""

    mean: float
    p99: float
    max: float


class Rtts(TypedDict):
    """RTTs in milliseconds; `base` is propagation and padding."""

    base: float
    mean: float | None
    p50: float | None
    p99: float | None


class Times(TypedDict):
    """Completion times in milliseconds, of `count` flows."""

    count: int
    mean: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    max: float | None


class _CoreFlow(TypedDict):
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


class CoreFlow(_CoreFlow, total=False):
    """One flow; `count` where an entry stands for several identical ones (large fluid runs)."""

    count: int


class FlowSummary(CoreFlow):
    """One flow with its time-averaged max-min share."""

    max_min_bps: float | None


class LinkSummary(TypedDict):
    """One link direction."""

    name: str
    utilization: float
    queue_bytes: Spread
    queue_packets: Spread
    drops: int
    marks: int
    lost: int


class _Traffic(TypedDict):
    name: str
    kind: str
    rate_bps: float | None
    packets_sent: int
    packets_received: int


class TrafficSummary(_Traffic, total=False):
    """One source of traffic; a source of flows also has the keys below."""

    protocol: str
    goodput_bps: float | None
    flows_started: int
    flows_completed: int
    flows_open_max: int
    flow_completion_ms: Times
    retransmissions: int
    timeouts: int


class _Engine(TypedDict):
    packet_hops: int
    wall_s: float


class EngineSummary(_Engine, total=False):
    """Work done; `step_s` and what follows are the fluid model's."""

    events: int
    step_s: float
    steps: int
    classes: int
    delay_added_s: float


class Engine(EngineSummary, total=False):
    """Work done, and how fast; not for a run in real time."""

    packet_transmissions_per_s: float


CLOCKED = ("wall_s", "packet_transmissions_per_s")
"""Keys of `engine` that differ between two runs of one seed."""


class CoreSummary(TypedDict):
    """Statistics of an engine."""

    flows: list[CoreFlow]
    links: list[LinkSummary]
    traffic: list[TrafficSummary]
    engine: EngineSummary


class GroupSummary(TypedDict):
    """Completion times of the flows of a group with a `size`."""

    name: str
    flows: int
    completed: int
    flow_completion_ms: Times


class StepCheck(TypedDict):
    """The comparison of a fluid run with one of half the step."""

    step_s: float
    half_step_s: float | None
    largest_change: float | None
    ok: bool


class Check(TypedDict):
    """One check of a run on linux: whether the measurement can be trusted."""

    name: str
    ok: bool
    found: Any
    wanted: str


class LawSummary(TypedDict):
    """A law in Python: the names of its header's fields, and the utilization that it aims at."""

    header: list[str]
    target: float


class _Summary(TypedDict):
    scenario: str
    backend: str
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


class Summary(_Summary, total=False):
    """The document of `run --json`; the keys below are there in the cases that they name.

    `version` is that of the Waterfill that ran it, which results of 0.2.0 and before lack; `laws`
    are those in Python.
    """

    version: str
    laws: Mapping[str, LawSummary]
    interrupted_at_s: float
    check_step: StepCheck
    checks: list[Check]
    testbed: dict[str, Any]


REQUIRED = tuple(sorted(Summary.__required_keys__))
"""Keys that every summary has."""


class KernelParam(TypedDict):
    """A parameter's form in the kernel: its member of `struct law_params`, and the member's scale.

    `min` and `max`, in SI units, are None where only the type limits the number. `supported` says
    which values the C code supports, where it does not support all.
    """

    member: str | None
    scale: float
    min: float | None
    max: float | None
    supported: str | None


class ParamEntry(TypedDict):
    """One parameter in the core's list of protocols."""

    name: str
    unit: str
    default: ParamValue
    choices: list[str] | None
    doc: str
    source: str
    kernel: KernelParam | None


class SignalEntry(TypedDict):
    """One signal in the core's list of protocols."""

    name: str
    unit: str
    doc: str


class KernelMember(TypedDict):
    """One member of a law's `struct law_params`, in C's order."""

    name: str
    bytes: int


class KernelEntry(TypedDict):
    """A law's C code: its number and the sizes of its values on the wire, and its parameters."""

    number: int
    forward_bytes: int
    echo_bytes: int
    members: list[KernelMember]


class ProtocolEntry(TypedDict):
    """One protocol in the core's list."""

    name: str
    kind: str
    backends: list[str]
    paced: bool
    header_bytes: int
    echo_bytes: int
    summary: str
    params: list[ParamEntry]
    kernel: KernelEntry | None
    signals: list[SignalEntry]
