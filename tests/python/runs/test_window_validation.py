"""Windows that an application does not use: the rules, their defaults, and refusals."""

from __future__ import annotations

import pytest

import waterfill
from waterfill import InputError
from waterfill.runs import backends

PROTOCOLS = backends.known("sim")
# 600 kB, ten seconds of pause, and again.
PAUSES = {"kind": "request-response", "sizes": "600 kB", "think": "10 s"}


def paused(rule, protocol="sack", **flow):
    """Return the run of a flow that pauses for 10 s, over 50 Mbit/s and an RTT of 40 ms."""
    scenario = waterfill.Scenario("paused", duration="30 s", protocol=protocol, sample="10 ms")
    scenario = scenario.link("l", "a", "b", "50 Mbit/s", "20 ms", buffer="1 bdp")
    keys = {} if rule is None else {"window_validation": rule}
    return scenario.flow("f", "a", "b", application=PAUSES, **keys, **flow).run()


def window_at(result, time_s):
    """Return the window (packets) of the last sample before a time."""
    rows = zip(
        result.flows["time_s"].to_pylist(), result.flows["window_bytes"].to_pylist(), strict=True
    )
    return [window for time, window in rows if time < time_s][-1] / 1500


def test_each_rule_gives_another_window_after_a_pause():
    for rule in ("off", "rfc7661", "rfc2861", "rfc5681"):
        result = paused(rule)
        # The second response leaves at 10.3 s, and its first acknowledgement is back at 10.35 s.
        before, after = window_at(result, 9.0), window_at(result, 10.345)
        if rule in ("off", "rfc7661"):
            assert after == before > 200
        else:
            assert before > 200
            assert after == 10
    assert PROTOCOLS["sack"].window_validation == "rfc2861"
    assert window_at(paused(None), 10.345) == 10
    assert window_at(paused(None, "htcp"), 10.345) > 200, "as in its paper"


def test_a_pause_below_the_timeout_is_none():
    scenario = waterfill.Scenario("short", duration="10 s", protocol="sack")
    scenario = scenario.link("l", "a", "b", "50 Mbit/s", "20 ms", buffer="1 bdp")
    think = {**PAUSES, "think": "900 ms"}
    scenario = scenario.flow("f", "a", "b", application=think, window_validation="rfc5681")
    result = scenario.run()
    assert window_at(result, 9.9) > 100


@pytest.mark.parametrize("protocol", ["bbr", "bbr3", "maxnet", "window"])
def test_laws_without_a_window_of_tcp_refuse_the_key(protocol):
    assert PROTOCOLS[protocol].window_validation is None
    with pytest.raises(
        InputError, match=f"flow.f.window_validation: not allowed, because {protocol}"
    ):
        paused("rfc7661", protocol)


def test_wrong_rules_and_other_backends_are_refused():
    with pytest.raises(
        InputError, match='must be "off", "rfc5681", "rfc2861" or "rfc7661", got "x"'
    ):
        paused("x")
    scenario = waterfill.Scenario("fluid", duration="1 s", protocol="maxnet")
    scenario = scenario.link("l", "a", "b", "50 Mbit/s", "20 ms")
    scenario = scenario.flow("f", "a", "b", window_validation="off")
    with pytest.raises(InputError, match="not supported by the fluid backend"):
        scenario.check(on="fluid")
