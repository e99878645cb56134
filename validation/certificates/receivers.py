"""Receivers that copy the last header into the echo, as in most laws."""

from __future__ import annotations

from collections.abc import Callable

from validation.certificates.log import Step, Value
from validation.certificates.replay import Check, Expected, Params, PartChecker, by_call


class EchoLast(PartChecker):
    """Equations of a receiver that echoes the last header, and `first` before any data."""

    def __init__(self, first: bytes, echo_of: Callable[[bytes], bytes]) -> None:
        self.first = first
        self.echo_of = echo_of

    def _new(self, _: Step) -> Expected:
        return Expected({"last": self.first})

    def _on_data(self, step: Step) -> Expected:
        if not step.inputs["has_header"]:
            return Expected()
        return Expected({"last": self.echo_of(header(step.inputs["header"]))})

    def _echo(self, step: Step) -> Expected:
        return Expected({}, {"has_echo": 1, "echo": step.before["last"]})


def keeps_last(name: str) -> Callable[[Params], Check]:
    """Return a maker of equations for a C receiver that stores the last 24-bit field as `name`."""

    def receive(step: Step) -> Expected:
        return Expected({name: field24(step.inputs["value"])})

    return lambda _: by_call(receive=receive)


def field24(value: Value) -> int:
    """Return the 24-bit field at the start of a header or an echo, or 0 if there is none."""
    return int.from_bytes(header(value)[:3], "big") if isinstance(value, bytes) else 0


def header(value: Value) -> bytes:
    """Return a logged header. Raises ValueError for any other value."""
    if isinstance(value, bytes):
        return value
    raise ValueError(f"must be a header, got {value!r}")
