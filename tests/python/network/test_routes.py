"""Tests of routes that change during a run: keys, shares, runs, refusals."""

import warnings

import pytest

import waterfill
from known import PROTOCOLS, TARGETS
from waterfill.errors import InputError
from waterfill.network import resolve, shares
from waterfill.scenario.loading import from_toml

# Two satellites: an RTT of 40 ms over the first, 70 ms over the second, whose link is slower.
BASE = """
duration = "40 s"
protocol = "maxnet"
[[link]]
name = "near"
from = "user"
to = "core"
rate = "20 Mbit/s"
delay = "20 ms"
[[link]]
name = "far"
from = "user"
to = "core"
rate = "10 Mbit/s"
delay = "35 ms"
[[link]]
name = "lan"
from = "core"
to = "server"
rate = "100 Mbit/s"
delay = "0 ms"
[[flow]]
name = "f"
path = ["near", "lan"]
KEYS
"""
MOVE = '[[flow.route]]\nat = "15 s"\npath = ["far", "lan"]\n'
BACK = '[[flow.route]]\nat = "30 s"\npath = ["near", "lan"]\nreturn_path = ["lan:rev", "far:rev"]\n'


SAME_RATE = ('rate = "10 Mbit/s"', 'rate = "20 Mbit/s"')


def scenario_of(keys, *changes):
    text = BASE.replace("KEYS", keys)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return from_toml(text, "S.toml")


def network_of(keys, *changes):
    return resolve.to_core(scenario_of(keys, *changes), PROTOCOLS)


def test_routes_become_indexes_and_acknowledgements_return_on_them():
    network = network_of(MOVE + BACK)
    (flow,) = network.flows
    assert (flow.forward, flow.reverse) == ((0, 4), (5, 1))
    assert [tuple(route) for route in flow.routes] == [
        (15.0, (2, 4), (5, 3)),
        (30.0, (0, 4), (5, 3)),
    ]
    assert (flow.base_rtt_s, flow.pad_s) == (0.04, 0.0)
    # 1 bdp: 20 Mbit/s × 55 ms (out near, back far), 10 Mbit/s × 70 ms, 100 Mbit/s × 70 ms.
    sizes = [link.buffer.size for link in network.links[::2]]
    assert sizes == [137_500, 87_500, 875_000]


def test_the_padding_stays_and_the_shortest_route_has_the_rtt():
    (flow,) = network_of('rtt = "100 ms"\n' + MOVE).flows
    assert (flow.base_rtt_s, flow.pad_s) == (0.1, pytest.approx(0.03))
    # From the longer route to the shorter one.
    turned = ('["near", "lan"]\nrtt', '["far", "lan"]\nrtt')
    (flow,) = network_of(f'rtt = "100 ms"\n{MOVE}', turned).flows
    assert (flow.forward[0], flow.base_rtt_s, flow.pad_s) == (2, 0.1, pytest.approx(0.015))
    later = MOVE.replace("far", "near")
    (flow,) = network_of(f'rtt = "100 ms"\n{later}', turned).flows
    assert (flow.forward[0], flow.base_rtt_s, flow.pad_s) == (2, 0.1, pytest.approx(0.03))


def test_a_host_outside_the_network_may_join_another_node():
    ends = 'from = "phone"\nto = "server"\n'
    far = 'from = "user"\nto = "core"\nrate = "10 Mbit/s"'
    other = (far, far.replace("user", "sky"))
    (flow,) = network_of(ends + MOVE, other).flows
    assert flow.routes[0].forward == (2, 4)
    with pytest.raises(InputError) as refused:
        network_of(MOVE, other)  # without `from`, the flow starts at `user`
    assert str(refused.value) == (
        'S.toml: flow.f.route[0].path: leads from "sky" to "server", must lead from "user" to '
        '"server"'
    )


def test_shares_have_the_route_of_each_time():
    scenario = scenario_of(MOVE + BACK + '[[flow]]\nname = "g"\npath = ["far", "lan"]\n')
    rows = [
        (entry["from_s"], [(flow["rate_bps"], flow["bottleneck"]) for flow in entry["flows"]])
        for entry in shares.document(scenario, PROTOCOLS, TARGETS)["intervals"]
    ]
    aim = TARGETS["maxnet"]
    alone, half = (pytest.approx(aim * 10e6), "far"), (pytest.approx(aim * 5e6), "far")
    near = (pytest.approx(aim * 20e6), "near")
    assert rows == [(0.0, [near, alone]), (15.0, [half, half]), (30.0, [near, alone])]


def of_run(*changes):
    """Return the result of a run that moves to an RTT that is 30 ms longer at the same rate, and
    the run's warnings.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = waterfill.run(scenario_of(MOVE, SAME_RATE, *changes))
    return result, [str(one.message) for one in caught]


def rate_between(result, from_s, to_s):
    rows = result.flows.to_pylist()
    rates = [row["rate_bps"] for row in rows if from_s < row["time_s"] <= to_s]
    return sum(rates) / len(rates)


def test_maxnet_keeps_its_share_after_a_handover_once_it_forgets_the_old_rtt():
    share_bps = TARGETS["maxnet"] * 20e6
    result, said = of_run()
    assert rate_between(result, 10, 15) == pytest.approx(share_bps, rel=0.01)
    # Rate × 40 ms per 70 ms, at MaxNet's largest rate on this link.
    assert rate_between(result, 17, 22) == pytest.approx(20e6 * 40 / 70, rel=0.03)
    assert rate_between(result, 35, 40) == pytest.approx(share_bps, rel=0.01)
    assert result.summary["flows"][0]["max_min_bps"] == pytest.approx(share_bps)
    assert said == []

    kept = ('protocol = "maxnet"', 'protocol = "maxnet"\nbase_rtt_window = "unlimited"')
    result, said = of_run(kept)
    assert rate_between(result, 35, 40) == pytest.approx(20e6 * 40 / 70, rel=0.03)
    assert len(said) == 1
    assert "its hosts use an RTT of 40 ms and the path has 70 ms" in said[0]


REFUSED = {
    '[[flow.route]]\nat = "15 s"\n': "flow.f.route[0].path: missing; write a list",
    MOVE + MOVE: "flow.f.route[1].at: changes must be in order of time, got 15 s after 15 s",
    MOVE.replace("15 s", "40 s"): (
        "flow.f.route[0].at: must be before the end of the run at 40 s, got 40 s"
    ),
    MOVE.replace("15 s", "0 s"): 'flow.f.route[0].at: must be above zero, got "0 s"',
    MOVE.replace('"far"', '"fra"'): 'flow.f.route[0].path: unknown link "fra", did you mean "far"?',
    MOVE.replace('"far", "lan"', '"far"'): (
        'flow.f.route[0].path: leads from "user" to "core", must lead from "user" to "server"'
    ),
    MOVE + 'retrun_path = ["far"]\n': (
        'flow.f.route[0].retrun_path: unknown key, did you mean "return_path"?'
    ),
}


@pytest.mark.parametrize("keys", REFUSED)
def test_wrong_routes_are_refused_in_one_sentence(keys):
    with pytest.raises(InputError) as refused:
        network_of(keys)
    assert str(refused.value) == f"S.toml: {REFUSED[keys]}"


@pytest.mark.parametrize("on", ["fluid", "linux"])
def test_other_backends_refuse_routes(on):
    with pytest.raises(InputError) as refused:
        resolve.to_core(scenario_of(MOVE), PROTOCOLS, on)
    assert str(refused.value) == f"S.toml: flow.f.route: not supported by the {on} backend, got 1"
