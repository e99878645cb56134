"""RCP: Dukkipati and McKeown 2006 (`R`, `path`, `d`); maxnet-2007 eq. 16 is `R` with β = 0."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

from waterfill.verify.log import Step
from waterfill.verify.receivers import echo_last, header
from waterfill.verify.replay import Check, Expected, Law, Packed, Params, by_call
from waterfill.verify.rounding import (
    UNIT,
    OneOf,
    Real,
    Whole,
    below,
    largest,
    single,
    smallest,
)
from waterfill.verify.units import from_seconds, given, number, picoseconds, seconds, usable, whole

_FORM = ">ffI4x"
_MIN_RTT_S = 1e-5
_UNLIMITED = math.inf


def covers(params: Params) -> str | None:
    """Return what of these parameters the equations below do not have."""
    if params["arithmetic"] != "real":
        return "another arithmetic than real"
    return "code_bits above 0" if params["code_bits"] else None


def router(params: Params) -> Check:
    """The rate R of a link and the mean RTT d̂."""
    alpha, beta = number(params["alpha"]), number(params["beta"])
    longest, first_rtt = picoseconds(params["max_interval"]), picoseconds(params["first_rtt"])

    def interval(mean_rtt: float) -> object:
        # T ≤ d̂: the mean RTT in whole picoseconds, or less.
        low, high = from_seconds(mean_rtt).bounds()
        return OneOf(*{min(low, longest), min(high, longest)})

    def new(step: Step) -> Expected:
        capacity = usable(step)
        after = {
            "capacity": capacity,
            "rate_min": smallest(number(params["r_min"]), capacity),
            "rate": capacity * number(params["first_rate"]),
            "written": single(number(step.after["rate"])),
            "mean_rtt": largest(seconds(first_rtt), _MIN_RTT_S),
            "measured": 0,
            "arrived": 0.0,
            "timed": 0.0,
            "rtt_bytes": 0.0,
            "interval": interval(number(step.after["mean_rtt"])),
            "next_update": step.after["interval"],
        }
        return Expected(after, {"poll_at": step.after["interval"]})

    def written(step: Step) -> dict[str, object]:
        """`path`: the smaller of the packet's rate and the link's."""
        if not step.inputs["has_header"]:
            return {"has_header": 0, "header": step.inputs["header"]}
        rate, back, rtt_us = struct.unpack(_FORM, header(step.inputs["header"]))
        own = step.before["written"]
        rate = rate if own is None else min(rate, number(own))
        return {"has_header": 1, "header": Packed(_FORM, rate, back, rtt_us)}

    def untouched(step: Step) -> dict[str, object]:
        return {name: step.inputs[name] for name in ("has_header", "header")}

    def on_arrival(step: Step) -> Expected:
        volume = Real(number(step.inputs["volume"]))
        after: dict[str, object] = {"arrived": volume + number(step.before["arrived"])}
        if step.inputs["has_header"]:
            _, _, rtt_us = struct.unpack(_FORM, header(step.inputs["header"]))
            if rtt_us:
                rtt = Real(Fraction(1, 10**6), UNIT * 1e-6) * rtt_us
                after["timed"] = volume + number(step.before["timed"])
                after["rtt_bytes"] = rtt * volume + number(step.before["rtt_bytes"])
        return Expected(after, written(step) if params["writes"] == "arrival" else untouched(step))

    def on_departure(step: Step) -> Expected:
        writes = params["writes"] == "departure"
        return Expected({}, written(step) if writes else untouched(step))

    def mean_rtt(step: Step, capacity: Real) -> dict[str, object]:
        """`d`: d̂ moved towards this interval's mean by T/d̂ of the difference."""
        timed, old = number(step.before["timed"]), number(step.before["mean_rtt"])
        if timed <= 0.0:
            return {}
        sample = Real(number(step.before["rtt_bytes"])) / timed
        found: list[Real] = [sample]
        if step.before["measured"]:
            gain = seconds(whole(step.before["interval"])) / old
            found = []
            reluctant = params["average"] == "reluctant"
            lower = below(sample, old) if reluctant else False
            if lower is not False:
                less = gain * (number(step.before["rate"]) / capacity) * (sample / old)
                found.append(old + smallest(less, 1) * (sample - old))
            if lower is not True:
                found.append(old + smallest(gain, 1) * (sample - old))
        return {"measured": 1, "mean_rtt": OneOf(*(largest(x, _MIN_RTT_S) for x in found))}

    def on_timer(step: Step) -> Expected:
        capacity = usable(step)
        after: dict[str, object] = {"capacity": capacity, **mean_rtt(step, capacity)}
        c, d = number(step.after["capacity"]), number(step.after["mean_rtt"])
        t = seconds(whole(step.before["interval"]))
        load = Real(number(step.before["arrived"])).exact_times(8) / t
        queue = Real(number(step.inputs["queue"])).exact_times(8)
        # `R`: R (1 + (T/d̂) (α(C − y) − βq/d̂)/C), within [R_min, C].
        spare = alpha * (c - load) - beta * (queue / d)
        rate = number(step.before["rate"]) * (1 + t / d * (spare / c))
        after |= {
            "rate": largest(smallest(rate, c), number(step.before["rate_min"])),
            "written": single(number(step.after["rate"])),
            "arrived": 0.0,
            "timed": 0.0,
            "rtt_bytes": 0.0,
            "interval": interval(d),
            "next_update": step.time + whole(step.after["interval"]),
        }
        return Expected(after, {"poll_at": after["next_update"]})

    return by_call(new=new, on_arrival=on_arrival, on_departure=on_departure, on_timer=on_timer)


def receiver(_: Params) -> Check:
    """The rate that arrived goes back."""

    def echo_of(data: bytes) -> bytes:
        rate, _, _ = struct.unpack(_FORM, data)
        return struct.pack(_FORM, _UNLIMITED, rate, 0)

    return echo_last(struct.pack(_FORM, _UNLIMITED, _UNLIMITED, 0), echo_of)


def source(_: Params) -> Check:
    """Paced at the smallest rate of the path."""

    def limit(step: Step) -> dict[str, object]:
        rate = step.after["rate"]
        if rate is None:
            return {"window": step.before["initial_window"], "pacing": None}
        return {"window": None, "pacing": Real(number(step.before["weight"])) * number(rate)}

    def new(step: Step) -> Expected:
        kept = given(step, "weight", "initial_window", "claimed_rtt")
        return Expected({**kept, "rate": None, "rtt_us": 0}, limit(step))

    def stamp(step: Step) -> Expected:
        packed = Packed(_FORM, _UNLIMITED, _UNLIMITED, step.before["rtt_us"])
        return Expected({}, {"has_header": 1, "header": packed})

    def on_ack(step: Step) -> Expected:
        after: dict[str, object] = {}
        if step.inputs["has_echo"]:
            rtt, claimed = step.inputs["rtt"], step.before["claimed_rtt"]
            if rtt is not None:
                stated = seconds(whole(rtt if claimed is None else claimed))
                after["rtt_us"] = OneOf(*(max(n, 1) for n in Whole(stated * 10**6 + 0).bounds()))
            _, rate, _ = struct.unpack(_FORM, header(step.inputs["echo"]))
            if math.isfinite(rate) and math.copysign(1, rate) > 0:
                after["rate"] = rate
        return Expected(after, limit(step))

    def on_event(step: Step) -> Expected:
        return Expected({}, limit(step))

    return by_call(new=new, stamp=stamp, on_ack=on_ack, on_event=on_event)


LAW = Law(router, receiver, source, covers)
