"""The one kind of error that a user can cause: input that is wrong."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from typing import Any

_LONGEST_VALUE = 60


class InputError(ValueError):
    """Input that is wrong: one line, `FILE: KEY: what was expected, got …`.

    `file` is the scenario's file, or `command line` for a key that `--set` gave. `key` is the
    key's path as the user writes it (`flow.long.path`), empty when the whole file is at fault.
    A command that catches it prints `str(error)` and exits with 2.
    """

    def __init__(self, file: str, key: str, message: str) -> None:
        self.file = one_line(file)
        self.key = one_line(key)
        self.message = one_line(message)
        super().__init__(": ".join(part for part in (self.file, self.key, self.message) if part))


class RunError(RuntimeError):
    """A run that could not be carried through, though its input is right: one line, exit 1."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


def one_line(text: str) -> str:
    """`text` with white space collapsed and unprintable characters escaped."""
    flat = " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in flat)


def shown(value: Any) -> str:
    """A value as a message quotes it: written as TOML would have it, cut when it is long."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"


def nearest(word: str, known: Iterable[str]) -> str:
    """`, did you mean "…"?` if a known word is near, else the known words themselves.

    The answer is the end of a sentence, so that `unknown key` + nearest(…) reads well.
    """
    words = sorted(known)
    close = difflib.get_close_matches(word.lower(), words, n=1, cutoff=0.5)
    if close:
        return f', did you mean "{close[0]}"?'
    if not words:
        return ", expected none here"
    few = words if len(words) <= 20 else [*words[:20], "…"]
    return f", expected {'one of ' if len(few) > 1 else ''}{', '.join(few)}"
