"""Networks by rule and the traffic on them: sizes, routes, and a scenario that loads."""

from __future__ import annotations

import random
from collections import Counter

import networkx as nx
import pytest
from typer.testing import CliRunner

from waterfill.cli.commands import app
from waterfill.errors import InputError
from waterfill.formats import rules, traffic
from waterfill.formats.build import RULES, Options, generated
from waterfill.formats.layout import Layout, Routes
from waterfill.formats.writing import text
from waterfill.network import protocols, resolve
from waterfill.scenario.loading import from_toml

SIZES = {"fat-tree": [4], "leaf-spine": [3, 2, 4], "rail-optimized": [3, 4, 2],
         "torus": [3, 4], "dumbbell": [3],
         "parking-lot": [3], "wan": [12]}  # fmt: skip


def walk(layout: Layout, start: str, path: tuple[str, ...]) -> str:
    """Return the node where a path ends; fails where its links do not join."""
    ends = {link.name: {link.start, link.end} for link in layout.links}
    for name in path:
        assert start in ends[name]
        (start,) = ends[name] - {start}
    return start


def test_every_rule_has_a_size_here():
    assert sorted(SIZES) == sorted(RULES)


@pytest.mark.parametrize("name", SIZES)
def test_a_rules_scenario_resolves_and_its_paths_join(name: str):
    layout = generated(name, SIZES[name], Options())
    assert layout.flows
    for flow in layout.flows:
        assert walk(layout, flow.start, flow.path) == flow.end
    written = text(layout, "maxnet", 1)
    found = resolve.to_core(from_toml(written), protocols.load())
    assert len(found.links) == 2 * len(layout.links)
    assert text(generated(name, SIZES[name], Options()), "maxnet", 1) == written


def test_a_fat_tree_has_its_numbers_and_shortest_routes():
    layout = rules.fat_tree(6, 1e9, 1e-6)
    nodes = {node for link in layout.links for node in (link.start, link.end)}
    assert len(layout.hosts) == 6**3 / 4
    assert len(nodes) - len(layout.hosts) == 5 * 6**2 / 4
    assert len(layout.links) == 3 * 6**3 / 4
    degrees = Counter(node for link in layout.links for node in (link.start, link.end))
    assert {degrees[node] for node in nodes if not node.startswith("h")} == {6}
    searched, chance = Routes(layout.links), random.Random(1)
    for end in ("h1", "h4", "h20"):
        path = layout.route("h0", end, chance)
        assert path is not None
        assert len(path) == len(searched.between("h0", end, chance) or ())
        assert walk(layout, "h0", path) == end


def test_ecmp_uses_every_core_switch():
    layout = rules.fat_tree(4, 1e9, 1e-6)
    used = set()
    for seed in range(40):
        path = layout.route("h0", "h15", random.Random(seed))
        assert path is not None
        used |= {name.split("-")[1] for name in path if name.startswith("a")}
    assert used == {"c0", "c1", "c2", "c3"}


def test_a_leaf_has_as_much_up_as_down():
    layout = rules.leaf_spine(2, 4, 8, 10e9, 1e-6)
    up = [link.rate_bps for link in layout.links if link.start == "l0"]
    assert sum(up) == 8 * 10e9


def test_a_wan_is_connected_and_depends_on_its_seed():
    layout = rules.wan(40, 1e9, 3)
    graph = nx.Graph([(link.start, link.end) for link in layout.links])
    assert nx.is_connected(graph)
    assert nx.check_planarity(graph)[0]
    assert rules.wan(40, 1e9, 4).links != layout.links


def test_a_permutation_sends_and_receives_once():
    hosts = [f"h{n}" for n in range(50)]
    pairs = traffic.permutation(hosts, 7)
    assert [a for a, _ in pairs] == hosts
    assert sorted(b for _, b in pairs) == sorted(hosts)
    assert all(a != b for a, b in pairs)


def test_gravity_draws_by_the_product_of_weights():
    weights = {"a": 9.0, "b": 9.0, "c": 1.0, "d": 1.0}
    pairs = traffic.all_to_all("abcd")
    chosen = (traffic.gravity(weights, pairs, 1, seed) for seed in range(400))
    drawn = Counter(pair for found in chosen for pair, _ in found)
    # a and b: 81 each way of 236 in all.
    assert drawn["a", "b"] + drawn["b", "a"] == pytest.approx(400 * 162 / 236, rel=0.1)
    assert len(traffic.gravity(weights, pairs, None, 1)) == 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fat-tree", [5]), "k must be an even number from 2 to 64, got 5"),
        (("fat-tree", []), "needs one number, K; got none; type waterfill generate fat-tree K"),
        (("wan", [1]), "must be 2 to 2000 nodes, got 1"),
        (("fat_tree", [4]), 'unknown rule, did you mean "fat-tree"?'),
    ],
)
def test_wrong_sizes_get_one_sentence(arguments, message: str):
    with pytest.raises(InputError) as error:
        generated(*arguments, Options())
    assert message in str(error.value)


def test_the_command_writes_a_file_once(tmp_path):
    target = tmp_path / "S.toml"
    arguments = ["generate", "torus", "3", "3", "-o", str(target), "--traffic", "incast"]
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 0, first.output
    assert target.read_text(encoding="utf-8").startswith("# torus 3 x 3: 18 duplex links, 8 flows.")
    again = CliRunner().invoke(app, arguments)
    assert isinstance(again.exception, InputError)
    listed = CliRunner().invoke(app, ["generate"])
    assert "leaf-spine LEAVES SPINES HOSTS" in listed.output


@pytest.mark.parametrize("name", RULES)
def test_flows_that_arrive_at_random_are_one_source_between_all_hosts(name: str):
    layout = generated(name, SIZES[name], Options(sizes="web-search", load=0.6, pattern="incast"))
    scenario = from_toml(text(layout, "maxnet", 1))
    assert not scenario.flow
    (source,) = resolve.to_core(scenario, protocols.load()).traffic
    assert source.flows is not None
    assert len(source.flows.routes) == len(layout.hosts)
    assert source.flows.fan_in == len(layout.hosts) - 1
    assert scenario.traffic[0].load == pytest.approx(0.6)
    assert scenario.traffic[0].sizes.name == "web-search"


def test_more_pairs_than_a_run_can_draw_are_refused():
    why = "more than 4000000 pairs for all-to-all, got 67100672 of 8192 hosts"
    with pytest.raises(InputError, match=why):
        generated("fat-tree", [32], Options(sizes="rpc"))
    generated("fat-tree", [32], Options(sizes="rpc", pattern="permutation"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(sizes="websearch"), "--sizes: must be a volume"),
        (
            Options(sizes="rpc", pattern="gravity"),
            "--traffic: must be one of all-to-all, permutation,",
        ),
        (Options(sizes="rpc", count=2), "--count: no effect with --sizes and --traffic"),
        (Options(sizes="rpc", size_bytes=9), "--size: no effect with --sizes and --traffic"),
        (
            Options(sizes="rpc", pattern="incast", pairs=16),
            "--pairs: must be 1 to 15 senders, got 16",
        ),
    ],
)
def test_wrong_options_of_arriving_flows_get_one_sentence(options: Options, message: str):
    with pytest.raises(InputError, match=message):
        generated("fat-tree", [4], options)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("torus 3000 3000", "more than 2000 nodes, got 9000000"),
        ("dumbbell 10000000", "must be 1 to 1000 pairs, got 10000000"),
        ("parking-lot 10000000", "must be 1 to 200 links, got 10000000"),
        ("leaf-spine 1 1 99999999", "more than 200000 links, got 100000000"),
        ("fat-tree 16 --traffic all-to-all", "more than 200000 pairs for all-to-all,"),
        ("fat-tree 4 --load 1e300", "--load: must be a number above 0, up to 1000000"),
        ("fat-tree 4 --protocol zz", "--protocol: unknown protocol zz"),
        ("fat-tree 4 --count 99999999999", "--count: flow."),
        ("fat-tree 4 --size 0B", '--size: must be above zero, got "0B"'),
        ("fat-tree 4 --size 1.5B", '--size: must be a whole number of B, got "1.5B"'),
        ("fat-tree 4 --duration 0s", '--duration: must be above zero, got "0 s"'),
    ],
)
def test_what_a_run_would_refuse_is_not_written(waterfill, tmp_path, words, said):
    ran = waterfill("generate", *words.split(), "-o", "new.toml")
    assert ran.code == 2
    assert said in ran.err
    assert not (tmp_path / "new.toml").exists()


def test_a_negative_seed_names_its_option(waterfill):
    assert waterfill("generate", "fat-tree", "4", "--seed", "-1").err.startswith(
        "--seed: must be from 0 to "
    )


@pytest.mark.parametrize(
    ("options", "rto_min_s"),
    [
        (Options(delay_s=1e-6), 1e-3),
        (Options(delay_s=50e-6), 6e-3),
        (Options(delay_s=1e-6, sizes="rpc"), 1e-3),
        (Options(delay_s=1e-6, pattern="none"), 1e-3),
        (Options(), None),
    ],
)
def test_a_fabric_has_a_timeout_that_fits_its_rtt(options: Options, rto_min_s: float | None):
    layout = generated("fat-tree", [4], options)
    assert layout.rto_min_s == rto_min_s
    notes = [note for note in layout.notes if note.startswith("rto_min: ")]
    assert len(notes) == (rto_min_s is not None)
    if options.pattern != "none":
        scenario = from_toml(text(layout, "reno", 1))
        assert scenario.rto_min == (rto_min_s or 1.0)
