"""The plan of a soak's twelve events."""

from __future__ import annotations

from types import SimpleNamespace

from validation.soak import disturbances
from validation.soak import study as main


def test_an_hour_has_all_events_in_turn_between_reloads():
    events = disturbances.planned(3600.0)
    assert [at_s for at_s, _ in events] == [20.0 + 120.0 * n for n in range(30)]
    assert (
        [one for _, one in events[:12]] == list(disturbances.ALL) == [o for _, o in events[12:24]]
    )
    assert all(at_s % 60 + one.seconds < 60 for at_s, one in events)
    assert disturbances.planned(20.1) == []


def test_the_delay_line_gets_every_longer_path_and_the_way_back():
    changes = disturbances.delays(disturbances.planned(3600.0), 100e6)
    assert len(changes) == 2 * 3 * 3
    assert changes[:2] == [
        {"at_ns": 380_000_000_000, "delay_ns": 2_500_000, "rate_bps": 1e9},
        {"at_ns": 390_000_000_000, "delay_ns": 2_000_000, "rate_bps": 1e9},
    ]
    assert [one["at_ns"] for one in changes] == sorted({one["at_ns"] for one in changes})


def test_events_are_an_option_of_any_course():
    options = SimpleNamespace(short=False, seconds=None, rate=100.0, events=True)
    course = main.course_of(options)
    assert (course.disturb_s, course.least_rate_bps) == (120.0, 100e6 / 1.5)
    assert course.deadline_s == 600.0
    options.events = False
    assert main.course_of(options).disturb_s is None
