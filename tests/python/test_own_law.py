"""A law written in Python gives the rates of the law in Rust, and its mistakes one sentence."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import Any, ClassVar

import pyarrow.parquet as pq
import pytest

import waterfill
from known import ROOT
from waterfill import PythonLaw, Scenario, cli
from waterfill.runs import law_files

OWN = ROOT / "examples" / "own_law.py"


class Window:
    """A source of five packets; the tests below break one call of it."""

    def __init__(self, connection: Any) -> None:
        self.window_bytes = 5 * connection.packet_bytes

    def stamp(self, sending: Any) -> Any:
        return {"mark": 3.5}

    def on_ack(self, ack: Any) -> None:
        assert ack.echo.mark == 3.5

    def limit(self) -> Any:
        return self.window_bytes, None


class Counter:
    """A router that counts the packets it sees."""

    seen: ClassVar[list[tuple[str, float | None]]] = []

    def __init__(self, link: Any) -> None:
        assert link.capacity_bps == 10e6

    def on_arrival(self, link: Any, passing: Any) -> None:
        header = None if passing.header is None else passing.header.mark
        self.seen.append((passing.kind, header))


def scenario(**more: Any) -> waterfill.Scenario:
    found = waterfill.Scenario("own", duration="1 s", protocol="mine", **more)
    return found.link("l", "a", "b", "10 Mbit/s", "50 ms").flow("f", "a", "b")


def law(**more: Any) -> waterfill.PythonLaw:
    return waterfill.PythonLaw(source=Window, header=("mark",), paced=False, **more)


def test_the_example_has_the_rates_of_the_law_in_rust():
    example = runpy.run_path(str(OWN))
    mine = example["dumbbell"]("mine").run(laws=example["LAWS"])
    rust = example["dumbbell"]("rcp").run()
    assert {flow["protocol"] for flow in mine.summary["flows"]} == {"mine"}
    for own, theirs in zip(mine.summary["flows"], rust.summary["flows"], strict=True):
        assert own["rate_bps"] == pytest.approx(theirs["rate_bps"], rel=0.01)
        assert own["max_min_bps"] == pytest.approx(theirs["max_min_bps"])


def test_the_calls_of_a_law(monkeypatch):
    monkeypatch.setattr(Counter, "seen", [])
    found = scenario().set(duration="10 s").traffic("cbr", path=["l"], rate="100 kbit/s")
    result = found.run(laws={"mine": law(router=Counter)}, seed=3)
    assert result.summary["flows"][0]["rate_bps"] == pytest.approx(5 * 1500 * 8 / 0.1, rel=0.05)
    kinds = dict.fromkeys(Counter.seen)
    assert {("syn", 3.5), ("data", 3.5), ("other", None)} == set(kinds)
    again = found.run(laws={"mine": law(router=Counter)}, seed=3)
    assert again.flows.equals(result.flows)


def test_flows_with_a_size_have_completion_times():
    found = scenario().flow("short", "a", "b", size="15 kB")
    transfers = found.run(laws={"mine": law()}).transfers
    assert transfers["protocol"].to_pylist() == ["mine"]
    assert transfers["slowdown"].to_pylist()[0] >= 1


def broken(**calls: Any) -> waterfill.PythonLaw:
    return waterfill.PythonLaw(source=type("Broken", (Window,), calls), header=("mark",))


class Stuck(Counter):
    """A router whose timer never advances."""

    def poll_at(self) -> float:
        return 0.0

    def on_timer(self, link: Any, now_s: float) -> None:
        pass


LIMIT = (
    "run: laws.mine: TypeError: limit: must return a window (bytes) and a rate (bit/s), each a "
    "finite number not below zero or None, got "
)


def divide(_self: Any, _ack: Any) -> None:
    raise ZeroDivisionError("by a test")


def unknown(_self: Any, ack: Any) -> None:
    ack.echo.colour = 1.0


@pytest.mark.parametrize(
    ("calls", "sentence"),
    [
        ({"on_ack": divide}, "divide: the law mine raised ZeroDivisionError: by a test"),
        ({"on_ack": unknown}, "unknown: the law mine raised AttributeError: the header has no "
         'field "colour"; known: mark'),
    ],
)  # fmt: skip
def test_what_a_law_raises_names_its_line(calls, sentence):
    with pytest.raises(waterfill.InputError) as error:
        scenario().run(laws={"mine": broken(**calls)})
    assert error.value.file.startswith(f"{__file__}:")
    line = int(error.value.file.rpartition(":")[2])
    code = next(iter(calls.values())).__code__
    assert line == code.co_firstlineno + 1
    assert f"{error.value.key}: {error.value.message}" == sentence


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (broken(limit=lambda _: (float("nan"), None)), LIMIT + "(nan, None)"),
        (broken(limit=lambda _: 5), LIMIT + "5"),
        (broken(stamp=lambda *_: 5), "run: laws.mine: TypeError: stamp: must return a dictionary "
         "of the header's fields and their numbers, or None, got 5"),
        (broken(limit=lambda _: (None, None)), "run: laws.mine: ValueError: limit: a source "
         "with more to send needs a window or a rate, got None and None, and 100000 packets "
         "at one instant"),
        (law(router=Stuck), "run: laws.mine: ValueError: poll_at: must be later than now "
         "after on_timer, got 0.0 at 0 s, 100000 times"),
        (broken(limit=None), "run: laws.mine: TypeError: 'NoneType' object is not callable"),
        (PythonLaw(source=Window, header=tuple("abcde")), "run: laws.mine.header: must be a "
         'tuple of up to 4 names, got ["a", "b", "c", "d", "e"]'),
        (PythonLaw(source=Window, target=2.0), "run: laws.mine.target: must be above 0 and "
         "at most 1, got 2.0"),
        (PythonLaw(source=Window, target="x"), "run: laws.mine.target: must be above 0 and at "  # type: ignore[arg-type]
         'most 1, got "x"'),
        (PythonLaw(source=Window, target=1j), "run: laws.mine.target: must be above 0 and at "  # type: ignore[arg-type]
         'most 1, got "1j"'),
        (PythonLaw(source=None), "run: laws.mine.source: must be a class, got null"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_a_wrong_law_is_refused(found, sentence):
    with pytest.raises(waterfill.InputError) as error:
        scenario().run(laws={"mine": found})
    assert str(error.value) == sentence


UNPRINTABLE = "class Own(Exception):\n    __str__ = lambda self: 1 / 0\nraise Own"


@pytest.mark.parametrize("error", [SystemExit(7), BaseException(), GeneratorExit()])
def test_no_exception_of_a_law_ends_the_process(error):
    def leave(_self: Any) -> None:
        raise error

    with pytest.raises(waterfill.InputError, match=f"the law mine raised {type(error).__name__}"):
        scenario().run(laws={"mine": broken(limit=leave)})


@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_a_law_is_a_regular_file(tmp_path, kind):
    path = Path("/dev/zero") if kind == "device" else tmp_path / "pipe"
    if kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(
        waterfill.InputError, match=f"{path}: cannot read the Python file: not a regular file"
    ):
        law_files.read(path)


def test_the_command_line_runs_a_law_and_ends_with_2(tmp_path, monkeypatch, capsys):
    path = tmp_path / "S.toml"
    path.write_text(scenario().set(protocol="maxnet").to_toml().replace("maxnet", "mine"))
    words = ["waterfill", "run", str(path), "--json", "--law"]
    monkeypatch.setattr(sys, "argv", [*words, str(OWN)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    assert '"protocol": "mine"' in capsys.readouterr().out
    text = OWN.read_text().replace("self.rtt_s = ack.rtt_s or", "self.rtt_s = ack.rtt or")
    for code, wrong in (
        (text, ": on_ack: the law mine raised AttributeError: "),
        ("LAWS = [", ": not valid Python: "),
        ("1 / 0", ": <module>: the law own raised ZeroDivisionError: division by zero"),
        ("", "own.py: LAWS: must be a dictionary"),
        ("import sys\nsys.exit()", ":2: <module>: the law own raised SystemExit"),
        ("raise GeneratorExit", ": <module>: the law own raised GeneratorExit"),
        (UNPRINTABLE, ":3: <module>: the law own raised Own"),
        ("a\0b", "own.py: not valid Python: "),
        ("#" * (4 << 20) + "\n", "own.py: cannot read the Python file: more than 4194304 bytes"),
    ):
        (tmp_path / "own.py").write_text(code)
        monkeypatch.setattr(sys, "argv", [*words, str(tmp_path / "own.py")])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr().err.strip().splitlines()
        assert ended.value.code == 2
        assert said[-1].startswith(f"{tmp_path}/own.py")
        assert wrong in said[-1]


def test_the_command_line_compares_a_law(tmp_path, waterfill):
    path = tmp_path / "S.toml"
    path.write_text(scenario().set(duration="2 s", protocol="maxnet").to_toml())
    words = ("compare", str(path), "--law", str(OWN), "--json", "--protocols")
    ran = waterfill(*words, "mine,rcp", "-o", "out")
    runs = ran.document["runs"]
    assert list(runs) == ["mine", "rcp"]
    assert "warning" not in ran.err
    mine, rcp = (runs[name]["flows"][0] for name in runs)
    assert mine["protocol"] == "mine"
    assert mine["rate_bps"] == pytest.approx(rcp["rate_bps"], rel=0.02)
    target = runs["mine"]["laws"]["mine"]["target"]
    ratios = [runs[name]["compare"]["share_ratio"]["worst"] for name in runs]
    assert ratios[0] == pytest.approx(mine["rate_bps"] / (target * 10e6), rel=1e-3)
    # What it wrote can be read without the law.
    assert "written to" in waterfill("plot", "out/mine").out
    assert waterfill("report", "out").code == 0
    assert waterfill(*words, "mine", "--seeds", "2").document["seeds"] == [1, 2]


def test_a_law_that_no_flow_uses_is_refused(tmp_path, waterfill):
    path = tmp_path / "S.toml"
    path.write_text(scenario().set(protocol="maxnet").to_toml())
    said = f"command line: law: no flow uses the law mine of {OWN}; see --protocol"
    for words in (("run", str(path)), ("compare", str(path), "--protocols", "rcp")):
        ran = waterfill(*words, "--law", str(OWN), "--json")
        said += "s" if words[0] == "compare" else ""
        assert (ran.code, ran.err.splitlines()) == (2, [said])
    used = waterfill("run", str(path), "--protocol", "mine", "--law", str(OWN))
    assert used.code == 0
    assert "warning" not in used.err
    # Of several laws in a file a run has the one that its flows name.
    two = tmp_path / "two.py"
    two.write_text(OWN.read_text() + '\nLAWS["other"] = LAWS["mine"]\n')
    ran = waterfill("run", str(path), "--protocol", "other", "--law", str(two), "--json")
    assert ran.document["flows"][0]["protocol"] == "other"


def test_flows_of_a_source_run_a_law(tmp_path, waterfill):
    path = tmp_path / "S.toml"
    made = Scenario("web", duration="1 s", protocol="mine").link(
        "l", "a", "b", "10 Mbit/s", "50 ms"
    )
    made = made.traffic("web", path=["l"], arrival_rate=20, sizes="30 kB")
    path.write_text(made.to_toml())
    words = (str(path), "--law", str(OWN), "-o")
    assert waterfill("run", *words, "one").code == 0
    assert pq.read_table("one/transfers.parquet")["protocol"].unique().to_pylist() == ["mine"]
    assert waterfill("report", "one").code == 0
    assert waterfill("compare", *words, "two", "--protocols", "mine,reno").code == 0
    assert waterfill("report", "two").code == 0


def test_a_scenario_in_python_compares_a_law():
    found = scenario().compare(["mine", "rcp"], laws={"mine": law()})
    assert list(found.results) == ["mine", "rcp"]
    assert found.allocations["mine"].classes[0].share_bps[0] == pytest.approx(10e6)
    with pytest.raises(waterfill.InputError, match="is the name of a protocol"):
        scenario().compare("rcp", laws={"rcp": law()})


def test_where_laws_run():
    for wrong, on, expected in (
        ({"rcp": law()}, "sim", "is the name of a protocol"),
        ({"other": law()}, "sim", "laws: no flow uses the law other; set its protocol"),
        ({"my law": law()}, "sim", 'must be a name of letters, digits, _ and -, got "my law"'),
        ({"mine": law()}, "fluid", "fluid cannot run a law in Python; use --on sim"),
    ):
        with pytest.raises(waterfill.InputError, match=expected):
            scenario().run(on, laws=wrong)
    with pytest.raises(waterfill.InputError, match='unknown protocol "mine"'):
        scenario().run()
    with pytest.raises(waterfill.InputError, match='unknown protocol "own"'):
        waterfill.run(scenario().set(protocol="own"))


def test_the_former_name_of_the_class_is_read_with_a_warning():
    with pytest.warns(DeprecationWarning, match=r"now waterfill\.PythonLaw; type the new name"):
        assert waterfill.Law is waterfill.PythonLaw
