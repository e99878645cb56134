"""Equations of AECP, from aecp-2010: eq. 2–4, 46, 48, 49, Fig. 4, §5.2 and §5.3."""

from __future__ import annotations

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
    Number,
    OneOf,
    Real,
    Whole,
    exp,
    exp2,
    expm1,
    largest,
    log2,
    power,
    smallest,
    within,
)
from validation.certificates.units import given, number, picoseconds, seconds, since, usable, whole

_FORM = ">BH5x"
_TCP = 6
_UNWRITTEN, _LARGEST = 0xFFFF, 0xFFFE
_SLOWEST = 0.25
_STEPS_PER_OCTAVE = 1024
_FIRST_PACKET = 1500.0
_DATA = 1


def rate_at(code: int) -> Real:
    """Return the rate of a code, in packets/s (Fig. 4)."""
    return _SLOWEST * exp2(Real(Fraction(code, _STEPS_PER_OCTAVE)))


class Router(PartChecker):
    """Equations of an AECP router (§5.3)."""

    def __init__(self, params: Params) -> None:
        self.params = params
        self.beta, self.t, self.t_2 = (
            number(params["beta"]),
            picoseconds(params["t"]),
            picoseconds(params["t_2"]),
        )

    def _in_packets(self, rate: Number, packet: float) -> Real:
        return Real(0) + rate if packet == 0 else rate / Real(packet).exact_times(8)

    def _written(self, step: Step, r: Real) -> dict[str, object]:
        """Return the rate r, limited to its range, and the position of r on the scale of Fig. 4."""
        capacity = self._in_packets(number(step.after["capacity"]), number(step.after["packet"]))
        if self.params["ceiling"] == "empty-queue":
            # eq. 2 at rest with an empty queue.
            capacity -= (Real(0) - number(step.after["q_0"])) / seconds(self.t)
        clipped = largest(smallest(smallest(r, capacity), rate_at(_LARGEST)), _SLOWEST)
        place = log2(number(step.after["r"]) / Real(_SLOWEST)) * _STEPS_PER_OCTAVE
        return {"r": clipped, "place": place}

    def _new(self, step: Step) -> Expected:
        target = step.inputs["target"]
        capacity = self._in_packets(number(step.after["capacity"]), _FIRST_PACKET)
        first = Real(number(self.params["x_0"])) if self.params["r_0"] == "x_0" else capacity
        after = {
            "capacity": usable(step),
            "q_0": number(self.params["q_0"]) if target is None or number(target) >= 1 else 0.0,
            "residue": 0.0,
            "packet": _FIRST_PACKET,
            "arrived": 0.0,
            "data_volume": 0.0,
            "data_packets": 0.0,
            "next_update": self.t_2,
            **self._written(step, first),
        }
        return Expected(after, {"poll_at": self.t_2})

    def _on_arrival(self, step: Step) -> Expected:
        before, inputs = step.before, step.inputs
        volume = Real(number(inputs["volume"]))
        after: dict[str, object] = {"arrived": volume + number(before["arrived"])}
        outputs: dict[str, object] = {n: inputs[n] for n in ("has_header", "header")}
        if inputs["has_header"]:
            if inputs["kind"] == _DATA:
                packets = Real(number(inputs["packets"]))
                after["data_volume"] = volume + number(before["data_volume"])
                after["data_packets"] = packets + number(before["data_packets"])
            place = Real(number(before["place"]))
            if self.params["rounding"] == "carried":
                place += number(before["residue"])
            low, high = Whole(place + 0).bounds()
            codes = [min(max(c, 0), _LARGEST) for c in range(low, high + 1)]
            if self.params["rounding"] == "carried":
                # What a code leaves of the place is carried to the next packet.
                left = [within(place - code, -0.5, 0.5) for code in codes]
                after["residue"] = OneOf(*left)
            kind, factor = struct.unpack(_FORM, header(inputs["header"]))
            # eq. 4: the smallest of the path.
            choices = [Packed(_FORM, kind, min(factor, code)) for code in codes]
            outputs["header"] = OneOf(*choices)
        return Expected(after, outputs)

    def _on_timer(self, step: Step) -> Expected:
        before = step.before
        volume, packets = number(before["data_volume"]), number(before["data_packets"])
        after: dict[str, object] = {"capacity": usable(step)}
        if volume > 0 and packets > 0:
            after["packet"] = Real(volume) / packets
        packet = number(step.after["packet"])
        capacity = self._in_packets(number(step.after["capacity"]), packet)
        arrived = Real(number(before["arrived"])).exact_times(8)
        load = self._in_packets(arrived / seconds(self.t_2), packet)
        queue = number(step.inputs["queue"]) / Real(packet)
        # eq. 2: Σx + (q − q₀)/T; eq. 49: r exp(βT₂ (1 − used/C)).
        used = load + (queue - number(before["q_0"])) / seconds(self.t)
        r = number(before["r"]) * exp(self.beta * seconds(self.t_2) * (1 - used / capacity))
        after |= {
            **self._written(step, r),
            "arrived": 0.0,
            "data_volume": 0.0,
            "data_packets": 0.0,
            "next_update": step.time + self.t_2,
        }
        return Expected(after, {"poll_at": step.time + self.t_2})


def receiver(_: Params) -> Check:
    """Return the equations of an AECP receiver, which echoes the factor (§5.2)."""
    return EchoLast(struct.pack(_FORM, _TCP, _UNWRITTEN), lambda data: data)


class Source(SourceChecker):
    """Equations of an AECP source (§5.2)."""

    def __init__(self, params: Params) -> None:
        self.params = params
        self.alpha = number(params["alpha"])

    def _limit(self, step: Step) -> dict[str, object]:
        before = step.after
        rate = number(before["weight"]) * Real(number(before["x"]))
        rate = rate * Real(number(before["packet"])).exact_times(8)
        if self.params["source"] == "rate":
            return {"window": None, "pacing": rate}
        window = (rate * seconds(whole(before["tau"]))).exact_times(Fraction(1, 8))
        return {"window": window, "pacing": rate}

    def _new(self, step: Step) -> Expected:
        none = {"tau": 0, "r": None, "updated": None, **given(step, "weight", "packet")}
        return Expected({**none, "x": number(self.params["x_0"])}, self._limit(step))

    def _stamp(self, _: Step) -> Expected:
        return Expected({}, {"has_header": 1, "header": Packed(_FORM, _TCP, _UNWRITTEN)})

    def _on_ack(self, step: Step) -> Expected:
        after: dict[str, object] = {}
        inputs, before = step.inputs, step.before
        if inputs["has_echo"]:
            base = whole(inputs["base_rtt"])
            tau = base if inputs["rtt"] is None else whole(inputs["rtt"])
            of_window = base if self.params["window_rtt"] == "base" else tau
            if not before["tau"]:
                after["tau"] = of_window
            _, factor = struct.unpack(_FORM, header(inputs["echo"]))
            if factor != _UNWRITTEN:
                after |= self._stepped(step, factor, tau, of_window)
        return Expected(after, self._limit(step))

    def _stepped(self, step: Step, factor: int, tau: int, of_window: int) -> dict[str, object]:
        """Return the results of an update of x to x^(1−w) r^w (eq. 46). The weight w is from eq. 48
        or the exact eq. 3.
        """
        after: dict[str, object] = {"r": rate_at(factor)}
        t_1 = 0 if step.before["updated"] is None else since(step, "updated")
        if step.before["updated"] is None:
            after["updated"] = step.time
        if self.params["step"] == "round-trip" and t_1 < tau:
            return after
        gone = self.alpha * seconds(t_1)
        weight = smallest(gone, 1) if self.params["form"] == "printed" else -expm1(-gone)
        r, x = number(step.after["r"]), number(step.before["x"])
        after["x"] = power(x, 1 - weight) * power(r, weight)
        return {**after, "tau": of_window, "updated": step.time}


LAW = LawChecker(Router, receiver, Source)
