import errno
import gc
import json
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from known import PROTOCOLS, ROOT
from waterfill.errors import InputError
from waterfill.network import resolve
from waterfill.scenario.document import SECTIONS, TABLES, Scenario
from waterfill.scenario.loading import from_dict, from_toml, load, tomllib
from waterfill.scenario.unsupported import UNSUPPORTED

BASE = """
name = "base"
duration = "10 s"
protocol = "maxnet"
[[link]]
name = "link1"
from = "r1"
to = "r2"
rate = "10 Mbit/s"
delay = "10 ms"
[[link]]
name = "link2"
from = "r2"
to = "r3"
rate = "20 Mbit/s"
delay = "10 ms"
[[flow]]
name = "long"
path = ["link1", "link2"]
[[flow]]
name = "short"
path = ["link1"]
[[traffic]]
kind = "cbr"
path = ["link2"]
rate = "1 Mbit/s"
[params.maxnet]
alpha = 0.5
"""
HEAD = BASE[: BASE.index("[[link]]")]
LINKS = BASE[BASE.index("[[link]]") : BASE.index("[[flow]]")]
FLOWS = BASE[BASE.index("[[flow]]") : BASE.index("[[traffic]]")]
TRAFFIC = BASE[BASE.index("[[traffic]]") : BASE.index("[params")]


def line_of(text):
    """The one line that this text's scenario is refused with."""
    with pytest.raises(InputError) as refused:
        resolve.to_core(from_toml(text, "S.toml"), PROTOCOLS)
    line = str(refused.value)
    assert "\n" not in line
    return line


def edited(old, new):
    assert BASE.count(old) >= 1, old
    return BASE.replace(old, new, 1)


def test_the_base_is_right():
    assert resolve.to_core(from_toml(BASE), PROTOCOLS).name == "base"


# Each line: what is written instead of what, and the line that a user reads.
ERRORS = {
    "unknown key of a link": (
        'rate = "10 Mbit/s"',
        'rat = "10 Mbit/s"',
        'link.link1.rat: unknown key, did you mean "rate"?',
    ),
    "unknown key of the root": (
        "duration",
        "duraton",
        'duraton: unknown key, did you mean "duration"?',
    ),
    "unknown section": (
        "[[traffic]]",
        "[[trafic]]",
        'trafic: unknown key, did you mean "traffic"?',
    ),
    "unknown key of a flow": (
        'path = ["link1"]',
        'path = ["link1"]\ncuont = 3',
        'flow.short.cuont: unknown key, did you mean "count"?',
    ),
    "missing key": (
        'rate = "10 Mbit/s"',
        "",
        'link.link1.rate: missing; write a rate such as "622 Mbit/s"',
    ),
    "missing duration": (
        'duration = "10 s"',
        "",
        'duration: missing; write a time such as "60 s"',
    ),
    "missing name": ('name = "short"', "", "flow.1.name: missing; write a text"),
    "wrong unit": (
        '"10 Mbit/s"',
        '"10 ms"',
        'link.link1.rate: must be a rate such as "622 Mbit/s", got "10 ms"',
    ),
    "no unit": (
        '"10 Mbit/s"',
        "10",
        'link.link1.rate: must be a rate such as "622 Mbit/s", got 10',
    ),
    "negative rate": (
        '"10 Mbit/s"',
        '"-10 Mbit/s"',
        'link.link1.rate: must be above zero, got "-10 Mbit/s"',
    ),
    "zero rate": (
        '"10 Mbit/s"',
        '"0 Mbit/s"',
        'link.link1.rate: must be above zero, got "0 Mbit/s"',
    ),
    "rate too low for a packet": (
        '"10 Mbit/s"',
        '"0.001 bit/s"',
        "link.link1.rate: a packet would take more than 1000000 s to send, got 0.001 bit/s",
    ),
    "zero duration": ('"10 s"', '"0 s"', 'duration: must be above zero, got "0 s"'),
    "endless duration": (
        '"10 s"',
        '"1e7 s"',
        'duration: must be at most 1000000 s, got "1e7 s"',
    ),
    "NaN rate": (
        '"10 Mbit/s"',
        "nan",
        'link.link1.rate: must be a rate such as "622 Mbit/s", got NaN',
    ),
    "NaN loss": (
        'delay = "10 ms"',
        "loss = nan",
        "link.link1.loss: must be finite, got NaN",
    ),
    "NaN parameter": (
        "alpha = 0.5",
        "alpha = nan",
        "params.maxnet.alpha: must be finite, got NaN",
    ),
    "loss above one": (
        'delay = "10 ms"',
        "loss = 1.5",
        "link.link1.loss: must be in [0, 1], got 1.5",
    ),
    "router of an unknown protocol": (
        'delay = "10 ms"',
        'routers = ["maxnot"]',
        'link.link1.routers: unknown protocol "maxnot", did you mean "maxnet"?',
    ),
    "target of zero": (
        'delay = "10 ms"',
        "target = 0",
        "link.link1.target: must be in (0, 1], got 0",
    ),
    "negative weight": (
        'name = "short"',
        'name = "short"\nweight = -1',
        "flow.short.weight: must be above 0, got -1",
    ),
    "count too large": (
        'name = "long"',
        'name = "long"\ncount = 10_000_001',
        "flow.long.count: must be from 1 to 10000000, got 10000001",
    ),
    "count beyond any memory": (
        'name = "long"',
        f'name = "long"\ncount = {10**18}',
        f"flow.long.count: must be from 1 to 10000000, got {10**18}",
    ),
    "counts too large together": (
        'name = "long"',
        'name = "long"\ncount = 10_000_000',
        "flow: all flows must have counts of at most 10000000 together, got 10000001",
    ),
    "count of zero": (
        'name = "long"',
        'name = "long"\ncount = 0',
        "flow.long.count: must be from 1 to 10000000, got 0",
    ),
    "count not whole": (
        'name = "long"',
        'name = "long"\ncount = 1.5',
        "flow.long.count: must be a whole number from 1 to 10000000, got 1.5",
    ),
    "flow without a route": (
        'path = ["link1"]',
        'from = "r1"\nto = "r9"',
        'flow.short.to: no link ends at "r9"; add a link or a `path`',
    ),
    "flow with nothing of a route": (
        'path = ["link1"]',
        "",
        "flow.short.path: missing; write a path, or from and to",
    ),
    "traffic without a route": (
        'path = ["link2"]',
        "",
        "traffic.cbr.path: missing; write a path, or from and to",
    ),
    "unknown link in a path": (
        '["link1", "link2"]',
        '["link1", "lnk2"]',
        'flow.long.path: unknown link "lnk2", did you mean "link2"?',
    ),
    "unknown link in a traffic's path": (
        'path = ["link2"]',
        'path = ["lnk2"]',
        'traffic.cbr.path: unknown link "lnk2", did you mean "link2"?',
    ),
    "path that is not connected": (
        'from = "r2"',
        'from = "r4"',
        'flow.long.path: "link1" and "link2" share no node',
    ),
    "path that does not start at from": (
        'path = ["link1"]',
        'path = ["link1"]\nfrom = "r3"',
        'flow.short.path: leads from "r1" to "r2", must lead from "r3"',
    ),
    "link twice in a path": (
        '["link1", "link2"]',
        '["link1", "link1"]',
        'flow.long.path: must name each link once, got "link1" twice',
    ),
    "path without links": (
        'path = ["link1"]',
        "path = []",
        "flow.short.path: must name at least one link, got []",
    ),
    "path that is no list": (
        'path = ["link1"]',
        'path = "link1"',
        'flow.short.path: must be a list, got "link1"',
    ),
    "no way back": (
        'rate = "10 Mbit/s"',
        'rate = "10 Mbit/s"\nduplex = false',
        (
            'flow.long.path: no route from "r3" to "r1" for acknowledgements; add a link or a '
            "`return_path`"
        ),
    ),
    "link named twice": (
        'name = "link2"',
        'name = "link1"',
        'link.link1.name: must be unique, got "link1" twice',
    ),
    "flow named twice": (
        'name = "short"',
        'name = "long"',
        'flow.long.name: must be unique, got "long" twice',
    ),
    "traffic named twice": (
        TRAFFIC,
        2 * TRAFFIC.replace("[[traffic]]", '[[traffic]]\nname = "x"'),
        'traffic.x.name: must be unique, got "x" twice',
    ),
    "link to itself": (
        'to = "r2"',
        'to = "r1"',
        'link.link1.to: must differ from `from`, got "r1"',
    ),
    "name that a key's path cannot hold": (
        'name = "short"',
        'name = "sh.ort"',
        'flow.sh.ort.name: must not contain . [ ] : = or ", got "sh.ort"',
    ),
    "name that begins with a blank": (
        'name = "short"',
        'name = " short"',
        'flow. short.name: must not begin or end with a space, got " short"',
    ),
    "empty name": (
        'name = "short"',
        'name = ""',
        "flow.1.name: must not be empty",
    ),
    "stop before start": (
        'name = "short"',
        'name = "short"\nstart = "3 s"\nstop = "2 s"',
        "flow.short.stop: must be after the start at 3 s, got 2 s",
    ),
    "traffic that stops before it starts": (
        'rate = "1 Mbit/s"',
        'rate = "1 Mbit/s"\nstart = "3 s"\nstop = "3 s"',
        "traffic.cbr.stop: must be after the start at 3 s, got 3 s",
    ),
    "start after the run": (
        'name = "short"',
        'name = "short"\nstart = "10 s"',
        "flow.short.start: must be before the end of the run at 10 s, got 10 s",
    ),
    "stagger beyond the run": (
        'name = "short"',
        'name = "short"\ncount = 12\nstagger = "1 s"',
        "flow.short.stagger: every flow must start before 10 s, got a last start at 11 s",
    ),
    "jitter beyond the run": (
        'name = "short"',
        'name = "short"\nstart_jitter = "11 s"',
        "flow.short.start_jitter: every flow must start before 10 s, got a last start at 11 s",
    ),
    "window of a number": (
        'name = "base"',
        "measure = 5",
        "measure: must be two times, the start and the end, got 5",
    ),
    "negative start": (
        'name = "short"',
        'name = "short"\nstart = "-1 s"',
        'flow.short.start: must not be negative, got "-1 s"',
    ),
    "no links": (LINKS, "", "link: no link; add a [[link]]"),
    "neither flows nor traffic": (
        FLOWS + TRAFFIC,
        "",
        "flow: no flow and no traffic; add a [[flow]] or a [[traffic]]",
    ),
    "empty list of links": (
        HEAD + LINKS,
        HEAD + "link = []\n",
        "link: no link; add a [[link]]",
    ),
    "link as a table": (
        LINKS + FLOWS,
        FLOWS + "[link]\nname = 'link1'\n",
        'link: must be tables, each written as [[link]], got {"name": "link1"}',
    ),
    "not a table": (
        "[params.maxnet]\nalpha = 0.5",
        "[params]\nmaxnet = 3",
        "params.maxnet: must be a table, got 3",
    ),
    "unknown protocol": (
        'protocol = "maxnet"',
        'protocol = "maxnt"',
        'protocol: unknown protocol "maxnt", did you mean "maxnet"?',
    ),
    "unknown protocol of a flow": (
        'name = "short"',
        'name = "short"\nprotocol = "cubix"',
        'flow.short.protocol: unknown protocol "cubix", did you mean "cubic"?',
    ),
    "unknown protocol like no other": (
        'protocol = "maxnet"',
        'protocol = "zzz"',
        'protocol: unknown protocol "zzz"; known: aecp, cubic, maxnet; '
        "a law of your own: --law FILE",
    ),
    "protocol of another backend": (
        'name = "short"',
        'name = "short"\nprotocol = "cubic"',
        'flow.short.protocol: "cubic" does not run on sim; choose one of maxnet, aecp',
    ),
    "no protocol": (
        'protocol = "maxnet"',
        "",
        'protocol: missing, and flow.long names none; write protocol = "maxnet" at the top or '
        "in the flow",
    ),
    "parameters of an unknown protocol": (
        "[params.maxnet]",
        "[params.maxent]",
        'params.maxent: unknown protocol "maxent", did you mean "maxnet"?',
    ),
    "unknown parameter": (
        "alpha = 0.5",
        "alhpa = 0.5",
        'params.maxnet.alhpa: unknown parameter of maxnet, did you mean "alpha"?',
    ),
    "ratio for a rate": (
        "alpha = 0.5",
        "x_max = 0.5",
        'params.maxnet.x_max: must be a rate such as "622 Mbit/s", got 0.5',
    ),
    "text for a ratio": (
        "alpha = 0.5",
        'alpha = "0.5"',
        'params.maxnet.alpha: must be a number, got "0.5"',
    ),
    "time parameter without a unit": (
        "alpha = 0.5",
        "t = 0.4",
        'params.maxnet.t: must be a time such as "80 ms", got 0.4',
    ),
    "number for a flag": (
        "alpha = 0.5",
        "average = 1",
        "params.maxnet.average: must be true or false, got 1",
    ),
    "unknown choice": (
        "alpha = 0.5",
        'order = "rate"',
        'params.maxnet.order: must be one of "xi-first", "rate-first", got "rate"',
    ),
    "RTT below the path's own": (
        'path = ["link1", "link2"]',
        'path = ["link1", "link2"]\nrtt = "39 ms"',
        "flow.long.rtt: must be at least the path's RTT of 40 ms, got 39 ms",
    ),
    "packet of headers": (
        'name = "base"',
        'packet_size = "48 B"',
        "packet_size: must be above 48 B, the headers of maxnet, got 48 B",
    ),
    "half a byte": (
        'name = "base"',
        'packet_size = "4 bit"',
        'packet_size: must be a whole number of B, got "4 bit"',
    ),
    "window outside the run": (
        'name = "base"',
        'measure = ["5 s", "11 s"]',
        "measure: must be a start and a later end within the run of 10 s, got 5 s to 11 s",
    ),
    "window backwards": (
        'name = "base"',
        'measure = ["5 s", "4 s"]',
        "measure: must be a start and a later end within the run of 10 s, got 5 s to 4 s",
    ),
    "window of one time": (
        'name = "base"',
        'measure = ["5 s"]',
        'measure: must be two times, the start and the end, got ["5 s"]',
    ),
    "window of numbers": (
        'name = "base"',
        'measure = ["5 s", 6]',
        'measure[1]: must be a time such as "80 ms", got 6',
    ),
    "samples beyond use": (
        'name = "base"',
        'sample = "1 ns"',
        "sample: the run has more than 10000000 samples, got 1 ns; use a longer time",
    ),
    "negative seed": (
        'name = "base"',
        "seed = -1",
        "seed: must be from 0 to 9223372036854775807, got -1",
    ),
    "flag in words": (
        'delay = "10 ms"',
        'duplex = "no"',
        'link.link1.duplex: must be true or false, got "no"',
    ),
    "name that is a number": ('name = "base"', "name = 3", "name: must be a text, got 3"),
    "cbr without a rate": (
        'rate = "1 Mbit/s"',
        "",
        'traffic.cbr.rate: missing; write a rate such as "622 Mbit/s"',
    ),
    "unknown kind of traffic": (
        'kind = "cbr"',
        'kind = "vbr"',
        'traffic.vbr.kind: must be "cbr", "poisson", "onoff" or "web", got "vbr"',
    ),
    "line break in a value": (
        '"10 Mbit/s"',
        '"10\\nMbit"',
        'link.link1.rate: must be a rate such as "622 Mbit/s", got "10\\nMbit", did you mean '
        '"10 Mbit/s"?',
    ),
    "not TOML": (
        'name = "base"',
        "name = base",
        "not valid TOML: Invalid value (at line 2, column 8)",
    ),
    "a key given twice": (
        'name = "base"',
        'name = "base"\nname = """\na = 1\n"""',
        "not valid TOML: name has a value already (at line 5, column 4)",
    ),
}


@pytest.mark.parametrize(("old", "new", "line"), ERRORS.values(), ids=ERRORS)
def test_error(old, new, line):
    assert line_of(edited(old, new)) == f"S.toml: {line}"


def test_what_a_backend_does_not_support_is_refused_and_not_ignored():
    found = from_toml(edited('delay = "10 ms"', 'delay = "10 ms"\nqueue = "red"'), "S.toml")
    with pytest.raises(InputError) as caught:
        resolve.to_core(found, PROTOCOLS, "fluid")
    assert str(caught.value) == (
        'S.toml: link.link1.queue: "red" is not supported by the fluid backend; use "droptail"'
    )


@pytest.mark.parametrize("backend", UNSUPPORTED)
def test_unsupported_keys_exist(backend):
    for path in UNSUPPORTED[backend]:
        section, _, name = path.rpartition(".")
        model = {**SECTIONS, **TABLES}[section] if section else Scenario
        assert name in model.model_fields


def test_the_arithmetic_is_a_parameter_of_a_law():
    message = "arithmetic: moved; write params.LAW.arithmetic, for example params.maxnet.arithmetic"
    text = edited('name = "base"', 'name = "base"\narithmetic = "kernel"')
    assert line_of(text) == f"S.toml: {message}"
    with pytest.raises(InputError, match=re.escape(f"command line: {message}")):
        from_toml(BASE, "S.toml", ["arithmetic=real"])


@pytest.mark.parametrize(
    ("assignment", "read"),
    [
        ("params.maxnet.alpha=0.25", lambda s: s.params["maxnet"]["alpha"] == 0.25),
        ('link.link1.rate="1 Gbit/s"', lambda s: s.link[0].rate == 1e9),
        ("link.link1.rate=1 Gbit/s", lambda s: s.link[0].rate == 1e9),
        (" link.link1.rate = 1 Gbit/s ", lambda s: s.link[0].rate == 1e9),
        ("flow.long.count=30", lambda s: s.flow[0].count == 30),
        ("seed=4", lambda s: s.seed == 4),
        ("protocol=aecp", lambda s: s.protocol == "aecp"),
        ("traffic.cbr.rate=3 Mbit/s", lambda s: s.traffic[0].rate == 3e6),
        ('flow.short.path=["link2"]', lambda s: s.flow[1].path == ["link2"]),
        ("params.aecp.a.b=3", lambda s: s.params["aecp"] == {"a": {"b": 3}}),
        ("name=2007-01-01", lambda s: s.name == "2007-01-01"),
        ("name=a = b", lambda s: s.name == "a = b"),
        ("link.link1.duplex=true", lambda s: s.link[0].duplex is True),
    ],
)
def test_set(assignment, read):
    assert read(from_toml(BASE, "S.toml", [assignment]))


@pytest.mark.parametrize(
    ("assignment", "line"),
    [
        ("seed", 'set: must be KEY=VALUE, got "seed"; type --set seed=2'),
        ("=3", 'set: must be KEY=VALUE, got "=3"; type --set flow.long.count=3'),
        (
            "flow..count=3",
            'set: must be KEY=VALUE, got "flow..count=3"; type --set flow.long.count=3',
        ),
        ("sede=4", 'sede: unknown key, did you mean "seed"?'),
        ("flow.long=3", "flow.long: incomplete key; write flow.NAME.KEY=VALUE"),
        ("flow.lnog.count=3", 'flow.lnog.count: unknown [[flow]], did you mean "long"?'),
        ("flow.long.cuont=3", 'flow.long.cuont: unknown key, did you mean "count"?'),
        ("name.x=3", "name.x: not a key of a table"),
        (
            "seed.x=3",
            'seed: must be a whole number from 0 to 9223372036854775807, got {"x": 3}',
        ),
        (
            "link.link1.rate=10",
            'link.link1.rate: must be a rate such as "622 Mbit/s", got 10',
        ),
        (
            "flow.long.stop=0 s",
            "flow.long.stop: must be after the start at 0 s, got 0 s",
        ),
        ("protocol=maxnt", 'protocol: unknown protocol "maxnt", did you mean "maxnet"?'),
        ("flow.long.path=[3]", "flow.long.path[0]: must be a text, got 3"),
    ],
)
def test_a_wrong_set_names_the_command_line(assignment, line):
    with pytest.raises(InputError) as refused:
        resolve.to_core(from_toml(BASE, "S.toml", [assignment]), PROTOCOLS)
    assert str(refused.value) == f"command line: {line}"


def test_a_set_leaves_the_dictionary_alone():
    document = tomllib.loads(BASE)
    from_dict(document, sets=["flow.long.count=9", "params.maxnet.alpha=0.1"])
    assert document == tomllib.loads(BASE)


def test_a_file_that_is_missing_a_directory_not_text_or_not_toml(tmp_path):
    def refusal(path):
        with pytest.raises(InputError) as refused:
            load(path)
        return str(refused.value).removeprefix(f"{path}: ")

    assert refusal(tmp_path / "none.toml").startswith("no such file; `waterfill new` lists")
    assert refusal(tmp_path).startswith("a directory, not a scenario file; type the path")
    assert refusal(f"{tmp_path}/\0").endswith("embedded null byte")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b'name = "\xff"')
    assert refusal(binary) == "not UTF-8: invalid byte at offset 8"
    (tmp_path / "bad.toml").write_text("[[link")
    assert refusal(tmp_path / "bad.toml").startswith("not valid TOML: ")
    (tmp_path / "twice.toml").write_text("seed = 1\nseed = 2\n")
    assert "seed has a value already (at line 2" in refusal(tmp_path / "twice.toml")
    (tmp_path / "single.toml").write_text("[flow]\n[flow]\n")
    assert refusal(tmp_path / "single.toml").endswith("each flow starts with [[flow]], not [flow]")
    (tmp_path / "deep.toml").write_text("a = " + "[" * 100_000)
    assert refusal(tmp_path / "deep.toml").startswith("not valid TOML: ")
    (tmp_path / "law.py").write_text("import waterfill\n")
    advice = f"; for laws in Python: waterfill check --law {tmp_path / 'law.py'}"
    assert refusal(tmp_path / "law.py").endswith(advice)
    (tmp_path / "digits.toml").write_text("seed = " + "9" * 10_000)
    assert "not valid TOML" in refusal(tmp_path / "digits.toml")
    (tmp_path / "empty.toml").write_text("")
    assert refusal(tmp_path / "empty.toml") == 'duration: missing; write a time such as "60 s"'


def test_long_files_read_as_short_ones_do_and_refuse_with_the_same_words(monkeypatch):
    pytest.importorskip("rtoml", reason="rtoml is not installed, tomllib reads all files")
    flow = '[[flow]]\nname = "f{0}"\npath = ["link1"]\nstart = "{0}.5 us"\nweight = 1.{0}\n'
    text = BASE + "".join(flow.format(number) for number in range(6000))
    parsers = []

    def counted(name, real):
        return lambda text: parsers.append(name) or real(text)

    for module in (sys.modules["rtoml"], tomllib):
        monkeypatch.setattr(module, "loads", counted(module.__name__, module.loads))
    found = from_toml(text)
    assert (parsers, len(found.flow)) == (["rtoml"], 6002)
    assert found == from_dict(tomllib.loads(text), "<toml>")
    assert from_toml(text.replace("\n", "\r\n")) == found
    for wrong in (text + "x", text + '[[flow]]\nname = "f', text + "seed = 1\nseed = 1\n"):
        with pytest.raises(tomllib.TOMLDecodeError) as short:
            tomllib.loads(wrong)
        with pytest.raises(InputError) as long:
            from_toml(wrong)
        words = str(short.value).replace("Cannot overwrite a value", "seed has a value already")
        assert str(long.value) == f"<toml>: not valid TOML: {words}"


def test_a_file_that_may_not_be_read(monkeypatch):
    def refuse(*_arguments):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)  # root may read everything
    with pytest.raises(InputError) as refused:
        load("S.toml")
    monkeypatch.undo()
    assert str(refused.value) == ("S.toml: cannot read the scenario file: Permission denied")


def test_defaults():
    found = from_toml(BASE.replace('name = "base"', ""), "dir/two-hop.toml")
    assert found.name == "two-hop"
    assert (found.packet_size, found.ack_size, found.seed, found.sample) == (1500, 40, 1, 0.1)
    assert found.measure_s == (20 / 3, 10)
    assert found.rto_min == 1
    flow = found.flow[0]
    assert (flow.count, flow.start, flow.stop, flow.stagger) == (1, 0, None, 0)
    assert (flow.initial_window, flow.weight, flow.delayed_ack) == (None, 1, None)
    assert (flow.size, flow.rtt, flow.demand, flow.pacing, flow.ecn) == (None,) * 5
    link = found.link[0]
    assert (link.duplex, link.loss, link.loss_reverse, link.target) == (True, 0, 0, None)
    assert (link.buffer.amount, link.buffer.unit, link.queue) == (1, "bdp", "droptail")
    assert (link.queue_params, link.mark_at, link.loss_model) == (None,) * 3
    assert (link.reorder, link.duplicate, link.shaper) == (None, 0, None)


def test_a_windows_file_is_text_too(tmp_path):
    path = tmp_path / "S.toml"
    path.write_bytes(b"\xef\xbb\xbf" + BASE.replace("\n", "\r\n").encode())
    assert load(path).name == "base"


def test_the_reference_loads_and_has_every_key():
    path = ROOT / "docs" / "scenario.toml"
    found = load(path)
    resolve.to_core(found, PROTOCOLS)
    text = path.read_text()
    for model in (Scenario, *SECTIONS.values()):
        for name, field in model.model_fields.items():
            key = field.alias or name
            assert f"{key} = " in text or f"[[{key}]]" in text or f"[{key}." in text, key


EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_load(path):
    assert resolve.to_core(load(path), PROTOCOLS).flows


@pytest.mark.parametrize(
    "path", [*EXAMPLES, ROOT / "docs" / "scenario.toml"], ids=lambda path: path.stem
)
def test_as_run_is_the_same_scenario(path):
    found = load(path, ["seed=7"])
    again = from_toml(found.to_toml())
    assert again.seed == 7
    assert again.to_toml() == found.to_toml()
    assert resolve.to_core(again, PROTOCOLS) == resolve.to_core(found, PROTOCOLS)


@given(
    rate=st.floats(1.0, 1e15),
    delay=st.floats(0, 10, allow_subnormal=False),
    size=st.integers(1, 10**15),
    loss=st.floats(0, 1),
)
def test_as_run_keeps_every_float(rate, delay, size, loss):
    document = {
        "duration": "9 s",
        "protocol": "maxnet",
        "link": [
            {
                "name": "l",
                "from": "a",
                "to": "b",
                "rate": f"{rate!r} bit/s",
                "delay": f"{delay!r} s",
                "loss": loss,
            }
        ],
        "flow": [{"name": "f", "path": ["l"], "size": f"{size} B"}],
    }
    rate_bps = float(f"{rate!r}")
    if 8 * 1500 / rate_bps > 1e6:
        return
    link = from_toml(from_dict(document).to_toml()).link[0]
    flow = from_toml(from_dict(document).to_toml()).flow[0]
    assert (link.rate, link.delay, link.loss, flow.size) == (rate, delay, loss, size)


def test_unnamed_traffic_is_named_by_its_kind():
    def names(*written):
        text = edited(TRAFFIC, "".join(TRAFFIC.replace("[[traffic]]", w) for w in written))
        found = from_toml(text)
        return [found.traffic_name(i) for i in range(len(found.traffic))]

    plain, named = "[[traffic]]", '[[traffic]]\nname = "cbr"'
    assert names(plain) == ["cbr"]
    assert names(plain, plain) == ["cbr[0]", "cbr[1]"]
    assert names(named, plain) == ["cbr", "cbr[1]"]


def test_the_core_s_refusals_name_the_file_or_the_command_line():
    found = from_toml(BASE, "S.toml", ["params.maxnet.t=0 s"])
    refusals = {
        "params.maxnet.alpha: must be x": "S.toml: params.maxnet.alpha: must be x",
        "params.maxnet.t: must be x": "command line: params.maxnet.t: must be x",
        "it cannot: no": "S.toml: it cannot: no",
    }
    for refusal, line in refusals.items():
        assert str(found.core_error(ValueError(refusal))) == line


def test_many_entries_are_read_in_seconds():
    flows = [{"name": f"f{i}", "path": ["l"]} for i in range(20_000)]
    link = {"name": "l", "from": "a", "to": "b", "rate": "1 Gbit/s", "delay": "1 ms"}
    document = {"duration": "9 s", "protocol": "maxnet", "link": [link], "flow": flows}
    assert len(resolve.to_core(from_dict(document), PROTOCOLS).flows) == 20_000


def test_the_published_schema_is_current():
    published = (ROOT / "docs" / "scenario.schema.json").read_text()
    made = subprocess.run(
        [sys.executable, "-m", "waterfill.scenario"], capture_output=True, text=True, check=True
    ).stdout
    assert json.loads(published) == json.loads(made), (
        "run: python -m waterfill.scenario > docs/scenario.schema.json"
    )


def test_the_schema_asks_for_units():
    schema = json.loads((ROOT / "docs" / "scenario.schema.json").read_text())
    link = schema["$defs"]["Link"]
    assert link["additionalProperties"] is False
    assert link["properties"]["rate"]["type"] == "string"
    assert link["properties"]["delay"]["default"] == "0 s"
    assert link["properties"]["buffer"]["default"] == "1 bdp"
    assert schema["$defs"]["Flow"]["properties"]["count"]["maximum"] == 10**7
    assert set(link["required"]) == {"name", "from", "to", "rate"}


def test_loading_leaves_the_garbage_collector_as_it_was():
    with pytest.raises(InputError):
        from_toml("nonsense")
    assert gc.isenabled()
    gc.disable()
    try:
        with pytest.raises(InputError):
            from_toml("nonsense")
        assert not gc.isenabled()
    finally:
        gc.enable()
