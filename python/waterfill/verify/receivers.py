"""The receiver that most laws have: it copies the last header into the echo."""

from __future__ import annotations

from collections.abc import Callable

from waterfill.verify.log import Step, Value
from waterfill.verify.replay import Check, Expected, by_call


def echo_last(first: bytes, echo_of: Callable[[bytes], bytes]) -> Check:
    """Return the check of a receiver whose echo is `first` before any data."""

    def new(_: Step) -> Expected:
        return Expected({"last": first})

    def on_data(step: Step) -> Expected:
        if not step.inputs["has_header"]:
            return Expected()
        return Expected({"last": echo_of(header(step.inputs["header"]))})

    def echo(step: Step) -> Expected:
        return Expected({}, {"has_echo": 1, "echo": step.before["last"]})

    return by_call(new=new, on_data=on_data, echo=echo)


def field24(value: Value) -> int:
    """Return the 24-bit field that a header or an echo begins with; 0 for none."""
    return int.from_bytes(header(value)[:3], "big") if isinstance(value, bytes) else 0


def header(value: Value) -> bytes:
    """Return a header of a log; ValueError for anything else."""
    if isinstance(value, bytes):
        return value
    raise ValueError(f"expected a header, got {value!r}")
