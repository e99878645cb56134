"""Equations of MaxNet, from maxnet-2007: Fig. 2 and 3, eq. 2, 3, 6a, 7, 8, 10, §IV.B, §V and §VI.

The thesis's eq. 12 is `compensate`. Readings are those of the law's page
(docs/reference/protocols/maxnet.md).
"""

from __future__ import annotations

from fractions import Fraction

from validation.certificates.log import Step, Value
from validation.certificates.replay import (
    Expected,
    LawChecker,
    Params,
    PartChecker,
    SourceChecker,
    unsupported,
)
from validation.certificates.rounding import (
    OneOf,
    Real,
    Whole,
    below,
    exp,
    largest,
    ln,
    real,
    smallest,
)
from validation.certificates.units import given, number, picoseconds, ratio, seconds, since, whole

CODE_MAX = (1 << 23) - 1
FLAG = 1 << 23
_SYN = 0
_ASKING, _RISING, _OVER = 0, 1, 2
_STEPS_PER_RTT = 16


def lacks(params: Params) -> str | None:
    """Return the first parameter setting that MaxNet's equations do not support, or None."""
    return "average = sliding" if params["average"] == "sliding" else unsupported(params)


def code_of(value: Real | float) -> Whole | int:
    """Return the 23-bit code nearest to a price, in units of 2⁻¹⁸, up to the largest code (§V)."""
    code = Whole(real(value).exact_times(1 << 18) + 0)
    low, high = code.bounds()
    if low >= CODE_MAX:
        return CODE_MAX
    return max(low, 0) if low == high else code


def codes(code: Whole | int) -> range:
    """Return the candidate codes: one, or two if the value is within rounding error
    of a boundary.
    """
    low, high = code.bounds() if isinstance(code, Whole) else (code, code)
    return range(max(low, 0), min(high, CODE_MAX | FLAG) + 1)


def real_of(code: int) -> Fraction:
    """Return the price that a code represents (§V)."""
    return Fraction(code, 1 << 18)


def wire(echo: int, price: int) -> bytes:
    """Return the option of Fig. 4: kind 42, length 8, echo and price."""
    return bytes([42, 8]) + echo.to_bytes(3, "big") + price.to_bytes(3, "big")


def fields_of(header: Value) -> tuple[int, int]:
    """Return the echo and price fields of an option (Fig. 4)."""
    assert isinstance(header, bytes)
    return int.from_bytes(header[2:5], "big"), int.from_bytes(header[5:8], "big")


def price_max(x_max: float, x_min: float, t: int) -> Real:
    """Return the highest price p_max = T ln(x_max/x_min), for T in ps (§V)."""
    return -seconds(t) * ln(Real(x_min) / x_max)


class Router(PartChecker):
    """Equations of a MaxNet router (Fig. 3)."""

    def __init__(self, params: Params) -> None:
        self.params = params
        self.x_max, self.x_min = number(params["x_max"]), number(params["x_min"])
        self.t, self.dt_p, self.t_0 = (picoseconds(params[name]) for name in ("t", "dt_p", "t_0"))
        self.average = picoseconds(params["load_average"])

    def _price_min(self, step: Step) -> Real:
        # eq. 8: D⁻¹(C) = −T ln(C/x_max).
        least = -seconds(self.t) * ln(Real(number(step.inputs["capacity"])) / self.x_max)
        return smallest(least, number(step.after["price_max"]))

    def _mu(self, step: Step) -> float:
        target = step.inputs["target"]
        return number(self.params["mu"] if target is None else target)

    def _new(self, step: Step) -> Expected:
        after = {
            "capacity": step.inputs["capacity"],
            "price_min": self._price_min(step),
            "price_max": price_max(self.x_max, self.x_min, self.t),
            "price": step.after["price_min"],
            "price_code": code_of(number(step.after["price"])),
            "arrived": 0.0,
            "arrival_rate": 0.0,
            "promised": 0.0,
            "next_update": self.dt_p,
        }
        return Expected(after, {"poll_at": self.dt_p})

    def _granted(self, step: Step) -> tuple[object, object]:
        """Return the code of the granted rate (μ + (1 − μ)/4) C − y, and the promised rate after it
        (§IV.B).
        """
        promised = number(step.before["promised"])
        m, capacity = Real(self._mu(step)), number(step.before["capacity"])
        load = Real(number(step.before["arrival_rate"])) + promised
        spare = capacity * (m + (1 - m) / 4) - load
        after: object = promised
        if self.params["promise"]:
            after = promised + largest(spare, 0)
        positive = below(0, spare)
        if positive is False:
            return CODE_MAX, after
        if positive is None:
            return None, after  # rounding decides whether anything is spare
        return code_of(-ln(spare / self.x_max)), after

    def _on_arrival(self, step: Step) -> Expected:
        after: dict[str, object] = {
            "arrived": Real(number(step.before["arrived"])) + number(step.inputs["volume"])
        }
        header = step.inputs["header"]
        outputs: dict[str, object] = {"has_header": step.inputs["has_header"], "header": header}
        if step.inputs["has_header"]:
            echo, field = fields_of(header)
            own: object = step.before["price_code"]
            if field & FLAG:
                own, after["promised"] = self._granted(step)
            # eq. 2: the highest of the path; a start rate's code is the higher, the slower it is.
            found = fields_of(step.outputs["header"])[1] & CODE_MAX
            code = field & CODE_MAX
            if isinstance(own, int):
                outputs["header"] = wire(echo, field & FLAG | max(code, own))
            elif isinstance(own, Whole):
                low, high = own.bounds()
                codes = {max(code, min(c, CODE_MAX)) for c in range(low, high + 1)}
                outputs["header"] = OneOf(*(wire(echo, field & FLAG | c) for c in codes))
            else:
                outputs["header"] = wire(echo, field & FLAG | max(code, found))
        return Expected(after, outputs)

    def _on_timer(self, step: Step) -> Expected:
        capacity, before = number(step.inputs["capacity"]), number(step.before["price"])
        after: dict[str, object] = {"capacity": capacity}
        price, least = Real(before), Real(number(step.before["price_min"]))
        most = number(step.before["price_max"])
        if capacity != step.before["capacity"]:
            after["price_min"] = self._price_min(step)
            least = Real(number(step.after["price_min"]))
            price = smallest(largest(price, least), most)
        arrived = Real(number(step.before["arrived"]))
        dt = seconds(self.dt_p)
        load = arrived.exact_times(8) / dt
        after["arrival_rate"] = load
        if self.average > self.dt_p:
            weight = ratio(self.dt_p, self.average)
            last = number(step.before["arrival_rate"])
            after["arrival_rate"] = last + (load - last) * weight
        # eq. 3 as in Fig. 3: p + (y_dt + Q dt_p/T₀)/C − μ dt_p, from p_min to p_max.
        volume = arrived + number(step.inputs["queue"]) * (dt / seconds(self.t_0))
        next_price = price + volume.exact_times(8) / capacity - self._mu(step) * dt
        after["price"] = smallest(largest(next_price, least), most)
        after["price_code"] = code_of(number(step.after["price"]))
        after["arrived"] = 0.0
        if self.params["promise"]:
            after["promised"] = number(step.before["promised"]) * exp(-dt / seconds(self.t_0))
        after["next_update"] = step.time + self.dt_p
        return Expected(after, {"poll_at": step.time + self.dt_p})


class Receiver(PartChecker):
    """Equations of a MaxNet receiver, which averages prices over one RTT (§VI)."""

    def __init__(self, params: Params) -> None:
        self.params = params

    def _on_data(self, step: Step) -> Expected:
        after: dict[str, object] = {}
        rtt, sample = step.before["rtt"], step.inputs["rtt"]
        if sample is not None:
            rtt = sample if rtt is None else min(whole(rtt), whole(sample))
            after["rtt"] = rtt
        if not step.inputs["has_header"]:
            return Expected({})
        field = fields_of(step.inputs["header"])[1]
        code = field & CODE_MAX
        if field & FLAG:
            after["start_rate"] = code
        elif code == 0:
            after |= {"start_rate": None, "average": None}
        else:
            average = step.before["average"]
            price = Real(real_of(code))
            if average is not None:
                old, weight = Real(number(average)), Real(1)
                if self.params["average"] is True and rtt:
                    weight = smallest(ratio(since(step, "last"), whole(rtt)), 1)
                price = old + weight * (price - old)
            after |= {"start_rate": None, "average": price, "last": step.time}
        return Expected(after)

    def _echo(self, step: Step) -> Expected:
        rate, average = step.before["start_rate"], step.before["average"]
        code: Whole | int = 0
        if rate is not None:
            code = whole(rate) | FLAG
        elif average is not None:
            code = code_of(number(average))
        choices = codes(code)
        return Expected({}, {"has_echo": 1, "echo": OneOf(*(wire(c, 0) for c in choices))})

    def _new(self, _: Step) -> Expected:
        return Expected({"rtt": None, "average": None, "last": 0, "start_rate": None})


class Source(SourceChecker):
    """Equations of a MaxNet source (Fig. 2 and §IV.B)."""

    first_window = "window"

    def __init__(self, params: Params) -> None:
        self.params = params
        self.x_max, self.alpha, self.eta = (
            number(params[name]) for name in ("x_max", "alpha", "eta")
        )
        self.t, self.dt_min = picoseconds(params["t"]), picoseconds(params["dt_min"])
        self.price_max = price_max(self.x_max, number(params["x_min"]), self.t)

    def _new(self, step: Step) -> Expected:
        zero = dict.fromkeys(("gain", "zero", "rate_min", "price", "xi", "price_rate"), 0.0)
        none = dict.fromkeys(("updated", "start_initial", "start_rate", "start_raised", "pacing"))
        kept = given(step, "weight", "packet")
        window = step.inputs["initial_window"]
        after = {**zero, **none, **kept, "window": window, "base_rtt": 0, "start": _ASKING}
        return Expected(after, self._limit(step))

    def _limit(self, step: Step) -> dict[str, object]:
        return {"window": step.after["window"], "pacing": step.after["pacing"]}

    def _stamp(self, step: Step) -> Expected:
        field = FLAG if step.inputs["kind"] == _SYN else 0
        return Expected({}, {"has_header": 1, "header": wire(0, field)})

    def _on_ack(self, step: Step) -> Expected:
        if not step.inputs["has_echo"]:
            return Expected({}, self._limit(step))
        after, before = {}, step.before
        tau = int(number(step.inputs["base_rtt"]))
        xi = Real(number(before["xi"]))
        if tau != before["base_rtt"]:
            gain = self.alpha / seconds(tau)
            after = {
                "base_rtt": tau,
                "gain": gain,
                "zero": self.eta / seconds(tau),
                "rate_min": Real(number(before["packet"])).exact_times(8) / seconds(tau),
            }
            if self.params["compensate"] and before["updated"] is not None:
                # tcp-maxnet-2006 eq. 12.
                xi += number(before["price"]) * (
                    Real(number(step.after["gain"])) - number(before["gain"])
                )
                after["xi"] = xi
        field = fields_of(step.inputs["echo"])[0]
        code = field & CODE_MAX
        if field & FLAG:
            if before["start"] == _ASKING:
                after |= self._start(step, code, tau)
        elif code:
            updated = before["updated"]
            if updated is None or since(step, "updated") >= self.dt_min:
                after |= self._priced(step, smallest(real_of(code), self.price_max), xi, tau)
        return Expected(after, self._limit(step))

    def _start(self, step: Step, code: int, tau: int) -> dict[str, object]:
        """Return the state in which MaxStart begins, at the rate that the path grants (§IV.B).
        MaxStart is over if the code is 0.
        """
        if code == 0:
            return {"start": _OVER}
        rate = self.x_max * exp(-real_of(code))
        initial = step.after["start_initial"]
        after = {
            "start": _RISING,
            "start_initial": rate,
            "start_rate": initial,
            "start_raised": None,
        }
        return {
            **after,
            **self._sent(step, Real(number(initial)) if initial is not None else rate, tau),
        }

    def _sent(self, step: Step, rate: Real, tau: int) -> dict[str, object]:
        """Return the pacing rate and the window W = τ x, at least one packet per RTT (eq. 10)."""
        pacing = largest(rate, number(step.after["rate_min"]))
        window = Real(number(step.after["pacing"] or 0.0)) * seconds(tau)
        return {"pacing": pacing, "window": window.exact_times(Fraction(1, 8))}

    def _priced(self, step: Step, q: Real, xi: Real, tau: int) -> dict[str, object]:
        """Return the state after the source applies a price q, at most p_max (Fig. 2)."""
        gain, zero = number(step.after["gain"]), number(step.after["zero"])
        before = step.before
        rest = gain * q - q / seconds(self.t)
        after: dict[str, object] = {"price": q, "updated": step.time}
        mode = before["start"]
        if before["updated"] is None:
            after["xi"] = rest
            if mode == _ASKING:
                after["start"] = mode = _OVER
        else:
            dt = seconds(since(step, "updated"))
            # eq. 10: ξ + (αη/τ²) dt ((Tα/τ − 1) q − Tξ), never past ξ* (§VI).
            pull = (seconds(self.t) * gain - 1) * q - seconds(self.t) * xi
            after["xi"] = clipped(xi, xi + Real(gain) * zero * dt * pull, rest)
        used = Real(number(step.after["xi"]))
        if self.params["order"] == "rate-first" and before["updated"] is not None:
            used = xi
        # eq. 6a: x = x_max exp(ξ − αq/τ), at most x_max.
        rate = number(before["weight"]) * (self.x_max * exp(smallest(used - gain * q, 0)))
        after["price_rate"] = rate
        price_rate = number(step.after["price_rate"])
        return {**after, **self._risen(step, mode, price_rate, tau)}

    def _risen(self, step: Step, mode: Value, price_rate: float, tau: int) -> dict[str, object]:
        """Return the state after a step of MaxStart, which raises the rate by Δ dt/(2τ) up to the
        price's rate (§IV.B).
        """
        before = step.before
        if mode != _RISING:
            return self._sent(step, Real(price_rate), tau)
        raised = before["start_raised"]
        rate, raised = Real(number(before["start_rate"])), step.time if raised is None else raised
        initial = number(before["start_initial"])
        dt = max(step.time - whole(raised), 0)
        if below(rate, price_rate) and dt >= tau // _STEPS_PER_RTT:
            part = ratio(dt, tau) / 2
            rate += (Real(price_rate) - initial) * part
            raised = step.time
        still = below(rate, price_rate)
        rising = {"start_rate": rate, "start_raised": raised, **self._sent(step, rate, tau)}
        over = {
            "start": _OVER,
            "start_initial": None,
            "start_rate": None,
            "start_raised": None,
            **self._sent(step, Real(price_rate), tau),
        }
        if still is None:
            still = step.after["start"] == _RISING
        return rising if still else over


def clipped(xi: Real, following: Real, rest: Real) -> object:
    """Return the next ξ, or the equilibrium ξ* if the step would pass it (§VI)."""
    side, ahead = below(rest, xi), below(rest, following)
    if side is None or ahead is None:
        return OneOf(following, rest)
    return following if side == ahead else rest


LAW = LawChecker(Router, Receiver, Source, lacks)
