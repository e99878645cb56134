"""Equations of the fixed-point hosts of XCP, P-XCP and iXCP, from the papers katabi-2002 and
ixcp-2007, and kernel/xcp.h.

Whole numbers: windows in 2⁻⁸ bytes, sums of feedback in 2⁻¹⁶ bytes at the receiver and 2⁻⁸ bytes
modulo 2⁴⁷ in echoes, feedback in 2⁻⁸ byte/s, RTTs in 2⁻²⁴ s, times per byte in 2⁻⁵² s, weights in
thousandths. Every division rounds down, except where a line says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from validation.certificates.fixed import codes
from validation.certificates.fixed.log import U64, Layout, layout, params_layout
from validation.certificates.log import Step
from validation.certificates.receivers import header
from validation.certificates.replay import Check, Expected, by_call

State: TypeAlias = "dict[str, Any]"

_ZERO = 1 << 39
_TOTAL = 1 << 47
_RTT_MAX, _WINDOW_MAX, _TIME_MAX = (1 << 28) - 1, 1 << 52, 1 << 52
# RTTs end at 16 s; a false code above this exponent (from 18 h on) counts as if it had this one.
_RTT_EXPONENT_MAX = 20
_MILLION = 1_000_000


def layouts(local: bool) -> Mapping[str, Layout]:
    """Return the layouts of the C structures, by name. With `local`, they include iXCP's fields."""
    return {
        "params": params_layout("ixcp" if local else "xcp"),
        "source": layout("window total rtt", "rtt_code time_code packet weight heard bottleneck"),
        "receiver": layout("total", "heard next_bottleneck"),
    }


def receiver(local: bool) -> Check:
    """Return the equations of an XCP receiver, which sums all changes of the window (XCP-r). With
    `local`, the receiver also keeps iXCP's next bottleneck.
    """

    def receive(step: Step) -> Expected:
        value = header(step.inputs["value"])
        feedback = int.from_bytes(value[6:11], "big")
        after: State = {"heard": int(feedback != 0)}
        if local:
            after["next_bottleneck"] = int.from_bytes(value[13:15], "big")
        if feedback:
            # draft-falk: the change of the window is that of the throughput times the RTT.
            mantissa, exponent = codes.parts(int.from_bytes(value[:3], "big"))
            rtt = mantissa << min(exponent, _RTT_EXPONENT_MAX)
            # In 2⁻³² bytes; of each segment to the nearest, halves away from zero.
            change = abs(feedback - _ZERO) * rtt + (1 << 15) >> 16
            change *= int(step.inputs["segments"] or 0)
            total = int(step.before["total"] or 0)
            after["total"] = total + (change if feedback >= _ZERO else -change) & U64
        return Expected(after)

    return by_call(receive=receive)


def source(local: bool) -> Check:
    """Return the equations of an XCP source, which sets the window to max{cwnd + feedback, s}
    (katabi-2002). With `local`, the source also keeps the bottleneck that iXCP's packets name.
    """

    def ack(step: Step) -> Expected:
        p: State = dict(step.inputs)
        s: State = dict(step.before)
        s["packet"] = p["tcp.packet"] or s["packet"]
        if p["tcp.srtt_us"]:
            # TCP's is in 2⁻³ µs.
            s["rtt"] = min(max((p["tcp.srtt_us"] << 21) // _MILLION, 1), _RTT_MAX)
        echo = header(p["value"])
        heard, total = divmod(int.from_bytes(echo[:6], "big"), _TOTAL)
        if p["has_echo"] and heard:
            s["window"] += change(p, s, total)
            s |= {"total": total, "heard": 1}
            if local:
                # 0 is a router with spare bandwidth: the one that was named stays.
                s["bottleneck"] = int.from_bytes(echo[6:8], "big") or s["bottleneck"]
        s["window"] = min(max(s["window"], s["packet"] << 8), _WINDOW_MAX)
        # draft-falk: packets state the RTT, and for X the time per byte, weight rtt/cwnd.
        time = min((s["rtt"] << 36) // s["window"], _TIME_MAX) * s["weight"] // 1000
        s |= {"rtt_code": codes.code(s["rtt"]), "time_code": codes.code(time)}
        return Expected(s)

    return by_call(ack=ack)


def change(p: State, s: State, total: int) -> int:
    """Return the change of the window since the last echo, without gains while less than half of
    the window is in use.
    """
    fresh = (total - s["total"] + _TOTAL // 2) % _TOTAL - _TOTAL // 2
    used = p["tcp.in_flight"] * s["packet"]
    return fresh if fresh < 0 or 2 * used >= s["window"] >> 8 else 0
