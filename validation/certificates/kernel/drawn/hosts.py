"""Random calls of the hosts of five laws, with any parameters, state and inputs within their
ranges.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeAlias

from validation.certificates.fixed.arithmetic import exp_down
from validation.certificates.kernel.calls import CompiledLaw
from validation.certificates.log import Step

State: TypeAlias = "dict[str, Any]"
Range: TypeAlias = "tuple[int, int]"

FLAG: Range = (0, 1)
CODE: Range = (0, (1 << 23) - 1)
FIELD: Range = (0, (1 << 24) - 1)
WORD: Range = (0, (1 << 32) - 1)
RATE: Range = (1, 1 << 57)
MAXNET: dict[str, Range] = {
    **{
        "x_max": (32, 10**15),
        "x_min": (32, 10**15),
        "alpha": (1, 1571),
        "eta": (1, 65535),
        "t": (1, 100_000),
    },
    **{"average": FLAG, "compensate": FLAG, "has_price": FLAG, "mode": (0, 2)},
    **{"demand_max": RATE, "start_rate": RATE, "rate": (0, 1 << 57), "xi": (0, 1 << 61)},
    **{"base_rtt": (1, 1 << 24), "packet": (1, 1 << 14), "window": (0, 1 << 59)},
}
# A field's smallest and largest value, as the headers' tables of scales say, by the parts of a law;
# others have any 20 bits, or 40 of 64.
RANGES: dict[str, dict[str, dict[str, Range]]] = {
    "maxnet": {
        "params": {**MAXNET, "dt_min": (0, 1_000_000), "xi_first": FLAG, "bare": (0, 0)},
        "source": {
            **{**MAXNET, "packet": (1, 1 << 16), "start_initial": RATE, "price": (1, CODE[1])},
            **{"xi_speed": (16, 1 << 62), "xi_low": WORD, "price_max": (1, CODE[1])},
        },
        "receiver": {"average": (0, CODE[1] << 40), "rtt": (0, 1 << 24), "has_price": FLAG},
    },
    "maxnet2006": {
        "params": {
            **{**MAXNET, "x_max": RATE, "dt_source": (0, 1_000_000), "max_wnd": (1, 1 << 26)},
            **{
                "rtt_unit": (1, 1_000_000),
                "rateinc": (1000, 16000),
                "mindeltaq": WORD,
                "wnd_update_freq": (0, 100),
            },
        },
        "source": {
            **{**MAXNET, "average": (0, CODE[1] << 16), "last_price": CODE},
            "price_max": (1, CODE[1]),
        },
    },
    "rcp": {"source": {"rate": (0, 10**15), "code": FIELD, "reduced": FLAG}},
    "aecp": {
        "params": {"alpha": (1, 1_000_000), "form": FLAG, "step": FLAG},
        "source": {"place": (0, 0xFFFE << 22), "value": (0, 0xFFFF), "started": FLAG},
    },
    "vcp": {
        "params": {
            **{"t_rho": (100, 10_000_000), "t_d": (1000, 10_000_000), "xi": (1, 1_000_000)},
            **{"alpha": (1, 1 << 21), "beta": (1, 1 << 21), "freeze": FLAG},
        },
        "source": {
            **{"window": (1 << 32, 1 << 61), "load": (0, 3), "heard": FLAG, "rtt": (0, 1 << 27)}
        },
    },
}
# What TCP knows, of all laws; `now_us` is that of most states, or later.
TCP: dict[str, Range] = {
    **dict.fromkeys(("srtt_us", "base_rtt_us", "delivered", "acked", "in_flight"), WORD),
    **dict.fromkeys(("packet", "payload", "max_segments"), (1, 65535)),
    **dict.fromkeys(("recovering", "app_limited", "window_limited", "unlimited"), FLAG),
}
TIMES = frozenset(("updated", "raised", "price_at", "last"))
# Times that may be later than a call: VCP's end of a freeze.
LATER = frozenset(("frozen_until", "adding_until"))


def maxnet(s: State, draw: random.Random) -> None:
    """Limit `start_initial` to the start rate. Half of the sources also have a price and a rate
    high enough to keep the price.
    """
    if "start_rate" in s:
        s["start_initial"] = min(s["start_initial"], s["start_rate"])
        if draw.random() < 0.5:
            s["rate"], s["has_price"] = max(s["rate"], 100 * s["packet"]), 1


def maxnet2006(s: State, draw: random.Random) -> None:
    """Put half of the sources in QuickStart, with a start rate up to `demand_max` and a price near
    the last one.
    """
    if "mode" in s and draw.random() < 0.5:
        s["mode"], s["has_price"], s["xi"] = 1, 1, abs(s["xi"])
        s["start_rate"] = any_number(draw, 1, s["demand_max"])
        s["last_price"] = max((s["average"] >> 16) - any_number(draw, 0, 1 << 16), 0)


def rcp(s: State, _: random.Random) -> None:
    """Set the rate from its wire code, unless the rate was reduced."""
    if s.get("code") and "rate" in s and not s["reduced"]:
        s["rate"] = max(exp_down(10**15, s["code"] << 16), 1)


def unchanged(_: State, __: random.Random) -> None:
    """Leave the state unchanged, because the law accepts any values in its ranges."""


# What a law's calls leave of a source or a receiver, beyond ranges; and what is drawn more often.
BOUND: dict[str, Callable[[State, random.Random], None]] = {
    "maxnet": maxnet,
    "maxnet2006": maxnet2006,
    "rcp": rcp,
}


def any_number(draw: random.Random, smallest: int, largest: int) -> int:
    """Return a random number of any magnitude within a range."""
    bits = draw.randint(0, largest.bit_length())
    return min(max(draw.getrandbits(bits), smallest), largest)


def any_code(draw: random.Random, count: int) -> bytes:
    """Return a random wire value of `count` bytes: numbers with or without a flag, random bytes, or
    zeros.
    """
    fields = [draw.getrandbits(draw.randint(0, 24)) | draw.choice((0, 0, 1)) << 23] * 5
    sized = b"".join(field.to_bytes(3, "big") for field in fields)[:count]
    return draw.choice([sized, sized, sized, draw.randbytes(count), bytes(count)])


# How a law's values are drawn where `any_code` seldom draws what moves a state: by draw and size.
VALUES: dict[str, Callable[[random.Random, int], bytes]] = {
    "aecp": lambda draw, n: draw.choice(
        [0, 0xFFFF, *(draw.getrandbits(16) for _ in range(8)), draw.getrandbits(24)]
    ).to_bytes(n, "big"),
    "vcp": lambda draw, n: draw.choice([0, 1, 2, 3, draw.getrandbits(24)]).to_bytes(n, "big"),
}


def any_state(law: CompiledLaw, name: str, part: str, now: int, draw: random.Random) -> State:
    """Return a random state of a source or receiver, or random parameters."""
    ranges = RANGES[name].get(part, {})
    state: State = {}
    for field, letter in law.layouts[part]:
        smallest, largest = ranges.get(field, (0, (1 << (40 if letter == "Q" else 20)) - 1))
        some = (any_number(draw, smallest, largest) for _ in range(6))
        found = draw.choice([smallest, largest, *some])
        if field in TIMES | LATER:
            # Up to 17 s ago, which is the longest RTT, or any time.
            ago = draw.choice([0, *(any_number(draw, 0, 1 << 24) for _ in range(3)), found])
            found = max(now - ago, 0) + (draw.choice([0, 2 * ago]) if field in LATER else 0)
        state[field] = draw.choice([-1, 1]) * found if letter == "q" else found
    return state


def any_step(law: CompiledLaw, name: str, call: str, draw: random.Random) -> Step:
    """Return a random `ack` or `receive` call of a law's host."""
    part = {"ack": "source", "receive": "receiver"}[call]
    now = any_number(draw, 1 << 25, 1 << 50)
    inputs = any_state(law, name, "params", now, draw)
    before = any_state(law, name, part, now, draw)
    BOUND.get(name, unchanged)(before, draw)
    if call == "ack":
        tcp = {field: any_number(draw, *among) for field, among in TCP.items()}
        # Most base RTTs are those of the call before, or nearly so.
        last = before.get("base_rtt", 0)
        near = min(last + any_number(draw, 0, last), WORD[1])
        tcp["base_rtt_us"] = draw.choice([tcp["base_rtt_us"], last, near])
        inputs |= {"tcp.now_us": now, **{f"tcp.{field}": n for field, n in tcp.items()}}
        inputs |= {"tcp.reserved": 0}
        size = law.numbers["echo_bytes"]
    else:
        rtt = any_number(draw, *WORD)
        inputs |= {"now_us": now, "rtt_us": rtt, "segments": any_number(draw, 1, 65)}
        size = law.numbers["forward_bytes"]
    inputs["has_echo"] = int(call == "ack" and draw.random() < 0.9)
    inputs["value"] = VALUES.get(name, any_code)(draw, size).ljust(16, b"\0")
    return Step(0, "host", name, part, "any", call, 0, inputs, before, {}, {})
