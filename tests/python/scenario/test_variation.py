"""Tests of links that follow time: keys, the core's view, errors."""

import json
import math
import random
from pathlib import Path

import pytest

import waterfill
from waterfill.errors import InputError
from waterfill.network import graph, maxmin, resolve
from waterfill.network.protocols import load
from waterfill.scenario import traces
from waterfill.scenario.loading import from_toml
from waterfill.scenario.loading import load as load_file

ROOT = Path(__file__).resolve().parents[3]
BASE = """
duration = "20 s"
protocol = "maxnet"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "12 Mbit/s"
delay = "10 ms"
KEYS
[[flow]]
name = "f"
from = "a"
to = "b"
count = 2
"""
EVENTS = """
[[link.event]]
at = "5 s"
rate = "6 Mbit/s"
[[link.event]]
at = "10 s"
up = false
[[link.event]]
at = "12 s"
up = true
delay = "4 ms"
"""


def scenario_of(keys, source="S.toml"):
    return from_toml(BASE.replace("KEYS", keys), str(source))


def links_of(keys, source="S.toml"):
    return resolve.to_core(scenario_of(keys, source), load()).links


def line_of(keys):
    with pytest.raises(InputError) as refused:
        resolve.to_core(scenario_of(keys), load())
    line = str(refused.value)
    assert "\n" not in line
    return line.removeprefix("S.toml: link.l.")


def steps_of(changes):
    return [(c.at_s, c.rate_bps, c.delay_s, c.up) for c in changes]


def test_a_link_without_events_has_no_changes():
    assert [link.changes for link in links_of("")] == [(), ()]
    assert "event" not in scenario_of("").to_toml()
    assert "rate_trace" not in scenario_of("").to_toml()


def test_events_are_of_both_directions_and_survive_being_written():
    expected = [(5, 6e6, None, None), (10, None, None, False), (12, None, 0.004, True)]
    for link in links_of(EVENTS):
        assert steps_of(link.changes) == expected
    again = from_toml(scenario_of(EVENTS).to_toml(), "again.toml")
    assert steps_of(resolve.to_core(again, load()).links[0].changes) == expected


def test_the_base_rtt_is_that_of_the_smallest_delay():
    assert graph.base_rtts(scenario_of(EVENTS)) == {"f": 0.008}


def test_shares_follow_the_rate_and_the_state():
    network = resolve.to_core(scenario_of(EVENTS), load())
    found = maxmin.intervals(network, {"maxnet": 0.5}, maxmin.lives_of(network), (0.0, 20.0))
    rates = [(i.from_s, i.to_s, i.shares[0].rate_bps) for i in found]
    assert rates == [(0, 5, 3e6), (5, 10, 1.5e6), (10, 12, 0), (12, 20, 1.5e6)]
    window = [(8.0, 13.0)] * 2
    mean = maxmin.mean_rates(network, {"maxnet": 0.5}, window, maxmin.lives_of(network))
    assert mean == [pytest.approx((2 * 1.5e6 + 1 * 1.5e6) / 5)] * 2


def trace_file(tmp_path, text):
    (tmp_path / "t").write_text(text)
    return tmp_path / "S.toml"


def test_a_csv_is_read_beside_the_scenario_and_repeats(tmp_path):
    source = trace_file(tmp_path, "time,rate\n0, 1 Mbit/s # slow\n2.5 s, 4e6\n\n6 s, 4e6\n")
    forward, back = links_of('rate_trace = "t"', source)
    assert forward.rate_bps == 1e6
    times = [2.5, 6, 8.5, 12, 14.5, 18]
    assert steps_of(forward.changes) == [
        (at, [4e6, 1e6][i % 2], None, None) for i, at in enumerate(times)
    ]
    assert back.changes == ()
    once, _ = links_of('rate_trace = {file = "t", repeat = false}', source)
    assert steps_of(once.changes) == [(2.5, 4e6, None, None)]
    _, back = links_of('rate_trace_reverse = "t"', source)
    assert (back.rate_bps, len(back.changes)) == (1e6, 6)


def test_a_trace_is_written_without_its_file(tmp_path):
    source = trace_file(tmp_path, "0, 1e6\n1, 0\n2, 0\n")
    written = scenario_of('rate_trace = {file = "t", repeat = false}', source).to_toml()
    assert '"t"' not in written
    [forward, _] = resolve.to_core(from_toml(written, "again.toml"), load()).links
    assert steps_of(forward.changes) == [(1, 0, None, None)]


def test_opportunities_become_rates():
    # 1 ms, 1 ms, 100 ms | 101 ms | nothing | 305 ms: three bins of 100 ms and one of 5.
    points = traces.opportunities([1, 1, 100, 101, 305], 0.1)
    assert points == (
        (0, 3 * 12e3 / 0.1),
        (0.1, 12e3 / 0.1),
        (0.2, 0),
        (0.3, pytest.approx(12e3 / 0.005)),
        (0.305, pytest.approx(12e3 / 0.005)),
    )


@pytest.mark.parametrize("seed", range(5))
def test_opportunities_keep_the_volume_whatever_the_bin(seed):
    draw = random.Random(seed)
    times = [*sorted(draw.randrange(0, 5000) for _ in range(1 + seed * 400)), 5000]
    for bin_s in (0.001, 0.05, 0.3, 7.0):
        trace = traces.Trace(traces.opportunities(times, bin_s))
        assert trace.length_s == 5
        assert math.isclose(trace.mean_bps * 5, 12_000 * len(times))


def test_events_and_a_trace_of_one_time_are_one_change(tmp_path):
    source = trace_file(tmp_path, "0, 1e6\n1, 2e6\n30, 0\n")
    keys = 'rate_trace = "t"\n[[link.event]]\nat = "1 s"\nup = false'
    forward, back = links_of(keys, source)
    assert steps_of(forward.changes) == [(1, 2e6, None, False)]
    assert steps_of(back.changes) == [(1, None, None, False)]


ERRORS = {
    '[[link.event]]\nat = "1 s"': "event[0]: changes nothing; add a rate, a delay or up",
    '[[link.event]]\nat = "1 s"\nrate = "0 bit/s"': 'event[0].rate: must be above zero, got "0 '
    'bit/s"; write up = false to fail it',
    '[[link.event]]\nat = "1 s"\nrat = "1 Mbit/s"': "event[0].rat: unknown key, did you mean "
    '"rate"?',
    "[[link.event]]\nup = true": 'event[0].at: missing; write a time such as "10 s"',
    '[[link.event]]\nat = "2 s"\nup = false\n[[link.event]]\nat = "2 s"\nup = true': (
        "event[1].at: events must be in order of time, got 2 s after 2 s"
    ),
    '[[link.event]]\nat = "20 s"\nup = false': "event[0].at: must be before the end of the run "
    "at 20 s, got 20 s",
    '[[link.event]]\nat = "1 s"\nup = "no"': 'event[0].up: must be true or false, got "no"',
    'rate_trace = "none"': "rate_trace.file: cannot read none: No such file or directory",
    "rate_trace = 3": 'rate_trace: must be a file such as "cell.csv", or a table such as '
    '{file = "cell.csv", repeat = false}, got 3',
    "rate_trace = {fil = 1}": 'rate_trace.fil: unknown key, did you mean "file"?',
    "rate_trace = {repeat = true}": "rate_trace: needs either file or points, got neither",
    'rate_trace = {points = [["1 s", "1 bit/s"], ["2 s", "1 bit/s"]]}': "rate_trace.points: the "
    "first time must be 0 s, got "
    "1 s",
    'rate_trace = {points = [["0 s", "1 bit/s"], ["0 s", "1 bit/s"]]}': "rate_trace.points: times "
    "must increase, got 0 s "
    "after 0 s",
    'rate_trace = {points = [["0 s", "0 bit/s"], ["1 s", "0 bit/s"]]}': "rate_trace.points: all "
    "rates are zero; at least "
    "one must be above zero",
    'duplex = false\nrate_trace_reverse = {points = [["0 s", "1 bit/s"], ["1 s", "1 bit/s"]]}': (
        "rate_trace_reverse: not allowed with duplex = false"
    ),
    'shaper = {rate = "1 Mbit/s", depth = "64 kB"}\n[[link.event]]\nat = "1 s"\nup = false': (
        "event: not allowed on a link with a shaper"
    ),
}


@pytest.mark.parametrize("keys", ERRORS, ids=lambda keys: keys[:40])
def test_what_is_wrong_is_one_sentence(keys):
    assert line_of(keys) == ERRORS[keys]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0, 1e6\n1 s, fast\n", "line 2 of"),
        ("1\n2.5\n", "line 2 of"),
        ("5\n4\n", "line 2 of"),
        ("0\n0\n", "the last time must be above 0 ms, got 0 in"),
        ("# nothing\n", "has no times and rates"),
    ],
)
def test_a_wrong_line_of_a_file_is_named(tmp_path, text, message):
    source = trace_file(tmp_path, text)
    with pytest.raises(InputError, match=r"^\S+: link\.l\.rate_trace\.file: ") as refused:
        scenario_of('rate_trace = "t"', source)
    assert message in str(refused.value)


def test_a_run_reports_the_capacity_and_its_share(tmp_path):
    path = tmp_path / "S.toml"
    path.write_text(BASE.replace("KEYS", EVENTS).replace('"20 s"', '"20 s"\nsample = "500 ms"', 1))
    result = waterfill.run(load_file(path), on="sim")
    links = result.links.to_pydict()
    forward = [
        (round(t - 0.5, 6), c)
        for t, name, c in zip(links["time_s"], links["link"], links["capacity_bps"], strict=True)
        if name == "l"
    ]
    capacity = dict(forward)
    assert (capacity[4.0], capacity[7.0], capacity[10.5], capacity[15.0]) == (12e6, 6e6, 0, 6e6)
    summary = json.loads(json.dumps(result.summary))
    used = sum(flow["rate_bps"] for flow in summary["flows"])
    allowed = sum(flow["max_min_bps"] for flow in summary["flows"])
    assert used == pytest.approx(allowed, rel=0.1)


def test_the_shipped_trace_follows_its_rule():
    draw, level, rates = random.Random(1), math.log(8e6), []
    for _ in range(301):
        rates.append(round(math.exp(level)))
        level += 0.05 * (math.log(8e6) - level) + draw.gauss(0, 0.25)
        level = min(max(level, math.log(0.5e6)), math.log(40e6))
    trace = traces.parse("cellular.csv", ROOT / "examples")
    assert [rate for _, rate in trace.points] == pytest.approx(rates)
    assert trace.length_s == 60


def test_a_trace_driven_link_delivers_the_trace():
    result = waterfill.run(
        load_file(ROOT / "examples" / "cellular.toml", ["protocol=cubic"]), on="sim"
    )
    [link] = [link for link in result.summary["links"] if link["name"] == "cell"]
    assert link["utilization"] > 0.9
    rates = sum(flow["max_min_bps"] for flow in result.summary["flows"])
    carried = sum(flow["rate_bps"] for flow in result.summary["flows"])
    assert carried == pytest.approx(rates, rel=0.1)
