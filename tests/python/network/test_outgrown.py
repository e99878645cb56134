"""Tests of `base_rtt_window`: which flows have one, and the warning of a share out of reach."""

import math
import warnings

import pytest

from waterfill import run
from waterfill.errors import InputError
from waterfill.network import protocols, resolve
from waterfill.network.protocols import Misfit
from waterfill.scenario.loading import from_dict

LAWS = protocols.load()


def scenario(protocol="maxnet", delay="100 ms", flow=None, **more):
    """50 Mbit/s whose RTT of 40 ms changes at 5 s."""
    link = {"name": "sky", "from": "a", "to": "b", "rate": "50 Mbit/s", "delay": "20 ms"}
    link["event"] = [{"at": "5 s", "delay": delay}]
    flows = [{"name": "f", "from": "a", "to": "b", **(flow or {})}]
    document = {"duration": "40 s", "protocol": protocol, "link": [link], "flow": flows, **more}
    return from_dict(document, "S.toml")


def window_s(*args, **more):
    return resolve.to_core(scenario(*args, **more), LAWS).flows[0].base_rtt_window_s


def test_a_flows_window_precedes_the_scenarios_and_the_laws():
    assert window_s() == 10.0
    assert window_s("vegas") is None
    assert window_s("xcp") is None
    assert window_s(base_rtt_window="2 s") == 2.0
    assert window_s("vegas", base_rtt_window="2 s") == 2.0
    assert window_s("xcp", base_rtt_window="2 s") is None
    assert window_s(base_rtt_window="2 s", flow={"base_rtt_window": "unlimited"}) is None


@pytest.mark.parametrize("window", ["5 s", "unlimited"])
def test_a_window_without_effect_is_refused(window):
    with pytest.raises(InputError) as refused:
        resolve.to_core(scenario("xcp", flow={"base_rtt_window": window}), LAWS)
    assert str(refused.value) == (
        "S.toml: flow.f.base_rtt_window: not allowed, because xcp does not use the smallest RTT, "
        f'got "{window}"; remove it'
    )


def web(protocol="maxnet", **more):
    source = {"kind": "web", "name": "w", "from": "a", "to": "b", "arrival_rate": 5, **more}
    return scenario(protocol, traffic=[source])


def test_flows_that_arrive_have_a_window_too():
    def of_web(found):
        return resolve.to_core(found, LAWS).traffic[0].flows.flow.base_rtt_window_s

    assert of_web(web()) == 10.0
    assert of_web(web(base_rtt_window="3 s")) == 3.0
    assert of_web(web("xcp")) is None
    with pytest.raises(InputError) as refused:
        resolve.to_core(web("xcp", base_rtt_window="3 s"), LAWS)
    assert str(refused.value) == (
        "S.toml: traffic.w.base_rtt_window: not allowed, because xcp does not use the smallest "
        'RTT, got "3 s"; remove it'
    )
    with pytest.raises(InputError, match=r'w\.base_rtt_window: not allowed with kind = "cbr"'):
        scenario(traffic=[{"kind": "cbr", "name": "w", "from": "a", "to": "b", "rate": "1 Mbit/s",
                           "base_rtt_window": "3 s"}])  # fmt: skip


def test_a_scenarios_window_without_effect_leaves_a_note():
    why = "S.toml: base_rtt_window: no effect, because"
    assert found("xcp", base_rtt_window="2 s") == [
        f"{why} xcp does not use the smallest RTT, got 2 s"
    ]
    assert found("xcp", base_rtt_window="unlimited") == []
    assert found("xcp", base_rtt_window="2 s", flow={"protocol": "maxnet"}) == []


def test_a_window_has_a_unit_or_is_unlimited():
    assert scenario(base_rtt_window="unlimited").base_rtt_window == math.inf
    with pytest.raises(InputError, match='"unlimited" or a time such as "10 s", got "forever"'):
        scenario(base_rtt_window="forever")


def found(*args, **more):
    """Return the warnings of a run that are about the window."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(scenario(*args, **more))
    return [str(w.message) for w in caught if issubclass(w.category, Misfit)]


def test_a_run_warns_of_a_share_out_of_reach():
    assert found(base_rtt_window="unlimited") == [
        "S.toml: flow.f.base_rtt_window: its rate is 22 % of its share, because its hosts use an "
        'RTT of 40 ms and the path has 200 ms; write a time such as "10 s", after which they '
        "forget an RTT"
    ]
    assert "after 100 s" in found(base_rtt_window="100 s")[0]


@pytest.mark.parametrize(
    ("protocol", "delay"), [("maxnet", "100 ms"), ("maxnet", "10 ms"), ("xcp", "100 ms")]
)
def test_a_run_does_not_warn_of_a_share_in_reach(protocol, delay):
    assert found(protocol, delay) == []
