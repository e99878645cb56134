"""Tests of the page of one run: its content as text and as data."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser

import pytest

from waterfill.analysis import looks
from waterfill.analysis.charts import colours_of
from waterfill.report import write
from waterfill.runs import backends
from waterfill.scenario.loading import from_dict


class Structure(HTMLParser):
    """Heading levels, tables' heads, and addresses of a page."""

    def __init__(self):
        super().__init__()
        self.levels: list[int] = []
        self.scripts: list[dict[str, str | None]] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        if re.fullmatch(r"h[1-6]", tag):
            self.levels.append(int(tag[1]))
        if tag == "script":
            self.scripts.append(known)
        self.addresses += [known[key] or "" for key in ("src", "href") if key in known]


def structure(text: str) -> Structure:
    found = Structure()
    found.feed(text)
    return found


@pytest.fixture(scope="module")
def page(made_run):
    (path,) = write.write(made_run)
    assert path == made_run / "report.html"
    return path.read_text(encoding="utf-8")


def charts(page: str) -> dict:
    (text,) = re.findall(r'<script type="application/json" id="charts">(.*?)</script>', page, re.S)
    return json.loads(text)


def test_it_shows_what_was_measured(page):
    found = charts(page)
    assert {"rates", "queues", "rtts", "utilization", "links-maxnet-price"} <= set(found)
    assert {"cdf-completion_s", "cdf-slowdown"} <= set(found)
    names = [line["name"] for line in found["rates"]["lines"]]
    assert "local[0]" in names
    assert any(name.startswith("max-min share of local[0]") for name in names)
    assert "Means of" in page
    assert "Peaks and means of each" in page
    for text in ("Topology:", "first: 20 Mbit/s", "waterfill run ", "Jain"):
        assert text in page
    assert "&#34;initial_window_packets&#34;" in page  # a default that the scenario does not name


def test_shares_are_those_of_the_allocation(page):
    rates = charts(page)["rates"]
    share = next(
        one for one in rates["lines"] if one["name"] == "max-min share of local[0] and 3 others"
    )
    # After the short flows have gone: 20 Mbit/s × 0.9 by five flows.
    assert share["y"][-1] == pytest.approx(18 / 5, rel=1e-3)
    assert rates["y_label"] == "rate (Mbit/s)"


def test_headings_are_in_order_and_nothing_is_loaded(page):
    found = structure(page)
    assert found.levels[0] == 1
    assert found.levels.count(1) == 1
    assert all(b <= a + 1 for a, b in zip(found.levels, found.levels[1:], strict=False))
    assert all(address.startswith("#") for address in found.addresses)
    assert all("src" not in script for script in found.scripts)
    assert "default-src &#39;none&#39;; script-src &#39;sha256-" in page


def test_names_are_escaped_wherever_they_stand(page):
    assert "<script>hacked" not in page
    assert "&lt;script&gt;hacked" in page
    assert "\\u003cscript\\u003ehacked" in page
    assert len(structure(page).scripts) == 3


def test_the_same_run_gives_the_same_page(made_run, page, tmp_path):
    again = tmp_path / made_run.name
    shutil.copytree(made_run, again)
    (path,) = write.write(again)
    assert path.read_text(encoding="utf-8") == page


def test_many_flows_are_bands_with_names(made_many):
    (path,) = write.write(made_many)
    assert path.stat().st_size < 5e6
    rates = charts(path.read_text(encoding="utf-8"))["rates"]
    assert [line["kind"] for line in rates["lines"]] == ["share"]
    (band,) = rates["bands"]
    assert band["name"] == "f (200 flows)"
    last = {key: band[key][-1] for key in ("low", "tenth", "median", "ninetieth", "high")}
    assert list(last.values()) == sorted(last.values())
    assert band["names"][band["max_of"][-1]].startswith("f[")
    assert len(rates["picks"]) == 200


def test_entries_of_a_large_fluid_run_have_a_page(tmp_path):
    link = {"name": "l", "from": "a", "to": "b", "rate": "200 Mbit/s", "delay": "5 ms"}
    flow = {"name": "f", "path": ["l"], "count": 10_001}
    scenario = {"duration": "200 ms", "protocol": "rcp", "link": [link], "flow": [flow]}
    backends.run(from_dict(scenario), on="fluid").write(tmp_path)
    (path,) = write.write(tmp_path)
    page = path.read_text(encoding="utf-8")
    assert "f ×10001" in page
    assert [line["kind"] for line in charts(page)["rates"]["lines"]] == ["line"]


def test_flows_named_after_colours_have_them():
    names = ["red-blue", "green-yellow", "blue-yellow", "blue-yellow-2", "other"]
    palette = [style["color"] for style in map(looks.style, range(14))]
    counted = colours_of(names)
    assert [palette[count] for count in counted] == [
        style["color"] for style in looks.named_styles(names)
    ]
    assert len(set(counted)) == len(names)
    assert colours_of([f"f{i}" for i in range(24)]) == list(range(24))


def test_collectives_have_a_table_and_their_messages_no_rows(tmp_path):
    document = {
        "duration": "2 ms", "protocol": "dctcp", "profile": "datacenter", "handshake": False,
        "fabric": {"kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts": 2,
                   "host_rate": "10 Gbit/s", "delay": "1 us"},
        "flow": [{"name": "other", "from": "h0", "to": "h2"}],
        "collective": [{"name": "sum", "kind": "all-reduce", "algorithm": "ring",
                        "size": "100 kB"}],
    }  # fmt: skip
    backends.run(from_dict(document)).write(tmp_path)
    (path,) = write.write(tmp_path)
    text = path.read_text(encoding="utf-8")
    table = re.search(r'<section[^>]*id="table-collectives".*?</section>', text, re.S)
    assert table is not None
    for words in ("sum", "all-reduce", "24", "Gbit/s", "slowest ÷ median", "least: each message"):
        assert words in table[0]
    assert "other" in text
    assert "sum-0-h0" not in re.search(r'<section[^>]*id="table-flows".*?</section>', text, re.S)[0]
