"""Figures: distinct lines, labels, and drawn elements."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import waterfill
from waterfill.analysis import compare, draw, looks, plots, run_charts, series
from waterfill.analysis.charts import Chart, Line
from waterfill.analysis.run_charts import PAGE, RunCharts
from waterfill.errors import InputError

SCENARIO = {
    "name": "two groups",
    "duration": "4 s",
    "protocol": "maxnet",
    "link": [{"name": "l", "from": "a", "to": "b", "rate": "20 Mbit/s", "delay": "5 ms"}],
    "flow": [
        {"name": "near", "path": ["l"], "count": 7},
        {"name": "far", "path": ["l"], "count": 7, "rtt": "40 ms"},
    ],
}


@pytest.fixture(scope="module")
def result() -> waterfill.Result:
    return waterfill.run(SCENARIO)


def test_28_lines_differ_in_colour_or_style():
    styles = list(map(looks.style, range(28)))
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
    for flow in result.summary["flows"][:7]:
        rows = result.samples("flows", flow["name"])
        time_s, rate_bps = (rows[name].to_numpy() for name in ("time_s", "rate_bps"))
        _, own = series.intervals(time_s, rate_bps, average_s)
        means.append(own / 1e6)
    assert band[:, 1].max() == pytest.approx(np.max(means))
    assert [text.get_text() for text in axis.texts] == ["near (median of 7)", "far (median of 7)"]


def test_a_band_has_the_median_and_80_percent_inside(result):
    axis = plots.overview(result).axes[0]
    everything, most = (axis.collections[i].get_paths()[0].vertices for i in (0, 1))
    assert most[:, 1].max() <= everything[:, 1].max()
    means = []
    for flow in result.summary["flows"][:7]:
        rows = result.samples("flows", flow["name"])
        time_s, rate_bps = (rows[name].to_numpy() for name in ("time_s", "rate_bps"))
        means.append(series.intervals(time_s, rate_bps, 0.04)[1] / 1e6)
    (median,) = (line for line in axis.lines if line.get_label() == "near (median of 7)")
    assert median.get_ydata() == pytest.approx(np.median(means, axis=0))
    assert most[:, 1].max() == pytest.approx(np.percentile(means, 90, axis=0).max())


def test_a_group_per_flow_is_one_band():
    flows = [{"name": f"f{i}", "path": ["l"]} for i in range(20)]
    figure = plots.rates(waterfill.run({**SCENARIO, "duration": "1 s", "flow": flows}))
    texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert texts == ["all flows (median of 20)", "max-min share"]


def test_axes_say_what_they_show(result):
    labels = [axis.get_ylabel() for axis in plots.overview(result).axes]
    # Samples are 0.1 s long, which is more than 1 % of the run.
    assert labels == ["rate (Mbit/s)", "peak queue (kB)", "utilization (%)", "maxnet price (s)"]


def test_units_follow_a_short_and_fast_run():
    link = {**SCENARIO["link"][0], "rate": "100 Gbit/s", "delay": "1 us"}
    short = {"duration": "2 ms", "sample": "10 us", "profile": "datacenter", "link": [link]}
    run = waterfill.run({**SCENARIO, **short, "flow": [{"name": "f", "path": ["l"]}]})
    drawn = plots.overview(run)
    assert drawn.axes[0].get_ylabel() == "rate (Gbit/s)"
    assert drawn.axes[-1].get_xlabel() == "time (ms)"
    assert drawn.axes[-1].get_xlim() == (0, 2)
    assert drawn.axes[0].lines[-1].get_xdata().max() == pytest.approx(2, rel=0.02)
    assert "means of 20 µs; peak queue: peaks of each 20 µs" in drawn.sheet.note


@pytest.fixture(scope="module")
def many() -> waterfill.Result:
    links = [
        {"name": f"l{i}", "from": f"n{i}", "to": f"n{i + 1}", "rate": "20 Mbit/s", "delay": "1 ms"}
        for i in range(9)
    ]
    flows = [{"name": f"f{i}", "path": [f"l{i}"], "start": f"{i / 10} s"} for i in range(9)]
    changed = {"duration": "1 s", "link": links, "flow": flows, "protocol": "cubic"}
    return waterfill.run({**SCENARIO, **changed})


def test_the_tail_of_queues_is_the_share_of_samples_above_a_length(many):
    (line,) = run_charts.queue_tails({"cubic": many}).lines
    samples = many.links["queue_bytes"].to_numpy()
    for length, share in zip(line.x, line.y, strict=True):
        if np.isfinite(share):
            assert share == pytest.approx((samples > length * 1000 * (1 + 1e-9)).mean())
    assert line.x.max() * 1000 == pytest.approx(samples.max())
    assert np.isfinite(line.y[:-1]).all()


def test_all_links_have_a_heat_map_in_their_order(many):
    drawn = waterfill.plot(many, "links")
    (image,) = drawn.axes[1].get_images()
    values = image.get_array()
    assert values.shape[0] == len(many.summary["links"]) == 18
    late = values[16]  # l8, whose flow starts at 0.8 s
    assert late[: len(late) // 2].max() == 0
    assert late[-1] > 50
    assert drawn.sheet.note.startswith("18 link directions; queues: means of each sample of 0.1 s")


def test_a_run_of_many_links_has_their_figure(many, result, tmp_path):
    for run, drawn in ((many, True), (result, False)):
        comparison = compare.of({"cubic": run})
        comparison.write(comparison.document(), tmp_path / str(drawn))
        assert (tmp_path / str(drawn) / "links.png").exists() is drawn


def test_the_caption_says_how_values_were_combined(result):
    # Samples are 0.1 s long, which is more than 1 % of the run.
    assert plots.overview(result).sheet.note == (
        "Rate, utilization, maxnet price: means of 0.1 s; peak queue: peaks of each 0.1 s; "
        "bands: the middle 80 % of the flows, and all."
    )


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
    assert prices.y_label == "maxnet price (s)"
    assert "of the 8 busiest of 10 link directions" in prices.note
    for few, words in ((free[:1], "busiest"), (free[:2], "2 busiest")):
        run = waterfill.run({**SCENARIO, "duration": "1 s", "link": links, "flow": few})
        assert f"of the {words} of 20 link directions" in RunCharts(run, PAGE).utilization().note


def test_a_signal_may_be_negative():
    """XCP's spare bandwidth is below zero while a queue drains: its axis must show that."""
    run = waterfill.run({**SCENARIO, "protocol": "xcp"})
    axis = plots.overview(run).axes[3]
    assert axis.get_ylabel().startswith("xcp spare (Mbit/s)")
    lowest = min(line.get_ydata().min() for line in axis.lines)
    assert lowest < 0
    assert axis.get_ylim()[0] <= lowest


def test_a_long_legend_says_how_many_it_leaves_out():
    lines = [Line(f"line {number}", np.zeros(2), number, x=np.arange(2.0)) for number in range(60)]
    figure = draw.figure([Chart("many", "many", "x", "y", lines=lines)], size=(7.0, 3.0))
    texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert len(texts) == 36
    assert texts[-1] == "and 25 others"


def test_text_in_svg_is_text(result, tmp_path: Path):
    draw.save(plots.overview(result), tmp_path / "figure")
    assert ">utilization (%)<" in (tmp_path / "figure.svg").read_text(encoding="utf-8")


def test_the_palette_is_okabe_and_itos():
    theirs = {"#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"}
    ours = {style["color"] for style in map(looks.style, range(7))}
    assert ours == theirs - {"#F0E442"} | {"#000000"}
    assert {style["color"] for style in looks.named_styles(["red", "green-1", "Blue"])} <= theirs
    assert len({style["color"] for style in map(looks.style, range(14))}) == 14


def test_flows_named_after_colours_have_them():
    names = ["red-blue", "green-yellow", "blue-yellow", "blue-yellow-2", "other", "redder"]
    styles = looks.named_styles(names)
    colours = [style["color"] for style in styles]
    assert colours[:4] == ["#D55E00", "#009E73", "#0072B2", "#4B2E9E"]
    assert len(set(colours)) == len(names)
    assert looks.named_styles(["a", "b"]) == [looks.style(0), looks.style(1)]


def test_averages_are_at_least_an_rtt_long():
    flow = {"name": "far", "path": ["l"], "rtt": "200 ms"}
    run = waterfill.run({**SCENARIO, "flow": [flow]})
    assert "means of 0.2 s; peak queue: peaks of each 0.2 s" in plots.overview(run).sheet.note


def test_pdf_repeats_and_keeps_its_text(result, tmp_path: Path):
    def written(name: str) -> bytes:
        figure = draw.styled(plots.rates(result), looks.SCREEN, "7x3")
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
        draw.styled(plots.rates(result), looks.SCREEN, size)


def test_a_size_too_small_for_the_panels_is_refused(result):
    with pytest.raises(InputError, match=r'too small to be read, got "3\.5x2\.5"') as refused:
        draw.styled(plots.overview(result), looks.SCREEN, "3.5x2.5")
    enough = refused.value.advice.removeprefix("type at least --size ")
    assert enough.startswith("3.5x")
    draw.styled(plots.overview(result), looks.SCREEN, enough)


def test_unknown_formats_are_refused(result, tmp_path: Path):
    with pytest.raises(InputError, match='unknown format "jpg"'):
        draw.save(plots.rates(result), tmp_path / "figure", ["pdf", "jpg"])
    assert list(tmp_path.iterdir()) == []


def test_text_of_figures_has_no_characters_that_xml_lacks():
    assert looks.printable("a\x1b\x9b\ufffe\uffff\udcffé") == "a" + 5 * "\ufffd" + "é"
