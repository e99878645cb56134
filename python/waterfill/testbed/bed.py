"""A built testbed: its network, its loaded laws and its delay line."""

from __future__ import annotations

from collections.abc import Mapping

from waterfill.testbed.daemon import Laws, Params
from waterfill.testbed.delayline import DelayLine
from waterfill.testbed.plan import Plan
from waterfill.testbed.topology import Topology


class RunNetwork:
    """Network of one run inside a process tree of `isolate`, which is removed with that tree."""

    def __init__(self, plan: Plan, params: Mapping[str, Params], laws: type[Laws] = Laws) -> None:
        """Build the testbed with the given parameters of each loaded law. `laws` is the class that
        loads the laws.

        Raises OSError, DaemonError or DelayLineError if a part of it fails.
        """
        self.plan = plan
        self.topology = Topology(plan)
        self.laws: Laws | None = None
        if any(stream.loaded for stream in plan.streams):
            self.laws = laws(plan, params, self.topology.spaces)
            self.laws.load()
        self.topology.build()
        if self.laws is not None:
            self.laws.attach_routers()
        self.line: DelayLine | None = None
        if self.topology.holds:
            self.line = DelayLine(self.topology.holds, mtu_bytes=plan.mtu_bytes, seed=plan.seed)

    def close(self) -> None:
        """End the testbed's processes. The network is removed with the process tree."""
        if self.laws is not None:
            self.laws.close()
        if self.line is not None:
            self.line.close()
