"""Mutation of valid documents: extreme values, and keys that are dropped, renamed,
moved or nested.
"""

from __future__ import annotations

import copy
from typing import Any

from validation.fuzz_python.choices import Choices

TEXTS = (
    "", " ", "0", "-1", "nan", "inf", "²", "\x00", "\n", "a", "é", "\u202e", "\ud7ff", "0 s",
    "1 ns",
    "1 us", "1 ms", "1 s", "1e6 s", "1e-300 s", "-1 s", "1e308 s", "1 ps", "1 bit/s", "1 kbit/s",
    "1 Mbit/s", "1 Gbit/s", "1e15 bit/s", "9e307 bit/s", "1e308 bit/s", "0 bit/s", "1 B", "0 B",
    "1500 B", "41 B", "1e19 B", "1e308 B", "1 bdp", "0 bdp", "1e308 bdp", "1e-300 bdp", "0 packets",
    "1 packets", "1 packet", "1e19 packets", "1.5 packets", "60 %", "1e300 %", "1e9 /s", "1 /s",
    "maxnet", "xcp", "rcp", "vcp", "aecp", "jetmax", "abc", "reno", "cubic", "bbr", "dctcp",
    "prague", "droptail", "red", "codel", "fq_codel", "pie", "fq_pie", "dualpi2", "choke",
    "cohabit", "cbr", "poisson", "onoff", "web",
    "pareto", "exponential", "constant", "gilbert-elliott", "periodic", "incast", "all-to-all",
    "restart", "clock", "strip", "corrupt", "lie", "hold", "ignore", "zero", "max", "random",
    "both", "reverse", "-2 ms", "<script>", "../../etc", "/dev/zero", "a:rev", "l:rev", "A",
    "9" * 30, "9" * 5000, "a" * 5000,
    "1e" + "9" * 400, "true", "[", "{", '"', "'", "=", ",", ";", "%", "&", "\\", "1970-01-01",
)  # fmt: skip
NUMBERS = (
    0, 1, -1, 2, 3, 10, 100, 1000, 65535, 65536, 2**31 - 1, 2**31, 2**53, 2**63 - 1, 2**63, 2**64,
    -(2**63), 10**30, 0.0, -0.0, 0.5, 1.0, 1.5, 1e-9, 5e-324, 1e-300, 1e300, 1.7e308, float("inf"),
    float("-inf"), float("nan"), 0.999999999, 1.0000001,
)  # fmt: skip
_DEEP = (3, 40, 900)


def value(choices: Choices) -> Any:
    """Return a random value of any type, usually an extreme one."""
    kind = choices.below(8)
    if kind < 3:
        return choices.pick(TEXTS)
    if kind < 5:
        return choices.pick(NUMBERS)
    if kind == 5:
        return choices.chance(2)
    if kind == 6:
        return [value(choices) for _ in range(choices.below(4))]
    return {key(choices): value(choices) for _ in range(choices.below(3))}


def key(choices: Choices) -> str:
    """Return a key name: usually one that some table has, otherwise an odd text."""
    return choices.pick(KEYS) if not choices.chance(4) else choices.pick(TEXTS)


KEYS = (
    "name", "duration", "protocol", "packet_size", "ack_size", "seed", "measure", "sample",
    "rttvar_min",
    "syn_rto",
    "profile",
    "rto_min", "ip_version", "step", "check_step", "link", "flow", "traffic", "params", "from",
    "to",
    "rate", "delay", "buffer", "duplex", "loss", "loss_reverse", "target", "routers", "queue",
    "rate_reverse", "delay_reverse", "buffer_reverse", "unit", "shift",
    "queue_params", "mark_at", "loss_model", "reorder", "duplicate", "shaper", "policer", "event",
    "rate_trace", "recovery",
    "path", "start", "stop", "return_path", "rtt", "pacing", "ecn", "access_rate", "count",
    "stagger", "start_jitter", "rtt_jitter", "size", "weight", "demand", "claimed_rtt",
    "demand_trace", "route", "after", "after_count", "base_rtt_window",
    "initial_window", "delayed_ack", "kind", "on", "off", "distribution", "shape", "pattern",
    "hosts", "fan_in", "arrival_rate", "load", "sizes", "at", "up", "points", "repeat", "file",
    "bin", "mean", "max", "p", "r", "loss_good", "loss_bad", "every", "depth", "timer", "share",
    "min_threshold", "max_threshold", "max_p", "weight", "interval", "flows", "quantum", "alpha",
    "beta", "eta", "t", "x_max", "xi", "mu", "t_2", "q_0", "arithmetic", "id", "claim", "figure",
    "run", "grid", "short", "set", "args", "unit", "tolerance", "expect", "source", "statement",
    "fault", "until", "value", "direction",
    "measure", "paper_value", "relation", "over_seeds", "why",
)  # fmt: skip


def document(given: Any, choices: Choices, most: int = 4) -> Any:
    """Return a changed copy of a document of tables, lists and values."""
    changed = copy.deepcopy(given)
    for _ in range(1 + choices.below(most)):
        changed = _step(changed, choices)
        if not choices.left:
            break
    return changed


def _step(root: Any, choices: Choices) -> Any:
    """Change one random value or key of a document."""
    holder, place = _place(root, choices)
    kind = choices.below(12)
    if holder is None:
        return value(choices) if kind == 0 else root
    if kind < 5:
        holder[place] = value(choices)
    elif kind == 5:
        del holder[place]
    elif kind == 6 and isinstance(holder, dict):
        holder[key(choices)] = holder.pop(place)
    elif kind == 7 and isinstance(holder, dict):
        holder[key(choices)] = value(choices)
    elif kind == 7:
        holder.insert(place, copy.deepcopy(holder[place]))
    elif kind == 8:
        other, there = _place(root, choices)
        if other is not None:
            # A copy, so that no table comes to hold itself.
            holder[place] = copy.deepcopy(other[there])
    elif kind == 9:
        holder[place] = _text(str(holder[place]), choices)
    elif kind == 10:
        for _ in range(choices.pick(_DEEP)):
            holder[place] = {"a": holder[place]} if kind % 2 else [holder[place]]
    elif isinstance(holder[place], (list, dict)):
        holder[place] = type(holder[place])()
    return root


def _place(root: Any, choices: Choices) -> tuple[Any, Any]:
    """Return a random table or list in a document and a key or index in it, or two Nones."""
    holder, place, node = None, None, root
    for _ in range(8):
        if isinstance(node, dict) and node:
            inside = choices.pick(list(node))
        elif isinstance(node, list) and node:
            inside = choices.below(len(node))
        else:
            break
        holder, place, node = node, inside, node[inside]
        if choices.chance(5):
            break
    return holder, place


def _text(text: str, choices: Choices) -> str:
    """Change a text: truncate, double, extend or recase it, or replace a character."""
    at = choices.below(len(text) + 1)
    kind = choices.below(5)
    if kind == 0:
        return text[:at]
    if kind == 1:
        return text[:at] + choices.pick(TEXTS) + text[at:]
    if kind == 2:
        return text * 2
    if kind == 3:
        return text[:at] + chr(choices.below(256)) + text[at + 1 :]
    return text.swapcase()


def lines(text: str, choices: Choices, most: int = 4) -> str:
    """Return a text with some words and lines changed."""
    found = text.splitlines()
    for _ in range(1 + choices.below(most)):
        if not found:
            break
        i = choices.below(len(found))
        kind = choices.below(7)
        words = found[i].split(" ")
        if kind < 3:
            words[choices.below(len(words))] = choices.pick(TEXTS)
            found[i] = " ".join(words)
        elif kind == 3:
            del found[i]
        elif kind == 4:
            found.insert(i, found[choices.below(len(found))])
        elif kind == 5:
            found[i] = _text(found[i], choices)
        else:
            j = choices.below(len(words))
            words[j] = str(choices.pick(NUMBERS))
            found[i] = " ".join(words)
        if not choices.left:
            break
    return "\n".join(found) + "\n" * (not choices.chance(8))


def raw(data: bytes, choices: Choices, most: int = 6) -> bytes:
    """Return a byte string with some bytes changed, cut out or repeated."""
    found = bytearray(data)
    for _ in range(1 + choices.below(most)):
        at = choices.below(len(found) + 1)
        kind = choices.below(6)
        if kind == 0:
            found = found[:at]
        elif kind == 1:
            found[at : at + 1] = bytes([choices.byte()])
        elif kind == 2 and at < len(found):
            found[at] ^= 1 << choices.below(8)
        elif kind == 3:
            del found[at : at + 1 + choices.byte()]
        elif kind == 4:
            found[at:at] = bytes([choices.byte()]) * (1 + choices.byte())
        else:
            found[at:at] = found[choices.below(len(found) + 1) :][: 1 + choices.byte()]
        if not choices.left:
            break
    return bytes(found)
