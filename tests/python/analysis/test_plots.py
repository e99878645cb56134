"""Figures: distinct lines, labels, and drawn elements."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import waterfill
from waterfill.analysis import draw, plots, series
from waterfill.analysis.charts import Chart, Line
from waterfill.analysis.run_charts import PAGE, RunCharts
from waterfill.errors import InputError

SCENARIO = {
    "name": "two groups",
    "duration": "4 s",
    "protocol": "maxnet",
    "link": [{"name": "l", "from": "a", "to": "b", "rate": "20 Mbit/s", "delay": "5 ms"}],
    "flow": [
        {"name": "near", "path": ["l"], "count": 6},
        {"name": "far", "path": ["l"], "count": 6, "rtt": "40 ms"},
    ],
}


@pytest.fixture(scope="module")
def result() -> waterfill.Result:
    return waterfill.run(SCENARIO)


def test_28_lines_differ_in_colour_or_style():
    styles = list(map(draw.style, range(28)))
    assert len({(style["color"], style["linestyle"]) for style in styles}) == 28
    # Neighbours differ in both, for prints without colour.
    for one, other in itertools.pairwise(styles[:7]):
        assert one["color"] != other["color"]
        assert one["linestyle"] != other["linestyle"]


def test_a_band_is_the_range_of_the_flows_means(result):
    axis = plots.overview(result).axes[0]
    band = axis.collections[0].get_paths()[0].vertices
    average_s = result.summary["duration_s"] / 100
    means = []
    for flow in result.summary["flows"][:6]:
        rows = result.samples("flows", flow["name"])
        time_s, rate_bps = (rows[name].to_numpy() for name in ("time_s", "rate_bps"))
        _, own = series.intervals(time_s, rate_bps, average_s)
        means.append(own / 1e6)
    assert band[:, 1].max() == pytest.approx(np.max(means))
    assert axis.get_legend().get_texts()[0].get_text() == "near (median; bands: 80 % and all of 6)"


def test_a_band_has_the_median_and_80_percent_inside(result):
    axis = plots.overview(result).axes[0]
    everything, most = (axis.collections[i].get_paths()[0].vertices for i in (0, 1))
    assert most[:, 1].max() <= everything[:, 1].max()
    means = []
    for flow in result.summary["flows"][:6]:
        rows = result.samples("flows", flow["name"])
        time_s, rate_bps = (rows[name].to_numpy() for name in ("time_s", "rate_bps"))
        means.append(series.intervals(time_s, rate_bps, 0.04)[1] / 1e6)
    assert axis.lines[0].get_ydata() == pytest.approx(np.median(means, axis=0))
    assert most[:, 1].max() == pytest.approx(np.percentile(means, 90, axis=0).max())


def test_a_group_per_flow_is_one_band():
    flows = [{"name": f"f{i}", "path": ["l"]} for i in range(20)]
    figure = plots.rates(waterfill.run({**SCENARIO, "duration": "1 s", "flow": flows}))
    texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert texts == ["all flows (median; bands: 80 % and all of 20)"]


def test_axes_say_what_they_show(result):
    labels = [axis.get_ylabel() for axis in plots.overview(result).axes]
    # Samples are 0.1 s long, which is more than 1 % of the run.
    assert labels[:2] == ["rate (Mbit/s)\nmeans of 0.1 s", "peak queue (kB)\nof each 0.1 s"]
    assert labels[2] == "utilization (%)\nmeans of 0.1 s"
    assert labels[3] == "maxnet_price (s)\nmeans of 0.1 s"


def test_the_price_of_many_links_is_that_of_the_busiest():
    links = [
        {"name": f"l{i}", "from": f"n{i}", "to": f"n{i + 1}", "rate": "20 Mbit/s", "delay": "1 ms"}
        for i in range(10)
    ]
    free = [{"name": f"f{i}", "path": [f"l{i}"]} for i in range(10)]
    limits = [{} if i in (6, 9) else {"demand": f"{i + 1} Mbit/s"} for i in range(10)]
    flows = [flow | limit for flow, limit in zip(free, limits, strict=True)]
    run = waterfill.run({**SCENARIO, "duration": "1 s", "link": links, "flow": flows})
    lines = [line.get_label() for line in plots.overview(run).axes[3].lines]
    assert sorted(lines[:2]) == ["l6", "l9"]
    assert lines[2:] == ["l8", "l7", "l5", "l4", "l3", "l2"]
    charts = {chart.key: chart for chart in RunCharts(run, PAGE).all()}
    prices = charts["links-maxnet-price"]
    assert [line.name for line in prices.lines] == lines
    assert prices.y_label == "maxnet_price (s)"
    assert "of the 8 busiest of 10 link directions" in prices.note
    for few, words in ((free[:1], "busiest"), (free[:2], "2 busiest")):
        run = waterfill.run({**SCENARIO, "duration": "1 s", "link": links, "flow": few})
        assert f"of the {words} of 20 link directions" in RunCharts(run, PAGE).utilization().note


def test_a_signal_may_be_negative():
    """XCP's spare bandwidth is below zero while a queue drains: its axis must show that."""
    run = waterfill.run({**SCENARIO, "protocol": "xcp"})
    axis = plots.overview(run).axes[3]
    assert axis.get_ylabel().startswith("xcp_spare (Mbit/s)\n")
    lowest = min(line.get_ydata().min() for line in axis.lines)
    assert lowest < 0
    assert axis.get_ylim()[0] <= lowest


def test_a_long_legend_says_how_many_it_leaves_out():
    lines = [Line(f"line {number}", np.zeros(2), number, x=np.arange(2.0)) for number in range(30)]
    figure = draw.figure([Chart("many", "many", "x", "y", lines=lines)], size=(7.0, 3.0))
    texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert len(texts) == 14
    assert texts[-1] == "and 17 others"


def test_text_in_svg_is_text(result, tmp_path: Path):
    draw.save(plots.overview(result), tmp_path / "figure")
    assert ">utilization (%)<" in (tmp_path / "figure.svg").read_text(encoding="utf-8")


def test_the_palette_is_okabe_and_itos():
    theirs = {"#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"}
    ours = {style["color"] for style in map(draw.style, range(28))}
    assert ours == theirs - {"#F0E442"} | {"#000000"}
    assert {style["color"] for style in draw.named_styles(["red", "green-1", "Blue"])} <= theirs


def test_flows_named_after_colours_have_them():
    names = ["red-blue", "green-yellow", "blue-yellow", "blue-yellow-2", "other", "redder"]
    styles = draw.named_styles(names)
    colours = [style["color"] for style in styles]
    assert colours[:4] == ["#D55E00", "#009E73", "#0072B2", "#0072B2"]
    assert not set(colours[4:]) & set(colours[:4])
    assert len({(style["color"], style["linestyle"]) for style in styles}) == len(names)
    assert draw.named_styles(["a", "b"]) == [draw.style(0), draw.style(1)]


def test_averages_are_at_least_an_rtt_long():
    flow = {"name": "far", "path": ["l"], "rtt": "200 ms"}
    run = waterfill.run({**SCENARIO, "flow": [flow]})
    labels = [axis.get_ylabel() for axis in plots.overview(run).axes]
    assert labels[0] == "rate (Mbit/s)\nmeans of 0.2 s"
    assert labels[1] == "peak queue (kB)\nof each 0.2 s"


def test_pdf_repeats_and_keeps_its_text(result, tmp_path: Path):
    def written(name: str) -> bytes:
        figure = plots.rates(result)
        draw.resize(figure, "7x3")
        (path,) = draw.save(figure, tmp_path / name, ["pdf"])
        return path.read_bytes()

    first, second = written("a"), written("b")
    assert first == second
    assert first.startswith(b"%PDF")
    assert b"/MediaBox [ 0 0 504 216 ]" in first
    assert b"/FontFile2" in first  # TrueType, not outlines


@pytest.mark.parametrize("size", ["", "7", "7x", "x", "0x3", "7x-1", "7x1e9", "nanx3", "1x2x3"])
def test_sizes_out_of_range_are_refused(result, size):
    with pytest.raises(InputError, match="must be inches"):
        draw.resize(plots.rates(result), size)


def test_a_size_too_small_for_the_panels_is_refused(result):
    with pytest.raises(InputError, match="too small for the figure's panels"):
        draw.resize(plots.overview(result), "3.5x2.5")


def test_unknown_formats_are_refused(result, tmp_path: Path):
    with pytest.raises(InputError, match='unknown format "jpg"'):
        draw.save(plots.rates(result), tmp_path / "figure", ["pdf", "jpg"])
    assert list(tmp_path.iterdir()) == []


def test_text_of_figures_has_no_characters_that_xml_lacks():
    assert draw.printable("a\x1b\x9b\ufffe\uffff\udcffé") == "a" + 5 * "\ufffd" + "é"
