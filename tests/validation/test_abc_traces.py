"""The comparison on traces: reading and making them, the figures, the verdict, one run."""

import itertools
import re

import numpy as np
import pytest

from validation import abc_traces
from validation.abc_traces import ABC, CODEL, CODEL_RFC, SCHEMES, Outcome
from waterfill.errors import InputError
from waterfill.runs import backends
from waterfill.scenario.loading import from_dict


def test_a_trace_is_read_and_repeated(tmp_path):
    (tmp_path / "t.down").write_text("5\n5\n40\n")
    trace = abc_traces.read(tmp_path / "t.down", 0.02)
    # Bins of 20 ms with 2 and 1 packets of 12 kbit, again from 40 ms on.
    assert list(trace.rates.until(0.07)) == [
        (0, 1.2e6),
        (0.02, 0.6e6),
        (0.04, 1.2e6),
        (0.06, 0.6e6),
    ]
    assert trace.mean_bps(0.07) == pytest.approx((2 + 1 + 2 + 0.5) * 12_000 / 0.07)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\nx\n", 'must be TIME, RATE or a whole number of milliseconds, got "x"'),
        ("7\n6\n", "times must not decrease, got 6 ms after 7 ms"),
        (None, "none: not a directory of mahimahi traces"),
    ],
)
def test_what_is_no_trace_is_one_sentence(tmp_path, text, message):
    directory = tmp_path
    if text is None:
        directory = tmp_path / "none"
    else:
        (tmp_path / "t.down").write_text(text)
    with pytest.raises(InputError, match=re.escape(message)):
        abc_traces.load(directory, 1.0, 0.02)


def test_made_traces_follow_their_rule():
    made = [abc_traces.made(seed, 60.0, 0.02) for seed in range(1, 9)]
    assert made[0] == abc_traces.made(1, 60.0, 0.02)
    assert made[0] != made[1]._replace(name=made[0].name)
    rates = [trace.mean_bps(60.0) for trace in made]
    assert min(rates) > 0
    assert max(rates) < 1000 * 12_000
    rests = [
        sum(to - at for (at, rate), (to, _) in itertools.pairwise(trace.rates.points) if rate == 0)
        for trace in made
    ]
    assert max(rests) > 1


def test_a_quantile_counts_packets():
    values, weights = np.array([3.0, 1.0, np.nan, 2.0]), np.array([1.0, 90.0, 50.0, 9.0])
    assert abc_traces.weighted_quantile(values, weights, 0.90) == 1.0
    assert abc_traces.weighted_quantile(values, weights, 0.95) == 2.0
    assert abc_traces.weighted_quantile(values, weights, 1.00) == 3.0


def test_the_verdict_needs_public_traces():
    def runs(gain):
        used = {ABC: 0.5 * gain, CODEL: 0.5, CODEL_RFC: 0.4}
        return [Outcome("t", name, one, 1e6, 0.1) for name, one in used.items()]

    judged = {
        g: [c.agrees for c in abc_traces.claims(runs(g), judged=True)] for g in (1.2, 1.4, 1.7)
    }
    assert judged == {1.2: [False, True], 1.4: [True, False], 1.7: [False, False]}
    assert [c.agrees for c in abc_traces.claims(runs(1.2), judged=False)] == [None, None]


def test_every_scheme_is_a_scenario():
    trace = abc_traces.made(1, 2.0, 0.02)
    for scheme in SCHEMES:
        loaded = from_dict(abc_traces.scenario(trace, scheme, 2.0))
        assert loaded.link[0].queue == scheme.queue.get("queue", "droptail")


def test_abc_uses_a_varying_link_without_cubics_delay():
    # Seed 5: 4 Mbit/s on average, in 60 s.
    trace = abc_traces.made(5, 60.0, 0.02)
    figures = {}
    for scheme in SCHEMES:
        if scheme.protocol in ("abc", "cubic"):
            case = abc_traces.TraceCase(trace, scheme, 60.0, False)
            run = abc_traces.runs(case)[""]
            figures[scheme.name] = abc_traces.outcome(case, {"": backends.run(run.scenario)})
    assert 0.8 < figures[ABC].utilization <= 1
    assert figures[ABC].utilization > figures[CODEL_RFC].utilization
    assert figures[ABC].delay_p95_s < 0.2 * figures["cubic"].delay_p95_s
