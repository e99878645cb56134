"""Writes text, tables and JSON to standard output; a closed pipe ends the command quietly."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from waterfill.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

READER_GONE = 141


def print_json(document: Any) -> None:
    """Print one JSON document on standard output."""
    from waterfill.runs.result import to_json

    print_text(to_json(document))


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


@contextmanager
def _output() -> Iterator[None]:
    """Exit quietly when the reader of standard output has gone (`… | head`)."""
    try:
        yield
    except OSError as error:
        # The interpreter flushes once more when it exits: discard that.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(READER_GONE) from None
        raise InputError("standard output", "", f"cannot be written: {error.strerror}") from None
