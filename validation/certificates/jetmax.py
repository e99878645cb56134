"""Equations of JetMax (Zhang, Leonard, Loguinov 2006), tagged as on the law's page."""

from __future__ import annotations

import struct

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
from validation.certificates.rounding import OneOf, Real, below, largest, single, smallest
from validation.certificates.units import given, number, picoseconds, seconds, since, whole

_DATA = ">ffffBBB5x"
_ECHO = ">fffBB2x"
_LEAST = 1.0
_SYN = 0
_PATIENCE = 4


class Router(PartChecker):
    """Equations of a JetMax router (`membership`, `W`, `fair-rate` and `loss`)."""

    def __init__(self, params: Params) -> None:
        self.params = params
        self.interval = picoseconds(params["interval"])

    def _goal(self, step: Step) -> Real:
        # γC, more than nothing.
        return largest(Real(number(step.inputs["capacity"])) * number(step.after["gamma"]), _LEAST)

    def _new(self, step: Step) -> Expected:
        target = step.inputs["target"]
        zeros = dict.fromkeys(("membership", "others", "flows", "unresponsive"), 0.0)
        after = {
            **zeros,
            "gamma": number(self.params["gamma"] if target is None else target),
            "goal": self._goal(step),
            "target": None,
            "next_update": self.interval,
        }
        return Expected(after, {"poll_at": self.interval})

    def _on_arrival(self, step: Step) -> Expected:
        before, inputs = step.before, step.inputs
        others = Real(number(inputs["volume"])) + number(before["others"])
        if not inputs["has_header"]:
            return Expected({"others": others}, {n: inputs[n] for n in ("has_header", "header")})
        fields = struct.unpack(_DATA, header(inputs["header"]))
        rate, delta, loss, target, hops, bottleneck, following = fields
        hops = min(hops + 1, 255)
        packets, volume = number(inputs["packets"]), number(inputs["volume"])
        weight = Real(1)
        if rate == 0:
            weight = Real(0)
        elif volume > 0:
            weight = packets * Real(delta) / (Real(volume).exact_times(8) / rate)
        after: dict[str, object] = {}
        own, most = before["target"], Real(number(before["goal"]))
        sent_target: object = target
        if bottleneck == hops:
            # `membership`: Σδ; and the packet gets g.
            after["membership"] = Real(delta) * packets + number(before["membership"])
            sent_target = 0.0 if own is None else single(number(own))
            share = most if own is None else Real(number(own))
        else:
            after["others"] = others
            joined = self._share_if_joined(step, rate, weight)
            share = smallest(largest(joined, _LEAST), most)
        # `loss`: p = 1 − s w/x.
        proposed = single(1 - share * weight / max(rate, _LEAST))
        kept = Packed(_DATA, rate, delta, loss, sent_target, hops, bottleneck, following)
        raised = Packed(_DATA, rate, delta, proposed, sent_target, hops, bottleneck, hops)
        low, high = proposed.bounds()
        more: bool | None = (
            True if following == 0 or low > loss else False if high <= loss else None
        )
        choice = {True: raised, False: kept, None: OneOf(raised, kept)}[more]
        return Expected(after, {"has_header": 1, "header": choice})

    def _share_if_joined(self, step: Step, rate: float, weight: Real) -> Real:
        """Return the fair share of a joining flow (`loss`): (γC − W + x)/(N + w). If N is 0 and W
        exceeds γC, the share is x γC/(W w).
        """
        goal, others = number(step.before["goal"]), number(step.before["unresponsive"])
        flows = number(step.before["flows"])
        if flows <= 0 and others > goal:
            return rate * (Real(goal) / others) / weight if weight.value else Real(goal)
        return (
            (Real(goal) - others + rate) / (flows + weight) if flows or weight.value else Real(goal)
        )

    def _on_timer(self, step: Step) -> Expected:
        before, after_now = step.before, step.after
        after: dict[str, object] = {
            "goal": self._goal(step),
            "flows": Real(number(before["membership"])) / seconds(self.interval),
            "unresponsive": Real(number(before["others"])).exact_times(8) / seconds(self.interval),
            "membership": 0.0,
            "others": 0.0,
            "next_update": step.time + self.interval,
        }
        flows, most = number(after_now["flows"]), Real(number(after_now["goal"]))
        if flows > 0:
            # `fair-rate`: g = (γC − W)/N.
            fair = (most - number(after_now["unresponsive"])) / flows
            after["target"] = smallest(largest(fair, _LEAST), most)
        return Expected(after, {"poll_at": step.time + self.interval})


def receiver(_: Params) -> Check:
    """Return the equations of a JetMax receiver, which echoes x, p, g, R_S and R_N."""

    def echo_of(data: bytes) -> bytes:
        rate, _, loss, target, _, bottleneck, following = struct.unpack(_DATA, data)
        return struct.pack(_ECHO, rate, loss, target, bottleneck, following)

    return EchoLast(bytes(16), echo_of)


class Source(SourceChecker):
    """Equations of a JetMax source (`source` and `switching`)."""

    first_window = "initial_window"

    def __init__(self, params: Params) -> None:
        self.params = params
        self.x_min, self.tau = number(params["x_min"]), number(params["tau"])
        self.interval = picoseconds(params["interval"])

    def _limit(self, step: Step) -> dict[str, object]:
        s = step.after
        rate, rtt = s["rate"], s["rtt"]
        if rate is None or rtt is None:
            return {"window": s["initial_window"], "pacing": rate}
        # Two RTTs at rate x, and a packet.
        window = Real(number(rate)) * seconds(2 * whole(rtt)) / 8 + number(s["packet"])
        return {"window": window, "pacing": rate}

    def _new(self, step: Step) -> Expected:
        none = dict.fromkeys(("rate", "target", "doubted_since", "rtt"))
        kept = given(step, "weight", "packet", "initial_window")
        after = {**none, **kept, "bottleneck": 0, "joined": 0, "counted_after": 0}
        return Expected(after, self._limit(step))

    def _stamp(self, step: Step) -> Expected:
        before = step.before
        rate = self.x_min if before["rate"] is None else number(before["rate"])
        delta = number(before["weight"]) * (
            Real(number(step.inputs["volume"])).exact_times(8) / rate
        )
        packed = Packed(
            _DATA, single(rate), single(delta), 0.0, 0.0, 0, whole(before["bottleneck"]), 0
        )
        return Expected({}, {"has_header": 1, "header": packed})

    def _on_ack(self, step: Step) -> Expected:
        after: dict[str, object] = {}
        if step.inputs["has_echo"]:
            sample, rtt = step.inputs["rtt"], step.before["rtt"]
            if sample is not None:
                # RFC 6298's weight of 1/8, in whole picoseconds.
                new = whole(sample)
                rtt = new if rtt is None else (7 * whole(rtt) + new) // 8
                after["rtt"] = rtt
            smoothed = whole(step.inputs["base_rtt"] if rtt is None else rtt)
            after |= self._applied(step, smoothed)
        return Expected(after, self._limit(step))

    def _join(self, step: Step, router_number: int, rtt: int) -> dict[str, object]:
        return {
            "bottleneck": router_number,
            "joined": step.time,
            "counted_after": rtt + 2 * self.interval,
            "doubted_since": None,
        }

    def _applied(self, step: Step, rtt: int) -> dict[str, object]:
        before = step.before
        rate, loss, g, named, following = struct.unpack(_ECHO, header(step.inputs["echo"]))
        if before["rate"] is None:
            first = Real(number(before["initial_window"])).exact_times(8)
            counted = seconds(rtt + 2 * self.interval)
            return {
                **self._join(step, following, rtt),
                "rate": largest(first / counted, self.x_min),
            }
        counted_in_full = since(step, "joined") >= whole(before["counted_after"])
        syn = step.inputs["kind"] == _SYN
        if syn or not following or named != before["bottleneck"] or not counted_in_full:
            return {}
        target = number(before["weight"]) * Real(g)
        proposed = (1 - Real(loss)) * rate
        other = following != named
        doubts = is_less(proposed, target, number(self.params["epsilon"])) if other else False
        if doubts is None:
            # Rounding decides whether another router has less: take what was decided.
            doubts = step.after["doubted_since"] is not None or step.after["joined"] == step.time
        after: dict[str, object] = {}
        if not doubts:
            after["doubted_since"] = None
        else:
            since_when = before["doubted_since"]
            since_when = step.time if since_when is None else whole(since_when)
            leaves: bool | None = target.value <= 0
            if not leaves:
                after["doubted_since"] = since_when
                leaves = self._patient(
                    step, since_when, is_less(proposed, rate, number(self.params["urgent"]))
                )
            if leaves:
                return self._join(step, following, rtt)
        if target.value > 0:
            # `source`: x − τ (x − g); no rise past what another router would have for it.
            x = rate - self.tau * (rate - target)
            if doubts:
                x = smallest(x, largest(proposed, rate))
            after |= {"target": target, "rate": largest(x, self.x_min)}
        return after

    def _patient(self, step: Step, since_when: int, urgent: bool | None) -> bool:
        """Return True if the flow has received lower rates for long enough to leave its router."""
        doubted = max(step.time - since_when, 0)
        soon, late = (
            doubted >= self.interval,
            doubted >= _PATIENCE * whole(step.before["counted_after"]),
        )
        if urgent is None:
            return step.after["joined"] == step.time if soon != late else soon
        return soon if urgent else late


def is_less(proposed: Real, target: Real | float, factor: float) -> bool | None:
    """Return True if another router's share is smaller by more than the fraction `factor`, or None
    if rounding decides (`switching`).
    """
    goal = target if isinstance(target, Real) else Real(target)
    return True if goal.value <= 0 else below(proposed, (1 - Real(factor)) * goal)


LAW = LawChecker(Router, receiver, Source)
