"""Frequency responses whatever the law: margins, and the convex-hull form of Nyquist's test.

A loop is a function of an array of frequencies ω (rad/s) that returns L(jω), delays included,
with negative feedback: the closed loop is 1/(1 + L).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

Reals: TypeAlias = NDArray[np.float64]
Points: TypeAlias = NDArray[np.complex128]
Loop: TypeAlias = Callable[[Reals], Points]

# Points of a frequency grid; crossings between two of them are then found to rounding.
GRID = 4000
# A gain margin beyond this is none of anybody's concern: inf.
MOST_GAIN_MARGIN = 1000.0


class Margins(NamedTuple):
    """How far a loop is from instability.

    Phase margin in degrees and delay margin in seconds at the crossover (rad/s) where the delay
    margin is smallest; gain margin as a factor (inf: beyond `MOST_GAIN_MARGIN`).
    """

    crossover_rad_s: float
    phase_margin_deg: float
    delay_margin_s: float
    gain_margin: float

    @property
    def stable(self) -> bool:
        """Whether the closed loop is stable: of loops that fall in gain from above 1 to below."""
        return self.phase_margin_deg > 0 and self.gain_margin > 1


def margins(loop: Loop, low_rad_s: float, high_rad_s: float) -> Margins:
    """The margins of a loop over [low, high], which must hold all its crossings.

    The phase is followed from `low`, where it is taken within (−270°, 90°]. Delay margin: the
    least over crossovers of phase margin/ω, negative when the loop is past it. Raises ValueError
    when |L| crosses 1 nowhere there.
    """
    omega = np.geomspace(low_rad_s, high_rad_s, GRID)
    response = loop(omega)
    # Where next to nothing is left the phase turns faster than the grid can follow.
    audible = np.flatnonzero(np.abs(response) > 1 / MOST_GAIN_MARGIN)
    kept = slice(0, int(audible[-1]) + 2 if len(audible) else 2)
    omega, response = omega[kept], response[kept]
    size, phase = np.log(np.abs(response)), _phase(response)

    def log_gain(w: float) -> float:
        return float(np.log(np.abs(loop(np.array([w]))[0])))

    def lag(w: float) -> float:
        """Phase at w plus π, on the branch of the grid."""
        angle = float(np.angle(loop(np.array([w]))[0]))
        near = float(np.interp(w, omega, phase))
        return angle + 2 * math.pi * round((near - angle) / (2 * math.pi)) + math.pi

    falls = np.flatnonzero((size[:-1] > 0) != (size[1:] > 0))
    if not len(falls):
        raise ValueError("expected a loop whose gain crosses 1, got one that stays on one side")
    crossovers = [float(brentq(log_gain, omega[i], omega[i + 1], xtol=1e-15)) for i in falls]
    found = [(lag(w) / w, w, math.degrees(lag(w))) for w in crossovers]
    delay_s, crossover, phase_deg = min(found)
    turns = np.flatnonzero((phase[:-1] > -math.pi) & (phase[1:] <= -math.pi))
    gains = [
        math.exp(-log_gain(float(brentq(lag, omega[i], omega[i + 1], xtol=1e-15)))) for i in turns
    ]
    return Margins(crossover, phase_deg, delay_s, min(gains, default=math.inf))


def _phase(response: Points) -> Reals:
    phase = np.unwrap(np.angle(response))
    if phase[0] > math.pi / 2:
        phase = phase - 2 * math.pi
    return np.asarray(phase, dtype=np.float64)


def support(points: Points, run: float) -> float:
    """The least c with run·y ≤ x + c for every point x + jy.

    The line run·y = x + c has the slope 1/run, passes just above all points (left of them where
    it falls) and meets the real axis at −c.
    """
    return float(np.max(run * points.imag - points.real))


class Line(NamedTuple):
    """The line run·y = x + intercept: run is one over its slope."""

    run: float
    intercept: float

    @property
    def slope(self) -> float:
        """Its slope dy/dx; inf when it is upright."""
        return math.inf if self.run == 0 else 1 / self.run


def lowest_line(points: Points) -> Line:
    """Of lines with every point on the right, the one that meets the real axis furthest right.

    It supports the convex hull of the points where that leaves the real axis on the left, so
    −intercept is the least real number in the hull. Exact for the points given, which must lie on
    both sides of the axis, or ValueError.
    """
    above, below = points[points.imag > 0], points[points.imag <= 0]
    if not len(above) or not len(below):
        raise ValueError("expected points on both sides of the real axis, got one side only")
    # c(run) = max(run·y − x) is convex and piecewise linear: its least value is where the piece of
    # a point above the axis meets that of a point below, and no third point is higher.
    top, bottom = complex(above[0]), complex(below[0])
    while True:
        run = (top.real - bottom.real) / (top.imag - bottom.imag)
        height = run * top.imag - top.real
        heights = run * points.imag - points.real
        highest = int(np.argmax(heights))
        point = complex(points[highest])
        if point in (top, bottom) or point.imag == 0 or heights[highest] <= height:
            return Line(run, max(height, float(heights[highest])))
        if point.imag > 0:
            top = point
        else:
            bottom = point


def hull_crossing(points: Points) -> float:
    """How far left on the real axis the convex hull of the points reaches: the least x, as −x.

    Zero when the hull does not meet the negative real axis.
    """
    below = points.imag <= 0
    if below.all() or not below.any():
        on_axis = points[points.imag == 0]
        return max(0.0, -float(on_axis.real.min())) if len(on_axis) else 0.0
    return max(0.0, lowest_line(points).intercept)
