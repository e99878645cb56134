"""Links that follow time on linux: the token bucket's rate is changed at its times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from waterfill.contract.network import Network
from waterfill.testbed import daemon
from waterfill.testbed.plan import ETHERNET_BYTES, Plan

if TYPE_CHECKING:
    from waterfill.testbed.topology import Topology


def refuse(scenario: Any, resolved: Network) -> None:
    """Raise InputError for a change that the testbed cannot make.

    A daemon's router keeps the rate that it was given, so a loaded law would see a wrong capacity.
    """
    loaded = daemon.laws()
    for index, link in enumerate(scenario.link):
        key = scenario.key("link", index)
        for number, event in enumerate(link.event or ()):
            for name in ("delay", "up"):
                if getattr(event, name) is not None:
                    message = "expected none on linux, where only the rate changes"
                    raise scenario.error(f"{key}.event[{number}].{name}", message)
        changing = {
            i
            for i, one in enumerate(resolved.links)
            if one.changes and one.name.removesuffix(":rev") == link.name
        }
        if any(change.rate_bps == 0 for i in changing for change in resolved.links[i].changes):
            message = "expected rates above zero on linux, where a bucket cannot stand still"
            raise scenario.error(f"{key}.rate_trace", message)
        for flow in resolved.flows:
            if flow.protocol in loaded and changing.intersection(flow.forward):
                name = "event" if link.event else "rate_trace"
                message = f"expected none on linux with {flow.protocol}, whose router keeps a rate"
                raise scenario.error(f"{key}.{name}", message)


def actions(
    plan: Plan, resolved: Network, topology: Topology
) -> Iterator[tuple[float, Callable[[], None]]]:
    """Yield (time in s, what to do) for every change of a rate."""
    for port, shaper in plan.shapers():
        for change in resolved.links[shaper.direction].changes:

            def act(port: Any = port, shaper: Any = shaper, rate: Any = change.rate_bps) -> None:
                topology.routes[port.namespace].shape(
                    topology.index(port), rate_bps=rate, burst_bytes=shaper.burst_bytes,
                    limit_bytes=shaper.limit_bytes, overhead_bytes=-ETHERNET_BYTES,
                    limit_packets=shaper.limit_packets, change=True,
                )  # fmt: skip

            yield change.at_s, act
