"""The command `evaluate`, which runs a law through the criteria of a suite."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from waterfill.cli import completion
from waterfill.cli.arguments import INTERRUPTED, Json, Output, OwnLaw, Sets, laws_of, place
from waterfill.cli.console import Unwritten, print_json, print_text, show
from waterfill.errors import InputError, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from waterfill.evaluation.api import Evaluation
    from waterfill.evaluation.verdict import EvaluationDocument
    from waterfill.runs.directory import Stage
    from waterfill.runs.endpoints import Library
    from waterfill.runs.laws import PythonLaw

SuiteName = Annotated[
    str | None,
    Option(
        "--suite",
        metavar="NAME|DIR",
        help="Suite of criteria, or its folder. Default: rfc9743, with --queue rfc7928.",
    ),
]
Queue = Annotated[
    str | None, Option("--queue", metavar="NAME", help="Evaluate a queue instead of a law.")
]
Against = Annotated[
    str | None,
    Option(
        metavar="A,B,C",
        help="Rivals; the first is the reference. Default: the suite's.",
        autocompletion=completion.protocols,
    ),
]
Recovery = Annotated[str | None, Option(metavar="METHOD", help="Loss recovery of the law's flows.")]
Routers = Annotated[
    str, Option(metavar="WHICH", help="Routers that run an explicit law: all, half or none.")
]
Seeds = Annotated[
    str, Option("--seeds", metavar="N", help="Seeds of each cell, or auto: as many as it needs.")
]
Precision = Annotated[
    str, Option(metavar="P%", help="Half of the 95 % interval at which auto stops.")
]


Endpoint = Annotated[
    str | None,
    Option(
        "--endpoint",
        metavar="LIB.so[:KEY=VALUE,…]",
        help="Evaluate a library's endpoints instead of a law: code that you trust.",
    ),
]
Listing = Annotated[
    bool, Option("--list", help="List the suite's criteria and limits without running.")
]
Quick = Annotated[bool, Option("--quick", help="Run fewer and shorter cells, with one seed.")]
Only = Annotated[
    str | None, Option(metavar="A,B,C", help="Only these criteria, by name, title or section.")
]
Baseline = Annotated[
    str | None,
    Option(
        metavar="LAW",
        help="Compare with this law, cell by cell.",
        autocompletion=completion.protocol,
    ),
]
Expect = Annotated[
    Path | None,
    Option(metavar="FILE", help="Exit with 1 if a verdict differs from FILE.", parser=place),
]
Record = Annotated[
    Path | None, Option(metavar="FILE", help="Record the verdicts in FILE.", parser=place)
]


def evaluate(
    law: Annotated[
        str | None,
        Argument(metavar="LAW", help="Law to evaluate.", autocompletion=completion.protocol),
    ] = None,
    queue: Queue = None,
    suite: SuiteName = None,
    against: Against = None,
    file: OwnLaw = None,
    endpoint: Endpoint = None,
    recovery: Recovery = None,
    routers: Routers = "all",
    seeds: Seeds = "auto",
    precision: Precision = "5%",
    listing: Listing = False,
    quick: Quick = False,
    only: Only = None,
    baseline: Baseline = None,
    sensitivity: Annotated[
        bool,
        Option("--sensitivity", help="List the verdicts that change with a parameter ± 20 %."),
    ] = False,
    calibrate: Annotated[
        bool, Option("--calibrate", help="Compare short runs of this version with formulas.")
    ] = False,
    expect: Expect = None,
    record: Record = None,
    sets: Sets = None,
    fresh: Annotated[bool, Option("--fresh", help="Do not use the cache.")] = False,
    json: Json = False,
    output: Output = None,
) -> None:
    """Run a law or a queue through the criteria of a suite, such as those of RFC 9743.

    For each criterion it meets the limits, fails, or does so in some cells. Cells have jitter and
    as many seeds as their verdicts need. With -o, report.html, verdicts.json and a scenario file
    for each cell are written to DIR.
    """
    from waterfill.evaluation import api

    suite = suite or (api.DEFAULT_SUITE if queue is None else api.QUEUE_SUITE)
    if listing:
        _refuse_beside_list(
            against=against, law=file, recovery=recovery, routers=routers != "all",
            seeds=seeds != "auto", precision=precision != "5%", quick=quick, baseline=baseline,
            sensitivity=sensitivity, calibrate=calibrate, expect=expect, record=record, set=sets,
            fresh=fresh, output=output,
        )  # fmt: skip
        if queue is not None or law is not None:
            api.check_subject(suite, law, queue, laws={})
        _list(suite, [] if only is None else _names(only), json=json)
        return
    own = laws_of(file)
    if only is not None and record is not None:
        raise InputError("command line", "record", "not possible with --only", "remove one of them")
    with ExitStack() as stack:
        stage = _stage(stack, output, record)
        found = _run(
            _subject(api.check_subject(suite, law, queue, own), endpoint, own),
            suite=suite,
            against=None if against is None else _names(against),
            laws=own,
            recovery=recovery,
            routers=routers,
            seeds=_seeds(seeds),
            precision=_precision(precision),
            quick=quick,
            only=() if only is None else _names(only),
            set=sets or (),
            baseline=baseline,
            sensitivity=sensitivity,
            calibrate=calibrate,
            expect=expect,
            cached=not fresh,
        )
        if file is not None and output is not None:
            found.document["law_file"] = relpath(file, output.absolute().parent)
        unwritten = _write(found, stage, record)
    _present(found, unwritten, output, json=json)
    _end(found, unwritten)


def _refuse_beside_list(**options: object) -> None:
    """Raise InputError for an option that changes runs, which --list does not have."""
    for name, given in options.items():
        if given:
            raise InputError("command line", name, "no effect with --list", "remove one of them")


def _end(found: Evaluation, unwritten: Unwritten) -> None:
    """Print what differs from the record; exit with 1 if anything does, or was not written."""
    differences = found.differences or ()
    for line in (*found.notices, *differences):
        print(line, file=sys.stderr)
    if unwritten.report() or differences:
        raise typer.Exit(1)


def _stage(stack: ExitStack, output: Path | None, record: Path | None) -> Stage | None:
    """Return the output directory's stage, before the runs, so that a typo or another run there
    fails at once; raise WriteError if the directory or the record cannot be written.
    """
    from waterfill.runs.directory import Stage
    from waterfill.runs.files import check_writable

    stage = None if output is None else stack.enter_context(Stage(output))
    if record is not None:
        check_writable(record)
    return stage


def _run(law: str | Library, **options: Any) -> Evaluation:
    """Evaluate a law with the options of `waterfill.evaluate`; end the command after Ctrl-C."""
    from waterfill.evaluation import api
    from waterfill.evaluation.engine import Interrupted
    from waterfill.runs.progress import ExperimentBars

    with ExperimentBars(1, lines=False) as live:
        try:
            return api.evaluate(law, planned=live.planned, progress=live.show, **options)
        except Interrupted:
            kept = "finished runs are in the cache" if options["cached"] else "nothing is written"
            print(f"interrupted: {kept}", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None


def _subject(law: str | None, endpoint: str | None, own: Mapping[str, PythonLaw]) -> str | Library:
    """Return the law to evaluate, or the library of endpoints; raise InputError for both."""
    if endpoint is None:
        return law or _only(own)
    if law is not None:
        problem = f"takes a law or --endpoint, got {law} and {endpoint}"
        raise InputError("", "", f"evaluate {problem}", "remove one of them")
    from waterfill.runs.endpoints import parse_library

    return parse_library(endpoint)


def _only(own: Mapping[str, PythonLaw]) -> str:
    """Return the name of the only law of a file; raise InputError if there are none or several."""
    if len(own) != 1:
        why = f"no law given, and the file has {len(own)}" if own else "no law given"
        raise InputError("evaluate", "", why, "type the name of a law")
    return next(iter(own))


def _write(found: Evaluation, stage: Stage | None, record: Path | None) -> Unwritten:
    """Write the record and the output directory; return what could not be written."""
    from waterfill.evaluation import expected, output
    from waterfill.runs.files import write_text

    unwritten = Unwritten()
    with unwritten.collected():
        if record is not None:
            write_text(record, expected.text(found.document))
    with unwritten.collected():
        if stage is not None:
            output.write(found.document, found.cells, stage, found.differences)
    return unwritten


def _present(found: Evaluation, unwritten: Unwritten, output: Path | None, *, json: bool) -> None:
    """Write the report and print the verdicts."""
    from waterfill.report import write as report

    if output is not None and not unwritten.errors:
        with unwritten.collected():
            report.write(output)
    if json:
        print_json(found.document)
        return
    _show(found.document)
    if output is not None and not unwritten.errors:
        print_text(f"written to {output}")


def _list(name: str, only: list[str], *, json: bool) -> None:
    """Print the limits of a suite, or of the criteria that `only` names, with their sources."""
    from waterfill.cli import evaluate_tables
    from waterfill.evaluation import suites

    suite = suites.select(suites.load(name), only)
    entries = suites.entries(suite)
    if json:
        content = suite.content
        print_json({"suite": content.name, "version": content.version, "limits": entries})
    else:
        show(*evaluate_tables.limits(suite, entries))


def _show(document: EvaluationDocument) -> None:
    from waterfill.cli import evaluate_tables

    show(*evaluate_tables.evaluation(document))
    if document.baseline is not None:
        show(*evaluate_tables.changes(document))
    if document.sensitivity is not None:
        show(*evaluate_tables.sensitivity(document.sensitivity))
    if document.calibration is not None:
        show(*evaluate_tables.calibration(document.calibration))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _seeds(text: str) -> int | None:
    """Return a number of seeds, or None for auto; raise InputError for any other text."""
    if text == "auto":
        return None
    if not text.isdecimal():
        raise InputError("command line", "seeds", f"must be auto or a number, got {shown(text)}")
    return int(text)


def _precision(text: str) -> float:
    try:
        return float(text.strip().removesuffix("%")) / 100
    except ValueError:
        problem = f"must be a share such as 5%, got {shown(text)}"
        raise InputError("command line", "precision", problem) from None
