"""Computed claims, by hand from the papers."""

from __future__ import annotations

import math

import pytest

from waterfill.papers.measures import convergence, theory


@pytest.mark.parametrize(("flows", "bound"), [(1, 0.8), (2, 0.35), (9, 0.0), (20, 0.0)])
def test_overload_when_one_more_starts(flows, bound):
    assert theory.maxstart_bound(x=flows, mu=0.9) == pytest.approx(bound, abs=1e-12)


def test_bits_of_both_papers():
    assert theory.price_integer_bits(x_max_bps=1e15, x_min_bps=32.0, t_s=0.4) == 4
    assert theory.price_integer_bits(x_max_bps=1e15, x_min_bps=32.0) == 5
    assert theory.price_fraction_bits(epsilon=1e-5, t_s=0.4) == 18
    assert theory.price_fraction_bits(epsilon=1e-5) == 17
    assert theory.price_fraction_bits(epsilon=1e-5, t_s=0.05) == 21
    assert theory.rate_bits(x_max_bps=1e15) == 50


def test_ends_of_the_price_field():
    # Code 1 is 2⁻¹⁸ s: a rate e^(2⁻¹⁸/0.4) below the largest.
    largest = theory.price_field_rate(t_s=0.4, x_max_bps=1e15, end="largest")
    assert largest == pytest.approx(1e15 * math.exp(-(2.0**-18) / 0.4), rel=1e-12)
    smallest = theory.price_field_rate(t_s=0.4, x_max_bps=1e15, end="smallest")
    assert smallest == pytest.approx(1e15 * math.exp(-80), rel=1e-4)


def test_p_min_of_the_thesis():
    assert theory.least_price_code(t_s=0.05, x_max_bps=1e15, rate_bps=1e9) == 181083


def test_error_of_a_table():
    # An octave in 256: half a step is ln 2/512, a chord is off by (ln 2/256)²/8.
    asked = {"entries": 256, "x_max_bps": 2.0, "x_min_bps": 1.0}
    assert theory.exponential_table_error(**asked) == pytest.approx(2 ** (1 / 512) - 1)
    chord = theory.exponential_table_error(**asked, interpolated=True)
    assert chord == pytest.approx(9.16e-7, rel=1e-3)


def test_stability_up_to_1000_s():
    case = {"alpha_t_s": 0.264, "eta": 0.06, "max_rtt_s": 1000.0}
    assert theory.maxnet_threshold(**case) == pytest.approx(0.0015317, rel=1e-4)
    assert theory.maxnet_threshold(**(case | {"eta": 0.07})) == pytest.approx(0.001525, abs=5e-7)
    assert theory.maxnet_slope(**case) == pytest.approx(0.3523, abs=5e-5)
    assert theory.maxnet_alpha_max(**case, slope=0.3504) == pytest.approx(0.8540, abs=5e-5)
    lags = {"average": "exponential", "dt_p_s": 0.001}
    assert theory.maxnet_hull_limit(**case) > theory.maxnet_hull_limit(**case, **lags) > 0.66
    # The mean of the last RTT lags by half an RTT at every frequency, an exponential one by less.
    lags["average"] = "sliding"
    assert theory.maxnet_hull_limit(**case, **lags) < 0.66


def test_one_rtt_with_a_common_zero():
    # αT = τ: the compensator cancels, and e^(−jφ)/(jφ) is −2/π at φ = π/2.
    case = {"alpha_t_s": 0.1, "eta": 0.06, "rtt_s": 0.1, "common_rtt_s": 0.01}
    assert theory.maxnet_single_limit(**case) == pytest.approx(math.pi / 2)


def test_time_constants_of_fairness():
    # One flow of τ = αT: its ξ stays 0, so q has the pole α/τ and ξ that of η/τ, or z.
    case = {"alpha": 0.5, "alpha_t_s": 0.1, "eta": 0.05, "rtts_s": [0.1], "zero_rad_s": 0.01}
    assert theory.maxnet_fairness(**case) == pytest.approx(100.0)
    assert theory.maxnet_fairness_gain(**case) == pytest.approx(0.5 / 0.01)
    # Two flows of one RTT: their difference decays with the compensator's pole, zαT/τ.
    case |= {"rtts_s": [0.2, 0.2]}
    assert theory.maxnet_fairness(**case) == pytest.approx(1 / (0.01 * 0.1 / 0.2))


def test_lemma_2_and_proposition_2():
    case = {"alpha_t_s": 0.264, "eta": 0.06, "max_rtt_s": 1000.0}
    assert theory.maxnet_lemma_2(**case, part=2) == 0
    assert theory.maxnet_lemma_2(**case, part=3) == pytest.approx(0.194, abs=1e-3)
    # Fig. 10's case does not need the RTTs below τ′, 1000 s does.
    figure_10 = {"alpha_t_s": 0.1, "eta": 0.7, "max_rtt_s": 3.0}
    assert theory.maxnet_truncation(**figure_10) < 0 < theory.maxnet_truncation(**case)


def test_lag_and_tuning():
    # αT = τ: no compensator, nothing changes; Arg F = −π/2 − α = −3π/2 at α = π.
    case = {"alpha": 0.66, "alpha_t_s": 0.264, "eta": 0.06}
    assert theory.maxnet_margin_change(**case, rtt_s=0.264) == pytest.approx(0, abs=1e-9)
    assert theory.maxnet_margin_change(**case, rtt_s=1000.0) == pytest.approx(-5.33 / 180, abs=1e-4)
    assert theory.maxnet_margin_change(**case, rtt_s=0.029) > 0
    assert theory.maxnet_printed_margin(rtt_s=0.25) == pytest.approx(-0.5)
    case = {"eta": 0.03, "other_eta": 0.1, "tuned_rtt_s": 0.25, "rtt_s": 0.0625}
    assert theory.maxnet_eta_effect(**case, what="rise") == pytest.approx(0.954, abs=1e-3)
    assert theory.maxnet_eta_effect(**case, what="settling") == pytest.approx(1.648, abs=1e-3)


def test_static_laws():
    # Equal RTTs share equally; 2τ/π is π/2 of ωτ.
    case = {"alpha": 0.66, "x_max_bps": 1e15, "total_bps": 9e6}
    assert theory.maxnet_static_error(**case, rtts_s=[0.1, 0.1]) == pytest.approx(0, abs=1e-9)
    assert theory.maxnet_static_error(**case, rtts_s=[0.029, 0.179]) == pytest.approx(1)
    assert theory.maxnet_static_time(max_rtt_s=math.pi) == pytest.approx(2)


def test_rcp_and_the_price_law_differ_by_the_step_only():
    one, tenth = (theory.rcp_price_distance(alpha=0.4, tau_s=0.1, dt_s=dt) for dt in (1e-3, 1e-4))
    assert one == pytest.approx(10 * tenth, rel=0.01)
    assert one < 1e-3


def test_growth_of_aecps_times():
    # ln P doubles where P is squared, ln ln P gains ln 2.
    assert convergence.efficiency_growth(x_0=10.0, theta=0.9, ratio=100.0) == pytest.approx(
        2, rel=1e-3
    )
    assert convergence.fairness_growth(epsilon=0.9, ratio=100.0) == pytest.approx(1, rel=1e-6)
    assert 0.37 < convergence.sigmoid_turn(x_0=10.0, ratio=6250.0) < 0.9


def test_the_incremental_checksum(monkeypatch):
    assert theory.checksum_errors(packets=2000) == 0
    # Half of the price left out.
    monkeypatch.setattr(theory, "_high", lambda price: 0 * price)
    assert theory.checksum_errors(packets=2000) > 0.9
