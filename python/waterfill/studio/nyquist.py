"""The Nyquist curve of a protocol's control loop at one RTT, with its stability margins."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from waterfill.analysis.charts import BLACK, Chart, Line, Mark
from waterfill.contract.network import ParamValue
from waterfill.network import protocols
from waterfill.runs.result import Result
from waterfill.studio.settings import known
from waterfill.theory import aecp, loops, maxnet, vcp, xcp
from waterfill.theory.loops import Loop, Margins
from waterfill.theory.params import number

Values = Mapping[str, ParamValue | None]

# Frequencies of the curve, around the crossover.
_POINTS = 400
_DECADES = 1.2
# What is drawn of the plane: the neighbourhood of −1.
_X, _Y = (-2.6, 1.0), (-1.6, 1.2)


@dataclass(frozen=True)
class Curve:
    """The Nyquist curve of a loop near −1: its name, frequencies (rad/s), L(jω) and margins."""

    name: str
    omega: loops.Reals
    points: loops.Points
    margins: Margins


def _maxnet(values: Values, rtt_s: float) -> dict[str, Loop]:
    p = maxnet.Params.of(values)
    printed, real = maxnet.eq13(p), maxnet.implemented(p)
    return {
        "eq. 13": lambda w: p.alpha * maxnet.response(printed, w, rtt_s),
        "implemented": lambda w: p.alpha * maxnet.response(real, w, rtt_s),
    }


def _xcp(values: Values, rtt_s: float) -> dict[str, Loop]:
    alpha, beta = xcp.Gains.of(values)
    return {"with a queue": lambda w: xcp.response(alpha, beta, rtt_s, w)}


def _rcp(values: Values, rtt_s: float) -> dict[str, Loop]:
    alpha, beta = xcp.Gains.of(values)
    return {
        "with a queue": lambda w: xcp.response(alpha, beta, rtt_s, w),
        "empty queue": lambda w: xcp.response(alpha, 0.0, rtt_s, w),
    }


def _aecp(values: Values, rtt_s: float) -> dict[str, Loop]:
    gains = aecp.Params.of(values).gains
    return {"eq. 38": lambda w: aecp.open_loop(gains, w, rtt_s)}


def _vcp(values: Values, rtt_s: float) -> dict[str, Loop]:
    kappa = vcp.kappa(number(values, "xi"))
    return {"fluid model": lambda w: vcp.response(kappa, rtt_s, w)}


_LOOPS: Mapping[str, Callable[[Values, float], dict[str, Loop]]] = {
    "maxnet": _maxnet,
    "maxnet2006": _maxnet,
    "xcp": _xcp,
    "ixcp": _xcp,
    "pxcp": _xcp,
    "rcp": _rcp,
    "aecp": _aecp,
    "vcp": _vcp,
}


def curves(protocol: str, values: Values, rtt_s: float) -> list[Curve]:
    """Return the Nyquist curves of a protocol's loops at an RTT (s), around their crossovers, or an
    empty list without a loop.

    Empty for a protocol without a linear loop (a TCP, JetMax).
    """
    if protocol not in _LOOPS:
        return []
    return list(_curves(protocol, tuple(values.items()), rtt_s))


@lru_cache(maxsize=64)
def _curves(
    protocol: str, values: tuple[tuple[str, ParamValue | None], ...], rtt_s: float
) -> tuple[Curve, ...]:
    """Compute and cache the curves, which most sliders do not change."""
    found = []
    for name, loop in _LOOPS[protocol](dict(values), rtt_s).items():
        try:
            margins = loops.margins(loop, 1e-4 / rtt_s, 1e3 / rtt_s)
        except ValueError:  # a gain that never crosses 1: as stable as can be
            margins = Margins(1 / rtt_s, math.inf, math.inf, math.inf)
        middle = math.log10(margins.crossover_rad_s)
        omega = np.logspace(middle - _DECADES, middle + _DECADES, _POINTS)
        found.append(Curve(name, omega, loop(omega), margins))
    return tuple(found)


def chart(found: list[Curve], rtt_s: float) -> Chart:
    """Return a chart of Nyquist curves near −1, with the unit circle and the point −1."""
    turn = np.linspace(0, 2 * math.pi, 120)
    lines = [Line(c.name, c.points.imag, i, x=c.points.real) for i, c in enumerate(found)]
    crossings = []
    for c in found:
        at = complex(np.interp(c.margins.crossover_rad_s, c.omega, c.points.real),
                     np.interp(c.margins.crossover_rad_s, c.omega, c.points.imag))  # fmt: skip
        crossings.append(Mark(at.real, at.imag))
    return Chart(
        "nyquist",
        f"Nyquist curve, Im L over Re L, RTT {1e3 * rtt_s:.3g} ms",
        "Re L(jω)",
        "",
        lines=[*lines, Line("", np.sin(turn), BLACK, x=np.cos(turn))],
        marks=[Mark(-1.0, 0.0, text="−1"), *crossings],
        x_range=_X,
        y_range=_Y,
        same_scale=True,
    )


def sentences(found: list[Curve]) -> list[str]:
    """Return one sentence per loop on the loop's stability and margins."""
    return [f"{c.name}: {_verdict(c.margins)}" for c in found]


def _verdict(margins: Margins) -> str:
    if math.isinf(margins.phase_margin_deg):
        return "stable, its gain is below 1 everywhere."
    angle = f"phase margin {margins.phase_margin_deg:.0f}°"
    if not margins.stable:
        return f"unstable, {angle}: the curve goes round −1."
    delay = f"{1e3 * margins.delay_margin_s:.3g} ms"
    return f"stable, {angle}; the RTT could be {delay} longer."


def of_result(result: Result) -> tuple[str, list[Curve], float]:
    """Return the run's first protocol with a loop, the loop's curves, and the longest base RTT (s)
    of its flows.

    Curves are empty if no protocol of the run has a loop.
    """
    for flow in result.network.flows:
        rtts_s = [f.base_rtt_s for f in result.network.flows if f.protocol == flow.protocol]
        if flow.protocol in _LOOPS and max(rtts_s) > 0:
            values = protocols.with_defaults([flow.protocol], result.network.params, known())
            rtt_s = max(rtts_s)
            return flow.protocol, curves(flow.protocol, values[flow.protocol], rtt_s), rtt_s
    return "", [], 0.0
