import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from known import PROTOCOLS, TARGETS
from waterfill.errors import InputError
from waterfill.network import maxmin, resolve, shares
from waterfill.network.maxmin import FlowClass, Share, solve
from waterfill.scenario.loading import from_dict

NO_DEMAND = math.inf


def rates(capacity, classes, counts=None):
    shares = solve(capacity, classes, counts or [1] * len(classes))
    return [None if share is None else share.rate_bps for share in shares]


def test_one_link_is_shared_by_weight():
    classes = [FlowClass((0,), 1.0, NO_DEMAND), FlowClass((0,), 3.0, NO_DEMAND)]
    assert rates([80.0], classes) == [20.0, 60.0]
    assert rates([80.0], classes, [5, 1]) == [10.0, 30.0]
    assert rates([80.0], classes, [0, 2]) == [None, 40.0]


def test_what_a_small_demand_leaves_goes_to_the_others():
    classes = [FlowClass((0,), 1.0, 10.0), FlowClass((0,), 1.0, NO_DEMAND)]
    assert solve([100.0], classes, [1, 1]) == [Share(10.0, None), Share(90.0, 0)]


def test_parking_lot():
    # Link 1 is the narrowest: it gives the long flow and its own 50 each; the rest fill up.
    classes = [FlowClass(path, 1.0, NO_DEMAND) for path in ((0, 1, 2), (0,), (1,), (2,))]
    assert solve([150.0, 100.0, 120.0], classes, [1, 1, 1, 1]) == [
        Share(50.0, 1),
        Share(100.0, 0),
        Share(50.0, 1),
        Share(70.0, 2),
    ]


def test_two_hops_of_the_maxnet_experiment():
    # 90 % of 622 and 400 Mbit/s; long on both, and two flows on link 2.
    capacity = [559.8, 360.0]
    one, both, two = ((0,), 1.0, NO_DEMAND), ((0, 1), 1.0, NO_DEMAND), ((1,), 1.0, NO_DEMAND)
    classes = [FlowClass(*kind) for kind in (one, both, two)]
    assert rates(capacity, classes, [1, 0, 0])[0] == pytest.approx(559.8)
    assert rates(capacity, classes, [1, 1, 0])[:2] == pytest.approx([279.9, 279.9])
    assert rates(capacity, classes, [1, 1, 1]) == pytest.approx([379.8, 180, 180])


def test_nothing_is_left_on_a_full_link():
    classes = [FlowClass((0, 1), 1.0, NO_DEMAND), FlowClass((1,), 1.0, 5.0)]
    assert solve([0.0, 10.0], classes, [1, 1]) == [Share(0.0, 0), Share(5.0, None)]


def test_weights_of_very_different_size():
    classes = [FlowClass((0, 1), 1e-6, NO_DEMAND), FlowClass((0,), 1e6, 3.0)]
    assert rates([10.0, 4.0], classes) == pytest.approx([4.0, 3.0])


def lexicographic(capacity, classes, counts):
    """The oracle: weighted max-min as a sequence of linear programs.

    Each maximises the common rate per weight of the flows that are not settled; then a flow is
    settled if a second program cannot raise it alone above that level.
    """
    flows = [c for c, n in enumerate(counts) for _ in range(n)]
    weight = np.array([classes[c].weight for c in flows])
    bound = [classes[c].demand_bps for c in flows]
    use = np.zeros((len(capacity), len(flows)))
    for f, c in enumerate(flows):
        use[list(classes[c].path), f] = 1.0
    settled: dict[int, float] = {}
    while len(settled) < len(flows):
        # Variables: the rates, then the level t. Unsettled: rate ≥ weight × t.
        rows, right = [np.append(row, 0.0) for row in use], list(capacity)
        limits = [
            (settled[f], settled[f]) if f in settled else (0, None if b == math.inf else b)
            for f, b in enumerate(bound)
        ]
        for f in range(len(flows)):
            if f not in settled:
                row = np.zeros(len(flows) + 1)
                row[f], row[-1] = -1.0, weight[f]
                rows.append(row)
                right.append(0.0)
        cost = np.zeros(len(flows) + 1)
        cost[-1] = -1.0
        found = linprog(cost, np.array(rows), right, bounds=[*limits, (0, None)])
        assert found.status == 0, found.message
        level = found.x[-1]
        before = len(settled)
        floor = [
            (settled[f], settled[f]) if f in settled else (weight[f] * level * (1 - 1e-9), high)
            for f, (_, high) in enumerate(limits)
        ]
        for f in [f for f in range(len(flows)) if f not in settled]:
            cost = np.zeros(len(flows))
            cost[f] = -1.0
            best = linprog(cost, use, capacity, bounds=floor)
            assert best.status == 0, best.message
            if best.x[f] <= weight[f] * level * (1 + 1e-6) + 1e-9:
                settled[f] = weight[f] * level
        assert len(settled) > before
    answer = {c: settled[f] for f, c in enumerate(flows)}
    return [answer.get(c) for c in range(len(classes))]


@st.composite
def problems(draw):
    links = draw(st.integers(1, 5))
    capacity = draw(st.lists(st.integers(0, 100).map(float), min_size=links, max_size=links))
    paths = st.lists(st.integers(0, links - 1), min_size=1, max_size=links, unique=True)
    weights = st.sampled_from([1.0, 1.0, 2.0, 0.5, 3.7])
    demands = st.one_of(st.just(NO_DEMAND), st.integers(1, 60).map(float))
    kind = st.builds(FlowClass, paths.map(tuple), weights, demands)
    classes = draw(st.lists(kind, min_size=1, max_size=6, unique=True))
    counts = draw(st.lists(st.integers(0, 3), min_size=len(classes), max_size=len(classes)))
    return capacity, classes, counts


@given(problems())
@settings(max_examples=60, deadline=None)
def test_against_linear_programs(problem):
    expected = lexicographic(*problem)
    for found, oracle in zip(rates(*problem), expected, strict=True):
        assert (found is None) == (oracle is None)
        if found is not None:
            assert found == pytest.approx(oracle, rel=1e-5, abs=1e-5)


@given(problems())
@settings(deadline=None)
def test_every_flow_has_a_bottleneck(problem):
    """Bertsekas and Gallager: on some full link of its path no flow has more per weight."""
    capacity, classes, counts = problem
    shares = solve(capacity, classes, counts)
    load = [
        math.fsum(
            share.rate_bps * n
            for share, kind, n in zip(shares, classes, counts, strict=True)
            if share is not None and link in kind.path
        )
        for link in range(len(capacity))
    ]
    for link, limit in enumerate(capacity):
        assert load[link] <= limit * (1 + 1e-12) + 1e-9
    for share, kind in zip(shares, classes, strict=True):
        if share is None:
            continue
        if share.bottleneck is None:
            assert share.rate_bps == kind.demand_bps
            continue
        assert share.bottleneck in kind.path
        assert load[share.bottleneck] == pytest.approx(capacity[share.bottleneck], abs=1e-9)
        for other, other_kind in zip(shares, classes, strict=True):
            if other is not None and share.bottleneck in other_kind.path:
                most = share.rate_bps / kind.weight
                assert other.rate_bps / other_kind.weight <= most * (1 + 1e-9)


def test_a_hundred_thousand_flows_on_ten_thousand_links_take_seconds():
    random = np.random.default_rng(1)
    capacity = list(random.uniform(1e8, 1e10, 10_000))
    paths = random.integers(0, 10_000, (100_000, 5))
    classes = [
        FlowClass(
            tuple(set(path.tolist())), 1.0 + i % 3, NO_DEMAND if i % 2 else 1e6 * (i % 997 + 1)
        )
        for i, path in enumerate(paths)
    ]
    began = time.perf_counter()
    assert None not in solve(capacity, classes, [1] * len(classes))
    assert time.perf_counter() - began < 30


LINKS = [
    {"name": "l1", "from": "r1", "to": "r2", "rate": "100 Mbit/s", "delay": "10 ms"},
    {"name": "l2", "from": "r2", "to": "r3", "rate": "50 Mbit/s", "delay": "10 ms"},
]


def build(*flows, **more):
    flows = [{"name": f"f{i}", "path": ["l1"], **flow} for i, flow in enumerate(flows)]
    return from_dict(
        {"duration": "10 s", "protocol": "maxnet", "link": LINKS, "flow": flows, **more}, "S.toml"
    )


def document(*flows, **more):
    found = shares.document(build(*flows, **more), PROTOCOLS, TARGETS)
    return [
        (
            entry["from_s"],
            entry["to_s"],
            {
                flow["name"]: (pytest.approx(flow["rate_bps"]), flow["bottleneck"])
                for flow in entry["flows"]
            },
        )
        for entry in found["intervals"]
    ]


def test_intervals_split_at_every_start_stop_stagger_and_cbr_change():
    found = document(
        {"count": 2, "stagger": "1 s", "start": "1 s", "stop": "8 s"},
        {"path": ["l1", "l2"], "start": "2 s", "demand": "20 Mbit/s"},
        traffic=[
            {
                "kind": "cbr",
                "path": ["l2"],
                "rate": "40 Mbit/s",
                "start": "4 s",
                "stop": "6 s",
            }
        ],
    )
    assert found == [
        (0, 1, {}),
        (1, 2, {"f0[0]": (90e6, "l1")}),
        (2, 4, {"f0[0]": (35e6, "l1"), "f0[1]": (35e6, "l1"), "f1": (20e6, "demand")}),
        (4, 6, {"f0[0]": (42.5e6, "l1"), "f0[1]": (42.5e6, "l1"), "f1": (5e6, "l2")}),
        (6, 8, {"f0[0]": (35e6, "l1"), "f0[1]": (35e6, "l1"), "f1": (20e6, "demand")}),
        (8, 10, {"f1": (20e6, "demand")}),
    ]


def test_cbr_beyond_the_target_leaves_nothing():
    traffic = [{"kind": "cbr", "path": ["l1"], "rate": "95 Mbit/s"}]
    assert document({}, traffic=traffic) == [(0, 10, {"f0": (0.0, "l1")})]


def targets_of(links, *flows):
    entry = {"duration": "10 s", "protocol": "maxnet", "link": links, "flow": list(flows)}
    found = resolve.to_core(from_dict(entry), PROTOCOLS)
    return maxmin.link_targets(found, TARGETS)


def test_the_target_is_the_link_s_else_the_smallest_of_the_protocols_on_it():
    aecp = {"name": "a", "path": ["l1"], "protocol": "aecp"}
    maxnet = {"name": "m", "path": ["l1", "l2"]}
    assert targets_of(LINKS, aecp) == [0.95, 1.0, 1.0, 1.0]
    assert targets_of(LINKS, aecp, maxnet) == [0.9, 1.0, 0.9, 1.0]
    own = [{**LINKS[0], "target": 0.97}, LINKS[1]]
    assert targets_of(own, aecp, maxnet) == [0.97, 0.97, 0.9, 1.0]


def test_a_protocol_without_a_target_aims_at_all():
    found = shares.document(build({}), PROTOCOLS, {})
    assert found["intervals"][0]["flows"][0]["rate_bps"] == 100e6


def means(found, active=None, lives=None):
    core = resolve.to_core(found, PROTOCOLS)
    lives = lives or maxmin.lives_of(core)
    return maxmin.mean_rates(core, TARGETS, active or lives, lives)


def test_mean_over_each_flow_s_own_window():
    found = build({"stop": "5 s"}, {"start": "4 s"})
    # f0 alone 4 s at 90, shared 1 s at 45; f1 shared 1 s, alone 5 s.
    assert means(found) == pytest.approx([(4 * 90e6 + 45e6) / 5, (45e6 + 5 * 90e6) / 6])
    windows = [(4.5, 5.0), (4.5, 5.5)]
    assert means(found, windows) == pytest.approx([45e6, 67.5e6])


def test_mean_is_none_without_a_window():
    found = build({}, {})
    assert means(found, [None, (3.0, 3.0)]) == [None, None]
    assert means(found, [None, (3.0, 4.0)]) == [None, pytest.approx(45e6)]


def test_lives_that_ended_early_free_their_share():
    # f0 had all its bytes after 2 s: from then on f1 has the link alone.
    found = build({"size": "1 MB"}, {})
    assert means(found, [(0, 2), (0, 10)], [(0, 2), (0, 10)]) == pytest.approx(
        [45e6, (2 * 45e6 + 8 * 90e6) / 10]
    )


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(1, 10), st.sampled_from([["l1"], ["l1", "l2"]])),
        min_size=1,
        max_size=6,
    ),
    st.tuples(st.integers(0, 9), st.integers(1, 10)).filter(lambda w: w[0] < w[1]),
)
@settings(deadline=None)
def test_means_agree_with_the_document(lives, window):
    flows = [
        {"path": path, "start": f"{start} s", "stop": f"{max(stop, start + 1)} s"}
        for start, stop, path in lives
    ]
    found = build(*flows)
    spans = maxmin.lives_of(resolve.to_core(found, PROTOCOLS))
    active = [(max(a, window[0]), min(b, window[1])) for a, b in spans]
    expected = [0.0] * len(flows)
    for entry in shares.document(found, PROTOCOLS, TARGETS)["intervals"]:
        for flow in entry["flows"]:
            f = int(flow["name"][1:])
            inside = min(entry["to_s"], active[f][1]) - max(entry["from_s"], active[f][0])
            if active[f][0] < active[f][1]:
                expected[f] += max(0.0, inside) * flow["rate_bps"]
    for mean, (a, b), volume in zip(means(found, active), active, expected, strict=True):
        assert mean == (None if a >= b else pytest.approx(volume / (b - a)))


def test_ten_thousand_staggered_flows_take_seconds():
    found = build({"count": 10_000, "stagger": "0.5 ms"})
    began = time.perf_counter()
    mean = means(found)
    assert time.perf_counter() - began < 20
    assert mean[0] > mean[-1] > 90e6 / 10_000 * 0.999


def test_a_document_beyond_use_is_refused():
    with pytest.raises(
        InputError,
        match=(
            r"S.toml: flow: more than 10000000 rates to list, one "
            r"per"
        ),
    ):
        document({"count": 10_000, "stagger": "0.5 ms"})


def test_knowledge_of_the_protocols_defaults_to_the_core_s():
    entry = shares.document(build({}))["intervals"][0]["flows"][0]
    assert entry == {"name": "f0", "rate_bps": 90e6, "bottleneck": "l1"}
    lower = build({}, params={"maxnet": {"mu": 0.5}})
    assert shares.document(lower)["intervals"][0]["flows"][0]["rate_bps"] == 50e6


def test_a_parameter_out_of_its_range_names_its_key():
    with pytest.raises(InputError, match=r"^S\.toml: params\.maxnet\.mu: must be "):
        shares.document(build({}, params={"maxnet": {"mu": 2}}))


def test_values_that_the_shares_do_not_use_are_named():
    assert shares.document(build({}))["notes"] == []
    assert shares.document(build({"size": "1 kB"}))["notes"] == [
        "Flows have data up to their stop; not used: flow.f0.size."
    ]
