"""`waterfill report`: decide what a directory holds, and write its page."""

from __future__ import annotations

from pathlib import Path

from waterfill.errors import InputError
from waterfill.papers import report as papers_report
from waterfill.papers.claims import loading
from waterfill.report import detect, page, run
from waterfill.runs.result import write_text
from waterfill.runs.stored import load_run

PAGE = "report.html"


def write(directory: Path) -> list[Path]:
    """Write the report of a directory into it; return the paths of its files.

    Raises InputError when the directory is none that Waterfill wrote, or is damaged.
    """
    kind = detect.kind(directory)
    if kind == "reproduction":
        entries = papers_report.collect(directory, loading.experiments())
        return papers_report.write(directory, entries)
    if kind != "run":
        raise InputError(str(directory), "", f"expected a run or a reproduction, got a {kind}")
    text = page.render("run.html.j2", run.content(load_run(directory), directory))
    return [write_text(directory / PAGE, text)]
