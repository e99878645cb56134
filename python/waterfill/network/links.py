"""A link's queue and faults: from a scenario's keys to specifications, every parameter given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from waterfill.contract import network as spec
from waterfill.scenario import links, queue_params
from waterfill.scenario.document import Link
from waterfill.scenario.units import Buffer

# Added delay of a reordered packet, in full packets, where a scenario gives none: on a busy link
# more than three packets overtake it, and three duplicate acknowledgements mean a loss (RFC 5681).
_LATE_PACKETS = 5

_DROPTAIL = spec.Droptail(mark_at=None)
_CONTROLLERS: Mapping[str, type[spec.Controller]] = {
    "off": spec.Off, "paper": spec.Paper, "improved": spec.Improved, "separate": spec.Separate,
}  # fmt: skip
_ESTIMATORS: Mapping[str, type[spec.Estimator]] = {
    "exact": spec.Exact, "sred": spec.Sred, "nred": spec.Nred,
}  # fmt: skip
_UPDATES: Mapping[str, spec.Update] = {
    "interval": spec.EachInterval(),
    "packet": spec.EachPacket(packets="all"),
    "explicit-packet": spec.EachPacket(packets="explicit"),
    "tcp-packet": spec.EachPacket(packets="tcp"),
}
_LOSSES: Mapping[str, type[spec.LossSpec]] = {
    "independent": spec.Independent,
    "gilbert-elliott": spec.GilbertElliott,
    "periodic": spec.Periodic,
}


def queue(link: Link, largest_rtt_s: float) -> spec.QueueSpec:
    """Resolve the queue of a link; `largest_rtt_s` is the largest base RTT that crosses it."""
    if link.queue == "cohabit":
        return _cohabit(queue_params.read(link.queue_params or {}), largest_rtt_s)
    if link.queue == "droptail":
        return _DROPTAIL if link.mark_at is None else spec.Droptail(mark_at=_level(link.mark_at))
    values = links.read_queue(link.queue, link.queue_params or {})
    if link.queue in ("red", "choke"):
        levels = {name: _level(values[name]) for name in ("min_threshold", "max_threshold")}
        return spec.Red(kind=link.queue, **values | levels)
    codel = {
        "target_s": values["target"],
        "interval_s": values["interval"],
        "ecn": values["ecn"],
    }
    if link.queue == "codel":
        return spec.Codel(**codel)
    return spec.FqCodel(
        codel=spec.CodelSpec(**codel),
        quantum_bytes=int(values["quantum"]),
        flows=values["flows"],
    )


def _cohabit(read: queue_params.Cohabit, largest_rtt_s: float) -> spec.Cohabit:
    common = read.common
    of_law = common["interval_s"] == queue_params.LAW_INTERVAL
    if of_law or common["interval_s"] is None:
        common = common | {"interval_s": largest_rtt_s}
    if common["ecn"] is None:
        common = common | {"ecn": read.controller == "improved"}
    controller = read.controller_params
    if "update" in controller:
        controller = controller | {"update": _update(controller["update"])}
    return spec.Cohabit(
        controller=_CONTROLLERS[read.controller](**controller),
        estimator=_ESTIMATORS[read.estimator](**read.estimator_params),
        interval_of_law=of_law,
        **common,
    )


def _update(value: str | float) -> spec.Update:
    if isinstance(value, float):
        return spec.EachPeriod(period_s=value)
    return _UPDATES[value]


def loss_model(link: Link) -> spec.LossSpec | None:
    """Resolve the loss model of a link's forward direction."""
    if link.loss_model is None:
        return None
    values = links.read_loss(link.loss_model)
    return _LOSSES[values["kind"]](**values)


def shaper(link: Link) -> spec.ShaperSpec | None:
    """Resolve the token bucket of a link, which is in both directions."""
    if link.shaper is None:
        return None
    values = links.read_shaper(link.shaper)
    return spec.ShaperSpec(line_bps=link.rate, depth_bytes=values["depth"], timer_s=values["timer"])


def changes(
    link: Link, forward: bool, duration_s: float
) -> tuple[float, tuple[spec.LinkChange, ...]]:
    """Return a direction's rate at the start (bit/s), and its changes in order of time."""
    if link.event is None and link.rate_trace is None and link.rate_trace_reverse is None:
        return link.capacity, ()
    found: dict[float, spec.LinkChange] = {}
    for event in link.event or ():
        at_s = round(event.at, 12)
        found[at_s] = spec.LinkChange(
            at_s=at_s, rate_bps=event.rate, delay_s=event.delay, up=event.up
        )
    start_bps = link.capacity
    trace = link.rate_trace if forward else link.rate_trace_reverse
    for time_s, rate in trace.until(duration_s) if trace is not None else ():
        at_s = round(time_s, 12)
        if at_s == 0 and rate > 0:
            start_bps = rate
        else:
            found[at_s] = replace(found.get(at_s, spec.LinkChange(at_s=at_s)), rate_bps=rate)
    return start_bps, tuple(found[at_s] for at_s in sorted(found))


def reorder(link: Link, packet_bytes: int) -> spec.ReorderSpec | None:
    """Resolve the reordering of a link's forward direction."""
    if link.reorder is None:
        return None
    values = links.read_late(link.reorder)
    packet_s = packet_bytes * 8 / link.capacity
    delay_s = values.get("delay", _LATE_PACKETS * packet_s)
    return spec.ReorderSpec(share=values["share"], delay_s=delay_s)


def _level(length: Buffer) -> spec.Level:
    if length.unit == "packets":
        return spec.Packets(length.amount)
    return spec.Bytes(length.amount)
