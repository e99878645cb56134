"""Tests of the harness of studies: kept and repeated work, refusals, files and exit codes."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass, replace

import pytest

from validation import __main__ as program
from validation import study
from validation.study import Need, Option, Report, Study, StudyRun
from waterfill.errors import RunError
from waterfill.scenario.loading import from_toml

SCENARIO = """
duration = "200 ms"
protocol = "{protocol}"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "5 ms"
[[flow]]
name = "f"
path = ["l"]
"""


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(study.cache, "root", lambda: tmp_path / "cache")


@dataclass(frozen=True)
class Row:
    square: int


def squares(calls, **more):
    """A study whose measurements are counted in `calls`."""

    def measure(case):
        calls.append(case)
        if case == 3:
            raise KeyboardInterrupt
        return Row(case * case)

    return Study(
        shows="squares", minutes=1, options=(Option("--to", 2, "last number", low=1),),
        quick={"to": 1}, cases=lambda options: range(options.to + 1), measure=measure, row=Row,
        table=lambda found: ", ".join(str(row.square) for row in found.values()), **more,
    )  # fmt: skip


def test_values_are_kept_so_that_an_interrupted_study_goes_on(capsys):
    calls = []
    assert study.execute(squares(calls), "x", ["--to", "4"]) == study.INTERRUPTED
    assert study.execute(squares(calls), "x", []) == 0
    assert calls == [0, 1, 2, 3]
    assert capsys.readouterr().out == "0, 1, 4\n"
    assert study.execute(squares(calls), "another", ["--quick"]) == 0
    assert calls[4:] == [0, 1]


def test_values_of_other_code_are_not_used(monkeypatch):
    calls = []
    assert study.execute(squares(calls, code=lambda: "old"), "x", []) == 0
    assert study.execute(squares(calls, code=lambda: "new"), "x", []) == 0
    monkeypatch.setattr(study, "sources", lambda module: b"other")
    assert study.execute(squares(calls, code=lambda: "new"), "x", []) == 0
    assert calls == 3 * [0, 1, 2]


def test_a_damaged_value_is_measured_again():
    calls = []
    study.execute(squares(calls), "x", [])
    for path in (study.cache.root() / study.cache.version() / "studies/x").iterdir():
        path.write_text('{"square": "nine"')
    study.execute(squares(calls), "x", [])
    assert calls == [0, 1, 2, 0, 1, 2]


def test_the_source_of_a_study_is_all_that_it_imports():
    assert study.sources("validation.faults") != study.sources("validation.testbed.faults")
    assert study.sources("validation.faults") == study.sources("validation.faults")


def packets(**more):
    """A study of runs: packets of one flow under each law, compared with MaxNet's."""

    def runs(case):
        laws = {"mine": case, "maxnet": "maxnet"}
        return {
            k: StudyRun(from_toml(SCENARIO.format(protocol=law), "x")) for k, law in laws.items()
        }

    def measure(case, results):
        counts = [results[k].summary["flows"][0]["packets_sent"] for k in ("mine", "maxnet")]
        return counts[0] / counts[1]

    return Study(
        shows="ratios", minutes=1, options=(Option("laws", ("maxnet", "xcp"), "laws"),),
        cases=lambda options: options.laws, runs=runs, measure=measure,
        table=lambda found: "\n".join(f"{law} {ratio:.1f}" for law, ratio in found.items()), **more,
    )  # fmt: skip


def test_runs_are_kept_and_shared_between_cases(capsys, monkeypatch):
    started = []
    run_each = study.run_each

    def counted(scenarios, **more):
        started.extend(scenario.protocol for scenario in scenarios.values())
        return run_each(scenarios, **more)

    monkeypatch.setattr(study, "run_each", counted)
    assert study.execute(packets(), "x", ["--kept"]) == 2
    assert study.execute(packets(), "x", []) == 0
    assert sorted(started) == ["maxnet", "xcp"]
    assert study.execute(packets(), "x", ["rcp", "xcp"]) == 0
    assert started[2:] == ["rcp"]
    capsys.readouterr()
    assert study.execute(packets(), "x", ["--kept", "maxnet", "vcp"]) == 0
    assert capsys.readouterr().out == "maxnet 1.0\n"
    assert study.execute(packets(quick={"laws": ("maxnet",)}), "x", ["--quick"]) == 0
    assert capsys.readouterr().out == "maxnet 1.0\n"
    assert study.execute(packets(valid=lambda result: False), "x", ["xcp"]) == 0
    assert sorted(started[3:]) == ["maxnet", "xcp"]


def test_a_run_that_fails_leaves_the_others_and_exit_code_1(capsys):
    def measure(case):
        if case == 1:
            raise RunError("no")
        return Row(case)

    failing = replace(squares([]), measure=measure)
    assert study.execute(failing, "x", []) == 1
    answer = capsys.readouterr()
    assert answer.out == "0, 2\n"
    assert "x: 1: no" in answer.err


def test_a_need_that_the_host_lacks_ends_with_one_sentence(capsys):
    lacking = squares([], needs=(Need("moon", lambda: "the moon, got none"),))
    assert study.execute(lacking, "x", []) == 2
    assert capsys.readouterr().err == "x: needs the moon, got none\n"
    assert study.tool("no-such-program", "apt-get install it").lacks()
    busy = squares([], needs=(replace(study.IDLE),))
    assert busy.needed == "idle host"


def test_a_busy_host_is_refused_unless_asked(monkeypatch):
    monkeypatch.setattr(study.os, "getloadavg", lambda: (9.0, 9.0, 9.0))
    idle = squares([], needs=(study.IDLE,))
    assert study.execute(idle, "x", []) == 2
    assert study.execute(idle, "x", ["--busy"]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to", "0"], "x: command line: --to: must be 1 or more, got 0"),
        (["--to", "b"], "x: argument --to: must be a whole number, got 'b'"),
        (["--more", "a,b"], "x: command line: --more: unknown 'a'; known: c"),
        (["--from", "1"], "x: unrecognized arguments: --from 1"),
        (["--colours", "rd"], "x: command line: --colours: unknown 'rd', did you mean \"red\"?"),
    ],
)
def test_wrong_options_end_with_one_sentence(arguments, said, capsys):
    strict = squares([])
    more = (*strict.options, Option("--colours", ("red", "blue"), "some", ("red", "blue")),
            Option("--more", (), "letters", ("c",)))  # fmt: skip
    try:
        code = study.execute(replace(strict, options=more), "x", arguments)
    except SystemExit as error:
        code = error.code
    assert code == 2
    assert capsys.readouterr().err == f"{said}\n"


@dataclass(frozen=True)
class Fruit:
    name: str
    price: float

    @property
    def cheap(self) -> bool:
        return self.price < 2


def test_cases_are_chosen_by_name_and_shown_with_their_properties(capsys):
    fruits = [Fruit("apple", 1.0), Fruit("pear", 3.0)]
    chosen = Study(
        shows="x", minutes=1, options=(study.only("a*"),), cases=lambda _: fruits,
        measure=lambda case: case, row=Fruit, table=lambda found: f"{len(found)}",
    )  # fmt: skip
    assert study.execute(chosen, "x", ["--only", "p*", "--json"]) == 0
    pear = {"name": "pear", "price": 3.0, "cheap": False}
    assert json.loads(capsys.readouterr().out) == [{"case": "pear", "measured": pear}]
    assert study.execute(chosen, "x", ["--only", "plum"]) == 2


def test_a_report_is_printed_and_written_whole(tmp_path, capsys):
    def work(options):
        return Report(
            "a table",
            {"rows": [1]},
            ["not met"],
            {"more.csv": "1,2\n"},
            {"drawn": lambda stem: stem.with_suffix(".png").touch()},
        )

    out = tmp_path / "out"
    whole = Study(shows="x", minutes=1, work=work)
    assert study.execute(whole, "x", ["-o", str(out)]) == 1
    answer = capsys.readouterr()
    assert (answer.out, answer.err) == ("a table\n", "x: not met\n")
    assert {path.name for path in out.iterdir()} == {"x.md", "x.json", "more.csv", "drawn.png"}
    assert study.execute(whole, "x", ["--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"rows": [1]}


def test_every_study_is_listed_with_its_cost(capsys):
    assert program.main([]) == 0
    table = capsys.readouterr().out
    assert all(name in table for name in program.STUDIES)
    assert program.main(["--list"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == list(program.STUDIES)
    for name, *_ in lines:
        one = program.load(name)
        assert one.minutes > 0
        assert one.work is not None or (one.cases is not None and one.table is not None)
        if one.measure is not None and one.runs is None:
            study.Kept(name, one.measure.__module__, row=one.row)
        assert one.quick.keys() <= {option.key for option in one.options}


def test_an_unknown_study_is_refused(capsys):
    assert program.main(["falts"]) == 2
    assert 'did you mean "faults"?' in capsys.readouterr().err


def test_each_night_has_another_study_that_any_host_can_run():
    first = datetime.date(2026, 1, 1)
    nights = [program.tonight(first + datetime.timedelta(day)) for day in range(100)]
    assert nights[0] != nights[1]
    for name in set(nights):
        assert not any(need.lacks() for need in program.load(name).needs)
        assert program.load(name).minutes <= 120
