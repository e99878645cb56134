"""Study `certificates`: check logs of the laws' steps, either generated or given."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from validation.certificates.laws import LAWS, verify
from validation.certificates.replay import Verdict
from validation.study import Option, Options, Report, Study
from validation.tables import markdown
from waterfill import run
from waterfill.runs.steps import FILE_NAME, MAX_ROWS, StepLog


def scenario(law: str) -> dict[str, Any]:
    """Return a scenario with two bottlenecks, a long flow and two short flows, one late and with
    weight 2.
    """
    return {
        "duration": "20 s",
        "protocol": law,
        "link": [
            {"name": "one", "from": "a", "to": "b", "rate": "20 Mbit/s", "delay": "4 ms"},
            {"name": "two", "from": "b", "to": "c", "rate": "15 Mbit/s", "delay": "9 ms"},
        ],
        "flow": [
            {"name": "long", "path": ["one", "two"]},
            {"name": "first", "path": ["one"]},
            {"name": "second", "path": ["two"], "start": "2 s", "weight": 2},
        ],
    }


def work(options: Options) -> Report:
    """Check the given logs, or a generated log of each law and backend."""
    found = dict(_given(options.logs) if options.logs else _logged(options.rows))
    rows = [[name, v.rows, v.dropped, v.wrong or "accepted"] for name, v in found.items()]
    failed = [f"{name}: {verdict.wrong}" for name, verdict in found.items() if verdict.wrong]
    document = [_document(name, verdict) for name, verdict in found.items()]
    return Report(markdown("log|steps:|not logged:|result", rows), document, failed)


def _given(logs: tuple[str, ...]) -> Iterator[tuple[str, Verdict]]:
    yield from ((log, verify(log)) for log in logs)


def _logged(rows: int) -> Iterator[tuple[str, Verdict]]:
    """Run every law on both backends and check the logs of their first steps."""
    with tempfile.TemporaryDirectory(prefix="waterfill-certificates-") as folder:
        file = Path(folder) / FILE_NAME
        for law in LAWS:
            for backend in ("sim", "fluid"):
                run(scenario(law), on=backend, steps=StepLog(file, rows))
                yield f"{law} on {backend}", verify(file)


def _document(name: str, verdict: Verdict) -> dict[str, Any]:
    return {
        "log": name,
        "accepted": verdict.wrong is None,
        "rows": verdict.rows,
        "not_logged": verdict.dropped,
        "steps": [
            {"law": law, "part": part, "call": call, "rows": rows}
            for (law, part, call), rows in sorted(verdict.counts.items())
        ],
        "wrong": None if verdict.wrong is None else str(verdict.wrong),
    }


STUDY = Study[Any, Any](
    shows="steps of laws in sim and fluid against the papers' equations, computed again exactly",
    minutes=5,
    options=(
        Option("logs", (), "logs of waterfill run --log-steps to check instead"),
        Option("--rows", 100_000, f"steps of each law and backend, up to {MAX_ROWS}", low=1),
    ),
    quick={"rows": 2000},
    work=work,
)
