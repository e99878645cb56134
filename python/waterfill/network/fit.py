"""Checks whether the constants of laws fit the RTTs of their flows, and proposes values that do.

The thresholds and the values were measured with four flows on one link of 10 Gbit/s or 10 Mbit/s
(tests/python/network/test_fit.py runs some of them). What the scenario sets itself is not checked.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from waterfill.contract.network import Network, ParamValue
from waterfill.scenario.units import RATE, TIME

Params = Mapping[str, Mapping[str, ParamValue | None]]


class _Paths(NamedTuple):
    """Paths of a protocol's flows: RTTs, packet size, and what a flow can have."""

    shortest_s: float
    longest_s: float
    packet_bits: float
    share_bps: float
    """Smallest capacity of a link per flow."""
    slowest_bps: float


class _Found(NamedTuple):
    """A constant that does not fit: its name, the reason, and values that fit, by name."""

    name: str
    why: str
    values: Mapping[str, str | float]
    limit: str = ""


_Rule = Callable[[Mapping[str, float], _Paths], "_Found | None"]
# A law whose time constant is more RTTs than this is slower than the flows on its path.
_SLOW = 1000


def misfits(network: Network, params: Params) -> Iterator[tuple[str, str]]:
    """Yield (key, message) for each constant that does not fit the RTTs of its law's flows.

    `params` are the parameters of the protocols in use, in SI units.
    """
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


def _paths(network: Network, protocol: str) -> _Paths | None:
    rtts_s: list[float] = []
    flows: Counter[int] = Counter()
    for flow in network.flows:
        if flow.protocol == protocol:
            rtts_s.append(flow.base_rtt_s)
            flows.update(dict.fromkeys(flow.forward, flow.count))
    for source in network.traffic:
        if source.flows is not None and source.flows.flow.protocol == protocol:
            for way in source.flows.ways:
                rtts_s.append(way.base_rtt_s)
                flows.update(dict.fromkeys(set(way.forward) - set(flows), 1))
    rates = {link: network.links[link].rate_bps for link in flows}
    rates = {link: rate for link, rate in rates.items() if rate > 0}
    if not rates or min(rtts_s) <= 0:
        return None
    share_bps = min(rate / flows[link] for link, rate in rates.items())
    packet_bits = 8.0 * network.packet_bytes
    return _Paths(min(rtts_s), max(rtts_s), packet_bits, share_bps, min(rates.values()))


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
        t_s, longest_s, shortest_s = values["t"], paths.longest_s, paths.shortest_s
        limit = ""
        if longest_s > ratio * t_s:
            # Prices up to that of a thousandth of a link must stay below 32 s.
            most_s = 31.0 / math.log(1000 * values["x_max"] / paths.slowest_bps)
            fits_s = min(0.6 * longest_s, most_s)
            why = f"{_time(t_s)} is short for an RTT of {_time(longest_s)}, so rates settle slowly"
            if fits_s == most_s:
                limit = ", the longest that prices below 32 s allow"
        elif t_s > _SLOW * shortest_s:
            fits_s = max(100 * shortest_s, 2 * values.get("dt_p", 0.0))
            why = f"{_time(t_s)} is {t_s / shortest_s:.0f} RTTs of {_time(shortest_s)}"
        else:
            return None
        found: dict[str, str | float] = {"t": _time(fits_s)}
        if "t_0" in values:
            found["t_0"] = _time(max(fits_s / 3, 2 * values["dt_p"]))
        return _Found("t", why, found, limit)

    return rule


def _lowest_rate(values: Mapping[str, float], paths: _Paths) -> _Found | None:
    """Check RCP's minimum rate, at which a source must still receive higher rates."""
    shortest_s, r_min_bps = paths.shortest_s, values["r_min"]
    if r_min_bps * shortest_s > 1.5e-3 * paths.packet_bits:
        return None
    every_s = paths.packet_bits / r_min_bps
    why = (
        f"at {RATE.format(r_min_bps)} a source sends one packet in {every_s / shortest_s:.0f} RTTs "
        f"of {_time(shortest_s)} and may stay there"
    )
    fits_bps = min(paths.packet_bits / (10 * shortest_s), paths.share_bps / 10)
    return _Found("r_min", why, {"r_min": RATE.format(float(f"{fits_bps:.2g}"))})


def _first_rate(values: Mapping[str, float], paths: _Paths) -> _Found | None:
    """Check AECP's first rate, from which a source grows by a factor e per second."""
    shortest_s, x_0 = paths.shortest_s, values["x_0"]
    if x_0 * shortest_s >= 1e-3:
        return None
    why = f"{x_0:g}/s is one packet in {1 / (x_0 * shortest_s):.0f} RTTs of {_time(shortest_s)}"
    fits = min(1 / shortest_s, paths.share_bps / paths.packet_bits)
    return _Found("x_0", why, {"x_0": float(f"{fits:.2g}")})


def _gain(values: Mapping[str, float], paths: _Paths) -> _Found | None:
    """Check AECP's speeds, which are per second and must be slower than the RTT."""
    longest_s, alpha = paths.longest_s, values["alpha"]
    if alpha * longest_s <= 1.5:
        return None
    why = f"{alpha:g} per second is {alpha * longest_s:.3g} per RTT of {_time(longest_s)}"
    speeds = {"alpha": 0.5 / longest_s, "beta": 0.2 / longest_s}
    return _Found("alpha", why, {**speeds, "t": _time(2 * longest_s)})


def _measuring(values: Mapping[str, float], paths: _Paths) -> _Found | None:
    """Check that JetMax's measurement interval is not too long for the shortest RTT."""
    interval_s, shortest_s = values["interval"], paths.shortest_s
    if interval_s <= _SLOW * shortest_s:
        return None
    fits_s = max(100 * shortest_s, 8 * paths.packet_bits / paths.slowest_bps)
    why = f"{_time(interval_s)} is {interval_s / shortest_s:.0f} RTTs of {_time(shortest_s)}"
    return _Found("interval", why, {"interval": _time(fits_s)})


def _load_interval(values: Mapping[str, float], paths: _Paths) -> _Found | None:
    """Check VCP's interval of load measurements, which must cover an RTT."""
    interval_s, longest_s, shortest_s = values["t_rho"], paths.longest_s, paths.shortest_s
    if longest_s > 2 * interval_s:
        fits_s = longest_s
        why = f"{_time(interval_s)} is shorter than the RTT of {_time(longest_s)}"
    elif interval_s > _SLOW * shortest_s:
        fits_s = 100 * shortest_s
        why = f"{_time(interval_s)} is {interval_s / shortest_s:.0f} RTTs of {_time(shortest_s)}"
    else:
        return None
    values_s = {"t_rho": fits_s, "t_d": fits_s, "t_q": fits_s / 20}
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
    "rcp": (_lowest_rate,),
    "aecp": (_first_rate, _gain),
    "jetmax": (_measuring,),
    "vcp": (_load_interval,),
    "abc": (_capacity_window,),
}
