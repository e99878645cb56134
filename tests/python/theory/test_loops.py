"""Margins and convex hulls, whatever the law: by hand, against python-control, against scipy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from waterfill.theory import aecp, loops, vcp, xcp


def integrator(gain, delay_s):
    return lambda w: gain / (1j * w) * np.exp(-1j * w * delay_s)


def test_an_integrator_with_delay_by_hand():
    # |L| = 1 at ω = 2; phase −90° − 2·0.25 rad; −180° at ω·0.25 = π/2, where |L| = 2/(2π).
    found = loops.margins(integrator(2.0, 0.25), 1e-3, 1e3)
    assert found.crossover_rad_s == pytest.approx(2.0)
    assert found.phase_margin_deg == pytest.approx(90 - math.degrees(0.5))
    assert found.delay_margin_s == pytest.approx(math.pi / 4 - 0.25)
    assert found.gain_margin == pytest.approx(math.pi)
    assert found.stable


def test_past_the_margin_it_is_negative():
    found = loops.margins(integrator(2.0, 1.0), 1e-3, 1e3)
    assert found.delay_margin_s == pytest.approx(math.pi / 4 - 1.0)
    assert found.gain_margin < 1
    assert not found.stable


def test_a_loop_without_crossover_is_refused():
    with pytest.raises(ValueError, match="the loop's gain never crosses 1"):
        loops.margins(lambda w: 0.5 / (1 + 1j * w), 1e-3, 1e3)


# Phase margin, gain margin and crossover of python-control, for loops without delay.
RATIONAL = {
    "aecp": (lambda w: aecp.open_loop(aecp.tuned(2.0), w), [2, 1], [1, 2, 0, 0]),
    "aecp, quicker": (lambda w: aecp.open_loop(aecp.Gains(5, 1, 1), w), [5, 5], [1, 5, 0, 0]),
    "third order": (
        lambda w: 4 / ((1j * w) * (1 + 1j * w) * (1 + 0.1j * w)),
        [4],
        [0.1, 1.1, 1, 0],
    ),
}


@pytest.mark.parametrize("name", RATIONAL)
def test_margins_agree_with_python_control(name):
    control = pytest.importorskip("control")
    loop, numerator, denominator = RATIONAL[name]
    gain, phase_deg, _, crossover = control.margin(control.tf(numerator, denominator))
    found = loops.margins(loop, 1e-3, 1e3)
    assert found.phase_margin_deg == pytest.approx(phase_deg, rel=1e-6)
    assert found.crossover_rad_s == pytest.approx(crossover, rel=1e-6)
    assert found.gain_margin == pytest.approx(gain, rel=1e-4)


@pytest.mark.parametrize(("alpha", "beta", "stable"), [(0.4, 0.226, True), (0.4, 0.6, False)])
def test_poles_of_a_pade_approximation_agree(alpha, beta, stable):
    # XCP's loop in units of its RTT, the delay as a rational function of order 8.
    control = pytest.importorskip("control")
    delay = control.tf(*control.pade(1.0, 8))
    closed = control.feedback(control.tf([alpha, beta], [1, 0, 0]) * delay)
    assert bool(np.all(np.real(closed.poles()) < 0)) is stable
    assert xcp.loop_margins(alpha, beta, 1.0).stable is stable


def test_vcp_turns_unstable_at_half_pi():
    # κ/(sT)·e^(−sT): −180° where ωT = π/2, with the gain 2κ/π.
    assert vcp.loop_margins(0.25, 0.2).gain_margin == pytest.approx(2 * math.pi)
    assert vcp.loop_margins(1.57, 0.2).stable
    assert not vcp.loop_margins(1.58, 0.2).stable


def test_hull_crossing_by_hand():
    # From −1 + j to −1 − 3j it crosses at −1; with −3 − j in place, half way between −1 and −3.
    assert loops.hull_crossing(np.array([-1 + 1j, -1 - 3j])) == pytest.approx(1.0)
    assert loops.hull_crossing(np.array([-1 + 1j, -3 - 1j, 5 + 0j])) == pytest.approx(2.0)
    assert loops.hull_crossing(np.array([-1 + 1j, -3 + 1j])) == 0.0
    assert loops.hull_crossing(np.array([-4 + 0j, 1 + 0j])) == pytest.approx(4.0)
    assert loops.hull_crossing(np.array([1 + 1j, 2 - 1j])) == 0.0


coordinate = st.floats(-10, 10).map(lambda x: round(x, 3))


@given(st.lists(st.tuples(coordinate, coordinate), min_size=3, max_size=40, unique=True))
def test_hull_crossing_is_the_hull_of_scipy(pairs):
    points = np.array([complex(x, y) for x, y in pairs])
    flat = np.column_stack([points.real, points.imag])
    if np.linalg.matrix_rank(flat - flat[0], tol=1e-6) < 2:
        return  # scipy's hull wants an area
    hull = ConvexHull(flat)
    crossings = [0.0]
    for a, b in hull.simplices:
        (x1, y1), (x2, y2) = flat[a], flat[b]
        if min(y1, y2) <= 0 <= max(y1, y2):
            ends = (x1, x2) if y1 == y2 else (x1 + (x2 - x1) * y1 / (y1 - y2),)
            crossings += [-x for x in ends]
    assert loops.hull_crossing(points) == pytest.approx(max(crossings), abs=1e-9)


@given(st.lists(st.tuples(coordinate, coordinate), min_size=2, max_size=30))
def test_the_lowest_line_has_every_point_on_its_right(pairs):
    points = np.array([complex(x, y) for x, y in pairs] + [1 + 1j, 1 - 1j])
    line = loops.lowest_line(points)
    assert np.all(line.run * points.imag <= points.real + line.intercept + 1e-9)
    for run in (line.run - 0.1, line.run + 0.1):
        assert loops.support(points, run) >= line.intercept - 1e-9


def test_the_edge_of_xcps_region():
    # katabi-2002, Theorem 1 is inside: β = α²√2 for α below π/(4√2).
    for alpha in np.linspace(0.02, 0.999 * xcp.KATABI_ALPHA_MAX, 8):
        beta = xcp.katabi_beta(float(alpha))
        low, high = xcp.alpha_range(beta)
        assert low < alpha < high
        assert xcp.loop_margins(float(alpha), beta, 0.1).stable
    # At φ = 1 the edge is α = sin 1, β = cos 1.
    a, b = xcp.boundary(np.array([1.0]))
    assert (a[0], b[0]) == pytest.approx((math.sin(1), math.cos(1)))
    assert abs(xcp.loop_margins(float(a[0]), float(b[0]), 0.1).phase_margin_deg) < 1e-6
    assert xcp.alpha_range(0.0) == pytest.approx((0.0, math.pi / 2))
    assert all(math.isnan(x) for x in xcp.alpha_range(0.56))
