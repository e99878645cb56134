"""Tests of the delay line's measurement: the carried rate, and the table."""

from __future__ import annotations

import pytest

from validation.testbed import delay_line


def report(rate, received=1.0, slowdown=1.0):
    """A probe's report of one second at a rate, of which a fraction arrives."""
    return {
        "sent": rate,
        "received": round(received * rate),
        "unseen": 0,
        "reordered": 2,
        "sending_s": 1.0,
        "receiving_s": slowdown,
        "error_ns": {"p50": 1_000, "abs_p99": 12_000, "p999": 40_000, "max": 90_000},
    }


@pytest.mark.parametrize(
    ("changes", "ok"),
    [
        ({}, True),
        ({"received": 0.9991}, True),
        ({"received": 0.998}, False),
        ({"slowdown": 1.019}, True),
        ({"slowdown": 1.021}, False),
    ],
)
def test_a_rate_is_carried_if_frames_arrive_in_time(changes, ok):
    assert delay_line.carried(report(100_000, **changes), 100_000) is ok


def test_a_sender_that_is_too_slow_carries_nothing():
    assert not delay_line.carried(report(99_000), 100_000)


def test_the_highest_rate_is_the_last_one_carried():
    probed = []

    def probe(rate):
        probed.append(rate)
        return report(rate, received=1.0 if rate <= 100_000 else 0.9)

    found = delay_line.highest_rate(probe)
    # 50,000 · 1.25ⁿ: the last one up to 100,000 is n = 3.
    assert found["ceiling"]["frames_per_s"] == round(50_000 * 1.25**3)
    assert found["ceiling"]["bits_per_s"] == round(50_000 * 1.25**3) * 8 * 1500
    assert found["fails_at"]["frames_per_s"] == round(50_000 * 1.25**4) == probed[-1]


def test_a_path_that_carries_nothing_has_no_highest_rate():
    found = delay_line.highest_rate(lambda rate: report(rate, received=0.5))
    assert found["ceiling"] is None
    assert found["fails_at"]["frames_per_s"] == 50_000
    assert "fails_at" not in delay_line.highest_rate(report)


def test_the_table_has_rate_loss_error_and_load():
    asked = report(83_333, received=0.999)
    entry = {"way": "ring", "asked": asked, "line_cpu": 0.31, "machine_busy": 0.5, "ceiling": None}
    row = delay_line.table([entry]).splitlines()[-1]
    # 83250 frames of 1500 bytes in a second; 83 lost; errors in µs.
    assert row == "| ring | 999.0 | 83 | 2 | 1 | 12 | 40 | 90 | 31% | – | – | 50% |"
