"""The table of transfers: every flow with a size, its ideal time and its slowdown."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import waterfill
from known import ROOT
from waterfill.contract.summary import FlowSummary
from waterfill.errors import InputError
from waterfill.runs import cache, transfers
from waterfill.scenario.loading import from_dict

HEADERS = {"fixed": 0, "cubic": 0}


def scenario(**keys):
    """Two links in a row, 10 and 5 Mbit/s, 10 and 20 ms, ample buffers."""
    return {
        "duration": "60 s",
        "protocol": "cubic",
        "packet_size": "1000 B",
        "link": [
            {"name": "fast", "from": "a", "to": "b", "rate": "10 Mbit/s", "delay": "10 ms",
             "buffer": "10 MB"},
            {"name": "slow", "from": "b", "to": "c", "rate": "5 Mbit/s", "delay": "20 ms",
             "buffer": "10 MB"},
        ],
    } | keys  # fmt: skip


def flow(size: str, **keys):
    return {"name": "f", "from": "a", "to": "c", "size": size, "initial_window": 4000} | keys


# A SYN or SYN-ACK of 40 B takes 32 µs on one link and 64 µs on the other.
HANDSHAKE_S = 2 * (0.030 + 96e-6)


@pytest.mark.parametrize(
    ("size", "keys", "by_hand_s"),
    [
        # One packet of 1000 B: 0.8 ms and 1.6 ms.
        ("960 B", {}, HANDSHAKE_S + 0.030 + 0.8e-3 + 1.6e-3),
        # 100 packets leave the slow link 1.6 ms apart.
        ("96 kB", {}, HANDSHAKE_S + 0.030 + 0.8e-3 + 100 * 1.6e-3),
        # The last has 1 B of payload, 41 B in all: 65.6 µs behind the others on the slow link.
        ("96001 B", {}, HANDSHAKE_S + 0.030 + 0.8e-3 + 100 * 1.6e-3 + 65.6e-6),
        # The access link of 2 Mbit/s is the slowest: 4 ms a packet, 160 µs a SYN.
        ("96 kB", {"access_rate": "2 Mbit/s"},
         HANDSHAKE_S + 160e-6 + 0.030 + 100 * 4e-3 + 0.8e-3 + 1.6e-3),
        # Padding from 60 to 100 ms: 20 ms each way, three times.
        ("96 kB", {"rtt": "100 ms"}, HANDSHAKE_S + 0.090 + 0.8e-3 + 100 * 1.6e-3),
        # The application writes a packet every 8 ms.
        ("96 kB", {"demand": "1 Mbit/s"}, HANDSHAKE_S + 0.030 + 99 * 8e-3 + 0.8e-3 + 1.6e-3),
        # After the handshake it writes 240 kbit up to 0.3 s, nothing for 1 s, and the other
        # 552 kbit of all packets but the last at 4 Mbit/s.
        ("96 kB", {"demand_trace": {"repeat": False, "points": [
            ["0 s", "1 Mbit/s"], ["0.3 s", "0 bit/s"], ["1.3 s", "4 Mbit/s"]]}},
         1.3 + (792e3 - 1e6 * (0.3 - HANDSHAKE_S)) / 4e6 + 0.030 + 0.8e-3 + 1.6e-3),
    ],
)  # fmt: skip
def test_a_flow_alone_with_a_large_window_takes_its_ideal_time(size, keys, by_hand_s):
    (row,) = waterfill.run(scenario(flow=[flow(size, **keys)])).transfers.to_pylist()
    assert row["ideal_s"] == pytest.approx(by_hand_s, rel=1e-9)
    assert row["completion_s"] == pytest.approx(by_hand_s, rel=1e-9)
    assert row["slowdown"] == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize(
    ("ideal", "added_s"),
    [("handshake", 0.0), ("one-way", -HANDSHAKE_S), ("rtt", -HANDSHAKE_S / 2)],
)
def test_ideal_says_what_the_times_of_a_slowdown_contain(ideal, added_s):
    """Half of the handshake's time is an acknowledgement's way back."""
    result = waterfill.run(scenario(flow=[flow("96 kB", initial_window=10)], ideal=ideal))
    (row,) = result.transfers.to_pylist()
    usual = HANDSHAKE_S + 0.030 + 0.8e-3 + 100 * 1.6e-3
    assert row["ideal_s"] == pytest.approx(usual + added_s, rel=1e-9)
    assert row["completion_s"] > 1.2 * usual  # slow start
    assert row["slowdown"] == pytest.approx((row["completion_s"] + added_s) / row["ideal_s"])
    assert (row["from"], row["to"]) == ("a", "c")
    assert result.slowdown_contents == ideal


def test_packets_wait_at_the_slowest_link_wherever_it_is():
    links = scenario()["link"]
    for order in (links, [links[0] | {"rate": "5 Mbit/s"}, links[1] | {"rate": "10 Mbit/s"}]):
        for size in ("9601 B", "10000 B", "10560 B"):
            result = waterfill.run(scenario(link=order, flow=[flow(size)]))
            assert result.transfers["slowdown"].to_pylist() == [pytest.approx(1.0, rel=1e-9)]


def test_all_traffic_with_a_size_has_rows_in_order():
    document = scenario(
        duration="10 s",
        link=[link | {"buffer": "50 kB"} for link in scenario()["link"]],
        flow=[
            flow("20 kB", count=3, stagger="1 s", rtt_jitter="20 ms"),
            flow("1 GB", name="long", protocol="newreno", initial_window=10),
            flow("1 kB", name="after", start="9.999 s"),
            {"name": "endless", "from": "a", "to": "c"},
        ],
        traffic=[
            {"kind": "cbr", "from": "a", "to": "c", "rate": "10 kbit/s"},
            {"kind": "web", "name": "pages", "from": "a", "to": "c", "arrival_rate": 5,
             "sizes": "20 kB", "stop": "8 s"},
        ],
    )  # fmt: skip
    result = waterfill.run(document)
    rows = result.transfers.to_pylist()
    assert tuple(result.transfers.column_names) == transfers.COLUMNS
    started = result.summary["traffic"][1]["flows_started"]
    names = ["f"] * 3 + ["long", "after"] + ["pages"] * started
    assert [row["source"] for row in rows] == names
    assert [row["index"] for row in rows] == [0, 1, 2, 0, 0, *range(started)]
    assert [row["start_s"] for row in rows[:5]] == [0.0, 1.0, 2.0, 0.0, 9.999]
    assert {row["source"]: row["protocol"] for row in rows} == {
        "f": "cubic", "long": "newreno", "after": "cubic", "pages": "cubic"
    }  # fmt: skip
    for unfinished in rows[3:5]:
        for column in ("completed_s", "completion_s", "slowdown"):
            assert unfinished[column] is None
        assert unfinished["ideal_s"] > 0
    done = [row for row in rows if row["completed_s"] is not None]
    assert len(done) > started / 2
    for row in done:
        assert row["completion_s"] == pytest.approx(row["completed_s"] - row["start_s"])
        assert row["slowdown"] == pytest.approx(row["completion_s"] / row["ideal_s"])
        assert row["slowdown"] > 1 - 1e-9
    group = result.summary["groups"][0]["flow_completion_ms"]
    assert group["max"] == pytest.approx(1e3 * max(row["completion_s"] for row in rows[:3]))
    of_pages = [row["completed_s"] for row in rows if row["source"] == "pages"]
    completed = result.summary["traffic"][1]["flows_completed"]
    assert len(of_pages) - of_pages.count(None) == completed


def test_identical_fluid_flows_have_a_row_each():
    result = waterfill.run(
        scenario(protocol="maxnet", flow=[flow("100 kB", count=5)], duration="20 s"), on="fluid"
    )
    rows = result.transfers.to_pylist()
    assert [row["index"] for row in rows] == [0, 1, 2, 3, 4]
    assert len({row["completed_s"] for row in rows}) == 1
    assert all(row["slowdown"] > 0.9 for row in rows)


def test_files_hold_the_table_where_flows_have_a_size(tmp_path: Path):
    result = waterfill.run(scenario(flow=[flow("20 kB")], duration="2 s"))
    result.write(tmp_path / "sized")
    table = pq.read_table(tmp_path / "sized" / "transfers.parquet")
    assert table.replace_schema_metadata(None).equals(result.transfers)
    endless = waterfill.run(scenario(flow=[{"name": "f", "from": "a", "to": "c"}], duration="1 s"))
    endless.write(tmp_path / "endless")
    assert not (tmp_path / "endless" / "transfers.parquet").exists()
    assert endless.transfers.num_rows == 0
    assert tuple(endless.transfers.column_names) == transfers.COLUMNS


def test_a_kept_run_has_the_same_table(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(cache, "root", lambda: tmp_path)
    for flows in ([flow("20 kB")], [{"name": "f", "from": "a", "to": "c"}]):
        checked = from_dict(scenario(flow=flows, duration="2 s"))
        result = waterfill.run(checked)
        cache.store(checked, "sim", result)
        kept = cache.lookup(checked, "sim")
        assert kept is not None
        assert kept.transfers.to_pylist() == result.transfers.to_pylist()
        assert kept.transfers.schema == result.transfers.schema


def test_ideal_times_of_several_networks_are_those_of_each():
    """One computation for sources of different paths and protocols."""
    network = waterfill.run(
        scenario(flow=[flow("20 kB"), flow("30 kB", name="short", to="b")], duration="1 s")
    ).network
    both = [f for f in network.flows if f.size_bytes]
    none = {name: np.zeros(0) for name in transfers.ARRIVED}

    def ideal(flows):
        summary = [
            FlowSummary.read({"group": f.name, "index": 0, "start_s": 0.0, "completed_s": None})
            for f in flows
        ]
        found = transfers.collect(replace(network, flows=tuple(flows)), summary, none, 1.0)
        return transfers.ideal(found, network, HEADERS).time_s.tolist()

    assert ideal(both) == ideal(both[:1]) + ideal(both[1:])


def test_the_web_example_is_at_its_best_near_its_ideal():
    result = waterfill.run(ROOT / "examples" / "web.toml")
    slowdown = result.transfers["slowdown"].drop_null().to_numpy()
    assert slowdown.min() == pytest.approx(1.0, abs=1e-6)
    started = sum(t.get("flows_started", 0) for t in result.summary["traffic"])
    assert result.transfers.num_rows == started + 1  # the file


def test_a_run_read_back_has_its_transfers_or_says_what_is_missing(tmp_path: Path):
    pages = {"kind": "web", "from": "a", "to": "c", "arrival_rate": 20, "sizes": "5 kB"}
    result = waterfill.run(scenario(traffic=[pages], flow=[flow("9 kB")], duration="2 s"))
    result.write(tmp_path)
    found: waterfill.Result = waterfill.load(tmp_path)
    assert found.transfers.equals(result.transfers)
    (tmp_path / "transfers.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"transfers\.parquet: not a whole file"):
        _ = waterfill.load(tmp_path).transfers
    (tmp_path / "transfers.parquet").unlink()
    with pytest.raises(InputError, match=r"transfers\.parquet: no such file"):
        _ = waterfill.load(tmp_path).transfers


def test_a_pickled_run_has_its_transfers():
    pages = {"kind": "web", "from": "a", "to": "c", "arrival_rate": 20, "sizes": "5 kB"}
    result = waterfill.run(scenario(traffic=[pages], duration="2 s"))
    assert pickle.loads(pickle.dumps(result)).transfers.equals(result.transfers)
