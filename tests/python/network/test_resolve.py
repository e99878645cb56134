import math

import pytest

from known import PROTOCOLS
from waterfill.contract.network import TrafficSpec
from waterfill.errors import InputError
from waterfill.network import graph, protocols, resolve
from waterfill.scenario.loading import from_dict, from_toml


def link(name, start, end, rate="100 Mbit/s", delay="10 ms", **more):
    return {"name": name, "from": start, "to": end, "rate": rate, "delay": delay, **more}


def build(links, flows, **more):
    flows = [{"name": f"f{i}", **flow} for i, flow in enumerate(flows)]
    document = {"duration": "10 s", "protocol": "maxnet", "link": links, "flow": flows, **more}
    return from_dict(document, "S.toml")


def core(links, flows, **more):
    return resolve.to_core(build(links, flows, **more), PROTOCOLS)


def ways(links, *flows):
    """Names of the links, there and back, of the first flow."""
    found = core(links, flows)
    names = [entry.name for entry in found.links]
    first = found.flows[0]
    return tuple(" ".join(names[i] for i in way) for way in (first.forward, first.reverse))


def refusal(links, *flows, **more):
    with pytest.raises(InputError) as refused:
        core(links, flows, **more)
    return str(refused.value)


LINE = [link("l1", "r1", "r2"), link("l2", "r2", "r3")]


def test_directions_keep_the_file_s_order_each_followed_by_its_reverse():
    links = [link("l1", "a", "b"), link("l2", "b", "c", duplex=False), link("l3", "c", "a")]
    found = core(links, [{"from": "a", "to": "b"}])
    assert [entry.name for entry in found.links] == ["l1", "l1:rev", "l2", "l3", "l3:rev"]


@pytest.mark.parametrize(
    ("flow", "there", "back"),
    [
        ({"path": ["l1", "l2"]}, "l1 l2", "l2:rev l1:rev"),
        ({"path": ["l2", "l1"]}, "l2:rev l1:rev", "l1 l2"),  # either way over a link
        ({"path": ["l1"]}, "l1", "l1:rev"),
        ({"path": ["l1:rev"]}, "l1:rev", "l1"),
        ({"path": ["l1"], "from": "r2"}, "l1:rev", "l1"),
        ({"path": ["l1"], "to": "r1"}, "l1:rev", "l1"),
        ({"path": ["l1"], "from": "a", "to": "b"}, "l1", "l1:rev"),  # hosts on ideal accesses
        ({"path": ["l1"], "from": "a", "to": "r1"}, "l1:rev", "l1"),
        ({"from": "r1", "to": "r3"}, "l1 l2", "l2:rev l1:rev"),
        ({"from": "r3", "to": "r2"}, "l2:rev", "l2"),
    ],
)
def test_paths(flow, there, back):
    assert ways(LINE, flow) == (there, back)


def test_the_default_route_has_fewest_hops_then_least_delay():
    direct = link("direct", "r1", "r3", delay="1 s")
    assert ways([*LINE, direct], {"from": "r1", "to": "r3"})[0] == "direct"
    other = [link("l3", "r1", "r4", delay="4 ms"), link("l4", "r4", "r3", delay="15.999999999 ms")]
    assert ways([*LINE, *other], {"from": "r1", "to": "r3"})[0] == "l3 l4"
    slow = link("slow", "r1", "r2", delay="11 ms")
    assert ways([slow, *LINE], {"from": "r1", "to": "r2"})[0] == "l1"


@pytest.mark.parametrize(
    "twins",
    [
        [link("a", "r1", "r2"), link("b", "r1", "r2")],
        [link("a", "r1", "r2"), link("b", "r2", "r1")],
        [
            link("a", "r1", "x", delay="4 ms"),
            link("b", "x", "r2", delay="6 ms"),
            link("c", "r1", "y", delay="3 ms"),
            link("d", "y", "r2", delay="7 ms"),
        ],
    ],
)
def test_a_true_tie_is_an_error(twins):
    assert refusal(twins, {"from": "r1", "to": "r2"}) == (
        'S.toml: flow.f0.path: several shortest routes lead from "r1" to "r2"; list the links of '
        'one, or write ecmp = "pair"'
    )


def test_parallel_links_in_a_path():
    twins = [link("a", "r1", "r2"), link("b", "r1", "r2")]
    assert ways(twins, {"path": ["b"]}) == ("b", "b:rev")
    assert ways(twins, {"path": ["a", "b"]}) == ("a b:rev", "b a:rev")


def test_a_link_of_one_way_goes_one_way():
    links = [link("l1", "r1", "r2", duplex=False), link("back", "r2", "r1", duplex=False)]
    assert ways(links, {"path": ["l1"]}) == ("l1", "back")
    assert ways(links, {"path": ["back"]}) == ("back", "l1")
    assert refusal(links, {"path": ["l1:rev"]}) == (
        'S.toml: flow.f0.path: unknown link "l1:rev"; known: back, l1'
    )


def test_the_way_back_is_the_path_backwards_else_the_shortest():
    up = link("up", "r1", "r2", duplex=False)
    shortcut = [link("s1", "r3", "x", delay="1 ms"), link("s2", "x", "r1", delay="1 ms")]
    assert ways([*LINE, *shortcut], {"path": ["l1", "l2"]})[1] == "l2:rev l1:rev"
    assert ways([up, LINE[1], *shortcut], {"path": ["up", "l2"]})[1] == "s1 s2"


def test_a_way_back_that_is_a_true_tie_can_be_named():
    up = link("up", "r1", "r2", duplex=False)
    backs = [link("b1", "r2", "r1", duplex=False), link("b2", "r2", "r1", duplex=False)]
    assert refusal([up, *backs], {"path": ["up"]}) == (
        'S.toml: flow.f0.return_path: several shortest routes lead from "r2" to "r1"; list the '
        'links of one, or write ecmp = "pair"'
    )
    assert ways([up, *backs], {"path": ["up"], "return_path": ["b2"]}) == ("up", "b2")
    assert refusal([up, *backs], {"path": ["up"], "return_path": ["up"]}) == (
        'S.toml: flow.f0.return_path: leads from "r1" to "r2", must lead from "r2" to "r1"'
    )


@pytest.mark.parametrize(
    ("flow", "line"),
    [
        (
            {"from": "r1", "to": "y"},
            'flow.f0.path: no route from "r1" to "y"; add a link or a `path`',
        ),
        ({"from": "r1", "to": "r1"}, 'flow.f0.to: must differ from `from`, got "r1"'),
        ({"from": "r1"}, "flow.f0.to: missing; write a path, or from and to"),
        ({"to": "r1"}, "flow.f0.from: missing; write a path, or from and to"),
        (
            {"from": "r1", "to": "nobody"},
            'flow.f0.to: no link ends at "nobody"; add a link or a `path`',
        ),
        (
            {"path": ["l1", "island"]},
            'flow.f0.path: "l1" and "island" share no node',
        ),
        (
            {"path": ["l1", "l2"], "to": "r2"},
            'flow.f0.path: leads from "r1" to "r3", must lead to "r2"',
        ),
    ],
)
def test_no_route(flow, line):
    assert refusal([*LINE, link("island", "x", "y")], flow) == f"S.toml: {line}"


def test_no_way_back_on_a_default_route():
    links = [link("l1", "r1", "r2", duplex=False)]
    assert refusal(links, {"from": "r1", "to": "r2"}) == (
        'S.toml: flow.f0.path: no route from "r2" to "r1" for acknowledgements; add a link or a '
        "`return_path`"
    )


def test_traffic_needs_no_way_back():
    traffic = [{"kind": "cbr", "path": ["l2"], "rate": "1 Mbit/s", "start": "1 s"}]
    links = [LINE[0], link("l2", "r2", "r3", duplex=False)]
    assert core(links, [{"path": ["l1"]}], traffic=traffic).traffic == (
        TrafficSpec(
            name="cbr",
            kind="cbr",
            path=(2,),
            rate_bps=1e6,
            access_bps=None,
            start_s=1.0,
            stop_s=10.0,
            packet_bytes=1500,
            periods=None,
            flows=None,
        ),
    )


def test_base_rtt_is_twice_the_propagation_and_rtt_pads_it():
    found = build(LINE, [{"path": ["l1", "l2"]}, {"path": ["l2"], "rtt": "80 ms"}])
    assert graph.base_rtts(found) == {"f0": 0.04, "f1": 0.08}
    pads = [flow.pad_s for flow in resolve.to_core(found, PROTOCOLS).flows]
    assert pads == [0.0, pytest.approx(0.03, abs=1e-15)]


def test_an_access_rate_adds_nothing_to_the_base_rtt_or_to_a_buffer():
    paths = [{"path": ["l1"], "access_rate": "1 Gbit/s"}, {"path": ["l1"]}]
    found = core(LINE, paths)
    assert [flow.access_bps for flow in found.flows] == [1e9, None]
    assert [flow.base_rtt_s for flow in found.flows] == [0.02, 0.02]
    assert [flow.pad_s for flow in found.flows] == [0.0, 0.0]
    assert found.links == core(LINE, [{"path": ["l1"]}]).links


def test_a_way_back_of_another_length_counts():
    links = [link("up", "r1", "r2", duplex=False), link("down", "r2", "r1", delay="250 ms")]
    assert graph.base_rtts(build(links, [{"path": ["up"]}])) == {"f0": 0.26}


def test_an_rtt_that_is_the_path_s_own_pads_nothing():
    links = [link(f"l{i}", f"r{i}", f"r{i + 1}", delay="0.1 ms") for i in range(7)]
    path = [entry["name"] for entry in links]
    found = core(links, [{"path": path, "rtt": "1.4 ms"}])
    assert found.flows[0].pad_s == pytest.approx(0, abs=1e-15)
    assert found.flows[0].pad_s >= 0
    assert refusal(links, {"path": path, "rtt": "1.399 ms"}) == (
        "S.toml: flow.f0.rtt: must be at least the path's RTT of 1.4 ms, got 1.399 ms"
    )


def buffers(links, *flows):
    found = core(links, flows).links
    return {entry.name: (entry.buffer.unit, entry.buffer.size) for entry in found}


def test_a_bdp_is_rate_times_the_largest_base_rtt_that_crosses():
    # 100 Mbit/s is 12.5 kB/ms. f0 has 20 ms, f1 80 ms, and both cross l1.
    found = buffers(
        [*LINE, link("idle", "x", "y"), link("half", "r1", "z", buffer="0.5 bdp")],
        {"path": ["l1"]},
        {"path": ["l1", "l2"], "rtt": "80 ms"},
        {"path": ["half"]},
    )
    assert found["l1"] == found["l1:rev"] == ("bytes", 1_000_000)
    assert found["l2"] == ("bytes", 1_000_000)
    assert found["idle"] == ("bytes", 1_250_000)  # 100 ms where nothing crosses
    assert found["half"] == ("bytes", 125_000)


def test_acknowledgements_cross_a_link_too():
    links = [link("up", "r1", "r2", duplex=False), link("down", "r2", "r1", duplex=False)]
    assert buffers(links, {"path": ["up"], "rtt": "60 ms"})["down"] == ("bytes", 750_000)


def test_buffers_in_packets_and_bytes():
    links = [
        link("l1", "a", "b", buffer="500 packets"),
        link("l2", "b", "c", buffer="2 MB"),
        link("l3", "c", "d", buffer="0 packets"),
        link("l4", "d", "e", delay="1 ns"),
        link("l5", "e", "f", delay="0 s"),
    ]
    found = buffers(links, {"path": ["l1", "l2", "l3"]}, {"path": ["l4"]}, {"path": ["l5"]})
    assert found["l1"] == found["l1:rev"] == ("packets", 500)
    assert found["l2"] == ("bytes", 2_000_000)
    assert found["l3"] == ("packets", 0)
    assert found["l4"] == ("bytes", 1500)  # a bdp is one packet at least
    assert found["l5"] == ("bytes", 1_250_000)  # no RTT to take: the nominal one


def test_loss_acts_forward_unless_the_reverse_is_named():
    links = [link("l1", "a", "b", loss=0.1), link("l2", "b", "c", loss_reverse=0.2)]
    found = core(links, [{"path": ["l1"]}]).links
    assert [entry.loss for entry in found] == [0.1, 0, 0, 0.2]


def test_the_whole_document():
    found = resolve.to_core(
        from_dict(
            {
                "name": "two hops",
                "duration": "60 s",
                "protocol": "maxnet",
                "measure": ["40 s", "60 s"],
                "link": [
                    link("link1", "r1", "r2", "622 Mbit/s", "14.5 ms", target=0.8),
                    link("link2", "r2", "r3", "400 Mbit/s", "15 ms"),
                ],
                "flow": [
                    {
                        "name": "long",
                        "from": "a",
                        "to": "b",
                        "path": ["link1", "link2"],
                        "count": 30,
                        "start": "1 s",
                        "stop": "70 s",
                        "stagger": "10 ms",
                        "size": "10 MB",
                        "rtt": "80 ms",
                        "weight": 2.0,
                        "demand": "5 Mbit/s",
                        "initial_window": "4 packets",
                        "pacing": True,
                        "delayed_ack": True,
                    },
                    {"name": "one", "path": ["link1"], "protocol": "aecp", "initial_window": 3},
                ],
                "params": {
                    "maxnet": {
                        "x_max": "1 Pbit/s",
                        "t": "400 ms",
                        "alpha": 1,
                        "average": False,
                        "order": "rate-first",
                        "memory": 4,
                        "reserve": "5 packets",
                        "quantum": "3 kB",
                    }
                },
            }
        ),
        PROTOCOLS,
    )
    document = found.to_dict()
    long, one = document.pop("flows")
    links = document.pop("links")
    assert document == {
        "name": "two hops",
        "seed": 1,
        "duration_s": 60.0,
        "measure_s": (40.0, 60.0),
        "sample_s": 0.1,
        "packet_bytes": 1500,
        "ack_bytes": 40,
        "rto_min_s": 1.0,
        "rttvar_min_s": 0.2,
        "syn_rto_s": 1.0,
        "params": {
            "maxnet": {
                "x_max": 1e15,
                "t": 0.4,
                "alpha": 1.0,
                "average": False,
                "order": "rate-first",
                "memory": 4.0,
                "reserve": 5.0,
                "quantum": 3000.0,
            }
        },
        "traffic": (),
        "switching": None,
        "series": None,
        "switches": (),
    }
    assert links[0] == {
        "name": "link1",
        "rate_bps": 622e6,
        "delay_s": 0.0145,
        "buffer": {"unit": "bytes", "size": 6_220_000},
        "queue": {"kind": "droptail", "mark_at": None, "ramp": None},
        "loss": 0.0,
        "loss_model": None,
        "shaper": None,
        "policer": None,
        "reorder": None,
        "duplicate": 0.0,
        "target": 0.8,
        "routers": None,
        "changes": (),
        "faults": (),
        "pull": False,
    }
    assert math.isclose(long.pop("pad_s"), 0.0105)
    assert long == {
        "name": "long",
        "count": 30,
        "protocol": "maxnet",
        "forward": (0, 2),
        "reverse": (3, 1),
        "start_s": 1.0,
        "stagger_s": 0.01,
        "start_jitter_s": (),
        "pad_jitter_s": (),
        "stop_s": 60.0,  # no flow outlives the run
        "size_bytes": 10_000_000,
        "access_bps": None,
        "base_rtt_s": 0.08,
        "weight": 2.0,
        "demand_bps": 5e6,
        "initial_window_packets": 4,
        "pacing": True,
        "delayed_ack": True,
        "ecn": None,
        "ecn_codepoint": None,
        "ecn_feedback": None,
        "claimed_rtt_s": None,
        "base_rtt_window_s": None,
        "faults": (),
        "recovery": None,
        "window_validation": None,
        "pacing_quantum_packets": 1,
        "pacing_quantum_s": None,
        "after": (),
        "after_count": None,
        "continues": None,
        "demands": (),
        "application": None,
        "routes": (),
        "ack_frequency": None,
        "handshake": True,
        "switched": False,
    }
    assert (one["protocol"], one["initial_window_packets"], one["pacing"]) == ("aecp", 3, None)


def test_jitter_draws_one_time_per_flow_from_the_seed():
    def flows(seed):
        tables = [
            {"path": ["l1"], "count": 50, "start": "1 s", "start_jitter": "0.2 s"},
            {"path": ["l1"], "count": 50, "rtt_jitter": "4 ms"},
        ]
        return list(core(LINE, tables, seed=seed).flows)

    early, far = flows(1)
    starts = [early.start_of_s(i) for i in range(50)]
    assert 1.0 <= min(starts) < 1.02
    assert 1.18 < max(starts) <= 1.2
    assert len(set(starts)) == 50
    assert (early.pad_jitter_s, far.start_jitter_s) == ((), ())
    pads = [far.pad_of_s(i) for i in range(50)]
    assert 0.0 <= min(pads) < max(pads) <= 0.002
    assert far.base_rtt_of_s(7) == pytest.approx(far.base_rtt_s + 2 * pads[7])
    assert flows(1) == [early, far]
    assert flows(2)[0].start_jitter_s != early.start_jitter_s


def test_parameters_of_the_protocols_used_are_filled_in():
    from waterfill.network.protocols import with_defaults

    params = {"maxnet": {"alpha": 0.5}}
    found = with_defaults(["maxnet", "cubic", "maxnet"], params, PROTOCOLS)
    assert list(found) == ["maxnet", "cubic"]
    assert found["maxnet"]["alpha"] == 0.5
    assert found["maxnet"]["t"] == 0.4
    assert found["cubic"] == {}


def test_protocols_are_read_from_the_registry_s_list():

    order = {"name": "order", "unit": "choice", "default": "a", "choices": ["a", "b"]}
    time = {"name": "t", "unit": "time", "default": 0.4, "choices": None}
    entry = {
        "name": "maxnet", "kind": "explicit", "backends": ["sim"], "paced": True,
        "recovery": "rfc6675", "window_validation": "off",
        "base_rtt": {"window_s": 10.0, "limits_rate": True},
        "header_bytes": 8, "echo_bytes": 8, "summary": "s",
        "signals": [{"name": "price", "unit": "s", "doc": "d"}],
        "kernel": None,
        "params": [param | {"doc": "d", "source": "x", "kernel": None} for param in (order, time)],
    }  # fmt: skip
    found = protocols.from_registry([entry])["maxnet"]
    assert (found.backends, found.header_bytes, found.echo_bytes) == (("sim",), 8, 8)
    assert found.paced
    assert (found.recovery, found.window_validation) == ("rfc6675", "off")
    assert found.base_rtt is not None
    assert found.base_rtt.window_s == 10.0
    assert found.param("order").parse("b") == "b"
    assert found.param("t").parse("1 ms") == 0.001


def test_a_choice_that_was_a_flag_takes_both():
    average = protocols.load()["maxnet"].param("average")
    given = ("exponential", "sliding", "off", True, False)
    assert [average.parse(value) for value in given] == [True, "sliding", False, True, False]
    with pytest.raises(ValueError, match='must be one of "exponential", "sliding", "off", got 1'):
        average.parse(1)


def test_every_parameter_of_the_core_has_a_unit_that_python_reads():

    for info in protocols.load().values():
        for param in info.params:
            assert param.unit in {*protocols._NUMBERS, "flag", "choice"}, (info.name, param)


@pytest.mark.parametrize("kind", ["flow", "web"])
def test_laws_that_start_at_line_rate_have_a_window_of_the_host_link(kind):
    text = """
        duration = "1 ms"
        [[link]]
        name = "nic"
        from = "a"
        to = "s"
        rate = "100 Gbit/s"
        delay = "2 us"
        [[link]]
        name = "trunk"
        from = "s"
        to = "b"
        rate = "10 Gbit/s"
        delay = "4 us"
    """
    path = 'path = ["nic", "trunk"]'
    text += {
        "flow": f'[[flow]]\nname = "f"\n{path}\n',
        "web": f'[[traffic]]\nkind = "web"\narrival_rate = "1000 /s"\n{path}\n',
    }[kind]

    def window(protocol, sets=()):
        found = resolve.to_core(
            from_toml(text, sets=[f"protocol={protocol}", *sets]), protocols.load()
        )
        flow = found.flows[0] if kind == "flow" else found.traffic[0].flows.flow
        return flow.initial_window_packets

    assert window("cubic") == 10
    # 100 Gbit/s · 12 us of propagation; the trunk does not count.
    assert window("hpcc") == window("powertcp") == 100
    own = "flow.f.initial_window=7" if kind == "flow" else "traffic.web.initial_window=7"
    assert window("hpcc", [own]) == 7


def test_a_pattern_at_line_rate_has_the_window_of_its_farthest_pair():
    nodes = [("h0", "s"), ("h1", "s"), ("s", "t"), ("t", "h2")]
    link = [
        {"name": f"{a}-{b}", "from": a, "to": b, "rate": "12 Gbit/s", "delay": "1 us"}
        for a, b in nodes
    ]
    web = {"kind": "web", "pattern": "all-to-all", "load": 0.1, "sizes": "1 kB"}
    document = {"duration": "1 ms", "protocol": "hpcc", "link": link, "traffic": [web]}
    found = resolve.to_core(from_dict(document), protocols.load())
    assert found.traffic[0].flows.flow.initial_window_packets == 6  # 12 Gbit/s · 6 us
