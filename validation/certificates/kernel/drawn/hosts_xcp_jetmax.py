"""Random calls of the hosts of JetMax and the XCP variants, with any state and inputs within their
ranges.
"""

from __future__ import annotations

import random
from typing import Any, TypeAlias

from validation.certificates.fixed import codes, log
from validation.certificates.kernel.calls import CompiledLaw
from validation.certificates.kernel.routers import value
from validation.certificates.log import Step

State: TypeAlias = "dict[str, Any]"

# Bits of a field and its smallest value, as the headers' tables of scales say; others have 20 bits.
RANGES: dict[str, dict[str, tuple[int, int]]] = {
    "jetmax": {
        **{"x_min": (50, 1), "tau": (21, 0), "interval": (22, 1), "rate": (50, 0)},
        **{"window": (44, 0), "target": (50, 0), "offer": (50, 0), "doubted_since": (50, 0)},
        **{"joined": (50, 0), "counted_after": (31, 0), "bottleneck": (5, 0), "weight": (8, 0)},
    }
}
XCP = {
    **{"window": (52, 1 << 8), "total": (47, 0), "rtt": (28, 0), "weight": (20, 1)},
    **{"rtt_code": (24, 0), "time_code": (24, 0), "heard": (1, 0), "bottleneck": (16, 0)},
}
RANGES |= dict.fromkeys(("xcp", "pxcp", "ixcp"), XCP)
TCP = {
    **{"tcp.now_us": (50, 0), "tcp.srtt_us": (32, 0), "tcp.base_rtt_us": (30, 0)},
    **{"tcp.in_flight": (24, 0), "tcp.packet": (20, 1), "packet": (20, 1)},
}
RECEIVER = {
    **{"rate": (24, 0), "share": (24, 0), "target": (24, 0), "hops": (10, 0)},
    **{"total": (64, 0), "heard": (1, 0), "next_bottleneck": (16, 0)},
}
DATA = {"now_us": (50, 0), "rtt_us": (32, 0), "segments": (14, 0)}


def any_number(draw: random.Random, bits: int, smallest: int) -> int:
    """Return a random number of up to `bits` bits and of any magnitude. One in eight is an extreme
    value.
    """
    if draw.randrange(8) == 0:
        return draw.choice([smallest, (1 << bits) - 1])
    return max(draw.getrandbits(draw.randint(0, bits)), smallest)


def near(draw: random.Random, number: int, bits: int) -> int:
    """Return a random number of up to `bits` bits that is equal to, near or far from `number`."""
    far = draw.getrandbits(draw.randint(0, bits)) * draw.choice([-1, 0, 1])
    return min(max(number + far, 0), (1 << bits) - 1)


def code(number: int) -> bytes:
    """Return the wire code of a number as bytes."""
    return codes.code(number).to_bytes(3, "big")


def jetmax_ack(draw: random.Random, inputs: State, s: State) -> None:
    """Adapt a random `ack` call to JetMax, usually with a counted flow and often with a better
    router.
    """
    for name in ("tau", "epsilon", "urgent"):
        inputs[name] = min(inputs[name], 1_999_999 if name == "tau" else 999_999)
    s["weight"] = draw.choice([0x40, 0x40, s["weight"]])
    s["rate"] = draw.choice([0, s["rate"], s["rate"], s["rate"]])
    # A connection's time does not go back.
    inputs["tcp.now_us"] = s["joined"] + draw.choice(
        [s["counted_after"], near(draw, s["counted_after"], 40), draw.getrandbits(40)]
    )
    patience = draw.choice([inputs["interval"], 4 * s["counted_after"]])
    doubted = inputs["tcp.now_us"] - near(draw, patience, 40)
    s["doubted_since"] = draw.choice([0, max(doubted, 0), s["doubted_since"]])
    x = any_number(draw, 50, 0)
    target = draw.choice([0, near(draw, x, 50), near(draw, x, 50)])
    share = near(draw, draw.choice([target, x, x * draw.getrandbits(10) >> 10]), 50)
    own = draw.choice([s["bottleneck"], s["bottleneck"], s["bottleneck"], draw.randrange(32)])
    hops = own << 5 | draw.choice([own, draw.randrange(32), draw.randrange(32)])
    hops |= draw.choice([0, draw.getrandbits(16) & 0xFC00])
    inputs["value"] = code(x) + code(share) + code(target) + hops.to_bytes(2, "big")


def xcp_ack(draw: random.Random, inputs: State, s: State) -> None:
    """Adapt a random `ack` call to XCP, with totals near the last one and windows that are about
    half used.
    """
    s["weight"] = draw.choice([1000, min(s["weight"], 1_000_000)])
    s["packet"] = min(s["packet"], s["window"] >> 8)
    packet = inputs["tcp.packet"]
    if draw.randrange(4) == 0:
        half = 2 * inputs["tcp.in_flight"] * packet
        s["window"] = near(draw, half << 8, 52)
    s["window"] = max(s["window"], s["packet"] << 8)
    change = draw.getrandbits(draw.randint(0, 46)) * draw.choice([-1, 1])
    change = draw.choice([change, change, 0, -(1 << 46), -s["window"] - draw.randrange(-1, 2)])
    total = (s["total"] + change) % (1 << 47)
    heard = draw.choice([0, 1, 1, 1]) << 47
    name = draw.choice([0, draw.randrange(1 << 16)])
    inputs["value"] = (heard | total).to_bytes(6, "big") + name.to_bytes(2, "big")


def any_step(law: CompiledLaw, name: str, call: str, draw: random.Random) -> Step:
    """Return a random `ack` or `receive` call of a law's host."""
    ranges, part = RANGES[name], "source" if call == "ack" else "receiver"
    of_state = {**TCP, **ranges} if call == "ack" else RECEIVER
    s: State = {field: any_number(draw, *of_state[field]) for field, _ in law.layouts[part]}
    inputs: State = {
        field: any_number(draw, *ranges.get(field, (20, 0))) for field, _ in law.layouts["params"]
    }
    if call == "ack":
        for field, _ in log.TCP:
            inputs[f"tcp.{field}"] = any_number(draw, *TCP.get(f"tcp.{field}", (20, 0)))
        inputs["tcp.srtt_us"] *= draw.randrange(4) > 0
        inputs["has_echo"] = int(draw.randrange(8) > 0)
        (jetmax_ack if name == "jetmax" else xcp_ack)(draw, inputs, s)
    else:
        inputs |= {field: any_number(draw, *of) for field, of in DATA.items()}
        inputs["has_echo"] = 0
        inputs["value"] = value(name, draw.randrange(8) == 0, draw)
    inputs["value"] = inputs["value"][: law.numbers["echo_bytes"] if call == "ack" else 16]
    inputs["value"] = inputs["value"].ljust(16, b"\0")
    return Step(0, "host", name, part, "any", call, 0, inputs, s, {}, {})
