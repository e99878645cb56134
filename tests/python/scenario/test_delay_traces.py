"""Delay traces of links: formats, units, both directions, and refusals."""

from __future__ import annotations

import pytest

import waterfill as package
from waterfill.errors import InputError
from waterfill.network.protocols import load
from waterfill.network.resolve import to_core
from waterfill.scenario import traces
from waterfill.scenario.distributions import PartError
from waterfill.scenario.loading import from_dict
from waterfill.studio import controls
from waterfill.testbed import variation

POINTS = [["0 s", "20 ms"], ["2 s", "35 ms"], ["5 s", "20 ms"]]
LINK = {"name": "sky", "from": "a", "to": "b", "rate": "20 Mbit/s"}


def scenario(**keys):
    return {
        "duration": "8 s", "protocol": "maxnet", "link": [{**LINK, **keys}],
        "flow": [{"name": "f", "from": "a", "to": "b"}],
    }  # fmt: skip


def delays(**keys):
    """Return (time, delay) of each direction: at the start, and each change."""
    links = to_core(from_dict(scenario(**keys)), load()).links
    return [[(0.0, one.delay_s), *((c.at_s, c.delay_s) for c in one.changes)] for one in links]


def test_trace_is_a_list_of_changes_in_both_directions():
    found = [(0, 0.02), (2, 0.035), (5, 0.02), (7, 0.035)]
    assert delays(delay_trace={"points": POINTS}) == [found, found]
    assert delays(delay_trace={"points": POINTS, "repeat": False})[0] == found[:3]
    back = {"points": [["0 s", "5 ms"], ["1 s", "5 ms"]]}
    both = delays(delay_trace={"points": POINTS}, delay_trace_reverse=back)
    assert both == [found, [(0, 0.005)]]


@pytest.mark.parametrize(
    ("text", "keys", "points"),
    [
        ("0 s, 20 ms\n1 s, 30 ms\n", {}, ((0, 0.02), (1, 0.03))),
        ("time_ms,delay_us\n0,20\n1000,30\n", {}, ((0, 2e-5), (1, 3e-5))),
        ("t (s), latency [s]\n0,0.02\n1,0.03\n", {}, ((0, 0.02), (1, 0.03))),
        ("0 20\n1 30\n", {"unit": "1 ms"}, ((0, 0.02), (1, 0.03))),
        ("# of a pass\n1700000000 20\n1700000001 30\n", {"unit": "1 ms", "shift": True},
         ((0, 0.02), (1, 0.03))),
    ],
)  # fmt: skip
def test_files(tmp_path, text, keys, points):
    (tmp_path / "d.csv").write_text(text)
    found = traces.parse_delays({"file": "d.csv", **keys}, tmp_path)
    flat = [value for point in points for value in point]
    assert [value for point in found.points for value in point] == pytest.approx(flat)
    again = traces.parse_delays(found.written())
    assert again == found


@pytest.mark.parametrize(
    ("text", "keys", "part", "message"),
    [
        ("0,20\n1,30\n", {}, "unit", 'have no unit; write unit = "1 ms"'),
        ("t,delay_ms\n0,20\n1,30\n", {"unit": "1 ms"}, "unit", "names a unit"),
        ("0 s, 20 ms\n1 s\n", {}, "file", 'line 2 of {}: must be TIME, DELAY'),
        ("0 s, 20 ms\n1 s, -3 ms\n", {}, "file", "line 2 of {}: must be TIME, DELAY"),
        ("1 s, 20 ms\n2 s, 3 ms\n", {}, "file", "write shift = true"),
        ("0 s, 20 ms\n1 s, 3 ms\n", {"bin": "1 s"}, "bin", "unknown key"),
        ("", {}, "file", "has no times and delays"),
    ],
)  # fmt: skip
def test_refused_files(tmp_path, text, keys, part, message):
    path = tmp_path / "d.csv"
    path.write_text(text)
    with pytest.raises(PartError) as caught:
        traces.parse_delays({"file": str(path), **keys})
    assert caught.value.part == part
    assert message.format(path) in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "key", "message"),
    [
        ({"delay": "5 ms"}, "delay", "not allowed with delay_trace, got 5 ms"),
        ({"delay_reverse": "5 ms"}, "delay_reverse", "not allowed with delay_trace"),
        ({"event": [{"at": "1 s", "delay": "1 ms"}]}, "event[0].delay",
         "not allowed on a link with a delay_trace"),
        ({"shaper": {"rate": "5 Mbit/s", "depth": "64 kB"}}, "delay_trace",
         "not allowed on a link with a shaper"),
        ({"duplex": False, "delay_trace_reverse": {"points": POINTS}}, "delay_trace_reverse",
         "not allowed with duplex = false"),
        ({"delay_trace": None, "delay_trace_reverse": {"points": POINTS}}, "delay_trace_reverse",
         "not allowed without delay_trace"),
        ({"delay_trace": {"points": [["0 s", "1 ms"], ["1 us", "2 ms"], ["1 ps", "2 ms"]]}},
         "delay_trace.points", "times must increase"),
        ({"delay_trace": {"points": [["0 s", "1 ms"], ["1 ns", "2 ms"], ["2 ns", "2 ms"]]}},
         "delay_trace", "more than 4000000 changes of the delay in the run"),
    ],
)  # fmt: skip
def test_refused_next_to_other_keys(keys, key, message):
    given = {"delay_trace": {"points": POINTS}, **keys}
    with pytest.raises(InputError) as caught:
        from_dict(scenario(**{name: value for name, value in given.items() if value is not None}))
    assert caught.value.key == f"link.sky.{key}"
    assert message in caught.value.message


# The path becomes longer, so a warning says that the flow is short of its share.
@pytest.mark.filterwarnings("ignore::waterfill.network.protocols.Misfit")
@pytest.mark.parametrize("on", ["sim", "fluid"])
def test_rtt_follows_the_trace_and_equals_that_of_events(on):
    traced = package.run(scenario(delay_trace={"points": POINTS}), on=on)
    events = [{"at": f"{at} s", "delay": f"{ms} ms"} for at, ms in ((2, 35), (5, 20), (7, 35))]
    evented = package.run(scenario(delay="20 ms", event=events), on=on)
    assert traced.summary.flows == evented.summary.flows
    assert traced.summary.flows[0].rtt_ms.base == pytest.approx(40)  # of the smallest delay
    series = traced.flows
    at = dict(zip(series["time_s"].to_pylist(), series["rtt_s"].to_pylist(), strict=True))
    times = {t: min(at, key=lambda x: abs(x - t)) for t in (1.9, 4.0)}
    assert at[times[4.0]] - at[times[1.9]] == pytest.approx(0.03, abs=0.01)


def test_studio_has_no_slider_for_a_traced_delay():
    traced = controls.of_link(from_dict(scenario(delay_trace={"points": POINTS})), "sky")
    plain = controls.of_link(from_dict(scenario(delay="20 ms")), "sky")
    assert [one.key for one in plain] == ["link.sky.rate", "link.sky.delay", "link.sky.loss"]
    assert [one.key for one in traced] == ["link.sky.rate", "link.sky.loss"]


def test_linux_needs_time_between_changes():
    fine = [["0 s", "20 ms"], ["1 s", "21 ms"], ["1.005 s", "22 ms"], ["2 s", "20 ms"]]
    loaded = from_dict(scenario(delay_trace={"points": fine, "repeat": False}, duplex=True))
    coarse = from_dict(scenario(delay_trace={"points": POINTS}))
    variation.refuse(coarse, to_core(coarse, load(), "linux"))
    with pytest.raises(InputError, match="must be at least 10 ms apart on linux") as caught:
        variation.refuse(loaded, to_core(loaded, load(), "linux"))
    assert caught.value.key == "link.sky.delay_trace"
