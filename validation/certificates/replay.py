"""Replay a log: recompute and compare each step, and check that each state follows the previous
one.

A law's checker gets a step and returns what must be true after it, `Expected`. A field of the state
that it does not name must be as it was before; of a new law it must name all. An output that it
does not name is an error, and so is a field or an output that it names and that is not there.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from validation.certificates.log import Header, Step, Value, Values
from validation.certificates.rounding import OneOf, Real, Single, Whole
from waterfill.errors import InputError

Params: TypeAlias = "Mapping[str, Any]"


@dataclass
class Expected:
    """Results that a law's equations give for a step: changed state fields and all outputs."""

    after: Mapping[str, object] = field(default_factory=dict)
    outputs: Mapping[str, object] = field(default_factory=dict)


Check: TypeAlias = "Callable[[Step], Expected]"


_CALLS = frozenset(
    (
        *("new", "on_arrival", "on_departure", "on_timer", "on_data", "echo", "stamp", "on_ack"),
        "on_event",
    )
)


def by_call(**checks: Check) -> Check:
    """Return equations that choose among `checks` by the name of a step's call."""

    def check(step: Step) -> Expected:
        return checks[step.call](step)

    return check


class PartChecker:
    """Equations of a router, receiver or source, with one private method per call, such as
    `_on_ack`.
    """

    def __call__(self, step: Step) -> Expected:
        """Return the equations' results for a step. Raises LookupError for a call without
        equations.
        """
        check: Check | None = getattr(self, f"_{step.call}", None) if step.call in _CALLS else None
        if check is None:
            raise LookupError(f"no equations for the call {step.call}")
        return check(step)


SYNS_LOST: Final = 4
"""Number of the event that reports lost SYNs: the initial window is then one packet."""


class SourceChecker(PartChecker):
    """Equations of a source. Only the loss of SYNs changes its state, in the field `first_window`,
    unless a law overrides `_on_event`.
    """

    first_window: str | None = None

    def _limit(self, step: Step) -> Mapping[str, object]:
        """Return the limits on the source's sending after a step."""
        raise NotImplementedError

    def _on_event(self, step: Step) -> Expected:
        after: dict[str, object] = {}
        if self.first_window is not None and step.inputs["event"] == SYNS_LOST:
            after[self.first_window] = step.before["packet"]
        return Expected(after, self._limit(step))


def unsupported(params: Params) -> str | None:
    """Return the first parameter setting that no law's equations support, or None."""
    if params.get("arithmetic", "real") != "real":
        return "another arithmetic than real"
    if params.get("carriage", "option") != "option":
        return "prices in a tag"
    return "code_bits above 0" if params.get("code_bits") else None


@dataclass(frozen=True)
class LawChecker:
    """Equations of a law's router, receiver and source, each made from the law's parameters.

    `lacks` returns the first parameter setting that the equations do not support, or None.
    """

    router: Callable[[Params], Check]
    receiver: Callable[[Params], Check]
    source: Callable[[Params], Check]
    lacks: Callable[[Params], str | None] = unsupported


@dataclass(frozen=True)
class Wrong:
    """The first step of a log that contradicts the equations."""

    step: Step
    what: str
    expected: str
    found: str

    def __str__(self) -> str:
        s = self.step
        where = f"row {s.row}: {s.law} {s.part} {s.entity}, {s.call} at {s.time / 1e12:.12g} s"
        return f"{where}: {self.what}: expected {self.expected}, found {self.found}"


@dataclass
class Verdict:
    """Result of a replay: accepted steps by law, role and call, and the first wrong
    step, if any.
    """

    counts: Counter[tuple[str, str, str]]
    dropped: int
    wrong: Wrong | None = None

    @property
    def rows(self) -> int:
        """Number of accepted steps."""
        return sum(self.counts.values())


def replay(
    path: str,
    header: Header,
    steps: Iterable[Step],
    laws: Mapping[str, LawChecker],
    chained: bool = True,
) -> Verdict:
    """Replay a log until its end or the first wrong step.

    `chained`: each state must be the one that the entity's step before left. Logs of the kernel,
    which lack calls that change a state without being a step, are not.

    Raises InputError when the equations lack one of its laws, or a parameter's value.
    """
    checks: dict[tuple[str, str], Check] = {}
    states: dict[tuple[str, str, str], Values] = {}
    verdict = Verdict(Counter(), header.dropped)
    for step in steps:
        kind = (step.law, step.part)
        if kind not in checks:
            checks[kind] = _check(path, header, laws, step)
        entity = (*kind, step.entity)
        if chained and step.call != "new":
            verdict.wrong = _follows(step, states.get(entity))
        verdict.wrong = verdict.wrong or _checked(step, checks[kind])
        if verdict.wrong is not None:
            return verdict
        states[entity] = step.after
        verdict.counts[(*kind, step.call)] += 1
    verdict.dropped = header.dropped  # a log of the kernel says so at its end
    return verdict


def _check(path: str, header: Header, laws: Mapping[str, LawChecker], step: Step) -> Check:
    if step.law not in laws:
        known = ", ".join(laws)
        raise InputError(path, "", f"no equations for {step.law}; known: {known}")
    law = laws[step.law]
    make = {"router": law.router, "receiver": law.receiver, "source": law.source}.get(step.part)
    if make is None:
        raise InputError(path, "", f"part must be router, receiver or source, got {step.part}")
    try:
        params = header.params[step.law]
        lacking = law.lacks(params)
        check = make(params)
    except (LookupError, TypeError, ValueError, OverflowError):
        why = f"no parameters of {step.law} in the metadata"
        raise InputError(path, "", why) from None
    if lacking is not None:
        raise InputError(path, "", f"no equations for {step.law} with {lacking}")
    return check


def _checked(step: Step, check: Check) -> Wrong | None:
    try:
        return compare(step, check(step))
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        struct.error,
    ) as error:
        return Wrong(step, "the row", "values that the law can have", str(error) or repr(error))


def compare(step: Step, expected: Expected) -> Wrong | None:
    """Return the first difference between a step and the equations' results, or None."""
    for values, logged in ((expected.after, step.after), (expected.outputs, step.outputs)):
        for name in sorted(values.keys() - logged.keys()):
            return Wrong(step, name, show(values[name]), "no such field")
    for name, found in step.after.items():
        if step.call == "new" and name not in expected.after:
            return Wrong(step, f"{name} of a new law", "no such field", show(found))
        value = expected.after.get(name, step.before.get(name))
        if not agrees(value, found):
            return Wrong(step, f"{name} after", show(value), show(found))
    for name, found in step.outputs.items():
        if name not in expected.outputs:
            return Wrong(step, f"output {name}", "none", show(found))
        if not agrees(expected.outputs[name], found):
            return Wrong(step, f"output {name}", show(expected.outputs[name]), show(found))
    return None


def _follows(step: Step, left: Values | None) -> Wrong | None:
    if left is None:
        return Wrong(step, "call", "new, the first of each", step.call)
    for name, found in step.before.items():
        if not agrees(left.get(name), found):
            return Wrong(step, f"{name} before", f"{show(left.get(name))}, as left", show(found))
    return None


class Packed:
    """Expected header of several fields, with a `struct` format and an expected value for each
    field.
    """

    __slots__ = ("fields", "form")

    def __init__(self, form: str, *fields: object) -> None:
        self.form, self.fields = form, fields

    def __repr__(self) -> str:
        return f"({', '.join(map(show, self.fields))})"

    def accepts(self, found: bytes) -> bool:
        """Return True if each field agrees and the unused bytes are zero."""
        if len(found) != struct.calcsize(self.form):
            return False
        values = struct.unpack(self.form, found)
        return struct.pack(self.form, *values) == found and all(map(agrees, self.fields, values))


def agrees(expected: object, found: Value) -> bool:
    """Return True if a logged value agrees with the expected value, within its error bound."""
    if isinstance(expected, (Real, Single)):
        return isinstance(found, float) and expected.accepts(found)
    if isinstance(expected, Whole):
        return isinstance(found, int) and expected.accepts(found)
    if isinstance(expected, Packed):
        return isinstance(found, bytes) and expected.accepts(found)
    if isinstance(expected, OneOf):
        return any(agrees(choice, found) for choice in expected.choices)
    return expected == found and type(expected) is type(found)


def show(value: object) -> str:
    """Return a value as text, with all digits of a number and a header in hexadecimal."""
    if isinstance(value, bytes):
        return value.hex()
    return "none" if value is None else repr(value)
