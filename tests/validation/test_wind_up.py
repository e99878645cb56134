"""Dead time after an overload by traffic that ignores the law."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from validation import wind_up
from validation.wind_up import DeadTime, WindUpCase
from waterfill.runs import backends


def measured(case):
    runs = {name: backends.run(run.scenario) for name, run in wind_up.runs(case).items()}
    return wind_up.measure(case, runs)


def test_the_dead_time_ends_at_half_of_the_usual_rate():
    # Half a second of nothing, then all of it: the first mean of 1 s with a half starts at once.
    assert wind_up.dead_s([0.0] * 5 + [8.0] * 20, 8.0) == 0.0
    assert wind_up.dead_s([0.0] * 25 + [8.0] * 20, 8.0) == pytest.approx(2.0)
    assert wind_up.dead_s([3.9] * 40, 8.0) is None


def test_every_law_runs_with_its_variants_and_overloads():
    asked = SimpleNamespace(protocols=("maxnet", "rcp"), overloads=(30.0, 110.0))
    found = wind_up.cases(asked)
    assert [case.protocol for case in found].count("maxnet") == 6
    assert WindUpCase("rcp", "", 110.0) in found
    assert [len(wind_up.document(found[0], s)["flow"]) for s in (30.0, 0.0)] == [2, 1]


# Without a bound, 30 s of three CUBIC flows raise the price so far that it falls for 19 s.
@pytest.mark.parametrize(
    ("variant", "shortest_s", "longest_s"),
    [("", 3.0, 7.5), ("kernel-host", 3.0, 7.5), (wind_up.NO_BOUND, 15.0, 25.0)],
)
def test_p_max_ends_the_wind_up_of_maxnet(variant, shortest_s, longest_s):
    found = measured(WindUpCase("maxnet", variant, 30.0))
    assert found.usual_s is not None
    assert found.usual_s < 1.0
    assert found.after_s is not None
    assert shortest_s < found.after_s < longest_s


def test_a_case_fails_if_a_bound_does_not_hold():
    late = DeadTime(60.0, 0.2, {})
    cases = [WindUpCase("maxnet", "", 30.0), WindUpCase("maxnet", wind_up.NO_BOUND, 30.0)]
    assert wind_up.longest_s("maxnet") == pytest.approx(0.4 * 14.955 / 0.9 + 1.0, abs=1e-3)
    assert wind_up.failed(dict.fromkeys(cases, late)) == ["maxnet  after 30 s: dead for 60.0 s"]
