"""The linear verdict and the fluid run are independent, and agree."""

from __future__ import annotations

import math

import numpy as np
import pytest

from validation import stability_vs_fluid
from validation.stability_vs_fluid import Link, Local
from waterfill.network import protocols
from waterfill.theory import aecp, maxnet, xcp

OMEGA = np.geomspace(0.01, 100.0, 50)
TAU_S = 0.08
# Two seeds per law and verdict, where the law has both, whose verdict is not thin.
SEEDS = [
    (19, "stable"), (45, "stable"), (230, "unstable"), (239, "unstable"),  # maxnet
    (18, "stable"), (47, "stable"), (21, "unstable"), (62, "unstable"),  # rcp
    (31, "stable"), (304, "stable"), (41, "unstable"), (142, "unstable"),  # xcp
    (50, "unstable"), (209, "unstable"),  # xcp, on a link that is partly idle
    (12, "stable"), (35, "stable"), (318, "unstable"), (289, "unstable"),  # aecp
]  # fmt: skip


def params(protocol, **values):
    return {**protocols.with_defaults([protocol], {}, protocols.load())[protocol], **values}


def one(full=True, tau_s=TAU_S):
    return Link("l", (Local(1.0, tau_s),), tau_s, full)


def loop(protocol, found, *, paper=True, full=True):
    return stability_vs_fluid.loops_of(protocol, found, one(full), paper=paper)[-1]


def test_loops_on_the_imaginary_axis_are_those_of_the_theory():
    s = 1j * OMEGA
    mine = params("maxnet", alpha=0.5)
    p = maxnet.Params.of(mine)
    for paper, gains in ((True, maxnet.eq13(p)), (False, maxnet.implemented(p))):
        want = 0.5 * maxnet.response(gains, OMEGA, TAU_S)
        assert loop("maxnet", mine, paper=paper)(s, 1.0) == pytest.approx(want, rel=1e-9)
    katabi = xcp.response(0.4, 0.226, TAU_S, OMEGA)
    mine = params("xcp", alpha=0.4, beta=0.226)
    assert loop("xcp", mine)(s, 1.0) == pytest.approx(katabi, rel=1e-9)
    mine = params("aecp")
    want = aecp.open_loop(aecp.Params.of(mine).gains, OMEGA, TAU_S)
    assert loop("aecp", mine)(s, 1.0) == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize(("alpha", "grows"), [(1.5, False), (1.65, True)])
def test_an_integrator_with_a_delay_is_stable_below_half_pi(alpha, grows):
    found = params("rcp", alpha=alpha)
    pace = stability_vs_fluid.pace("rcp", found, one(False))
    assert stability_vs_fluid.grows(loop("rcp", found, full=False), pace, 1.0, 1.0) == grows
    # Gain and delay have the same effect: α·late < π/2.
    assert stability_vs_fluid.grows(loop("rcp", found, full=False), pace, 1.6 / alpha, 1.0)
    assert not stability_vs_fluid.grows(loop("rcp", found, full=False), pace, 1.0, 1.5 / alpha)


def test_xcp_is_stable_within_katabis_region():
    low, high = xcp.alpha_range(0.226)
    for alpha, grows in ((0.9 * low, True), (1.1 * low, False), (0.95 * high, False)):
        found = params("xcp", alpha=alpha, beta=0.226)
        pace = stability_vs_fluid.pace("xcp", found, one())
        assert stability_vs_fluid.grows(loop("xcp", found), pace, 1.0, 1.0) == grows, alpha


def test_aecps_delay_margin_is_eq_38s():
    found = params("aecp")
    margin_s = aecp.loop_margins(aecp.Params.of(found).gains).delay_margin_s
    for tau_s, verdict in (
        (0.95 * margin_s, stability_vs_fluid.STABLE),
        (1.05 * margin_s, stability_vs_fluid.SPLIT),
    ):
        # With an empty queue it is still stable.
        got = stability_vs_fluid.link_verdict("aecp", found, one(tau_s=tau_s), 1.0, 1.0, paper=True)
        assert got == verdict


def test_a_link_below_its_capacity_has_one_loop():
    found = params("rcp")
    assert len(stability_vs_fluid.loops_of("rcp", found, one(False), paper=False)) == 1
    assert len(stability_vs_fluid.loops_of("rcp", found, one(True), paper=False)) == 2


def test_one_unstable_link_is_enough():
    assert stability_vs_fluid.of_links(["stable", "split", "unstable"]) == "unstable"
    assert stability_vs_fluid.of_links(["stable", "split"]) == "split"
    assert stability_vs_fluid.of_links(["stable", "stable"]) == "stable"


def test_a_verdict_near_the_boundary_is_thin(monkeypatch):
    scenario = stability_vs_fluid.draw(1)
    boundary = 1.3

    def verdict(*args, paper):
        return (
            stability_vs_fluid.UNSTABLE
            if args[3] * args[4] >= boundary
            else stability_vs_fluid.STABLE
        )

    monkeypatch.setattr(stability_vs_fluid, "link_verdict", verdict)
    assert not stability_vs_fluid.linear(scenario).thin
    boundary = 1.2
    assert stability_vs_fluid.linear(scenario).thin


def test_an_rtt_of_aecp_includes_its_target_queue():
    scenario = next(
        drawn
        for drawn in (stability_vs_fluid.draw(seed, ["aecp"]) for seed in range(99))
        if len(drawn.link) == 1 and drawn.link[0].target is None
    )
    _, (link,) = stability_vs_fluid.bottlenecks(scenario)
    queue_s = 100 * 1500 * 8 / scenario.link[0].rate
    base_s = [flow.rtt for flow in scenario.flow]
    assert sorted(flow.tau_s - queue_s for flow in link.flows) == pytest.approx(sorted(base_s))
    assert math.isclose(sum(flow.weight for flow in link.flows), 1.0)


def test_a_draw_depends_on_its_seed_alone():
    assert stability_vs_fluid.draw(7).to_toml() == stability_vs_fluid.draw(7).to_toml()
    assert stability_vs_fluid.draw(7).to_toml() != stability_vs_fluid.draw(8).to_toml()


@pytest.mark.parametrize(("seed", "verdict"), SEEDS)
def test_the_fluid_does_what_the_linear_loop_says(seed, verdict):
    result = stability_vs_fluid.compare(stability_vs_fluid.draw(seed))
    assert result.linear.verdict == verdict
    assert result.clear
    assert result.fluid.verdict == verdict, result


def comparison(protocol, linear, fluid, *, thin=False, paper=None):
    verdict = stability_vs_fluid.LinearVerdict(linear, thin, {})
    other = stability_vs_fluid.LinearVerdict(paper or linear, False, {})
    run = stability_vs_fluid.FluidVerdict(fluid, 0.0, 0.0, {})
    return stability_vs_fluid.Comparison("draw", protocol, 1, verdict, other, run)


def test_the_table_counts_clear_verdicts_and_agreements():
    found = [
        comparison("rcp", "stable", "stable"),
        comparison("rcp", "stable", "unstable"),
        comparison("rcp", "unstable", "unstable", paper="stable"),
        comparison("rcp", "stable", "unstable", thin=True),
        comparison("rcp", "split", "stable"),
        comparison("xcp", "unstable", "unstable"),
    ]
    rcp, xcp = stability_vs_fluid.table(found)
    assert (rcp["protocol"], rcp["draws"]) == ("rcp", 5)
    assert (rcp["linear_stable"], rcp["linear_unstable"], rcp["linear_split"]) == (
        [1, 2],
        [1, 1],
        1,
    )
    # The paper's verdict is never thin here, and stable in four of the five.
    assert (rcp["paper_stable"], rcp["paper_unstable"], rcp["paper_split"]) == ([1, 4], [0, 0], 1)
    assert (xcp["linear_stable"], xcp["linear_unstable"]) == ([0, 0], [1, 1])


def test_a_clear_draw_that_the_fluid_contradicts_fails():
    right, wrong = comparison("rcp", "stable", "stable"), comparison("rcp", "stable", "unstable")
    thin = comparison("rcp", "stable", "unstable", thin=True)
    found = dict(zip(map(stability_vs_fluid.Draw, range(3)), (right, wrong, thin), strict=True))
    (line,) = stability_vs_fluid.failed(found)
    assert line.endswith("differs")
    assert "2 of 3 draws have a clear verdict; the fluid agrees with 1" in (
        stability_vs_fluid.text(found)
    )
