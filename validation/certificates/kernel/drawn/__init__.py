"""Random calls of the laws' fixed-point C, for comparison with the equations.

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
    """Return a random call of a law, without outputs or the state after the call."""
    if call in routers.CALLS:
        return routers.any_step(law, name, call, draw)
    if name in hosts.RANGES:
        return hosts.any_step(law, name, call, draw)
    return hosts_xcp_jetmax.any_step(law, name, call, draw)
