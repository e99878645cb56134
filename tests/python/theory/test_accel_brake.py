"""ABC's fluid model: its limits by hand, its rest, and its delay equation solved step by step."""

import math

import pytest

from waterfill.theory.accel_brake import (
    DELTA_GLOBAL,
    DELTA_LINEAR,
    Gains,
    Link,
    equilibrium,
    loop_margins,
    surplus,
)

GAINS = Gains(0.98, 0.133, 0.05)


def test_margins_by_hand():
    # |L| = 1 at ω = 1/δ; phase −90° − τ/δ.
    found = loop_margins(0.133, 0.1)
    assert found.crossover_rad_s == pytest.approx(1 / 0.133)
    assert found.phase_margin_deg == pytest.approx(90 - math.degrees(0.1 / 0.133))
    assert found.delay_margin_s == pytest.approx(0.133 * math.pi / 2 - 0.1)
    assert loop_margins(1.01 * DELTA_LINEAR, 1.0).stable
    assert not loop_margins(0.99 * DELTA_LINEAR, 1.0).stable


def test_a_link_without_a_queue():
    # One packet per RTT of a hundred: A = −0.02 + 0.01.
    rest = equilibrium(GAINS, Link(12e6, 1, 0.1))
    assert rest.delay_s == 0
    assert rest.load == pytest.approx(0.99)
    assert rest.window_packets == pytest.approx(99)


def test_a_queue_takes_the_increase_back():
    # Ten flows; A = −0.02 + 10/(1000·(0.1 + x)), and x = 0.05 + 0.133·A.
    link = Link(12e6, 10, 0.1)
    rest = equilibrium(GAINS, link)
    a = -0.02 + 0.01 / (0.1 + rest.delay_s)
    assert rest.delay_s == pytest.approx(0.05 + 0.133 * a)
    assert surplus(GAINS, link, rest.delay_s) == pytest.approx(0, abs=1e-12)
    assert rest.window_packets == pytest.approx(100 * (0.1 + rest.delay_s))
    # Below d_t the RTT alone stops the growth: 10·12 kbit/0.12 s are 2 % of 50 Mbit/s.
    assert equilibrium(GAINS, Link(50e6, 10, 0.1)).delay_s == pytest.approx(0.02)


def swing(delta_s, tau_s=0.1, a=0.2, d_t=0.05, step_s=1e-4):
    """The largest distance from rest in the last tenth of 30 s of ẋ = A − (x(t − τ) − d_t)⁺/δ."""
    late, steps = round(tau_s / step_s), round(30 / step_s)
    x = [d_t + a * delta_s + 0.001] * (late + 1)
    for _ in range(steps):
        x.append(max(x[-1] + step_s * (a - max(x[-1 - late] - d_t, 0.0) / delta_s), 0.0))
    rest = d_t + a * delta_s
    return max(abs(v - rest) for v in x[-steps // 10 :])


def test_the_delay_equation_has_these_limits():
    assert swing(1.05 * DELTA_GLOBAL * 0.1) < 1e-4
    assert swing(0.95 * DELTA_LINEAR * 0.1) > 5e-3
    assert DELTA_LINEAR < DELTA_GLOBAL
