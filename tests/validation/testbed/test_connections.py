"""The hunt for connections that never ask: its judgement, and a short hunt on the kernel."""

from __future__ import annotations

import pytest

from validation.testbed import connections
from validation.testbed.connections import CURL, KINDS, Found
from waterfill.testbed import checks, daemon


def flow(local="10.0.0.1:5000", remote="10.0.0.2:7001", state="established", asked=True, echoes=0):
    flags = ["negotiated", "was priced"] if asked else ["negotiated"]
    return {"local": local, "remote": remote, "state": state, "flags": flags, "echoes": echoes,
            "fallback_reason": None if asked else "no echo arrives"}  # fmt: skip


def test_a_kinds_senders_are_its_open_connections_at_the_end_that_sends():
    client, server = KINDS[0], KINDS[1]
    assert (client.sender, server.sender) == ("client", "server")
    flows = [
        flow(),
        flow(local="10.0.0.2:7001", remote="10.0.0.1:5000"),
        flow(state="fin-wait-2"),
        flow(local="10.0.0.2:7002", remote="10.0.0.1:5001"),
    ]
    assert client.senders(flows) == flows[:1]
    assert server.senders(flows) == flows[3:]


def found(flows, opened=None, counters=None, name="k"):
    one = Found(name, opened=len(flows) if opened is None else opened)
    one.note(flows)
    one.counters = {"priced": one.opened, "no_memory": 0} | (counters or {})
    return one


def test_connections_that_all_asked_are_no_fault():
    assert found([flow(), flow()], counters={"control_without_init": 2}).faults() == []
    # An answer has arrived, and the law has not run since then.
    one = found([flow(), flow(asked=False, echoes=42)])
    assert (one.faults(), one.asked, one.priced) == ([], 2, 1)
    # What curl opened has ended before it could be read.
    assert found([], opened=3, name=CURL).faults() == []


@pytest.mark.parametrize(
    ("one", "fault"),
    [
        (found([flow(), flow(asked=False)]), "1 of 2 open connections did not ask"),
        (found([flow()], opened=2), "1 of 2 open connections have a state"),
        (
            found([], 2, {"fallbacks": {"no echo arrives": 2, "other": 1}}, CURL),
            "2 connections fell back without an echo",
        ),
        (found([flow()], counters={"no_memory": 4}), "4 connections without memory"),
    ],
)
def test_each_fault_is_one_line(one, fault):
    (line,) = one.faults()
    assert line.startswith(fault)


def test_a_connection_that_did_not_ask_is_kept_with_its_state_and_reason():
    one = found([flow(asked=False)] * 7).to_dict()
    assert (one["seen"], one["asked"], len(one["odd"])) == (7, 0, 5)
    assert one["fallbacks"] == {"no echo arrives": 7}


def test_counters_are_the_changes_and_add_up():
    before = {"started": 5, "fallbacks": {"a": 1, "b": 2}, "returns": {"a": 0, "b": 1}}
    after = {"started": 9, "fallbacks": {"a": 1, "b": 4}, "returns": {"a": 0, "b": 1}}
    change = connections.difference(after, before)
    assert change == {"started": 4, "fallbacks": {"b": 2}, "returns": {}}
    both = connections._sum(change, change)
    assert both == {"started": 8, "fallbacks": {"b": 4}, "returns": {}}


def test_the_table_adds_up_all_kinds():
    counters = {"started": 2, "priced": 1, "control_without_init": 3, "fallbacks": {"a": 1}}
    text = connections.table([found([flow()], counters=counters).to_dict()] * 2)
    assert text.splitlines()[-1].split() == ["all", "2", "4", "2", "6"]
    assert text.count("  1 fell back: a") == 2


LACKS = checks.missing() or (
    "the daemon waterfilld beside this Python, got none" if daemon.binary() is None else None
)


@pytest.mark.skipif(LACKS is not None, reason=f"the hunt needs {LACKS}")
def test_a_short_hunt_on_the_kernel_finds_that_every_connection_asks():
    each = connections.hunt(8 * 5, seconds=30.0)
    assert [one["kind"] for one in each] == [*(kind.name for kind in KINDS), CURL]
    assert all(one["opened"] == 5 for one in each)
    assert all(one["faults"] == [] for one in each), each
    # Each sending end runs the law. So does the receiving end, unless the kernel skipped init()
    # there: the law then starts at the first acknowledgement, which a receiver of data never gets.
    assert [one["kind"] for one in each if one["counters"]["started"] < 5] == []
