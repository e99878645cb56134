"""The equilibrium of XCP and its descendants: by hand and by formula."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waterfill.network import maxmin, protocols, resolve
from waterfill.scenario.loading import from_dict
from waterfill.theory import equilibrium
from waterfill.theory.equilibrium import FlowClass, Gains, solve

XCP = Gains(alpha=0.4, gamma=0.1)
MBPS = 1e6


def flows(path, number=1, weight=1.0, demand=math.inf):
    return FlowClass(path, weight, demand, number)


def test_one_link_is_full_and_shared_by_weight():
    point = solve([100.0], [flows((0,), 3), flows((0,), 1, weight=2.0)], XCP)
    assert point.rates_bps == pytest.approx([20.0, 40.0])
    assert point.bottleneck == [0, 0]


def fig_1(number, order=(0, 1), protocol="xcp", **options):
    """ixcp-2007 Fig. 1: 155 Mbit/s with the short flow, 100 Mbit/s behind it for the long ones."""
    classes = [flows((0,)), flows(order, number)]
    return solve([155 * MBPS, 100 * MBPS], classes, XCP, protocol, **options)


def downstream_only(c: float, y: float, flows: float, alpha: float, gamma: float) -> float:
    """Return x = (y/N)·γy/(γy − α(c − y)): one flow is bottlenecked here, the others downstream."""
    return y / flows * gamma * y / (gamma * y - alpha * (c - y))


@pytest.mark.parametrize("number", [2, 4, 16, 256, 10**6])
def test_fig_2_of_ixcp(number):
    point = fig_1(number)
    y = point.inputs_bps[0]
    formula = downstream_only(155 * MBPS, y, number + 1, 0.4, 0.1)
    assert point.rates_bps[0] == pytest.approx(formula)
    assert point.inputs_bps[1] == pytest.approx(100 * MBPS)
    assert point.bottleneck == [0, 1]


def test_fig_2s_limit_is_eighty_per_cent():
    # α(c − y) = γy: y = c·α/(α + γ) = 124 Mbit/s.
    assert fig_1(10**7).inputs_bps[0] == pytest.approx(124 * MBPS, rel=1e-4)


def test_a_flow_takes_up_its_part_of_a_change_of_spare_capacity():
    # ixcp-2007 Fig. 1 with three long flows: they are bottlenecked behind the first link.
    scenario = from_dict(
        {
            "name": "fig. 1",
            "duration": "1 s",
            "protocol": "xcp",
            "link": [
                {"name": "l0", "from": "a", "to": "b", "rate": "155 Mbit/s", "delay": "1 ms"},
                {"name": "l1", "from": "b", "to": "c", "rate": "100 Mbit/s", "delay": "1 ms"},
            ],
            "flow": [{"name": "short", "path": ["l0"]},
                     {"name": "long", "path": ["l0", "l1"], "count": 3}],
        },
        source="fig. 1",
    )  # fmt: skip
    core = resolve.to_core(scenario, protocols.load())
    first, second = (
        response for response in equilibrium.responses(core, XCP, "xcp") if response is not None
    )
    point = equilibrium.of_network(core, XCP, "xcp")
    # In φ = α(c − y) > 0 a change is x·φ/y less its losses, (γ − φ/y)·x: not 1/4.
    assert first.idle == pytest.approx(1 - point.inputs_bps[0] / 155e6)
    assert first.idle > 0.03
    assert first.parts == pytest.approx({0: point.rates_bps[0] / point.inputs_bps[0]}, rel=1e-4)
    assert first.parts[0] > 0.3
    assert second.idle == pytest.approx(0, abs=1e-6)
    assert second.parts == pytest.approx({1: 1 / 3}, rel=1e-4)


def test_flows_bottlenecked_upstream_leave_more():
    # aecp-2010 Fig. 10: 338 Mbit/s before the narrow link, 365 behind it.
    classes = [flows((0, 1, 2)), flows((0,)), flows((1,)), flows((2,))]
    capacity = [500 * MBPS, 250 * MBPS, 500 * MBPS]
    point = solve(capacity, classes, XCP)
    assert point.rates_bps[1] == pytest.approx(338.5 * MBPS, rel=1e-3)
    assert point.rates_bps[3] == pytest.approx(365 * MBPS, rel=0.02)
    assert point.losses_kept[0] == 1.0
    assert point.losses_kept[2] < 1.0
    # Without the residue step both sides are alike.
    alike = solve(capacity, classes, XCP, residue=False)
    assert alike.rates_bps[3] == pytest.approx(alike.rates_bps[1])
    assert solve(capacity, classes, XCP._replace(residues=False)) == alike


def test_gains_read_whether_routers_have_residues():
    values = {"alpha": 0.3, "gamma": 0.2, "residues": False}
    assert Gains.of(values) == Gains(0.3, 0.2, residues=False)
    assert Gains.of({**values, "residues": True}).residues


def test_the_residue_step_by_hand():
    # One local flow, one that is held at 100 of 155 upstream: R = 47.959 Mbit/s by bisection of
    # (γy)/2 = s·(γy − α(c − y))·R/y with s = h/(h·R/y + γy/2), by hand to five digits.
    point = solve([155 * MBPS], [flows((0,)), flows((0,), demand=1e12)], XCP)
    assert point.rates_bps == pytest.approx([77.5 * MBPS] * 2)
    point = fig_1(1, order=(1, 0))
    r, y = point.rates_bps[0], point.inputs_bps[0]
    phi = 0.4 * (155 * MBPS - y)
    h = 0.1 * y - phi
    gain = (h + phi) / 2
    kept = h / (h * r / y + gain)
    assert gain == pytest.approx(kept * h * r / y)
    assert point.losses_kept[0] == pytest.approx(kept)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_ixcp_is_max_min_on_fig_1(order):
    assert fig_1(16, order, "ixcp").rates_bps == pytest.approx([55 * MBPS, 6.25 * MBPS], rel=1e-6)


def test_pxcp_helps_only_where_the_others_are_upstream():
    assert fig_1(16, (0, 1), "pxcp").rates_bps[0] == pytest.approx(fig_1(16).rates_bps[0])
    helped = fig_1(16, (1, 0), "pxcp").rates_bps[0]
    assert fig_1(16, (1, 0)).rates_bps[0] < 40 * MBPS < 50 * MBPS < helped < 55 * MBPS


def test_a_demand_acts_like_a_bottleneck_downstream():
    number = 16
    demand = solve(
        [155 * MBPS], [flows((0,)), flows((0,), number, demand=100 * MBPS / number)], XCP
    )
    assert demand.rates_bps[0] == pytest.approx(fig_1(number).rates_bps[0])
    assert demand.bottleneck == [0, None]


def test_a_flow_that_states_twice_its_demand_counts_half():
    classes = [flows((0,)), flows((0,), 16, demand=100 * MBPS / 16)]
    point = solve([155 * MBPS], classes, XCP, stated=[1.0, 2.0])
    formula = downstream_only(155 * MBPS, point.inputs_bps[0], 1 + 16 / 2, 0.4, 0.1)
    assert point.rates_bps[0] == pytest.approx(formula)


@pytest.mark.parametrize("protocol", equilibrium.PROTOCOLS)
def test_a_flow_that_states_the_links_limit_loses_what_it_gains(protocol):
    # 75 Mbit/s are left, less than twice 40: the link is full.
    classes = [flows((0,)), flows((0,), 2, demand=40 * MBPS)]
    point = solve([155 * MBPS], classes, XCP, protocol, stated=[1.0, 2.0])
    assert point.rates_bps[0] == pytest.approx(75 * MBPS)


def test_other_traffic_reduces_the_shared_capacity():
    point = solve([100.0], [flows((0,), 2)], XCP, other_bps=[40.0])
    assert point.rates_bps[0] == pytest.approx(30.0)
    assert point.inputs_bps[0] == pytest.approx(100.0)


@st.composite
def networks(draw):
    capacity = draw(st.lists(st.floats(1.0, 100.0), min_size=1, max_size=5))
    links = range(len(capacity))
    classes = []
    for _ in range(draw(st.integers(1, 6))):
        path = draw(st.lists(st.sampled_from(links), min_size=1, max_size=4, unique=True))
        classes.append(
            flows(tuple(path), draw(st.integers(1, 4)), draw(st.sampled_from([1.0, 2.5])))
        )
    return capacity, classes


@given(networks())
def test_ixcps_equilibrium_is_max_min_on_any_network(case):
    capacity, classes = case
    kinds = [maxmin.FlowClass(c.path, c.weight, c.demand_bps) for c in classes]
    fair = maxmin.solve(capacity, kinds, [c.number for c in classes])
    point = solve(capacity, classes, XCP, "ixcp")
    assert point.rates_bps == pytest.approx([share.rate_bps for share in fair], rel=1e-6)


@given(networks(), st.sampled_from(["xcp", "pxcp"]))
def test_a_fixed_point_fills_bottlenecks_and_overloads_no_link(case, protocol):
    capacity, classes = case
    point = solve(capacity, classes, XCP, protocol)
    for c, y in zip(capacity, point.inputs_bps, strict=True):
        assert y <= c * (1 + 1e-6)
    used = set(itertools.chain.from_iterable(flow.path for flow in classes))
    for link in used:
        if link in point.bottleneck:
            # ixcp-2007's worst case: φ and h in balance, α/(α + γ) of the link.
            assert point.inputs_bps[link] >= 0.8 * capacity[link] * (1 - 1e-6)
    for flow, rate, at in zip(classes, point.rates_bps, point.bottleneck, strict=True):
        assert at in flow.path
        assert rate == pytest.approx(flow.weight * point.limits_bps[at])
