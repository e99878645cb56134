"""Writing to standard output: text, tables, JSON; a closed pipe ends the command quietly."""

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
            raise  # what rich is handling when it calls this; its own answer is exit 1

    # Names such as long[0] are text, not markup.
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
    """Around writing to standard output: stops quietly when its reader has gone (`… | head`)."""
    try:
        yield
    except OSError as error:
        # The interpreter flushes once more on its way out: into nothing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(READER_GONE) from None
        raise InputError("standard output", "", f"cannot be written: {error.strerror}") from None
