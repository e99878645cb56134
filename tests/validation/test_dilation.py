"""Every protocol's run keeps its digits when all times are longer, or a named constant differs."""

from __future__ import annotations

import warnings

import pytest

import waterfill
from validation import dilation


def measured(protocol, factors=(1.0, float(dilation.FACTOR))):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = [waterfill.run(dilation.document(protocol, factor)) for factor in factors]
    return dilation.Pair(*map(dilation.figures, runs, factors))


@pytest.mark.parametrize("protocol", dilation.protocols())
def test_digits_stay_the_same(protocol):
    found = measured(protocol)
    assert dilation.failed({dilation.DilatedCase(protocol): found}) == []


def test_a_hidden_constant_is_found(monkeypatch):
    monkeypatch.setattr(dilation, "FIXED", {})
    found = measured("cubic")
    assert dilation.failed({dilation.DilatedCase("cubic"): found}) != []
    assert "an unknown constant" in dilation.row(dilation.DilatedCase("cubic"), found)[-1]
