"""Equations of MaxNet's fixed-point version, from maxnet-2007 and the scales in kernel/maxnet.h.

Whole numbers: prices in 2⁻³⁴ s, the receiver's average in 2⁻⁵⁸ s, ξ in 2⁻⁶⁶, rates in bit/s, times
in µs, α, η and weights in thousandths, μ in millionths, T in ms. Every division rounds down, except
where a line says otherwise. What hosts add (pairs, smallest τ, restart) is there too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from validation.certificates.fixed.arithmetic import (
    CODE_MAX,
    EXP_MAX,
    FINE_ONE,
    FLAG,
    ONE,
    exp_down,
    price_code,
    rate_code,
)
from validation.certificates.fixed.log import Layout, layout, params_layout
from validation.certificates.log import Step
from validation.certificates.receivers import field24
from validation.certificates.replay import Check, Expected, LawChecker, Params, by_call

State: TypeAlias = "dict[str, Any]"

_BYTES_MAX = 1 << 40
_TIME_MAX = 1 << 58
_XI_MAX = 1 << 61
_RTT_MAX_US, _DT_MAX_US = 1 << 24, 1 << 30
_ASKING, _RISING, _PRICED = 0, 1, 2
_STEPS_PER_RTT = 16
_TAU_MIN_US, _PAIR_MAX_US = 1000, 500_000
_ROUND_US = 200_000


LAYOUTS: Mapping[str, Layout] = {
    "params": params_layout("maxnet"),
    "sums": (("bytes_sum", "Q"),),
    "cpu": (("cpu_bytes", "Q"),),
    "link": layout(
        "capacity x_max start_share price price_min price_max target_time arrival_rate promised "
        "promised_age aging",
        "price_code t mu dt_p t_0 promise start reserved",
    ),
    "source": (
        *((name, "Q") for name in ("window", "rate", "demand_max", "start_rate", "start_initial")),
        ("xi", "q"),
        *((name, "Q") for name in ("xi_speed", "updated", "raised")),
        *layout("", "xi_low price base_rtt packet mode has_price price_max rising_window"),
    ),
    "receiver": layout("average last", "rtt start has_price reserved"),
}


def since(then: int, now: int) -> int:
    """Return the elapsed time from `then` to `now` in µs, clamped to the law's range."""
    return min(max(now - then, 0), _DT_MAX_US)


# ------------------------------------------------------------------ router


def router(_: Params) -> Check:
    """Return the equations of a MaxNet router (Fig. 3)."""

    def intervals(s: State, n: int, arrived: int, queue: int) -> State:
        # Fig. 3: y_dt + Q dt_p/T₀ in 2⁻¹⁶ bytes; eq. 3 for n intervals, from p_min to p_max.
        volume = (arrived << 16) + (min(queue, _BYTES_MAX) << 16) * s["dt_p"] // s["t_0"]
        seconds = min((volume << 21) // s["capacity"], _TIME_MAX)
        if volume // s["capacity"] >= _TIME_MAX >> 21:
            seconds = _TIME_MAX
        moved = s["price"] + n * (seconds - s["target_time"])
        price = min(max(moved, s["price_min"]), s["price_max"])
        if seconds == s["target_time"]:
            price = s["price"]
        age = min(s["promised_age"] + n * s["aging"], EXP_MAX)
        return {"price": price, "price_code": price_code(price), "promised_age": age, "start": 0}

    def tick(step: Step) -> Expected:
        s: State = dict(step.before)
        arrived = min(int(step.inputs["bytes_sum"] or 0), _BYTES_MAX)
        after = intervals(s, 1, arrived, int(step.inputs["queue"] or 0))
        after["arrival_rate"] = arrived * 8_000_000 // s["dt_p"]
        return Expected(after, {"value": bytes(16)})

    def idle(step: Step) -> Expected:
        n = int(step.inputs["intervals"] or 0)
        if n == 0:
            return Expected({"start": 0}, {"value": bytes(16)})
        after = intervals(dict(step.before), n, 0, int(step.inputs["queue"] or 0))
        return Expected({**after, "arrival_rate": 0}, {"value": bytes(16)})

    def mark(step: Step) -> Expected:
        s: State = dict(step.before)
        field = field24(step.inputs["value"])
        own: int = s["price_code"]
        after: State = {}
        if step.inputs["syn"] and field & FLAG:
            own, after = start_rate(s)
        # eq. 2: the highest; a flag is above all prices.
        written = max(own, field).to_bytes(3, "big") + bytes(13)
        return Expected(after, {"value": written})

    def start_rate(s: State) -> tuple[int, State]:
        """Return the start rate (μ + (1 − μ)/4) C − y (§IV.B), which is computed once per interval,
        and the changes of the state.
        """
        if s["start"]:
            return s["start"], {}
        promised = exp_down(s["promised"], s["promised_age"])
        spare = max(s["start_share"] - s["arrival_rate"] - promised, 0)
        own = FLAG | rate_code(spare, s["x_max"])
        if s["promise"]:
            after = {"promised": promised + spare, "promised_age": 0, "start": FLAG | CODE_MAX}
            return own, after
        return own, {"start": own}

    return by_call(mark=mark, tick=tick, idle=idle)


# ------------------------------------------------------------------ receiver


def receiver(_: Params) -> Check:
    """Return the equations of a MaxNet receiver (§VI)."""

    def receive(step: Step) -> Expected:
        s, inputs = dict(step.before), step.inputs
        r: State = dict(s)
        field, rtt = field24(inputs["value"]), int(inputs["rtt_us"] or 0)
        now = int(inputs["now_us"] or 0)
        if rtt:
            rtt = min(max(rtt, _TAU_MIN_US), _RTT_MAX_US)
            r["rtt"] = min(rtt, r["rtt"]) if r["rtt"] else rtt
        if field & FLAG:
            return Expected({"rtt": r["rtt"], "start": field})
        after: State = {"rtt": r["rtt"], "start": 0}
        price = (field & CODE_MAX) << 40
        if not price:
            return Expected({**after, "has_price": 0})
        average = price
        if r["has_price"] and inputs["average"] and r["rtt"]:
            # Towards the price by dt/τ of the difference, a fraction of 2⁻³².
            dt = since(r["last"], now)
            part = min((dt << 32) // r["rtt"], ONE) if dt < r["rtt"] else ONE
            far = abs(price - r["average"])
            step_by = far * part >> 32
            average = r["average"] + (step_by if price >= r["average"] else -step_by)
        return Expected({**after, "average": average, "has_price": 1, "last": now})

    return by_call(receive=receive)


# ------------------------------------------------------------------ source


def source(_: Params) -> Check:
    """Return the equations of a MaxNet source (Fig. 2 and §IV.B, with the kernel
    hosts' additions).
    """

    def ack(step: Step) -> Expected:
        p: State = dict(step.inputs)
        s: State = dict(step.before)
        tau = loop_rtt(s, p["tcp.base_rtt_us"])
        # A packet in `_ROUND_US` is the slowest at which ξ goes on.
        if tau >= 2 * s["base_rtt"] or s["rate"] < s["packet"] * 8_000_000 // _ROUND_US:
            s["has_price"] = 0
        if p["has_echo"]:
            acknowledged(p, s, tau, field24(p["value"]))
        elif set_rtt(p, s, tau):
            new_rtt(p, s)
        return Expected(s)

    return by_call(ack=ack)


def loop_rtt(s: State, base_rtt: int) -> int:
    """Return the RTT τ: the path's base RTT or, at low rates, twice the time of a packet pair.
    Return 0 if the base RTT is unknown.
    """
    if not base_rtt:
        return 0
    rtt = max(base_rtt, _TAU_MIN_US)
    if not s["rate"] or s["mode"] == _RISING:
        return rtt
    tau = max(s["base_rtt"], rtt)
    pair = min(2 * s["packet"] * 8_000_000 // s["rate"], _PAIR_MAX_US)
    return int(max(2 * pair, rtt) if tau < pair or tau > 4 * pair else tau)


def gain(p: State, code: int, tau: int) -> int:
    """Return the price term αq/τ in units of 2⁻³⁴, rounded to the nearest."""
    return int(((code << 16) * p["alpha"] * 1000 + tau // 2) // tau)


def rest(p: State, code: int, tau: int) -> int:
    """Return the equilibrium ξ* = αq/τ − q/T in units of 2⁻³⁴, with each term rounded to the
    nearest (§VI).
    """
    return gain(p, code, tau) - int(((code << 16) * 1000 + p["t"] // 2) // p["t"])


def set_rtt(p: State, s: State, tau: int) -> bool:
    """Set the RTT τ and the values derived from it. Return True if τ changed."""
    tau = min(tau, _RTT_MAX_US)
    if not tau or tau == s["base_rtt"]:
        return False
    if p["compensate"] and s["has_price"]:
        # tcp-maxnet-2006 eq. 12.
        xi = s["xi"] + gain(p, s["price"], tau) - gain(p, s["price"], s["base_rtt"])
        s["xi"] = min(max(xi, -_XI_MAX), _XI_MAX)
    # αηT/τ² in 2⁻⁶² per µs; α, η in 10⁻³ and T in ms make 10⁻⁹ s.
    speed, square = p["alpha"] * p["eta"] * p["t"], tau * tau * 1000
    s["base_rtt"] = tau
    s["xi_speed"] = (speed << 62) // square if speed < square else FINE_ONE
    return True


def send(s: State, rate: int) -> None:
    """Set the rate, and the window W = τ·x (eq. 10) in whole bytes, at least one packet."""
    s["rate"] = max(rate, 1)
    s["window"] = max(rate * s["base_rtt"] // 1_000_000 // 8, s["packet"])


def price_rate(p: State, s: State, xi: int, code: int) -> int:
    """Return the rate x_max e^(ξ − αq/τ), at most x_max (eq. 6a)."""
    return exp_down(s["demand_max"], max(gain(p, code, s["base_rtt"]) - xi, 0))


def new_rtt(p: State, s: State) -> None:
    """Update the rate and the window for a new base RTT that comes without an echo."""
    if s["has_price"]:
        rate = price_rate(p, s, s["xi"], s["price"])
        send(s, min(rising_rate(s), rate) if s["mode"] == _RISING else rate)
    elif s["mode"] == _RISING:
        send(s, rising_rate(s))


def rising_rate(s: State) -> int:
    """Return MaxStart's rate, or `rising_window` per RTT if that is more, at most x_max (a host's
    addition).
    """
    least = s["rising_window"] * 8_000_000 // s["base_rtt"]
    return int(max(s["start_rate"], min(least, s["demand_max"])))


def acknowledged(p: State, s: State, tau: int, field: int) -> None:
    """Apply an echo, which carries a start rate, a price, or no value if no router wrote one."""
    set_rtt(p, s, tau)
    code, now = field & CODE_MAX, p["tcp.now_us"]
    if not s["base_rtt"]:
        return
    if field & FLAG:
        if s["mode"] == _ASKING:
            s["mode"] = _RISING if code else _PRICED
            if code:
                granted = s["start_rate"] = s["start_initial"] = exp_down(p["x_max"], code << 16)
                # Less than a packet per RTT: the first window instead.
                if granted * s["base_rtt"] // 1_000_000 // 8 < s["packet"]:
                    s["rising_window"] = min(s["window"], 0xFFFFFFFF)
                send(s, rising_rate(s))
    elif code and not (s["has_price"] and since(s["updated"], now) < p["dt_min"]):
        priced(p, s, now, min(code, s["price_max"]))


def priced(p: State, s: State, now: int, code: int) -> None:
    """Apply a price to the source's ξ, rate and window (Fig. 2)."""
    target, xi = rest(p, code, s["base_rtt"]), s["xi"]
    if s["has_price"]:
        # eq. 10: ξ moves towards ξ* by dt αηT/τ² of the distance, at most by all of it.
        dt = since(s["updated"], now)
        part = min(dt * s["xi_speed"], FINE_ONE) if dt <= FINE_ONE // s["xi_speed"] else FINE_ONE
        moved = moved_by(abs(target - xi), part)
        fine = (xi << 32) + s["xi_low"] + (moved if target >= xi else -moved)
        s["xi"], s["xi_low"] = fine >> 32, fine & (ONE - 1)
        xi = s["xi"] if p["xi_first"] else xi
    else:
        xi = s["xi"] = target
        s["has_price"] = 1
        s["raised"] = s["raised"] or now
        if s["mode"] == _ASKING:
            s["mode"] = _PRICED
    s["price"], s["updated"] = code, now
    rate = price_rate(p, s, xi, code)
    send(s, rising(s, rate, now) if s["mode"] == _RISING else rate)


def moved_by(far: int, part: int) -> int:
    """Return a distance (2⁻³⁴) times a fraction (2⁻⁶²) in units of 2⁻⁶⁶. The product of the low
    halves is truncated first.
    """
    high, low = far >> 32, far & (ONE - 1)
    part_high, part_low = part >> 32, part & (ONE - 1)
    middle = high * part_low + low * part_high + (low * part_low >> 32)
    whole = (high * part_high << 2) + (middle >> 30)
    return (whole << 32) + (middle << 2 & (ONE - 1))


def rising(s: State, rate: int, now: int) -> int:
    """Return the start rate, raised by Δ dt/(2τ) rounded up, or the price's rate once the start
    rate has reached it (§IV.B).
    """
    dt, tau = since(s["raised"], now), s["base_rtt"]
    if s["start_rate"] < rate and dt * _STEPS_PER_RTT >= tau:
        delta = rate - s["start_initial"]
        s["start_rate"] += delta * dt // (2 * tau) + 1 if dt < 2 * tau else delta
        s["raised"] = now
    if rising_rate(s) < rate:
        return rising_rate(s)
    s["mode"] = _PRICED
    return rate


LAW = LawChecker(router, receiver, source)
