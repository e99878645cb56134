"""`waterfill.Scenario`: the same scenario, checks and sentences as a file's."""

from __future__ import annotations

import doctest
import importlib
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import waterfill
from waterfill import builder
from waterfill.analysis import compare, notebook
from waterfill.scenario import document
from waterfill.scenario.loading import from_toml

TOML = """
duration = "2 s"
protocol = "maxnet"
seed = 4
[[link]]
name = "l"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "5 ms"
buffer = "20 packets"
[[flow]]
name = "f"
path = ["l"]
start = "250 ms"
size = "300 kB"
[[flow]]
name = "g"
from = "b"
to = "a"
rtt = "80 ms"
[[traffic]]
kind = "cbr"
path = ["l"]
rate = "1 Mbit/s"
[params.maxnet]
mu = 0.9
"""


def written() -> waterfill.Scenario:
    found = waterfill.Scenario("scenario", duration_s=2, protocol="maxnet", seed=4)
    found.link("l", "a", "b", rate_bps=10_000_000, delay_s=0.005, buffer_packets=20)
    found.flow("f", path=["l"], start_s=0.25, size_bytes=300_000).flow("g", "b", "a", rtt="80 ms")
    return found.traffic("cbr", path=["l"], rate_bps=1e6).params("maxnet", mu=0.9)


def test_the_same_scenario_as_a_file():
    file = from_toml(TOML).model_dump()
    assert written().checked().model_dump() == file
    assert from_toml(written().to_toml()).model_dump() == file
    assert waterfill.Scenario.from_toml(TOML).set(seed=4).checked().model_dump() == file
    assert "[[link]]" in written().to_toml()


def test_every_value_is_written_as_it_is_read_back():
    odd = waterfill.Scenario(
        'a "name"\t\x7f', duration="2 s", protocol="maxnet", measure=("1 s", "2 s")
    )
    odd.link("l ü", "a", "b", "10 Mbit/s", queue="red", queue_params={"max_p": 0.2, "ecn": True})
    odd.link("m", "b", "c", "10 Mbit/s", event=[{"at": "1 s", "rate": "5 Mbit/s"}], duplex=True)
    odd.flow("f", path=["l ü", "m"], ecn=False, weight=2)
    odd.params("maxnet", mu=0.9, average=True)
    assert from_toml(odd.to_toml()).model_dump() == odd.checked().model_dump()
    assert odd.check()["flows"][0]["forward"] == ["l ü", "m"]


def test_a_file_is_read_with_what_it_names(tmp_path):
    (tmp_path / "rates.csv").write_text("0 s, 10 Mbit/s\n1 s, 5 Mbit/s\n")
    path = tmp_path / "S.toml"
    path.write_text(TOML.replace('buffer = "20 packets"', 'rate_trace = "rates.csv"'))
    found = waterfill.Scenario.from_file(path).set(duration="3 s")
    assert found.checked().duration == 3
    assert found.checked().link == waterfill.load(path).link
    with pytest.raises(waterfill.InputError, match="<scenario>: duration: must be a time"):
        found.set(duration="3 h")
    assert found.checked().duration == 3
    path.write_text(TOML.replace("10 Mbit/s", "10 Mbps"))
    with pytest.raises(waterfill.InputError, match=re.escape(f"{path}: link.l.rate")):
        waterfill.Scenario.from_file(path)


@pytest.mark.parametrize(
    ("build", "key", "text"),
    [
        (lambda s: s.link("k", "b", "c", "10 Mbps"), "link.k.rate", '[[link]]\nname = "k"\n'
         'from = "b"\nto = "c"\nrate = "10 Mbps"\n'),
        (lambda s: s.flow("h", path=["m"]), "flow.h.path", '[[flow]]\nname = "h"\npath = ["m"]\n'),
        (lambda s: s.flow("h", path=["l"], wait=1), "flow.h.wait",
         '[[flow]]\nname = "h"\npath = ["l"]\nwait = 1\n'),
        (lambda s: s.flow("f", path=["l"]), "flow.f.name", '[[flow]]\nname = "f"\npath = ["l"]\n'),
    ],
)  # fmt: skip
def test_errors_are_those_of_a_file(build, key, text):
    sections, params = TOML.split("[params.maxnet]")
    with pytest.raises(waterfill.InputError) as of_file:
        waterfill.run(from_toml(f"{sections}{text}[params.maxnet]{params}", "S.toml"))
    with pytest.raises(waterfill.InputError) as of_builder:
        build(written()).run()
    assert of_builder.value.key == key
    assert of_builder.value.file == "<scenario>"
    assert (of_builder.value.key, of_builder.value.message) == (
        of_file.value.key,
        of_file.value.message,
    )


def test_numbers_with_a_suffix():
    with pytest.raises(waterfill.InputError) as error:
        written().link("k", "b", "c", rate_bps="10 Mbit/s")
    expected = '<scenario>: link.k.rate_bps: must be a number, got "10 Mbit/s"'
    assert str(error.value) == expected
    with pytest.raises(waterfill.InputError, match=r"not allowed together with rate_bps"):
        written().link("k", "b", "c", "10 Mbit/s", rate_bps=1e7)
    exact = waterfill.Scenario(duration_s=0.1 + 0.2).to_dict()["duration"]
    assert builder._forms("link")["delay_s"][0] == "delay"
    assert document.TIME.parse(exact) == 0.1 + 0.2


@pytest.mark.parametrize(
    ("keys", "section", "named"),
    [
        (builder.LinkKeys, "link", {"name", "from", "to", "rate", "delay"}),
        (builder.FlowKeys, "flow", {"name", "from", "to", "path"}),
        (builder.TrafficKeys, "traffic", {"kind", "name", "from", "to", "path"}),
        (builder.CollectiveKeys, "collective", {"name", "kind"}),
        (builder.RootKeys, "scenario", {"name", *builder._SECTIONS, "params"}),
    ],
)
def test_every_key_of_a_file_is_typed(keys, section, named):
    model = document.SECTIONS.get(section, document.Scenario)
    of_file = {field.alias or name for name, field in model.model_fields.items()}
    suffixed = {name for name in builder._forms(section) if name != "initial_window_packets"}
    assert keys.__optional_keys__ | named == of_file | suffixed


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_notebooks_show_flows_and_links_escaped():
    evil = "<script>alert(1)</script>"
    many = waterfill.Scenario(evil, duration="1 s", protocol="maxnet")
    many.link("l", "a", "b", "10 Mbit/s", "5 ms").flow("<b>f&", path=["l"], count=25)
    shown = Tags(many.run()._repr_html_())
    assert set(shown.names) <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
    assert "<b>f&[0]" in shown.texts
    assert any(text.startswith(evil) for text in shown.texts)
    assert "and 5 others" in shown.texts
    assert shown.names.count("tr") == 1 + notebook.MAX_ROWS + 1 + 2


def test_comparisons_show_a_row_per_protocol():
    found = written().compare(["maxnet", "rcp"])
    assert isinstance(found, compare.Comparison)
    shown = Tags(found._repr_html_())
    assert shown.names.count("tr") == 3
    assert {"maxnet", "rcp", "bottleneck l:rev"} <= set(shown.texts)
    with pytest.raises(waterfill.InputError, match=r'unknown protocol "rcq", did you mean "rcp"'):
        written().compare(["rcq"])


def test_run_takes_a_builder_and_results_plot():
    result = waterfill.run(written(), seed=9)
    assert result.summary["seed"] == 9
    assert result.plot("rates").axes
    with pytest.raises(waterfill.InputError, match="unknown figure"):
        result.plot("prices of eggs")


HOMES = {*waterfill._HOMES.values(), "theory"}
PUBLIC = sorted({f"waterfill.{name}" for name in HOMES} | {"waterfill"})


@pytest.mark.parametrize("name", PUBLIC)
def test_examples_in_docstrings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module: Any = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    "name", ["Result", "Scenario", "compare", "load", "maxmin", "plot", "protocols", "run"]
)
def test_public_names_have_an_example(name):
    finder = doctest.DocTestFinder(recurse=True)
    found = finder.find(getattr(waterfill, name), name, globs={})
    assert any(test.examples for test in found)


def test_numpy_integers_are_whole_numbers():
    plain, numpy = (
        waterfill.Scenario("s", duration="1 s", protocol="maxnet", seed=kind(3))
        .link("l", "a", "b", "10 Mbit/s", "5 ms")
        .flow("f", "a", "b", count=kind(2))
        for kind in (int, np.int64)
    )
    assert numpy.to_toml() == plain.to_toml()
    assert numpy.checked() == plain.checked()


def test_protocols_to_compare_may_be_one_text():
    one = waterfill.Scenario("s", duration="1 s").link("l", "a", "b", "10 Mbit/s", "5 ms")
    assert list(one.flow("f", "a", "b").compare("maxnet, rcp").results) == ["maxnet", "rcp"]


def test_notebooks_show_traffic_and_what_covers_the_whole_run():
    web = waterfill.Scenario("w", duration="1 s", protocol="maxnet")
    web.link("l", "a", "b", "10 Mbit/s", "5 ms").traffic("web", "a", "b", arrival_rate=20)
    shown = Tags(web.run()._repr_html_())
    assert shown.names.count("table") == 2
    assert {"traffic", "web", "flows started"} <= set(shown.texts)
    assert any("retransmissions: whole run" in text for text in shown.texts)
    assert "flow" not in shown.texts


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: waterfill.run(None), "run: scenario: must be the path"),  # type: ignore[arg-type]
        (lambda: waterfill.run(5), "run: scenario: must be the path"),  # type: ignore[arg-type]
        (lambda: from_toml_run(on=None), "run: on: must be a backend's name"),
        (lambda: from_toml_run(on=["sim"]), "run: on: must be a backend's name"),
        (lambda: from_toml_run(threads="x"), "threads: must be a whole number or None"),
        (
            lambda: waterfill.Scenario.from_toml(TOML).compare([5]),  # type: ignore[list-item]
            "compare: protocols: must be names",
        ),
        (
            lambda: waterfill.sweep(waterfill.Scenario.from_toml(TOML), grid=5),  # type: ignore[arg-type]
            "sweep: grid: must be",
        ),
    ],
)
def test_arguments_of_another_type_are_input_errors(call, said):
    with pytest.raises(waterfill.InputError, match=said):
        call()


def from_toml_run(**arguments: Any) -> object:
    return waterfill.run(waterfill.Scenario.from_toml(TOML), **arguments)
