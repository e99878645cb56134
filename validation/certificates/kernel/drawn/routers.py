"""Random calls of routers, with any state and inputs within their ranges."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeAlias

from validation.certificates.fixed import codes
from validation.certificates.fixed.arithmetic import EXP_MAX
from validation.certificates.kernel.calls import CompiledLaw
from validation.certificates.kernel.routers import value
from validation.certificates.log import Step

State: TypeAlias = "dict[str, Any]"

CALLS = ("mark", "tick", "idle")

# Bits of a field and its smallest value, as the headers' tables of scales say; others have 40 bits,
# or 20 of 32.
RANGES: dict[str, dict[str, tuple[int, int]]] = {
    "maxnet": {
        **{"capacity": (50, 1), "x_max": (57, 1), "start_share": (50, 0), "price": (60, 0)},
        **{
            "price_min": (40, 0),
            "price_max": (46, 0),
            "promised_age": (39, 0),
            "aging": (30, 1),
            "promised": (50, 0),
        },
        **{
            "dt_p": (19, 1),
            "t_0": (31, 1 << 20),
            "promise": (1, 0),
            "start": (24, 0),
            "bytes": (20, 1),
        },
        **{"arrival_rate": (50, 0), "target_time": (36, 0), "queue": (40, 0)},
    },
    "maxnet2006": {
        **{"capacity": (57, 1), "x_max": (57, 1), "start_share": (57, 0), "start_min": (50, 0)},
        **{
            "price": (60, 0),
            "price_min": (45, 0),
            "price_max": (46, 0),
            "target_time": (36, 0),
            "dt": (20, 1),
        },
    },
    "aecp": {
        **{"place": (38, 0), "place_max": (38, 0), "capacity": (50, 1), "volume": (57, 1)},
        **{"gain": (32, 0), "packet": (24, 256), "q_0": (32, 0), "t": (30, 1000)},
        **{"t_2": (20, 1000), "ceiling": (1, 0), "rounding": (1, 0), "cpu_residue": (22, 0)},
        **{"data_bytes_sum": (50, 0), "data_segments_sum": (30, 0), "cpu_data_bytes": (64, 0)},
    },
    "jetmax": {
        **{"goal": (50, 1), "target": (50, 0), "unresponsive": (50, 0), "flows": (43, 0)},
        **{"interval": (22, 1), "bytes_sum": (47, 0), "own_sum": (45, 0)},
        **{"membership_sum": (63, 0), "target_code": (24, 0), "share_code": (24, 0)},
        **{"cpu_own": (64, 0), "cpu_membership": (64, 0)},
    },
    "rcp": {
        **{"rate": (60, 0), "mean_rtt": (39, 10 << 16), "capacity": (50, 1), "alpha": (10, 1)},
        **{"code": (23, 1), "interval": (20, 10), "measured": (1, 0), "beta": (16, 0)},
        **{"max_interval": (20, 10), "average": (1, 0), "bytes_sum": (48, 0)},
        **{"timed_bytes_sum": (63, 0), "rtt_bytes_sum": (64, 0)},
        **{"cpu_timed_bytes": (64, 0), "cpu_rtt_bytes": (64, 0)},
    },
    "vcp": {
        **{"load_factor": (32, 0), "queue": (54, 0), "volume": (59, 1), "waited": (56, 0)},
        **{"queue_weight": (32, 0), "load": (2, 0), "t_rho": (23, 100), "kappa_q": (16, 0)},
        **{"samples": (16, 1), "whole_percent": (1, 0)},
    },
}
XCP = {
    **{"gain": (56, 0), "loss": (56, 0), "local_gain": (56, 0), "local_loss": (56, 0)},
    **{"link": (3, 1), "shuffle_draft": (1, 0), "claims": (1, 0), "claim_least": (1, 0)},
    **{"gain_residue": (62, 0), "loss_residue": (62, 0), "gain_left": (62, 0)},
    **{"loss_left": (62, 0), "capacity": (62, 1), "queue_min": (40, 0), "shuffled": (62, 0)},
    **{"alpha": (32, 0), "beta": (32, 0), "gamma": (32, 0), "interval": (22, 1)},
    **{"elapsed": (22, 0), "until_control": (22, 1), "until_queue": (22, 0), "tick": (22, 1)},
    **{"min_interval": (22, 1), "max_interval": (22, 1), "first_interval": (22, 1)},
    **{"count_own": (1, 0), "rtt_max": (26, 0), "spare": (61, 0), "carry": (8, 0)},
    **{"intervals": (34, 0), "queue": (40, 0)},
}
RANGES |= dict.fromkeys(("xcp", "pxcp", "ixcp"), XCP)
INPUTS = {"queue": (41, 0), "bytes": (21, 0), "segments": (15, 0), "syn": (1, 0)}


def jetmax(state: State) -> None:
    """Limit a random JetMax state to targets up to γC, and derive the factors of N
    and W from it.
    """
    state["target"] = min(state["target"], state["goal"])
    flows, others, goal = state["flows"], state["unresponsive"], state["goal"]
    state["join"] = codes.factor(1 << 20, flows + (1 << 20))
    state["overloaded"] = codes.fraction(goal, others) if not flows and others > goal else 0


def maxnet2006(state: State) -> None:
    """Limit a random MaxNet 2006 state to prices from p_min to p_max and capacities up to x_max."""
    state["price_max"] = max(state["price_max"], state["price_min"])
    state["price"] = min(max(state["price"], state["price_min"]), state["price_max"])
    state["capacity"] = min(state["capacity"], state["x_max"])


def aecp(state: State) -> None:
    """Limit a random AECP state to intervals T₂ up to T and rates up to the ceiling."""
    state["t"] = max(state["t"], state["t_2"])
    state["place_max"] = min(state["place_max"], 0xFFFE << 22)
    state["place"] = min(state["place"], state["place_max"])


def rcp(state: State) -> None:
    """Limit a random RCP state to rates R within their limits and gains α up to 1."""
    state["alpha"] = min(state["alpha"], 1000)
    for name in ("interval", "max_interval"):
        state[name] = min(state[name], 1_000_000)
    state["rate_min"] = min(state["rate_min"], state["capacity"])
    lowest, highest = (state[name] << 10 for name in ("rate_min", "capacity"))
    state["rate"] = min(max(state["rate"], lowest), highest)


def vcp(state: State) -> None:
    """Limit a random VCP state to fewer ticks than samples."""
    state["ticks"] = state["ticks"] % state["samples"]
    state["queue_weight"] = min(state["queue_weight"], 1 << 32)


def maxnet(state: State) -> None:
    """Limit a random MaxNet state as for MaxNet 2006, and limit the age of the promised rate."""
    maxnet2006(state)
    state["promised_age"] = min(state["promised_age"], EXP_MAX)


def xcp(state: State) -> None:
    """Limit a random XCP state to ordered interval bounds, ticks within the interval, and valid
    factors.
    """
    shortest, longest = sorted((state["min_interval"], state["max_interval"]))
    state["min_interval"], state["max_interval"] = shortest, longest
    for name in ("interval", "first_interval"):
        state[name] = min(max(state[name], shortest), longest)
    state["tick"] = min(state["tick"], state["until_control"])
    for name in ("gain", "loss", "local_gain", "local_loss"):
        if name in state:
            low = state[name] & (1 << 24) - 1
            state[name] = codes.factor(low, (state[name] >> 24) + 1)


BOUND: dict[str, Callable[[State], None]] = {
    "maxnet": maxnet,
    "maxnet2006": maxnet2006,
    "aecp": aecp,
    "jetmax": jetmax,
    "rcp": rcp,
    "vcp": vcp,
    **dict.fromkeys(("xcp", "pxcp", "ixcp"), xcp),
}


def any_number(draw: random.Random, bits: int, smallest: int) -> int:
    """Return a random number of up to `bits` bits and of any magnitude."""
    return max(draw.getrandbits(draw.randint(0, bits)), smallest)


def any_step(law: CompiledLaw, name: str, call: str, draw: random.Random) -> Step:
    """Return a random `mark`, `tick` or `idle` call of a law's router."""
    ranges = RANGES[name]
    link, sums, cpu = (law.layouts[part] for part in ("link", "sums", "cpu"))
    before: State = {}
    for field, letter in (*link, *(cpu if call == "mark" else ())):
        bits = ranges.get(field, (40 if letter == "Q" else 20, 0))
        before[field] = draw.choice([bits[1], *(any_number(draw, *bits) for _ in range(7))])
    BOUND[name](before)
    inputs: State = {n: any_number(draw, *ranges.get(n, r)) for n, r in INPUTS.items()}
    inputs |= {field: any_number(draw, *ranges.get(field, (44, 0))) for field, _ in sums}
    inputs["intervals"] = draw.choice([0, 1, any_number(draw, 12, 0), any_number(draw, 34, 0)])
    inputs["value"] = value(name, bool(inputs["syn"]), draw).ljust(16, b"\0")
    return Step(0, "host", name, "router", "any", call, 0, inputs, before, {}, {})
