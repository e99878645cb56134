"""Collective operations: the messages of each algorithm, their times by hand, and refusals."""

from itertools import pairwise

import pytest

import waterfill
from waterfill.analysis.collectives import collectives
from waterfill.errors import InputError
from waterfill.network import protocols, resolve
from waterfill.scenario import loading
from waterfill.scenario.collective import Collective, entries, messages
from waterfill.theory import subject

RING = {"name": "ring", "kind": "all-reduce", "size": "8 MB"}


def operation(hosts: int, size: int = 1000, **keys) -> Collective:
    names = [f"h{i}" for i in range(hosts)]
    keys = {"name": "op", "kind": "all-reduce", **keys}
    return Collective.model_validate({**keys, "hosts": names, "size": f"{size} B"})


def star(count: int = 4, **keys) -> dict:
    """Return a scenario of hosts at one switch, with one collective."""
    links = [
        {"name": f"h{i}-s", "from": f"h{i}", "to": "s", "rate": "10 Gbit/s", "delay": "1 us"}
        for i in range(count)
    ]
    return {
        "duration": "100 ms", "protocol": "window", "profile": "datacenter", "handshake": False,
        "params": {"window": {"packets": 40}}, "link_defaults": {"buffer": "1 MB"},
        "link": links, "collective": [{**RING, **keys}],
    }  # fmt: skip


def order(sent):
    """Return the places of messages in an order in which each comes after those it waits for."""
    for place, message in enumerate(sent):
        assert all(index < place for index in message.after)
    return range(len(sent))


@pytest.mark.parametrize("hosts", [2, 3, 4, 7])
def test_a_ring_adds_up_all_parts_and_hands_them_on(hosts):
    sent = messages(operation(hosts))
    has = {(f"h{i}", part): {f"h{i}"} for i in range(hosts) for part in range(hosts)}
    for place in order(sent):
        message = sent[place]
        part = (int(message.source[1:]) - message.step) % hosts
        assert message.size_bytes == (part + 1) * 1000 // hosts - part * 1000 // hosts
        whole = message.step >= hosts - 1
        assert not whole or len(has[message.source, part]) == hosts
        # Only what has arrived in the step before is sent on.
        came = {sent[index].source for index in message.after} - {message.source}
        assert came == ({f"h{(int(message.source[1:]) - 1) % hosts}"} if message.step else set())
        has[message.target, part] = has[message.source, part] | (
            set() if whole else has[message.target, part]
        )
    assert all(len(hosts_added) == hosts for hosts_added in has.values())


@pytest.mark.parametrize("size", [1000, 1003])
def test_halving_and_doubling_adds_up_every_byte(size):
    sent = messages(operation(8, size, algorithm="halving-doubling"))
    has = {f"h{i}": [{f"h{i}"} for _ in range(size)] for i in range(8)}
    spans = {f"h{i}": (0, size) for i in range(8)}
    for step in range(6):
        these = [message for message in sent if message.step == step]
        old = {host: list(parts) for host, parts in has.items()}
        kept = {}
        for message in these:
            low, high = spans[message.source]
            middle, upper = (low + high) // 2, int(message.target[1:]) > int(message.source[1:])
            halves = ((low, middle), (middle, high))
            span = halves[upper] if step < 3 else (low, high)
            kept[message.source] = halves[not upper] if step < 3 else None
            assert message.size_bytes == span[1] - span[0]
            for byte in range(*span):
                own = has[message.target][byte] if step < 3 else set()
                has[message.target][byte] = own | old[message.source][byte]
        if step < 3:
            spans = kept
        else:
            joined = {m.target: (spans[m.source], spans[m.target]) for m in these}
            spans = {host: (min(a[0], b[0]), max(a[1], b[1])) for host, (a, b) in joined.items()}
    assert all(len(added) == 8 for parts in has.values() for added in parts)


@pytest.mark.parametrize("chunks", [1, 3])
def test_a_tree_sends_a_chunk_up_when_all_children_have(chunks):
    sent = messages(operation(6, algorithm="tree", chunks=chunks))
    added = {(f"h{i}", chunk): {f"h{i}"} for i in range(6) for chunk in range(chunks)}
    for place in order(sent):
        message = sent[place]
        if int(message.source[1:]) > int(message.target[1:]):
            added[message.target, message.chunk] |= added[message.source, message.chunk]
        else:
            assert len(added[message.source, message.chunk]) == 6
            added[message.target, message.chunk] = added[message.source, message.chunk]
    assert all(len(hosts) == 6 for hosts in added.values())
    assert sum(message.size_bytes for message in sent) == 2 * 5 * 1000


@pytest.mark.parametrize("algorithm", ["ring", "halving-doubling"])
def test_a_step_begins_when_all_of_the_step_before_has_arrived(algorithm):
    sent = messages(operation(8, algorithm=algorithm))
    for message in sent:
        before = {
            place
            for place, one in enumerate(sent)
            if one.step == message.step - 1 and message.source in (one.source, one.target)
        }
        assert set(message.after) == before


@pytest.mark.parametrize("algorithm", ["ring", "halving-doubling", "tree"])
def test_messages_between_two_hosts_use_one_connection(algorithm):
    one = operation(8, 8000, algorithm=algorithm, connections="open", chunks=1)
    flows = {flow["name"]: flow for flow in entries(one)}
    last = {}
    for name, flow in flows.items():
        ends = (flow["from"], flow["to"])
        assert flow.get("continues") == last.get(ends)
        assert last.get(ends) is None or last[ends] in flow["after"]
        last[ends] = name
    assert any("continues" in flow for flow in flows.values()) == (algorithm != "tree")


def test_a_law_keeps_its_rate_on_open_connections():
    """On a new connection each message sends ten packets in its first RTT of 402 us."""
    law = {"protocol": "maxnet", "params": {}, "link_defaults": {"buffer": "2 MB"}}
    links = [{**link, "delay": "100 us"} for link in star()["link"]]
    new, kept = (
        collectives(waterfill.run(star(connections=kind) | law | {"link": links}))[0]
        for kind in ("new", "open")
    )
    times = [[step.end_s - step.start_s for step in one.steps] for one in (new, kept)]
    assert times[0][0] == times[1][0]
    for before, after in zip(times[0][1:], times[1][1:], strict=True):
        assert 150e-6 < before - after < 450e-6


@pytest.mark.parametrize("algorithm", ["ring", "halving-doubling"])
def test_each_host_sends_what_it_must(algorithm):
    one = operation(8, 8000, algorithm=algorithm)
    for host in one.members:
        mine = sum(m.size_bytes for m in messages(one) if m.source == host)
        assert mine == one.bus_factor * 8000 == 14000


def test_an_all_to_all_sends_a_part_to_each_other_host():
    one = operation(4, 4000, kind="all-to-all")
    sent = messages(one)
    assert sorted((m.source, m.target) for m in sent) == [
        (a, b) for a in one.members for b in one.members if a != b
    ]
    assert {m.size_bytes for m in sent} == {1000}
    assert one.bus_factor == 0.75


def test_a_ring_without_other_traffic_takes_the_least_time():
    result = waterfill.run(star())
    (found,) = collectives(result)
    # Six steps of 2 MB: 1370 packets of 12 kbit at 10 Gbit/s, the last one at both links again.
    payload = 1460
    last_bits = 8 * (2_000_000 - 1369 * payload + 40)
    step_s = (1369 * 12_000 + 2 * last_bits + (12_000 - last_bits)) / 10e9 + 2e-6
    assert found.ideal_s == pytest.approx(6 * step_s, rel=1e-9)
    # A host's acknowledgements of 40 B take the same link as its data.
    assert found.completion_s == pytest.approx(found.ideal_s * 1540 / 1500, rel=1e-3)
    assert found.bus_bps == pytest.approx(1.5 * 8e6 * 8 / found.completion_s)
    assert found.bus_of_ideal == pytest.approx(1500 / 1540, rel=1e-3)
    assert found.straggler == pytest.approx(1, rel=1e-3)
    assert [step.step for step in found.steps] == list(range(6))
    for before, after in pairwise(found.steps):
        assert after.start_s == pytest.approx(before.end_s, abs=1e-6)


def test_several_messages_of_a_host_share_its_link():
    result = waterfill.run(star(kind="all-to-all"))
    (found,) = collectives(result)
    # Each host sends three parts of 2 MB on one link.
    assert found.ideal_s == pytest.approx(6e6 * 1500 / 1460 * 8 / 10e9, rel=2e-3)
    assert found.completion_s == pytest.approx(found.ideal_s * 1540 / 1500, rel=0.03)


def test_the_least_time_is_a_bound_where_routes_differ():
    links = [
        {"name": f"{a}-{b}", "from": a, "to": b, "rate": rate, "delay": "1 us"}
        for a, b, rate in (
            ("h0", "s", "10 Gbit/s"), ("h1", "s", "10 Gbit/s"), ("s", "t", "1 Gbit/s"),
            ("h2", "t", "10 Gbit/s"), ("h3", "t", "10 Gbit/s"),
        )
    ]  # fmt: skip
    (found,) = collectives(waterfill.run(star(kind="all-to-all") | {"link": links}))
    # h0 sends two of its three parts over 1 Gbit/s, and not all of them.
    assert found.ideal_s == pytest.approx(2e6 * 1500 / 1460 * 8 / 1e9, rel=1e-2)
    assert found.bus_of_ideal == pytest.approx(1 / 4, rel=0.07)  # four parts and acknowledgements


def test_traffic_of_a_message_s_name_changes_nothing():
    other = {"kind": "web", "name": "ring-0-h0-h1", "from": "h2", "to": "h3", "at": ["50 ms"]}
    (alone,) = collectives(waterfill.run(star()))
    (found,) = collectives(
        waterfill.run(star() | {"traffic": [{**other, "sizes": "1 kB", "protocol": "window"}]})
    )
    assert found == alone


def test_the_written_scenario_has_the_operation_and_gives_the_same_run():
    result = waterfill.run(star(protocol="dctcp"), set={"collective.ring.size": "1 MB"})
    again = loading.from_toml(result.scenario_toml)
    assert "[[flow]]" not in result.scenario_toml
    assert again.collective[0].hosts == ["h0", "h1", "h2", "h3"]
    assert {flow.protocol for flow in again.flow} == {"dctcp"}
    assert collectives(waterfill.run(again)) == collectives(result)


def test_an_operation_that_does_not_end_has_no_bandwidth():
    (found,) = collectives(waterfill.run(star(), set={"duration": "5 ms"}))
    assert found.completion_s is found.bus_bps is None
    assert found.unfinished > 12
    assert found.steps[0].slowest_s is not None
    assert found.steps[-1].start_s is None


@pytest.mark.parametrize(
    ("keys", "key", "problem"),
    [
        ({"size": "3 B"}, "size", "must be a byte for each host and chunk, got 3 B"),
        ({"hosts": ["h0"]}, "hosts", "must have at least 2 entries"),
        ({"hosts": ["h0", "h1", "h0"]}, "hosts", "two or more different nodes, got h0 twice"),
        ({"hosts": ["h0", "h1", "h2"], "algorithm": "halving-doubling"}, "hosts", "must be 2, 4"),
        ({"chunks": 2}, "chunks", 'must be 1 unless algorithm = "tree", got 2'),
        ({"kind": "all-to-all", "algorithm": "ring"}, "algorithm", "must not be there"),
        ({"kind": "broadcast"}, "kind", 'must be "all-reduce" or "all-to-all"'),
        ({"sizes": "1 MB"}, "sizes", "unknown key"),
    ],
)
def test_refusals_name_the_key(keys, key, problem):
    with pytest.raises(InputError, match=problem) as caught:
        loading.from_dict(star(**keys))
    assert caught.value.key == f"collective.ring.{key}"


def test_too_many_messages_are_refused():
    with pytest.raises(InputError, match="must give at most 200000 messages, got 249500"):
        loading.from_dict(star(count=500, kind="all-to-all"))


@pytest.mark.parametrize("backend", ["fluid", "linux"])
def test_other_backends_refuse_it(backend):
    with pytest.raises(InputError, match=f"not supported by the {backend} backend") as caught:
        waterfill.run(star() | {"handshake": True, "profile": "wan"}, on=backend)
    assert caught.value.key == "collective.ring.kind"


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ('hosts=["h0", "h9"]', 'collective.sum.hosts: message sum-0-h0-h9: no link ends at "h9"'),
        ("protocol=nope", "collective.sum.protocol: message sum-0-h0-h1: unknown protocol"),
    ],
)
def test_errors_name_the_collective_of_a_message(sets, message):
    document = {
        "duration": "1 ms", "protocol": "dctcp",
        "fabric": {"kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts": 2,
                   "host_rate": "10 Gbit/s", "delay": "1 us"},
        "collective": [{"name": "sum", "kind": "all-reduce", "size": "1 kB"}],
    }  # fmt: skip
    scenario = loading.from_dict(document, sets=[f"collective.sum.{sets}"])
    with pytest.raises(InputError) as error:
        resolve.to_core(scenario, protocols.load())
    assert message in str(error.value)


def test_theory_refuses_messages_that_wait():
    document = {
        "duration": "1 ms", "protocol": "xcp",
        "link": [{"name": "l", "from": "a", "to": "b", "rate": "1 Gbit/s", "delay": "1 ms"}],
        "collective": [{"name": "sum", "kind": "all-reduce", "size": "1 kB"}],
    }  # fmt: skip
    with pytest.raises(InputError, match=r"collective\.sum: its messages wait for each other"):
        subject._on_network(loading.from_dict(document), ["xcp"])
