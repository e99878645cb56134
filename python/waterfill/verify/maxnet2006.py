"""TCP MaxNet of 2006, from the thesis: eq. 7–12, §3.1.2, §3.3, Fig. 5 and §6."""

from __future__ import annotations

from fractions import Fraction

from waterfill.verify.log import Step
from waterfill.verify.maxnet import (
    CODE_MAX,
    FLAG,
    clipped,
    code_of,
    codes,
    fields_of,
    real_of,
    wire,
)
from waterfill.verify.receivers import echo_last
from waterfill.verify.replay import Check, Expected, Law, Params, by_call
from waterfill.verify.rounding import OneOf, Real, below, exp, largest, ln, smallest
from waterfill.verify.units import given, number, picoseconds, ratio, seconds, since, whole

_SYN = 0
_ASKING, _QUICKSTART, _PRICED = 0, 1, 2


def covers(params: Params) -> str | None:
    """Return what of these parameters the equations below do not have."""
    if params["arithmetic"] != "real":
        return "another arithmetic than real"
    return "code_bits above 0" if params["code_bits"] else None


def router(params: Params) -> Check:
    """eq. 7 and 11, §3.1.2, §6."""
    x_max, every = number(params["x_max"]), number(params["mark_every"])
    t, dt = picoseconds(params["t"]), picoseconds(params["dt"])

    def price_min(step: Step) -> Real:
        # eq. 11: −T ln(C/x_max).
        return -seconds(t) * ln(Real(number(step.inputs["capacity"])) / x_max)

    def new(step: Step) -> Expected:
        target = step.inputs["target"]
        mu = number(params["mu"] if target is None else target)
        after = {
            "capacity": step.inputs["capacity"],
            "mu": mu,
            "start_share": Real(mu) + number(params["epsilon"]),
            "price_min": price_min(step),
            "price": step.after["price_min"],
            "price_code": code_of(number(step.after["price"])),
            "arrived": 0.0,
            "arrival_rate": 0.0,
            "next_update": dt,
            "since_mark": 0.0,
        }
        return Expected(after, {"poll_at": dt})

    def granted(step: Step) -> range:
        """§3.1.2: the code of (μ + ε) C − y/dt, at least QSminrate."""
        capacity = Real(number(step.before["capacity"]))
        least = capacity / number(params["qs_min_divisor"])
        share = capacity * number(step.before["start_share"])
        rate = largest(share - number(step.before["arrival_rate"]), least)
        return codes(code_of(-ln(rate / x_max)))

    def on_arrival(step: Step) -> Expected:
        before, inputs = step.before, step.inputs
        after: dict[str, object] = {
            "arrived": Real(number(before["arrived"])) + number(inputs["volume"])
        }
        outputs: dict[str, object] = {n: inputs[n] for n in ("has_header", "header")}
        if inputs["has_header"]:
            echo, field = fields_of(inputs["header"])
            own = range(whole(before["price_code"]), whole(before["price_code"]) + 1)
            marks = True
            if field & FLAG:
                own = granted(step)
            elif every > 1:
                # §6: every n-th packet.
                passed = Real(number(before["since_mark"])) + number(inputs["packets"])
                early = below(passed, every)
                marks = step.after["since_mark"] == 0.0 if early is None else not early
                after["since_mark"] = 0.0 if marks else passed
            if marks:
                # The highest price of the path, or the slowest rate.
                code = field & CODE_MAX
                choices = {wire(echo, field & FLAG | max(code, c)) for c in own}
                outputs["header"] = OneOf(*choices)
        return Expected(after, outputs)

    def on_timer(step: Step) -> Expected:
        before = step.before
        capacity = number(step.inputs["capacity"])
        after: dict[str, object] = {"capacity": capacity}
        price, least = Real(number(before["price"])), Real(number(before["price_min"]))
        if capacity != before["capacity"]:
            after["price_min"] = price_min(step)
            least = Real(number(step.after["price_min"]))
            price = largest(price, least)
        arrived = Real(number(before["arrived"])).exact_times(8)
        # eq. 7 over dt: p + (y − μC dt)/C.
        moved = price + arrived / capacity - number(before["mu"]) * seconds(dt)
        after |= {
            "arrival_rate": arrived / seconds(dt),
            "price": largest(moved, least),
            "price_code": code_of(number(step.after["price"])),
            "arrived": 0.0,
            "next_update": step.time + dt,
        }
        return Expected(after, {"poll_at": step.time + dt})

    return by_call(new=new, on_arrival=on_arrival, on_timer=on_timer)


def receiver(_: Params) -> Check:
    """The last field goes back."""
    return echo_last(wire(0, 0), lambda data: wire(fields_of(data)[1], 0))


def source(params: Params) -> Check:
    """Fig. 5."""
    x_max, alpha, eta = (number(params[name]) for name in ("x_max", "alpha", "eta"))
    t, dt_source = picoseconds(params["t"]), picoseconds(params["dt_source"])

    def limit(step: Step) -> dict[str, object]:
        return {"window": step.after["window"], "pacing": step.after["pacing"]}

    def new(step: Step) -> Expected:
        names = ("pacing", "start_rate", "average", "xi", "base_rtt", "last_price_at", "updated")
        none: dict[str, object] = dict.fromkeys((*names, "acks", "raised", "last_price"))
        none |= given(step, "weight", "packet")
        window = step.inputs["initial_window"]
        return Expected({**none, "mode": _ASKING, "window": window}, limit(step))

    def stamp(step: Step) -> Expected:
        asks = params["quickstart"] and step.inputs["kind"] == _SYN
        return Expected({}, {"has_header": 1, "header": wire(0, FLAG if asks else 0)})

    def on_ack(step: Step) -> Expected:
        after: dict[str, object] = {}
        if step.inputs["has_echo"]:
            field = fields_of(step.inputs["echo"])[0]
            code, tau = field & CODE_MAX, whole(step.inputs["base_rtt"])
            if field & FLAG:
                if step.before["mode"] == _ASKING:
                    after = started(step, code, tau)
            elif code:
                after = priced(step, real_of(code), tau)
        return Expected(after, limit(step))

    def started(step: Step, code: int, tau: int) -> dict[str, object]:
        """Fig. 5, step 1; §3.3: the rate that a code stands for."""
        if code == 0:
            return {"mode": _PRICED}
        rate = x_max * exp(-real_of(code))
        start = Real(number(step.after["start_rate"] or 0.0))
        return {"mode": _QUICKSTART, "start_rate": rate, **sent(step, start, tau)}

    def window_max(step: Step) -> Real:
        return Real(number(step.before["packet"])) * number(params["max_wnd"])

    def sent(step: Step, rate: Real, tau: int) -> dict[str, object]:
        """The window τ x, of one packet to `max_wnd`."""
        window = (rate * seconds(tau)).exact_times(Fraction(1, 8))
        window = smallest(largest(window, number(step.before["packet"])), window_max(step))
        pacing = Real(number(step.after["window"])).exact_times(8) / seconds(tau)
        return {"window": window, "pacing": pacing}

    def priced(step: Step, price: Fraction, tau: int) -> dict[str, object]:
        before = step.before
        if before["average"] is None:
            # Fig. 5, step 2: eq. 10 is ξ's first value.
            q = number(step.after["average"] or 0.0)
            gain = alpha / seconds(tau)
            after: dict[str, object] = {
                "average": Real(price),
                "xi": gain * q - Real(q) / seconds(t),
                "base_rtt": tau,
                "acks": 0,
                "last_price": Real(price),
                **dict.fromkeys(("last_price_at", "updated", "raised"), step.time),
            }
            mode = before["mode"]
            if mode == _ASKING:
                after["mode"] = mode = _PRICED
            return {**after, **windowed(step, tau, whole(mode), step.time, float(price))}
        xi = Real(number(before["xi"]))
        old = whole(before["base_rtt"])
        if tau != old and params["compensate"]:
            # eq. 12: ξ + qα (1/τ_new − 1/τ_old).
            xi += number(before["average"]) * Real(alpha) * (1 / seconds(tau) - 1 / seconds(old))
        weight = (
            smallest(ratio(since(step, "last_price_at"), tau), 1) if params["average"] else Real(1)
        )
        average = Real(number(before["average"]))
        acks = min(whole(before["acks"]) + 1, 2**32 - 1)
        dt = since(step, "updated")
        after = {
            "average": average + weight * (price - average),
            "base_rtt": tau,
            "xi": xi,
            "last_price_at": step.time,
            "acks": acks,
        }
        if acks < number(params["wnd_update_freq"]) or dt < dt_source:
            return after
        q, gain, tau_s = number(step.after["average"]), alpha / seconds(tau), seconds(tau)
        # eq. 9: ξ + (η dt/τ²) ((Tα/τ − 1) q − Tξ), never past eq. 10.
        pull = (seconds(t) * gain - 1) * q - seconds(t) * xi
        following = xi + eta / (tau_s * tau_s) * seconds(dt) * pull
        after["xi"] = clipped(xi, following, gain * q - Real(q) / seconds(t))
        after |= {"updated": step.time, "acks": 0}
        raised, last = whole(before["raised"]), number(before["last_price"])
        return {**after, **windowed(step, tau, whole(before["mode"]), raised, last)}

    def windowed(step: Step, tau: int, mode: int, raised: int, last: float) -> dict[str, object]:
        """Fig. 5, steps 3 and 4; eq. 8: x = x_max exp(ξ − qα/τ)."""
        q, xi = number(step.after["average"]), Real(number(step.after["xi"]))
        exponent = smallest(xi - alpha / seconds(tau) * q, 0)
        rate = number(step.before["weight"]) * (x_max * exp(exponent))
        if mode != _QUICKSTART:
            return sent(step, rate, tau)
        start = Real(number(step.before["start_rate"]))
        after = sent(step, start, tau)
        over = below(rate, start)
        if over is None:
            over = step.after["mode"] == _PRICED
        if over:
            return {**after, "mode": _PRICED, "start_rate": None}
        if max(step.time - raised, 0) < tau:
            return after
        after["raised"] = step.time
        asked = (start * seconds(tau)).exact_times(Fraction(1, 8))
        if below(window_max(step), asked):
            return after
        after["last_price"] = step.after["average"]
        slow = below(
            (Real(q) - last) / seconds(tau), Fraction(number(params["mindeltaq"])) / (1 << 18)
        )
        if q == 0 or slow is not False:
            rises = start * number(params["rateinc"])
            after["start_rate"] = rises if slow else OneOf(rises, start)
        return after

    def on_event(step: Step) -> Expected:
        return Expected({}, limit(step))

    return by_call(new=new, stamp=stamp, on_ack=on_ack, on_event=on_event)


LAW = Law(router, receiver, source, covers)
