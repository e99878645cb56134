"""Conversions between logged values, whole picoseconds and the seconds of the equations."""

from __future__ import annotations

from fractions import Fraction

from validation.certificates.log import Step
from validation.certificates.rounding import UNIT, Real, Whole, real

PS_PER_S = 10**12


def number(value: object) -> float:
    """Return a number from a log or a parameter. Raises ValueError for any other value."""
    if isinstance(value, (int, float)):
        return value
    raise ValueError(f"must be a number, got {value!r}")


def whole(value: object) -> int:
    """Return an integer or a time from a log. Raises ValueError for any other value."""
    if isinstance(value, int):
        return value
    raise ValueError(f"must be a whole number, got {value!r}")


def picoseconds(value: object) -> int:
    """Convert a parameter from seconds to picoseconds, with the engines' rounding."""
    return int(number(value) * 1e12 + 0.5)


def seconds(ps: int) -> Real:
    """Convert a time from picoseconds to seconds, including the rounding error."""
    return Real(Fraction(ps, PS_PER_S), UNIT * ps / 1e12)


def ratio(ps: int, of: int) -> Real:
    """Return the quotient of two times, including the rounding error."""
    return Real(Fraction(ps, of), UNIT * ps / of)


def given(step: Step, *names: str) -> dict[str, object]:
    """Return the named fields that a new source takes over from its connection."""
    return {name: step.inputs[name] for name in names}


def since(step: Step, name: str) -> int:
    """Return the time since a state field's time in picoseconds, never negative."""
    return max(step.time - whole(step.before[name]), 0)


def from_seconds(value: Real | float) -> Whole:
    """Convert a time from seconds to the nearest whole picosecond."""
    return Whole(real(value) * PS_PER_S + 0)


def usable(step: Step) -> Real:
    """Return the usable capacity C: the link's capacity times its utilization target, if it has
    one.
    """
    target = step.inputs["target"]
    return Real(number(step.inputs["capacity"])) * (1 if target is None else number(target))
