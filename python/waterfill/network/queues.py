"""Specifications of queues other than drop-tail, resolved from a scenario's keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from waterfill.contract import elements as spec
from waterfill.network.links import level
from waterfill.scenario import links, queue_params
from waterfill.scenario.document import Link

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


def resolve(link: Link, largest_rtt_s: float) -> spec.QueueSpec:
    """Resolve the queue of a link. `largest_rtt_s` is the largest base RTT of the link's flows."""
    if link.queue == "cohabit":
        return _cohabit(queue_params.read(link.queue_params or {}), largest_rtt_s)
    values = links.read_queue(link.queue, link.queue_params or {})
    if link.queue in ("red", "choke"):
        levels = {name: level(values[name]) for name in ("min_threshold", "max_threshold")}
        return spec.Red(kind=link.queue, **values | levels)
    if link.queue in ("pie", "fq_pie"):
        return _pie(link.queue, values)
    if link.queue == "dualpi2":
        times = {f"{name}_s": values.pop(name) for name in links.DUALPI2_TIMES}
        return spec.DualPi2(**times, **values)
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


def _pie(kind: str, values: Mapping[str, Any]) -> spec.Pie | spec.FqPie:
    units = {"target": "_s", "update": "_s", "alpha": "_hz", "beta": "_hz", "max_burst": "_s"}
    pie = {f"{name}{unit}": values[name] for name, unit in units.items()}
    pie |= {"ecn": values["ecn"], "mark_below": values["mark_below"]}
    if kind == "pie":
        return spec.Pie(**pie)
    return spec.FqPie(
        pie=spec.PieSpec(**pie), quantum_bytes=int(values["quantum"]), flows=values["flows"]
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
