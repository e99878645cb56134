"""Tests that charts, drawings and margins agree with the run and the theory."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest

from waterfill.analysis.charts import Chart, Line
from waterfill.studio import chart, nyquist, panels, topology
from waterfill.studio.answer import answer
from waterfill.studio.settings import Settings, known
from waterfill.theory import documents


@pytest.fixture(scope="module")
def dumbbell():
    return answer(Settings("dumbbell")).result


def test_ticks_are_round_and_inside():
    assert chart.ticks(0.0, 10.0) == [0, 2, 4, 6, 8, 10]
    assert chart.ticks(6.9, 7.6) == pytest.approx([7.0, 7.2, 7.4, 7.6])
    assert chart.ticks(3.0, 3.0) == [3.0]


def test_a_chart_is_well_formed_and_says_where_lines_end():
    x = np.array([0.0, 1.0, 2.0, 3.0])
    line = Line("a <b>", np.array([1.0, np.nan, 3.0, 4.0]), 1)
    share = Line("share of a", np.array([2.0, 2.0]), role="share", x=np.array([0.0, 3.0]))
    svg = chart.render(Chart("t", "t", "time (s)", "T & U", x, [share, line]))
    root = ET.fromstring(svg)
    assert "a <b> ends at 4" in root.attrib["aria-label"]
    # The gap parts the line in two; the third is the share, which has a swatch too.
    assert len(root.findall("polyline")) == 3
    assert svg.count("wf-guide") == 2


def test_names_at_the_ends_do_not_overlap():
    lines = [Line(f"flow {i}", np.array([0.0, 5.0]), i) for i in range(7)]
    root = ET.fromstring(chart.render(Chart("t", "t", "x", "y", np.arange(2.0), lines)))
    heights = [
        float(t.attrib["y"]) for t in root.findall("text") if (t.text or "").startswith("fl")
    ]
    assert len(heights) == 7
    assert min(np.diff(sorted(heights))) >= 14


def test_a_file_stands_alone(dumbbell):
    svg = chart.file(panels.all_charts(dumbbell), "dumbbell")
    ET.fromstring(svg)
    assert "--wf-c0" in svg
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")


def test_rates_are_the_run_s_and_shares_max_min_s(dumbbell):
    rates, *_ = panels.all_charts(dumbbell)
    assert [(band.name, band.count) for band in rates.bands] == [("near", 5), ("far", 5)]
    last = rates.bands[0].median[-1]
    mean = np.mean([f["rate_bps"] for f in dumbbell.summary["flows"][:5]]) / 1e6
    assert last == pytest.approx(mean, rel=0.03)
    # 100 Mbit/s × 0.9, less 20 Mbit/s of CBR, over ten flows.
    shares = [line for line in rates.lines if line.role == "share"]
    assert shares[-1].y[-1] == pytest.approx(7.0)
    assert "<td>maxnet</td>" in panels.table(dumbbell)


@pytest.mark.parametrize("protocol", ["maxnet", "xcp", "rcp", "aecp", "vcp"])
def test_margins_are_the_theory_s(protocol):
    values = {param.name: param.default for param in known()[protocol].params}
    curves = nyquist.curves(protocol, values, 0.1)
    about = SimpleNamespace(protocol=protocol, params=values)
    theory = documents.margin(about, 0.1)  # type: ignore[arg-type]
    assert curves[0].margins.phase_margin_deg == pytest.approx(theory["phase_margin_deg"], abs=0.1)
    # The curve passes the unit circle at the crossover.
    near = np.interp(curves[0].margins.crossover_rad_s, curves[0].omega, abs(curves[0].points))
    assert near == pytest.approx(1.0, rel=0.02)


def test_an_unstable_loop_is_called_so():
    values = {param.name: param.default for param in known()["rcp"].params}
    first, second = nyquist.sentences(nyquist.curves("rcp", values, 0.1))
    assert first.startswith("with a queue: unstable, phase margin -37°")
    assert second.startswith("empty queue: stable, phase margin 67°")


def test_a_chain_is_drawn_flat_and_others_apart():
    flat = topology.layout([("b", "c"), ("c", "d"), ("a", "b")])
    assert len({y for _, y in flat.values()}) == 1
    places = topology.layout(topology.ends(Settings("wan").load()))
    points = np.array(list(places.values()))
    gaps = np.hypot(*(points[:, None] - points[None]).T)[~np.eye(len(points), dtype=bool)]
    assert gaps.min() > 40
    svg = topology.draw(Settings("wan").load(), {"seattle-dallas": 0.5})
    ET.fromstring(svg)
    assert re.search(r"50 %", svg)
