"""RCP's stability, on one link and link by link in a network.

R follows (T/d̂)·(α(C − y) − βq/d̂)/C. With an empty queue the loop is α/(s·d̂) ·
Σ(x_i/C)·e^(−sτ_i) over the flows bottlenecked here; the others neither respond nor leave d̂
alone, for d̂ is the mean over all traffic. With a standing queue β/(s·d̂)² comes on top, and the
loop of one round trip is XCP's.

A link at rest has an empty queue, so the system switches between the two; neither alone decides
what large disturbances do (Balakrishnan, Dukkipati, McKeown, Tomlin, IEEE Communications Letters
2007). With one round trip and no queue term it is stable for α < π/2 (Kelly, Raina, Voice, CCR
2008). Neither paper was at hand; both conditions are computed here from the loop.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from waterfill.theory import xcp
from waterfill.theory.loops import Margins
from waterfill.theory.xcp import Share

ALPHA_MAX_EMPTY = math.pi / 2


def mean_rtt_s(rates_bps: Sequence[float], rtts_s: Sequence[float]) -> float:
    """`[rcp-2006:d]` d̂, the mean of round trips over traffic."""
    pairs = zip(rates_bps, rtts_s, strict=True)
    return math.fsum(x * tau for x, tau in pairs) / math.fsum(rates_bps)


def link_margins(
    params: Mapping[str, Any], d_s: float, shares: Sequence[Share], *, queue: bool
) -> Margins:
    """The margins of one link's loop, with an empty or a standing queue."""
    return xcp.loop_margins(params["alpha"], params["beta"] if queue else 0.0, d_s, shares)
