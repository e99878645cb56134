"""Calls of the laws' fixed-point C that are drawn at random, to compare them with the equations.

They reach limits that no recorded value reaches. `routers` draws a router's calls,
`hosts_xcp_jetmax` those of hosts of JetMax and the XCPs, `hosts` those of the other laws' hosts.
"""

from __future__ import annotations

import random

from validation.certificates.kernel.calls import CompiledLaw
from validation.certificates.kernel.drawn import hosts, hosts_xcp_jetmax, routers
from validation.certificates.log import Step

CALLS = (*routers.CALLS, "ack", "receive")


def any_step(law: CompiledLaw, name: str, call: str, draw: random.Random) -> Step:
    """Return a call of a law, not made yet: without the state after it and without outputs."""
    if call in routers.CALLS:
        return routers.any_step(law, name, call, draw)
    if name in hosts.RANGES:
        return hosts.any_step(law, name, call, draw)
    return hosts_xcp_jetmax.any_step(law, name, call, draw)
