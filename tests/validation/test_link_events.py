"""Laws on a link that changes: the setting, and the measurements after a change."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from validation import link_events
from validation.link_events import Course, EventCase, Outcome, Response

SHARE_BPS = 10e6


def test_a_response_is_measured_from_the_change_on():
    # 1 s at half of the share, then all of it: the mean over 0.5 s has 95 % in the fifth sample.
    rates = [SHARE_BPS / 2] * 10 + [SHARE_BPS] * 20
    samples = Course(rates, [25_000.0] * 30, [1.0] * 30)
    found = link_events.response(samples, SHARE_BPS, 20e6)
    assert found.recovered_s == pytest.approx(1.5)
    assert found.lost_s == pytest.approx(0.5)
    assert (found.queue_ms, found.drops) == (10.0, 30)
    never = link_events.response(Course([1e6] * 30, [0.0] * 30, [0.0] * 30), SHARE_BPS, 20e6)
    assert never.recovered_s is None


def test_a_law_runs_where_it_can():
    asked = SimpleNamespace(protocols=("xcp", "cubic"))
    assert link_events.cases(asked) == [("xcp", "sim"), ("xcp", "fluid"), ("cubic", "sim")]
    run = link_events.runs(EventCase("xcp", "fluid"))[""]
    assert (run.on, run.scenario.protocol) == ("fluid", "xcp")


def test_a_line_says_when_a_flow_left_its_law():
    run = Outcome(Course([], [], []), [Response(1.5, 0.5, 12.0, 7)] * 4, [], 31.5)
    cells = link_events.row(EventCase("rcp", "linux"), run)
    assert cells[:6] == ["`rcp`", "linux (left at 32 s)", "12", "7", "0.50", "1.5"]
    assert len(cells) == len(link_events.HEAD.split("|"))
