"""Equations of VCP (Xia, Subramanian, Stoica, Kalyanaraman 2005), tagged as on the law's page."""

from __future__ import annotations

from validation.certificates.log import Step
from validation.certificates.receivers import EchoLast, header
from validation.certificates.replay import (
    SYNS_LOST,
    Check,
    Expected,
    LawChecker,
    Params,
    PartChecker,
)
from validation.certificates.rounding import OneOf, Real, below, floor, largest, power, smallest
from validation.certificates.units import from_seconds, given, number, picoseconds, seconds, whole

_LOW, _HIGH, _OVER = 1, 2, 3
_NOT_WRITTEN = 0x80
_SYN = 0
_LOSS, _TIMEOUT = 0, 1
_MI_TIMES_T_RHO = 2.5
_AI_RTT_SHORT_S, _AI_RTT_LONG_S = 0.020, 0.500


def byte(load: int) -> bytes:
    """Return the header of a load code: the two ECN bits in a byte, padded with zeros."""
    return bytes([load or _NOT_WRITTEN, *bytes(7)])


def load_of(data: bytes) -> int:
    """Return the load code in a header."""
    return data[0] if data[0] != _NOT_WRITTEN else 0


class Router(PartChecker):
    """Equations of a VCP router (`load-factor` and `code`)."""

    def __init__(self, params: Params) -> None:
        self.params = params
        self.t_rho, self.t_q = picoseconds(params["t_rho"]), picoseconds(params["t_q"])

    def _new(self, step: Step) -> Expected:
        target = step.inputs["target"]
        zeros = dict.fromkeys(("arrived", "queue", "load_factor", "samples"), 0.0)
        after = {
            **zeros,
            "capacity": step.inputs["capacity"],
            "gamma": number(self.params["gamma"] if target is None else target),
            "sample_count": 0,
            "load": _LOW,
            "next_sample": self.t_q,
            "next_measurement": self.t_rho,
        }
        return Expected(after, {"poll_at": min(self.t_q, self.t_rho)})

    def _on_arrival(self, step: Step) -> Expected:
        arrived = Real(number(step.inputs["volume"])) + number(step.before["arrived"])
        kept = {name: step.inputs[name] for name in ("has_header", "header")}
        return Expected({"arrived": arrived}, kept)

    def _on_departure(self, step: Step) -> Expected:
        outputs = {name: step.inputs[name] for name in ("has_header", "header")}
        if step.inputs["has_header"]:
            load = max(load_of(header(step.inputs["header"])), whole(step.before["load"]))
            outputs["header"] = byte(load)
        return Expected({}, outputs)

    def _on_timer(self, step: Step) -> Expected:
        before = step.before
        after: dict[str, object] = {}
        samples, count = Real(number(before["samples"])), whole(before["sample_count"])
        sampled, measured = whole(before["next_sample"]), whole(before["next_measurement"])
        if sampled <= step.time:
            samples, count = samples + number(step.inputs["queue"]), count + 1
            sampled = step.time + self.t_q
            after |= {"samples": samples, "sample_count": count, "next_sample": sampled}
        if measured <= step.time:
            measured = step.time + self.t_rho
            after |= self._measurement(step, samples, count)
            after |= {"next_measurement": measured, "samples": 0.0, "sample_count": 0}
        return Expected(after, {"poll_at": min(sampled, measured)})

    def _measurement(self, step: Step, samples: Real, count: int) -> dict[str, object]:
        """Return the results of a measurement: the load factor (λ + κ_q q̃)/(γ C t_ρ) with a
        smoothed queue q̃ (`load-factor`).
        """
        queue = Real(number(step.before["queue"]))
        if count:
            queue += (samples / count - queue) * number(self.params["queue_weight"])
        capacity = Real(number(step.before["gamma"])) * number(step.inputs["capacity"])
        volume = capacity * seconds(self.t_rho) / 8
        waiting = number(self.params["kappa_q"]) * Real(number(step.after["queue"]))
        load = (Real(number(step.before["arrived"])) + waiting) / volume
        factor: object = load
        if self.params["whole_percent"]:
            hundred = 100 * load
            percents = range(floor(hundred.low()), floor(hundred.high()) + 1)
            factor = OneOf(*((Real(n + 1)) / 100 for n in percents))
        return {
            "capacity": step.inputs["capacity"],
            "queue": queue,
            "load_factor": factor,
            "load": level(number(step.after["load_factor"])),
            "arrived": 0.0,
        }


def level(load_factor: float) -> int:
    """Return the load code: low below 80 %, high from 80 % and overload from 100 % (`code`)."""
    return _LOW if load_factor < 0.8 else _HIGH if load_factor < 1.0 else _OVER


def receiver(_: Params) -> Check:
    """Return the equations of a VCP receiver, which echoes the load code."""
    return EchoLast(byte(_LOW), lambda data: data)


class Source(PartChecker):
    """Equations of a VCP source (`MI`, `AI` and `MD` with their scaling)."""

    def __init__(self, params: Params) -> None:
        self.params = params
        self.t_rho, self.t_d = picoseconds(params["t_rho"]), picoseconds(params["t_d"])

    def _limit(self, step: Step) -> dict[str, object]:
        window = Real(number(step.after["window"])) * number(step.after["packet"])
        return {"window": window, "pacing": None}

    def _new(self, step: Step) -> Expected:
        window = Real(number(step.inputs["initial_window"])) / number(step.inputs["packet"])
        none = dict.fromkeys(("frozen_until", "adding_until", "rtt"))
        after = {**none, **given(step, "weight", "packet"), "load": _LOW}
        return Expected({**after, "window": largest(window, 1)}, self._limit(step))

    def _stamp(self, _: Step) -> Expected:
        return Expected({}, {"has_header": 1, "header": byte(_LOW)})

    def _on_ack(self, step: Step) -> Expected:
        after: dict[str, object] = {}
        inputs, before = step.inputs, step.before
        if inputs["has_echo"]:
            sample, rtt = inputs["rtt"], before["rtt"]
            if sample is not None:
                rtt = whole(sample) if rtt is None else (7 * whole(rtt) + whole(sample)) // 8
                after["rtt"] = rtt
            acked = number(inputs["acked"])
            if inputs["kind"] != _SYN and acked > 0:
                after["load"] = load = load_of(header(inputs["echo"]))
                smoothed = whole(inputs["base_rtt"] if rtt is None else rtt)
                packets = Real(acked) / number(before["packet"])
                after |= self._moved(step, load, packets, smoothed)
        return Expected(after, self._limit(step))

    def _moved(self, step: Step, load: int, packets: Real, rtt: int) -> dict[str, object]:
        before = step.before
        window = Real(number(before["window"]))
        frozen, adding = before["frozen_until"], before["adding_until"]
        held = self.params["freeze"] == "always" or load == _OVER
        if frozen is not None and step.time < whole(frozen) and held:
            return {}
        if load < _HIGH:
            # `MI`: ξ_s = (1 + ξ)^(rtt/t_ρ) − 1 for each RTT, spread over its packets.
            exponent = smallest(seconds(rtt) / seconds(self.t_rho), _MI_TIMES_T_RHO)
            return {
                "window": window
                + packets * (power(1 + Real(number(self.params["xi"])), exponent) - 1)
            }
        late = adding is not None and step.time < whole(adding)
        if load == _HIGH or late:
            # `AI`: α (rtt/t_d)²/w, linear in the RTT outside of 20 to 500 ms.
            alpha = number(before["weight"]) * Real(number(self.params["alpha"]))
            return {"window": window + packets / window * (alpha * self._squared(rtt))}
        # `MD`: β w, then nothing for t_ρ, then AI for an RTT.
        until = step.time + whole(step.after["frozen_until"]) - step.time
        low, high = from_seconds(seconds(self.t_rho)).bounds()
        frozen_until = OneOf(*(step.time + span for span in range(low, high + 1)))
        return {
            "window": largest(number(self.params["beta"]) * window, 1),
            "frozen_until": frozen_until,
            "adding_until": until + rtt,
        }

    def _squared(self, rtt: int) -> Real:
        d = seconds(self.t_d)
        short, long = _AI_RTT_SHORT_S / d, _AI_RTT_LONG_S / d
        x = seconds(rtt) / d
        if below(x, short) is not False:
            return x * short
        return x * x if below(long, x) is not True else x - long + long * long

    def _on_event(self, step: Step) -> Expected:
        event, after = step.inputs["event"], {}
        if event == _LOSS:
            after = {"window": largest(Real(number(step.before["window"])) / 2, 1)}
        elif event in (_TIMEOUT, SYNS_LOST):
            after = {"window": Real(1)}
        return Expected(after, self._limit(step))


LAW = LawChecker(Router, receiver, Source)
