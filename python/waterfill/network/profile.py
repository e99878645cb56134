"""The profile of a scenario: values of the constants that the scenario does not set.

The rules are those of `constants`. `profile = "wan"` leaves every default as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from waterfill.contract.droptail import Bytes, Droptail
from waterfill.contract.network import LinkSpec, Network, ParamValue
from waterfill.network import constants
from waterfill.network.constants import HOSTS, Constant, Scale
from waterfill.network.graph import Graph, Route
from waterfill.network.protocols import Protocols
from waterfill.scenario.document import FOLLOWS_PROFILE, Link, Scenario
from waterfill.scenario.units import TIME, VOLUME, Buffer

# A run has at least this many samples.
_SAMPLES = 20


def applied(
    scenario: Scenario,
    graph: Graph,
    routes: Iterable[Route],
    params: Mapping[str, Mapping[str, ParamValue]],
    backend: str,
) -> tuple[Scenario, dict[str, dict[str, ParamValue]]]:
    """Return the scenario and the parameters (SI units) with the profile's values.

    `routes` are those of all flows. The fluid model has no marks, so its links get no `mark_at`.
    """
    used = {id(route): route for route in routes}.values()
    crossed = {i for route in used for i in (*route.forward, *route.reverse)}
    rates_bps = [graph.directions[i].link.capacity for i in crossed]
    rtt_s = max((route.base_rtt_s for route in used), default=0.0)
    if rtt_s <= 0 or max(rates_bps, default=0.0) <= 0:
        why = '"datacenter" needs a flow with a base RTT above zero, whose multiples it sets'
        raise scenario.error("profile", why, "give the links a delay")
    links = max(len(route.forward) for route in used)
    scale = Scale(rtt_s, max(rates_bps), 8 * scenario.packet_size, links)
    values: dict[str, Any] = {
        key: HOSTS[key].value(scale)
        for key in FOLLOWS_PROFILE
        if key not in scenario.model_fields_set
    }
    if "sample" in values:
        values["sample"] = _sample_s(scale.rtt_s, scenario.duration)
    marks = backend != "fluid"
    values["link"] = [_link(link, scale, marks) for link in scenario.link]
    found = {law: dict(given) for law, given in params.items()}
    for law in sorted(scenario.protocols() & constants.LAWS.keys()):
        given = found.setdefault(law, {})
        given.update(constants.in_force(law, given, scale))
    return scenario.model_copy(update=values), found


def _sample_s(rtt_s: float, duration_s: float) -> float:
    """Return the sampling interval (s) of a fabric with this RTT."""
    sample = HOSTS["sample"].value(Scale(rtt_s, 1.0, 1.0))
    return min(float(sample), float(f"{duration_s / _SAMPLES:.3g}"))


def asked_sample_s(scenario: Scenario, network: Network) -> float:
    """Return the sampling interval (s) of the scenario, or that of its profile."""
    if scenario.profile == "wan" or "sample" in scenario.model_fields_set:
        return scenario.sample_s
    scale = constants.scale_of(network)
    if scale is None:
        return network.sample_s
    sample_s = _sample_s(scale.rtt_s, scenario.duration)
    return scenario.model_copy(update={"sample": sample_s}).sample_s


def _link(link: Link, scale: Scale, marks: bool) -> Link:
    own = scale._replace(rate_bps=link.capacity)
    values: dict[str, Any] = {}
    if "buffer" not in link.model_fields_set:
        values["buffer"] = _volume(HOSTS["link.buffer"], own)
    if marks and link.mark_at is None and link.queue == "droptail":
        values["mark_at"] = _volume(HOSTS["link.mark_at"], own)
    return link.model_copy(update=values) if values else link


def _volume(constant: Constant, scale: Scale) -> Buffer:
    return Buffer(float(round(float(constant.value(scale)))), "bytes")


def rows(
    scenario: Scenario,
    network: Network,
    params: Mapping[str, Mapping[str, ParamValue | None]],
    known: Protocols,
) -> list[dict[str, Any]]:
    """Return each constant in force with its origin, its rule in a fabric and the rule's reason.

    `params` are all parameters of the protocols in use, in SI units. Each row has key, value, from
    (set, datacenter or default), rule, ground and misfit (the limit that it exceeds, or None).
    """
    scale = constants.scale_of(network)
    if scale is None:
        return []
    fabric = scenario.profile != "wan"
    found = [
        _row(constant, key, value, is_set, fabric)
        for key, constant, value, is_set in _of_hosts(scenario, network)
    ]
    for law, values in params.items():
        own = scenario.params.get(law, {})
        misfits = {one.name: limit for one, limit in constants.exceeded(law, values, scale)}
        for one in constants.LAWS.get(law, ()):
            value = values.get(one.name)
            if one.carriage not in ("", values.get("carriage")):
                continue  # without effect
            if value is not None:
                text = constants.written(known[law].param(one.name).unit, value)
                row = _row(one, f"params.{law}.{one.name}", text, one.name in own, fabric)
                found.append(row | {"misfit": misfits.get(one.name)})
    return found


def _of_hosts(scenario: Scenario, network: Network) -> Iterator[tuple[str, Constant, str, bool]]:
    """Yield key, constant, value and whether it is set, of each constant of hosts and links."""
    values_s = (network.sample_s, network.rto_min_s, network.syn_rto_s)
    for key, value_s in zip(FOLLOWS_PROFILE, values_s, strict=True):
        yield key, HOSTS[key], TIME.format(value_s), key in scenario.model_fields_set
    for key in ("buffer", "mark_at"):
        sizes = {_level(link, key) for link in network.links}
        is_set = all(key in link.model_fields_set for link in scenario.link)
        yield f"link.*.{key}", HOSTS[f"link.{key}"], ", ".join(sorted(sizes)), is_set


def _level(link: LinkSpec, key: str) -> str:
    if key == "buffer":
        is_bytes = link.buffer.unit == "bytes"
        return VOLUME.format(link.buffer.size) if is_bytes else f"{link.buffer.size} packets"
    level = link.queue.mark_at if isinstance(link.queue, Droptail) else None
    if level is None:
        return "none"
    if isinstance(level, Bytes):
        return VOLUME.format(level.bytes)
    return f"{level.packets:g} packets"


def _row(constant: Constant, key: str, value: str, is_set: bool, fabric: bool) -> dict[str, Any]:
    return {
        "key": key,
        "value": value,
        "from": "set" if is_set else "datacenter" if fabric else "default",
        "rule": constant.text,
        "ground": constant.ground,
        "misfit": None,
    }
