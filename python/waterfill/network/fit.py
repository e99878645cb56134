"""Checks whether the constants of laws fit the RTTs of their flows, and proposes values that do.

Long RTTs have rules of their own here: thresholds and values were measured with four flows on one
link (tests/python/network/test_fit.py runs some of them), and what the scenario sets itself is not
checked. In a fabric, which has RTTs below 1 ms, `constants` has the limits of every constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from waterfill.contract.droptail import Bytes, Droptail
from waterfill.contract.network import Network, ParamValue
from waterfill.network import constants
from waterfill.network.constants import HOSTS, Scale
from waterfill.scenario.units import TIME, VOLUME

Params = Mapping[str, Mapping[str, ParamValue | None]]


class _Paths(NamedTuple):
    """Paths of a protocol's flows: the longest RTT and the slowest link."""

    longest_s: float
    slowest_bps: float


class _Found(NamedTuple):
    """A constant that does not fit: its name, the reason, and values that fit, by name."""

    name: str
    why: str
    values: Mapping[str, str | float]
    limit: str = ""


UnitOf = Callable[[str, str], str]
_Rule = Callable[[Mapping[str, float], _Paths], "_Found | None"]
# Networks with an RTT below this are fabrics.
_FABRIC_S = 1e-3
# Laws that need marks from the links.
_MARKED = frozenset({"dcqcn", "dctcp", "prague"})


def misfits(network: Network, params: Params, unit_of: UnitOf) -> Iterator[tuple[str, str]]:
    """Yield (key, message) for each constant that does not fit the RTTs of its law's flows.

    `params` are the parameters of the protocols in use, in SI units; `unit_of` names the unit of a
    law's parameter.
    """
    scale = constants.scale_of(network)
    if scale is not None and scale.rtt_s < _FABRIC_S:
        yield from _of_fabric(network, params, unit_of, scale)
        return
    for protocol in network.protocols:
        rules = _RULES.get(protocol)
        paths = None if rules is None else _paths(network, protocol)
        if rules is None or paths is None:
            continue
        numbers = {
            name: float(value)
            for name, value in params[protocol].items()
            if isinstance(value, (int, float))
        }
        for rule in rules:
            found = rule(numbers, paths)
            # The scenario's own choice of one of them is a choice of the others too.
            if found is not None and not set(found.values) & set(network.params.get(protocol, {})):
                *first, last = (f"{n} = {_written(v)}" for n, v in found.values.items())
                values = " and ".join(filter(None, (", ".join(first), last)))
                yield f"params.{protocol}.{found.name}", f"{found.why}; set {values}{found.limit}"


def _of_fabric(
    network: Network, params: Params, unit_of: UnitOf, whole: Scale
) -> Iterator[tuple[str, str]]:
    """Yield (key, message) for the constants that exceed a limit of `constants`: one message for
    each law, and one for each key of hosts and links.
    """
    for law in network.protocols:
        scale = constants.scale_of(network, law)
        if scale is None:
            continue
        found = list(constants.exceeded(law, params[law], scale))
        if not found:
            continue
        texts = [
            (one.name, constants.written(unit, float(value)), limit, one.value(whole), unit)
            for one, limit in found
            if isinstance(value := params[law][one.name], (int, float))
            for unit in (unit_of(law, one.name),)
        ]
        name, value, limit, *_ = texts[0]
        others = "".join(f", {n} = {v} {how}" for n, v, how, *_ in texts[1:])
        values = ", ".join(
            f"{n} = {constants.written(unit, fits)}" for n, _, _, fits, unit in texts
        )
        yield (
            f"params.{law}.{name}",
            f"{value} is {limit} of {_time(scale.rtt_s)}{others}; "
            f'without it, profile = "datacenter" sets {values}',
        )
    yield from _of_hosts(network, whole)


def samples(network: Network) -> Iterator[tuple[str, str]]:
    """Yield (key, message) if a fabric's run has fewer than 20 samples."""
    scale, run_s = constants.scale_of(network), network.duration_s
    if scale is not None and scale.rtt_s < _FABRIC_S and network.sample_s > 1.001 * run_s / 20:
        fits = _time(min(scale.rtt_s, run_s / 20))
        why = f"{_time(network.sample_s)} is above a twentieth of the run's {_time(run_s)}"
        yield "sample", f'{why}; without it, profile = "datacenter" sets {fits}'


def _of_hosts(network: Network, scale: Scale) -> Iterator[tuple[str, str]]:
    run_s = network.duration_s
    advice = 'without it, profile = "datacenter" sets '
    timeouts_s = {"rto_min": network.rto_min_s, "syn_rto": network.syn_rto_s}
    for key, value_s in timeouts_s.items():
        if value_s > run_s:
            fits = _time(float(HOSTS[key].value(scale)))
            why = f"{_time(value_s)} is above the run's {_time(run_s)}"
            remedy = f"set {key} below that" if fits == _time(value_s) else f"{advice}{fits}"
            yield key, f"{why}, so a flow that waits for it stays unfinished; {remedy}"
    marking = False
    # Of the links that share a switch's buffer: the largest queue of one link alone.
    shared = {
        output: math.inf if one.pfc else one.buffer_bytes * one.alpha / (1 + one.alpha)
        for one in network.switches
        for output in one.outputs
    }
    for index, link in enumerate(network.links):
        level = link.queue.mark_at if isinstance(link.queue, Droptail) else None
        marking |= level is not None or not isinstance(link.queue, Droptail)
        size = link.buffer.size * (1 if link.buffer.unit == "bytes" else network.packet_bytes)
        if level is not None:
            bytes_ = (
                level.bytes if isinstance(level, Bytes) else level.packets * network.packet_bytes
            )
            key = "switch.buffer" if index in shared else f"link.{link.name}.buffer"
            longest = shared.get(index, float(size))
            if longest < bytes_:
                least = f"{VOLUME.format(round(longest))} is below mark_at, {VOLUME.format(bytes_)}"
                why = f"a single queue of at most {least}" if index in shared else least
                yield key, f"{why}, so the queue drops and never marks"
                break
    laws = _MARKED & set(network.protocols)
    if laws and not marking:
        why = f"no link marks packets, so {' and '.join(sorted(laws))} sees drops only"
        fits = VOLUME.format(round(float(HOSTS["link.mark_at"].value(scale))))
        yield "link.mark_at", f'{why}; set mark_at = "{fits}" on the links'


def _paths(network: Network, protocol: str) -> _Paths | None:
    rtts_s: list[float] = []
    links: set[int] = set()
    for flow in network.flows:
        if flow.protocol == protocol:
            rtts_s.append(flow.base_rtt_s)
            links.update(flow.forward)
    for source in network.traffic:
        if source.flows is not None and source.flows.flow.protocol == protocol:
            for way in source.flows.ways:
                rtts_s.append(way.base_rtt_s)
                links.update(way.forward)
    rates_bps = [rate for link in links if (rate := network.links[link].rate_bps) > 0]
    return _Paths(max(rtts_s), min(rates_bps)) if rates_bps else None


def _written(value: str | float) -> str:
    """Return a value as in a scenario file."""
    return f'"{value}"' if isinstance(value, str) else f"{float(f'{value:.3g}'):.15g}"


def _time(seconds: float) -> str:
    return TIME.format(float(f"{seconds:.3g}"))


def _interval(values: Mapping[str, float], paths: _Paths) -> _Found | None:
    """Check XCP's longest control interval, which must not be shorter than the RTT."""
    longest_s, limit_s = paths.longest_s, values["max_interval"]
    if longest_s <= 1.5 * limit_s:
        return None
    why = f"{_time(limit_s)} is shorter than the RTT of {_time(longest_s)}, so routers overreact"
    return _Found("max_interval", why, {"max_interval": _time(longest_s)})


def _speed(ratio: float) -> _Rule:
    """Return the rule of MaxNet's T, which must be at least the RTT / `ratio`."""

    def rule(values: Mapping[str, float], paths: _Paths) -> _Found | None:
        t_s, longest_s = values["t"], paths.longest_s
        if longest_s <= ratio * t_s:
            return None
        # Prices up to that of a thousandth of a link must stay below 32 s.
        most_s = 31.0 / math.log(1000 * values["x_max"] / paths.slowest_bps)
        fits_s = min(0.6 * longest_s, most_s)
        why = f"{_time(t_s)} is short for an RTT of {_time(longest_s)}, so rates settle slowly"
        limit = ", the longest that prices below 32 s allow" if fits_s == most_s else ""
        found: dict[str, str | float] = {"t": _time(fits_s)}
        if "t_0" in values:
            found["t_0"] = _time(max(fits_s / 3, 2 * values["dt_p"]))
        return _Found("t", why, found, limit)

    return rule


def _gain(values: Mapping[str, float], paths: _Paths) -> _Found | None:
    """Check AECP's speeds, which are per second and must be slower than the RTT."""
    longest_s, alpha = paths.longest_s, values["alpha"]
    if alpha * longest_s <= 1.5:
        return None
    why = f"{alpha:g} per second is {alpha * longest_s:.3g} per RTT of {_time(longest_s)}"
    speeds = {"alpha": 0.5 / longest_s, "beta": 0.2 / longest_s}
    return _Found("alpha", why, {**speeds, "t": _time(2 * longest_s)})


def _load_interval(values: Mapping[str, float], paths: _Paths) -> _Found | None:
    """Check VCP's interval of load measurements, which must cover an RTT."""
    interval_s, longest_s = values["t_rho"], paths.longest_s
    if longest_s <= 2 * interval_s:
        return None
    why = f"{_time(interval_s)} is shorter than the RTT of {_time(longest_s)}"
    values_s = {"t_rho": longest_s, "t_d": longest_s, "t_q": longest_s / 20}
    return _Found("t_rho", why, {name: _time(value_s) for name, value_s in values_s.items()})


def _capacity_window(values: Mapping[str, float], paths: _Paths) -> _Found | None:
    """Check ABC's window of departures; one much shorter than the RTT sees single bursts."""
    window_s, longest_s = values["window"], paths.longest_s
    if longest_s <= 40 * window_s:
        return None
    why = f"{_time(window_s)} is short for an RTT of {_time(longest_s)}"
    return _Found("window", why, dict.fromkeys(("window", "delta"), _time(longest_s)))


_RULES: Mapping[str, tuple[_Rule, ...]] = {
    "xcp": (_interval,),
    "ixcp": (_interval,),
    "pxcp": (_interval,),
    "maxnet": (_speed(4),),
    "maxnet2006": (_speed(20),),
    "aecp": (_gain,),
    "vcp": (_load_interval,),
    "abc": (_capacity_window,),
}
