"""Equations of RCP's fixed-point version, from rcp-2006 and the scales in kernel/rcp.h.

Whole numbers: R in 2⁻¹⁰ bit/s, the mean RTT in 2⁻¹⁶ µs, T in µs, volumes in 2⁻⁸ bytes, growth in
2⁻³², α and β in thousandths, logarithms in 2⁻²⁴ octaves, a source's rate in bit/s. Every division
rounds down; of what is signed, the amount. An RTT on the wire is the nearest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from validation.certificates.fixed.arithmetic import ONE, exp2_down, exp_down, log2, part, rate_code
from validation.certificates.fixed.log import U64, Layout, layout, params_layout
from validation.certificates.log import Step
from validation.certificates.receivers import field24, header, keeps_last
from validation.certificates.replay import Check, Expected, LawChecker, Params, by_call

State: TypeAlias = "dict[str, Any]"

_RELUCTANT = 1
_SCALE_BPS = 10**15
_RATE_BITS, _RTT_BITS, _VOLUME_BITS = 10, 16, 8
_RTT_MIN, _RTT_MAX = 10 << _RTT_BITS, 1 << 23 + _RTT_BITS
_RTT_MAX_US = 1 << 23
_BYTES_MAX, _QUEUE_MAX, _SHOWN_MAX = 1 << 47, 1 << 38, 1 << 40
_DRAIN_MAX = 1 << 56
_TIMED_MAX = 1 << 62
_GROWTH_MAX = 1 << 54
_IDLE_MAX = 1 << 30
_OCTAVE, _OCTAVES_MAX = 1 << 24, 60 << 24
_BIT_US = 8_000_000  # bit/s times µs, in a byte
_RTT_FRACTION_BITS = 11


LAYOUTS: Mapping[str, Layout] = {
    "params": params_layout("rcp"),
    "sums": layout("bytes_sum timed_bytes_sum rtt_bytes_sum"),
    "cpu": layout("cpu_bytes cpu_timed_bytes cpu_rtt_bytes"),
    "link": layout(
        "rate mean_rtt capacity arrival_rate",
        "code interval measured alpha beta max_interval rate_min average",
    ),
    "source": layout("rate", "code rtt_code packet reduced"),
    "receiver": layout("", "code reserved"),
}


# ------------------------------------------------------------------ router


def set_rate(s: State, rate: int) -> None:
    """Set R, limited to [R_min, C], and its wire code −ln R. The code 0 is reserved for no rate."""
    largest, smallest = s["capacity"] << _RATE_BITS, s["rate_min"] << _RATE_BITS
    s["rate"] = max(min(rate, largest), smallest)
    s["code"] = max(rate_code(s["rate"] >> _RATE_BITS, _SCALE_BPS), 1)


def fraction(a: int, b: int) -> int:
    """Return a/b in units of 2⁻³², at most 1."""
    return (a << 32) // b if a < b else ONE


def growth(s: State, arrived: int, queue: int) -> int:
    """Return the relative growth of R in one interval, (T/d)(α (C − y) − β q/d)/C, with its sign
    (rcp-2006).

    Times d over T: α (C T − arrived) − β q T/d, of which C d is the whole.
    """
    mean = s["mean_rtt"] >> _RTT_BITS - _VOLUME_BITS
    time = s["interval"] << _VOLUME_BITS
    left = s["capacity"] * time // _BIT_US - (min(arrived, _BYTES_MAX) << _VOLUME_BITS)
    used = abs(left) * s["alpha"] // 1000
    waiting = min(queue, _QUEUE_MAX) << _VOLUME_BITS
    drained = min(waiting * time // mean, _DRAIN_MAX) * s["beta"] // 1000
    net = (used if left >= 0 else -used) - drained
    whole = s["capacity"] * mean // _BIT_US
    amount = _GROWTH_MAX
    if whole and abs(net) // whole < _GROWTH_MAX >> 32:
        amount = (abs(net) << 32) // whole
    return -amount if net < 0 else amount


def averaged(s: State, timed: int, rtt_bytes: int) -> None:
    """Move the mean RTT d towards the mean over an interval's bytes, by T/d of the difference. The
    first mean replaces d.
    """
    if not timed:
        return
    late = timed >= _TIMED_MAX or rtt_bytes // timed >= _RTT_MAX_US
    sample = _RTT_MAX if late else (rtt_bytes << _RTT_BITS) // timed
    if s["measured"]:
        mean = s["mean_rtt"]
        gain = fraction(s["interval"] << _RTT_BITS, mean)
        if s["average"] == _RELUCTANT and sample < mean:
            gain = part(gain, fraction(s["rate"], s["capacity"] << _RATE_BITS))
            gain = part(gain, fraction(sample, mean))
        change = part(abs(sample - mean), gain)
        sample = mean + (change if sample >= mean else -change)
    s["measured"] = 1
    s["mean_rtt"] = max(min(sample, _RTT_MAX), _RTT_MIN)


def router(_: Params) -> Check:
    """Return the equations of an RCP router, which updates R of rcp-2006 once per interval T."""

    def tick(step: Step) -> Expected:
        s: State = dict(step.before)
        sums: State = dict(step.inputs)
        averaged(s, sums["timed_bytes_sum"], sums["rtt_bytes_sum"])
        g = growth(s, sums["bytes_sum"], sums["queue"])
        change = part(s["rate"], abs(g))
        set_rate(s, s["rate"] + change if g >= 0 else s["rate"] - change)
        s["arrival_rate"] = min(sums["bytes_sum"], _SHOWN_MAX) * _BIT_US // s["interval"]
        s["interval"] = min(s["mean_rtt"] >> _RTT_BITS, s["max_interval"])
        return Expected(s, {"value": bytes(16)})

    def idle(step: Step) -> Expected:
        s: State = dict(step.before)
        n = min(int(step.inputs["intervals"] or 0), _IDLE_MAX)
        if n:
            s["arrival_rate"] = 0
            set_rate(s, grown(s, growth(s, 0, int(step.inputs["queue"] or 0)), n))
        return Expected(s, {"value": bytes(16)})

    def mark(step: Step) -> Expected:
        s: State = dict(step.before)
        value, size = header(step.inputs["value"]), int(step.inputs["bytes"] or 0)
        rtt = int.from_bytes(value[3:5], "big")
        if rtt:
            s["cpu_timed_bytes"] = s["cpu_timed_bytes"] + size & U64
            s["cpu_rtt_bytes"] = s["cpu_rtt_bytes"] + rtt_us(rtt) * size & U64
        # The path's rate is the smallest of its routers', which has the largest code.
        code = max(field24(value), s["code"])
        return Expected(s, {"value": code.to_bytes(3, "big") + value[3:]})

    return by_call(mark=mark, tick=tick, idle=idle)


def grown(s: State, g: int, n: int) -> int:
    """Return R (1 + g)ⁿ, computed from the logarithm of 1 + g."""
    if g <= -ONE:
        return 0
    octaves = n * (log2(ONE + g) - 32 * _OCTAVE)
    if g < 0:
        return exp2_down(s["rate"], -octaves) if -octaves < _OCTAVES_MAX else 0
    largest = int(s["capacity"]) << _RATE_BITS
    # The next power of two above it, less what it exceeds.
    doublings = octaves // _OCTAVE + 1
    if octaves >= _OCTAVES_MAX:
        return largest
    rate = exp2_down(s["rate"], doublings * _OCTAVE - octaves)
    return rate << doublings if rate < largest >> doublings else largest


def rtt_us(code: int) -> int:
    """Return the RTT (1 + m/2¹¹) 2ᵉ µs of a wire code."""
    return min((2048 + code % 2048 << code // 2048) >> 11, _RTT_MAX_US)


# ------------------------------------------------------------------ source


def source(_: Params) -> Check:
    """Return the equations of an RCP source, which sends at the path's R and writes its RTT into
    packets.
    """

    def ack(step: Step) -> Expected:
        p: State = dict(step.inputs)
        srtt, base_rtt = p["tcp.srtt_us"], p["tcp.base_rtt_us"]
        after: State = {"rtt_code": rtt_code(srtt // 8 if srtt else base_rtt)}
        code = field24(p["value"]) if p["has_echo"] else 0
        if code:
            rate = max(exp_down(_SCALE_BPS, code << 16), 1)
            after |= {"code": code, "rate": rate, "reduced": 0}
        return Expected(after)

    return by_call(ack=ack)


def rtt_code(rtt: int) -> int:
    """Return the wire code nearest to an RTT in µs, from 2 µs to 2²³ µs. The code 0
    means no RTT.
    """
    if not rtt:
        return 0
    rtt = min(max(rtt, 2), _RTT_MAX_US)
    exponent = rtt.bit_length() - 1
    # (1 + m/2¹¹) 2ᵉ µs; half of a step is rounded up, and m = 2¹¹ is the next exponent.
    m = ((rtt << _RTT_FRACTION_BITS + 1 >> exponent) + 1) // 2 - (1 << _RTT_FRACTION_BITS)
    return (exponent << _RTT_FRACTION_BITS) + m


LAW = LawChecker(router, keeps_last("code"), source)
