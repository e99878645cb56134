"""Equations of RCP (Dukkipati and McKeown 2006); maxnet-2007 eq. 16 is `R` with β = 0."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

from validation.certificates.log import Step
from validation.certificates.receivers import EchoLast, header
from validation.certificates.replay import (
    Check,
    Expected,
    LawChecker,
    Packed,
    Params,
    PartChecker,
    SourceChecker,
)
from validation.certificates.rounding import (
    UNIT,
    OneOf,
    Real,
    Whole,
    below,
    largest,
    single,
    smallest,
)
from validation.certificates.units import (
    from_seconds,
    given,
    number,
    picoseconds,
    seconds,
    usable,
    whole,
)

_FORM = ">ffI4x"
_MIN_RTT_S = 1e-5
_UNLIMITED = math.inf


class Router(PartChecker):
    """Equations of an RCP router: the link's rate R and the mean RTT d̂."""

    def __init__(self, params: Params) -> None:
        self.params = params
        self.alpha, self.beta = number(params["alpha"]), number(params["beta"])
        self.longest, self.first_rtt = (
            picoseconds(params["max_interval"]),
            picoseconds(params["first_rtt"]),
        )

    def _interval(self, mean_rtt: float) -> object:
        # T ≤ d̂: the mean RTT in whole picoseconds, or less.
        low, high = from_seconds(mean_rtt).bounds()
        return OneOf(*{min(low, self.longest), min(high, self.longest)})

    def _new(self, step: Step) -> Expected:
        capacity = usable(step)
        after = {
            "capacity": capacity,
            "rate_min": smallest(number(self.params["r_min"]), capacity),
            "rate": capacity * number(self.params["first_rate"]),
            "written": single(number(step.after["rate"])),
            "mean_rtt": largest(seconds(self.first_rtt), _MIN_RTT_S),
            "measured": 0,
            "arrived": 0.0,
            "timed": 0.0,
            "rtt_bytes": 0.0,
            "interval": self._interval(number(step.after["mean_rtt"])),
            "next_update": step.after["interval"],
        }
        return Expected(after, {"poll_at": step.after["interval"]})

    def _written(self, step: Step) -> dict[str, object]:
        """Return the header that the router writes, with the smaller of the packet's and the link's
        rates (`path`).
        """
        if not step.inputs["has_header"]:
            return {"has_header": 0, "header": step.inputs["header"]}
        rate, back, rtt_us = struct.unpack(_FORM, header(step.inputs["header"]))
        own = step.before["written"]
        rate = rate if own is None else min(rate, number(own))
        return {"has_header": 1, "header": Packed(_FORM, rate, back, rtt_us)}

    def _untouched(self, step: Step) -> dict[str, object]:
        return {name: step.inputs[name] for name in ("has_header", "header")}

    def _on_arrival(self, step: Step) -> Expected:
        volume = Real(number(step.inputs["volume"]))
        after: dict[str, object] = {"arrived": volume + number(step.before["arrived"])}
        if step.inputs["has_header"]:
            _, _, rtt_us = struct.unpack(_FORM, header(step.inputs["header"]))
            if rtt_us:
                rtt = Real(Fraction(1, 10**6), UNIT * 1e-6) * rtt_us
                after["timed"] = volume + number(step.before["timed"])
                after["rtt_bytes"] = rtt * volume + number(step.before["rtt_bytes"])
        return Expected(
            after,
            self._written(step) if self.params["writes"] == "arrival" else self._untouched(step),
        )

    def _on_departure(self, step: Step) -> Expected:
        writes = self.params["writes"] == "departure"
        return Expected({}, self._written(step) if writes else self._untouched(step))

    def _mean_rtt(self, step: Step, capacity: Real) -> dict[str, object]:
        """Return the mean RTT d̂, moved towards the interval's mean by T/d̂ of the difference
        (`d`). Return an empty mapping if no packet had an RTT.
        """
        timed, old = number(step.before["timed"]), number(step.before["mean_rtt"])
        if timed <= 0.0:
            return {}
        sample = Real(number(step.before["rtt_bytes"])) / timed
        found: list[Real] = [sample]
        if step.before["measured"]:
            gain = seconds(whole(step.before["interval"])) / old
            found = []
            reluctant = self.params["average"] == "reluctant"
            lower = below(sample, old) if reluctant else False
            if lower is not False:
                less = gain * (number(step.before["rate"]) / capacity) * (sample / old)
                found.append(old + smallest(less, 1) * (sample - old))
            if lower is not True:
                found.append(old + smallest(gain, 1) * (sample - old))
        return {"measured": 1, "mean_rtt": OneOf(*(largest(x, _MIN_RTT_S) for x in found))}

    def _on_timer(self, step: Step) -> Expected:
        capacity = usable(step)
        after: dict[str, object] = {"capacity": capacity, **self._mean_rtt(step, capacity)}
        c, d = number(step.after["capacity"]), number(step.after["mean_rtt"])
        t = seconds(whole(step.before["interval"]))
        load = Real(number(step.before["arrived"])).exact_times(8) / t
        queue = Real(number(step.inputs["queue"])).exact_times(8)
        # `R`: R (1 + (T/d̂) (α(C − y) − βq/d̂)/C), within [R_min, C].
        spare = self.alpha * (c - load) - self.beta * (queue / d)
        rate = number(step.before["rate"]) * (1 + t / d * (spare / c))
        after |= {
            "rate": largest(smallest(rate, c), number(step.before["rate_min"])),
            "written": single(number(step.after["rate"])),
            "arrived": 0.0,
            "timed": 0.0,
            "rtt_bytes": 0.0,
            "interval": self._interval(d),
            "next_update": step.time + whole(step.after["interval"]),
        }
        return Expected(after, {"poll_at": after["next_update"]})


def receiver(_: Params) -> Check:
    """Return the equations of an RCP receiver, which echoes the rate in the header."""

    def echo_of(data: bytes) -> bytes:
        rate, _, _ = struct.unpack(_FORM, data)
        return struct.pack(_FORM, _UNLIMITED, rate, 0)

    return EchoLast(struct.pack(_FORM, _UNLIMITED, _UNLIMITED, 0), echo_of)


class Source(SourceChecker):
    """Equations of an RCP source, which is paced at the path's smallest rate."""

    first_window = "initial_window"

    def __init__(self, _: Params) -> None:
        pass

    def _limit(self, step: Step) -> dict[str, object]:
        rate = step.after["rate"]
        if rate is None:
            return {"window": step.after["initial_window"], "pacing": None}
        return {"window": None, "pacing": Real(number(step.before["weight"])) * number(rate)}

    def _new(self, step: Step) -> Expected:
        kept = given(step, "weight", "packet", "initial_window", "claimed_rtt")
        return Expected({**kept, "rate": None, "rtt": 0}, self._limit(step))

    def _stamp(self, step: Step) -> Expected:
        packed = Packed(_FORM, _UNLIMITED, _UNLIMITED, step.before["rtt"])
        return Expected({}, {"has_header": 1, "header": packed})

    def _on_ack(self, step: Step) -> Expected:
        after: dict[str, object] = {}
        if step.inputs["has_echo"]:
            rtt, claimed = step.inputs["rtt"], step.before["claimed_rtt"]
            if rtt is not None:
                stated = seconds(whole(rtt if claimed is None else claimed))
                after["rtt"] = OneOf(*(max(n, 1) for n in Whole(stated * 10**6 + 0).bounds()))
            _, rate, _ = struct.unpack(_FORM, header(step.inputs["echo"]))
            if math.isfinite(rate) and math.copysign(1, rate) > 0:
                after["rate"] = rate
        return Expected(after, self._limit(step))


LAW = LawChecker(Router, receiver, Source)
