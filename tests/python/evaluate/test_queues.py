"""`evaluate --queue`: a queue discipline as the subject of a suite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from waterfill.errors import InputError
from waterfill.evaluation.api import evaluate
from waterfill.evaluation.verdict import CellVerdict, EvaluationDocument, LimitVerdict

SUITE = """
name = "queues"
version = "1.0"
title = "One criterion"
subject = "queue"
against = ["droptail", "codel"]
seeds = 1
"""
DELAY = """
title = "Delay"
section = "5.1"
question = "Is the queue short?"
scenario = "alone.toml"

[[limit]]
id = "delay"
measure = "queueing_delay"
args = { link = "l", percentile = 90 }
unit = "ms"
limit = 0.5
of = "reference"
source = "ours, because it is a test"
"""
SCENARIO = """
duration = "8 s"
[[link]]
name = "l"
from = "a"
to = "b"
rate = "5 Mbit/s"
delay = "10 ms"
buffer = "100 packets"
queue = "queue"
[[flow]]
name = "long"
path = ["l"]
protocol = "sack"
"""


@pytest.fixture
def queues(tmp_path: Path) -> Path:
    """A suite for queues, whose cell takes milliseconds."""
    folder = tmp_path / "queues"
    (folder / "scenarios").mkdir(parents=True)
    (folder / "suite.toml").write_text(SUITE)
    (folder / "delay.toml").write_text(DELAY)
    (folder / "scenarios" / "alone.toml").write_text(SCENARIO)
    return folder


def delay(document: EvaluationDocument) -> tuple[CellVerdict, LimitVerdict]:
    (cell,) = document.criteria[0].cells
    (limit,) = cell.limits
    return cell, limit


def test_a_queue_is_compared_with_a_fifo_and_the_others(queues: Path) -> None:
    found = evaluate("pie", suite=queues, seeds=1)
    assert (found.document.subject, found.document.law) == ("queue", "pie")
    cell, limit = delay(found.document)
    assert cell.verdict == "meets"
    fifo, codel = limit.others["droptail"], limit.others["codel"]
    assert limit.value is not None
    assert fifo is not None
    assert codel is not None
    assert max(limit.value, codel) < 40
    assert fifo > 100
    assert limit.limit == pytest.approx(fifo / 2)
    assert cell.use is not None
    assert cell.use.share == pytest.approx(0.95, abs=0.05)  # of all flows
    assert delay(evaluate("fifo", suite=queues, seeds=1).document)[0].verdict == "fails"


def test_parameters_of_the_queue_are_not_those_of_the_others(queues: Path) -> None:
    def values(*sets: str) -> tuple[float, dict[str, float | None]]:
        limit = delay(evaluate("pie", suite=queues, seeds=1, set=sets).document)[1]
        assert limit.value is not None
        return limit.value, limit.others

    usual, others = values()
    longer, same = values("link.l.queue_params.target=60ms")
    assert longer > 1.5 * usual
    assert same == others
    with pytest.raises(InputError, match=r"command line: link\.l\.queue_params\.interval: unknown"):
        values("link.l.queue_params.interval=60ms")


@pytest.mark.parametrize(
    ("queue", "options", "problem"),
    [
        ("pies", {}, 'unknown queue "pies", did you mean "pie"?'),
        ("pie", {"against": ["cubic"]}, 'unknown queue "cubic"'),
        ("pie", {"baseline": "cubic"}, 'unknown queue "cubic"'),
        ("pie", {"recovery": "quic"}, "recovery: no effect in a suite for queues"),
        ("pie", {"routers": "none"}, "routers: no effect in a suite for queues"),
        ("pie", {"sensitivity": True}, "sensitivity: no effect in a suite for queues"),
        ("pie", {"set": ["link.l.queue=red"]}, "the evaluation chooses the queue"),
    ],
)
def test_options_of_laws_and_unknown_queues_are_refused(
    queues: Path, queue: str, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InputError) as caught:
        evaluate(queue, suite=queues, **options)
    assert problem in str(caught.value)


def test_a_scenario_without_the_queue_is_refused(queues: Path) -> None:
    file = queues / "scenarios" / "alone.toml"
    file.write_text(SCENARIO.replace('queue = "queue"', 'queue = "pie"'))
    with pytest.raises(InputError, match="no link has the queue under test"):
        evaluate("pie", suite=queues)
