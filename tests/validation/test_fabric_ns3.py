"""Tests of the comparison with ns3-datacenter: its files, its output, and what is judged."""

from __future__ import annotations

import math

import numpy as np
import pytest

from validation.fabric_ns3 import cases, peer, study
from validation.fabric_ns3.cases import FabricCase
from waterfill.formats import hpcc
from waterfill.runs import backends
from waterfill.scenario.loading import from_dict

WEB = FabricCase("web-search", "hpcc", 1)


@pytest.mark.parametrize("kind", ["incast", "joins", "web-search"])
def test_ns3_reads_the_network_and_flows_of_the_scenario(kind, tmp_path):
    case = FabricCase(kind, "hpcc", 333)
    peer.write_files(case, tmp_path)
    layout = hpcc.topology(tmp_path / "topology.txt")
    probes = 2 if kind == "incast" else 0
    assert len(layout.hosts) == case.hosts + probes
    links = [link for link in layout.links if link.delay_s > 2e-9]
    assert [(link.rate_bps, round(link.delay_s * 1e9)) for link in links] == [
        (wire.rate_bps, wire.delay_ns) for wire in case.wires
    ]
    ends = [(int(link.start[1:]), int(link.end[1:])) for link in links]
    assert ends == [(w.a + probes * (w.a >= case.hosts), w.b + probes) for w in case.wires]
    flows = hpcc.flows(tmp_path / "flows.txt", layout)
    document = case.document("ns3", fair_hosts=False)
    for row, flow, ours in zip(flows, case.flows, document["flow"], strict=True):
        assert row.ends == (ours["from"], ours["to"]) == (f"n{flow.source}", f"n{flow.sink}")
        assert f"{row.start_s:.9f} s" == ours["start"]
        assert row.size_bytes == 1000 * flow.packets
        assert ours["size"] == f"{1008 * flow.packets} B"


def test_both_have_the_same_packets_and_base_rtt():
    result = backends.run(
        from_dict(FabricCase("incast", "hpcc", 5000).document("ns3", fair_hosts=True))
    )
    first = result.transfers.slice(0, 1).to_pylist()[0]
    # 500 packets of 1090 B at 25 Gbit/s, stored once more; 88 B over both links back.
    ideal_s = (501 * 1090 + 2 * 88) * 8 / 25e9 + 16e-6
    assert first["ideal_s"] == pytest.approx(ideal_s, rel=1e-9)
    assert FabricCase("incast", "hpcc").base_rtt_s == pytest.approx(16.64e-6)
    assert WEB.base_rtt_s == pytest.approx(8.2e-6)


def test_the_programs_output_is_read(tmp_path, monkeypatch):
    program = tmp_path / "program"
    program.write_text("""#!/bin/sh
for q in 10 70 30; do echo "ToR 0 Port 10 throughput 0 txBytes 0 qlen $q time 1"; done
echo "ToR 0 Port 1 throughput 0 txBytes 0 qlen 900 time 1"
echo 0b000101 0b000a01 10000 2 500000 100000 250000 1 > times.txt
[ -z "$MALLOC_PERTURB_" ] || echo 0b000001 0b000a01 10000 1 500000 100000 150000 1 >> times.txt
""")
    program.chmod(0o755)
    monkeypatch.setenv(peer.VARIABLE, str(program))
    case = FabricCase("incast", "hpcc")
    times_s, queue = peer.run(case)
    assert (times_s[:2].tolist(), queue) == (pytest.approx([150e-6, 250e-6]), 70)
    assert np.isnan(times_s[2:]).all()
    as_built, _ = peer.run(case, cleared=False)
    assert math.isnan(as_built[0])


def test_the_study_says_what_it_needs(monkeypatch):
    monkeypatch.delenv(peer.VARIABLE, raising=False)
    assert "NS3_DATACENTER=PATH" in peer.NS3_DATACENTER.lacks()


def row(case, scale=1.0, queue=100_000):
    times = [1e-3] * len(case.flows)
    side = {"times_s": times, "queue": 100_000, "drops": 0, "ideal_s": [1e-4] * len(times)}
    ours = side | {"times_s": [scale * time for time in times], "queue": queue}
    return {study.NS3: side, study.OURS: ours, study.PAPER: side}


@pytest.mark.parametrize(
    ("case", "scale", "queue", "problem"),
    [
        (FabricCase("incast", "hpcc"), 1.02, 100_000, ""),
        (FabricCase("incast", "hpcc"), 1.04, 100_000, "last completion +4.0 %"),
        (FabricCase("incast", "hpcc"), 1.0, 106_000, "queue +6.0 %"),
        (FabricCase("joins", "hpcc"), 0.96, 100_000, "flow 1: -4.0 %"),
        (WEB, 1.09, 100_000, ""),
        (WEB, 0.89, 100_000, "p99: -11.0 %"),
    ],
)
def test_differences_above_the_goal_are_reported(case, scale, queue, problem):
    lines = study.failed({case: row(case, scale, queue)})
    assert any(problem in line for line in lines) if problem else not lines


def test_tables_and_figure_have_every_law(tmp_path):
    chosen = [
        FabricCase(kind, law, 1) for law in cases.LAWS for kind in ("incast", "joins", "web-search")
    ]
    found = {case: row(case, 1.01) for case in chosen}
    table = study.text(found)
    assert table.count("`hpcc`, ns3 |") == table.count("`powertcp`, ns3 |") == 2
    assert "(+1.0, +1.0, +1.0 %)" in table
    study.draw(found, tmp_path / "figure")
    assert list(tmp_path.glob("figure.*"))
