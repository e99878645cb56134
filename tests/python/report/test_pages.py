"""Tests of the pages of a comparison and of a sweep: their content as data."""

from __future__ import annotations

import json
import re

import pytest

from waterfill.analysis import compare
from waterfill.report import write


def written(folder) -> str:
    (path,) = write.write(folder)
    return path.read_text(encoding="utf-8")


def charts(page: str) -> dict:
    (text,) = re.findall(r'<script type="application/json" id="charts">(.*?)</script>', page, re.S)
    return json.loads(text)


def rows(page: str, key: str) -> list[list[str]]:
    (body,) = re.findall(rf'id="data-{key}">.*?<tbody>(.*?)</tbody>', page, re.S)
    lines = re.findall(r"<tr>(.*?)</tr>", body, re.S)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.S) for line in lines]


def test_a_comparison_has_one_scale_and_one_table(made_comparison):
    page = written(made_comparison)
    found = charts(page)
    small = [found[f"small-d{i}-rates"] for i in range(3)]
    assert len({(chart["y_max"], chart["y_label"]) for chart in small}) == 1
    assert {name for name in found if name.startswith("all-")} == {
        "all-cdf-completion_s", "all-cdf-slowdown",
    }  # fmt: skip
    assert found["all-cdf-slowdown"]["lines"][0]["name"] == "maxnet (4 flows)"
    table = rows(page, "runs")
    assert [row[0] for row in table] == ["maxnet", "xcp", "cubic"]
    document = json.loads((made_comparison / compare.DOCUMENT).read_text(encoding="utf-8"))
    expected = [run["compare"]["jain_index_of_shares"] for run in document["runs"].values()]
    assert [float(row[6]) for row in table] == pytest.approx(expected, abs=1e-4)
    assert page.count('role="tabpanel"') == 3
    assert "&lt;script&gt;hacked" in page
    assert "<script>hacked" not in page


def test_a_sweep_over_one_number_is_lines_with_bands(made_sweep):
    page = written(made_sweep)
    found = charts(page)
    chart = found["f0-0"]
    assert chart["title"] == "utilization against link.l.delay"
    assert chart["x_label"] == "link.l.delay (s)"
    assert chart["log_x"]
    maxnet, xcp = chart["lines"]
    assert (maxnet["name"], xcp["name"]) == ("maxnet", "xcp")
    assert xcp["x"] == [0.01, 0.02, 0.5]
    assert chart["y_label"] == "utilization (%)"
    assert xcp["y"] == pytest.approx([91, 90, 42])
    # t(0.975, 2) · 1 % / √3
    half = 4.3027 * 1 / 3**0.5
    assert xcp["high"][0] - xcp["y"][0] == pytest.approx(half, rel=1e-2)
    assert rows(page, "means")[1][:3] == ["maxnet", "0.02", "2 of 3"]
    assert len(rows(page, "points")) == 18
    assert "&lt;b&gt;no&lt;/b&gt;" in page
    assert "<b>no" not in page


def test_a_sweep_over_two_numbers_is_a_map(made_map):
    heat = charts(written(made_map))["f1-0"]["heat"]
    assert heat["name"] == "drops"
    assert heat["x"] == ["0.01", "0.02"]
    assert heat["y"] == ["1M", "2M", "4M"]
    assert heat["z"] == [[1, 1], [2, 2], [4, 4]]
    assert (heat["low"], heat["high"]) == (1, 4)
