"""Logs of laws' steps: accepted as they are, and rejected with any field changed."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from validation import __main__ as program
from validation.certificates import log, replay, study
from validation.certificates.fixed import laws as fixed
from validation.certificates.fixed import log as kernel
from validation.certificates.laws import LAWS, verify
from validation.certificates.log import Step, Value
from waterfill import run
from waterfill.cli.commands import app
from waterfill.errors import InputError
from waterfill.runs.steps import FILE_NAME, KEY, StepLog

# Every law, and the parameters that select other equations.
CASES: list[tuple[str, dict[str, Any]]] = [
    ("maxnet", {}),
    ("maxnet", {"order": "rate-first", "promise": True, "load_average": "5 ms"}),
    ("maxnet", {"average": False, "compensate": False, "dt_min": "1 ms"}),
    ("maxnet2006", {}),
    ("maxnet2006", {"mark_every": 3, "wnd_update_freq": 2, "average": False, "epsilon": 0.02}),
    ("rcp", {}),
    ("rcp", {"average": "reluctant", "writes": "departure"}),
    ("aecp", {}),
    ("aecp", {"form": "exact", "step": "acknowledgement", "source": "window", "r_0": "capacity"}),
    ("aecp", {"rounding": "nearest", "ceiling": "capacity", "window_rtt": "base"}),
    ("jetmax", {}),
    ("vcp", {}),
    ("vcp", {"whole_percent": True, "freeze": "overload", "t_d": "100 ms", "kappa_q": 2.0}),
    ("xcp", {}),
    ("xcp", {"header": "falk", "counts": "own"}),
    ("xcp", {"feedback_at": "receiver", "first_window": 4}),
    ("ixcp", {}),
    ("ixcp", {"header": "falk", "claim": "least-feedback", "shuffle": "draft"}),
    ("pxcp", {}),
]
ROWS = 1500


def scenario(law: str, params: dict[str, Any]) -> dict[str, Any]:
    """Two bottlenecks, a long and two short flows, one of which starts late and is heavier."""
    link = {"rate": "20 Mbit/s", "delay": "4 ms"}
    return {
        "duration": "1.2 s",
        "protocol": law,
        "params": {law: params},
        "link": [
            {"name": "one", "from": "a", "to": "b", **link},
            {"name": "two", "from": "b", "to": "c", **link, "rate": "15 Mbit/s"},
        ],
        "flow": [
            {"name": "long", "path": ["one", "two"]},
            {"name": "first", "path": ["one"]},
            {"name": "second", "path": ["two"], "start": "0.1 s", "weight": 2},
        ],
    }


def recorded(folder: Path, law: str, params: dict[str, Any], on: str, rows: int = ROWS) -> Path:
    file = folder / FILE_NAME
    run(scenario(law, params), on=on, steps=StepLog(file, rows))
    return file


RUNS = [(*case, "sim") for case in CASES] + [(law, {}, "fluid") for law in LAWS]


@pytest.fixture(scope="module", params=RUNS, ids=str)
def recording(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    law, params, on = request.param
    return recorded(tmp_path_factory.mktemp("steps"), law, params, on)


def test_a_log_is_accepted(recording: Path) -> None:
    verdict = verify(recording)
    assert verdict.wrong is None, str(verdict.wrong)
    assert verdict.rows == min(ROWS, verdict.rows + verdict.dropped)
    assert verdict.rows > ROWS / 5
    parts = {part for _, part, _ in verdict.counts}
    assert parts == {"router", "receiver", "source"}


def changed(value: Value) -> Iterator[Value]:
    """Values that are not this one: of a number, one that differs in its 30th bit and more."""
    if isinstance(value, float):
        yield value * (1 + 2.0**-30) if value else 2.0**-30
        yield value + 1.0
    elif isinstance(value, int):
        yield value + 1
    elif isinstance(value, bytes):
        for place in range(len(value)):
            yield value[:place] + bytes([value[place] ^ 0x40]) + value[place + 1 :]
    else:
        yield 1.0
        yield 1


def test_every_changed_field_is_rejected(recording: Path) -> None:
    header, steps = log.read(recording)
    checks: dict[tuple[str, str], Any] = {}
    seen: dict[tuple[str, str], int] = {}
    for step in steps:
        law = LAWS[step.law]
        key = (step.law, step.part)
        checks[key] = checks.get(key) or getattr(law, step.part)(header.params[step.law])
        seen[step.part, step.call] = seen.get((step.part, step.call), 0) + 1
        if seen[step.part, step.call] % 67 != 1:
            continue
        for other in tampered(step):
            assert replay.compare(other, checks[key](other)) is not None, (step, other)


def tampered(step: Step) -> Iterator[Step]:
    """The step with each field of its state after, and each output, changed in turn."""
    for name in ("after", "outputs"):
        values = getattr(step, name)
        for field, value in values.items():
            for wrong in changed(value):
                fields: Any = {name: {**values, field: wrong}}
                yield replace(step, **fields)


def test_a_step_without_one_of_its_fields_is_rejected(recording: Path) -> None:
    header, steps = log.read(recording)
    seen = set()
    for step in steps:
        check = getattr(LAWS[step.law], step.part)(header.params[step.law])
        expected = check(step)
        if (step.part, step.call) in seen:
            continue
        seen.add((step.part, step.call))
        for name in ("after", "outputs"):
            for field in getattr(expected, name):
                values = {k: v for k, v in getattr(step, name).items() if k != field}
                fields: Any = {name: values}
                assert replay.compare(replace(step, **fields), expected) is not None, field


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("one"), "maxnet", {}, "sim", 300)


def with_word(file: Path, row: int, column: str, word: int, flip: int) -> Path:
    """A copy of a log with one word changed."""
    table = pq.read_table(file)
    lists = table.column(column).to_pylist()
    lists[row][word] ^= flip
    place = table.schema.get_field_index(column)
    changed_table = table.set_column(place, column, pa.array(lists, pa.list_(pa.uint64())))
    target = file.with_name(f"changed-{column}-{row}.parquet")
    pq.write_table(changed_table.replace_schema_metadata(table.schema.metadata), target)
    return target


def test_the_study_accepts_and_counts(one: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["certificates", str(one.parent)]) == 0
    assert f"| {one.parent} | 300 | " in capsys.readouterr().out
    assert program.main(["certificates", str(one), "--json"]) == 0
    (document,) = json.loads(capsys.readouterr().out)
    assert document["accepted"]
    assert sum(entry["rows"] for entry in document["steps"]) == document["rows"] == 300


def test_the_study_names_the_first_wrong_row(one: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, steps = log.read(one)
    row = next(s.row for s in steps if s.call == "on_timer")
    file = with_word(one, row, "after", 3, 1 << 20)  # of `price`
    assert program.main(["certificates", str(file)]) == 1
    said = capsys.readouterr().err
    assert f"row {row}: maxnet router one, on_timer" in said
    assert "price after: expected" in said


def test_the_study_logs_laws_itself(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "LAWS", ("rcp", "vcp"))
    assert program.main(["certificates", "--rows", "20", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {entry["log"] for entry in found} == {
        f"{law} on {backend}" for law in ("rcp", "vcp") for backend in ("sim", "fluid")
    }
    assert {entry["rows"] for entry in found} == {20}


def test_the_old_command_names_the_new_one(one: Path) -> None:
    done = CliRunner().invoke(app, ["verify", str(one), "--json"])
    with pytest.raises(InputError, match="make validate STUDY=certificates"):
        raise done.exception or AssertionError


def test_a_state_must_follow_the_one_before(one: Path) -> None:
    _, steps = log.read(one)
    row = next(s.row for s in steps if s.call == "on_arrival" and s.row > 50)
    verdict = verify(with_word(one, row, "before", 6, 1))  # of `arrival_rate`
    assert verdict.wrong is not None
    assert verdict.wrong.step.row == row
    assert "arrival_rate before" in str(verdict.wrong)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("params", {}),
        ("params", []),
        ("params", {"maxnet": {"arithmetic": "real"}}),
        ("fields", []),
        ("fields", None),
        ("format", 1),
        ("dropped", "many"),
    ],
)
def test_hostile_metadata_are_refused(tmp_path: Path, one: Path, key: str, value: object) -> None:
    table = pq.read_table(one)
    document = json.loads(table.schema.metadata[KEY])
    document[key] = value
    file = tmp_path / "hostile.parquet"
    pq.write_table(table.replace_schema_metadata({KEY: json.dumps(document)}), file)
    with pytest.raises(InputError, match=r"must be|not a log|no parameters|does not have"):
        verify(file)


def test_what_is_no_log_is_refused_in_one_line(tmp_path: Path, one: Path) -> None:
    text = tmp_path / "text.parquet"
    text.write_text("not a table")
    other = tmp_path / "other.parquet"
    pq.write_table(pa.table({"a": [1]}), other)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(one.read_bytes()[:-100])
    for file in (text, other, cut, tmp_path / "missing.parquet"):
        with pytest.raises(InputError) as refused:
            verify(file)
        assert "\n" not in str(refused.value)
    with pytest.raises(InputError, match="arithmetic"):
        verify(recorded(tmp_path, "maxnet", {"arithmetic": "kernel"}, "sim", 50))


# Recorded with `waterfilld … --log-steps` on Linux 6.18, thinned. Those of both MaxNets are older
# than x_min: 32 bit/s and its price were added to them, and steps of higher prices left out.
KERNEL = sorted(Path(__file__).parent.glob("*.steps"))
CALLS = {"router": {"mark", "tick", "idle"}, "host": {"ack", "receive"}}


@pytest.mark.parametrize("file", KERNEL, ids=lambda file: file.stem)
def test_a_log_of_the_kernel_is_accepted_and_no_changed_one(file: Path) -> None:
    law, _, role = file.stem.partition("-")
    verdict = verify(file)
    assert verdict.wrong is None, str(verdict.wrong)
    assert {call for _, _, call in verdict.counts} == CALLS[role]
    _, steps = kernel.read(file, fixed.LAYOUTS)
    seen: Counter[str] = Counter()
    for step in steps:
        seen[step.call] += 1
        if seen[step.call] % 7 != 1:
            continue
        assert step.law == law
        check = getattr(fixed.LAWS[law], step.part)({})
        for other in tampered(step):
            assert replay.compare(other, check(other)) is not None, (step, other)


def test_every_router_and_every_host_with_equations_has_a_log() -> None:
    assert {f.stem for f in KERNEL} == {f"{law}-{role}" for law in LAWS for role in CALLS}


def test_a_log_without_a_step_is_no_certificate(tmp_path: Path) -> None:
    runner = CliRunner()
    simulated = tmp_path / "cubic"
    file = tmp_path / "s.toml"
    file.write_text(
        """duration = "100 ms"
protocol = "cubic"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "1 ms"
[[flow]]
name = "f"
path = ["l"]
"""
    )
    ran = runner.invoke(app, ["run", str(file), "-o", str(simulated), "--log-steps", "100"])
    assert ran.exit_code == 0
    assert "no flow ran a law whose steps are logged" in ran.stderr
    with pytest.raises(InputError, match="no steps; the laws with equations are maxnet"):
        verify(simulated)
    # A log of the kernel in which nothing found space: its header, then 0 and the count.
    whole = Path(__file__).with_name("maxnet-router.steps").read_bytes()
    header = whole[: 12 + int.from_bytes(whole[8:12], sys.byteorder)]
    empty = tmp_path / "empty.steps"
    empty.write_bytes(header + (0).to_bytes(4, sys.byteorder) + whole[-8:])
    with pytest.raises(InputError, match="no steps"):
        verify(empty)


def test_a_host_s_log_of_a_law_with_equations_for_routers_is_refused() -> None:
    file = Path(__file__).with_name("maxnet-host.steps")
    routers = {name: fixed.LAYOUTS["maxnet"][name] for name in ("link", "sums", "cpu")}
    with pytest.raises(InputError, match="maxnet's hosts"):
        kernel.read(file, {"maxnet": routers})


def test_a_log_of_the_kernel_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    whole = Path(__file__).with_name("maxnet-router.steps").read_bytes()
    cut = tmp_path / "cut.steps"
    for length in (10, 200, len(whole) - 12, len(whole) - 1):
        cut.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"not a log|cut off"):
            verify(cut)
    cut.write_bytes(whole.replace(b'"law":"maxnet"', b'"law":"reno  "'))
    with pytest.raises(InputError, match="no fixed-point equations"):
        verify(cut)
