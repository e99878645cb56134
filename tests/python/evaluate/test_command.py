"""`waterfill evaluate` as a user types it: table, files, exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

LAWS = """
import waterfill

class Slow:
    def __init__(self, connection):
        self.window_bytes = connection.packet_bytes
    def on_ack(self, ack):
        pass
    def limit(self):
        return self.window_bytes, None

class Broken(Slow):
    def on_ack(self, ack):
        raise ZeroDivisionError

class NotFinite(Slow):
    def limit(self):
        return float("nan"), None

LAWS = {
    name: waterfill.PythonLaw(source=law)
    for name, law in {"slow": Slow, "broken": Broken, "nan": NotFinite}.items()
}
"""


RECORD = """
suite = "small 1.0"
law = "maxnet"
quick = false
[options]
against = ["cubic", "window"]
routers = "all"
seeds = "auto"
precision = 0.05
set = []
[verdicts]
"""


@pytest.fixture
def evaluate(waterfill, suite):
    return lambda *arguments: waterfill("evaluate", "--suite", str(suite), *arguments)


def test_the_table_has_verdicts_then_boundaries_then_what_was_not_evaluated(evaluate):
    ran = evaluate("cubic", "--seeds", "1")
    assert ran.code == 0
    places = [
        ran.out.index(text)
        for text in ("mixed", "2.10 Queue: buffer: meets up to", "not evaluated: no model")
    ]
    assert places == sorted(places)
    assert ran.out.endswith("meets: 1, fails: 0, mixed: 1, not evaluated: 1\n")


def test_a_law_that_does_not_use_the_path_is_named(evaluate):
    Path("laws.py").write_text(LAWS)
    ran = evaluate("slow", "--law", "laws.py", "--seeds", "1")
    assert ran.code == 0
    text = " ".join(ran.out.split())
    assert re.search(
        r"meets it, but gets \d+ % of its share, where cubic in its place gets \d+ %", text
    )
    assert "limited by window" in text


@pytest.mark.parametrize(("arguments", "message"), [
    (("broken",), "laws.py:14: on_ack: the law broken raised ZeroDivisionError (in "),
    (("nan",), "run: laws.nan: TypeError: limit: must return a window"),
    (("cubic", "--against", "cubic,broken"), "laws.py:14: on_ack: the law broken raised "),
    (("slow", "--quick", "--baseline", "broken"), "laws.py:14: on_ack: the law broken raised "),
])  # fmt: skip
def test_the_first_error_in_a_law_s_code_ends_the_command(evaluate, arguments, message):
    Path("laws.py").write_text(LAWS)
    Path("e.toml").write_text("kept")
    ran = evaluate(
        *arguments, "--law", "laws.py", "--seeds", "1", "-o", "out", "--record", "e.toml"
    )
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.count("laws.py:14") + ran.err.count("laws.nan") == 1
    assert Path("e.toml").read_text() == "kept"
    assert not Path("out").exists()


def test_a_baseline_that_cannot_run_is_not_said_to_be_equal(evaluate):
    arguments = ("cubic", "--against", "cubic", "--seeds", "1", "--quick")
    arguments += ("--baseline", "window", "--set", "flow.law.ecn=true")
    ran = evaluate(*arguments)
    assert ran.code == 0
    text = " ".join(ran.out.split())
    assert (
        "not compared with window in 2 of 2 cells: window was not evaluated: flow.law.ecn" in text
    )
    assert "differs" not in text
    assert len(evaluate(*arguments, "--json").document["uncompared"]) == 2


@pytest.mark.parametrize(
    ("record", "reason"), [("nosuch/x.toml", "no such file"), ("folder", "is a directory")]
)
def test_a_record_that_cannot_be_written_is_refused_before_the_runs(evaluate, record, reason):
    Path("folder").mkdir()
    ran = evaluate("cubic", "--seeds", "1", "--record", record, "-o", "out")
    assert (ran.code, ran.out) == (2, "")
    assert f"{record}: cannot be written: {reason}" in ran.err
    assert [path.name for path in Path().iterdir() if path.name != "small"] == ["folder"]


def test_the_files_agree_with_the_document(evaluate):
    ran = evaluate("cubic", "--seeds", "1", "-o", "out", "--json")
    assert Path("out/verdicts.json").read_text() == ran.out
    criteria = ran.document["criteria"]
    queue = next(one for one in criteria if one["id"] == "queue")
    (boundary,) = queue["boundaries"]
    assert (boundary["below"], boundary["above"]) == ("meets", "fails")
    assert (boundary["low"], boundary["high"]) == ("10 packets", "15 packets")
    files = {cell["file"] for one in criteria for cell in one["cells"]}
    assert files == {str(path.relative_to("out")) for path in Path("out").glob("cells/*/*.toml")}
    suite = ElementTree.parse("out/junit.xml").getroot()[0]
    assert {name: suite.get(name) for name in ("tests", "failures", "skipped")} == {
        "tests": "3", "failures": "1", "skipped": "1",
    }  # fmt: skip
    assert "| 2.10 | Queue | mixed | 1 of 2 |" in Path("out/verdicts.md").read_text()
    assert (
        "<title>cubic: small-suite 1.0 – Waterfill</title>" in Path("out/report.html").read_text()
    )


def test_the_commands_of_cells_have_the_law_s_file(evaluate, waterfill, monkeypatch):
    Path("own").mkdir()
    Path("own/laws.py").write_text(LAWS)
    assert evaluate("slow", "--law", "own/laws.py", "--quick", "-o", "out/slow").code == 0
    page = Path("out/slow/report.html").read_text()
    (command, *_) = re.findall(r"waterfill (run slow/cells/queue/\S+ --law \S+) --seed 1", page)
    assert command.endswith("--law ../own/laws.py")
    monkeypatch.chdir("out")
    assert waterfill(*command.split()).code == 0


def test_sensitivity_is_a_table_of_parameters(evaluate):
    ran = evaluate("cubic", "--quick", "--sensitivity")
    assert ran.code == 0
    assert re.search(r"^beta 0.7 → 0.56 +none *$", ran.out, re.MULTILINE)


def test_expect_compares_with_what_record_wrote(evaluate, suite):
    assert evaluate("cubic", "--seeds", "1", "--record", "e.toml").code == 0
    assert evaluate("cubic", "--seeds", "1", "--expect", "e.toml").code == 0
    file = suite / "queue.toml"
    file.write_text(file.read_text().replace("limit = 20", "limit = 200"))
    ran = evaluate("cubic", "--seeds", "1", "--expect", "e.toml", "-o", "out")
    assert ran.code == 1
    assert "queue: meets, expected mixed" in ran.err
    failure = ElementTree.parse("out/junit.xml").getroot().find(".//failure")
    assert failure is not None
    assert failure.get("message") == "queue: meets, expected mixed"
    ran = evaluate("cubic", "--quick", "--expect", "e.toml")
    assert (ran.code, ran.err) == (2, "e.toml: quick: is false; leave --quick out\n")


@pytest.mark.parametrize(
    ("arguments", "was", "now"),
    [
        (("--seeds", "1"), "--seeds auto", "--seeds 1"),
        (("--precision", "10%"), "--precision 5%", "--precision 10%"),
        (("--against", "reno"), "--against cubic,window", "--against reno"),
        (("--recovery", "quic"), "no --recovery", "--recovery quic"),
        (("--routers", "none"), "--routers all", "--routers none"),
        (("--set", "duration=2 s"), "no --set", "--set duration=2 s"),
    ],
)
def test_expect_refuses_a_record_with_other_options(evaluate, arguments, was, now):
    common = ["maxnet", "--expect", "e.toml"]
    Path("e.toml").write_text(RECORD)
    ran = evaluate(*common, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        f"e.toml: options: recorded with {was}, this run has {now}; type the options of the record,"
        " or record again with --record\n"
    )


def test_expect_says_where_a_record_does_not_fit(evaluate):
    assert evaluate("sack", "--quick", "--record", "e.toml").code == 0
    assert "[options]" in Path("e.toml").read_text()
    ran = evaluate("newreno", "--quick", "--expect", "e.toml")
    assert "e.toml: recorded for sack, compared with newreno" in ran.err
    old = re.sub(r"(?s)\[options\].*?\n\n", "", Path("e.toml").read_text())
    Path("e.toml").write_text(old)
    ran = evaluate("sack", "--quick", "--expect", "e.toml")
    assert ran.code == 0
    assert "e.toml: has no options, so they were not compared" in ran.err


def test_expect_notices_a_cell_that_begins_to_fail(evaluate):
    assert evaluate("cubic", "--seeds", "1", "--record", "e.toml").code == 0
    Path("e.toml").write_text(Path("e.toml").read_text().replace('"100 packets"', '"5 packets"'))
    ran = evaluate("cubic", "--seeds", "1", "--expect", "e.toml")
    assert ran.code == 1
    assert "queue: fails in 100 packets; no longer fails in 5 packets" in ran.err


def test_baseline_lists_what_differs(evaluate):
    document = evaluate("sack", "--seeds", "2", "--baseline", "window", "--json").document
    changes = {(one["criterion"], one["cell"]): one for one in document["changes"]}
    queue = changes["queue", "100 packets"]
    assert (queue["verdict_before"], queue["verdict_after"]) == ("met", "not met")
    assert queue["difference"] == pytest.approx(queue["after"] - queue["before"])
    same = evaluate("sack", "--seeds", "2", "--baseline", "sack", "--json").document
    assert same["changes"] == []


def test_list_has_the_source_of_each_limit(evaluate):
    limits = {one["criterion"]: one for one in evaluate("--list", "--json").document["limits"]}
    assert limits["queue"]["source"] == "ours, because it is a test"
    assert (limits["queue"]["limit"], limits["queue"]["unit"]) == (20, "kB")
    assert limits["real-time"]["not_evaluated"] == "no model of a call"


def test_list_has_only_the_criteria_named(evaluate):
    listed = evaluate("--list", "--only", "2.11", "--json").document["limits"]
    assert [one["criterion"] for one in listed] == ["real-time"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--list", "--only", "nonsense"), 'only: unknown criterion "nonsense"'),
        (("--list", "cubicc"), 'unknown protocol "cubicc", did you mean "cubic"?'),
        (("--list", "--against", "x,cubic"), "against: no effect with --list; remove one of them"),
        (("--list", "--set", "a=1"), "set: no effect with --list"),
        (("--list", "--seeds", "3"), "seeds: no effect with --list"),
        (("--list", "--routers", "none"), "routers: no effect with --list"),
        (("--queue", "pie"), "evaluates a law, got --queue pie; use --suite rfc7928"),
        (("cubic", "--queue", "pie"), "evaluate takes a law or --queue, got cubic and --queue pie"),
        ((), "evaluate: no law given; type the name of a law"),
        (("cubicc",), 'unknown protocol "cubicc", did you mean "cubic"?'),
        (("cubic,reno",), "evaluate takes one law, got cubic,reno; for two versions: --baseline"),
        (("explicit",), "evaluate takes one law, got explicit; for two versions: --baseline"),
        (("cubic", "--seeds", "many"), 'seeds: must be auto or a number, got "many"'),
        (("cubic", "--precision", "x"), 'precision: must be a share such as 5%, got "x"'),
        (("cubic", "--expect", "e.toml"), "e.toml: cannot read the file"),
        (("cubic", "--only", "quue"), 'unknown criterion "quue", did you mean "queue"?'),
        (("cubic", "--only", "queue", "--record", "e"), "record: not possible with --only"),
        (("cubic", "--only", "queue", "--expect", "e"), "expect: not possible with --only"),
    ],
)
def test_wrong_input_is_one_line(evaluate, arguments, message):
    ran = evaluate(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert ran.err.count("\n") == 1


def test_a_table_without_verdicts_is_left_out(evaluate):
    ran = evaluate("cubic", "--only", "2.11", "-o", "out")
    assert ran.code == 0
    assert "deciding number" not in ran.out
    assert "not evaluated: no model of a call" in ran.out
    assert "|" not in Path("out/verdicts.md").read_text()
    assert "<table" in Path("out/report.html").read_text()  # what was not evaluated
    assert "deciding number" not in Path("out/report.html").read_text()


QUEUE_MAX = """measure = "queue_max"
args = { link = "l", start_s = 0.0, stop_s = 100.0 }
unit = "kB\""""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("limit = 20", 'limit = 20\ntolerance = "-5 %"', "tolerance: must be a number or a share"),
        (
            QUEUE_MAX,
            'measure = "queueing_delay"\nargs = { link = "l", percentile = 950 }\nunit = "ms"',
            "args.percentile: must be from 0 to 100, got 950",
        ),
        (
            QUEUE_MAX,
            'measure = "queue_share"\nargs = { link = "l", rtt_s = 0.0, windows_s = [[0, 1]] }\n'
            'unit = "%"',
            "args: queue_share cannot use these: ",
        ),
    ],
)
def test_a_wrong_limit_is_one_line(evaluate, suite, old, new, message):
    file = suite / "queue.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    ran = evaluate("cubic", "--quick")
    assert (ran.code, ran.out) == (2, "")
    assert f"queue.toml: limit.largest-queue.{message}" in ran.err


def test_no_title_is_html_in_markdown(evaluate, suite):
    for file in (suite / "queue.toml", suite / "suite.toml"):
        text = file.read_text()
        file.write_text(text.replace('title = "', 'title = "<script>|'))
    assert evaluate("cubic", "--quick", "-o", "out").code == 0
    text = Path("out/verdicts.md").read_text()
    assert "<script>" not in text
    assert "| 2.10 | &lt;script&gt;\\|Queue |" in text


def test_silent_routers_are_those_of_explicit_laws(evaluate):
    documents = [
        json.loads(evaluate("maxnet", "--seeds", "1", "--routers", routers, "--json").out)
        for routers in ("all", "none")
    ]
    shares = [document["criteria"][1]["cells"][0]["use"]["rate_bps"] for document in documents]
    assert shares[0] > 4e6
    assert shares[0] != shares[1]
