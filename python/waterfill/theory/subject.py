"""What a `theory` command is asked about: a protocol by itself, or a scenario's network."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from waterfill.contract.network import Network, ParamValue
from waterfill.errors import InputError, nearest
from waterfill.network import maxmin, protocols, resolve
from waterfill.scenario.document import Scenario
from waterfill.scenario.loading import from_dict, load
from waterfill.scenario.units import SPAN

# A scenario for a protocol by itself: it only carries the parameters that --set gives.
_CARRIER: Mapping[str, Any] = {
    "name": "theory",
    "duration": "1 s",
    "link": [{"name": "link", "from": "a", "to": "b", "rate": "1 Gbit/s", "delay": "1 ms"}],
    "flow": [{"name": "flow", "path": ["link"]}],
}


class Subject(NamedTuple):
    """A protocol, its parameters in SI units, and a core network, None for a law by itself."""

    protocol: str
    params: dict[str, ParamValue | None]
    network: Network | None
    scenario: Scenario | None


def of(what: str, sets: Sequence[str], able: Sequence[str], protocol: str | None = None) -> Subject:
    """The subject that a command names: a protocol of `able`, or a scenario's file.

    Raises InputError when it is neither, or when a parameter is wrong.
    """
    if what in able:
        for assignment in sets:
            if not assignment.startswith(f"params.{what}."):
                key = assignment.partition("=")[0]
                expected = f"expected a parameter such as params.{what}.…, or a scenario's file"
                raise InputError("command line", key, expected)
        carrier = from_dict(_CARRIER, "command line", [f"protocol={what}", *sets])
        return _subject(carrier, what, None)
    if not what.endswith(".toml") and not Path(what).exists():
        known = nearest(what, able)
        raise InputError("command line", what, f"expected a protocol or a scenario's file{known}")
    chosen = [f"protocol={protocol}", *sets] if protocol is not None else list(sets)
    scenario = load(what, chosen)
    core = resolve.to_core(scenario, protocols.load())
    spoken = list(dict.fromkeys(flow.protocol for flow in core.flows))
    if len(spoken) != 1 or spoken[0] not in able:
        raise scenario.error(
            "protocol",
            f"expected flows of one protocol of {', '.join(able)}, got {', '.join(spoken)}",
        )
    return _subject(scenario, spoken[0], core)


def _subject(scenario: Scenario, protocol: str, core: Network | None) -> Subject:
    known = protocols.load()
    given = resolve.set_params(scenario, known)
    try:
        protocols.targets(given)  # the core checks ranges and combinations
    except ValueError as error:
        raise scenario.core_error(error) from None
    params = protocols.with_defaults([protocol], given, known)[protocol]
    return Subject(protocol, params, core, None if core is None else scenario)


def time_s(option: str, text: str) -> float:
    """A time above zero of an option; InputError otherwise."""
    try:
        return SPAN.parse(text)
    except ValueError as error:
        raise InputError("command line", option, str(error)) from None


def rtts_s(core: Network) -> list[float]:
    """The different base RTTs of a network's flows, in seconds, smallest first."""
    return sorted({flow.base_rtt_s for flow in core.flows})


class Bound(NamedTuple):
    """A class of flows at rest: its rate (bit/s), RTT (s), number of flows, links, bottleneck."""

    rate_bps: float
    rtt_s: float
    number: int
    path: tuple[int, ...]
    bottleneck: int | None


def at_rest(
    core: Network, targets: Mapping[str, float], *, acknowledgements: bool = False
) -> list[Bound]:
    """The max-min allocation when every flow is there, an entry of the scenario each.

    Capacity is target × rate less the other traffic; with `acknowledgements` less those too, since
    a router counts them as load.
    """
    classes, of_flow = maxmin.classes_of(core)
    counts = [0] * len(classes)
    for c in of_flow:
        counts[c] += 1
    capacity = [
        target * link.rate_bps
        for target, link in zip(maxmin.link_targets(core, targets), core.links, strict=True)
    ]
    for source in core.traffic:
        for index in source.path:
            capacity[index] -= maxmin.offered_bps(source)
    firsts = list(itertools.accumulate((flow.count for flow in core.flows), initial=0))[:-1]
    kinds = [of_flow[first] for first in firsts]
    shares = maxmin.solve(capacity, classes, counts)
    # They are a few per cent of the rates they depend on: a few rounds settle that.
    for _ in range(20 if acknowledgements else 0):
        load = maxmin.acknowledgements_bps(core, [_rate(shares[c]) for c in kinds])
        left = [c - a for c, a in zip(capacity, load, strict=True)]
        shares = maxmin.solve(left, classes, counts)
    found = []
    for flow, c in zip(core.flows, kinds, strict=True):
        share = shares[c]
        bottleneck = None if share is None else share.bottleneck
        found.append(Bound(_rate(share), flow.base_rtt_s, flow.count, flow.forward, bottleneck))
    return found


def _rate(share: maxmin.Share | None) -> float:
    return 0.0 if share is None else share.rate_bps


def link_names(core: Network, links: Iterable[int | None]) -> list[str]:
    """Names of links of a core network; "demand" for None."""
    return ["demand" if i is None else core.links[i].name for i in links]
