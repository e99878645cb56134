"""Equations of TCP MaxNet, from tcp-maxnet-2006: eq. 7–12, §3.1.2, §3.3, Fig. 5 and §6."""

from __future__ import annotations

from fractions import Fraction

from validation.certificates.log import Step
from validation.certificates.maxnet import (
    CODE_MAX,
    FLAG,
    clipped,
    code_of,
    codes,
    fields_of,
    price_max,
    real_of,
    wire,
)
from validation.certificates.receivers import EchoLast
from validation.certificates.replay import (
    Check,
    Expected,
    LawChecker,
    Params,
    PartChecker,
    SourceChecker,
)
from validation.certificates.rounding import OneOf, Real, below, exp, largest, ln, smallest
from validation.certificates.units import given, number, picoseconds, ratio, seconds, since, whole

_SYN = 0
_ASKING, _QUICKSTART, _PRICED = 0, 1, 2


class Router(PartChecker):
    """Equations of a MaxNet 2006 router (eq. 7 and 11, §3.1.2, §6)."""

    def __init__(self, params: Params) -> None:
        self.params = params
        self.x_max, self.x_min = number(params["x_max"]), number(params["x_min"])
        self.every = number(params["mark_every"])
        self.t, self.dt = picoseconds(params["t"]), picoseconds(params["dt"])

    def _price_min(self, step: Step) -> Real:
        # eq. 11: −T ln(C/x_max).
        least = -seconds(self.t) * ln(Real(number(step.inputs["capacity"])) / self.x_max)
        return smallest(least, number(step.after["price_max"]))

    def _new(self, step: Step) -> Expected:
        target = step.inputs["target"]
        mu = number(self.params["mu"] if target is None else target)
        after = {
            "capacity": step.inputs["capacity"],
            "mu": mu,
            "start_share": Real(mu) + number(self.params["epsilon"]),
            "price_min": self._price_min(step),
            "price_max": price_max(self.x_max, self.x_min, self.t),
            "price": step.after["price_min"],
            "price_code": code_of(number(step.after["price"])),
            "arrived": 0.0,
            "arrival_rate": 0.0,
            "next_update": self.dt,
            "since_mark": 0.0,
        }
        return Expected(after, {"poll_at": self.dt})

    def _granted(self, step: Step) -> range:
        """Return the candidate codes of the granted rate (μ + ε) C − y/dt, at least QSminrate
        (§3.1.2).
        """
        capacity = Real(number(step.before["capacity"]))
        least = capacity / number(self.params["qs_min_divisor"])
        share = capacity * number(step.before["start_share"])
        rate = largest(share - number(step.before["arrival_rate"]), least)
        return codes(code_of(-ln(rate / self.x_max)))

    def _on_arrival(self, step: Step) -> Expected:
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
                own = self._granted(step)
            elif self.every > 1:
                # §6: every n-th packet.
                passed = Real(number(before["since_mark"])) + number(inputs["packets"])
                early = below(passed, self.every)
                marks = step.after["since_mark"] == 0.0 if early is None else not early
                after["since_mark"] = 0.0 if marks else passed
            if marks:
                # The highest price of the path, or the slowest rate.
                code = field & CODE_MAX
                choices = {wire(echo, field & FLAG | max(code, c)) for c in own}
                outputs["header"] = OneOf(*choices)
        return Expected(after, outputs)

    def _on_timer(self, step: Step) -> Expected:
        before = step.before
        capacity = number(step.inputs["capacity"])
        after: dict[str, object] = {"capacity": capacity}
        price, least = Real(number(before["price"])), Real(number(before["price_min"]))
        most = number(before["price_max"])
        if capacity != before["capacity"]:
            after["price_min"] = self._price_min(step)
            least = Real(number(step.after["price_min"]))
            price = smallest(largest(price, least), most)
        arrived = Real(number(before["arrived"])).exact_times(8)
        # eq. 7 over dt: p + (y − μC dt)/C.
        moved = price + arrived / capacity - number(before["mu"]) * seconds(self.dt)
        after |= {
            "arrival_rate": arrived / seconds(self.dt),
            "price": smallest(largest(moved, least), most),
            "price_code": code_of(number(step.after["price"])),
            "arrived": 0.0,
            "next_update": step.time + self.dt,
        }
        return Expected(after, {"poll_at": step.time + self.dt})


def receiver(_: Params) -> Check:
    """Return the equations of a MaxNet 2006 receiver, which echoes the last field."""
    return EchoLast(wire(0, 0), lambda data: wire(fields_of(data)[1], 0))


class Source(SourceChecker):
    """Equations of a MaxNet 2006 source (Fig. 5)."""

    first_window = "window"

    def __init__(self, params: Params) -> None:
        self.params = params
        self.x_max, self.alpha, self.eta = (
            number(params[name]) for name in ("x_max", "alpha", "eta")
        )
        self.t, self.dt_source = picoseconds(params["t"]), picoseconds(params["dt_source"])
        self.price_max = price_max(self.x_max, number(params["x_min"]), self.t)

    def _limit(self, step: Step) -> dict[str, object]:
        return {"window": step.after["window"], "pacing": step.after["pacing"]}

    def _new(self, step: Step) -> Expected:
        names = ("pacing", "start_rate", "average", "xi", "base_rtt", "last_price_at", "updated")
        none: dict[str, object] = dict.fromkeys((*names, "acks", "raised", "last_price"))
        none |= given(step, "weight", "packet")
        window = step.inputs["initial_window"]
        return Expected({**none, "mode": _ASKING, "window": window}, self._limit(step))

    def _stamp(self, step: Step) -> Expected:
        asks = self.params["quickstart"] and step.inputs["kind"] == _SYN
        return Expected({}, {"has_header": 1, "header": wire(0, FLAG if asks else 0)})

    def _on_ack(self, step: Step) -> Expected:
        after: dict[str, object] = {}
        if step.inputs["has_echo"]:
            field = fields_of(step.inputs["echo"])[0]
            code, tau = field & CODE_MAX, whole(step.inputs["base_rtt"])
            if field & FLAG:
                if step.before["mode"] == _ASKING:
                    after = self._started(step, code, tau)
            elif code:
                after = self._priced(step, smallest(real_of(code), self.price_max), tau)
        return Expected(after, self._limit(step))

    def _started(self, step: Step, code: int, tau: int) -> dict[str, object]:
        """Return the state in which QuickStart begins, at the rate of a code, or price mode if the
        code is 0 (Fig. 5, step 1; §3.3).
        """
        if code == 0:
            return {"mode": _PRICED}
        rate = self.x_max * exp(-real_of(code))
        start = Real(number(step.after["start_rate"] or 0.0))
        return {"mode": _QUICKSTART, "start_rate": rate, **self._sent(step, start, tau)}

    def _window_max(self, step: Step) -> Real:
        return Real(number(step.before["packet"])) * number(self.params["max_wnd"])

    def _sent(self, step: Step, rate: Real, tau: int) -> dict[str, object]:
        """Return the window τ·x, between one packet and `max_wnd`, and the pacing rate."""
        window = (rate * seconds(tau)).exact_times(Fraction(1, 8))
        window = smallest(largest(window, number(step.before["packet"])), self._window_max(step))
        pacing = Real(number(step.after["window"])).exact_times(8) / seconds(tau)
        return {"window": window, "pacing": pacing}

    def _priced(self, step: Step, price: Real, tau: int) -> dict[str, object]:
        before = step.before
        if before["average"] is None:
            # Fig. 5, step 2: eq. 10 is ξ's first value.
            q = number(step.after["average"] or 0.0)
            gain = self.alpha / seconds(tau)
            after: dict[str, object] = {
                "average": price,
                "xi": gain * q - Real(q) / seconds(self.t),
                "base_rtt": tau,
                "acks": 0,
                "last_price": price,
                **dict.fromkeys(("last_price_at", "updated", "raised"), step.time),
            }
            mode = before["mode"]
            if mode == _ASKING:
                after["mode"] = mode = _PRICED
            return {**after, **self._windowed(step, tau, whole(mode), step.time, price)}
        xi = Real(number(before["xi"]))
        old = whole(before["base_rtt"])
        if tau != old and self.params["compensate"]:
            # eq. 12: ξ + qα (1/τ_new − 1/τ_old).
            xi += (
                number(before["average"]) * Real(self.alpha) * (1 / seconds(tau) - 1 / seconds(old))
            )
        weight = (
            smallest(ratio(since(step, "last_price_at"), tau), 1)
            if self.params["average"]
            else Real(1)
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
        if acks < number(self.params["wnd_update_freq"]) or dt < self.dt_source:
            return after
        q, gain, tau_s = number(step.after["average"]), self.alpha / seconds(tau), seconds(tau)
        # eq. 9: ξ + (η dt/τ²) ((Tα/τ − 1) q − Tξ), never past eq. 10.
        pull = (seconds(self.t) * gain - 1) * q - seconds(self.t) * xi
        following = xi + self.eta / (tau_s * tau_s) * seconds(dt) * pull
        after["xi"] = clipped(xi, following, gain * q - Real(q) / seconds(self.t))
        after |= {"updated": step.time, "acks": 0}
        raised, last = whole(before["raised"]), number(before["last_price"])
        return {**after, **self._windowed(step, tau, whole(before["mode"]), raised, last)}

    def _windowed(
        self, step: Step, tau: int, mode: int, raised: int, last: Real | float
    ) -> dict[str, object]:
        """Return the state after a window update, with x = x_max exp(ξ − qα/τ) (Fig. 5, steps 3 and
        4; eq. 8).
        """
        q, xi = number(step.after["average"]), Real(number(step.after["xi"]))
        exponent = smallest(xi - self.alpha / seconds(tau) * q, 0)
        rate = number(step.before["weight"]) * (self.x_max * exp(exponent))
        if mode != _QUICKSTART:
            return self._sent(step, rate, tau)
        start = Real(number(step.before["start_rate"]))
        after = self._sent(step, start, tau)
        over = below(rate, start)
        if over is None:
            over = step.after["mode"] == _PRICED
        if over:
            return {**after, "mode": _PRICED, "start_rate": None}
        if max(step.time - raised, 0) < tau:
            return after
        after["raised"] = step.time
        asked = (start * seconds(tau)).exact_times(Fraction(1, 8))
        if below(self._window_max(step), asked):
            return after
        after["last_price"] = step.after["average"]
        slow = below(
            (Real(q) - last) / seconds(tau), Fraction(number(self.params["mindeltaq"])) / (1 << 18)
        )
        if q == 0 or slow is not False:
            rises = start * number(self.params["rateinc"])
            after["start_rate"] = rises if slow else OneOf(rises, start)
        return after


LAW = LawChecker(Router, receiver, Source)
