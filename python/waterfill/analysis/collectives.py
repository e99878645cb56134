"""Completion times of collective operations: bus bandwidth, the least time, and stragglers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from waterfill.analysis.series import Series
from waterfill.analysis.transfers import values
from waterfill.contract.record import Record
from waterfill.network.resolve import TCP_IP_HEADER_BYTES
from waterfill.scenario.collective import Collective, Message, flow_name, messages

if TYPE_CHECKING:
    from waterfill.contract.network import FlowSpec
    from waterfill.runs.result import Result


class Step(Record):
    """The messages of one step of a collective. The times are None until all are complete."""

    step: int
    messages: int
    unfinished: int
    start_s: float | None
    """Start of the first message (s); None if none has started."""
    end_s: float | None
    """Arrival of the last byte of the last message (s)."""
    median_s: float | None
    """Median completion time of the messages."""
    slowest_s: float | None
    slowest: str | None
    """The message that took longest, as FROM-TO."""


class CollectiveResult(Record):
    """A collective operation of a run. The times are None until all messages are complete."""

    name: str
    kind: str
    hosts: int
    size_bytes: int
    messages: int
    unfinished: int
    completion_s: float | None
    """Time from the start to the arrival of the last byte."""
    ideal_s: float
    """The least time that the network allows it: the longest chain of messages that wait for each
    other, each alone in the network, or all that one host sends on its link, if that takes
    longer."""
    bus_bps: float | None
    """What a host has to send at least ÷ completion time, as benchmarks of collectives have it."""
    ideal_bus_bps: float
    bus_of_ideal: float | None
    """The bus bandwidth ÷ that at the least time."""
    straggler: float | None
    """Largest ratio over the steps of the slowest message's time to the median."""
    steps: list[Step]


def message_names(result: Result) -> set[str]:
    """Return the names of the flows that are messages of a run's collectives."""
    given = map(Collective.model_validate, result.document.get("collective", ()))
    return {flow_name(one, message) for one in given for message in messages(one)}


def collectives(result: Result) -> list[CollectiveResult]:
    """Return the collectives of a run on the simulator, in the order of its scenario."""
    given = result.document.get("collective", [])
    if not given:
        return []
    table = result.transfers
    rows: dict[str, int] = {}
    for row, name in enumerate(table["source"].cast("string").to_pylist()):
        rows.setdefault(name, row)  # flows come before sources of traffic with the same name
    times = [values(table, key) for key in ("start_s", "completion_s")]
    found = []
    for entry in given:
        one = Collective.model_validate(entry)
        sent = messages(one)
        names = [flow_name(one, message) for message in sent]
        # A message whose turn has not come is not in the table.
        at = np.array([rows.get(name, -1) for name in names])
        columns = [np.where(at < 0, np.nan, np.append(column, np.nan)[at]) for column in times]
        found.append(_judged(one, sent, columns, _least_s(result, sent, names)))
    return found


def _judged(
    one: Collective, sent: Sequence[Message], times: Sequence[Series], least_s: float
) -> CollectiveResult:
    start_s, took_s = times
    missing = int(np.isnan(took_s).sum())
    completion_s = None if missing else float((start_s + took_s).max()) - one.start
    due_bits = one.bus_factor * one.size * 8
    steps = _steps(sent, start_s, took_s)
    ratios = [step.slowest_s / step.median_s for step in steps if step.slowest_s and step.median_s]
    return CollectiveResult(
        name=one.name,
        kind=one.kind if one.kind != "all-reduce" else f"all-reduce, {one.algorithm or 'ring'}",
        hosts=len(one.members),
        size_bytes=int(one.size),
        messages=len(sent),
        unfinished=missing,
        completion_s=completion_s,
        ideal_s=least_s,
        bus_bps=None if completion_s is None else due_bits / completion_s,
        ideal_bus_bps=due_bits / least_s,
        bus_of_ideal=None if completion_s is None else least_s / completion_s,
        straggler=max(ratios, default=None),
        steps=steps,
    )


def _steps(sent: Sequence[Message], start_s: Series, took_s: Series) -> list[Step]:
    number = np.array([message.step for message in sent])
    found = []
    for step in np.unique(number):
        (there,) = np.nonzero(number == step)
        started, took = start_s[there], took_s[there]
        missing = int(np.isnan(took).sum())
        last = sent[there[0 if missing else int(np.argmax(took))]]
        found.append(
            Step(
                step=int(step),
                messages=len(there),
                unfinished=missing,
                start_s=None if np.isnan(started).all() else float(np.nanmin(started)),
                end_s=None if missing else float((started + took).max()),
                median_s=None if missing else float(np.median(took)),
                slowest_s=None if missing else float(took.max()),
                slowest=None if missing else f"{last.source}-{last.target}",
            )
        )
    return found


def _least_s(result: Result, sent: Sequence[Message], names: Sequence[str]) -> float:
    """Return `ideal_s` of a collective whose messages are the flows `names`."""
    sized = [flow for flow in result.network.flows if flow.size_bytes is not None]
    place = {flow.name: number for number, flow in enumerate(sized)}
    source = np.array([place[name] for name in names])
    sizes = np.array([message.size_bytes for message in sent], dtype=np.float64)
    ends: list[float] = []
    for message, took_s in zip(sent, result.ideal_s(source, sizes), strict=True):
        ends.append(max((ends[index] for index in message.after), default=0.0) + float(took_s))
    return max(*ends, _busiest_s(result, [sized[number] for number in source]))


def _busiest_s(result: Result, flows: Sequence[FlowSpec]) -> float:
    """Return the longest time (s) that one host's link takes for all that the host sends."""
    network = result.network
    bits: dict[int, float] = {}
    for flow in flows:
        overhead = TCP_IP_HEADER_BYTES + result.header_bytes[flow.protocol]
        size = flow.size_bytes or 0
        packets = math.ceil(size / (network.packet_bytes - overhead))
        link = flow.forward[0]
        bits[link] = bits.get(link, 0.0) + 8 * (size + packets * overhead)
    return max(sent / network.links[link].rate_bps for link, sent in bits.items())
