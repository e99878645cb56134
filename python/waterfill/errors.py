"""Errors that end a command: wrong input, and runs that could not be completed."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from typing import Any

_MAX_VALUE_CHARS = 60
_MAX_KEY_CHARS = 200
_MAX_MESSAGE_CHARS = 1000


class InputError(ValueError):
    """Wrong input: one line, `FILE: KEY: expected …, got …`.

    `file` is the scenario's file, or `command line` for a key that `--set` set. `key` is the
    path of the key as the user writes it (`flow.long.path`), empty for the whole file. A command
    that catches it prints `str(error)` and exits with 2.
    """

    def __init__(self, file: str, key: str, message: str) -> None:
        self.file = one_line(file)
        self.key = one_line(key)
        self.message = one_line(message)
        # A key of 3,000 steps, or a word quoted from a file, would hide what is wrong with it.
        parts = [self.file, shortened(self.key, _MAX_KEY_CHARS)]
        parts.append(shortened(self.message, _MAX_MESSAGE_CHARS))
        super().__init__(": ".join(filter(None, parts)))

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, str]]:
        # Pools of processes pickle what a job raises; the default passes the one line alone.
        return type(self), (self.file, self.key, self.message)


class RunError(RuntimeError):
    """A run that failed although its input is valid: one line, exit 1."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


def one_line(text: str) -> str:
    """Return `text` with white space collapsed and unprintable characters escaped."""
    flat = " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in flat)


def shown(value: Any) -> str:
    """Return a value as messages quote it: in TOML's notation, shortened when it is long."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return shortened(text, _MAX_VALUE_CHARS)


def shortened(text: str, most: int) -> str:
    """Return at most `most` characters of a text; `…` stands for what is left out."""
    return text if len(text) <= most else text[: most - 1] + "…"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return `, did you mean "…"?` if a known word is similar, else the known words.

    The text ends a sentence: `unknown key` + nearest(…).
    """
    words = sorted(known)
    close = difflib.get_close_matches(word.lower(), words, n=1, cutoff=0.5)
    if close:
        return f', did you mean "{close[0]}"?'
    if not words:
        return ", expected none here"
    few = words if len(words) <= 20 else [*words[:20], "…"]
    return f", expected {'one of ' if len(few) > 1 else ''}{', '.join(few)}"
