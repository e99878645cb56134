"""Specifications of a link's queue, faults and changes, resolved from a scenario's keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from waterfill.contract.droptail import Bytes, Droptail, Level, Packets, Ramp
from waterfill.contract.network import LinkChange
from waterfill.scenario import links
from waterfill.scenario.document import Flow, FlowFault, Link, LinkFault
from waterfill.scenario.units import Buffer

if TYPE_CHECKING:
    from waterfill.contract import elements

# Added delay of a reordered packet, in full packets, where a scenario gives none: on a busy link
# more than three packets overtake it, and three duplicate acknowledgements mean a loss (RFC 5681).
_LATE_PACKETS = 5

_DROPTAIL = Droptail(mark_at=None)


def droptail(link: Link) -> Droptail:
    """Resolve the queue of a drop-tail link. `queues` resolves all other disciplines."""
    if link.mark_at is None:
        return _DROPTAIL
    if link.mark_to is None:
        return Droptail(mark_at=level(link.mark_at))
    max_p = 1.0 if link.mark_max is None else link.mark_max
    return Droptail(mark_at=level(link.mark_at), ramp=Ramp(level(link.mark_to), max_p))


def loss_model(link: Link) -> elements.LossSpec | None:
    """Resolve the loss model of a link's forward direction, or return None without one."""
    if link.loss_model is None:
        return None
    from waterfill.contract import elements

    kinds: dict[str, type[elements.LossSpec]] = {
        "independent": elements.Independent,
        "gilbert-elliott": elements.GilbertElliott,
        "periodic": elements.Periodic,
    }
    values = links.read_loss(link.loss_model)
    return kinds[values["kind"]](**values)


def bucket(link: Link, given: Mapping[str, Any] | None) -> elements.ShaperSpec | None:
    """Resolve a link direction's `shaper` or `policer`, a token bucket; return None without one."""
    if given is None:
        return None
    from waterfill.contract.elements import ShaperSpec

    values = links.read_shaper(given)
    return ShaperSpec(line_bps=link.rate, depth_bytes=values["depth"], timer_s=values["timer"])


def changes(link: Link, forward: bool, duration_s: float) -> tuple[float, tuple[LinkChange, ...]]:
    """Return the initial rate (bit/s) of a link direction, and its changes in order of time."""
    varying = (link.event, link.fault, link.rate_trace, link.rate_trace_reverse, link.delay_trace)
    if all(x is None for x in varying):
        return link.capacity, ()
    found: dict[float, LinkChange] = {}
    for event in link.event or ():
        if event.rate is None and event.delay is None and event.up is None:
            continue  # a change of the other direction
        at_s = round(event.at, 12)
        found[at_s] = LinkChange(at_s=at_s, rate_bps=event.rate, delay_s=event.delay, up=event.up)
    for fault in of_direction(link, forward):
        at_s = round(fault.at, 12)
        known = found.get(at_s, LinkChange(at_s=at_s))
        if fault.kind == "restart":
            found[at_s] = replace(known, restart=True)
        elif fault.kind == "clock" and fault.step is not None:
            found[at_s] = replace(known, clock_step_s=(known.clock_step_s or 0.0) + fault.step)
    start_bps = link.capacity
    trace = link.rate_trace if forward else link.rate_trace_reverse
    for time_s, rate in trace.until(duration_s) if trace is not None else ():
        at_s = round(time_s, 12)
        if at_s == 0 and rate > 0:
            start_bps = rate
        else:
            found[at_s] = replace(found.get(at_s, LinkChange(at_s=at_s)), rate_bps=rate)
    # `Link.backward` has the reverse direction's own.
    for time_s, delay_s in link.delay_trace.until(duration_s) if link.delay_trace else ():
        at_s = round(time_s, 12)
        if at_s > 0:
            found[at_s] = replace(found.get(at_s, LinkChange(at_s=at_s)), delay_s=delay_s)
    return start_bps, tuple(found[at_s] for at_s in sorted(found))


def of_direction(link: Link, forward: bool) -> list[LinkFault]:
    """Return the faults that affect one direction of a link."""
    directions = ("forward" if forward else "reverse", "both")
    return [fault for fault in link.fault or () if fault.direction in directions]


def faults(link: Link, forward: bool, duration_s: float) -> tuple[elements.FaultSpec, ...]:
    """Resolve the packet faults of a link direction, without restarts and clock steps, and the
    aggregation of its acknowledgements.
    """
    mine = [one for one in of_direction(link, forward) if one.kind not in ("restart", "clock")]
    if not mine and link.ack_aggregation is None:
        return ()
    from waterfill.contract import elements

    acks: tuple[elements.FaultSpec, ...] = ()
    if link.ack_aggregation is not None:
        held = links.read_aggregation(link.ack_aggregation)
        acks = (
            elements.FaultSpec(
                from_s=held["at"],
                until_s=held.get("until", duration_s),
                share=1.0,
                effect=elements.Acks(every_s=held["every"], thinning=link.ack_thinning or 1),
            ),
        )

    def effect(
        fault: LinkFault,
    ) -> elements.Strip | elements.Corrupt | elements.Lie | elements.Hold:
        if fault.kind == "lie" and fault.value is not None:
            return elements.Lie(value=fault.value)
        if fault.kind == "hold" and fault.every is not None:
            return elements.Hold(every_s=fault.every)
        return elements.Strip() if fault.kind == "strip" else elements.Corrupt()

    return (
        tuple(
            elements.FaultSpec(
                from_s=fault.at,
                until_s=duration_s if fault.until is None else fault.until,
                share=1.0 if fault.share is None else fault.share,
                effect=effect(fault),
            )
            for fault in mine
        )
        + acks
    )


def host_faults(flow: Flow, duration_s: float) -> tuple[elements.HostFaultSpec, ...]:
    """Resolve the faults of a flow's hosts, or return an empty tuple without faults."""
    if flow.fault is None:
        return ()
    from waterfill.contract import elements

    def effect(fault: FlowFault) -> elements.ReceiverLie | elements.Ignore | elements.ClockStep:
        if fault.step is not None:
            return elements.ClockStep(step_s=fault.step)
        return elements.ReceiverLie() if fault.kind == "lie" else elements.Ignore()

    return tuple(
        elements.HostFaultSpec(
            from_s=fault.at,
            until_s=duration_s if fault.until is None else fault.until,
            effect=effect(fault),
        )
        for fault in flow.fault
    )


def reorder(link: Link, packet_bytes: int) -> elements.ReorderSpec | None:
    """Resolve the reordering of a link's forward direction, or return None without reordering."""
    if link.reorder is None:
        return None
    from waterfill.contract.elements import ReorderSpec

    values = links.read_late(link.reorder)
    packet_s = packet_bytes * 8 / link.capacity
    delay_s = values.get("delay", _LATE_PACKETS * packet_s)
    return ReorderSpec(share=values["share"], delay_s=delay_s)


def level(length: Buffer) -> Level:
    """Convert a queue length to the core's form, in bytes or packets."""
    if length.unit == "packets":
        return Packets(length.amount)
    return Bytes(length.amount)
