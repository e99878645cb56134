"""Output of text, tables and JSON to standard output. A closed pipe ends the command quietly.

`settle` corrects what libraries would take from the environment.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from waterfill.errors import RunError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from waterfill.contract.versions import Document
    from waterfill.runs.files import WriteError

READER_GONE = 141

# Narrower, a table's columns have no characters; wider, its lines take memory without an end.
_MIN_COLUMNS, _MAX_COLUMNS = 40, 1000


def settle() -> None:
    """Correct environment variables before the libraries that read them are imported.

    A size of the terminal that is none is left to be asked of the terminal. Figures are written to
    files, so no backend for windows is loaded; where settings cannot be kept is no news to a user.
    """
    for name in ("COLUMNS", "LINES"):
        text = os.environ.get(name, "")
        if not (text.isascii() and text.isdecimal() and text.strip("0")):
            os.environ.pop(name, None)
    if "COLUMNS" in os.environ:
        # A number of a thousand digits is refused by int().
        columns = int(os.environ["COLUMNS"].lstrip("0")[:9])
        os.environ["COLUMNS"] = str(min(max(columns, _MIN_COLUMNS), _MAX_COLUMNS))
    os.environ.pop("MPLBACKEND", None)
    logging.getLogger("matplotlib").setLevel(logging.ERROR)


def print_json(document: Document) -> None:
    """Print one JSON document, with its schema version, on standard output."""
    from waterfill.contract.versions import versioned
    from waterfill.runs.result import to_json

    print_text(to_json(versioned(document)))


def show(*parts: RenderableType) -> None:
    """Print tables and texts on standard output."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            raise  # re-raise the error that rich is handling; rich itself would exit with 1

    # Names such as long[0] are not markup.
    console = Output(markup=False, highlight=False, emoji=False)
    with _output():
        for part in parts:
            console.print(part)


def print_text(text: str) -> None:
    """Print one text and a newline on standard output."""
    with _output():
        print(text, flush=True)


def discard_output() -> None:
    """Discard further output to standard output, including the interpreter's at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _output() -> Iterator[None]:
    """Exit quietly if the reader of standard output has gone (`… | head`); raise RunError if a
    write fails otherwise.
    """
    try:
        yield
    except OSError as error:
        said = unwritable(error)
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(READER_GONE) from None
        raise said from None


def unwritable(error: OSError) -> RunError:
    """Return the error for a failed write to standard output; discard all further output."""
    discard_output()
    reason = "it is closed" if error.errno == errno.EBADF else error.strerror
    return RunError(f"standard output: cannot be written: {reason}")


class Unwritten:
    """Failed writes of a command, which are reported after its answer has been printed."""

    def __init__(self) -> None:
        self.errors: list[WriteError] = []

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Collect a WriteError that is raised in this context, and continue after it."""
        from waterfill.runs.files import WriteError

        try:
            yield
        except WriteError as error:
            self.errors.append(error)

    def report(self) -> bool:
        """Print each error as one sentence on standard error; return True if there are any."""
        for error in self.errors:
            print(error, file=sys.stderr)
        return bool(self.errors)
