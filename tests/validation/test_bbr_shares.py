"""Tests of the study of BBR's share: the model by hand, and the cases of each backend."""

from __future__ import annotations

import pytest

from validation import bbr_shares
from validation.bbr_shares import ShareCase, Shares
from validation.study import Options


def test_the_model_by_hand():
    # q = 133.3 packets: p = 1/2 − 1/8 − 4/133.3 = 0.345; (0.16 + 0.2 + 0.04)/10 of the time probes.
    assert bbr_shares.model(4) == pytest.approx((1 - 0.345) * 0.96)
    # Below one BDP the loss-based flow has nothing: (0.02 + 0.24)/10.
    assert bbr_shares.model(0.5) == pytest.approx(0.974)
    assert bbr_shares.model(1000) < 0.5


def test_the_kernel_has_one_variant():
    found = bbr_shares.cases(Options(), ("sim", "linux"))
    assert {case.variant for case in found if case.on == "linux"} == {"linux"}
    assert len(found) == 2 * len(bbr_shares.BUFFERS_BDP) + len(bbr_shares.LINUX_BUFFERS_BDP)
    assert len(bbr_shares.runs(ShareCase(1.0, "sim", "draft"))) == bbr_shares.SEEDS
    assert len(bbr_shares.runs(ShareCase(1.0, "linux", "linux"))) == 1


def test_the_table_shows_mean_and_range():
    found = {
        ShareCase(4.0, "sim", "linux"): Shares([0.4, 0.5]),
        ShareCase(4.0, "linux", "linux"): Shares([0.6], ["processor"]),
    }
    last = bbr_shares.table(found).splitlines()[-1]
    assert last == "| 4 | 0.63 | — | 0.45 (0.40 to 0.50) | 0.60; failed: processor |"
