"""Equations of VCP's fixed-point version, from Xia et al. 2005 and the scales in kernel/vcp.h.

Whole numbers: the load factor in 2⁻²⁴, the persistent queue and volumes in 2⁻⁸ bytes, windows in
2⁻³² packets, RTTs in 2⁻³ µs, other times in µs, κ_q and α in thousandths, γ, ξ, β and the queue's
weight in millionths. Every division rounds down, except where a line says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from validation.certificates.fixed.arithmetic import ONE, exp_less_one, log_one_plus, power
from validation.certificates.fixed.log import Layout, layout, params_layout
from validation.certificates.log import Step
from validation.certificates.receivers import field24, keeps_last
from validation.certificates.replay import Check, Expected, LawChecker, Params, by_call

State: TypeAlias = "dict[str, Any]"

_LOW, _HIGH, _OVER = 1, 2, 3
_ALWAYS = 0
_BYTES_MAX, _QUEUE_MAX, _VOLUME_MAX = 1 << 50, 1 << 46, 1 << 60
_LOAD_MAX = 1 << 32
_IDLE_MAX = 1 << 40
_WINDOW_MAX, _PACKET = 1 << 61, 1 << 32
_RTT_MAX = 1 << 27
_ACKED_MAX, _ALPHA_MAX, _ALPHA_RATE_MAX = 1 << 20, 1 << 20, 1 << 42
_MILLION = 1_000_000
_AI_SHORT, _AI_LONG = 8 * 20_000, 8 * 500_000


LAYOUTS: Mapping[str, Layout] = {
    "params": params_layout("vcp"),
    "sums": (("bytes_sum", "Q"),),
    "cpu": (("cpu_bytes", "Q"),),
    "link": layout(
        "load_factor queue volume arrived waited queue_weight arrival_rate",
        "load ticks samples t_rho t_q kappa_q whole_percent reserved",
    ),
    "source": layout(
        "window frozen_until adding_until", "load heard rtt packet decreases reserved"
    ),
    "receiver": layout("", "load reserved"),
}


# ------------------------------------------------------------------ router


def router(_: Params) -> Check:
    """Return the equations of a VCP router (`load-factor` and `code`)."""

    def weigh(s: State, queue: int, weight: int) -> int:
        """Return the persistent queue q̃ moved towards a mean sample by a fraction (2⁻³²), with the
        step rounded down.
        """
        far = (queue << 8) - int(s["queue"])
        step_by = abs(far) * weight >> 32
        return int(s["queue"]) + (step_by if far >= 0 else -step_by)

    def code(s: State) -> None:
        """Set the load factor (λ + κ_q q̃)/(γ C t_ρ), and the load code, with levels at 80 and 100
        %.
        """
        arrived = min(s["arrived"], _BYTES_MAX) << 8
        load = min(arrived + s["queue"] * s["kappa_q"] // 1000, _VOLUME_MAX)
        volume = s["volume"]
        huge = load // volume >= 1 << 8
        s["load_factor"] = _LOAD_MAX if huge else (load << 24) // volume
        low, over = 5 * load < 4 * volume, load >= volume
        if s["whole_percent"]:
            # Rounded up to the next per cent; the lowest seven bits of the load are cut before.
            percent = 25601 if huge else 100 * (load >> 7 << 7) // volume + 1
            s["load_factor"] = (percent << 24) // 100
            low, over = percent < 80, percent >= 100
        s["load"] = _OVER if over else _LOW if low else _HIGH

    def measure(s: State) -> None:
        """End a measurement interval t_ρ."""
        if s["ticks"]:
            s["queue"] = weigh(s, s["waited"] // s["ticks"], s["queue_weight"])
        s["arrival_rate"] = min(s["arrived"], _QUEUE_MAX) * 8 * _MILLION // s["t_rho"]
        code(s)
        s["arrived"] = s["waited"] = s["ticks"] = 0

    def tick(step: Step) -> Expected:
        s: State = dict(step.before)
        s["arrived"] += min(int(step.inputs["bytes_sum"] or 0), _BYTES_MAX >> 3)
        s["waited"] += min(int(step.inputs["queue"] or 0), _QUEUE_MAX)
        s["ticks"] += 1
        if s["ticks"] >= s["samples"]:
            measure(s)
        return Expected(s, {"value": bytes(16)})

    def idle(step: Step) -> Expected:
        s: State = dict(step.before)
        queue = min(int(step.inputs["queue"] or 0), _QUEUE_MAX)
        ticks = s["ticks"] + min(int(step.inputs["intervals"] or 0), _IDLE_MAX)
        ended, rest = divmod(ticks, s["samples"])
        if ended:
            s["waited"] += (s["samples"] - s["ticks"]) * queue
            s["ticks"] = s["samples"]
            measure(s)
        if ended > 1:
            # The later measurements have no arrivals, and all the same queue.
            keeps = power(ONE - s["queue_weight"], min(ended - 1, ONE - 1))
            s["queue"] = weigh(s, queue, ONE - keeps)
            s["arrival_rate"] = 0
            code(s)
        s["waited"] += (rest - s["ticks"]) * queue
        s["ticks"] = rest
        return Expected(s, {"value": bytes(16)})

    def mark(step: Step) -> Expected:
        own, there = int(step.before["load"] or 0), field24(step.inputs["value"])
        return Expected({}, {"value": max(own, there).to_bytes(3, "big") + bytes(13)})

    return by_call(mark=mark, tick=tick, idle=idle)


# ------------------------------------------------------------------ source


def source(_: Params) -> Check:
    """Return the equations of a VCP source (`MI`, `AI` and `MD` with their scaling)."""

    def ack(step: Step) -> Expected:
        p: State = dict(step.inputs)
        s: State = dict(step.before)
        s["rtt"] = min(p["tcp.srtt_us"] or 8 * p["tcp.base_rtt_us"], _RTT_MAX)
        if p["has_echo"]:
            field = field24(p["value"])
            s["load"] = min(field, _OVER)
            s["heard"] = 1 if field else s["heard"]
            acked = min(p["tcp.acked"], _ACKED_MAX)
            if acked:
                moved(p, s, acked)
        return Expected(s)

    return by_call(ack=ack)


def moved(p: State, s: State, acked: int) -> None:
    """Adjust the window for newly acknowledged packets."""
    now, over = p["tcp.now_us"], s["load"] == _OVER
    if now < s["frozen_until"] and (over or p["freeze"] == _ALWAYS):
        return
    if over and now >= s["adding_until"]:
        # `MD`: β w, then nothing for t_ρ, then AI for an RTT.
        factor = (min(p["beta"], _MILLION) << 32) // _MILLION
        s["window"] = bounded(s["window"] * factor >> 32)
        s["frozen_until"] = now + p["t_rho"]
        s["adding_until"] = s["frozen_until"] + s["rtt"] // 8
        s["decreases"] += 1
    elif p["tcp.app_limited"]:
        return
    elif s["load"] >= _HIGH:
        added(s, acked, alpha_rate(p, s["rtt"]))
    else:
        s["window"] = bounded(s["window"] + acked * xi_scaled(p, s["rtt"]))


def bounded(window: int) -> int:
    """Return the window limited to its range, at least one packet."""
    return min(max(window, _PACKET), _WINDOW_MAX)


def xi_scaled(p: State, rtt: int) -> int:
    """Return the scaled MI factor (1 + ξ)^(rtt/t_ρ) − 1 in units of 2⁻³² (`MI-scaling`). The
    exponent is at most 2.5.
    """
    t_rho = p["t_rho"] or 1
    log = log_one_plus((p["xi"] << 32) // _MILLION)
    return exp_less_one(log * min(rtt, 20 * t_rho) // (8 * t_rho))


def alpha_rate(p: State, rtt: int) -> int:
    """Return the scaled AI increment α (rtt/t_d)² in units of 2⁻³² packets (`AI-scaling`). Outside
    20 to 500 ms the increment is linear in the RTT.
    """
    t_d = 8 * (p["t_d"] or 1)
    if rtt <= _AI_SHORT:
        square = rtt * _AI_SHORT
    elif rtt <= _AI_LONG:
        square = rtt * rtt
    else:
        square = (rtt - _AI_LONG) * t_d + _AI_LONG * _AI_LONG
    ratio = (square << 32) // (t_d * t_d)
    return int(min(ratio * min(p["alpha"], _ALPHA_MAX) // 1000, _ALPHA_RATE_MAX))


def added(s: State, n: int, rate: int) -> None:
    """Add α/w for each of n packets, where w is the mean of their windows (`AI`)."""
    half = ((n - 1) * rate << 31) // s["window"]
    s["window"] = bounded(s["window"] + (n * rate << 32) // (s["window"] + half))


LAW = LawChecker(router, keeps_last("load"), source)
