"""Equations of JetMax's fixed-point version, from Zhang et al. 2006 and the scales in
kernel/jetmax.h.

Whole numbers: rates in bit/s, N in 2⁻²⁰ flows, δ in 2⁻⁴⁰ s, times in µs, weights (16 + m) 2^(e−8),
parameters in millionths. Rates on the wire are codes. Every division rounds down.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, TypeAlias

from validation.certificates.fixed import codes
from validation.certificates.fixed.arithmetic import part
from validation.certificates.fixed.log import U64, Layout, layout, params_layout
from validation.certificates.log import Step
from validation.certificates.receivers import header
from validation.certificates.replay import Check, Expected, LawChecker, Params, by_call

State: TypeAlias = "dict[str, Any]"

_RATE_MAX, _BYTES_MAX, _FLOWS_MAX = 1 << 50, (1 << 20) - 1, 1 << 43
_MEMBERSHIP_MAX = 1 << 62
_FLOW = 1 << 20
_HOPS_MAX = 31
_MILLION = 1_000_000
_WEIGHT_ONE = 0x40
_FEW = 1 << 40
_WINDOW_MAX = 1 << 40
_PATIENCE = 4

LAYOUTS: Mapping[str, Layout] = {
    "params": params_layout("jetmax"),
    "sums": layout("bytes_sum own_sum membership_sum"),
    "cpu": layout("cpu_bytes cpu_own cpu_membership"),
    "link": layout(
        "goal target unresponsive flows join overloaded", "target_code share_code interval reserved"
    ),
    "source": layout(
        "rate window target offer x_min doubted_since joined",
        "counted_after packet bottleneck weight",
    ),
    "receiver": layout("", "rate share target hops"),
}


def weighted(number: int, weight: int) -> int:
    """Return a number times the weight of a code byte, at most the largest rate."""
    exponent, sixteenths = divmod(weight, 16)
    product = number * (16 + sixteenths) << exponent >> 8
    return min(product, _RATE_MAX)


def delta(size: int, rate_code: int, weight: int) -> int:
    """Return a packet's δ = w s/x in units of 2⁻⁴⁰ s (`membership`)."""
    mantissa, exponent = codes.parts(rate_code)
    power, sixteenths = divmod(weight, 16)
    # Bits times 16 + m, over the mantissa, in 2⁻³⁴; with 2^(e − 8) and the exponent, 2⁻⁴⁰ remain.
    quotient = (8 * size * (16 + sixteenths) << 34) // max(mantissa, 1)
    more = power - 8 + 40 - 34 - exponent
    if more <= 0:
        return quotient >> -more
    # Above 16 s it counts as 1.5 days.
    return quotient << more if quotient < 1 << 44 else 1 << 57


# ------------------------------------------------------------------ router


def router(_: Params) -> Check:
    """Return the equations of a JetMax router (`membership`, `W`, `fair-rate` and `loss`)."""

    def within(s: State, rate: int) -> int:
        """Return the rate that a router writes, limited to between 1 bit/s and γC."""
        return min(max(rate, 1), int(s["goal"]))

    def derived(s: State) -> State:
        """Return the state derived once per interval, from which the router writes headers."""
        others = s["unresponsive"]
        return {
            "target_code": codes.code(s["target"]),
            "share_code": codes.code(s["target"] or s["goal"]),
            "join": codes.factor(_FLOW, s["flows"] + _FLOW),
            "overloaded": codes.fraction(s["goal"], others)
            if not s["flows"] and others > s["goal"]
            else 0,
        }

    def tick(step: Step) -> Expected:
        s: State = dict(step.before)
        sums: State = dict(step.inputs)
        us = s["interval"]
        # `membership`: N = Σδ/Δ.
        membership = min(sums["membership_sum"], _MEMBERSHIP_MAX)
        s["flows"] = min(membership * _MILLION // (us * _FLOW), _FLOWS_MAX)
        # `W`: bytes of the others; at most 2²⁸ in a microsecond count.
        others = min(max(sums["bytes_sum"] - sums["own_sum"], 0), us << 28)
        s["unresponsive"] = min(others * 8 * _MILLION // us, _RATE_MAX)
        if s["flows"]:
            # `fair-rate`: g = (γC − W)/N; all of γC where N is below the part of it that is left.
            rest = max(s["goal"] - s["unresponsive"], 0)
            few = s["flows"] <= codes.fraction(rest, s["goal"]) >> 12
            s["target"] = s["goal"] if few else within(s, rest * _FLOW // s["flows"])
        return Expected({**s, **derived(s)}, {"value": bytes(16)})

    def idle(step: Step) -> Expected:
        s: State = dict(step.before)
        if step.inputs["intervals"]:
            s["flows"] = s["unresponsive"] = 0
            s |= derived(s)
        return Expected(s, {"value": bytes(16)})

    def share_if_joined(s: State, rate: int, weight: int) -> int:
        """Return the fair share of a flow that would join, (γC − W + x)/(N + w) (`loss`).

        If the other flows overload the link, the share is x·γC/(W·w).
        """
        w = weighted(_FLOW, weight)
        if s["overloaded"]:
            return within(s, (rate * s["overloaded"] >> 32) * _FLOW // w)
        rest = max(s["goal"] + rate - s["unresponsive"], 0)
        if weight == _WEIGHT_ONE and rest < _FEW:
            return within(s, codes.product(rest, s["join"]))
        return within(s, rest * _FLOW // (s["flows"] + w))

    def mark(step: Step) -> Expected:
        s: State = dict(step.before)
        value, size = header(step.inputs["value"]), int(step.inputs["bytes"] or 0)
        rate, share, target = (int.from_bytes(value[i : i + 3], "big") for i in (0, 3, 6))
        weight, hops = struct.unpack(">BH", value[9:12])
        # R_T counts this router; R_S names the flow's own, R_N the one with the smallest share.
        here = min((hops >> 10 & 31) + 1, _HOPS_MAX)
        own, following = hops >> 5 & 31, hops & 31
        after: State = {}
        if own == here:
            own_delta = delta(min(size, _BYTES_MAX), rate, weight)
            after["cpu_own"] = s["cpu_own"] + size & U64
            after["cpu_membership"] = s["cpu_membership"] + own_delta & U64
            target, mine = s["target_code"], s["share_code"]
        else:
            mine = codes.code(share_if_joined(s, codes.number(rate), weight))
        if not following or mine < share:
            share, following = mine, here
        fields = (number.to_bytes(3, "big") for number in (rate, share, target))
        written = b"".join(fields) + struct.pack(">BH", weight, here << 10 | own << 5 | following)
        return Expected(after, {"value": written + bytes(4)})

    return by_call(mark=mark, tick=tick, idle=idle)


# ------------------------------------------------------------------ receiver


def receiver(_: Params) -> Check:
    """Return the equations of a JetMax receiver, which echoes the latest header's rates, R_S and
    R_N.
    """

    def receive(step: Step) -> Expected:
        value = header(step.inputs["value"])
        rate, share, target = (int.from_bytes(value[i : i + 3], "big") for i in (0, 3, 6))
        hops = int.from_bytes(value[10:12], "big") % (1 << 10)
        return Expected({"rate": rate, "share": share, "target": target, "hops": hops})

    return by_call(receive=receive)


# ------------------------------------------------------------------ source


def source(_: Params) -> Check:
    """Return the equations of a JetMax source (`source` and `switching`)."""

    def ack(step: Step) -> Expected:
        p: State = dict(step.inputs)
        s: State = dict(step.before)
        s["packet"] = p["tcp.packet"] or s["packet"]
        echo = header(p["value"])
        own, named = divmod(int.from_bytes(echo[9:11], "big") % (1 << 10), 32)
        if not p["has_echo"] or not named:
            return Expected(s)
        if not s["rate"]:
            # The first window, over the time until a router has counted the flow.
            join(p, s, named)
            window = min(s["window"], _WINDOW_MAX)
            s["rate"] = sent(s, window * 8 * _MILLION // max(s["counted_after"], 1))
        elif own == s["bottleneck"] and p["tcp.now_us"] >= s["joined"] + s["counted_after"]:
            x, share, target = (
                codes.number(int.from_bytes(echo[i : i + 3], "big")) for i in (0, 3, 6)
            )
            # Routers name what a weight of 1 gets.
            follow(p, s, x, (weighted(share, s["weight"]), weighted(target, s["weight"])), named)
        return Expected(s)

    return by_call(ack=ack)


def join(p: State, s: State, router: int) -> None:
    """Move the flow to a router. The router has counted the flow fully after two intervals and an
    RTT.
    """
    rtt = p["tcp.srtt_us"] // 8 if p["tcp.srtt_us"] else p["tcp.base_rtt_us"]
    s |= {"bottleneck": router, "joined": p["tcp.now_us"], "doubted_since": 0}
    s["counted_after"] = rtt + 2 * p["interval"]


def sent(s: State, rate: int) -> int:
    """Return a source's rate, limited to between x_min and the largest rate."""
    return max(min(rate, _RATE_MAX), int(s["x_min"]))


def fraction(millionths: int) -> int:
    """Convert a parameter from millionths to units of 2⁻³²."""
    return (millionths << 32) // _MILLION


def is_less(proposed: int, target: int, factor: int) -> bool:
    """Return True if the proposed share is below (1 − ε) g (`switching`), or if the flow's own
    router has no target.
    """
    return not target or proposed < target - part(target, fraction(factor))


def follow(p: State, s: State, x: int, offers: tuple[int, int], named: int) -> None:
    """Switch to the router `named`, or move the rate x of one RTT ago towards the current router's
    target g.
    """
    share, g = offers
    s["offer"] = min(share, g)
    doubts = named != s["bottleneck"] and is_less(share, g, p["epsilon"])
    if not doubts:
        s["doubted_since"] = 0
    elif not g or leaves(p, s, x, share):
        join(p, s, named)
        return
    if not g:
        return
    # `source`: x − τ (x − g); τ's part of the distance rounds down, also upwards.
    step_by = part(abs(x - g), fraction(p["tau"]))
    rate = x + step_by if g >= x else max(x - step_by, 0)
    if doubts:
        # No rise past what the other router would have for it.
        rate = min(rate, max(share, x))
    s["target"], s["rate"] = g, sent(s, rate)


def leaves(p: State, s: State, x: int, share: int) -> bool:
    """Return True if the flow has preferred another router for long enough to switch. One interval
    Δ suffices if the flow sends too much.
    """
    now = p["tcp.now_us"]
    if not s["doubted_since"] or s["doubted_since"] > now:
        s["doubted_since"] = now
    urgent = is_less(share, x, p["urgent"])
    patience = p["interval"] if urgent else _PATIENCE * s["counted_after"]
    return bool(now - s["doubted_since"] >= patience)


LAW = LawChecker(router, receiver, source)
