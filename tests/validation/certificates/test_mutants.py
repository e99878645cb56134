"""Tests of mutants of the laws against certificates: the comparison of logs, and the table."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from validation.certificates import mutants as trial
from validation.mutants import LAWS
from validation.study import ROOT
from waterfill import run
from waterfill.runs.steps import KEY, LISTS, StepLog

RCP = trial.MutantCase("rcp", "alpha=0.4 average=traffic")
ROUTER = "crates/waterfill-laws/src/protocols/rcp/router.rs"
SPARE = f"{ROUTER}:172:23: replace - with + in spare"
OBSERVE = f"{ROUTER}:147:9: replace <impl crate::protocol::Router<Rcp> for Router>::observe with ()"


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A log in the lines that the example writes."""
    file = tmp_path_factory.mktemp("log") / "steps.parquet"
    scenario = {
        "duration": "0.1 s",
        "protocol": "rcp",
        "link": [{"name": "one", "from": "a", "to": "b", "rate": "20 Mbit/s", "delay": "4 ms"}],
        "flow": [{"name": "first", "path": ["one"]}],
    }
    run(scenario, on="sim", steps=StepLog(file, 200))
    table = pq.read_table(file)
    fields = json.loads(table.schema.metadata[KEY])["fields"]
    columns = [table.column(n).to_pylist() for n in ("part", "entity", "call", "time_ps", *LISTS)]
    return [json.dumps(entry) for entry in [*fields, *zip(*columns, strict=True)]]


def with_row(lines: list[str], row: int, column: int, word: int, flip: int) -> list[str]:
    first = next(i for i, line in enumerate(lines) if line.startswith("["))
    values = json.loads(lines[first + row])
    values[column][word] ^= flip
    return [*lines[: first + row], json.dumps(values), *lines[first + row + 1 :]]


def test_a_log_of_the_unchanged_law_is_accepted(lines: list[str]) -> None:
    assert trial.verdict(RCP, lines) is None


def test_a_changed_state_is_rejected_and_named(lines: list[str]) -> None:
    _, steps = trial.read(RCP, lines)
    row = next(step.row for step in steps if step.call == "on_timer")
    changed = with_row(lines, row, 6, 2, 1 << 40)
    wrong = trial.verdict(RCP, changed)
    assert wrong is not None
    assert (wrong.step.row, wrong.what) == (row, "rate after")
    assert trial.difference(RCP, lines, changed) == f"row {row}: router on_timer: rate in after"


def test_another_call_is_told_from_another_output(lines: list[str]) -> None:
    without = [*lines[:-20], *lines[-19:]]
    assert trial.difference(RCP, lines, without).startswith(trial.CALLS)
    assert trial.difference(RCP, lines, lines[:-1]) == f"{trial.CALLS}-1 more"


@pytest.mark.parametrize("law", trial.SETTINGS)
def test_cases_have_parameters_of_their_laws(law: str) -> None:
    found = trial.cases(law)
    assert trial.MutantCase(law, "") in found
    for case in found:
        assert case.params["arithmetic"] == "real"


def test_files_without_steps_are_files_of_laws() -> None:
    names = [str(path) for path in (ROOT / LAWS).rglob("*.rs")]
    for end in trial.WITHOUT_STEPS:
        laws = {Path(name).parent.name for name in names if name.endswith(end)}
        assert laws, end
        assert "maxnet" not in laws or end == "fixed_point.rs"


def test_the_function_of_a_mutant_gives_the_reason() -> None:
    assert trial.function(SPARE) == "spare"
    assert trial.reason(SPARE) == "see below"
    assert trial.reason(OBSERVE) == "shows signals"


def test_the_table_counts_and_lists_what_was_not_rejected() -> None:
    other = SPARE.replace("+", "/")
    page = trial.table({"rcp": {SPARE: "rejected", OBSERVE: "same", other: "accepted"}})
    assert "| rcp | 3 | 0 | 1 | 0 | 1 | 0 | 0 | 1 |" in page
    assert f"- same: `{OBSERVE}`: shows signals" in page
    assert f"- accepted: `{other}`" in page
    assert SPARE not in page
