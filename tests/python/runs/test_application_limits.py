"""Faults of congestion control that only show when the application limits a flow."""

from __future__ import annotations

from typing import ClassVar

import pytest

import waterfill

TICKS = {"kind": "ticks", "sizes": "1000 B", "interval": "10 ms"}
MIXED = {
    "kind": "request-response",
    "sizes": {
        "distribution": "empirical",
        "values": ["15 kB", "3 MB"],
        "probabilities": [0.9, 0.1],
    },
    "think": "200 ms",
}


def one(protocol, application, duration="20 s", **flow):
    """Return a scenario with one flow over 20 Mbit/s and an RTT of 40 ms."""
    scenario = waterfill.Scenario("one", duration=duration, protocol=protocol)
    scenario = scenario.link("l", "a", "b", "20 Mbit/s", "20 ms", buffer="2 bdp")
    return scenario.flow("f", "a", "b", application=application, **flow)


def column(result, name):
    return [value for value in result.flows[name].to_pylist() if value is not None]


@pytest.mark.parametrize("protocol", ["sack", "cubic", "dctcp", "htcp", "westwood", "bic"])
def test_a_window_that_is_not_used_does_not_grow(protocol):
    # Four packets in flight of ten.
    result = one(protocol, TICKS).run()
    assert set(column(result, "window_bytes")) == {15_000.0}
    assert result.summary.flows[0].limited_by.application > 0.99


@pytest.mark.parametrize(("protocol", "name"), [("bbr", "bbr_btlbw"), ("bbr3", "bbr3_bw")])
def test_samples_of_short_messages_do_not_lower_bbr_s_bandwidth(protocol, name):
    result = one(protocol, MIXED, duration="40 s").run()
    times, rates = result.flows["time_s"].to_pylist(), result.flows[name].to_pylist()
    # The first long response has passed by then; a short one alone would show 3 Mbit/s.
    late = [rate for time, rate in zip(times, rates, strict=True) if time > 20 and rate is not None]
    link = 20e6 / 12_000  # packets/s
    assert 0.75 * link < min(late) <= max(late) < 1.05 * link


class Flags:
    """A law with a window of ten packets that records what its host says about the application."""

    seen: ClassVar[list[tuple[bool, bool]]] = []
    events: ClassVar[list[str]] = []

    def __init__(self, connection):
        self.window_bytes = 10 * connection.packet_bytes

    def on_ack(self, ack):
        if ack.kind == "ack":
            self.seen.append((ack.window_limited, ack.app_limited))

    def on_event(self, now_s, event):
        self.events.append(event)

    def limit(self):
        return self.window_bytes, None


@pytest.mark.parametrize(
    ("application", "limited"), [(TICKS, "application"), (None, "window")], ids=["ticks", "bulk"]
)
def test_a_law_in_python_is_told_that_the_application_limits_it(application, limited):
    Flags.seen.clear()
    Flags.events.clear()
    laws = {"flags": waterfill.PythonLaw(source=Flags)}
    flow = one("flags", application, duration="5 s").run(laws=laws).summary.flows[0]
    by_application = limited == "application"
    assert flow.limited_by[limited] > 0.98
    late = Flags.seen[len(Flags.seen) // 2 :]
    assert set(late) == {(not by_application, by_application)}


class Restarts(Flags):
    """Flags with a window of 40 packets, and of two after a pause."""

    def __init__(self, connection):
        super().__init__(connection)
        self.window_bytes = 40 * connection.packet_bytes

    def on_event(self, now_s, event):
        if event == "idle_restart":
            self.window_bytes = 2 * 1500


def test_a_window_that_a_law_in_python_lowers_after_a_pause_holds_at_once():
    laws = {"restarts": waterfill.PythonLaw(source=Restarts, paced=False)}
    application = {"kind": "ticks", "sizes": "60 kB", "interval": "2 s"}
    result = one("restarts", application, duration="5 s").set(sample="5 ms").run(laws=laws)
    time_s, in_flight = (result.flows[name].to_numpy() for name in ("time_s", "in_flight_bytes"))
    assert max(in_flight[time_s < 1.0]) > 30 * 1500
    assert max(in_flight[time_s > 2.0]) <= 2 * 1500


def test_a_law_in_python_is_told_of_each_pause():
    Flags.events.clear()
    laws = {"flags": waterfill.PythonLaw(source=Flags)}
    application = {"kind": "ticks", "sizes": "1 kB", "interval": "2 s"}
    flow = one("flags", application, duration="10.1 s").run(laws=laws).summary.flows[0]
    assert Flags.events == ["idle_restart"] * (flow.messages.written - 1)
