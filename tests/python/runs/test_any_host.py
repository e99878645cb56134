"""The core's functions for values that enter a scenario are those of mathematics."""

import math

import pytest

from waterfill import _core
from waterfill.formats import graph


@pytest.mark.parametrize("x", [1e-9, 0.3, 0.5, 0.9999, 1.0, -0.7])
def test_the_cores_functions_are_those_of_mathematics(x):
    near = pytest.approx
    assert _core.sin(x) == near(math.sin(x), rel=4e-16)
    assert _core.cos(x) == near(math.cos(x), rel=4e-16)
    assert _core.asin(x) == near(math.asin(x), rel=4e-16)
    assert _core.ln_1p(x) == near(math.log1p(x), rel=4e-16)
    assert _core.ln(abs(x)) == near(math.log(abs(x)), rel=4e-16)
    assert _core.log10(abs(x)) == near(math.log10(abs(x)), rel=4e-16)
    assert _core.pow(abs(x), 0.3) == near(math.pow(abs(x), 0.3), rel=4e-16)


def test_great_circles_have_their_known_lengths():
    quarter = math.pi / 2 * 6371.0
    assert graph.great_circle_km((0, 0), (90, 0)) == pytest.approx(quarter, rel=1e-12)
    assert graph.great_circle_km((0, 90), (120, -90)) == pytest.approx(2 * quarter, rel=1e-12)
    berlin, paris = (13.4050, 52.5200), (2.3522, 48.8566)
    assert graph.great_circle_km(berlin, paris) == pytest.approx(877.5, rel=2e-3)
