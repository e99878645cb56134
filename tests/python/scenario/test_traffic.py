"""Tests of [[traffic]]: keys, errors, the core's view, a run's report."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import synthetic
from known import PROTOCOLS, ROOT, TARGETS
from waterfill.contract.elements import Constant, Empirical, Exponential, Pareto
from waterfill.contract.network import PeriodSpec
from waterfill.contract.summary import CoreFlow
from waterfill.errors import InputError
from waterfill.network import resolve, shares
from waterfill.runs import backends, result
from waterfill.scenario.distributions import Distribution, PartError, parse
from waterfill.scenario.loading import from_toml, load
from waterfill.scenario.units import SPAN, VOLUME

HEAD = """
duration = "9 s"
protocol = "maxnet"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "10 ms"
[[traffic]]
path = ["l"]
"""
WEB = 'kind = "web"\narrival_rate = "50 /s"\n'
ON_OFF = 'kind = "onoff"\nrate = "2 Mbit/s"\non = "300 ms"\noff = "700 ms"\n'


def source(text, **more):
    """One resolved [[traffic]]."""
    found = from_toml(HEAD + text, **more)
    return resolve.to_core(found, PROTOCOLS).traffic[0]


def refusal(text):
    with pytest.raises(InputError) as error:
        source(text, source="S.toml")
    return str(error.value).removeprefix("S.toml: traffic.")


def test_poisson_packets_have_a_rate():
    found = source('kind = "poisson"\nrate = "4 Mbit/s"')
    assert (found.kind, found.rate_bps) == ("poisson", 4e6)
    assert (found.flows, found.periods) == (None, None)


def test_on_and_off_are_mean_lengths():
    def periods(more=""):
        return source(ON_OFF + more).periods

    assert periods() == PeriodSpec(on_s=Exponential(mean=0.3), off_s=Exponential(mean=0.7))
    assert periods('distribution = "constant"').on_s == Constant(mean=0.3)
    pareto = Pareto(mean=0.7, shape=1.5, max=None)
    assert periods('distribution = "pareto"').off_s == pareto
    assert periods('distribution = "pareto"\nshape = 1.2').off_s == replace(pareto, shape=1.2)


def test_web_flows_are_of_the_scenario_s_protocol_and_of_xcp_s_sizes():
    flows = source(WEB).flows
    assert flows.arrivals_per_s == 50
    # 30 packets of 1500 bytes, each with 40 bytes of TCP/IP headers and 8 of the protocol's.
    assert flows.sizes_bytes == Pareto(mean=30 * 1452, shape=1.35, max=None)
    flow = flows.flow
    assert (flow.protocol, flow.forward, flow.reverse) == ("maxnet", (0,), (1,))
    assert (flow.initial_window_packets, flow.delayed_ack) == (10, False)
    assert (flow.pacing, flow.ecn, flow.pad_s, flow.base_rtt_s) == (None, None, 0, 0.02)


def test_web_flows_take_a_flow_s_keys():
    flow = source(
        'kind = "web"\narrival_rate = 2.5\nprotocol = "aecp"\nrtt = "50 ms"\necn = false\n'
        'initial_window = "4 packets"\ndelayed_ack = true\npacing = true\nreturn_path = ["l"]\n'
    ).flows.flow
    assert flow.protocol == "aecp"
    assert (flow.pad_s, flow.base_rtt_s) == (pytest.approx(0.015), 0.05)
    assert (flow.initial_window_packets, flow.delayed_ack) == (4, True)
    assert (flow.pacing, flow.ecn, flow.reverse) == (True, False, (1,))


def test_a_count_is_so_many_sources_with_names_of_their_own():
    found = resolve.to_core(from_toml(f"{HEAD}{ON_OFF}count = 3\n"), PROTOCOLS).traffic
    assert [entry.name for entry in found] == ["onoff[0]", "onoff[1]", "onoff[2]"]
    assert all(replace(entry, name="onoff") == source(ON_OFF) for entry in found)
    assert source(f"{ON_OFF}count = 1\n") == source(ON_OFF)


def test_sources_of_a_count_are_independent_and_reported_one_by_one():
    found = from_toml(f'{HEAD}{ON_OFF}count = 3\naccess_rate = "5 Mbit/s"\n')
    entries = backends.run(found).summary["traffic"]
    assert [entry["name"] for entry in entries] == ["onoff[0]", "onoff[1]", "onoff[2]"]
    assert len({entry["packets_sent"] for entry in entries}) == 3


def test_an_access_rate_is_of_the_source_or_of_its_flows():
    assert source(f'{ON_OFF}access_rate = "3 Mbit/s"').access_bps == 3e6
    web = source(f'{WEB}access_rate = "3 Mbit/s"')
    assert (web.access_bps, web.flows.flow.access_bps) == (None, 3e6)


def test_an_access_rate_limits_a_share_as_a_demand_does():
    flow = '[[flow]]\nname = "f"\npath = ["l"]\n'
    rate = lambda keys: document(HEAD + ON_OFF + flow + keys)[0]["flows"][0]["rate_bps"]  # noqa: E731
    assert rate("") == 9e6 - 0.3 * 2e6
    assert rate('access_rate = "2 Mbit/s"') == 2e6
    assert rate('access_rate = "2 Mbit/s"\ndemand = "1 Mbit/s"') == 1e6
    assert rate('access_rate = "2 Mbit/s"\ndemand = "3 Mbit/s"') == 2e6


@pytest.mark.parametrize("backend", ["fluid", "linux"])
def test_only_the_simulator_has_access_links(backend):
    flow = '[[flow]]\nname = "f"\npath = ["l"]\naccess_rate = "1 Gbit/s"\n'
    found = from_toml(HEAD + 'kind = "cbr"\nrate = "1 Mbit/s"\n' + flow, "S.toml")
    with pytest.raises(InputError) as error:
        resolve.to_core(found, PROTOCOLS, backend)
    assert str(error.value) == (
        f"S.toml: flow.f.access_rate: 1000000000.0 is not supported by the {backend} backend"
    )


def test_poisson_with_an_arrival_rate_is_web():
    web = source(WEB)
    poisson = source(WEB.replace("web", "poisson"))
    assert poisson.kind == "poisson"
    flow = poisson.flows.flow._replace(name="web")
    assert replace(poisson.flows, flow=flow) == web.flows


def test_traffic_runs_against_a_link_too():
    text = HEAD.replace('path = ["l"]', 'path = ["l:rev"]') + WEB
    flow = resolve.to_core(from_toml(text), PROTOCOLS).traffic[0].flows.flow
    assert (flow.forward, flow.reverse) == ((1,), (0,))


MEASURED = Empirical(points=((1e3, 0.25), (9e3, 1.0)))
SIZES = {
    '"30 kB"': Constant(mean=30e3),
    '{distribution = "constant", mean = "30 kB"}': Constant(mean=30e3),
    '{distribution = "exponential", mean = "80 kbit"}': Exponential(mean=10e3),
    '{distribution = "pareto", mean = "45 kB", shape = 1.2, max = "10 MB"}': (
        Pareto(mean=45e3, shape=1.2, max=10e6)
    ),
    '{distribution = "pareto", mean = "45 kB", shape = 0.8, max = "10 MB"}': (
        Pareto(mean=45e3, shape=0.8, max=10e6)
    ),
    '{distribution = "empirical", values = ["1 MB", "10 kB"], probabilities = [0.1, 0.9]}': (
        Empirical(points=((1e4, 0.0), (1e4, 0.9), (1e6, 0.9), (1e6, 1.0)))
    ),
    '[["1 kB", 0.25], ["9 kB", 1.0]]': MEASURED,
    '{distribution = "empirical", points = [["1 kB", 0.25], ["9 kB", 1]]}': MEASURED,
}


@pytest.mark.parametrize("written", SIZES)
def test_sizes(written):
    assert source(f"{WEB}sizes = {written}").flows.sizes_bytes == SIZES[written]


@pytest.mark.parametrize("written", SIZES)
def test_sizes_as_run_are_the_same(written):
    found = from_toml(f"{HEAD}{WEB}sizes = {written}")
    again = from_toml(found.to_toml())
    assert again.traffic == found.traffic
    assert resolve.to_core(again, PROTOCOLS) == resolve.to_core(found, PROTOCOLS)


def test_a_file_of_sizes_lies_beside_the_scenario(tmp_path, monkeypatch):
    (tmp_path / "S.toml").write_text(
        f'{HEAD}{WEB}sizes = {{distribution = "empirical", file = "data/sizes.csv"}}'
    )
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "sizes.csv").write_text("# measured\n1 kB, 0.25\n\n9 kB,1\r\n")
    monkeypatch.chdir("/")
    found = load(tmp_path / "S.toml")
    points = ((1e3, 0.25), (9e3, 1.0))
    assert found.traffic[0].sizes == Distribution(
        "empirical", 0.25 * 1e3 + 0.75 * 5e3, None, None, points
    )
    assert "data/sizes.csv" not in found.to_toml(), "as run, it needs no file"


@given(
    st.lists(
        st.tuples(st.floats(1, 1e12), st.floats(1e-3, 1)),
        min_size=1,
        max_size=9,
        unique_by=lambda p: p[0],
    )
)
def test_values_keep_their_probabilities(pairs):
    total = sum(p for _, p in pairs)
    table = {
        "distribution": "empirical",
        "values": [VOLUME.format(x) for x, _ in pairs],
        "probabilities": [p / total for _, p in pairs],
    }
    found = parse(table, VOLUME)
    assert found.mean == pytest.approx(sum(x * p for x, p in pairs) / total)
    shares = [share for _, share in found.points]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 1)
    assert parse(found.written(VOLUME), VOLUME) == found


ERRORS = {
    WEB.replace('"50 /s"', '"50"'): (
        'web.arrival_rate: must be a number per second such as "50 /s", got "50"'
    ),
    WEB.replace('"50 /s"', "0"): "web.arrival_rate: must be in (0, 1e+09], got 0",
    WEB.replace('"50 /s"', '"0 /s"'): ('web.arrival_rate: must be above zero, got "0 /s"'),
    'kind = "web"': (
        'web.arrival_rate: missing; write a number per second such as "50 /s", a load, or times of '
        "arrivals (at, every)"
    ),
    WEB + 'rate = "1 Mbit/s"': 'web.rate: not allowed with kind = "web"',
    'kind = "cbr"\nrate = "1 Mbit/s"\nsizes = "1 kB"': 'cbr.sizes: not allowed with kind = "cbr"',
    'kind = "cbr"\nrate = "1 Mbit/s"\non = "1 s"': 'cbr.on: not allowed with kind = "cbr"',
    'kind = "cbr"\nrate = "1 Mbit/s"\nprotocol = "aecp"': (
        'cbr.protocol: not allowed with kind = "cbr"'
    ),
    'kind = "poisson"': (
        "poisson.rate: needs either a rate of packets or an arrival_rate of flows, got neither"
    ),
    WEB.replace("web", "poisson") + 'rate = "1 Mbit/s"': (
        "poisson.rate: needs either a rate of packets or an arrival_rate of flows, got both"
    ),
    'kind = "poisson"\nrate = "1 Mbit/s"\nrtt = "1 s"': (
        'poisson.rtt: not allowed with kind = "poisson" and a rate'
    ),
    ON_OFF.replace('off = "700 ms"\n', ""): 'onoff.off: missing; write a time such as "80 ms"',
    ON_OFF.replace('rate = "2 Mbit/s"\n', ""): (
        'onoff.rate: missing; write a rate such as "622 Mbit/s"'
    ),
    ON_OFF.replace('"300 ms"', '"0 ms"'): 'onoff.on: must be above zero, got "0 ms"',
    ON_OFF + 'distribution = "normal"': (
        'onoff.distribution: must be "exponential", "pareto" or "constant", got "normal"'
    ),
    ON_OFF + "shape = 1.5": 'onoff.shape: only allowed with distribution = "pareto"',
    ON_OFF + 'distribution = "pareto"\nshape = 1': ("onoff.shape: must be above 1, got 1"),
    WEB + 'protocol = "aecq"': 'web.protocol: unknown protocol "aecq", did you mean "aecp"?',
    WEB + 'protocol = "cubic"': (
        'web.protocol: "cubic" does not run on sim; choose one of maxnet, aecp'
    ),
    WEB + 'rtt = "19 ms"': "web.rtt: must be at least the path's RTT of 20 ms, got 19 ms",
    WEB + 'stop = "0 s"': "web.stop: must be after the start at 0 s, got 0 s",
    WEB + "count = 2": 'web.count: not allowed with kind = "web"',
    ON_OFF + "count = 0": "onoff.count: must be from 1 to 10000000, got 0",
    ON_OFF + 'access_rate = "0 bit/s"': ('onoff.access_rate: must be above zero, got "0 bit/s"'),
    ON_OFF + 'access_rate = "1.9 Mbit/s"': (
        "onoff.access_rate: must be at least the rate of 2 Mbit/s, got 1.9 Mbit/s"
    ),
    ON_OFF + "access_rate = 2e6": (
        'onoff.access_rate: must be a rate such as "622 Mbit/s", got 2000000.0'
    ),
    WEB + "size = 3": 'web.size: unknown key, did you mean "sizes"?',
}


@pytest.mark.parametrize("text", ERRORS)
def test_errors_are_one_line_with_the_key(text):
    assert refusal(text) == ERRORS[text]


SIZE_ERRORS = {
    "30000": ("", 'must be a volume such as "30 kB", or a table of a distribution, got 30000'),
    '"30"': ("", 'must be a volume such as "30 kB", got "30"'),
    '"websearch"': (
        "",
        'must be a volume such as "30 kB", or one of data-mining, hadoop, rpc, web-search, '
        'got "websearch"',
    ),
    '{distribution = "rpc", shape = 2}': (
        ".shape",
        'unknown key of distribution = "rpc"; known: mean',
    ),
    '"0 B"': ("", 'must be above zero, got "0 B"'),
    '{mean = "3 kB"}': (
        ".distribution",
        'must be one of "constant", "exponential", "pareto", "empirical", "web-search", '
        '"data-mining", "hadoop", "rpc", got nothing',
    ),
    '{distribution = "normal", mean = "3 kB"}': (
        ".distribution",
        'must be one of "constant", "exponential", "pareto", "empirical", "web-search", '
        '"data-mining", "hadoop", "rpc", got "normal"',
    ),
    '{distribution = "exponential"}': (".mean", 'missing; write a volume such as "30 kB"'),
    '{distribution = "exponential", mean = 3}': (
        ".mean",
        'must be a volume such as "30 kB", got 3',
    ),
    '{distribution = "exponential", mean = "3 kB", shape = 2}': (
        ".shape",
        'unknown key of distribution = "exponential"; known: mean',
    ),
    '{distribution = "pareto", mean = "3 kB"}': (
        ".shape",
        "missing; write a number such as 1.35",
    ),
    '{distribution = "pareto", mean = "3 kB", shape = 1}': (
        ".shape",
        "must be above 1, got 1, or a max",
    ),
    '{distribution = "pareto", mean = "3 kB", shape = 1.2, max = "3 kB"}': (
        ".max",
        'must be above the mean of 3 kB, got "3 kB"',
    ),
    '{distribution = "empirical"}': ("", "needs exactly one of values, points and file, got none"),
    '{distribution = "empirical", values = ["1 kB"]}': (
        ".probabilities",
        "must be a list of 1 numbers, got nothing",
    ),
    '{distribution = "empirical", values = ["1 kB", "2 kB"], probabilities = [0.5, 0.4]}': (
        ".probabilities",
        "must add up to 1, got a sum of 0.9",
    ),
    '{distribution = "empirical", values = ["1 kB", "2 s"], probabilities = [0.5, 0.5]}': (
        ".values",
        'must be a volume such as "30 kB", got "2 s"',
    ),
    '{distribution = "empirical", points = [["1 kB", 0.5]]}': (
        ".points",
        "the last probability must be 1, got 0.5",
    ),
    '[["2 kB", 0.5], ["1 kB", 1]]': (
        "",
        "values and probabilities must not decrease, got 1 kB at 1",
    ),
    '[["2 kB"]]': ("", 'must be points such as ["30 kB", 0.5], got ["2 kB"]'),
    '{distribution = "empirical", file = "none.csv"}': (
        ".file",
        "cannot read none.csv: No such file or directory",
    ),
}


@pytest.mark.parametrize("written", SIZE_ERRORS)
def test_what_is_wrong_with_sizes_names_the_part(written):
    part, message = SIZE_ERRORS[written]
    assert refusal(f"{WEB}sizes = {written}") == f"web.sizes{part}: {message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 kB;0.5\n", "line 1 of"),
        ("1 kB, 0.5\n2 kB, all\n", "line 2 of"),
        ("1 kB, 0.5\n2, 1\n", 'must be a volume such as "10 MB", got "2"'),
        ("# nothing\n", 'no points; write points such as ["10 MB", 0.5]'),
        ("1 kB, nan\n", "must be finite, got NaN"),
    ],
)
def test_what_is_wrong_with_a_file_names_the_line(tmp_path, text, message):
    (tmp_path / "sizes.csv").write_text(text)
    with pytest.raises(PartError) as error:
        parse({"distribution": "empirical", "file": "sizes.csv"}, VOLUME, tmp_path)
    assert message in str(error.value)
    assert error.value.part == "file"


def test_lengths_are_drawn_alike():
    assert parse("3 ms", SPAN) == Distribution("constant", 0.003)


def document(text):
    return shares.document(from_toml(text), PROTOCOLS, TARGETS)["intervals"]


def test_max_min_is_of_what_packets_leave_and_web_flows_take_no_share():
    flow = '[[flow]]\nname = "f"\npath = ["l"]\n'
    shares = {
        'kind = "poisson"\nrate = "4 Mbit/s"\n': 9e6 - 4e6,
        ON_OFF: 9e6 - 0.3 * 2e6,
        WEB: 9e6,
    }
    for text, rate_bps in shares.items():
        (interval,) = document(HEAD + text + flow)
        assert interval["flows"][0]["rate_bps"] == pytest.approx(rate_bps)


def test_web_flows_bring_their_protocol_s_target_and_their_rtt():
    flow = '[[flow]]\nname = "f"\npath = ["l"]\nprotocol = "aecp"\n'
    (interval,) = document(HEAD + WEB + flow)
    assert interval["flows"][0]["rate_bps"] == pytest.approx(9e6)  # maxnet's 0.9 of 10 Mbit/s
    found = from_toml(HEAD + WEB + 'rtt = "80 ms"\n' + flow)
    assert resolve.to_core(found, PROTOCOLS).links[0].buffer.size == 10e6 / 8 * 0.08


def test_a_scenario_of_traffic_alone_runs():
    run = backends.run(from_toml(HEAD + WEB + 'sizes = "20 kB"'))
    assert run.summary["flows"] == []
    assert run.summary["jain_index"] is None
    (web,) = run.summary["traffic"]
    recovery = ["longest_recovery"] if web["retransmissions"] else []
    assert list(web) == [
        *("name", "kind", "protocol", "rate_bps", "goodput_bps", "packets_sent"),
        *("packets_received", "flows_started", "flows_completed", "flows_open_max"),
        *("flow_completion_ms", "limited_by", "loss_rate", "retransmissions", "resent_bytes"),
        *("spurious_retransmissions", "timeouts", *recovery),
    ]
    times = web["flow_completion_ms"]
    assert list(times) == ["count", "mean", "p50", "p90", "p95", "p99", "max"]
    assert 20 < times["p50"] <= times["p90"] <= times["p95"] <= times["p99"] <= times["max"]
    assert 0 < times["count"] <= web["flows_completed"] <= web["flows_started"]
    assert run.traffic.schema.field("flows").type == pa.float64()
    assert max(run.traffic["flows"].to_pylist()) <= web["flows_open_max"]
    assert "maxnet" in run.summary["params"]


def test_the_example_runs(waterfill):
    ran = waterfill("run", str(ROOT / "examples" / "web.toml"), "--json")
    assert ran.code == 0
    document = ran.document
    pages, answers, call = document["traffic"]
    # 20 a second of 45 kB: a squared coefficient of variation of some 13 over 300 flows, so a
    # standard deviation of 21 %; three of them.
    assert pages["goodput_bps"] == pytest.approx(20 * 45e3 * 8, rel=0.63)
    # A handshake of 20 ms, half an RTT of 10 ms, and a packet.
    assert answers["flow_completion_ms"]["p50"] > 30
    assert 0 < call["rate_bps"] < 2e6
    (file,) = document["groups"]
    flow = document["flows"][2]
    assert (file["name"], file["completed"]) == ("file", 1)
    took_ms = 1e3 * (flow["completed_s"] - flow["start_s"])
    assert file["flow_completion_ms"]["p50"] == pytest.approx(took_ms)
    again = waterfill("run", str(ROOT / "examples" / "web.toml"), "--json").document
    for run in (document, again):
        del run["engine"]["wall_s"]
        del run["engine"]["packet_transmissions_per_s"]
    assert again == document


def test_tables_show_how_long_flows_took(waterfill):
    out = waterfill("run", str(ROOT / "examples" / "web.toml")).out
    assert "pages" in out
    assert out.count("completion mean") == 2
    assert max(map(len, out.splitlines())) <= 80


def test_wrong_traffic_is_exit_2_and_one_line(waterfill, tmp_path):
    path = tmp_path / "S.toml"
    path.write_text(HEAD + WEB + 'sizes = {distribution = "pareto", mean = "3 kB", shape = 0.5}')
    ran = waterfill("run", str(path))
    assert (ran.code, ran.out) == (2, "")
    assert "traffic.web.sizes.shape: must be above 1, got 0.5, or a max" in ran.err
    path.write_text(HEAD + ON_OFF.replace('"300 ms"', '"1 ms"'))
    ran = waterfill("run", str(path))
    assert ran.code == 2
    assert "traffic.onoff.on: the mean must be at least one packet time, 0.006 s" in ran.err


def test_completion_times_by_hand():
    times = result.completion_times([40.0, 10.0, 30.0, 20.0])
    assert times == {
        "count": 4, "mean": 25.0, "p50": 20.0, "p90": 40.0, "p95": 40.0, "p99": 40.0, "max": 40.0
    }  # fmt: skip
    many = result.completion_times(range(1, 101))
    assert [many[f"p{p}"] for p in (50, 90, 95, 99)] == [50, 90, 95, 99]
    assert set(result.completion_times([]).values()) == {0, None}


def test_groups_are_of_finite_flows():
    entry = synthetic.flow_spec("a", 1, 9.0)
    entries = [entry._replace(count=2, size_bytes=10), entry._replace(name="b")]
    flows = [
        CoreFlow.read({"group": "a", "start_s": 1.0, "completed_s": 1.5}),
        CoreFlow.read({"group": "a", "start_s": 2.0, "completed_s": None}),
        CoreFlow.read({"group": "b", "start_s": 0.0, "completed_s": None}),
    ]
    (group,) = result.finite_groups(entries, flows)
    assert (group["name"], group["flows"], group["completed"]) == ("a", 2, 1)
    assert group["flow_completion_ms"]["mean"] == pytest.approx(500)
    assert json.loads(result.to_json(group)) == group
