"""MaxNet of 2006's fixed-point router, from the thesis and the scales of kernel/maxnet2006.h.

Whole numbers: prices in 2⁻³⁴ s, rates in bit/s, dt in µs. Every division rounds down, but a price's
code on the wire is the nearest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from waterfill.verify.fixed import FLAG, price_code, rate_code
from waterfill.verify.kernel import Layout, layout, router_law
from waterfill.verify.log import Step
from waterfill.verify.receivers import header
from waterfill.verify.replay import Check, Expected, Params, by_call

State: TypeAlias = "dict[str, Any]"

_BYTES_MAX, _PRICE_MAX = 1 << 40, 1 << 60
_SECONDS_MAX = 1 << 20
_MILLION = 1_000_000

LAYOUTS: Mapping[str, Layout] = {
    "sums": layout("bytes_sum"),
    "cpu": layout("cpu_bytes"),
    "link": layout(
        "capacity x_max start_share start_min price price_min target_time arrival_rate",
        "dt reserved price_code start_code",
    ),
}


def router(_: Params) -> Check:
    """eq. 7, and §3.1.2's start rate."""

    def moved(s: State, price: int, arrival_rate: int) -> Expected:
        """Set the price, at least p_min, and the codes until the next interval."""
        price = max(price, s["price_min"])
        # §3.1.2: (μ + ε) C − y, at least QSminrate.
        start_rate = max(s["start_share"] - arrival_rate, s["start_min"])
        after = {
            "price": price,
            "arrival_rate": arrival_rate,
            "price_code": price_code(price),
            "start_code": rate_code(start_rate, s["x_max"]),
        }
        return Expected(after, {"value": bytes(16)})

    def tick(step: Step) -> Expected:
        s: State = dict(step.before)
        arrived = min(int(step.inputs["bytes_sum"] or 0), _BYTES_MAX)
        # eq. 7: p + y/C − μ dt. Beyond 2²⁰ s, whole seconds count no more.
        seconds, rest = divmod(8 * arrived, s["capacity"])
        time = (min(seconds, _SECONDS_MAX) << 34) + (rest << 34) // s["capacity"]
        price = min(s["price"] + time, _PRICE_MAX) - s["target_time"]
        return moved(s, price, arrived * 8 * _MILLION // s["dt"])

    def idle(step: Step) -> Expected:
        s: State = dict(step.before)
        n = int(step.inputs["intervals"] or 0)
        if not n:
            return Expected({}, {"value": bytes(16)})
        return moved(s, s["price"] - n * s["target_time"], 0)

    def mark(step: Step) -> Expected:
        value = step.inputs["value"]
        field = int.from_bytes(header(value)[:3], "big")
        flag = field & FLAG
        code = int(step.before["start_code" if flag else "price_code"] or 0)
        # Prices rise along a path and start rates fall, so that both codes rise.
        return Expected({}, {"value": max(flag | code, field).to_bytes(3, "big") + bytes(13)})

    return by_call(mark=mark, tick=tick, idle=idle)


LAW = router_law(router)
