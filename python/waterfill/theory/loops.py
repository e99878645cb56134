"""Frequency responses of any loop: stability margins, and Nyquist's criterion on convex hulls.

A loop is a function that takes an array of frequencies ω (rad/s) and returns L(jω), delays
included. Feedback is negative: the closed loop is 1/(1 + L).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from waterfill.theory.roots import brentq

Reals: TypeAlias = NDArray[np.float64]
Points: TypeAlias = NDArray[np.complex128]
Loop: TypeAlias = Callable[[Reals], Points]

# Points of a frequency grid. A crossing between two of them is then found to rounding.
GRID = 4000
# A larger gain margin is reported as infinite.
MAX_GAIN_MARGIN = 1000.0


class Margins(NamedTuple):
    """Stability margins of a loop: its distance from instability.

    The phase margin (degrees) and the delay margin (s) are those of the crossover frequency (rad/s)
    with the smallest delay margin. The gain margin is a factor; inf above `MAX_GAIN_MARGIN`.
    """

    crossover_rad_s: float
    phase_margin_deg: float
    delay_margin_s: float
    gain_margin: float

    @property
    def stable(self) -> bool:
        """True if the closed loop is stable, for a loop whose gain crosses 1 downwards."""
        return self.phase_margin_deg > 0 and self.gain_margin > 1


def margins(loop: Loop, low_rad_s: float, high_rad_s: float) -> Margins:
    """Return the margins of a loop over [low, high], which must contain all its crossings.

    The phase is unwrapped from `low`, where it is taken within (−270°, 90°]. The delay margin is
    the smallest phase margin/ω over all crossovers, negative for an unstable loop. Raises
    ValueError if |L| does not cross 1 in the range.
    """
    omega = np.geomspace(low_rad_s, high_rad_s, GRID)
    response = loop(omega)
    # Where the gain is negligible the phase turns faster than the grid can resolve.
    relevant = np.flatnonzero(np.abs(response) > 1 / MAX_GAIN_MARGIN)
    kept = slice(0, int(relevant[-1]) + 2 if len(relevant) else 2)
    omega, response = omega[kept], response[kept]
    log_size, phase = np.log(np.abs(response)), _phase(response)

    def log_gain(w: float) -> float:
        return float(np.log(np.abs(loop(np.array([w]))[0])))

    def lag(w: float) -> float:
        """Return the phase at ω = w plus π, on the branch of the unwrapped grid."""
        angle = float(np.angle(loop(np.array([w]))[0]))
        near = float(np.interp(w, omega, phase))
        return angle + 2 * math.pi * round((near - angle) / (2 * math.pi)) + math.pi

    crossings = np.flatnonzero((log_size[:-1] > 0) != (log_size[1:] > 0))
    if not len(crossings):
        raise ValueError("the loop's gain never crosses 1")
    crossovers = [float(brentq(log_gain, omega[i], omega[i + 1], xtol=1e-15)) for i in crossings]
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
    """Return the smallest c with run·y ≤ x + c for every point x + jy.

    The line run·y = x + c has slope 1/run, touches the point set from above (from the left where
    it falls) and meets the real axis at −c.
    """
    return float(np.max(run * points.imag - points.real))


class Line(NamedTuple):
    """The line run·y = x + intercept, where `run` is 1/slope."""

    run: float
    intercept: float

    @property
    def slope(self) -> float:
        """Slope dy/dx of the line. It is inf if the line is vertical."""
        return math.inf if self.run == 0 else 1 / self.run


def lowest_line(points: Points) -> Line:
    """Return the line with all points on its right that meets the real axis furthest right.

    It supports the convex hull of the points at the hull's leftmost crossing of the real axis, so
    −intercept is the smallest real number in the hull. Exact for the given points. Raises
    ValueError unless there are points on both sides of the axis.
    """
    above, below = points[points.imag > 0], points[points.imag <= 0]
    if not len(above) or not len(below):
        raise ValueError("all points are on one side of the real axis")
    # c(run) = max(run·y − x) is convex and piecewise linear. Its minimum is where the piece of a
    # point above the axis meets the piece of a point below, and no third point is higher.
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
    """Return −x for the smallest real number x in the convex hull of the points.

    Returns 0 if the hull does not meet the negative real axis.
    """
    below = points.imag <= 0
    if below.all() or not below.any():
        on_axis = points[points.imag == 0]
        return max(0.0, -float(on_axis.real.min())) if len(on_axis) else 0.0
    return max(0.0, lowest_line(points).intercept)
