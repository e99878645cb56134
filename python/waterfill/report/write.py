"""Writer of `waterfill report`, which detects a directory's kind and writes its page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from waterfill.errors import InputError
from waterfill.papers.claims import loading
from waterfill.report import comparison, detect, evaluation, page, reproduction, run, sweep
from waterfill.runs.files import write_text
from waterfill.runs.result import Document

PAGE = "report.html"


def write(directory: Path) -> list[Path]:
    """Write the report of a directory into the directory; return the paths of the files.

    Raises InputError when the directory is none that Waterfill wrote, or is damaged.
    """
    kind = detect.kind(directory)
    if kind == "reproduction":
        known = loading.experiments()
        known += reproduction.own(directory, known)
        return reproduction.write(directory, reproduction.collect(directory, known))
    make, template = _PAGES[kind]
    try:
        content = make(directory)
    except InputError:
        raise
    except (LookupError, ValueError, TypeError, ArithmeticError) as error:
        # Each file is whole by itself: the series are not of this scenario, or a name is twice.
        message = f"the files of the run do not fit together: {error}"
        raise InputError(str(directory), "", message) from None
    return [write_text(directory / PAGE, page.render(template, content))]


_PAGES: dict[detect.ResultKind, tuple[Callable[[Path], Document], str]] = {
    "run": (run.content, "run.html.j2"),
    "comparison": (comparison.content, "comparison.html.j2"),
    "evaluation": (evaluation.content, "evaluation.html.j2"),
    "sweep": (sweep.content, "sweep.html.j2"),
}
