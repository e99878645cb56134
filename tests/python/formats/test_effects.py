"""Options of `import` and `generate`: each one changes the scenario, or is refused."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from waterfill.errors import InputError
from waterfill.formats import effects
from waterfill.formats.build import FORMATS, RULES, Options, generated, imported
from waterfill.formats.writing import text

# Without rates, lengths or places, so that every default is used.
PLAIN = 'graph [ node [ id 0 label "A" ] node [ id 1 label "B" ] edge [ source 0 target 1 ] ]'
TRACE = "1\n1\n50\n150\n200\n"
HTSIM = "Nodes 4\nConnections 1\n0->3 start 0 size 2000000\n"
SOURCES = {
    "gml": PLAIN,
    "graphml": """<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph>
<node id="A"/><node id="B"/><edge source="A" target="B"/></graph></graphml>""",
    "sndlib": """?SNDlib native format; type: network; version: 1.0
NODES ( \n A ( 0 0 ) \n B ( 1 900 ) \n C ( 2 0 ) \n)
LINKS ( \n L1 ( A B ) 0 0 0 0 ( ) \n L2 ( B C ) 40 0 0 0 ( ) \n)
DEMANDS ( \n D1 ( A C ) 1 30 UNLIMITED \n)
""",
    "hpcc": "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 25Gbps 1us 0\n",
    "htsim": HTSIM,
    "htsim-topo": """Nodes 4
Tiers 2
Podsize 4
Tier 0
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Tier 1
Downlink_speed_Gbps 100
Radix_Down 2
Downlink_Latency_ns 1000
""",
    "repetita": """NODES 3
label x y
a 0 0
b 0 0
c 0 0

EDGES 4
label src dest weight bw delay
e0 0 1 1 1000 500
e1 1 0 1 1000 500
e2 1 2 1 1000 500
e3 2 1 1 1000 500
""",
    "rocketfuel": "a b 3\nb a 3\nb c 5\nc b 5\n",
    "trace": TRACE,
}
# Where the sample does not take the option.
TABLES = {("trace", "--unit"): "0,1e6\n1,2\n2,2\n", ("trace", "--shift"): "5,1e6\n6,2\n7,2\n"}
SIZES = {"fat-tree": [4], "leaf-spine": [2, 2, 2], "rail-optimized": [2, 2, 2],
         "torus": [3, 3], "dumbbell": [3],
         "parking-lot": [3], "wan": [9]}  # fmt: skip
VALUES = {
    "--delay-unit": {"delay_unit_s": 1e-3},
    "--bin": {"bin_s": 0.05}, "--shift": {"shift": True},
    "--oversubscription": {"oversubscription": 2.0},
    "--rate": {"rate_bps": 3e9}, "--delay": {"delay_s": 3e-3}, "--unit": {"unit_bps": 3e6},
    "--pairs": {"pairs": 2}, "--load": {"load": 0.25}, "--count": {"count": 3},
    "--size": {"size_bytes": 77}, "--traffic": {"pattern": "incast"}, "--sizes": {"sizes": "rpc"},
}  # fmt: skip
TRAFFIC = {
    chosen: {
        "pattern": chosen.partition("--traffic ")[2] or None,
        "sizes": "rpc" if "--sizes" in chosen else None,
    }
    for chosen in effects.TRAFFIC
}


def source_of(folder: Path, name: str) -> str:
    if name == "topohub":
        pytest.importorskip("topohub")
        return "sndlib/polska"
    path = folder / "source.weights.intra"
    path.write_text(SOURCES[name], encoding="utf-8")
    return str(path)


def test_every_format_has_a_sample():
    assert {*SOURCES, "topohub"} == set(FORMATS)
    assert set(SIZES) == set(RULES)


@pytest.mark.parametrize("option", [*effects.LINKS, "--count"])
@pytest.mark.parametrize("name", FORMATS)
def test_option_of_a_format_changes_the_scenario_or_is_refused(tmp_path, name, option):
    one, source = FORMATS[name], source_of(tmp_path, name)
    options = Options() if one.flows else Options(pattern="permutation")
    if name == "topohub" and option in ("--rate", "--unit"):
        options = Options(pattern="demands")
    if (name, option) in TABLES:
        Path(source).write_text(TABLES[name, option])
    able = [*one.options, *([] if one.flows else ["--count"])]
    if option == "--shift" and name == "trace":
        with pytest.raises(InputError, match="the first time must be 0 s, got 5 s; add --shift"):
            imported(name, source, options)
        assert "shift = true" in text(imported(name, source, Options(shift=True)), "reno", 1)
        return
    changed = replace(options, **VALUES[option])
    if option in able:
        before, after = (text(imported(name, source, o), "reno", 1) for o in (options, changed))
        assert before != after
    else:
        with pytest.raises(InputError, match=f"{option}: no effect on {name}.*; remove it"):
            imported(name, source, changed)


@pytest.mark.parametrize("option", effects.LINKS)
@pytest.mark.parametrize("name", RULES)
def test_option_of_a_rule_changes_the_network_or_is_refused(name, option):
    changed = Options(**VALUES[option])
    if option in RULES[name].options:
        plans = [generated(name, SIZES[name], o).links for o in (Options(), changed)]
        assert plans[0] != plans[1]
    else:
        with pytest.raises(InputError, match=f"{option}: no effect on {name}"):
            generated(name, SIZES[name], changed)


@pytest.mark.parametrize("option", ["--pairs", "--load", "--count", "--size", "--traffic"])
@pytest.mark.parametrize("chosen", effects.TRAFFIC)
def test_option_of_a_traffic_changes_it_or_is_refused(tmp_path, chosen, option):
    if chosen == "--flows" and option == "--traffic":
        given = {"pattern": "incast"}
    else:
        given = {**TRAFFIC[chosen], **VALUES[option]} if option != "--traffic" else TRAFFIC[chosen]
    base = TRAFFIC[chosen]
    if chosen == "--flows":
        file = tmp_path / "flows.csv"
        file.write_text("source,sink\nA,B\n")
        base, given = {**base, "flows": file}, {**given, "flows": file}
    name = "sndlib" if chosen == "--traffic demands" or chosen == "--flows" else ""
    source = source_of(tmp_path, name) if name else ""

    def written(options: Options) -> str:
        layout = imported(name, source, options) if name else generated("torus", [3, 3], options)
        return text(layout, "reno", 1)

    if option not in effects.TRAFFIC[chosen]:
        with pytest.raises(InputError, match=f"{option}: no effect with {chosen}, got .*; remove"):
            written(Options(**given))
    elif option == "--traffic":
        written(Options(**given))
    else:
        assert written(Options(**base)) != written(Options(**given))


def test_a_default_that_no_link_takes_is_refused(tmp_path):
    path = tmp_path / "g.gml"
    path.write_text(PLAIN.replace("target 1", 'target 1 capacity "1 Gbit/s" dist 3'))
    with pytest.raises(InputError, match='--rate: no effect as each link has its own, got "3 Gbit'):
        imported("gml", str(path), Options(rate_bps=3e9))
    with pytest.raises(InputError, match="--delay: no effect as each link has its own"):
        imported("gml", str(path), Options(delay_s=0.5))


def test_a_unit_that_the_load_cancels_is_refused():
    pytest.importorskip("topohub")
    for options in (Options(load=0.5), Options(pattern="gravity")):
        with pytest.raises(InputError, match="--unit: no effect with --"):
            imported("topohub", "sndlib/polska", replace(options, unit_bps=3e6))


def test_messages_name_the_option_and_its_value(waterfill, tmp_path):
    (tmp_path / "island.gml").write_text(PLAIN)
    (tmp_path / "flows.csv").write_text("source,sink,start\nA,B,500\n")
    ran = waterfill("import", "gml", "island.gml", "--flows", "flows.csv", "--duration", "10 s")
    assert (ran.code, ran.err) == (
        2, "--duration: must be above 500 s, the last start of a flow, got 10 s; or write "
        '--origin "500 s"\n'
    )  # fmt: skip
    ran = waterfill("import", "gml", "island.gml", "--shift")
    assert (ran.code, ran.err) == (2, "--shift: no effect on gml; remove it\n")


COMMANDS = """
import trace in.tr --size "1 MB"
import trace in.tr --sizes web-search
import trace in.tr --load 3
import htsim in.cm --size "1 kB"
import htsim in.cm --sizes web-search
import htsim in.cm --load 3 --pairs 5
import htsim in.cm --rate "1 Gbit/s" --unit "1 bit/s"
import gml island.gml --flows flows.csv --traffic incast --sizes web-search
import gml island.gml --flows flows.csv --size "1 kB" --pairs 7 --load 2
import gml island.gml --traffic incast --load 0.5
import --load 2
generate --protocol xcp
generate wan 5 --delay "1 ms"
"""


@pytest.mark.parametrize("line", COMMANDS.strip().splitlines())
def test_a_command_with_an_option_without_effect_is_refused(waterfill, tmp_path, line):
    for name, content in (("in.tr", TRACE), ("in.cm", HTSIM),
                          ("island.gml", PLAIN), ("flows.csv", "source,sink\nA,B\n")):  # fmt: skip
        (tmp_path / name).write_text(content)
    ran = waterfill(*shlex.split(line))
    assert (ran.code, ran.out) == (2, "")
    assert ": no effect " in ran.err
    assert len(ran.err.splitlines()) == 1
