"""Units of the engines: times in whole picoseconds, used in equations as seconds."""

from __future__ import annotations

from fractions import Fraction

from validation.certificates.log import Step
from validation.certificates.rounding import UNIT, Real, Whole, real

PS_PER_S = 10**12


def number(value: object) -> float:
    """Return a number of a log or a parameter; ValueError for none."""
    if isinstance(value, (int, float)):
        return value
    raise ValueError(f"must be a number, got {value!r}")


def whole(value: object) -> int:
    """Return a whole number or a time of a log; ValueError for none."""
    if isinstance(value, int):
        return value
    raise ValueError(f"must be a whole number, got {value!r}")


def picoseconds(value: object) -> int:
    """Return a parameter in seconds as the engines store it."""
    return int(number(value) * 1e12 + 0.5)


def seconds(ps: int) -> Real:
    """Return a time in seconds, which is rounded when it is converted."""
    return Real(Fraction(ps, PS_PER_S), UNIT * ps / 1e12)


def ratio(ps: int, of: int) -> Real:
    """Return a time over another one."""
    return Real(Fraction(ps, of), UNIT * ps / of)


def given(step: Step, *names: str) -> dict[str, object]:
    """Return the state that a new law takes over from its connection."""
    return {name: step.inputs[name] for name in names}


def since(step: Step, name: str) -> int:
    """Return the picoseconds since the time in a field of the state; never negative."""
    return max(step.time - whole(step.before[name]), 0)


def from_seconds(value: Real | float) -> Whole:
    """Return seconds in whole picoseconds, to the nearest."""
    return Whole(real(value) * PS_PER_S + 0)


def usable(step: Step) -> Real:
    """Return C: the link's capacity, or its own target's share of it."""
    target = step.inputs["target"]
    return Real(number(step.inputs["capacity"])) * (1 if target is None else number(target))
