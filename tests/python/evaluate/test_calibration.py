"""Short runs agree with formulas, and a law that does not follow one is noticed."""

from __future__ import annotations

from waterfill.evaluation import calibration, text
from waterfill.evaluation.calibration import calibrate


def test_this_version_agrees_with_all_formulas():
    found = calibrate()
    assert len(found) == 6
    assert [one.name for one in found if not one.met] == []


def test_another_exponent_is_noticed(monkeypatch):
    monkeypatch.setattr(calibration, "_C", 0.5)
    found = {one.name: one for one in calibrate()}
    (name,) = (name for name, one in found.items() if not one.met)
    assert name == "CUBIC's time back to W_max"
    assert text.agreement(found[name]).startswith("NO, +")
