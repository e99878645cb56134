"""Errors that end a command: wrong input, and runs that could not be completed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

_MAX_VALUE_CHARS = 60
_MAX_KEY_CHARS = 200
_MAX_MESSAGE_CHARS = 1000
# A suggestion further away is more often wrong than right.
_MAX_TYPING_ERRORS = 2


class InputError(ValueError):
    """Wrong input, reported in one line: `FILE: KEY: PROBLEM; ADVICE`.

    - `file`: the scenario's file, or `command line` for a key that `--set` set
    - `key`: path of the key as the user writes it (`flow.long.path`), empty for the whole file
    - `problem`: the problem with the value that was given, such as `must be above zero, got "0 s"`
    - `advice`: text to write instead, or empty

    A command that catches the error prints `str(error)` and exits with 2.
    """

    def __init__(self, file: str, key: str, problem: str, advice: str = "") -> None:
        self.file = one_line(file)
        self.key = one_line(key)
        self.problem = one_line(problem)
        self.advice = one_line(advice)
        self.message = "; ".join(filter(None, (self.problem, self.advice)))
        # A key of 3,000 steps, or a word quoted from a file, would hide what is wrong with it.
        parts = [self.file, shortened(self.key, _MAX_KEY_CHARS)]
        parts.append(shortened(self.message, _MAX_MESSAGE_CHARS))
        super().__init__(": ".join(filter(None, parts)))

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, str, str]]:
        # Pools of processes pickle a job's error; the default passes only the one line.
        return type(self), (self.file, self.key, self.problem, self.advice)


class RunError(RuntimeError):
    """Error of a run that failed although its input is valid. The command prints one line and exits
    with 1.
    """

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


def one_line(text: str) -> str:
    """Return `text` with white space collapsed and unprintable characters escaped."""
    flat = " ".join(text.split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in flat)


def shown(value: Any) -> str:
    """Quote a value for a message, in JSON notation and shortened if it is long."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return shortened(text, _MAX_VALUE_CHARS)


def shortened(text: str, limit: int) -> str:
    """Shorten a text to at most `limit` characters, ending in `…` if it was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return `, did you mean "…"?` if a known word is at most two typing errors away.

    Otherwise return the known words. The text ends a sentence: `unknown key` + nearest(…).
    """
    words = sorted(known)
    first = word[:1].lower()
    distance, _, close = min(
        ((typing_errors(word.lower(), w.lower()), w[:1].lower() != first, w) for w in words),
        default=(9, True, ""),
    )
    if distance <= _MAX_TYPING_ERRORS and distance < len(word):
        return f', did you mean "{close}"?'
    if not words:
        return "; none is allowed here"
    few = words if len(words) <= 20 else [*words[:20], "…"]
    return f"; known: {', '.join(few)}"


def typing_errors(one: str, other: str) -> int:
    """Count the typing errors between two words, up to 3. Errors are insertions, deletions,
    replacements and swaps of neighbours.

    The metric is the optimal string alignment distance.
    """
    cap = _MAX_TYPING_ERRORS + 1
    if abs(len(one) - len(other)) >= cap:
        return cap
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        row = [i]
        for j, wanted in enumerate(other, start=1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return min(last[-1], cap)
