"""Cost of few price bits: the theory by hand, the grid, verdicts that can fail."""

from __future__ import annotations

import math

import pytest

from validation.price_bits import cases, report, theory
from validation.price_bits.cases import Code, PriceCase, PriceRow
from validation.price_bits.claims import claims
from waterfill.runs import backends
from waterfill.theory import maxnet

GRID = cases.all_cases()


def test_bands_are_scones_and_csigs() -> None:
    assert math.exp(theory.band(7)) == pytest.approx(10 ** (1 / 20))
    assert theory.band(5, 2.0) == pytest.approx(2 * math.log(10) / 32)
    assert theory.band(20) == pytest.approx(theory.band(5) / 2**15)


def test_a_limit_cycle_is_where_the_relay_meets_the_loop() -> None:
    params = maxnet.Params(0.66, 0.06, 0.4, 1e15, "exponential", 1e-3)
    width, tau_s = theory.band(7), 0.08
    cycle = theory.maxnet_cycle(params, tau_s, width)
    relay = 2 * params.t_s * width / (math.pi * cycle.price_amplitude_s)
    omega = 2 * math.pi / cycle.period_s
    loop = params.alpha * complex(maxnet.response(maxnet.implemented(params), omega, tau_s))
    assert relay * loop == pytest.approx(-1, abs=1e-6)
    margin = maxnet.loop_margins(maxnet.implemented(params), params.alpha, tau_s).gain_margin
    assert relay == pytest.approx(margin, rel=1e-4)
    assert cycle.load_deviation == pytest.approx(omega * cycle.price_amplitude_s / math.sqrt(2))


def test_two_codes_in_turn_deviate_by_half_a_band() -> None:
    low, high = 1.0, math.exp(0.3)
    deviation = (high - low) / 2 / ((high + low) / 2)
    assert theory.rate_deviation_max(0.3) == pytest.approx(deviation)


def test_every_case_is_a_scenario_with_its_code() -> None:
    assert len(GRID) == len(set(GRID))
    for case in GRID:
        given = cases.scenario(case).params.get(case.law, {})
        assert given.get("code_bits", 0) == case.code.bits, case
        assert ("code_rounding" in given) == case.code.carried, case
    assert Code("", 5, 2.0).params["code_min"] == "2500000 bit/s"


def rows(off_20: float, deviation: float) -> dict[PriceCase, PriceRow]:
    """Return rows as made up: shares of 20 bits are off by so much, 5 and 7 bits deviate so."""
    found = {}
    for case in GRID:
        off = off_20 if case.code.bits == 20 else 0.0
        few = case.code.bits in (5, 7) and not case.code.carried
        swing = deviation if few else 0.0
        found[case] = PriceRow(case, (25e6 * (1 + off),), 0.0, swing, (0.1, 0.2), 0)
    return found


@pytest.mark.parametrize(("off_20", "holds"), [(0.019, True), (0.021, False)])
def test_the_wide_tags_claim_has_a_limit_of_two_per_cent(off_20: float, *, holds: bool) -> None:
    first = claims(rows(off_20, 0.1))[0]
    assert "CSIG's wide tag" in first.text
    assert first.holds == holds


def test_a_load_far_from_theory_fails() -> None:
    judged = {claim.text: claim.holds for claim in claims(rows(0.0, 3.0))}
    assert not judged["maxnet, 7 bits: the load deviates by the relay's limit cycle at most"]
    assert not judged["maxnet, 7 bits: from 80 ms on it is that limit cycle"]
    assert not judged["rcp and aecp, 7 bits: the load deviates by half a band"]


def test_a_short_run_shows_the_swing() -> None:
    codes = (cases.OWN, Code("5", 5))
    grid = [PriceCase("rcp", code, 20, "one link") for code in codes]
    own, few = (
        cases.measure(case, backends.run(cases.scenario(case, duration_s=6.0))) for case in grid
    )
    assert own.deviation < 0.02
    assert 0.1 < few.deviation < 0.6
    assert report.claim_table(claims(rows(0.0, 0.1))).count("holds") > 3
