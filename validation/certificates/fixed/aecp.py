"""Equations of AECP's fixed-point version, from aecp-2010 and the scales in kernel/aecp.h.

r and x are places on Fig. 4's scale, in 2⁻³² octaves above ¼ packet/s; a code is 2²² of these.
Whole numbers: rates in bit/s, volumes and a router's packet in 2⁻⁸ bytes, packets/s in 2⁻¹⁶, times
in µs, q₀ in thousandths of a packet, α in thousandths, βT₂ log₂ e and eq. 48's weight in 2⁻³².
Every division rounds down; a code is the nearest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from validation.certificates.fixed.arithmetic import ONE, log2, one_less_exp, part
from validation.certificates.fixed.log import U64, Layout, layout, params_layout
from validation.certificates.log import Step
from validation.certificates.receivers import field24, keeps_last
from validation.certificates.replay import Check, Expected, LawChecker, Params, by_call

State: TypeAlias = "dict[str, Any]"

_CODE, _CODE_MAX, _VALUE_MAX = 1 << 22, 0xFFFE, 0xFFFF
_PLACE_MAX = _CODE_MAX * _CODE
_SLOWEST = 1 << 14  # ¼ packet/s
_BYTES_MAX, _RATE_MAX = 1 << 47, 1 << 61
_PACKET_MIN, _PACKET_MAX = 1 << 8, 1 << 24
_RATIO_MAX = 1 << 52
_MILLION = 1_000_000
_CEILING_IS_CAPACITY, _CARRIED = 1, 0
_FORM_IS_EXACT, _STEP_IS_RTT = 1, 0
_DT_MAX_US, _BILLION = 1 << 30, 1_000_000_000

LAYOUTS: Mapping[str, Layout] = {
    "params": params_layout("aecp"),
    "sums": layout("bytes_sum data_bytes_sum data_segments_sum"),
    "cpu": layout("cpu_bytes cpu_data_bytes cpu_data_segments cpu_residue"),
    "link": layout(
        "place place_max capacity volume gain arrival_rate", "packet q_0 t t_2 ceiling rounding"
    ),
    "source": layout("place updated", "value packet started reserved"),
    "receiver": layout("", "value reserved"),
}


# ------------------------------------------------------------------ router


def place_of(rate: int) -> int:
    """Return the position of a rate (2⁻¹⁶ packets/s) on the logarithmic scale (Fig. 4)."""
    if rate < _SLOWEST:
        return 0
    return min(log2(min(rate, _RATE_MAX)) - (14 << 24) << 8, _PLACE_MAX)


def router(_: Params) -> Check:
    """Return the equations of an AECP router (§5.3)."""

    def ceiling(s: State) -> int:
        """Return the position of the largest rate: C, or C + q₀/T, eq. 2's equilibrium load with an
        empty queue.
        """
        packets = (s["capacity"] << 16 + 8) // (8 * s["packet"])
        if s["ceiling"] != _CEILING_IS_CAPACITY:
            packets += (s["q_0"] * 1000 << 16) // s["t"]
        return place_of(packets)

    def moved(s: State, n: int, arrived: int, queue: int) -> int:
        """Return the position of r after n intervals of eq. 49, ln r + β T₂ (1 − used/C)."""
        waiting, allowed = min(queue, _BYTES_MAX) << 8, s["q_0"] * s["packet"] // 1000
        used = (arrived << 8) + waiting * s["t_2"] // s["t"]
        spare = s["volume"] + allowed * s["t_2"] // s["t"] - used
        ratio = min((abs(spare) << 32) // s["volume"], _RATIO_MAX)
        if abs(spare) // s["volume"] >= _RATIO_MAX >> 32:
            ratio = _RATIO_MAX
        octaves = n * (ratio * s["gain"] >> 32)
        place = s["place"] + (octaves if spare > 0 else -octaves)
        return int(min(max(place, 0), s["place_max"]))

    def tick(step: Step) -> Expected:
        s: State = dict(step.before)
        sums: State = dict(step.inputs)
        arrived, data = (min(sums[name], _BYTES_MAX) for name in ("bytes_sum", "data_bytes_sum"))
        if data and sums["data_segments_sum"]:
            packet = (data << 8) // sums["data_segments_sum"]
            s["packet"] = min(max(packet, _PACKET_MIN), _PACKET_MAX)
            s["place_max"] = ceiling(s)
        s["arrival_rate"] = arrived * 8 * _MILLION // s["t_2"]
        s["place"] = moved(s, 1, arrived, sums["queue"])
        return Expected(s, {"value": bytes(16)})

    def idle(step: Step) -> Expected:
        s: State = dict(step.before)
        n = int(step.inputs["intervals"] or 0)
        if n:
            s["arrival_rate"] = 0
            s["place"] = moved(s, n, 0, int(step.inputs["queue"] or 0))
        return Expected(s, {"value": bytes(16)})

    def mark(step: Step) -> Expected:
        s: State = dict(step.before)
        packet: State = dict(step.inputs)
        after: State = {}
        due = s["place"]
        if s["rounding"] == _CARRIED:
            # What earlier codes left: from −½ to ½ of a code, and kept modulo one.
            due += (s["cpu_residue"] + _CODE // 2) % _CODE - _CODE // 2
            after["cpu_residue"] = due % _CODE
        code = min((due + _CODE // 2) // _CODE, _CODE_MAX)
        if not packet["syn"]:
            after["cpu_data_bytes"] = s["cpu_data_bytes"] + packet["bytes"] & U64
            after["cpu_data_segments"] = s["cpu_data_segments"] + packet["segments"] & U64
        # eq. 4: the smallest factor of the path, which is the largest value.
        found = field24(packet["value"])
        written = max(_VALUE_MAX - code, found).to_bytes(3, "big") + bytes(13)
        return Expected(after, {"value": written})

    return by_call(mark=mark, tick=tick, idle=idle)


# ------------------------------------------------------------------ source


def source(_: Params) -> Check:
    """Return the equations of an AECP source (§5.2), which updates once per RTT or on each
    acknowledgement.
    """

    def ack(step: Step) -> Expected:
        p: State = dict(step.inputs)
        s: State = dict(step.before)
        value, now = min(field24(p["value"]), _VALUE_MAX), p["tcp.now_us"]
        if not (p["has_echo"] and value):
            return Expected()
        srtt = p["tcp.srtt_us"]
        tau = srtt // 8 if srtt else p["tcp.base_rtt_us"]
        since = s["updated"] if s["started"] else now
        after: State = {"value": value, "started": 1, "updated": since}
        t_1 = max(now - since, 0)
        if p["step"] != _STEP_IS_RTT or t_1 >= tau:
            # eq. 46 in logarithms: ln x + w (ln r − ln x).
            far = (_VALUE_MAX - value) * _CODE - s["place"]
            moved = part(abs(far), weight(p, min(t_1, _DT_MAX_US)))
            after |= {"place": s["place"] + (moved if far >= 0 else -moved), "updated": now}
        return Expected(after)

    return by_call(ack=ack)


def weight(p: State, t_1: int) -> int:
    """Return the weight of an update: eq. 48's α T₁, at most 1, or eq. 3's 1 − e^(−α T₁)."""
    product = p["alpha"] * t_1  # 10⁻⁹
    if p["form"] == _FORM_IS_EXACT:
        return one_less_exp((product << 34) // _BILLION)
    return int(min((product << 32) // _BILLION, ONE))


LAW = LawChecker(router, keeps_last("value"), source)
