"""Command-line errors in one sentence: the option, the value and the text to type."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from waterfill.errors import InputError, nearest, shown

# typer has its own copy of click, or imports click; both derive BadParameter from UsageError.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__bases__[0]


class CommandGroup(TyperGroup):
    """The group of all commands, which raises InputError for a wrong command line."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Parse the options in front of the command's name."""
        with _one_sentence():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Parse the rest of the command line and run the command."""
        with _one_sentence():
            return super().invoke(ctx)


@contextmanager
def _one_sentence() -> Iterator[None]:
    try:
        yield
    except _USAGE_ERROR as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            raise
        key, problem, advice = explain(error, sys.argv[1:])
        raise InputError("", key, problem, advice) from None


def explain(error: Any, words: Sequence[str]) -> tuple[str, str, str]:
    """Return the wrong option or command, the problem with it, and the text to type.

    `error` is a usage error of typer; `words` is the command line, which has the wrong value.
    """
    ctx, param = error.ctx, getattr(error, "param", None)
    kind, message = type(error).__name__, error.message or ""
    if kind == "BadOptionUsage":
        name = error.option_name
        if "does not take" in message:
            return name, "takes no value", f"type {name}"
        return name, "no value given", f"type {name} and a value after it"
    if ctx is None:
        return "", _plain(message), ""
    command = ctx.command_path.partition(" ")[2] or "waterfill"
    usage = " ".join(ctx.get_usage().split()).removeprefix("Usage: ").replace("[OPTIONS] ", "")
    usage = usage.translate({ord(brace): None for brace in "{}"})
    if kind == "NoSuchOption":
        word = error.option_name
        known = [name for p in ctx.command.params for name in p.opts if name.startswith("-")]
        return command, f"unknown option {shown(word)}{nearest(word, known)}", ""
    if kind == "MissingParameter":
        return command, f"no {_name(param)} given", f"type {usage}"
    if found := re.match(r"No such command '(.*?)'", message):
        word = found[1]
        commands = [ctx.command.get_command(ctx, name) for name in ctx.command.list_commands(ctx)]
        known = [c.name for c in commands if not c.hidden]
        return command, f"unknown command {shown(word)}{nearest(word, known)}", ""
    if found := re.fullmatch(r"Got unexpected extra argument.*? \((.*)\)", message):
        return command, f"unexpected argument {shown(found[1])}", f"type {usage}"
    if param is not None:
        given = _given(param.opts, words)
        got = "" if given is None else f", got {shown(given)}"
        return _name(param), f"{_plain(message)}{got}", ""
    return command, _plain(message), ""


def _name(param: Any) -> str:
    options = [name for name in param.opts if name.startswith("--")]
    return str(options[0] if options else param.metavar or param.name.upper())


def _given(names: Sequence[str], words: Sequence[str]) -> str | None:
    """Return the last value of an option on the command line, or None if there is none."""
    found = None
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in names:
            found = value if equals else next(iter(words[at + 1 :]), None)
    return found


# Requirements in the words of typer's two parsers, and in this project's words.
_WORDS = (
    (r".*valid integer.*", "must be a whole number"),
    (r".*valid (number|float).*", "must be a number"),
    (r".*greater than or equal to (\S+?)\.?", r"must be at least \1"),
    (r".*less than or equal to (\S+?)\.?", r"must be at most \1"),
    (r".* is not in the range x>=(\S+?)\.", r"must be at least \1"),
    (r".* is not in the range (\S+?)<=x<=(\S+?)\.", r"must be from \1 to \2"),
    (r"'.*' is not one of (.*?)\.?", r"must be one of \1"),
)


def _plain(message: str) -> str:
    for pattern, text in _WORDS:
        if found := re.fullmatch(pattern, message, re.DOTALL):
            return found.expand(text)
    return message[:1].lower() + message[1:].rstrip(".")
