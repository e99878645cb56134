"""Links that change over time on linux: scheduled changes of queues and routers.

The token bucket's rate is changed in place, and a link that is down has a queue that drops all. A
law's routers get the rate from their daemon, which also lets them begin anew. Delays change in the
delay line, which has the whole schedule from the start and goes by the packets' timestamps
(`plan`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from waterfill.contract.elements import Cohabit
from waterfill.contract.network import LinkChange, LinkSpec, Network
from waterfill.testbed.answer import ChangeMade
from waterfill.testbed.plan import ETHERNET_BYTES, Plan, Port, Shaper

if TYPE_CHECKING:
    from waterfill.testbed.daemon import Laws
    from waterfill.testbed.topology import Topology

# Changing a queue and its routers takes some tenths of a millisecond of the sampler's time.
MIN_BETWEEN_S = 0.01

_NOT_IN_KERNEL = {"clock": "whose laws read CLOCK_MONOTONIC, which never jumps"}


def refuse(scenario: Any, resolved: Network) -> None:
    """Raise InputError for a link change that the testbed cannot make."""
    directions: dict[str, list[LinkSpec]] = {}
    for one in resolved.links:
        directions.setdefault(one.name.removesuffix(":rev"), []).append(one)
    for index, link in enumerate(scenario.link):
        key = scenario.key("link", index)
        for number, fault in enumerate(link.fault or ()):
            if fault.kind in _NOT_IN_KERNEL:
                at = f"{key}.fault[{number}].kind"
                raise scenario.error(at, f"not possible on linux, {_NOT_IN_KERNEL[fault.kind]}")
        trace = f"{key}.{'rate_trace' if link.rate_trace else 'rate_trace_reverse'}"
        for one in directions[link.name]:
            rates = [change.rate_bps for change in one.changes if change.rate_bps is not None]
            if 0 in rates:
                message = "rates must be above zero on linux, where a bucket cannot stand still"
                raise scenario.error(trace, message)
            if rates and isinstance(one.queue, Cohabit):
                message = "not possible on linux with cohabit, whose measurements would start again"
                raise scenario.error(f"{key}.event" if link.event else trace, message)
            times = [change.at_s for change in one.changes]
            least_s = min((b - a for a, b in itertools.pairwise(times)), default=MIN_BETWEEN_S)
            if least_s < MIN_BETWEEN_S * (1 - 1e-9):
                if not link.rate_trace and not link.rate_trace_reverse:
                    trace = f"{key}.{'event' if link.event else 'delay_trace'}"
                raise scenario.error(
                    trace,
                    f"changes must be at least {MIN_BETWEEN_S * 1e3:g} ms apart on linux, "
                    f"got {least_s * 1e3:g} ms",
                )


class Variation:
    """The changes of a run's links, with the lateness of each."""

    def __init__(
        self, plan: Plan, resolved: Network, topology: Topology, laws: Laws | None
    ) -> None:
        """Schedule the changes. `laws` are the run's daemons, or None without an explicit law."""
        self._plan, self._resolved, self._topology, self._laws = plan, resolved, topology, laws
        self._made: list[ChangeMade] = []
        self._down: set[int] = set()

    def actions(self, now_s: Callable[[], float]) -> Iterator[tuple[float, Callable[[], None]]]:
        """Yield (time in s, action) for every change. `now_s` returns the run's current time."""
        for port, shaper in self._plan.shapers():
            for change in self._resolved.links[shaper.direction].changes:
                if change.rate_bps is None and change.up is None and not change.restart:
                    continue

                def act(
                    port: Port = port, shaper: Shaper = shaper, change: LinkChange = change
                ) -> None:
                    self._apply(port, shaper, change)
                    late_s = now_s() - change.at_s
                    made = ChangeMade(at_s=change.at_s, late_s=late_s)
                    self._made.append(made)

                yield change.at_s, act

    def _apply(self, port: Port, shaper: Shaper, change: LinkChange) -> None:
        route, index = self._topology.routes[port.namespace], self._topology.index(port)
        if change.up is False and shaper.direction not in self._down:
            self._down.add(shaper.direction)
            route.fail(index)
        if change.rate_bps is not None:
            failed = shaper.direction in self._down
            route.shape(
                index, rate_bps=change.rate_bps, burst_bytes=shaper.burst_bytes,
                limit=shaper.limit, overhead_bytes=-ETHERNET_BYTES, change=True, failed=failed,
            )  # fmt: skip
            if self._laws is not None:
                self._laws.set_rate(shaper.direction, change.rate_bps, change.at_s)
        if change.restart and self._laws is not None:
            self._laws.restart_routers(shaper.direction, change.at_s)
        if change.up and shaper.direction in self._down:
            self._down.remove(shaper.direction)
            route.restore(index, shaper.limit)

    def applied(self, start_s: float) -> list[ChangeMade]:
        """Return all changes with their planned times and lateness. `start_s` is time 0
        (monotonic).
        """
        return self._made + ([] if self._laws is None else self._laws.changes(start_s))
