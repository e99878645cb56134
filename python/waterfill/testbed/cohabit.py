"""Support for `queue = "cohabit"` on linux: the kernel module's limits and the daemon's options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from waterfill.contract import elements as spec
from waterfill.contract.network import Network
from waterfill.errors import shown
from waterfill.runs.result import Document
from waterfill.testbed.answer import LawSample

# The kernel's Bloom filter (crates/waterfill-laws/kernel/cohabit.h).
_LEVELS, _BINS = 4, 4096
_UPDATES = {"all": "packet", "explicit": "explicit-packet", "tcp": "tcp-packet"}
# The daemon's names of the module's columns.
COLUMNS: Mapping[str, str] = {
    "cohabit_drop_probability": "drop_probability",
    "cohabit_explicit_flows": "explicit_flows",
    "cohabit_tcp_flows": "tcp_flows",
    "cohabit_drops": "dropped",
}


def refuse(scenario: Any, resolved: Network) -> None:
    """Raise InputError for keys of a link's queue that the kernel's module lacks."""
    for link in resolved.links:
        if not isinstance(link.queue, spec.Cohabit):
            continue
        name = link.name.removesuffix(":rev")
        index = next(i for i, one in enumerate(scenario.link) if one.name == name)
        for key, wanted, got in _lacks(link.queue):
            raise scenario.error(
                f"{scenario.key('link', index)}.queue_params.{key}",
                f"must be {wanted} on linux, got {shown(got)}",
            )


def _lacks(queue: spec.Cohabit) -> list[tuple[str, str, object]]:
    """Return each key whose value the kernel does not support: the key, its allowed values, and its
    value.
    """
    found: list[tuple[str, str, object]] = []
    controller, estimator = queue.controller, queue.estimator
    if isinstance(controller, spec.Separate):
        found.append(("separate", "false", True))
    elif isinstance(controller, spec.Off):
        found.append(("controller", '"improved" or "paper"', "off"))
    elif isinstance(controller, spec.Paper) and isinstance(controller.update, spec.EachPeriod):
        wanted = '"interval", "packet", "explicit-packet" or "tcp-packet"'
        found.append(("update", wanted, f"{controller.update.period_s:g} s"))
    if not isinstance(estimator, spec.Nred):
        found.append(("estimator", '"nred"', estimator.kind))
    else:
        for key, has, value in (
            ("levels", _LEVELS, estimator.levels),
            ("bins", _BINS, estimator.bins),
            ("hash", "flow", estimator.hash),
        ):
            if value != has:
                found.append((key, shown(has), value))
    if queue.inspect != 1:
        found.append(("inspect", "1", queue.inspect))
    if queue.interval_of_law:
        found.append(("interval", "a time", "xcp"))
    if queue.count_drops != "never":
        found.append(("count_drops", '"never"', queue.count_drops))
    return found


def dropped(samples: Sequence[LawSample] | None) -> int:
    """Return the number of packets that all cohabitation modules of a run dropped."""
    links = samples[-1].links.values() if samples else ()
    states = [state.cohabit for laws in links for state in laws.values() if state.cohabit]
    return sum(state.dropped for state in states)


def arguments(queue: spec.QueueSpec) -> tuple[str, ...]:
    """Return the options of `waterfilld router` for a cohabit queue, or an empty tuple for any
    other queue.
    """
    if not isinstance(queue, spec.Cohabit) or not isinstance(queue.estimator, spec.Nred):
        return ()
    controller = queue.controller
    given: Document = {
        "interval": _time(queue.interval_s),
        "period": _time(queue.estimator.period_s),
        "explicit_weight": f"{queue.explicit_weight:.9g}",
        "ecn": "true" if queue.ecn else "false",
    }
    if isinstance(controller, spec.Improved):
        given |= {key: f"{getattr(controller, key):.9g}"
                  for key in ("aim", "integral", "proportional")}  # fmt: skip
        given["depth"] = _time(controller.depth_s)
    elif isinstance(controller, spec.Paper):
        given |= {key: f"{getattr(controller, key):.12g}"
                  for key in ("initial", "decrease", "increase", "threshold")}  # fmt: skip
        update = controller.update
        given["update"] = (
            _UPDATES[update.packets] if isinstance(update, spec.EachPacket) else "interval"
        )
    found = ["--cohabit", controller.kind]
    for key, value in given.items():
        found += ["--cohabit-set", f"{key}={value}"]
    return tuple(found)


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.0f}us"
