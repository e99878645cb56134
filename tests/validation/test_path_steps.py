"""The study of paths that become longer: its cases, its scenarios and its table."""

from __future__ import annotations

from types import SimpleNamespace

from validation import path_steps
from validation.path_steps import HANDOVERS, Kept, StepCase


def test_a_law_runs_where_it_can():
    found = path_steps.cases(SimpleNamespace(protocols=("maxnet", "vegas"), windows=()))
    assert {(case.protocol, case.on) for case in found} == {
        ("maxnet", "sim"),
        ("maxnet", "fluid"),
        ("vegas", "sim"),
    }
    assert "xcp" not in path_steps.laws()


def test_the_windows_of_linux_are_an_option(monkeypatch):
    able = {"maxnet": SimpleNamespace(backends=("sim", "linux"))}
    monkeypatch.setattr(path_steps.backends, "known", lambda on: able)

    def windows(*chosen):
        options = SimpleNamespace(protocols=("maxnet",), windows=chosen)
        return {(case.on, case.window) for case in path_steps.cases(options, ("sim", "linux"))}

    assert windows("2 s", "30 s") == {(on, w) for on in ("sim", "linux") for w in ("2 s", "30 s")}
    assert windows() == {("linux", "10 s"), *(("sim", w) for w in path_steps.WINDOWS)}


def test_runs_with_failed_checks_are_marked_and_counted():
    cases = [StepCase("maxnet", "linux", "10 s", change) for change in ("2", "5")]
    found = {cases[0]: Kept(1.0), cases[1]: Kept(0.5, 16.4, ["law", "processor"])}
    lines = path_steps.table(found).splitlines()
    assert lines[-4] == "| `maxnet` | linux | × 2 | — | — | 1.00 | — | — |"
    assert lines[-3] == "| `maxnet` | linux | × 5 | — | — | 0.50† (left at 16 s) | — | — |"
    assert lines[-1] == "† Checks of the testbed failed in 1 run: law in 1, processor in 1."


def test_the_delay_changes_once_or_at_handovers():
    assert path_steps.events("5") == [{"at": "15 s", "delay": "100 ms"}]
    delays = [event["delay"] for event in path_steps.events(HANDOVERS)]
    assert delays == ["40 ms", "20 ms", "40 ms", "20 ms", "40 ms", "20 ms"]


def test_the_table_has_a_column_for_each_window():
    table = path_steps.table({StepCase("maxnet", "sim", "10 s", "5"): Kept(0.996)})
    assert table.splitlines()[-1] == "| `maxnet` | sim | × 5 | — | — | 1.00 | — | — |"


def test_a_flow_that_leaves_its_law_is_told():
    case = StepCase("maxnet", "linux", "10 s", "5")
    assert path_steps.table({case: Kept(0.5, 16.4)}).splitlines()[-1] == (
        "| `maxnet` | linux | × 5 | — | — | 0.50 (left at 16 s) | — | — |"
    )
    assert path_steps.line(case, Kept(0.5, 16.4, ["law"])).endswith("(left at 16 s); failed: law")
