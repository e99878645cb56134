"""Tests of the study of laws in fabrics: its cases, one small run, tables and figures."""

from __future__ import annotations

import pytest

from validation.fabric import cases, report, study
from validation.fabric.cases import FabricCase, FabricRow
from waterfill.runs import backends

ROW = FabricRow(
    flows=100, unfinished=1, p50=1.5, p95=3.0, p99=4.0, small_p99=3.5, queue_bytes=2e5,
    paused_us=0.0, drops=0, incast_us=500.0, incast_ideal_us=400.0, wall_s=1.0,
)  # fmt: skip


def test_every_law_has_the_same_arrivals():
    assert len(cases.cases(cases.LAWS, cases.RATES_GBPS, 5)) == 9 * 2 * (6 + 2) * 5
    case = FabricCase(100, "255:1", 0.3, "maxnet-1", 2)
    one = cases.scenario(case)
    hosts = {node for link in one.link for node in (link.from_, link.to) if node[0] == "h"}
    assert (len(hosts), len(one.link)) == (256, 256 + 16 * 16)
    assert [source.initial_window for source in one.traffic] == [1, 1]
    other = cases.scenario(case._replace(law="hpcc"))
    assert [t.model_copy(update={"initial_window": None}) for t in one.traffic] == other.traffic


def test_a_run_is_measured(monkeypatch):
    monkeypatch.setattr(cases, "_shape", lambda _: {"kind": "fat-tree", "k": 4})
    monkeypatch.setattr(cases, "_UNIT_US", {100: 100})
    monkeypatch.setitem(cases.INCASTS, "64:1", (15, "20 kB"))
    case = FabricCase(100, "64:1", 0.3, "dctcp", 1)
    row = cases.measure(case, backends.run(cases.scenario(case)))
    assert row.incast_ideal_us == pytest.approx(24)
    assert 24 < row.incast_us < 100
    assert (row.drops, row.paused_us) == (0, 0)
    assert 1 <= row.p50 <= row.p95 <= row.p99
    assert 50e3 < row.queue_bytes < 300e3


def test_tables_and_figures_have_every_law(tmp_path):
    works = [("web-search", 0.3), ("web-search", 0.6), ("web-search", 0.8), ("64:1", 0.3)]
    found = {
        FabricCase(100, *work, law, seed): ROW._replace(p99=4.0 + seed)
        for work in works for law in cases.LAWS for seed in (1, 2)
    }  # fmt: skip
    text = report.tables(found)
    assert text.count("### ") == 4
    assert all(text.count(f"| `{law}` |") == 4 for law in cases.LAWS)
    assert "5.5 ± 6.4" in text
    report.draw(found, tmp_path / "fabric")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "fabric-incasts.png", "fabric-slowdowns.png"
    ]  # fmt: skip
    assert study.STUDY.minutes == 60
