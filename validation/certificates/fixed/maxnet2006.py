"""Equations of MaxNet 2006's fixed-point version, from tcp-maxnet-2006 and kernel/maxnet2006.h.

Whole numbers: prices, their average and ξ in 2⁻³⁴, rates in bit/s, times in µs, α, η and rateinc in
thousandths, T in ms, μ in millionths. Every division rounds down, except where a line says
otherwise; a price's code on the wire and an RTT in its units are the nearest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from validation.certificates.fixed.arithmetic import (
    CODE_MAX,
    FLAG,
    ONE,
    exp_down,
    part,
    price_code,
    rate_code,
)
from validation.certificates.fixed.log import Layout, layout, params_layout
from validation.certificates.log import Step
from validation.certificates.receivers import field24, keeps_last
from validation.certificates.replay import Check, Expected, LawChecker, Params, by_call

State: TypeAlias = "dict[str, Any]"

_BYTES_MAX = 1 << 40
_SECONDS_MAX = 1 << 20
_MILLION = 1_000_000
_ASKING, _QUICKSTART, _PRICED = 0, 1, 2
_RTT_MAX_US, _DT_MAX_US = 1 << 24, 1 << 30
_XI_MAX, _RATE_MAX = 1 << 61, 1 << 57
_BIT_US = 8 * _MILLION  # bit/s times µs, in a byte

LAYOUTS: Mapping[str, Layout] = {
    "params": params_layout("maxnet2006"),
    "sums": layout("bytes_sum"),
    "cpu": layout("cpu_bytes"),
    "link": layout(
        "capacity x_max start_share start_min price price_min price_max target_time arrival_rate",
        "dt reserved price_code start_code",
    ),
    "source": (
        *layout("demand_max window rate start_rate average"),
        ("xi", "q"),
        *layout(
            "price_at updated raised",
            "last_price base_rtt packet acks mode has_price price_max reserved",
        ),
    ),
    "receiver": layout("", "field reserved"),
}


# ------------------------------------------------------------------ router


def router(_: Params) -> Check:
    """Return the equations of a MaxNet 2006 router (eq. 7, and the start rate of §3.1.2)."""

    def moved(s: State, price: int, arrival_rate: int) -> Expected:
        """Return the results of an update: the price, from p_min to p_max, and the codes for the
        next interval.
        """
        price = min(max(price, s["price_min"]), s["price_max"])
        # §3.1.2: (μ + ε) C − y, at least QSminrate.
        start_rate = max(s["start_share"] - arrival_rate, s["start_min"])
        after = {
            "price": price,
            "arrival_rate": arrival_rate,
            "price_code": price_code(price),
            "start_code": rate_code(start_rate, s["x_max"]),
        }
        return Expected(after, {"value": bytes(16)})

    def tick(step: Step) -> Expected:
        s: State = dict(step.before)
        arrived = min(int(step.inputs["bytes_sum"] or 0), _BYTES_MAX)
        # eq. 7: p + y/C − μ dt. Beyond 2²⁰ s, whole seconds count no more.
        seconds, rest = divmod(8 * arrived, s["capacity"])
        time = (min(seconds, _SECONDS_MAX) << 34) + (rest << 34) // s["capacity"]
        price = s["price"] + time - s["target_time"]
        return moved(s, price, arrived * 8 * _MILLION // s["dt"])

    def idle(step: Step) -> Expected:
        s: State = dict(step.before)
        n = int(step.inputs["intervals"] or 0)
        if not n:
            return Expected({}, {"value": bytes(16)})
        return moved(s, s["price"] - n * s["target_time"], 0)

    def mark(step: Step) -> Expected:
        field = field24(step.inputs["value"])
        flag = field & FLAG
        code = int(step.before["start_code" if flag else "price_code"] or 0)
        # Prices rise along a path and start rates fall, so that both codes rise.
        return Expected({}, {"value": max(flag | code, field).to_bytes(3, "big") + bytes(13)})

    return by_call(mark=mark, tick=tick, idle=idle)


# ------------------------------------------------------------------ source


def source(_: Params) -> Check:
    """Return the equations of a MaxNet 2006 source (Fig. 5)."""

    def ack(step: Step) -> Expected:
        p: State = dict(step.inputs)
        s: State = dict(step.before)
        field = field24(p["value"]) if p["has_echo"] and p["tcp.base_rtt_us"] else 0
        code, tau = field & CODE_MAX, in_units(p["tcp.base_rtt_us"], p["rtt_unit"])
        if field & FLAG:
            if s["mode"] == _ASKING:
                started(p, s, code, tau)
        elif code:
            priced(p, s, min(code, s["price_max"]), tau)
        return Expected(s)

    return by_call(ack=ack)


def in_units(rtt: int, unit: int) -> int:
    """Return the RTT τ rounded to the nearest whole unit, at least one."""
    units = (min(rtt, _RTT_MAX_US) + unit // 2) // unit
    return max(min(units, _RTT_MAX_US // unit), 1) * unit


def since(then: int, now: int) -> int:
    """Return the elapsed time from `then` to `now`, never negative."""
    return max(now - then, 0)


def started(p: State, s: State, code: int, tau: int) -> None:
    """Start at the granted rate, which a code expresses as a fraction of x_max (Fig. 5, step 1;
    §3.3). Switch to price mode if the code is 0.
    """
    if not code:
        s["mode"] = _PRICED
        return
    s["start_rate"] = exp_down(p["x_max"], code << 16)
    s["mode"], s["base_rtt"] = _QUICKSTART, tau
    send(p, s, s["start_rate"])


def window_max(p: State, s: State) -> int:
    """Return the largest window in bytes."""
    return int(p["max_wnd"] * s["packet"])


def send(p: State, s: State, rate: int) -> None:
    """Set the window τ x, between one packet and `max_wnd`, and the rate that this
    window allows.
    """
    window = rate * s["base_rtt"] // _BIT_US
    s["window"] = min(max(window, s["packet"]), window_max(p, s))
    s["rate"] = rate if s["window"] == window else s["window"] * _BIT_US // s["base_rtt"]


def gain(p: State, s: State, tau: int) -> int:
    """Return the price term qα/τ for the average price q, rounded to the nearest."""
    return int((s["average"] * p["alpha"] * 1000 + tau // 2) // tau)


def rest(p: State, s: State) -> int:
    """Return ξ's initial and equilibrium value, qα/τ − q/T, with each term rounded to the nearest
    (eq. 10).
    """
    return gain(p, s, s["base_rtt"]) - int((s["average"] * 1000 + p["t"] // 2) // p["t"])


def priced(p: State, s: State, code: int, tau: int) -> None:
    """Apply a price to the source's ξ, rate and window (Fig. 5, steps 2 to 4)."""
    now, price = p["tcp.now_us"], code << 16
    if s["has_price"]:
        if tau != s["base_rtt"] and p["compensate"]:
            # eq. 12: ξ + qα (1/τ_new − 1/τ_old).
            xi = s["xi"] + gain(p, s, tau) - gain(p, s, s["base_rtt"])
            s["xi"] = min(max(xi, -_XI_MAX), _XI_MAX)
        dt = since(s["price_at"], now)
        weight = min((dt << 32) // tau, ONE) if p["average"] else ONE
        s["base_rtt"], s["price_at"] = tau, now
        s["average"] = towards(s["average"], price, weight)
        s["acks"] += 1
        dt = since(s["updated"], now)
        if s["acks"] < p["wnd_update_freq"] or dt < p["dt_source"]:
            return
        # eq. 9 is ξ + η dt T/τ² (ξ* − ξ) with eq. 10's ξ*, at most as far as that.
        s["xi"] = towards(s["xi"], rest(p, s), lead(p, dt, tau))
    else:
        s["has_price"], s["base_rtt"], s["average"], s["last_price"] = 1, tau, price, code
        s["price_at"] = s["raised"] = now
        s["xi"] = rest(p, s)
        s["mode"] = s["mode"] or _PRICED
    windowed(p, s, now)


def towards(value: int, aim: int, weight: int) -> int:
    """Return `value` moved towards `aim` by a fraction (2⁻³²) of the distance, with the step
    rounded down.
    """
    step = part(abs(aim - value), weight)
    return value + (step if aim >= value else -step)


def lead(p: State, dt: int, tau: int) -> int:
    """Return the fraction η dt T/τ² in units of 2⁻³², at most 1. The division by τ is done twice,
    16 bits each.
    """
    square = min(dt, _DT_MAX_US) * p["eta"] * p["t"]  # thousandths and ms make µs
    return int(((square << 16) // tau << 16) // tau) if square < tau * tau else ONE


def windowed(p: State, s: State, now: int) -> None:
    """Set the window from eq. 8's rate, x_max e^(ξ − qα/τ), at most x_max (Fig. 5,
    steps 3 and 4).
    """
    rate = exp_down(s["demand_max"], max(gain(p, s, s["base_rtt"]) - s["xi"], 0))
    s["updated"], s["acks"] = now, 0
    if s["mode"] != _QUICKSTART:
        send(p, s, rate)
        return
    start = s["start_rate"]
    send(p, s, start)
    if start > rate:
        s["mode"] = _PRICED
    elif since(s["raised"], now) >= s["base_rtt"]:
        s["raised"] = now
        # Not while `max_wnd` limits the window.
        if start * s["base_rtt"] // _BIT_US <= window_max(p, s):
            q = price_code(s["average"])
            # Δq/τ below mindeltaq, in 2⁻¹⁸ s per s; a price of 0 and one that falls, too.
            if not q or (q - s["last_price"]) * _MILLION < p["mindeltaq"] * s["base_rtt"]:
                s["start_rate"] = min(start * p["rateinc"] // 1000, _RATE_MAX)
            s["last_price"] = q


LAW = LawChecker(router, keeps_last("field"), source)
